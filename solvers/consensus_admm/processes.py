"""The blocks in processes, which get their examples once."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from bench_mtl.core.errors import BenchError
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.solvers.admm.blocks import Block, State
from bench_mtl.solvers.admm.group import CallBlocks
from bench_mtl.solvers.consensus_admm.division import Piece

#: Seconds that a process whose pipe is closed may take to end.
_EXIT_SECONDS = 2.0


class BlockProcessDiedError(BenchError):
    """A process that has blocks of examples has died."""


class BlockProcess:
    """A process that has some of the blocks and ends with this one. Only one thread at a time may use it.

    It is no process of `multiprocessing`, whose children import the user's main module again.
    """

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        command = f"from bench_mtl.solvers.consensus_admm.processes import serve; serve({theirs.fileno()}, {os.getpid()})"
        paths = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", command],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": paths},
            )

    def call(self, method: str, number: int, arguments: tuple[Any, ...]) -> Any:
        """Return block_number.method(*arguments), or make the block where the method is "make".

        Raises
        ------
        BlockProcessDiedError : the process is no more.
        """
        try:
            self._pipe.send((method, number, arguments))
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise BlockProcessDiedError(f"the process {self._process.pid} that had some of the blocks died") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def blocks_in_processes(pieces: Sequence[Piece], workers: int) -> Iterator[CallBlocks]:
    """Yield a call of all blocks by `workers` processes, at most one for every block; block q belongs to process q modulo their number."""
    count = min(workers, len(pieces))
    with ExitStack() as stack:
        processes = []
        for _ in range(count):
            processes.append(BlockProcess())
            stack.callback(processes[-1].close)
        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="consensus_admm"))

        def call(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[State]:
            def call_own(p: int) -> list[State]:
                return [processes[p].call(method, q, arguments[q]) for q in range(p, len(pieces), count)]

            found = list(pool.map(call_own, range(count)))
            return [found[q % count][q // count] for q in range(len(pieces))]

        call("make", [(piece,) for piece in pieces])
        yield call


# What follows runs in the processes.


def serve(pipe_fd: int, parent: int) -> None:
    """Answer the calls of a `BlockProcess` until its pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    if sys.platform == "linux":  # elsewhere the closed pipe ends this process
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it was asked for
            os._exit(1)
    pipe, blocks = Connection(pipe_fd), dict[int, Block]()
    with contextlib.suppress(EOFError, OSError), one_blas_thread():
        while True:
            method, number, arguments = pipe.recv()
            answer: Any = None
            try:
                if method == "make":
                    blocks[number] = arguments[0].block()
                else:
                    answer = getattr(blocks[number], method)(*arguments)
            except Exception as error:
                answer = error
            pipe.send(answer)
