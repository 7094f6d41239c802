"""Blocks on the workers of a Dask cluster. What a block has between iterations stays here, so that a worker may die at any time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from bench_mtl.core.dask_cluster import CONNECT_SECONDS, client_at, client_of, close_local, local_cluster
from bench_mtl.core.errors import BenchError
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.solvers.admm.blocks import Block, Setting, State
from bench_mtl.solvers.consensus_admm.division import Division, Piece

#: How often a block may lose its worker within one iteration, on average.
_MOST_LOSSES = 10

#: How often to look for workers that are gone while steps are under way.
_LOOK_SECONDS = 0.5

#: How long to wait for a worker when there is none.
_WAIT_SECONDS = 60.0


class ClusterLostError(BenchError):
    """There is no worker to go on with."""


class DaskTeam:
    """Block q has one worker as its home, to which its data are sent once, and again to another one when that dies."""

    def __init__(self, division: Division, pieces: Sequence[Piece], client: Any) -> None:
        self._division, self._pieces, self._client = division, pieces, client
        self._homes: list[str | None] = [None] * len(pieces)
        self._blocks: list[Any] = [None] * len(pieces)

    def start(self, weights: Array, setting: Setting) -> list[State]:
        return self._all(_start, lambda q: (weights, setting))

    def step(self, states: Sequence[State], targets: Sequence[Array], setting: Setting) -> list[State]:
        return self._all(_step, lambda q: (states[q], targets[q], setting))

    def joined(self, duals: Sequence[Array]) -> Array:
        return self._division.joined(duals)

    def _all(self, function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]]) -> list[State]:
        """The same call for every block; what is lost with a worker is asked of another one."""
        from distributed import wait

        found: dict[int, State] = {}
        tasks: dict[int, Any] = {}
        losses = 0
        while len(found) < len(self._pieces):
            alive = self._alive()
            for q in (q for q in range(len(self._pieces)) if q not in found):
                if self._homes[q] not in alive:
                    self._settle(q, alive)
                elif q in tasks:
                    continue
                tasks[q] = self._submit(function, self._blocks[q], *arguments(q), workers=[self._homes[q]])
            with suppress(Exception):  # time is up, or a task was lost, which is seen below
                wait(list(tasks.values()), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
            for q in [q for q, task in tasks.items() if task.status != "pending"]:
                answer = self._answer(tasks.pop(q))
                if isinstance(answer, Exception):
                    raise answer
                if answer is not None:
                    found[q] = answer
                    continue
                self._homes[q] = None
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
        """What a task has returned; None where that is lost. Tasks hand over their own exceptions, so that any other is the cluster's."""
        if task.status != "finished":
            return None
        try:
            return task.result(timeout=CONNECT_SECONDS)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return None

    def _settle(self, q: int, alive: list[str]) -> None:
        """Give a block a home among the workers that are alive: the one that has fewest, the first of these."""
        home = min(alive, key=lambda worker: (self._homes.count(worker), worker))
        self._homes[q] = home
        piece = self._client.scatter([self._pieces[q]], workers=[home], hash=False)[0]
        self._blocks[q] = self._submit(_block, piece, workers=[home])

    def _alive(self) -> list[str]:
        """Addresses of the workers, once there is one."""
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
def dask_team(division: Division, pieces: Sequence[Piece], workers: int, address: str) -> Iterator[DaskTeam]:
    """On a cluster of our own ("local") of so many workers, at most one a block, or on all workers of the one with this scheduler."""
    with ExitStack() as stack:
        if address == "local":
            cluster = local_cluster("backend dask", min(workers, len(pieces)), _MOST_LOSSES)
            stack.callback(close_local, cluster, CONNECT_SECONDS)
            client = client_of(cluster)
        else:
            client = client_at("cluster", address)
        stack.callback(client.close)
        yield DaskTeam(division, pieces, client)


# What follows runs inside Dask workers.


def _block(piece: Piece) -> Block:
    with one_blas_thread():
        return piece.block()


def _start(block: Block, weights: Array, setting: Setting) -> State | Exception:
    try:
        with one_blas_thread():
            return block.start(weights, setting)
    except Exception as error:
        return error


def _step(block: Block, state: State, target: Array, setting: Setting) -> State | Exception:
    try:
        with one_blas_thread():
            return block.step(state, target, setting)
    except Exception as error:
        return error
