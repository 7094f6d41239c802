"""Blocks of rows of a Dask array or frame, and what is computed of each of them: by the workers of a client, or here, one after another.

Which of the two it is, and who computes which block, does not show in the results: all that goes to a worker or comes from one is pickled
here, since products with arrays at any address of a message have other last bits, and sums are taken over the tree of
`bench_mtl.core.tree_sums`, whose nodes are tasks. What is lost with a worker Dask computes again, from the graph.
"""

from __future__ import annotations

import pickle
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from bench_mtl.core.dask_cluster import CONNECT_SECONDS, ClusterLostError, answer, require_same_code
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.tree_sums import TreeSum

T = TypeVar("T")

#: A node of the graph, by its name.
Key = Hashable

#: Seconds between two looks at a cluster that computes.
_LOOK_SECONDS = 1.0
#: Seconds to wait for a worker when there is none.
_WAIT_SECONDS = 60.0


def is_dask(value: Any) -> bool:
    """Whether `value` is a collection of Dask, which nobody needs to import to know that."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr")


def is_frame(collection: Any) -> bool:
    """Whether a collection of Dask is a frame, or a series."""
    return hasattr(type(collection), "to_dask_array")  # of the class: an object of Dask may have any attribute


def require_array_or_frame(name: str, collection: Any) -> None:
    """Raise InputError where a collection of Dask is neither an array nor a frame."""
    if not is_frame(collection) and not hasattr(type(collection), "chunks"):
        raise InputError(f"{name} must be an array or a frame of Dask, not {type(collection).__name__}")


def active_client() -> Any:
    """Return the client that Dask would compute with, None where there is none."""
    if "distributed" not in sys.modules:
        return None
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        return None


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """The blocks of a collection, in order, and what is kept beside each of them."""

    collection: Any
    """What the blocks are of: as long as it is there, so is what it holds on workers."""
    graph: Mapping[Key, Any]
    keys: tuple[Key, ...]
    client: Any
    """None where this process computes."""
    kept: tuple[Any, ...]
    """The values themselves; futures of pickled ones where there is a client."""

    @classmethod
    def of(cls, name: str, collection: Any) -> DaskBlocks:
        """Return the blocks of an array, whose columns are then in one chunk, or the partitions of a frame, on the client that is active.

        Parameters
        ----------
        name : how messages call the collection

        Raises
        ------
        InputError : another collection; one that a client holds which is not active; the workers have other code than this process.
        """
        from dask.core import flatten
        from dask.utils import ensure_dict

        require_array_or_frame(name, collection)
        if not is_frame(collection) and collection.ndim == 2 and len(collection.chunks[1]) > 1:
            collection = collection.rechunk({1: -1})
        # `dask.optimize` of Dask 2026.8 takes filtered frames for unfiltered ones.
        quick = collection.optimize() if is_frame(collection) else collection
        whole = ensure_dict(quick.__dask_graph__())
        keys = tuple(flatten(quick.__dask_keys__()))
        held = {key: value for key, value in whole.items() if type(value).__name__ == "Future"}  # which optimisation may take for known
        optimised = whole if quick is not collection else ensure_dict(quick.__dask_optimize__(quick.__dask_graph__(), list(keys)))
        graph = {**held, **optimised}
        client = active_client()
        if client is None and held:
            raise InputError(f"{name} is held by the workers of a Dask client that is not active here: fit within client.as_current()")
        if client is not None:
            require_same_code(name, client, None)
        return cls(collection, graph, keys, client, (None,) * len(keys))

    def select(self, places: Sequence[int]) -> DaskBlocks:
        """Return some of the blocks."""
        return replace(self, keys=tuple(self.keys[k] for k in places), kept=tuple(self.kept[k] for k in places))

    def keeping(self, values: Sequence[Any]) -> DaskBlocks:
        """Return the blocks with a value beside each, which is sent to workers once."""
        if self.client is None:
            return replace(self, kept=tuple(values))
        named = {_new_name("kept"): pickle.dumps(value, protocol=5) for value in values}
        return replace(self, kept=tuple(self._computing({key: (bytes, value) for key, value in named.items()}, list(named))))

    def each(
        self, function: Callable[..., T], common: Sequence[Any] = (), own: Callable[[int], tuple[Any, ...]] = lambda k: ()
    ) -> Iterator[T]:
        """Yield ``function(block, kept, *common, *own(k))`` for every block k, in their order.

        Raises
        ------
        ClusterLostError : no worker is left, the scheduler does not answer, or workers keep dying.
        Exception : what the function raises, or the graph.
        """
        if self.client is None:
            for k in range(len(self.keys)):
                yield self._here(k, function, common, own)
            return
        graph, leaves = self._tasks(function, common, own)
        futures = deque(self._computing(graph, leaves))
        while futures:
            yield pickle.loads(self._result(futures.popleft()))

    def total(
        self, function: Callable[..., T], common: Sequence[Any], own: Callable[[int], tuple[Any, ...]], add: Callable[[T, T], T]
    ) -> T:
        """Return the sum of what `each` gives, over the tree of `bench_mtl.core.tree_sums`.

        Raises
        ------
        As `each` does.
        """
        if self.client is None:
            tree = TreeSum(len(self.keys), add)
            for k in range(len(self.keys)):
                tree.put(self._here(k, function, common, own), k)
            return tree.total()
        graph, leaves = self._tasks(function, common, own)
        (future,) = self._computing(graph, [_with_sums(graph, leaves, pickle.dumps(add, protocol=5))])
        found: T = pickle.loads(self._result(future))
        return found

    # In this process

    @cached_property
    def _single_graphs(self) -> list[dict[Key, Any]]:
        """What each block takes, and no more."""
        from dask.optimization import cull

        return [cull(self.graph, [key])[0] for key in self.keys]

    def _here(self, k: int, function: Callable[..., T], common: Sequence[Any], own: Callable[[int], tuple[Any, ...]]) -> T:
        from dask.local import get_sync

        with one_blas_thread():  # as workers do
            return function(get_sync(self._single_graphs[k], self.keys[k]), self.kept[k], *common, *own(k))

    # With a client

    def _tasks(
        self, function: Callable[..., T], common: Sequence[Any], own: Callable[[int], tuple[Any, ...]]
    ) -> tuple[dict[Key, Any], list[Key]]:
        """Return a graph, and the keys in it of the pickled results of the blocks."""
        work, prefix = _new_name("work"), _new_name("block")
        graph = {**self.graph, work: (bytes, pickle.dumps((function, tuple(common)), protocol=5))}
        leaves: list[Key] = []
        for k, (block, kept) in enumerate(zip(self.keys, self.kept, strict=True)):
            leaves.append((prefix, k))
            beside = None
            if kept is not None:
                beside = kept.key
                graph[beside] = kept
            graph[prefix, k] = (_answered, block, work, pickle.dumps(own(k), protocol=5), beside)
        return graph, leaves

    def _computing(self, graph: Mapping[Key, Any], keys: Sequence[Key]) -> list[Any]:
        """Return futures of some keys of a graph."""
        import dask

        try:
            with dask.config.set(_ANY_SIZE):
                futures: list[Any] = self.client.get(graph, list(keys), sync=False)
        except Exception as error:
            raise self._lost(error) or error from None
        return futures

    def _result(self, future: Any) -> Any:
        """Return the result of a future, or raise what its task has raised."""
        deadline = None
        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except Exception as error:
                if future.status != "pending":
                    if not isinstance(error, TimeoutError) or future.status == "error":
                        raise self._lost(error) or error from None
                    continue  # it has ended just now
                if not isinstance(error, TimeoutError):
                    raise self._lost(error) or error from None
            if self.client.status != "running":
                raise ClusterLostError("the Dask scheduler does not answer (the connection is closed)")
            if self._has_workers():
                deadline = None
            elif deadline is None:
                deadline = time.monotonic() + _WAIT_SECONDS
            elif time.monotonic() > deadline:
                raise ClusterLostError(f"the cluster has had no Dask worker for {_WAIT_SECONDS:g} s")

    def _has_workers(self) -> bool:
        try:
            return bool(answer(self.client.nthreads, CONNECT_SECONDS))
        except Exception as error:
            raise ClusterLostError(f"the Dask scheduler does not answer ({' '.join(str(error).split())})") from None

    def _lost(self, error: Exception) -> ClusterLostError | None:
        """Return the error of a cluster that is lost; None where this is another one."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        words = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, KilledWorker):
            return ClusterLostError(f"Dask workers keep dying over the same block: {words}")
        if isinstance(error, CancelledError):
            return ClusterLostError(f"the Dask cluster has dropped what it was to compute: {words}")
        if self.client.status != "running":
            return ClusterLostError(f"the Dask scheduler does not answer ({words})")
        return None


