"""Workers of a Dask cluster that compute parts of a whole, each part on one of them, and again on another one where that is lost.

Parts are numbered, and who computes which does not show in the results. All that travels is pickled here: Dask unpacks arrays at any
address of a message, and products with such arrays bypass BLAS and have other last bits.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bench_mtl.core.dask_cluster import CONNECT_SECONDS, ClusterLostError, answer, client_at, client_of, close_local, local_cluster
from bench_mtl.core.threads import one_blas_thread

#: The largest number of workers that may die over the same parts.
_MOST_DEATHS = 10
#: How often a part is asked for alone after a worker had not enough memory for it, and how often after an answer was lost on its way.
_MOST_SHORTAGES, _MOST_LOSSES = 3, 5
#: A worker is taken to be stuck where it needs so many times as long as the slowest of the others, and at least so many seconds.
_STUCK_FACTOR, _STUCK_SECONDS = 5.0, 15.0
#: Seconds between two looks at what is being computed, and between two at who is alive.
_LOOK_SECONDS, _ALIVE_SECONDS = 1.0, 30.0
#: Seconds that an answer that is there may take to arrive.
_ANSWER_SECONDS = 120.0
#: Seconds to wait for a worker when there is none.
_WAIT_SECONDS = 60.0


@dataclass
class Traffic:
    """What has gone between this process and the workers, as counted where it is packed."""

    rounds: int = 0
    """Times that all parts were asked for something: mostly one pass over the data, or half of one."""
    messages: int = 0
    """Requests and answers."""
    sent: int = 0
    """Bytes to workers."""
    received: int = 0
    """Bytes from workers."""
    again: int = 0
    """Requests that were made once more, because a worker was stuck or short of memory, or its answer was lost. (Tasks of workers that die
    are moved by Dask, which does not say so.)"""


@dataclass(frozen=True)
class Place:
    """Where the workers are: a new cluster of this machine, or that of a scheduler."""

    address: str = "local"
    workers: int = 2
    """Of a new cluster."""
    memory_gib: float | None = None
    """What each of these may allocate."""


@dataclass
class WorkerPool:
    """The workers of a place, which are started or looked for at the first request.

    A copy in another process, pickled or forked, looks for workers of its own.
    """

    place: Place
    traffic: Traffic = field(default_factory=Traffic)
    stuck: dict[str, Any] = field(default_factory=dict, repr=False)
    """Workers that others have helped out, each with a task that says when it works again."""
    _client: Any = field(default=None, repr=False)
    _owner: int = field(default=0, repr=False)
    """The process that has the client."""

    def __getstate__(self) -> dict[str, Any]:
        return {"place": self.place, "traffic": Traffic(), "stuck": {}, "_client": None, "_owner": 0}

    def compute(self, work: bytes, own: Callable[[Sequence[int]], bytes], sizes: Sequence[int]) -> Iterator[tuple[Sequence[int], Any]]:
        """Yield parts and the result of ``work`` on them, as workers are done with them, until all parts have been.

        Parameters
        ----------
        work : a pickled function of a module; it is called with the numbers of neighbouring parts and what `own` has pickled of them
        own : returns what a worker needs to know of some parts
        sizes : of all parts, so that every worker has about as much

        Raises
        ------
        ClusterLostError : no worker is left, the scheduler does not answer, or workers keep dying.
        MemoryError : a worker has not enough memory for a single part.
        Exception : what the function raises.
        """
        client = self._connected()
        self.traffic.rounds += 1
        try:
            yield from _Round(client, work, own, sizes, self.traffic, self.stuck).results()
        except (ClusterLostError, MemoryError):
            raise
        except (OSError, RuntimeError) as error:
            if client.status == "running":
                raise
            raise _lost(error) from None

    def connect(self) -> None:
        """Start the workers, or find their scheduler; `compute` does where nobody has.

        Raises
        ------
        InputError : no scheduler answers there, or it refuses this process.
        """
        self._connected()

    def close(self) -> None:
        """Let the workers go; the next request starts others."""
        client, self._client = self._client, None
        if client is not None and self._owner == os.getpid():
            self._finalizer()

    def _connected(self) -> Any:
        if self._client is None or self._owner != os.getpid():
            place = self.place
            if place.address == "local":
                cluster = local_cluster("data in shards", place.workers, _MOST_DEATHS, place.memory_gib)
                client = client_of(cluster)
            else:
                cluster, client = None, client_at("cluster", place.address)
            self._client, self._owner = client, os.getpid()
            self.stuck = {}
            self._finalizer = weakref.finalize(self, _close, client, cluster, self._owner)
        return self._client


def _close(client: Any, cluster: Any, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork, which has the objects and none of their threads
        with suppress(Exception):
            client.close(timeout=CONNECT_SECONDS)
        if cluster is not None:
            close_local(cluster, CONNECT_SECONDS)


def _lost(error: BaseException) -> ClusterLostError:
    return ClusterLostError(f"the Dask scheduler does not answer ({' '.join(str(error).split()) or type(error).__name__})")


@dataclass
class _Request:
    """Some parts that a worker was asked for."""

    parts: list[int]
    worker: str
    task: Any
    since: float


class _Round:
    """One result for each part."""

    def __init__(
        self,
        client: Any,
        work: bytes,
        own: Callable[[Sequence[int]], bytes],
        sizes: Sequence[int],
        traffic: Traffic,
        stuck: dict[str, Any],
    ) -> None:
        self._client, self._work, self._own, self._sizes, self._traffic, self._stuck = client, work, own, sizes, traffic, stuck
        self._missing = set(range(len(sizes)))
        self._requests: list[_Request] = []
        self._bell = threading.Event()
        """Rings when a request has ended."""
        self._shortages: Counter[int] = Counter()
        self._losses: Counter[int] = Counter()
        self._looked = time.monotonic()
        self._slowest = 0.0

    def results(self) -> Iterator[tuple[Sequence[int], Any]]:
        try:
            workers = self._working()
            for worker, parts in zip(workers, _runs(sorted(self._missing), self._sizes, len(workers)), strict=False):
                self._ask(parts, worker)
            while self._missing:
                for request in self._ended():
                    yield from self._settled(request)
                self._help_out()
        finally:
            if self._requests:
                with suppress(Exception):
                    self._client.cancel([request.task for request in self._requests], force=True)

    def _ask(self, parts: list[int], worker: str) -> None:
        import dask

        own = self._own(parts)
        try:
            # Where its worker dies, Dask gives a task to another one by itself. Coefficients may be large, but are never twice the same.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
                task = self._client.submit(_answer, self._work, parts, own, workers=[worker], allow_other_workers=True, pure=False)
        except Exception as error:
            raise _lost(error) from None
        task.add_done_callback(lambda _: self._bell.set())
        self._requests.append(_Request(parts, worker, task, time.monotonic()))
        self._traffic.messages += 1
        self._traffic.sent += len(self._work) + len(own)

    def _ended(self) -> list[_Request]:
        if all(request.task.status == "pending" for request in self._requests):
            self._bell.wait(_LOOK_SECONDS)
        self._bell.clear()  # before they are looked at, so that none that ends now is missed
        if self._client.status != "running":
            raise _lost(ConnectionError("the connection is closed"))
        return [request for request in self._requests if request.task.status != "pending"]

    def _settled(self, request: _Request) -> Iterator[tuple[Sequence[int], Any]]:
        self._requests.remove(request)
        if not set(request.parts) <= self._missing:  # somebody else was quicker
            left = [part for part in request.parts if part in self._missing and not self._is_asked(part)]
            self._ask_again([[part] for part in left])
            return
        kind, value = self._answer_of(request)
        if kind == "failed":
            raise value
        if kind == "lost":
            self._losses.update(request.parts)
            if max(self._losses[part] for part in request.parts) > _MOST_LOSSES:
                raise ClusterLostError(f"the answer of a Dask worker was lost {_MOST_LOSSES + 1} times ({value})")
            self._ask_again([request.parts])
        elif kind == "memory":
            if len(request.parts) == 1:
                self._shortages.update(request.parts)
                if self._shortages[request.parts[0]] > _MOST_SHORTAGES:
                    raise MemoryError(f"a Dask worker has not enough memory for a shard: {value}")
            self._ask_again([[part] for part in request.parts])
        else:
            self._slowest = max(self._slowest, time.monotonic() - request.since)
            self._missing -= set(request.parts)
            yield request.parts, value

    def _answer_of(self, request: _Request) -> tuple[str, Any]:
        """Return what a worker has answered, or "lost" and why where nothing has arrived."""
        from distributed.scheduler import KilledWorker

        if request.task.status == "error":
            error = request.task.exception(timeout=CONNECT_SECONDS)
            if isinstance(error, KilledWorker):
                raise ClusterLostError("Dask workers have died over the same shards more often than the scheduler allows")
            return "failed", error
        if request.task.status != "finished":
            return "lost", request.task.status
        try:
            packed = request.task.result(timeout=_ANSWER_SECONDS)
            self._traffic.messages += 1
            self._traffic.received += len(packed)
            found: tuple[str, Any] = pickle.loads(packed)
        except MemoryError:
            raise
        except Exception as error:  # the worker that held it has gone, or it cannot be read
            return "lost", " ".join(str(error).split()) or type(error).__name__
        return found

    def _is_asked(self, part: int) -> bool:
        return any(part in request.parts for request in self._requests)

    def _ask_again(self, groups: Sequence[list[int]]) -> None:
        for group in groups:
            workers = self._working()
            self._traffic.again += 1
            busy = [request.worker for request in self._requests]
            self._ask(group, min(workers, key=lambda worker: (busy.count(worker), worker)))

    def _help_out(self) -> None:
        """Ask idle workers for what others seem to be stuck with; the first answer counts, and all are the same."""
        now = time.monotonic()
        if now - self._looked > _ALIVE_SECONDS:
            self._alive()  # which says if there is nobody any more
            self._looked = now
        patience = max(_STUCK_SECONDS, _STUCK_FACTOR * self._slowest)
        waiting = [request for request in self._requests if request.task.status == "pending" and self._missing & set(request.parts)]
        stuck = [request for request in waiting if now - request.since > patience]
        if not stuck:
            return
        busy = {request.worker for request in self._requests}
        idle = [worker for worker in self._working() if worker not in busy]
        for request, worker in zip(stuck, idle, strict=False):
            request.since = now
            self._traffic.again += 1
            self._note_stuck(request.worker)
            self._ask([part for part in request.parts if part in self._missing], worker)

    def _note_stuck(self, worker: str) -> None:
        """Leave a worker alone until it answers again."""
        with suppress(Exception):  # it may be gone
            self._stuck[worker] = self._client.submit(_nothing, workers=[worker], pure=False)

    def _working(self) -> list[str]:
        """Return the addresses of the living workers that are not stuck; of all that live, where all are."""
        alive = self._alive()
        for worker in [worker for worker, task in self._stuck.items() if task.status != "pending" or worker not in alive]:
            del self._stuck[worker]
        return [worker for worker in alive if worker not in self._stuck] or alive

    def _alive(self) -> list[str]:
        """Return the addresses of the living workers, as soon as there is one."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                workers = sorted(answer(self._client.nthreads, CONNECT_SECONDS))
            except Exception as error:
                raise _lost(error) from None
            if workers:
                return workers
            if time.monotonic() > deadline:
                raise ClusterLostError(f"the cluster has had no Dask worker for {_WAIT_SECONDS:g} s")
            time.sleep(0.1)


def _runs(parts: Sequence[int], sizes: Sequence[int], count: int) -> list[list[int]]:
    """Divide parts into at most `count` runs of neighbours, of about the same size."""
    total = sum(sizes[part] for part in parts)
    runs: list[list[int]] = [[] for _ in range(count)]
    done = 0
    for part in parts:
        middle = done + 0.5 * sizes[part]
        runs[min(count - 1, int(count * middle / total)) if total else 0].append(part)
        done += sizes[part]
    return [run for run in runs if run]


# What follows runs inside Dask workers.


def _nothing() -> None:
    """Show that a worker works."""


def _answer(work: bytes, parts: list[int], own: bytes) -> bytes:
    """Return a pickled pair: "done" and the result, "memory" and what it lacked, or "failed" and the exception."""
    try:
        with one_blas_thread():
            return pickle.dumps(("done", pickle.loads(work)(parts, pickle.loads(own))), protocol=5)
    except MemoryError as error:
        return pickle.dumps(("memory", str(error)), protocol=5)
    except Exception as error:
        try:
            return pickle.dumps(("failed", error), protocol=5)
        except Exception:
            return pickle.dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")), protocol=5)
