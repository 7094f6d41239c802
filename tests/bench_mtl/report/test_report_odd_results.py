"""Results that are hardly there, or odd: every one has a report, in words where there is nothing to draw."""

import math
import re
import time

import numpy as np
import pytest
from hand_reports import GOOD, descent, ladder
from test_oracle import differences

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Ending
from bench_mtl.report import View, write_report


def at_once(label, *, gap=0.0, **more):
    """A run with one sample, at a time that `numpy.geomspace(t, t, n)` rounds down."""
    return {"solver": label, "samples": [(ROUNDED_DOWN, 0, ROUNDED_DOWN, 1.0, 1.0 - gap, None, {"nonzeros": 2.0})], **more}


#: A third of all floats are such, on each processor others.
ROUNDED_DOWN = next(at for at in np.linspace(1e-4, 2e-4, 100).tolist() if np.geomspace(at, at, 300)[1:-1].max() < at)

FAILURES = [{"solver": "pg", "status": "crashed", "reason": "signal 11"}, {"solver": "scs", "family": "conic", "status": "error"}]
NEVER_SCS = [descent("pg"), FAILURES[1]]
SKIPPED = {"solver": "ag", "status": "skipped", "reason": "does not fit"}

ODD = {
    "only failures": FAILURES,
    "verified at once": [at_once("pg", repetition=i) for i in range(3)] + [ladder("scs", GOOD[3:], repetition=i) for i in range(3)],
    "no sample": [{"solver": "pg", "status": "timeout", "repetition": i} for i in range(3)],
    "killed after a sample": [at_once("pg", gap=0.5, status="memory", seed=i) for i in range(12)],
    "one generic solver": [ladder("scs")],
    "never at a target": [descent("pg", (0.9, 0.8, 0.5), status="timeout"), ladder("scs", (0.7, 0.5), status="timeout")],
    "one side never at a target": [descent("pg"), ladder("scs", (0.7, 0.5), status="timeout"), SKIPPED],
    "gaps of exactly zero": [descent("pg", (0.0, 0.0)), ladder("scs", (0.0,))],
    "times of zero": [descent("pg", seconds=0.0), descent("ag", seconds=0.0), ladder("scs")],
    "attempts of zero": [
        *(ladder("scs", seconds=0.0, repetition=i, rungs=[(1e-3, 0.0, Ending.ANSWERED)]) for i in range(2)), descent("pg"),
        {"solver": "ecos", "family": "conic", "status": "timeout", "rungs": [(1e-3, 0.0, Ending.NO_ANSWER)], "times": {}},
        {**ladder("osqp", (0.5,), seconds=0.0), "status": "inaccurate"}, descent("ag", (0.9,), seconds=0.0, status="inaccurate"),
    ],
    "an optimum of zero": [{"solver": "pg", "samples": [(0.1, 1, 1.0, 0.0, 0.0, None)]}],
    "an optimum near zero": [
        {"solver": "scs", "family": "conic", "samples": [(0.1 * i, i, 0.0, 10.0**-i, 0.0, 10.0**-i) for i in range(1, 8)]}, descent("pg"),
    ],
    "infinite bounds": [{"solver": "pg", "status": "inaccurate", "samples": [(0.1, 1, 1.0, 1e300, -1e300, None)]}, ladder("scs")],
    "no bound from below": [{"solver": "pg", "status": "timeout", "samples": [(0.1, 1, 1.0, 2.0, -math.inf, None)]}],
    "one bound from below": [{"solver": "pg", "status": "timeout", "samples": [(0.1, 1, 1.0, 2.0, -math.inf, None)]}, ladder("scs")],
    "some seeds fail": [
        descent("pg", GOOD if seed else (0.9, 0.8), status="verified" if seed else "timeout", seed=seed) for seed in range(4)
    ] + [ladder("scs", seed=seed) for seed in range(4)] + [{**FAILURES[0], "seed": 9}],
    "a sweep from nothing": [
        {**run, "problem": f"n={n}", "radius": 1.0, "data": {"name": "synthetic", "n": n}}
        for n in (0, 1, 10, 20) for run in (descent("pg", seconds=0.1 * (n + 1)), FAILURES[1])
    ],
    "measures of a generic solver": [ladder("scs", (0.0,)) | {"samples": [(0.0, 0, 0.0, 0.0, 0.0, 1e-3, {"a": -1.0})]}],
    "huge measures": [{"solver": "pg", "samples": [(0.1, 1, 1.0, 1e300, -1e300, None, {"non-zeros": 1e300, "error": 1e-300})]}],
    "half measured": [{"solver": "pg", "samples": [(0.1, 1, 1.0, 2.0, 1.0, None), (0.2, 2, 2.0, 1.5, 1.0, None, {"non-zeros": 1.0})]}],
    "a measure without a limit": [at_once("pg", gap=0.5, limit=None, status="timeout"), descent("ag")],
}  # fmt: skip

