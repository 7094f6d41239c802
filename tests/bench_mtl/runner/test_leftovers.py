"""What a run leaves in its process, or happens to that process between two runs, does not touch the next run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from runs import PLUGINS, TINY, await_that, cases_of, is_running, run_suite, solver, some_plugins, suite_of

from bench_mtl.core.types import Status
from bench_mtl.results import Store
from bench_mtl.runner import Executor, InlineExecutor, LocalExecutor, Setting, executors, process, run_cases
from bench_mtl.runner.executors import Slot
from bench_mtl.runner.placing import Shelf


def leaving(*left: str) -> list[str]:
    return [f'name = "leaves"\noptions = {{ leaves = "{what}", number = {number} }}' for number, what in enumerate(left)]


def laborious(**parameters: Any) -> str:
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in parameters.items())
    return TINY.replace('"box"', '"laborious"').replace("bound = 0.5", options)


def pid_in(outcome: Any) -> int:
    return int(dict(outcome.record.info)["pid"])


def test_what_a_run_leaves_in_its_process_is_not_there_for_the_next(tmp_path: Path) -> None:
    left = ["nothing", "nothing", "memory", "nothing", "thread", "nothing", "place", "nothing"]
    if len(os.sched_getaffinity(0)) > 1:
        left += ["processors", "nothing"]
    runs = run_suite(tmp_path, suite_of(*leaving(*left)), executor=LocalExecutor(Setting(2, PLUGINS)))
    pids = [json.loads(info)["pid"] for info in runs["info"]]
    assert len(set(pids)) == len(left)
    peaks = runs["peak_memory_mib"]
    assert peaks["nothing_1"] > 120 + 30
    assert abs(peaks["nothing_3"] - peaks["nothing_1"]) < 25, peaks.to_dict()
    assert not any(is_running(pid) for pid in pids)


def test_a_run_elsewhere_leaves_the_data_of_the_next_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dice = np.random.default_rng(0)
    Path("data").mkdir()
    for name in ("one", "two"):
        np.savez(f"data/{name}.npz", X=dice.normal(size=(8, 4)), Y=np.sign(dice.normal(size=(8, 2))))
    problems = "".join(f'[[problems]]\nname = "box"\nlabel = "{name}"\ndata = {{ file = "{name}.npz" }}\n' for name in ("one", "two"))
    suite = suite_of(*leaving("place"), problems=problems)
    with Store.create(tmp_path / "out", suite) as store:
        cases = cases_of(suite, PLUGINS, Path("data"))
        run_cases(store.plan(cases), store, plugins=PLUGINS, data_dir=Path("data"))
        runs = store.runs()
    assert runs["problem_label"].tolist() == ["one", "two"]
    assert runs["status"].tolist() == ["inaccurate"] * 2, runs["reason"].tolist()


def test_what_building_a_problem_takes_is_not_in_the_peak_of_its_first_run(
    tmp_path: Path, shared: AbstractContextManager[Executor]
) -> None:
    tables = [f'name = "reports"\noptions = {{ number = {number} }}' for number in (1, 2)]
    runs = run_suite(tmp_path, suite_of(*tables, problems=laborious(mib=100)), executor=shared)
    first, second = runs["peak_memory_mib"]
    assert abs(first - second) < 25


def test_a_check_of_parameters_ends_at_the_limit_of_memory() -> None:
    limits = "seconds = 20.0, memory_gib = 0.3"
    cases = cases_of(suite_of('name = "reports"', problems=laborious(mib=400, refused=True), limits=limits))
    harmless = cases_of(suite_of('name = "reports"', limits=limits))
    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        assert executor.find_mistake(cases) is None  # at its end it would have been refused
        record = executor.submit(cases[0]).result().record
        assert (record.status, record.reason.split(",")[0]) == (Status.MEMORY, "memory limit of 0.3 GiB")
        assert 0.3 * 1024 < (record.peak_memory_mib or 0.0) < 0.3 * 1024 * 1.3
        assert executor.find_mistake(harmless) is None
        assert executor.submit(harmless[0]).result().record.status is Status.INACCURATE


@pytest.mark.parametrize("make", [LocalExecutor, InlineExecutor])
def test_a_problem_that_was_built_to_be_checked_is_not_built_again_to_be_run(make: type[LocalExecutor | InlineExecutor]) -> None:
    cases = cases_of(suite_of('name = "reports"\ngrid = { number = [1, 2] }', problems=laborious(mib=1)))
    others = cases_of(suite_of('name = "reports"', problems=laborious(mib=2) + laborious(mib=3).replace("tiny", "third")))
    refused = cases_of(suite_of('name = "reports"', problems=laborious(mib=4, refused=True)))
    with make(Setting(1, PLUGINS)) as executor:
        assert executor.find_mistake(refused) == "tiny: 4 MiB were needed only to refuse this"
        counted = executor.submit(others[0]).result().notes
        assert executor.find_mistake([*others, *refused]) == "tiny: 4 MiB were needed only to refuse this"
        assert executor.find_mistake([cases[0], *others]) is None  # the first one is the first to be run
        outcomes = [executor.submit(case).result() for case in (*cases, others[0])]
    built = [int(notes[0].split()[1]) for notes in (counted, *(outcome.notes for outcome in outcomes))]
    # Built since: the third, the refused one and the second; the third and the first; nothing for the runs of its cases; the second. In
    # this process the example of the problem is built once, too, to rehearse.
    assert [number - built[0] for number in built[1:]] == ([6, 6, 7] if make is InlineExecutor else [5, 5, 6])


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed before", "noticed by the case"])
def test_a_worker_that_dies_between_two_cases_costs_none(monkeypatch: pytest.MonkeyPatch, noticed: bool) -> None:
    first, second = cases_of(suite_of(solver("reports", "number", 1, 2)))
    slot = Slot(Setting(1, PLUGINS), Shelf())
    try:
        pid = pid_in(slot.run(first))
        if not noticed:
            monkeypatch.setattr(process.Worker, "is_alive", property(lambda worker: worker._process.returncode is None))
        os.kill(pid, signal.SIGKILL)
        if noticed:
            assert await_that(lambda: not is_running(pid))
        outcome = slot.run(second)
    finally:
        slot.close()
    assert outcome.record.status is Status.INACCURATE, outcome.record.reason
    assert pid_in(outcome) != pid


def test_a_record_that_comes_as_a_limit_is_noticed_counts_and_does_not_harm_the_next_case(monkeypatch: pytest.MonkeyPatch) -> None:
    late, after = cases_of(
        suite_of(solver("waits", "number", 1), solver("waits", "number", 2, pause=0.1), limits="seconds = 20.0, iterations = 5")
    )
    kill, look = process.Worker.end, process.Watch.broken
    timers: list[threading.Timer] = []

    def notice(watch: Any) -> Any:
        if watch._gathered.began is None or timers:
            return look(watch)
        assert await_that(lambda: all(child.status() == psutil.STATUS_ZOMBIE for child in psutil.Process(watch._pid).children()))
        return Status.TIMEOUT, "time limit"

    def kill_slowly(worker: Any) -> None:
        timers.append(threading.Timer(0.1, kill, [worker]))
        timers[-1].start()

    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        monkeypatch.setattr(process.Watch, "broken", notice)
        monkeypatch.setattr(process.Worker, "end", kill_slowly)
        outcome = executor.submit(late).result()
        monkeypatch.setattr(process.Worker, "end", kill)
        following = executor.submit(after).result()
    for timer in timers:
        timer.join()
    assert timers
    assert (outcome.record.status, outcome.record.samples[-1].step) == (Status.INACCURATE, 5)
    assert following.record.status is Status.INACCURATE, following.record.reason


def test_a_slot_that_is_ended_while_its_worker_is_being_made_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = cases_of(suite_of(solver("waits", "number", 1), limits="seconds = 20.0, iterations = 3"))
    slot = Slot(Setting(1, PLUGINS), Shelf())
    pids: list[int] = []

    class Slow(process.Worker):
        def __init__(self, setting: Setting) -> None:
            super().__init__(setting)
            slot.end()
            pids.append(self._process.pid)

    monkeypatch.setattr(executors, "Worker", Slow)
    try:
        outcome = slot.run(case)
        assert not any(map(is_running, pids))
    finally:
        slot.close()
    assert outcome.record.status is Status.CRASHED
    assert not outcome.record.samples


def test_plugins_that_are_gone_are_named_with_the_exit_code(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins", "faulty.py")
    (case,) = cases_of(suite_of(solver("faulty", "fault", "raises")), plugins)
    shutil.rmtree(plugins)
    with LocalExecutor(Setting(1, plugins)) as executor:
        record = executor.submit(case).result().record
    assert record.status is Status.CRASHED
    assert record.reason.startswith("the worker died at its start: exit code 1 (")
    assert str(plugins) in record.reason