#: Dask warns of graphs of more bytes than this, but coefficients have the size that they have.
_ANY_SIZE = {"distributed.admin.large-graph-warning-threshold": 2**62}


def _new_name(what: str) -> str:
    return f"bench_mtl-{what}-{uuid.uuid4().hex}"


def _with_sums(graph: dict[Key, Any], leaves: list[Key], add: bytes) -> Key:
    """Add the nodes of the tree of `bench_mtl.core.tree_sums` to a graph; return the key of the root."""
    prefix, adding = _new_name("sum"), _new_name("add")
    graph[adding] = (bytes, add)
    level, nodes = 0, leaves
    while len(nodes) > 1:
        level += 1
        above = list(nodes[::2])  # a node without a neighbour is passed up as it is
        for place in range(len(nodes) // 2):
            above[place] = (prefix, level, place)
            graph[above[place]] = (_added, nodes[2 * place], nodes[2 * place + 1], adding)
        nodes = above
    return nodes[0]


# What follows runs inside Dask workers.


def _answered(block: Any, work: bytes, own: bytes, kept: bytes | None) -> bytes:
    function, common = pickle.loads(work)
    with one_blas_thread():
        return pickle.dumps(function(block, None if kept is None else pickle.loads(kept), *common, *pickle.loads(own)), protocol=5)


def _added(one: bytes, other: bytes, add: bytes) -> bytes:
    return pickle.dumps(pickle.loads(add)(pickle.loads(one), pickle.loads(other)), protocol=5)