#: Those with empty tables or columns, for a format that has types.
PARQUET = ("only failures", "no sample")
#: Those that leave out something of the whole report, have problems of their own, or numbers so large that what stands beside them is
#: nothing. Of the others the reports of each alone are slow.
ALONE = (*PARQUET, "one generic solver", "verified at once", "a sweep from nothing", "huge measures", "infinite bounds")


def check(folder):
    report = (folder / "report.md").read_text()
    text = "\n".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".md", ".csv", ".tex"))
    assert not re.search(r"(?<![\w-])(nan|none|[+-]?inf|<na>|nat)\b", text, flags=re.IGNORECASE)
    assert not re.search(r">(nan|none|inf|<na>|nat)<", (folder / "report.html").read_text(), flags=re.IGNORECASE)
    links = re.findall(r"\]\((figures/[^)]*)\)", report)
    assert all((folder / link).stat().st_size for link in links)
    for section in re.split(r"^## ", report, flags=re.MULTILINE)[1:]:
        assert section.partition("\n")[2].strip(), "no heading without words"
    return report


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in ALONE else pytest.mark.slow) for name in ODD])
def test_odd_results_have_a_report(make_store, name):
    require_report(make_store(*ODD[name]), ODD[name], is_typed=name in PARQUET)


def test_all_odd_results_together_have_one_too(make_store):
    """Each in a problem of its own."""
    runs = [{**run, "problem": name} for name in ODD if name not in ALONE for run in ODD[name]]
    require_report(make_store(*runs), runs)


def require_report(folder, runs, *, is_typed=False):
    write_report(folder, formats=["md", "html", "csv", "tex", "svg", *(["parquet"] if is_typed else [])])
    report = check(folder)
    assert differences(folder) == []
    for about in dict.fromkeys(run.get("problem", "lasso") for run in runs):
        assert f"\n### {about}\n" in report


def test_a_report_against_a_solver_that_never_gets_there(make_store):
    folder = make_store(*ODD["one side never at a target"])
    for baseline in ("pg", "scs", "ag"):
        write_report(folder, view=View(baseline=baseline), formats=["md", "html", "csv", "tex"])
        check(folder)


def test_a_gap_below_zero_from_rounding_is_drawn(make_store, rewritten):
    folder = make_store(descent("pg"), ladder("scs"))
    rewritten(folder, "UPDATE sample SET relative_gap = -2e-17 WHERE number = 2")
    write_report(folder, formats=["md", "html", "svg"])
    assert "![Proven gap on lasso](" in check(folder)


def test_infinite_numbers_that_others_wrote_prove_nothing(make_store, rewritten):
    """Of every column in a problem of its own: in one sample, in all of a run, and in a run."""
    columns = ("seconds", "passes", "primal", "dual", "relative_gap", "infeasibility")
    runs = (*NEVER_SCS, ladder("ecos"), {**descent("pg"), "repetition": 1})
    folder = make_store(*({**run, "problem": column} for column in columns for run in runs))
    for place, column in enumerate(columns):
        first, last = 4 * place + 1, 4 * place + 4
        rewritten(
            folder,
            f"UPDATE sample SET {column} = 9e999 WHERE (number = 2 AND run_id BETWEEN {first} AND {last}) OR run_id = {last}",
            f"UPDATE run SET {column.replace('seconds', 'wall_seconds')} = -9e999 WHERE id = {first}",
        )
    write_report(folder, formats=["md", "html", "csv"])
    check(folder)


def test_runs_for_curves_alone_are_no_results_yet(make_store, rewritten):
    folder = make_store(descent("pg"))
    rewritten(folder, "UPDATE run SET clock = 'traced'")
    with pytest.raises(InputError, match="no timed run"):
        write_report(folder)


def test_labels_of_megabytes_are_cut_and_stay_different(make_store):
    label = "a|label*with <odd> `letters` " * 150_000
    folder = make_store(descent(label, problem=label), ladder(f"{label}too", problem=label), descent("pg"))
    start = time.process_time()  # without waiting for a processor
    write_report(folder, formats=["md", "html", "svg", "csv"])
    assert time.process_time() - start < 60.0, "minutes to lay out megabytes of letters"
    report = check(folder)
    assert all(f"... ({place}) " in report for place in (1, 2)), "both solvers"
    assert max(path.stat().st_size for path in folder.rglob("*.*") if path.suffix in (".md", ".html", ".svg", ".csv")) < 2_000_000
