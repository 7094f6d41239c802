"""What the pictures of solutions show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bench_mtl.report.figures import pattern_images as patterns
from bench_mtl.results import Pattern

COLUMNS = ["id", "instance_key", "solver_label", "status", "relative_gap"]

RUNS = pd.DataFrame(
    [
        (1, "i", "pg", "verified", 1e-7),
        (2, "i", "pg", "verified", 1e-9),
        (3, "i", "scs", "verified", 1e-8),
        (4, "i", "ecos", "inaccurate", 1e-3),
        (5, "j", "pg", "verified", 0.0),
        (6, "i", "ag", "verified", 1e-8),
    ],
    columns=COLUMNS,
)


def two_rows(run_id, part="W", rank=2):
    mask = np.zeros((5, 4), bool)
    mask[[1, 3]] = True
    mask[3, 2] = False
    return Pattern(run_id, part, mask, nonzeros=9, rank=rank)


KEPT = {run: [two_rows(run, "P"), Pattern(run, "Q", np.zeros((5, 4), bool), 0, None)] for run in (1, 2, 3, 4, 5)}


def test_the_best_verified_runs_of_one_instance_are_shown_and_the_leading_first():
    shown = patterns.solutions(RUNS, KEPT, ["scs"])
    assert [(one.solver, one.run_id) for one in shown] == [("scs", 3), ("pg", 2)]
    assert not patterns.solutions(RUNS, {4: KEPT[4]}, [])
    assert not patterns.solutions(RUNS, {}, [])


def test_the_data_are_the_rows_that_are_not_zero():
    points = patterns.pattern_points(patterns.solutions(RUNS, KEPT, []))
    first = points[points["solver"] == "pg"]
    assert list(first["part"]) == ["P", "P", "Q"]
    assert list(first["first_row"].fillna(-1)) == list(first["last_row"].fillna(-1)) == [1, 3, -1]
    assert list(first["where"]) == ["0-3", "0-1 3", ""]
    assert list(first["rank"].fillna(-1)) == [2, 2, -1]
    assert list(first["nonzeros"]) == [9, 9, 0]


def test_a_picture_for_each_solver_with_its_parts_below_one_another():
    shown = patterns.solutions(RUNS, KEPT, [])
    figure = patterns.patterns(shown, "the problem")
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["pg", "scs"]
    for axis in figure.axes:
        above, below = axis.images
        assert (np.asarray(above.get_array())[..., 0] == 0).sum() == 7
        assert (np.asarray(below.get_array()) == 255).all()
        assert axis.get_xlabel() == "P: 2 of 5 rows\n9 non-zeros, rank 2\nQ: 0 of 5 rows\n0 non-zeros"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["P", "Q"]
    assert "gaps up to 1.0e-08." in patterns.caption(shown)


def test_at_most_six_are_drawn_and_the_others_named():
    runs = pd.DataFrame([(i, "i", f"solver {i}", "verified", 1e-8) for i in range(8)], columns=COLUMNS)
    shown = patterns.solutions(runs, {i: [two_rows(i)] for i in range(8)}, [])
    assert len(patterns.patterns(shown, "p").axes) == patterns.MOST_SOLVERS
    assert "Not drawn, but in the data: solver 6, solver 7." in patterns.caption(shown)
    assert patterns.pattern_points(shown)["solver"].nunique() == 8


def test_a_large_matrix_keeps_every_entry_in_its_block():
    mask = np.zeros((1001, 701), bool)
    mask[[0, 500, 1000], [700, 350, 0]] = True
    small = patterns.pooled(mask)
    assert small.shape == (360, 180)
    assert np.argwhere(small).tolist() == [[0, 179], [180, 90], [359, 0]]
    shown = patterns.solutions(RUNS, {2: [Pattern(2, "W", mask, 3, None)]}, [])
    assert "drawn in blocks" in patterns.caption(shown)
    assert patterns.pooled(np.zeros((3, 0), bool)).shape == (3, 0)


def test_rows_that_are_alike_are_told_together():
    mask = np.zeros((6, 3), bool)
    mask[1:4] = True
    mask[4, 0] = True
    (one,) = patterns.solutions(
        RUNS.head(1), {int(RUNS["id"].iloc[0]): [Pattern(int(RUNS["id"].iloc[0]), "W", mask, nonzeros=10, rank=2)]}, []
    )
    points = patterns.pattern_points([one])
    assert points[["first_row", "last_row", "where"]].to_numpy().tolist() == [[1, 3, "0-2"], [4, 4, "0"]]
