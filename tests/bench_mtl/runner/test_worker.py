"""What a worker keeps between two runs, and what happens to it there."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs import PLUGINS, TINY, await_that, cases_of, is_running, run_suite, solver, some_plugins, started_here, suite_of

from bench_mtl.core.types import Status
from bench_mtl.engine.registry import load_registry
from bench_mtl.runner import InlineExecutor, LocalExecutor, Setting, process, spawning
from bench_mtl.runner.executors import Slot
from bench_mtl.runner.inprocess import CaseRunner


def laborious(**parameters: Any) -> str:
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in parameters.items())
    return TINY.replace('"box"', '"laborious"').replace("bound = 0.5", options)


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
        record = executor.submit(harmless[0]).result().record
        assert record.status is Status.INACCURATE
        assert (record.peak_memory_mib or 0.0) < 0.3 * 1024, "what it takes to build a problem is not in it"


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
    # Built since: the third, the refused one and the second; the third and the first; nothing for the runs of its cases; the second.
    since = [number - built[0] for number in built[1:]]
    assert since[0] == since[1] == since[2] - 1


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed before", "noticed by the case"])
def test_a_worker_that_dies_between_two_cases_costs_none(monkeypatch: pytest.MonkeyPatch, noticed: bool) -> None:
    first, second = cases_of(suite_of(solver("reports", "number", 1, 2)))
    slot = Slot(Setting(1, PLUGINS))
    try:
        assert slot.run(first).record.status is Status.INACCURATE
        pid = slot._worker._process.pid  # type: ignore[union-attr]
        if not noticed:
            monkeypatch.setattr(process.Worker, "is_alive", property(lambda worker: worker._process.returncode is None))
        os.kill(pid, signal.SIGKILL)
        if noticed:
            assert await_that(lambda: not is_running(pid))
        outcome = slot.run(second)
    finally:
        slot.close()
    assert outcome.record.status is Status.INACCURATE, outcome.record.reason


def test_a_record_that_comes_as_a_limit_is_noticed_counts_and_does_not_harm_the_next_case(monkeypatch: pytest.MonkeyPatch) -> None:
    late, after = cases_of(
        suite_of(solver("waits", "number", 1), solver("waits", "number", 2, pause=0.1), limits="seconds = 20.0, iterations = 5")
    )
    kill, look, noticed = process.kill, process.Watch.broken, list[bool]()

    def notice(watch: Any) -> Any:
        if watch._gathered.began is None or noticed:
            return look(watch)
        noticed.append(await_that(lambda: not psutil.Process(watch._pid).children()))  # which is gone by then
        return Status.TIMEOUT, "time limit"

    monkeypatch.setattr(process.Watch, "broken", notice)
    monkeypatch.setattr(process.Worker, "end", lambda worker: None if noticed == [True] else kill([worker._process.pid]))
    with LocalExecutor(Setting(1, PLUGINS)) as executor:
        outcome = executor.submit(late).result()
        noticed.append(True)
        following = executor.submit(after).result()
    assert noticed[0]
    assert (outcome.record.status, outcome.record.samples[-1].step) == (Status.INACCURATE, 5)
    assert following.record.status is Status.INACCURATE, following.record.reason


def test_an_interrupt_of_what_is_made_ready_is_none_of_its_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    (case,) = cases_of(suite_of('name = "projected_gradient"'))
    monkeypatch.setattr(CaseRunner, "problem", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CaseRunner(load_registry(PLUGINS), None).make_ready(case, None)


def test_plugins_that_are_gone_are_named_with_the_exit_code(tmp_path: Path) -> None:
    plugins = some_plugins(tmp_path / "plugins", "faulty.py")
    (case,) = cases_of(suite_of(solver("faulty", "fault", "raises")), plugins)
    shutil.rmtree(plugins)
    with LocalExecutor(Setting(1, plugins)) as executor:
        record = executor.submit(case).result().record
    assert record.status is Status.CRASHED
    assert record.reason.startswith("the worker died at its start: exit code 1 (")
    assert str(plugins) in record.reason


def test_where_nothing_can_be_forked_from_a_template_new_pythons_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawning, "can_fork", lambda: False)
    before = started_here()
    runs = run_suite(tmp_path, suite_of('name = "projected_gradient"', solver("faulty", "fault", "raises", "aborts")))
    assert runs["status"].tolist() == ["verified", "error", "crashed"], runs["reason"].tolist()
    assert started_here() <= before
