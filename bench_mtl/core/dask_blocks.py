"""Blocks on the workers of a Dask cluster: who computes which of them does not show in the results.

Blocks are what a Dask graph computes, what workers hold, or small things such as the names of files. Dask itself gives the task of a worker
that dies to another one, makes again what was lost with it, and repeats what fails for want of memory. All that travels is pickled here:
Dask unpacks arrays at any address of a message, and products with such arrays bypass BLAS and have other last bits.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from bench_mtl.core.blocks import Blocks, Own, TreeSum, leaves, nothing_of, plus
from bench_mtl.core.dask_cluster import CONNECT_SECONDS, ClusterLostError, answer, client_at, client_of, close_local, local_cluster
from bench_mtl.core.threads import one_blas_thread

T = TypeVar("T")

#: A node of a Dask graph, by its name.
Key = Hashable
#: The largest number of workers of a cluster of our own that may die over the same task, and how often a task that fails is tried again.
_MOST_DEATHS, _RETRIES = 10, 3
#: Seconds between two looks at a cluster that computes.
_LOOK_SECONDS = 1.0
#: Seconds that a result that is there may take to arrive.
_ANSWER_SECONDS = 120.0
#: Seconds to wait for a worker when there is none.
_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Place:
    """Where the workers are: a new cluster of this machine, or that of a scheduler."""

    address: str = "local"
    workers: int = 2
    """Of a new cluster."""
    memory_gib: float | None = None
    """What each of these may allocate."""


class Call(NamedTuple):
    """What workers were asked for."""

    future: Any
    worker: str | None = None
    """Who is to compute it if it lives; None where anybody may."""
    again: Callable[[], Any] = lambda: None
    """Asks anybody for it; returns another future."""


class Workers:
    """The workers of a place, which are started or looked for when they are first needed; or those of a client that there is already.

    A copy in another process, pickled or forked, searches for workers of its own.
    """

    def __init__(self, place: Place | None = None, asker: str = "data in shards", client: Any = None) -> None:
        self.place, self._asker = place or Place(), asker
        self._client, self._owner = client, os.getpid()
        self._looked: tuple[Any, float, list[str]] = (None, 0.0, [])
        self.counts = Counter(rounds=0, messages=0, sent=0, received=0)
        """Times that all blocks were asked for something: mostly one pass over the data; requests and answers; and bytes both ways, as far
        as they are packed here."""

    def __reduce__(self) -> Any:
        return Workers, (self.place, self._asker)

    @property
    def client(self) -> Any:
        """The client of Dask. Raises InputError: Dask is not installed, no scheduler answers there, or it refuses this process."""
        if self._client is None or self._owner != os.getpid():
            cluster = None
            if self.place.address == "local":
                cluster = local_cluster(self._asker, self.place.workers, _MOST_DEATHS, self.place.memory_gib)
            self._client = client_at("cluster", self.place.address) if cluster is None else client_of(cluster)
            self._owner = os.getpid()
            self._finalizer = weakref.finalize(self, _close, self._client, cluster, self._owner)
        return self._client

    def close(self) -> None:
        """Let the workers go; the next request starts others."""
        client, self._client = self._client, None
        if client is not None and self._owner == os.getpid():
            self._finalizer()

    def compute(self, graph: Mapping[Key, Any], keys: Sequence[Key]) -> list[Any]:
        """Have some keys of a graph computed; return their futures."""
        return self._begun(lambda client: client.get(graph, list(keys), sync=False, retries=_RETRIES))

    def call(self, worker: str | None, function: Callable[..., Any], *arguments: Any) -> Call:
        """Have a function called, which takes less time than a graph, by this worker if it lives."""

        def begin(client: Any, **place: Any) -> Any:
            return client.submit(function, *arguments, pure=False, retries=_RETRIES, **place)

        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return Call(self._begun(lambda client: begin(client, **place)), worker, lambda: self._begun(begin))

    def _begun(self, begin: Callable[[Any], T]) -> T:
        import dask

        client = self.client
        try:
            with dask.config.set(_ANY_SIZE):
                return begin(client)
        except Exception as error:
            raise self._lost(error) or error from None

    def result(self, call: Call) -> Any:
        """Wait for what was asked, and return its result or raise what its task has raised.

        Raises ClusterLostError: no worker is left, the scheduler does not answer, or workers keep dying.
        """
        (future, worker, again), ended, seen = call, threading.Event(), time.monotonic()
        future.add_done_callback(lambda _: ended.set())
        while not ended.wait(_LOOK_SECONDS):
            if self.client.status != "running":
                raise ClusterLostError("the Dask scheduler does not answer (the connection is closed)")
            alive = self.alive()
            seen = time.monotonic() if alive else seen
            if alive and worker is not None and worker not in alive:
                # Where nobody else was there as it died, Dask waits for a worker at its address for ever; else it is computed twice.
                future, worker = again(), None
                future.add_done_callback(lambda _: ended.set())
            if time.monotonic() - seen > _WAIT_SECONDS:
                raise ClusterLostError(f"the cluster has had no Dask worker for {_WAIT_SECONDS:g} s")
        try:
            return future.result(timeout=_ANSWER_SECONDS)
        except Exception as error:
            raise self._lost(error) or error from None

    def alive(self) -> list[str]:
        """Return the addresses of the workers that there are, or were a moment ago."""
        client, now = self.client, time.monotonic()
        if client is not self._looked[0] or now - self._looked[1] > 0.5 * _LOOK_SECONDS:
            try:
                self._looked = client, now, sorted(answer(client.nthreads, CONNECT_SECONDS))
            except Exception as error:
                raise ClusterLostError(f"the Dask scheduler does not answer ({_words(error)})") from None
        return self._looked[2]

    def _lost(self, error: Exception) -> ClusterLostError | None:
        """Return the error of a cluster that is lost; None where this is another one."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return ClusterLostError(f"Dask workers keep dying over the same block: {_words(error)}")
        if isinstance(error, CancelledError):
            return ClusterLostError(f"the Dask cluster has dropped what it was to compute: {_words(error)}")
        return None if self.client.status == "running" else ClusterLostError(f"the Dask scheduler does not answer ({_words(error)})")


