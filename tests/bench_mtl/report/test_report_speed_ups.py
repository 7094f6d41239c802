"""What the heat map of speed-ups draws."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

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
        shades = sorted(speed_ups._relative_luminance(parts) + 0.05 for parts in (to_rgb(text.get_color()), colour[:3]))
        assert shades[1] / shades[0] > 4.0


def test_bounds_are_hatched_and_as_strong_as_measured_ratios():
    rows = [(f"p{i}", 1e-2, "pg", SPECIALISED, 40.0, bound) for i, bound in enumerate((False, True, True))]
    rows.append(("p3", 1e-2, "pg", SPECIALISED, 900.0, True))
    figure = speed_ups.speed_ups(points_of(pd.DataFrame(rows, columns=COLUMNS)))
    axis = figure.axes[0]
    figure.draw_without_rendering()
    measured, bound, *_ = axis.collections[0].get_facecolors()
    assert (measured == bound).all()
    assert [patch.get_xy() for patch in axis.patches] == [(0, 1), (0, 2), (0, 3)]
    assert all(patch.get_hatch() for patch in axis.patches)
    assert [to_hex(patch.get_edgecolor()) for patch in axis.patches] == ["#000000", "#000000", "#ffffff"], "dark, but on the darkest"
    assert [text.get_bbox_patch() is not None for text in axis.texts] == [False, True, True, True]


ASKS = """
import matplotlib, sys
import pandas as pd
before = dict(matplotlib.rcParams.copy())
from bench_mtl.report.figures import speed_ups, spread, style
rows = pd.DataFrame([("a", 1e-2, 12.0, "", "pg", "specialised")], columns=["problem", "target", "speed_up", "bound", "winner", "kind"])
style.files(speed_ups.speed_ups(rows), ["svg"])
points = pd.DataFrame({"group": "g", "target": 1e-2, "ratio": [1.0, 2.0, 3.0, 0.4], "drawn": True})
style.files(spread.spread(points), ["svg"])
from matplotlib import pyplot
assert "seaborn" in sys.modules
assert pyplot.get_fignums() == []
assert dict(matplotlib.rcParams.copy()) == before
assert matplotlib.rcParams._get("backend") is matplotlib.rcsetup._auto_backend_sentinel
"""


def test_seaborn_on_our_axes_looks_for_no_screen_and_changes_no_setting():
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    command = [sys.executable, "-W", "error", "-c", ASKS]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert found.returncode == 0, found.stderr


def test_a_command_that_draws_nothing_does_not_load_seaborn():
    code = "import sys; sys.argv = ['bench-mtl', '--version']\nfrom bench_mtl.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "assert not {'seaborn', 'matplotlib'} & set(sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr


def test_a_map_of_many_problems_is_cut_and_says_so():
    rows = [(f"p{i}", 1e-2, "pg", SPECIALISED, 2.0, False) for i in range(speed_ups.MOST_ROWS + 5)]
    points = points_of(pd.DataFrame(rows, columns=COLUMNS))
    assert len(speed_ups.speed_ups(points).axes[0].texts) == speed_ups.MOST_ROWS
    assert f"The first {speed_ups.MOST_ROWS} of {len(rows)} problems; the data have them all." in speed_ups.caption(points)
