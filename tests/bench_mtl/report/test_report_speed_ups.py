"""What the heat map of speed-ups draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from bench_mtl.report.figures import speed_ups
from bench_mtl.results.frames import GENERIC, SPECIALISED

NONE = float("nan")

COLUMNS = ["problem", "target", "winner", "kind", "ratio", "at_least"]


def points_of(winners):
    return speed_ups.speed_up_points(winners.assign(reference_wins=winners["kind"] == GENERIC))


WINNERS = pd.DataFrame(
    [
        ("a", 1e-2, "pg", SPECIALISED, 12.0, False),
        ("a", 1e-6, "pg", SPECIALISED, 40.0, True),
        ("b", 1e-2, "scs", GENERIC, 10.0, False),
        ("b", 1e-6, "scs", GENERIC, 50.0, True),
        ("c", 1e-2, "pg", SPECIALISED, 1.0, False),
        ("c", 1e-6, None, None, NONE, False),
        ("d", 1e-2, "pg", SPECIALISED, NONE, False),
        ("d", 1e-6, None, None, NONE, False),
    ],
    columns=COLUMNS,
)


def test_a_ratio_is_of_the_generic_time_to_the_specialised_one_whoever_wins():
    points = points_of(WINNERS)
    assert list(points["speed_up"].fillna(0)) == pytest.approx([12.0, 40.0, 0.1, 0.02, 1.0, 0.0, 0.0, 0.0])
    assert list(points["bound"]) == ["", ">=", "", "<=", "", "", "", ""]


def test_the_map_says_its_numbers_and_its_colours_part_at_one():
    points = points_of(WINNERS)
    figure = speed_ups.speed_ups(points)
    axis, key = figure.axes
    assert [text.get_text() for text in axis.texts] == ["12x", ">= 40x", "0.1x", "<= 0.02x", "1.0x", "-"]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["a", "b", "c"]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1e-2", "1e-6"]
    mesh = axis.collections[0]
    figure.draw_without_rendering()
    colours = mesh.get_facecolors().reshape(3, 2, 4)
    assert colours[0, 1, 2] > colours[0, 1, 0]  # blue over red: purple
    assert colours[1, 1, 0] > colours[1, 1, 2]  # orange
    assert np.ptp(colours[2, 0, :3]) < 0.03  # 1 is neither
    assert colours[2, 1, 3] == 0.0
    assert to_hex(axis.get_facecolor()) == "#f7f7f7"
    assert "1" in [text.get_text() for text in key.get_xticklabels()]
    told = speed_ups.caption(points)
    for sentence in ("A bound, >= or <=", "-: one of the two", "Problems without a number to any target are left out: 1 of 4."):
        assert sentence in told


def test_letters_are_read_on_every_colour():
    ratios = np.geomspace(1e-4, 1e4, 33)
    rows = [(f"p{i}", 1e-2, "pg", SPECIALISED, ratio, False) for i, ratio in enumerate(ratios)]
    axis = speed_ups.speed_ups(points_of(pd.DataFrame(rows, columns=COLUMNS))).axes[0]
    axis.figure.draw_without_rendering()
    for text, colour in zip(axis.texts, axis.collections[0].get_facecolors(), strict=True):
        shade = 1.0 if text.get_color() == "white" else float(text.get_color())
        assert abs(np.dot(colour[:3], (0.299, 0.587, 0.114)) - shade) > 0.4


def test_a_map_of_many_problems_is_cut_and_says_so():
    rows = [(f"p{i}", 1e-2, "pg", SPECIALISED, 2.0, False) for i in range(speed_ups.MOST_ROWS + 5)]
    points = points_of(pd.DataFrame(rows, columns=COLUMNS))
    assert len(speed_ups.speed_ups(points).axes[0].texts) == speed_ups.MOST_ROWS
    assert f"The first {speed_ups.MOST_ROWS} of {len(rows)} problems; the data have them all." in speed_ups.caption(points)
