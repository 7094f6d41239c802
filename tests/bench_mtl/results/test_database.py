"""What a store keeps, lists and refuses."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made import MACHINE, ROOT, case, content, fill, in_python, numbers, outcome, results_bytes, suite

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Status
from bench_mtl.results import FILE_NAME, REPORT_NAMES, Store, plan_suite
from bench_mtl.results.files import LOCK_NAME
from bench_mtl.results.frames import times_to_gap
from bench_mtl.results.loading import read_results


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    fill(tmp_path, {1: outcome(2), 0: outcome(0, Status.SKIPPED)}, plan=[case(0), case(1)])
    with Store.open(tmp_path) as store:
        runs, samples = store.runs(), store.samples()
        assert store.environments() == [{"id": 1, "started": store.environments()[0]["started"], **MACHINE}]
        assert store.statuses() == [Status.SKIPPED, Status.VERIFIED]
        assert store.durations() == [("lasso", "pg", 2.0)] * 2
    assert list(runs["status"]) == ["skipped", "verified"]
    assert list(runs["id"]) == [2, 1]
    assert list(samples["number"]) == [0, 1]
    assert set(samples["run_id"]) == {1}
    assert samples["asked_tolerance"].isna().all()
    assert samples.dtypes.astype(str).to_dict() == {
        "run_id": "int64", "number": "int64", "seconds": "float64", "iteration": "int64", "passes": "float64", "primal": "float64",
        "dual": "float64", "relative_gap": "float64", "infeasibility": "float64", "asked_tolerance": "float64",
    }  # fmt: skip


def test_finished_results_are_one_file(tmp_path: Path) -> None:
    fill(tmp_path, range(3))
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    before = content(tmp_path)
    with Store.open(tmp_path) as store:
        store.runs()
        assert content(tmp_path) == before
    assert content(tmp_path) == before


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
    assert len(numbers(tmp_path)) == 2


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
    plan = plan_suite(tmp_path / "new", suite(), cases)
    assert (plan.waiting, plan.has_changes) == (cases, True)
    assert not (tmp_path / "new").exists()
    before = results_bytes(fill(tmp_path, [0, 2]))
    plan = plan_suite(tmp_path, suite(), cases)
    assert (plan.waiting, plan.has_changes) == ([case(1)], True)
    assert results_bytes(tmp_path) == before
    with Store.create(tmp_path, suite()) as store:
        assert store.apply(plan) == [case(1)]
        store.add(case(1), outcome(), store.add_environment({}))
    plan = plan_suite(tmp_path, suite(), cases)
    assert (plan.waiting, plan.has_changes) == ([], False)
    assert plan_suite(tmp_path, suite(text="other"), cases).has_changes


def test_a_plan_is_made_anew_where_another_run_has_written_since(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    cases = [case(0), case(1), case(2)]
    plan = plan_suite(tmp_path, suite(), cases)
    forced = plan_suite(tmp_path, suite(), cases, force=True)
    fill(tmp_path, [1], plan=[case(1), case(0)])
    with Store.create(tmp_path, suite()) as store:
        assert store.apply(plan) == [case(2)]
    assert numbers(tmp_path) == [0, 1]
    with Store.create(tmp_path, suite()) as store:
        assert store.apply(forced) == cases
    assert numbers(tmp_path) == []


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
        kept = len(made) + len(again)
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (kept,)
        assert connection.execute("SELECT count(DISTINCT run_id) FROM sample").fetchone() == (kept,)
        assert connection.execute("SELECT count(*) FROM listing").fetchone() == (len(plan) + 1,)


def test_equal_environments_are_one_row(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    with Store.create(tmp_path, suite()) as store:
        assert store.add_environment(dict(reversed(MACHINE.items()))) == 1
        assert store.add_environment({**MACHINE, "threads": 2}) == 2


def test_a_changed_suite_of_the_same_name_goes_on(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    with Store.create(tmp_path, suite(text="changed", targets=(1e-2, 1e-6))) as store:
        assert store.meta()["suite_text"] == "changed"
        assert store.meta()["targets"] == "[0.01, 1e-06]"
        assert store.finished() == {case(0).key}


def test_another_suites_results_are_left_alone(tmp_path: Path) -> None:
    fill(tmp_path, [0])
    before = content(tmp_path)
    with pytest.raises(InputError, match="already holds the results of suite 'hand': choose another folder"):
        Store.create(tmp_path, suite("other"))
    assert content(tmp_path) == before


def test_text_that_is_no_unicode_is_kept_legibly(tmp_path: Path) -> None:
    fill(tmp_path, {0: outcome(reason="bytes \udcff, NUL \0, and ü")})
    with Store.open(tmp_path) as store:
        assert store.runs()["reason"][0] == "bytes \\udcff, NUL \0, and ü"


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    (sample,) = outcome(1).record.samples
    fill(tmp_path, {0: outcome([replace(sample, seconds=np.float32(0.5), step=np.int64(7))])})  # type: ignore[arg-type]
    with Store.open(tmp_path) as store:
        assert store.runs()["iterations"][0] == 7
        assert store.samples()["iteration"][0] == 7


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bench-mtl run SUITE"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        Store.create(tmp_path / "file" / "below", suite())


def test_the_sql_of_the_documents_gives_what_reports_say() -> None:
    query = re.search(r'^sqlite3 results.sqlite "(.*)"$', (ROOT / "docs" / "results.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert query is not None
    folder = ROOT / "reports" / "quick"
    with closing(sqlite3.connect(f"file:{folder / FILE_NAME}?mode=ro", uri=True)) as connection:
        rows = connection.execute(query[1]).fetchall()
    results = read_results(folder)
    times = times_to_gap(results.runs, results.samples, [1e-4]).dropna().groupby(["problem_label", "solver_label"])["seconds"].min()
    assert {(problem, solver): seconds for problem, solver, seconds in rows} == times.to_dict()


def test_a_folder_with_somebody_elses_report_is_refused(tmp_path: Path) -> None:
    for name in REPORT_NAMES:
        (tmp_path / name / name).mkdir(parents=True)
        with pytest.raises(InputError, match=f"holds {name} but no {FILE_NAME}"):
            Store.create(tmp_path / name, suite())
        assert [path.name for path in (tmp_path / name).iterdir()] == [name]


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


def test_a_second_run_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with Store.create(tmp_path, suite()) as store:
        assert (tmp_path / LOCK_NAME).exists()
        with pytest.raises(InputError, match=r"another run is using this folder, .*: wait for its end"):
            Store.create(tmp_path, suite())
        store.add(case(0), outcome(), store.add_environment(MACHINE))
    assert not (tmp_path / LOCK_NAME).exists()
    fill(tmp_path, [1])


HOLD = """
import os, subprocess, sys, time
from pathlib import Path
from hand_made import suite
from bench_mtl.results import Store
store = Store.create(Path(sys.argv[1]), suite())
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
sleeper = subprocess.Popen(sleep, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
forked = os.fork()
if forked == 0:
    os.close(1)
    os.close(2)
    time.sleep(60)
print(sleeper.pid, forked, flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_lock_goes_with_its_holder_and_its_children_do_not_have_it(tmp_path: Path) -> None:
    result = in_python(HOLD, tmp_path)
    children = [int(pid) for pid in result.stdout.split()]
    try:
        assert result.returncode == -9, result.stderr
        assert (tmp_path / LOCK_NAME).exists()
        assert len(children) == 2
        for pid in children:
            os.kill(pid, 0)  # they live
        fill(tmp_path, [0])
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
