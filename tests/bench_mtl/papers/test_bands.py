"""Bands of means: the numbers of the tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench_mtl.papers.bands import draw_means
from bench_mtl.papers.summaries import mean
from bench_mtl.report.figures import style


def test_line_and_band_are_the_means_and_intervals_of_the_tables() -> None:
    values = {10: [0.31, 0.42, 0.38, float("nan")], 20: [0.2, 0.25, 0.18, 0.3], 40: [0.1]}
    rows = pd.DataFrame([{"x": x, "y": y} for x, of in values.items() for y in of]).sample(frac=1.0, random_state=0)
    with style.styled():
        _, (axis,) = style.sheet("t", [2.0], 2.0)
        draw_means(axis, rows, "x", "y", {"color": "#112233", "marker": "s", "linestyle": "--", "markersize": 4.0, "linewidth": 1.2})
    found = {x: mean([value for value in of if value == value]) for x, of in values.items()}
    (line,) = axis.lines
    assert line.get_xdata().tolist() == [10.0, 20.0, 40.0]
    assert line.get_ydata() == pytest.approx([each.value for each in found.values()], rel=1e-12)
    assert (line.get_color(), line.get_marker(), line.get_linestyle()) == ("#112233", "s", "--")
    (band,) = axis.collections
    corners = np.unique(np.round(np.concatenate([path.vertices for path in band.get_paths()]), 12), axis=0)
    for x in (10, 20):
        ends = corners[corners[:, 0] == x, 1]
        assert [ends.min(), ends.max()] == pytest.approx([found[x].value - found[x].half, found[x].value + found[x].half], rel=1e-9)


def test_no_value_is_no_line_and_one_repetition_has_no_band() -> None:
    with style.styled():
        _, axes = style.sheet("t", [2.0, 2.0], 2.0)
        look = {"color": "k", "marker": "o"}
        draw_means(axes[0], pd.DataFrame({"x": [1], "y": [float("nan")]}), "x", "y", look)
        draw_means(axes[1], pd.DataFrame({"x": [1, 2], "y": [3.0, 4.0]}), "x", "y", look)
    assert not axes[0].lines
    assert axes[1].lines[0].get_ydata().tolist() == [3.0, 4.0]
