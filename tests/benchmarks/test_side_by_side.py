"""What is said of solvers side by side follows from their seconds."""

import math
from pathlib import Path

import pytest

from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from benchmarks.side_by_side import Contest, lines, summaries

CONTESTS = [
    Contest("a", 1e-4, {"auto": 2.0, "pdhg": 1.0, "celer": 4.0, "admm": math.inf}),
    Contest("b", 1e-4, {"auto": 3.0, "pdhg": math.inf, "celer": 1.5}),
]


def test_ratios_are_over_the_fastest_of_the_others() -> None:
    assert [CONTESTS[0].ratio(name) for name in ("auto", "pdhg", "celer", "admm")] == [2.0, 0.5, 4.0, math.inf]
    assert [one.lead({"celer"}) for one in CONTESTS] == [4.0, 0.5]
    assert math.isnan(CONTESTS[0].lead({"spams"}))
    assert [line[2:] for line in lines(CONTESTS[:1])] == [
        ["pdhg", "1", "0.50"],
        ["auto", "2", "2.00"],
        ["celer", "4", "4.00"],
        ["admm", "not reached", "inf"],
    ]


def test_summaries_are_of_contests_that_both_sides_finish() -> None:
    assert list(summaries(CONTESTS, (1e-4, 1e-6), {"celer"})) == [
        "auto over the best of ours: median 2.00, largest 2.00, of 1 contest",
        "to 0.0001: fastest peer over ours: geometric mean 1.41 of 2 that both reach, ours first in 1 of 2",
    ]


@pytest.mark.parametrize("name", ["auto", "wait"])
def test_suites_that_are_run_side_by_side_have_cases(name: str) -> None:
    assert expand(read_suite(str(Path(__file__).parents[2] / "benchmarks" / f"{name}.toml")), load_registry())
