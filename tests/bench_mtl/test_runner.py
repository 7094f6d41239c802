"""Cases in a worker process: hard limits, crashes, resume; every one ends as a row."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

from bench_mtl.registry import Registry
from bench_mtl.runner import run_cases
from bench_mtl.store import Outcome, Store
from bench_mtl.suite import Case, Suite, expand
from bench_mtl.suite_file import parse_suite

SUITE = """
name = "faults"
targets = [1e-2]
limits = {{ seconds = 6.0, memory_gib = 0.45 }}

[[problems]]
name = "l1inf_hinge"
label = "tiny"
data = {{ name = "synthetic_l1inf", tasks = 2, features = 5, examples = 6 }}
parameters = {{ radius = 1.0 }}

{solvers}
"""


def suite_of(*solvers: str) -> Suite:
    text = SUITE.format(solvers="\n".join(f"[[solvers]]\n{solver}" for solver in solvers))
    return parse_suite(tomllib.loads(text), text)


def test_every_fault_ends_as_a_row_and_the_suite_goes_on(tmp_path: Path, plugins: Path, faults: Registry) -> None:
    kinds = ["raises", "aborts", "sleeps", "allocates", "nan", "writes"]
    suite = suite_of(f'name = "faulty"\ngrid = {{ fault = {kinds} }}', 'name = "conic"', 'name = "accelerated_gradient"')
    taken: dict[str, float] = {}
    began = time.monotonic()

    def note(case: Case, outcome: Outcome) -> None:
        nonlocal began
        taken[case.solver_label] = time.monotonic() - began
        began = time.monotonic()

    with Store.create(tmp_path, suite) as store:
        run_cases(expand(suite, faults), store, plugins=plugins, on_outcome=note)
        runs = store.runs().set_index("solver_label")
        samples = store.samples().groupby("run_id").size()
    assert runs["status"].to_dict() == {
        "faulty_raises": "error", "faulty_aborts": "crashed", "faulty_sleeps": "timeout", "faulty_allocates": "memory",
        "faulty_nan": "error", "faulty_writes": "error", "clarabel": "verified", "accelerated_gradient": "skipped",
    }  # fmt: skip
    # What a solver had yielded before it was killed is kept.
    assert (samples.reindex(runs.loc[[f"faulty_{kind}" for kind in kinds], "id"]) >= 3).all()
    assert "signal 6" in runs.loc["faulty_aborts", "reason"]
    assert runs.loc["faulty_sleeps", "solve_seconds"] <= 6.0
    assert runs.loc["faulty_allocates", "peak_memory_mib"] > 450
    # A worker starts in a few seconds; the sleeper alone would take a minute.
    assert taken["faulty_sleeps"] < 25


def test_a_finished_suite_is_not_run_again_and_rows_equal(tmp_path: Path, faults: Registry) -> None:
    suite = suite_of('name = "conic"', 'name = "projected_subgradient"')
    cases = expand(suite, faults)
    with Store.create(tmp_path, suite) as store:
        run_cases(cases[:1], store)
        before = store.runs()
        run_cases(cases, store)
        after = store.runs()
        started: list[Case] = []
        run_cases(cases, store, on_start=started.append)
    assert not started
    assert after.iloc[:1].equals(before)
    assert len(after) == 2
    assert set(after["status"]) == {"verified"}


def test_a_problem_that_cannot_be_built_is_a_row(tmp_path: Path, faults: Registry) -> None:
    suite = suite_of('name = "conic"')
    text = suite.text.replace("radius = 1.0", "radius = -1.0")
    bad = parse_suite(tomllib.loads(text), text)
    with Store.create(tmp_path, bad) as store:
        run_cases(expand(bad, faults), store)
        row = store.runs().iloc[0]
    assert row["status"] == "error"
    assert "radius must be finite and at least 0" in row["reason"]
