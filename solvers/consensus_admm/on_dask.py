"""The blocks on workers of a Dask cluster. States between iterations stay in this process, so that a worker may die at any time.

Dask unpacks arrays at any address of a message. Products with such arrays bypass BLAS and have other last bits, so all that travels is
pickled here, which puts every array into memory of its own.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from bench_mtl.core.dask_cluster import CONNECT_SECONDS, ClusterLostError, client_at, client_of, close_local, local_cluster
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.solvers.admm.blocks import Block, State
from bench_mtl.solvers.consensus_admm.division import Piece

#: The largest mean number of times that a block may lose its worker within one iteration.
_MOST_LOSSES = 10

#: Seconds between two checks for workers that have died while steps are under way.
_CHECK_SECONDS = 0.5

#: Seconds to wait for a worker when there is none.
_WAIT_SECONDS = 60.0


class DaskBlocks:
    """A call of all blocks. Every block has one worker, to which its examples are sent once; when that dies, another one gets them."""

    def __init__(self, pieces: Sequence[Piece], client: Any) -> None:
        self._pieces, self._client = pieces, client
        self._workers: list[str | None] = [None] * len(pieces)
        self._blocks: list[Any] = [None] * len(pieces)

    def __call__(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[State]:
        """Return block_q.method(*arguments_q) for every block q; calls that are lost with a worker are made again on another one.

        Raises
        ------
        ClusterLostError : no worker is left, the scheduler does not answer, or workers die too often.
        """
        found: dict[int, State] = {}
        tasks: dict[int, Any] = {}
        losses = 0
        bell = threading.Event()  # rings when a call has ended
        while len(found) < len(self._pieces):
            alive = self._alive()
            for q in (q for q in range(len(self._pieces)) if q not in found):
                if self._workers[q] not in alive:
                    self._assign(q, alive)
                elif q in tasks:
                    continue
                tasks[q] = self._submit(_call, self._blocks[q], method, _pickled(arguments[q]), workers=[self._workers[q]])
                tasks[q].add_done_callback(lambda _: bell.set())
            if all(task.status == "pending" for task in tasks.values()):
                bell.wait(_CHECK_SECONDS)
            bell.clear()
            for q in [q for q, task in tasks.items() if task.status != "pending"]:
                answer = self._answer(tasks.pop(q))
                if isinstance(answer, Exception):
                    raise answer
                if answer is not None:
                    found[q] = answer
                    continue
                self._workers[q] = None
                losses += 1
                if losses > _MOST_LOSSES * len(self._pieces):
                    raise ClusterLostError(f"blocks have lost their Dask workers {losses} times in one iteration")
        return [found[q] for q in range(len(self._pieces))]

    def _submit(self, function: Callable[..., Any], *arguments: Any, workers: Sequence[str | None]) -> Any:
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # states are large, but never twice the same
            return self._client.submit(function, *arguments, workers=workers, pure=False)

    @staticmethod
    def _answer(task: Any) -> Any:
        """Return the result of a task, or None where it is lost. `_call` returns its own exceptions, so any other is the cluster's."""
        if task.status != "finished":
            return None
        try:
            return pickle.loads(task.result(timeout=CONNECT_SECONDS))
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None

    def _assign(self, q: int, alive: list[str]) -> None:
        """Send a block to the living worker that has the fewest, the first of these in the order of addresses."""
        worker = min(alive, key=lambda address: (self._workers.count(address), address))
        self._workers[q] = worker
        piece = self._client.scatter([_pickled(self._pieces[q])], workers=[worker], hash=False)[0]
        self._blocks[q] = self._submit(_block, piece, workers=[worker])

    def _alive(self) -> list[str]:
        """Return the addresses of the living workers, as soon as there is one."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                workers = sorted(self._client.nthreads())
            except Exception as error:
                raise ClusterLostError(f"the Dask scheduler does not answer ({' '.join(str(error).split())})") from None
            if workers:
                return workers
            if time.monotonic() > deadline:
                raise ClusterLostError(f"the cluster has had no Dask worker for {_WAIT_SECONDS:g} s")
            time.sleep(0.1)


@contextmanager
def blocks_on_dask(pieces: Sequence[Piece], workers: int, address: str) -> Iterator[DaskBlocks]:
    """Yield a call of all blocks by `workers` workers of a new cluster ("local"), or by all workers of the scheduler at this address."""
    with ExitStack() as stack:
        if address == "local":
            cluster = local_cluster("backend dask", min(workers, len(pieces)), _MOST_LOSSES)
            stack.callback(close_local, cluster, CONNECT_SECONDS)
            client = client_of(cluster)
        else:
            client = client_at("cluster", address)
        stack.callback(client.close)
        yield DaskBlocks(pieces, client)


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=4)


# What follows runs inside Dask workers.


def _block(piece: bytes) -> Block:
    with one_blas_thread():
        block: Block = pickle.loads(piece).block()
        return block


def _call(block: Block, method: str, arguments: bytes) -> bytes:
    """Return the pickled state, or the pickled exception."""
    try:
        with one_blas_thread():
            return _pickled(getattr(block, method)(*pickle.loads(arguments)))
    except Exception as error:
        return _pickled(error)
