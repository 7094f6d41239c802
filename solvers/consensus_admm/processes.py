"""Lanes in processes of their own, which get their blocks once."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from bench_mtl.core.errors import BenchError
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.solvers.admm.blocks import Setting, State
from bench_mtl.solvers.consensus_admm.division import Division, Piece
from bench_mtl.solvers.consensus_admm.lanes import Here, LaneTeam, together

#: How long a process whose pipe is closed may take to end.
_PARTING_SECONDS = 2.0


class LaneDiedError(BenchError):
    """A process with blocks of examples is no more."""


class There:
    """A lane in a process that this one has started, which ends with it. Belongs to one thread at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        paths = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    f"from bench_mtl.solvers.consensus_admm.processes import serve; serve({theirs.fileno()}, {os.getpid()})",
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": paths},
            )
        self._pipe = Connection(ours.detach())

    def keep(self, pieces: dict[int, Piece]) -> None:
        """Send its blocks."""
        self._asked("keep", pieces)

    def start(self, number: int, weights: Array, setting: Setting) -> State:
        return self._asked("start", number, weights, setting)

    def step(self, number: int, state: State, target: Array, setting: Setting) -> State:
        return self._asked("step", number, state, target, setting)

    def close(self) -> None:
        self._pipe.close()
        try:
            self._process.wait(_PARTING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _asked(self, *request: Any) -> Any:
        try:
            self._pipe.send(request)
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise LaneDiedError(f"the process {self._process.pid} that had some of the blocks died") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


@contextmanager
def process_team(division: Division, pieces: Sequence[Piece], workers: int) -> Iterator[LaneTeam]:
    """Lanes in as many processes as there are workers, at most one a block."""
    count = min(workers, len(pieces))
    with ExitStack() as stack:
        lanes = []
        for _ in range(count):
            lanes.append(There())
            stack.callback(lanes[-1].close)
        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="consensus_admm"))
        mine = [dict(list(enumerate(pieces))[number::count]) for number in range(count)]
        together(pool, [lambda lane=lane, own=own: lane.keep(own) for lane, own in zip(lanes, mine, strict=True)])  # type: ignore[misc]
        yield LaneTeam(division, lanes, pool)


# What follows runs in the processes.


def serve(pipe_fd: int, parent: int) -> None:
    """Answer requests until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    if sys.platform == "linux":  # elsewhere the closed pipe ends this process
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it was asked for
            os._exit(1)
    pipe = Connection(pipe_fd)
    lane: Here | None = None
    with contextlib.suppress(EOFError, OSError), one_blas_thread():
        while True:
            what, *arguments = pipe.recv()
            answer: Any = None
            try:
                if what == "keep":
                    lane = Here(*arguments)
                else:
                    answer = getattr(lane, what)(*arguments)
            except Exception as error:
                answer = error
            pipe.send(answer)