#: Dask warns of graphs of more bytes than this, but coefficients have the size that they have.
_ANY_SIZE = {"distributed.admin.large-graph-warning-threshold": 2**62}


def _close(client: Any, cluster: Any, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork, which has the objects and none of their threads
        with suppress(Exception):
            client.close(timeout=CONNECT_SECONDS)
        if cluster is not None:
            close_local(cluster, CONNECT_SECONDS)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@dataclass(frozen=True, eq=False)
class OnDask(Blocks):
    """Blocks of the workers of a cluster.

    Neighbouring blocks that are sent with each request are one task for each worker; others are a task each, where their parts are.
    """

    workers: Workers
    sizes: tuple[int, ...]
    """Of the blocks, so that every worker has about as much."""
    sent: tuple[tuple[Any, ...], ...]
    """What is sent of every block, with each request ..."""
    held: tuple[tuple[Any, ...], ...] = ()
    """... and what workers have of it: names of the graph, and futures."""
    graph: Mapping[Key, Any] = field(default_factory=dict)
    makes: tuple[Callable[[Any, Any], Any], ...] = ()
    """Of the first of these parts and the second they make a block, of that and the third another one, and so on."""
    origin: Any = None
    """As long as it is there, so is what the graph has on workers."""

    @property
    def count(self) -> int:
        return len(self.sizes)

    def connect(self) -> None:
        self.workers.client  # noqa: B018

    def counts(self) -> Mapping[str, int]:
        return dict(self.workers.counts)

    def some(self, chosen: Sequence[int]) -> OnDask:
        sizes, sent = tuple(self.sizes[k] for k in chosen), tuple(self.sent[k] for k in chosen)
        return replace(self, sizes=sizes, sent=sent, held=tuple(self.held[k] for k in chosen) if self.held else ())

    def joined(self, values: Sequence[Any], make: Callable[[Any, Any], Any]) -> OnDask:
        """Values are held by workers where blocks are, and sent with each request where blocks are sent."""
        blocks = replace(self, sizes=tuple(map(len, values)), makes=(*self.makes, make))
        if self.held:
            return blocks.holding(values)
        return replace(blocks, sent=tuple((*parts, value) for parts, value in zip(self.sent, values, strict=True)))

    def holding(self, values: Sequence[Any], build: Callable[[Any], Any] | None = None) -> OnDask:
        """Return the blocks with one more part each: values that are sent to a worker once, or what it builds of them."""
        names: list[Key] = [_new_name("held") for _ in values]
        graph = {name: (_Held.unpacked, _packed(value), build) for name, value in zip(names, values, strict=True)}
        futures = self.workers.compute(graph, names)
        held = self.held or ((),) * self.count
        return replace(self, held=tuple((*parts, future) for parts, future in zip(held, futures, strict=True)))

    def map(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of) -> Iterator[T]:
        calls = self._asked(_Work(self.makes, function, tuple(common)), own)
        for place in range(len(calls)):
            call, calls[place] = calls[place], None  # so that what has been seen is no longer held
            yield from self._received(call)

    def total(self, function: Callable[..., T], common: Sequence[Any] = (), own: Own = nothing_of, add: Callable[[T, T], T] = plus) -> T:
        tree: TreeSum[T] = TreeSum(self.count, add)
        for call in self._asked(_Work(self.makes, function, tuple(common), self.count, add), own):
            tree.put(self._received(call))
        return tree.total()

    def _asked(self, work: _Work, own: Own) -> list[Any]:
        """Have the work done; return the calls that give what it gives for neighbouring blocks, in their order."""
        alive = self.workers.alive()
        runs = _runs(self.sizes, max(1, len(alive)))
        groups = [[k] for k in range(self.count)] if self.held else runs
        packed = _packed(work)
        held = [[list(self.held[k]) if self.held else [] for k in group] for group in groups]
        parts = [_packed([(self.sent[k], own(k)) for k in group]) for group in groups]
        self.workers.counts.update(rounds=1, messages=2 * len(groups), sent=len(packed) + sum(map(len, parts)))
        if not self.graph:
            those = [None] * len(groups) if self.held or not alive else alive  # who has read a file before has it in memory
            tasks = zip(those, groups, held, parts, strict=False)
            return [self.workers.call(worker, _done, packed, group[0], *given) for worker, group, *given in tasks]
        asked = _new_name("work")
        keys: list[Key] = [(asked, group[0]) for group in groups]
        graph = {key: (_done, asked, group[0], *given) for key, group, *given in zip(keys, groups, held, parts, strict=True)}
        if work.add is not None:  # one sum for each worker
            keys = [(asked, "sum", run[0]) for run in runs]
            graph |= {key: (_joined, asked, [(asked, k) for k in run]) for key, run in zip(keys, runs, strict=True)}
        return [Call(future) for future in self.workers.compute({**self.graph, **graph, asked: (bytes, packed)}, keys)]

    def _received(self, call: Call) -> Any:
        packed = self.workers.result(call)
        self.workers.counts["received"] += len(packed)
        return pickle.loads(packed)


def _new_name(what: str) -> str:
    return f"bench_mtl-{what}-{uuid.uuid4().hex}"


def _runs(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Divide blocks into at most `count` runs of neighbours, of about the same size."""
    if len(set(sizes[:-1])) == 1 and sizes[-1] < sizes[0]:  # the rest of a division: others stay with the nodes of the tree
        sizes = [1] * len(sizes)
    total, before = sum(sizes), 0
    runs: list[list[int]] = [[] for _ in range(count)]
    for k, size in enumerate(sizes):
        middle = before + 0.5 * size
        runs[min(count - 1, int(count * middle / total)) if total else 0].append(k)
        before += size
    return [run for run in runs if run]


# What follows runs inside Dask workers.


@dataclass(frozen=True)
class _Work:
    """What is asked of every block: a function's values, or their sum."""

    makes: tuple[Callable[[Any, Any], Any], ...]
    function: Callable[..., Any]
    common: tuple[Any, ...]
    count: int = 0
    """Of all blocks."""
    add: Callable[[Any, Any], Any] | None = None

    def value(self, held: Sequence[Any], sent: Sequence[Any], own: Sequence[Any]) -> Any:
        block, *rest = (*(part.value if isinstance(part, _Held) else part for part in held), *sent)
        for make, part in zip(self.makes, rest, strict=True):
            block = make(block, part)
        return self.function(block, *self.common, *own)


class _Held:
    """A thing that a worker holds, and that is pickled into bytes of its own when it goes to another one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _Held.unpacked, (pickle.dumps(self.value, protocol=5),)

    @classmethod
    def unpacked(cls, packed: bytes, build: Callable[[Any], Any] | None = None) -> _Held:
        with one_blas_thread():
            value = pickle.loads(packed)
            return cls(value if build is None else build(value))


def _done(packed: bytes, first: int, held: Sequence[Sequence[Any]], parts: bytes) -> bytes:
    """Return what is asked of neighbouring blocks, pickled: a list of values, or nodes of the tree of sums."""
    work: _Work = pickle.loads(packed)
    try:
        with one_blas_thread():
            values = (work.value(there, *here) for there, here in zip(held, pickle.loads(parts), strict=True))
            return _packed(list(values)) if work.add is None else _nodes(work, [leaves(values, first)])
    except MemoryError as error:
        raise MemoryError(f"a Dask worker has not enough memory for a shard: {error}") from None


def _joined(packed: bytes, parts: Sequence[bytes]) -> bytes:
    """Return the sum of neighbouring nodes of the tree."""
    return _nodes(pickle.loads(packed), map(pickle.loads, parts))


def _nodes(work: _Work, parts: Any) -> bytes:
    assert work.add is not None
    tree: TreeSum[Any] = TreeSum(work.count, work.add)
    for part in parts:
        tree.put(part)
    return _packed(list(tree.nodes.items()))


def _packed(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)
