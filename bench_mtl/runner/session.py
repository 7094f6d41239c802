"""Runs the cases of a suite, or other jobs, wherever that is, and stores a row for every one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.types import Status
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner.executors import Executor
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.job import Job
from bench_mtl.runner.setting import Setting

W = TypeVar("W", bound=Case | Job)
_Stored = TypeVar("_Stored", bound=Case | Job, contravariant=True)

#: What has been running when so many commands died is not run again: one may have been killed by somebody, or by a power cut.
MOST_DEATHS = 2

#: How often to ask whether to stop, and how many cases can run now.
_LOOK_SECONDS = 0.5


class Rows(Protocol[_Stored]):
    """Where rows go, as `bench_mtl.results.Store` does it for cases."""

    @property
    def path(self) -> Path:
        """The path of the file."""

    def finished(self) -> set[str]:
        """Keys of what has a row that counts."""

    def deaths(self) -> Mapping[str, int]:
        """How many commands have died while something ran that has no row yet, by its key."""

    def begin(self, key: str, /) -> None:
        """Mark something as running until it has a row."""

    def add_environment(self, description: Mapping[str, Any], /) -> int: ...

    def add(self, case: _Stored, outcome: Outcome, environment_id: int, /) -> None: ...


def run_cases(
    cases: Iterable[W],
    store: Rows[W],
    *,
    executor: Executor,
    on_start: Callable[[W], None] = lambda case: None,
    on_outcome: Callable[[W, Outcome], None] = lambda case, outcome: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run every case that `store` has no row for, and store a row for each, whatever happens to its process.

    A case that was running when a command died is run after all others, and alone; when another command dies with it, it ends as crashed.

    Parameters
    ----------
    executor : where, entered already
    on_start, on_outcome : called when a case begins, and when its row is stored
    should_stop : asked every half a second; once it says yes, the running cases are finished and no other is begun, and what it raises
        ends the running cases. A signal's handler should not raise itself: out of the middle of a lock that a thread waits for then,
        this would never return.

    Raises
    ------
    IncompleteError : the results can no longer be written, or the cluster is gone. What is stored stays, and can be gone on from.
    """
    finished, deaths = store.finished(), store.deaths()
    waiting = deque(sorted((case for case in cases if case.key not in finished), key=lambda case: deaths.get(case.key, 0)))
    while waiting and deaths.get(waiting[-1].key, 0) >= MOST_DEATHS:
        case = waiting.pop()
        on_start(case)
        reason = f"{deaths[case.key]} commands died while it ran"
        outcome = Gathered(Setting(case.threads, slots=executor.capacity).environment()).ended(Status.CRASHED, reason)
        _store(store, case, outcome)
        on_outcome(case, outcome)
    running: dict[Future[Outcome], W] = {}
    try:
        while True:
            stopping = should_stop()
            while waiting and not stopping and len(running) < (1 if waiting[0].key in deaths else executor.capacity):
                case = waiting.popleft()
                with _going_on():
                    store.begin(case.key)
                on_start(case)
                running[executor.submit(case)] = case
                stopping = should_stop()
            if not running and (stopping or not waiting):
                return
            for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                case = running.pop(future)
                outcome = future.result()
                _store(store, case, outcome)
                on_outcome(case, outcome)
    except BaseException:
        try:
            _store_finished(store, running, on_outcome)
        finally:
            executor.stop()
        raise


def _store_finished(store: Rows[W], running: Mapping[Future[Outcome], W], on_outcome: Callable[[W, Outcome], None]) -> None:
    """Store the rows of cases that have finished while something else went wrong, as far as they can be written."""
    for future, case in running.items():
        if future.done() and not future.cancelled() and future.exception() is None:
            with suppress(IncompleteError):
                _store(store, case, future.result())
                on_outcome(case, future.result())


def _store(store: Rows[W], case: W, outcome: Outcome) -> None:
    with _going_on():
        store.add(case, outcome, store.add_environment(outcome.environment))
    if not store.path.exists():
        raise IncompleteError(f"{store.path} has been removed while it was written to: the results are gone")


@contextmanager
def _going_on() -> Iterator[None]:
    """Say that the command can be given again where the results can no longer be written."""
    try:
        yield
    except InputError as error:
        raise IncompleteError(f"{error}; what was stored before remains, and the same command goes on from there") from None
