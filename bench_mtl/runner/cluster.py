"""Runs cases on a Dask cluster: each thread of a Dask worker is a slot, with the same workers and limits as on this machine.

What a task returns is plain bytes, whatever happens in it, and nothing else is taken from one. A Dask worker whose code is not that of this
command gets no case: its numbers would be those of another programme.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from bench_mtl.core.dask_cluster import CLOSING_SECONDS, CONNECT_SECONDS, answer, client_at, client_of, close_local, exposure, local_cluster
from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.core.running_code import difference, running_code
from bench_mtl.core.types import Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner.executors import Slot, processors
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.job import Job
from bench_mtl.runner.messages import Failed, Message, Mistake, UnreadableError, built, flat
from bench_mtl.runner.setting import Setting

#: How long to look for a scheduler, and to wait for an answer from one.
_CONNECT_SECONDS = CONNECT_SECONDS
#: How long an outcome may be on its way: it holds points and dual points.
_ANSWER_SECONDS = 600.0
#: How often to count the threads of a cluster that may grow and shrink.
_COUNT_SECONDS = 2.0
#: A case whose Dask worker dies is run again once on a cluster of our own; elsewhere the scheduler's own setting holds.
_ALLOWED_DEATHS = 1
#: What results of tasks are made of, of what Dask knows: neither pickles nor its own family, which has pickles in it.
_FAMILIES = ("msgpack",)

_GO_ON = "what has finished is stored, the same command goes on from there"


class ClusterExecutor:
    """Cases as tasks of a Dask scheduler. Data are built where they are used, so their files must be visible there."""

    def __init__(
        self, client: Any, setting: Setting, layout: Sequence[Setting] | None = None, cluster: Any = None, warning: str | None = None
    ) -> None:
        #: Called with a sentence that a user should read.
        self.notify: Callable[[str], None] = lambda sentence: None
        self._client = client
        self._cluster = cluster
        self._setting = setting
        self._layout = layout
        self._warning = warning
        self._code = running_code(setting.plugins)
        self._name = uuid.uuid4().hex
        self._running: dict[Future[Outcome], Any] = {}
        self._counted: tuple[float, int] | None = None
        self._is_stopped = False

    @classmethod
    def local(cls, setting: Setting, slots: int) -> Self:
        """A cluster of worker processes on this machine, one a slot, which ends with this executor."""
        layout = [replace(setting, processors=chosen, slots=slots) for chosen in processors(slots, setting.threads)]
        cluster = local_cluster("--cluster", slots, _ALLOWED_DEATHS)
        return cls(client_of(cluster, _FAMILIES), setting, layout, cluster)

    @classmethod
    def at(cls, setting: Setting, address: str) -> Self:
        """The cluster whose scheduler is at `address`.

        Raises InputError where Dask is not installed, certificates are missing, no scheduler answers there, or a worker has other code.
        """
        client = client_at("--cluster", address, _CONNECT_SECONDS, _FAMILIES, setting.plugins)
        return cls(client, setting, warning=exposure(address))

    @property
    def capacity(self) -> int:
        return max(1, self._count_threads())

    def _count_threads(self) -> int:
        now = time.monotonic()
        if self._counted is None or now - self._counted[0] > _COUNT_SECONDS:
            try:
                threads = sum(answer(self._client.nthreads, _CONNECT_SECONDS).values())
            except Exception as error:  # whatever Dask says to a connection that is no more
                raise _lost(error) from None
            if threads == 0 and (self._counted is None or self._counted[1] > 0):
                self.notify("the cluster has no Dask worker: waiting for one")
            self._counted = now, threads
        return self._counted[1]

    @property
    def _asked(self) -> _Asked:
        return _Asked(self._name, self._setting, self._layout, self._code)

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        self._warn()
        self._count_threads()  # which says if there is none
        try:
            task = self._client.submit(_find_mistake, list(cases), self._asked, pure=False)
            task.exception()  # waits for its end
            found = _answer_of(task)
        except IncompleteError:
            raise
        except Exception as error:
            raise _lost(error) from None
        if isinstance(found, Refused):
            raise InputError(found.reason)
        return found.sentence if isinstance(found, Mistake) else _nonsense("no answer")

    def submit(self, case: Case | Job) -> Future[Outcome]:
        self._warn()
        outcome: Future[Outcome] = Future()
        try:
            task = self._client.submit(_run_case, case, self._asked, pure=False)
        except Exception as error:
            raise _lost(error) from None
        self._running[outcome] = task  # Dask drops a task that nobody holds
        task.add_done_callback(lambda task: self._settle(outcome, task))
        return outcome

    def _warn(self) -> None:
        """Say once what there is to be said before anything runs."""
        warning, self._warning = self._warning, None
        if warning is not None:
            self.notify(warning)

    def stop(self) -> None:
        self._is_stopped = True
        if self._client.status == "running":
            self._try(lambda: self._client.cancel(list(self._running.values()), force=True))
            self._try(lambda: self._client.run(_end_slots, self._name, on_error="ignore"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_stopped and self._client.status == "running":
            self._try(lambda: self._client.run(_end_slots, self._name, on_error="ignore"))
        self._try(lambda: self._client.close(timeout=self._patience))
        if self._cluster is not None:
            close_local(self._cluster, self._patience)

    def _settle(self, outcome: Future[Outcome], task: Any) -> None:
        """Give the outcome of a task that Dask is done with, one way or another."""
        from distributed.scheduler import KilledWorker

        self._running.pop(outcome, None)
        try:
            found = _answer_of(task)
            if isinstance(found, Refused):
                raise IncompleteError(f"{found.reason}; {_GO_ON}")
            outcome.set_result(found.outcome if isinstance(found, Ran) else _nonsense("no outcome"))
        except KilledWorker:
            lost = Gathered(self._setting.environment())
            outcome.set_result(lost.ended(Status.CRASHED, "the Dask worker that ran it died, each time that it was tried"))
        except IncompleteError as error:
            outcome.set_exception(error)
        except BaseException as error:  # a scheduler that is gone cancels its tasks, which is no Exception
            outcome.set_exception(_lost(error))

    def _try(self, request: Callable[[], Any]) -> None:
        """Best effort: where the cluster is gone, so is what ran on it."""
        try:
            answer(request, self._patience)
        except Exception as error:
            logging.getLogger(__name__).debug("the cluster does not answer: %s", error)

    @property
    def _patience(self) -> float:
        """How long to wait for what is only tried, seconds."""
        return min(CLOSING_SECONDS, _CONNECT_SECONDS) if self._is_stopped else _CONNECT_SECONDS


def _lost(error: BaseException) -> IncompleteError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return IncompleteError(f"the cluster is gone ({reason}); {_GO_ON}")


def _nonsense(reason: object) -> NoReturn:
    raise IncompleteError(f"the answer of a Dask worker cannot be used ({reason}); {_GO_ON}")


class Ran(Message, frozen=True):
    """A case has been run."""

    outcome: Outcome


class Refused(Message, frozen=True):
    """A Dask worker has other code."""

    reason: str


def _answer_of(task: Any) -> Message:
    """Return the answer of a task that Dask is done with.

    Raises KilledWorker where the Dask workers that it was given to died, IncompleteError where one has failed or returned what is no
    answer, and whatever Dask says where the cluster is gone.
    """
    from distributed.scheduler import KilledWorker

    if task.status == "error":
        error = task.exception(timeout=_CONNECT_SECONDS)
        if isinstance(error, KilledWorker):
            raise error
        _nonsense(describe(error))
    try:
        found = built(task.result(timeout=_ANSWER_SECONDS))
    except (UnreadableError, TypeError) as error:  # TypeError by Dask, of another family of data than is asked for
        _nonsense(" ".join(str(error).split()))
    if isinstance(found, Failed):
        raise IncompleteError(f"{found.reason}; {_GO_ON}")
    return found


@dataclass(frozen=True)
class _Asked:
    """What comes with every task."""

    command: str
    """The executor that asks, by a name that no other one has: a cluster may serve several commands at once."""
    setting: Setting
    layout: Sequence[Setting] | None
    code: Mapping[str, str]


# What follows runs inside Dask workers, where a thread keeps its slot from task to task.

_of_thread = threading.local()
#: The slots of all threads, with the command that has used each last.
_slots: dict[Slot, str] = {}


def _run_case(case: Case | Job, asked: _Asked) -> bytes:
    """Run a case in the slot of this thread."""
    return _done(lambda: Ran(_slot(asked).run(case)), asked)


def _find_mistake(cases: Sequence[Case], asked: _Asked) -> bytes:
    return _done(lambda: Mistake(_slot(asked).find_mistake(cases)), asked)


def _done(task: Callable[[], Message], asked: _Asked) -> bytes:
    """Return the answer of a task. Dask would send an exception as a pickle, and one that cannot be pickled as something else."""
    from distributed import get_worker

    worker = f"Dask worker {get_worker().address}"
    try:
        different = difference(asked.code, running_code(asked.setting.plugins))
        return flat(task() if different is None else Refused(f"{worker} {different}"))
    except Exception as error:
        return flat(Failed(f"{worker} cannot run it ({describe(error)})"))


def _slot(asked: _Asked) -> Slot:
    """The slot of this thread, which has the setting that is asked for."""
    from distributed import get_worker

    worker = get_worker()
    # Workers of a local cluster are numbered; of another one the threads of this worker are all that is known to run at once here.
    layout, setting = asked.layout, replace(asked.setting, slots=worker.state.nthreads)
    setting = layout[int(worker.name)] if layout is not None else setting
    slot: Slot | None = getattr(_of_thread, "slot", None)
    if slot is None or not slot.serves(setting):
        if slot is not None:
            slot.close()
            _slots.pop(slot)
        slot = _of_thread.slot = Slot(setting)
    _slots[slot] = asked.command
    return slot


def _end_slots(command: str) -> None:
    """End what a command runs in the slots of this process; their threads clear up after it when they next look."""
    for slot, user in list(_slots.items()):
        if user == command:
            slot.end()
