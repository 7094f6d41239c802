"""Means over repetitions, families, and figures of what there is; what tables show is that of the published reports."""

import math

import numpy as np
import pandas as pd
import pytest

from bench_mtl.report.figures import figure_files
from bench_mtl.runner import Found
from papers.experiment import Experiment, Read, Scale
from papers.figures import Dots, Lines, Matrices
from papers.published import Claim
from papers.tables import Table
from papers.values import Mean, by_seed, mean, per_model, with_families

CELLS = pd.DataFrame(
    [
        {"size": size, "seed": seed, "a_error": 1.0 / size + 0.01 * seed, "b_error": 2.0 / size, "a_time": float(size)}
        for size in (10, 20)
        for seed in (0, 1)
    ]
)
CLAIM = Claim("", "table 1", "error", "within", "a", at="size=10", margin="1", published="0.2")
TOY = Experiment(
    "toy", "Toy", "Somebody 2001", "", {"small": Scale((), "")}, lambda settings, folder: Found({}, "verified", ""),
    lambda rows: per_model(rows, ("size",), ("a", "b"), {"error": "error", "time": "time"}), [CLAIM], subjects=("b", "a"),
)  # fmt: skip
READ = Read(TOY, CELLS, TOY.values(CELLS), ())


def test_means_have_intervals_over_the_repetitions_which_have_one_value_each() -> None:
    assert mean({0: 1.0, 1: 3.0}) == Mean(2.0, pytest.approx(12.706, abs=1e-3), 2, pytest.approx(math.sqrt(2.0)))
    assert mean({0: 1.0, 1: math.nan}).text() == "1.0000"
    assert mean({None: 1.0}).half == 0.0
    assert mean({}).text() == "-"
    with pytest.raises(ValueError, match="say which in 'size', 'model'"):
        by_seed(READ.values[READ.values["measure"] == "error"])


def test_families_are_means_of_members_that_are_all_there() -> None:
    families = with_families(READ.values, {"both": ("a", "b")})
    added = families[families["model"] == "both"]
    assert set(added["measure"]) == {"error"}
    np.testing.assert_allclose(added.loc[added["size"] == "10", "value"], [0.15, 0.155])


def test_figures_and_tables_are_of_what_there_is() -> None:
    signed = np.array([[1.0, -1.0], [0.0, 2.0]])
    dots = Dots("Errors", "error", "size", "model", published=True)
    made = [
        Lines("Errors", ("error", "time"), "size", "model"),
        Lines("Errors", ("error",), "size", "model", panel="model", log="xy"),
        dots,
        Matrices("Pictures", lambda read: [("one", signed), ("two", np.zeros((2, 2)))], signed=True, lines=(1.0, None)),
    ]
    for figure in made:
        assert figure_files(figure(READ).draw(), ["svg"])["svg"].startswith(b"<?xml")
    points = dots(READ).digits.set_index(["size", "model"])["published"]
    assert points["10", "a"] == 0.2
    assert Table("Nothing", ("none",), ("size",))(READ) is Lines("Nothing", ("none",), "size", "model")(READ) is None
    assert Matrices("Nothing", lambda read: [])(READ) is None
