"""What problems measure: the table, the courses of runs, sparsity against accuracy, and what a report says of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.report import write_report
from bench_mtl.report.columns import format_measure
from bench_mtl.report.figures.gallery import gallery
from bench_mtl.report.registry import report_tables
from bench_mtl.report.render.files import report_files
from bench_mtl.report.tables.measures import NONZEROS, OBJECTIVE, quantities, quantity_of
from bench_mtl.report.tables.measures import trajectories as points_of
from bench_mtl.results.loading import read_results

ERROR = "held-out error"


def sample(seconds: float, passes: float, primal: float, nonzeros: float, error: float, asked: float | None = None, dual: float = 0.5):
    return (seconds, round(100 * passes), passes, primal, dual, asked, {NONZEROS: nonzeros, ERROR: error})


#: Its third point is worse than its second, which is the run's solution.
PG = {
    "solver": "pg",
    "samples": [sample(0.0, 1, 8.0, 0, 0.5), sample(0.2, 2, 1.0, 40, 0.2), sample(0.4, 3, 1.0, 90, 0.3, dual=1.0)],
}
ONLINE = {
    "solver": "online",
    "samples": [sample(0.001, 0.01, 4.0, 3, 0.4), sample(0.01, 0.1, 2.0, 30, 0.3), sample(0.1, 1.0, 1.5, 20, 0.25)],
}
SCS = {
    "solver": "scs", "family": "conic", "times": {"build": 0.5, "solve": 3.0}, "status": "timeout",
    "samples": [sample(1.0, 0, 1.2, 100, 0.21, 1e-2), sample(3.0, 0, 1.0, 100, 0.2, 1e-4)],
}  # fmt: skip
CRASHED = {"solver": "ecos", "status": "crashed", "reason": "signal 11"}


def slower(run: dict[str, Any], factor: float, seed: int, **more: Any) -> dict[str, Any]:
    return {**run, "seed": seed, "samples": [(factor * s, *rest) for s, *rest in run["samples"]], **more}


@pytest.fixture
def course_points(make_store):
    def made(*runs):
        results = read_results(make_store(*runs))
        return results, points_of(results.runs, results.samples, results.measures)

    return made


def table_of(folder: Path) -> pd.DataFrame:
    return report_tables(read_results(folder))["measures"].set_index(["solver", "measure"])


def test_the_table_has_the_solution_and_the_last_point(make_store):
    table = table_of(make_store(PG, SCS, CRASHED))
    assert list(table.index) == [("pg", ERROR), ("pg", NONZEROS), ("scs", ERROR), ("scs", NONZEROS)]
    pg, scs = table.loc[("pg", NONZEROS)], table.loc[("scs", ERROR)]
    assert (pg["runs"], pg["value"], pg["last"], pg["seconds"], pg["passes"]) == (1, 40, 90, 0.2, 2)
    assert (scs["value"], scs["last"], scs["seconds"], scs["kind"]) == (0.2, 0.2, 3.0, "generic")
    assert table[["value_low", "value_high", "last_low", "last_high"]].isna().all(axis=None), "one run has no spread"
    assert np.isnan(scs["passes"]), "a generic solver does not say"


def test_the_table_spreads_over_seeds_and_repetitions(make_store):
    fewer = {**PG, "seed": 2, "samples": [(*values, {NONZEROS: of[NONZEROS] / 2}) for *values, of in PG["samples"]]}
    table = table_of(make_store({**PG, "seed": 0}, slower(PG, 10.0, 1), fewer, {**CRASHED, "solver": "pg", "seed": 3}))
    nonzeros, error = table.loc[("pg", NONZEROS)], table.loc[("pg", ERROR)]
    assert (nonzeros["runs"], nonzeros["value"], nonzeros["value_low"], nonzeros["value_high"]) == (3, 40, 20, 40)
    assert (nonzeros["last_low"], nonzeros["last"], nonzeros["seconds"]) == (45, 90, 0.2)
    assert (error["runs"], error["value"], error["value_low"]) == (2, 0.2, 0.2)


def test_what_has_a_name_that_is_taken_is_told_apart(course_points):
    run = {"solver": "pg", "samples": [(0.1, 1, 1.0, 1.0, 0.5, None, {"seconds": 3.0, "objective": 7.0, "a, b": 1.0})]}
    results, points = course_points(run)
    assert quantities(points, results.measures) == [OBJECTIVE, "a, b", "objective (measured)", "seconds (measured)"]
    assert (points["seconds"].item(), points[quantity_of("seconds")].item(), points["objective"].item()) == (0.1, 3.0, 1.0)


def test_examples_are_passes_times_the_examples_of_the_problem(course_points):
    _, points = course_points(PG, ONLINE, SCS)
    assert points["examples"].tolist() == [7 * passes for passes in (1, 2, 3, 0.01, 0.1, 1.0, 0, 0)]


def test_a_report_shows_measures_and_one_without_says_nothing_of_them(make_store):
    folder = make_store(PG, ONLINE, SCS, CRASHED, {**PG, "problem": "ridge", "samples": [sample[:6] for sample in PG["samples"]]})
    write_report(folder, formats=["md", "html", "csv", "tex", "parquet", "svg"])
    report = (folder / "report.md").read_text()
    assert "## Measures" in report
    lasso, ridge = (report.split(f"\n### {name}\n")[1].split("\n##")[0] for name in ("lasso", "ridge"))
    for name in ("Objective", "Non-zeros", "Held-out error", "Sparsity against accuracy"):
        assert f"![{name} on lasso]" in lasso
    assert re.findall(r"!\[(.*?) on ridge\]", ridge) == ["Proven gap", "Objective"]
    links = re.findall(r"\]\((figures/[^)]*)\)", report)
    assert all((folder / link).stat().st_size for link in links)
    assert (folder / "tables" / "measures.tex").stat().st_size
    text = "\n".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".md", ".csv", ".tex", ".html"))
    assert not re.search(r"(?<![\w-])(nan|[+-]?inf|<na>|nat)\b", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL), re.IGNORECASE)
    plain = make_store({**PG, "samples": [sample[:6] for sample in PG["samples"]]}, folder="plain")
    assert "measures" not in report_tables(read_results(plain))
    assert {entry.kind for entry in gallery(read_results(plain), report_tables(read_results(plain)))} == {"seconds", "gap"}


@pytest.mark.slow  # as it is without measures, in test_report_write
def test_the_same_results_give_the_same_bytes(make_store):
    folder = make_store(PG, ONLINE, slower(SCS, 2.0, 1))
    results = [read_results(folder) for _ in range(2)]
    first, second = (report_files(one, report_tables(one)) for one in results)
    assert first == second
    assert {"tables/measures.csv", "figures/non-zeros-lasso.pdf", "figures/sparsity-against-accuracy-lasso.png"} <= set(first)


def test_whole_numbers_are_printed_whole():
    assert [format_measure(value) for value in (0.0, 123456.0, 0.07, 1 / 3, -2.0, 1e300)] == [
        "0",
        "123456",
        "0.07",
        "0.3333",
        "-2",
        "1e+300",
    ]


@pytest.mark.parametrize(
    "runs",
    [
        [{"solver": "pg", "samples": [(0.0, 0, 0.0, 1.0, 0.5, None, {NONZEROS: 0.0})]}],
        [{"solver": "scs", "family": "conic", "samples": [(0.0, 0, 0.0, 0.0, 0.0, 1e-3, {"a": -1.0})]}],
        [{"solver": "pg", "samples": [(0.1, 1, 1.0, 1e300, -1e300, None, {NONZEROS: 1e300, ERROR: 1e-300})]}, CRASHED],
        [{"solver": "pg", "samples": [(0.1, 1, 1.0, 2.0, 1.0, None), (0.2, 2, 2.0, 1.5, 1.0, None, {NONZEROS: 1.0})]}],
        [{"solver": "pg", "limit": None, "status": "timeout", "samples": [(0.0, 1, 0.001, -2.0, -3.0, None, {"a": 0.0})]}],
    ],
    ids=["at once", "generic", "huge", "half measured", "no limit"],
)
def test_odd_measures_have_a_report(make_store, runs):
    folder = make_store(*runs, *({**run, "seed": 1} for run in runs))
    write_report(folder, formats=["md", "html", "csv", "tex", "parquet", "svg"])
    report = (folder / "report.md").read_text()
    assert "![Objective on lasso]" in report
    assert not re.search(r"(?<![\w-])(nan|none|[+-]?inf|<na>|nat)\b", report, flags=re.IGNORECASE)
