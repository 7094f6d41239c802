"""Sentences of reports: what solvers say of their runs, who is fastest on how many problems, and who does not fit."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hand_reports import iterative, run_of

from bench_mtl.report.registry import report_tables
from bench_mtl.report.tables.summary import skipped
from bench_mtl.report.words import disturbed, headlines, solver_notes
from bench_mtl.report.write import write_report
from bench_mtl.results.loading import read_results


@pytest.mark.parametrize(
    ("note", "line"),
    [("picked | pdhg", r"- auto says: picked \| pdhg"), (["a", 1], "- auto says: \\['a', 1\\]"),
     (5, "- auto says: 5"), (None, ""), ("", "")],
)  # fmt: skip
def test_a_note_of_any_kind_is_text_and_stands_once(note: object, line: str) -> None:
    runs = pd.DataFrame({"solver_label": ["auto", "auto"], "info": [json.dumps({"note": note})] * 2})
    assert solver_notes(runs) == line


def test_times_within_a_tenth_are_no_win_and_no_ratio_is_never_equal() -> None:
    rows = [("specialised", 1.09), ("generic", 1.05), ("specialised", None), ("specialised", 1.11)]
    winners = pd.DataFrame(rows, columns=["kind", "ratio"]).assign(winner="a", target=1e-4, walkover=False)
    sentence = "a specialised solver is fastest on 2 of 4 problems and times are about equal on 2."
    assert headlines(winners) == [f"To a proven relative gap of 1e-4, {sentence}"]


def test_winners_come_first_and_below_them_how_many_runs_were_disturbed(make_store: Callable[..., Path]) -> None:
    used = "other programs used {} of 2 processors"
    folder = make_store(
        run_of("lasso", "pg", iterative(1.0), disturbances=[used.format(1.2), "the system swapped 12 pages"]),
        run_of("lasso", "scs", iterative(1.0), disturbances=[used.format(0.3)]),
        run_of("lasso", "cg", iterative(1.0)),
        run_of("lasso", "ecos", [], "skipped"),
    )
    runs = read_results(folder).runs
    sentence = disturbed(runs)
    assert sentence.startswith("**2 of 3 runs, of pg and scs, were disturbed**,")
    assert f"{used.format(1.2)} (in 2); the system swapped 12 pages (in 1)" in sentence
    write_report(folder, formats=["md"])
    head, _, _ = (folder / "report.md").read_text().partition("\n## What was run")
    assert head.index("| Winner to 1e-6") < head.index(f"> {sentence}")
    assert head.count("\n## ") == 1
    assert disturbed(runs[runs["solver_label"] == "cg"]) == ""


def test_pairs_that_do_not_fit_are_a_line_a_reason(make_store: Callable[..., Path]) -> None:
    rows = [("pg", "pg needs smooth"), ("ag rule=short", "ag needs smooth"), ("ecos", "ECOS does not support the cones")]
    skips = [run_of(problem, solver, [], "skipped", reason=why) for problem in ("lasso", "ridge") for solver, why in rows]
    folder = make_store(run_of("lasso", "cg", iterative(1.0)), *skips)
    table = skipped(report_tables(read_results(folder), ["not_verified"])["not_verified"])
    assert table.to_dict("records") == [
        {"reason": "needs smooth", "solvers": "pg; ag rule=short", "runs": 4, "problems": "lasso; ridge"},
        {"reason": "ECOS does not support the cones", "solvers": "ecos", "runs": 2, "problems": "lasso; ridge"},
    ]
    write_report(folder, formats=["md"])
    text = (folder / "report.md").read_text()
    assert "### Not verified" not in text
    assert text.count("needs smooth") == 1
