"""Blocks on this machine: each lane has some of them and takes their steps one after the other, all lanes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Protocol, TypeVar

from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.solvers.admm.blocks import Setting, State
from bench_mtl.solvers.consensus_admm.division import Division, Piece

T = TypeVar("T")


class Lane(Protocol):
    """Has blocks, known by their numbers."""

    def start(self, number: int, weights: Array, setting: Setting) -> State: ...

    def step(self, number: int, state: State, target: Array, setting: Setting) -> State: ...


class Here:
    """A lane of this process, which has set one BLAS thread."""

    def __init__(self, pieces: dict[int, Piece]) -> None:
        self._blocks = {number: piece.block() for number, piece in pieces.items()}

    def start(self, number: int, weights: Array, setting: Setting) -> State:
        return self._blocks[number].start(weights, setting)

    def step(self, number: int, state: State, target: Array, setting: Setting) -> State:
        return self._blocks[number].step(state, target, setting)


class LaneTeam:
    """Block q belongs to lane q modulo their number."""

    def __init__(self, division: Division, lanes: Sequence[Lane], pool: ThreadPoolExecutor | None) -> None:
        self._division, self._lanes, self._pool = division, lanes, pool

    def start(self, weights: Array, setting: Setting) -> list[State]:
        return self._all(lambda lane, q: lane.start(q, weights, setting))

    def step(self, states: Sequence[State], targets: Sequence[Array], setting: Setting) -> list[State]:
        return self._all(lambda lane, q: lane.step(q, states[q], targets[q], setting))

    def joined(self, duals: Sequence[Array]) -> Array:
        return self._division.joined(duals)

    def _all(self, call: Callable[[Lane, int], State]) -> list[State]:
        blocks, lanes = len(self._division.rows), len(self._lanes)

        def of_lane(number: int) -> list[State]:
            return [call(self._lanes[number], q) for q in range(number, blocks, lanes)]

        found = together(self._pool, [lambda number=number: of_lane(number) for number in range(lanes)])  # type: ignore[misc]
        return [found[q % lanes][q // lanes] for q in range(blocks)]


def together(pool: ThreadPoolExecutor | None, calls: Sequence[Callable[[], T]]) -> list[T]:
    """What all calls return, in their order, once all have ended, also where one fails."""
    if pool is None:
        return [call() for call in calls]
    futures = [pool.submit(call) for call in calls]
    wait(futures)
    return [future.result() for future in futures]


@contextmanager
def thread_team(division: Division, pieces: Sequence[Piece], workers: int) -> Iterator[LaneTeam]:
    """Lanes in threads of this process; one alone in the thread that asks."""
    count = min(workers, len(pieces))
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())  # once: lanes that change it at every step take half as long again with OpenBLAS
        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="consensus_admm")) if count > 1 else None
        mine = [dict(list(enumerate(pieces))[number::count]) for number in range(count)]
        lanes = together(pool, [lambda own=own: Here(own) for own in mine])  # type: ignore[misc]
        yield LaneTeam(division, lanes, pool)
