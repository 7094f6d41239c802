"""The blocks in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from bench_mtl.core.threads import one_blas_thread
from bench_mtl.solvers.admm.blocks import State
from bench_mtl.solvers.admm.group import CallBlocks
from bench_mtl.solvers.consensus_admm.division import Piece


@contextmanager
def blocks_in_threads(pieces: Sequence[Piece], workers: int) -> Iterator[CallBlocks]:
    """Yield a call of all blocks by `workers` threads; a single worker is the calling thread."""
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())  # once: threads that set it at every step take half as long again with OpenBLAS
        run: Callable[..., Iterator[Any]] = map
        if min(workers, len(pieces)) > 1:
            run = stack.enter_context(ThreadPoolExecutor(min(workers, len(pieces)), thread_name_prefix="consensus_admm")).map
        blocks = list(run(Piece.block, pieces))

        def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[State]:
            return list(run(lambda block, given: getattr(block, method)(*given), blocks, arguments))

        yield call
