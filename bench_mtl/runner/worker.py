"""The process in which cases run: kept warm, told what to run through a pipe, killed from outside when it must be."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import signal
import sys
from multiprocessing.connection import Connection

from bench_mtl.registry import load_registry
from bench_mtl.runner.gathered import TAKEN, Message
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.memory import peak_mib
from bench_mtl.runner.setting import Setting

#: Names the variable by which a worker and all that it starts are known.
MARK = "BENCH_MTL_WORKER"


def serve(pipe_fd: int, deadline_fd: int, parent: int) -> None:
    """Serve cases until the pipe closes.

    First receives a `Setting` and sends the environment. Then answers ("run", case) with the
    messages of `bench_mtl.runner.gathered`, and ("check", instances) with what is wrong with them, or None.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    _stay_in_reach(parent)
    faulthandler.enable()  # the parent keeps the last lines of standard error
    pipe, deadline = Connection(pipe_fd), SharedDeadline(deadline_fd)
    # A child that a solver forks must not be able to talk in the name of the run, or to move its deadline.
    os.register_at_fork(after_in_child=pipe.close)
    os.register_at_fork(after_in_child=deadline.let_go)
    setting: Setting = pipe.recv()
    if setting.processors is not None:
        os.sched_setaffinity(0, setting.processors)
    runner = CaseRunner(load_registry(setting.plugins), setting.data_dir)
    pipe.send(setting.environment())
    while True:
        try:
            what, content = pipe.recv()
        except EOFError:
            return
        if what == "check":
            pipe.send(next(filter(None, map(runner.refusal, content)), None))
            continue
        pipe.send(TAKEN)
        record = runner.run(content, pipe.send, deadline)
        message: Message = ("record", record, peak_mib())
        pipe.send(message)


class SharedDeadline:
    """A deadline (see `bench_mtl.clock.Deadline`) in memory that two processes share."""

    def __init__(self, fd: int) -> None:
        self._cell = ctypes.c_double.from_buffer(mmap.mmap(fd, mmap.PAGESIZE))

    @property
    def value(self) -> float:
        return self._cell.value

    @value.setter
    def value(self, value: float) -> None:
        self._cell.value = value

    def let_go(self) -> None:
        """Share it no longer."""
        self._cell = ctypes.c_double(0.0)


def _stay_in_reach(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies, however it dies, and to leave it what its children leave behind.

    Elsewhere the closed pipe ends it.
    """
    if sys.platform == "linux":
        set_death_signal, set_child_subreaper = 1, 36
        libc = ctypes.CDLL(None)
        libc.prctl(set_death_signal, signal.SIGKILL)
        libc.prctl(set_child_subreaper, 1)
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)
