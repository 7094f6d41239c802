"""Results that are hardly there, or odd: every one has a report, in words where there is nothing to draw."""

from __future__ import annotations

import re
import sqlite3

import pytest

from bench_mtl.report import View, write_report
from bench_mtl.results import FILE_NAME


def iterative(label, gaps, *, seconds=0.1, **more):
    samples = [(seconds * i, i, float(i), 1.0, 1.0 - gap, None) for i, gap in enumerate(gaps)]
    return {"solver": label, "samples": samples, **more}


def generic(label, gaps, **more):
    samples = [(1.0 + i, 10, 0.0, 1.0, 1.0 - gap, 10.0 ** -(2 + i)) for i, gap in enumerate(gaps)]
    return {"solver": label, "family": "conic", "times": {"build": 0.5, "solve": 1.0}, "samples": samples, **more}


GOOD = (0.5, 1e-3, 1e-7)
FAILURES = [{"solver": "pg", "status": "crashed", "reason": "signal 11"}, {"solver": "scs", "family": "conic", "status": "error"}]
NEVER_SCS = [iterative("pg", GOOD), FAILURES[1]]
SKIPPED = {"solver": "ag", "status": "skipped", "reason": "does not fit"}

ODD = {
    "only failures": FAILURES,
    "only skipped": [SKIPPED],
    "one solver, one instance": [iterative("pg", GOOD)],
    "one generic solver": [generic("scs", GOOD)],
    "never at a target": [iterative("pg", (0.9, 0.8, 0.5), status="timeout"), generic("scs", (0.7, 0.5), status="timeout")],
    "one side never at a target": [iterative("pg", GOOD), generic("scs", (0.7, 0.5), status="timeout"), SKIPPED],
    "gaps of exactly zero": [iterative("pg", (0.0, 0.0)), generic("scs", (0.0,))],
    "times of zero": [iterative("pg", GOOD, seconds=0.0), iterative("ag", GOOD, seconds=0.0), generic("scs", GOOD)],
    "no limit": [iterative("pg", GOOD, limit=None), generic("scs", (0.5,), limit=None, status="inaccurate")],
    "an optimum of zero": [{"solver": "pg", "samples": [(0.1, 1, 1.0, 0.0, 0.0, None)]}],
    "infinite bounds": [{"solver": "pg", "status": "inaccurate", "samples": [(0.1, 1, 1.0, 1e300, -1e300, None)]}, generic("scs", GOOD)],
    "equal times": [iterative(label, GOOD, seed=seed) for label in ("pg", "ag") for seed in range(3)],
    "some seeds fail": [
        iterative("pg", GOOD if seed else (0.9, 0.8), status="verified" if seed else "timeout", seed=seed) for seed in range(4)
    ] + [generic("scs", GOOD, seed=seed) for seed in range(4)] + [{**FAILURES[0], "seed": 9}],
    "repetitions": [{**run, "repetition": i} for i in range(3) for run in (iterative("pg", GOOD), generic("scs", GOOD))],
    "a sweep": [
        {**run, "problem": f"n={n}", "data": {"name": "synthetic", "n": n}} for n in (1, 10, 100) for run in NEVER_SCS
    ],
    "a sweep from nothing": [
        {**run, "problem": f"n={n}", "data": {"name": "synthetic", "n": n}} for n in (0, 1, 10, 20) for run in NEVER_SCS
    ],
}  # fmt: skip

#: Of two that are odd in the same way, the other is looked at every time.
SLOW = ("only skipped", "one solver, one instance", "no limit", "equal times", "repetitions", "a sweep", "some seeds fail")


def check(folder):
    report = (folder / "report.md").read_text()
    text = "\n".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".md", ".csv", ".tex"))
    assert not re.search(r"(?<![\w-])(nan|none|[+-]?inf|<na>|nat)\b", text, flags=re.IGNORECASE)
    links = re.findall(r"\]\((figures/[^)]*)\)", report)
    assert all((folder / link).stat().st_size for link in links)
    for section in re.split(r"^## ", report, flags=re.MULTILINE)[1:]:
        assert section.partition("\n")[2].strip(), "no heading without words"
    return report


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ODD])
def test_odd_results_have_a_report(make_store, name):
    folder = make_store(*ODD[name])
    write_report(folder, formats=["md", "html", "csv", "tex", "parquet", "svg"])
    report = check(folder)
    assert "## What it says" in report
    for about in dict.fromkeys(run.get("problem", "lasso") for run in ODD[name]):
        section = report.split(f"\n## {about}\n")[1].split("\n## ")[0]
        assert ("![" in section) != ("so there is no figure" in section), "a picture or a sentence"


def test_a_report_against_a_solver_that_never_gets_there(make_store):
    folder = make_store(*ODD["one side never at a target"])
    for baseline in ("pg", "scs", "ag"):
        write_report(folder, view=View(baseline=baseline), formats=["md", "html", "csv", "tex"])
        check(folder)


def test_a_gap_below_zero_from_rounding_is_drawn_as_zero(make_store):
    folder = make_store(iterative("pg", GOOD), generic("scs", GOOD))
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("UPDATE sample SET relative_gap = -2e-17 WHERE number = 2")
    connection.close()
    write_report(folder, formats=["md", "html", "svg"])
    assert "zero among them, are drawn there" in check(folder)
