"""What a store keeps, lists and refuses."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hand_made import MACHINE, ROOT, case, content, fill, numbers, outcome, results_bytes, suite

from bench_mtl import InputError, Status
from bench_mtl.results import FILE_NAME, REPORT_NAMES, Store, plan_suite
from bench_mtl.results.frames import times_to_gap
from bench_mtl.results.loading import read_results


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    first, last = outcome(2).record.samples
    samples = [first, replace(last, seconds=np.float32(0.5), step=np.int64(7))]  # type: ignore[arg-type]
    ended = {1: outcome(samples, reason="bytes \udcff, NUL \0, and ü"), 0: outcome(0, Status.SKIPPED)}
    fill(tmp_path, ended, plan=[case(0), case(1)])
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    before = content(tmp_path)
    with Store.open(tmp_path) as store:
        runs, stored = store.runs(), store.samples()
        assert store.environments() == [{"id": 1, "started": store.environments()[0]["started"], **MACHINE}]
        assert store.statuses() == [Status.SKIPPED, Status.VERIFIED]
        assert store.durations() == [("lasso", "pg", 2.0)] * 2
    assert content(tmp_path) == before
    assert list(zip(runs["id"], runs["status"], runs["reason"], strict=True)) == [
        (2, "skipped", "as it is"), (1, "verified", "bytes \\udcff, NUL \0, and ü")
    ]  # fmt: skip
    columns = ["run_id", "number", "seconds", "iteration", "primal"]
    assert stored[columns].to_numpy().tolist() == [[1, 0, 0.0, 0, 1.0], [1, 1, 0.5, 7, 1.0]]
    assert {str(kind) for kind in stored.dtypes} == {"int64", "float64"}, "asked_tolerance too, of which there is none"


def test_results_are_read_while_a_run_writes(tmp_path: Path) -> None:
    with Store.create(tmp_path, suite()) as store, Store.open(tmp_path) as reader:
        environment = store.add_environment(MACHINE)
        store.add(case(0), outcome(), environment)
        assert len(reader.runs()) == 1
        with reader.snapshot():
            assert len(reader.runs()) == 1
            store.add(case(1), outcome(), environment)
            assert (len(reader.runs()), len(reader.samples())) == (1, 3)
        assert len(reader.runs()) == 2


def test_a_plan_says_what_is_listed_and_what_is_to_be_run(tmp_path: Path) -> None:
    fill(tmp_path, [0, 1, 2])
    with Store.create(tmp_path, suite()) as store:
        assert store.plan([case(3), case(2, "other", "label"), case(1)]) == [case(3)]
        assert store.meta()["cases"] == "3"
        assert list(store.runs()["problem_label"]) == ["other", "lasso"]
        assert list(store.runs()["solver_label"]) == ["label", "pg"]
        assert store.finished() == {case(number).key for number in (0, 1, 2)}
    assert numbers(tmp_path) == [2, 1]
    with Store.create(tmp_path, suite()) as store:
        assert store.plan([case(0), case(1), case(2)]) == []
    assert numbers(tmp_path) == [0, 1, 2]


def test_a_plan_is_made_without_writing_and_applied_as_it_was_made(tmp_path: Path) -> None:
    cases = [case(0), case(1), case(2, "other")]
    assert plan_suite(tmp_path / "new", suite(), cases).waiting == cases
    assert not (tmp_path / "new").exists()
    before = results_bytes(fill(tmp_path, [0, 2]))
    plan = plan_suite(tmp_path, suite(), cases)
    assert (plan.waiting, plan.has_changes) == ([case(1)], True)
    assert results_bytes(tmp_path) == before
    with Store.create(tmp_path, suite()) as store:
        assert store.apply(plan) == [case(1)]
        store.add(case(1), outcome(), store.add_environment(dict(reversed(MACHINE.items()))))
        assert [environment["id"] for environment in store.environments()] == [1]
    plan = plan_suite(tmp_path, suite(), cases)
    assert (plan.waiting, plan.has_changes) == ([], False)
    assert plan_suite(tmp_path, suite(text="other"), cases).has_changes


def test_rows_that_another_run_has_written_since_a_plan_was_made_count(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    cases = [case(0), case(1), case(2)]
    plan, forced = plan_suite(tmp_path, suite(), cases), plan_suite(tmp_path, suite(), cases, force=True)
    fill(tmp_path, [1], plan=[case(1), case(0)])
    with Store.create(tmp_path, suite()) as store:
        assert store.apply(plan) == [case(2)]
        assert len(store.runs()) == 2
        assert store.apply(forced) == cases
        assert len(store.runs()) == 0


@pytest.mark.parametrize(
    ("options", "again"), [({}, [3]), ({"retry_failed": True}, [1, 2, 3]), ({"force": True}, [0, 1, 2, 3])], ids=["none", "failed", "force"]
)
def test_runs_that_are_made_again_supersede_and_nothing_is_lost(tmp_path: Path, options: dict[str, bool], again: list[int]) -> None:
    made = {0: outcome(), 1: outcome(status=Status.CRASHED), 2: outcome(status=Status.WRONG), 9: outcome(status=Status.ERROR)}
    plan = [case(number) for number in range(4)]
    fill(tmp_path, made)
    with Store.create(tmp_path, suite()) as store:
        assert store.plan(plan, **options) == [case(number) for number in again]
        assert case(9).key in store.finished()  # not listed, so not run again
        # Interrupted here, a run goes on with what is left, without being told again.
        assert store.plan(plan) == [case(number) for number in again]
        for number in again:
            store.add(case(number), outcome(1, Status.TIMEOUT), 1)
    assert numbers(tmp_path) == [0, 1, 2, 3]
    with Store.open(tmp_path) as store:
        assert list(store.runs()["status"] == "timeout") == [number in again for number in range(4)]
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        (stored,) = connection.execute(
            "SELECT count(*), (SELECT count(DISTINCT run_id) FROM sample), (SELECT count(*) FROM listing) FROM run"
        )
    assert stored == (len(made) + len(again), len(made) + len(again), len(plan) + 1)


def test_what_is_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bench-mtl run SUITE"):
        Store.open(tmp_path)
    fill(tmp_path / "hand", [0])
    (tmp_path / "file").write_text("x")
    for name in REPORT_NAMES:
        (tmp_path / name / name).mkdir(parents=True)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    for name, words in (
        ("hand", "already holds the results of suite 'hand': choose another folder"), ("file/below", "cannot be written"),
        *((name, f"holds {name} but no {FILE_NAME}") for name in REPORT_NAMES),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            Store.create(tmp_path / name, suite("other"))
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_the_sql_of_the_documents_gives_what_reports_say() -> None:
    query = re.search(r'^sqlite3 results.sqlite "(.*)"$', (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), re.MULTILINE)
    folder = ROOT / "reports" / "quick"
    with closing(sqlite3.connect(f"file:{folder / FILE_NAME}?mode=ro", uri=True)) as connection:
        rows = connection.execute(query[1]).fetchall()
    results = read_results(folder)
    times = times_to_gap(results.runs, results.samples, [1e-4]).dropna().groupby(["problem_label", "solver_label"])["seconds"].min()
    assert {(problem, solver): seconds for problem, solver, seconds in rows} == times.to_dict()


def test_an_answer_that_is_late_reaches_nothing() -> None:
    runs = pd.DataFrame({"id": [1, 2], "status": [Status.TIMEOUT] * 2, "target": [1e-4] * 2, "limit_seconds": [1.0, None]})
    runs = runs.assign(problem_label="p", instance_key="i", solver_label=["s", "t"])
    samples = pd.DataFrame({"run_id": [1, 1, 2], "seconds": [1.2, 1.4, 1.4], "relative_gap": [1e-2, 1e-4, 1e-4]})
    samples = samples.assign(primal=1.0, dual=0.9, passes=1.0, iteration=1, asked_tolerance=1e-4)
    times = times_to_gap(runs, samples, [1e-2, 1e-4]).set_index(["solver_label", "target"])["seconds"]
    assert times.dropna().to_dict() == {("s", 1e-2): 1.2, ("t", 1e-2): 1.4, ("t", 1e-4): 1.4}


def test_near_an_optimum_of_zero_what_verifies_one_run_counts_for_another() -> None:
    """The first is verified with a relative gap of 1, as it is beside the scale; the second proves more, but not its own target."""
    runs = pd.DataFrame({"id": [1, 2], "status": [Status.VERIFIED, Status.INACCURATE], "target": [1e-2, 1e-6], "limit_seconds": [None] * 2})
    runs = runs.assign(problem_label="p", instance_key="i", solver_label=["s", "t"])
    samples = pd.DataFrame({"run_id": [1, 2, 2], "seconds": [1.0, 0.5, 2.0], "primal": [2.774e-9, 9e-9, 1e-10], "dual": 0.0})
    samples = samples.assign(relative_gap=1.0, passes=1.0, iteration=1, asked_tolerance=None)
    times = times_to_gap(runs, samples, [1e-2, 1e-6]).set_index(["solver_label", "target"])["seconds"]
    assert times.dropna().to_dict() == {("s", 1e-2): 1.0, ("t", 1e-2): 2.0}


def test_another_program_that_holds_the_file_is_named_as_such(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    with Store.create(tmp_path, suite()) as store, closing(sqlite3.connect(tmp_path / FILE_NAME)) as blocker:
        store._connection.execute("PRAGMA busy_timeout = 0")
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another program is using this file") as error:
            store.add_environment({})
        assert "move it away" not in str(error.value)
        blocker.rollback()
        store.add_environment({})
