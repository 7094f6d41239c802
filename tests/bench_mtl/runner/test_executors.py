"""Where a case runs does not change its row: one slot, several, or no process of its own."""

import gc
import os
import threading
import time
from pathlib import Path

import psutil
import pytest
from runs import PLUGINS, Executing, await_that, cases_of, comparable, run_suite, solver, started_here, suite_of

from bench_mtl.results import Store
from bench_mtl.runner import InlineExecutor, LocalExecutor, Setting, run_cases

BEHAVED = (
    'name = "projected_gradient"',
    'name = "accelerated_gradient"',
    'name = "conic"',
    'name = "liar"',
    'name = "silent"',
    solver("faulty", "fault", "raises", "nan", "none"),
)

two_processors = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor only")


@two_processors
def test_slots_and_isolation_do_not_change_rows(tmp_path: Path, shared: Executing) -> None:
    suite = suite_of(*BEHAVED, limits="iterations = 30")
    run_suite(tmp_path / "one", suite, executor=shared)
    run_suite(tmp_path / "two", suite, executor=LocalExecutor(Setting(1, PLUGINS), slots=2))
    run_suite(tmp_path / "inline", suite, executor=InlineExecutor(Setting(1, PLUGINS)))
    runs, samples = comparable(tmp_path / "one")
    assert len(runs) == 8
    assert len(samples) > 40
    for other in ("two", "inline"):
        assert comparable(tmp_path / other) == (runs, samples)
    with Store.open(tmp_path / "inline") as store:
        assert [environment["isolation"] for environment in store.environments()] == ["inline"]


@two_processors
@pytest.mark.parametrize("slots", [1, 2])
def test_an_error_of_the_caller_ends_the_workers(tmp_path: Path, slots: int) -> None:
    before = started_here()
    suite = suite_of('name = "silent"', solver("waits", "number", 1, 2, 3), limits="seconds = 60.0")

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with Store.create(tmp_path, suite) as store, LocalExecutor(Setting(1, PLUGINS), slots) as executor:
        with pytest.raises(ZeroDivisionError):
            run_cases(store.plan(cases_of(suite)), store, executor=executor, on_outcome=fail)
        began = time.monotonic()
    assert time.monotonic() - began < 8.0  # no run is waited for, and no process that is killed for as long as it may take
    assert started_here() <= before
    with Store.open(tmp_path) as store:
        assert len(store.finished()) == 1


def test_no_process_and_no_file_descriptor_is_left_behind(tmp_path: Path) -> None:
    suite = suite_of(solver("faulty", "fault", "aborts", "kills_itself", "raises"), 'name = "silent"')
    this = psutil.Process()

    def held() -> tuple[int, int, int]:
        return this.num_fds(), threading.active_count(), len(this.children())

    run_suite(tmp_path / "first", suite_of('name = "silent"'))  # loads what is loaded once
    gc.collect()  # what other tests have left in circles may hold files
    before = held()
    run_suite(tmp_path / "second", suite)
    # A cluster of other tests opens and closes connections meanwhile.
    assert await_that(lambda: all(now <= then for now, then in zip(held(), before, strict=True)), 10.0), (held(), before)
