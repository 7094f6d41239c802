"""The process in which cases run: kept warm, told what to run through a pipe, killed from outside when it must be."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import mmap
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np

from bench_mtl.core.types import Record, Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.runner.channel import WorkerEnd
from bench_mtl.runner.gathered import TAKEN, WARM_UP, Message
from bench_mtl.runner.inprocess import CaseRunner, Ran
from bench_mtl.runner.job import run_job
from bench_mtl.runner.memory import peak_mib, resident_mib
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import begin

#: What a run may still hold when it is over, beyond what was there when it began: caches of libraries and the like.
_KEPT_MIB = 50.0


def serve(pipe_fd: int, deadline_fd: int, parent: int) -> None:
    """Serve cases until the pipe closes.

    First receives a `Setting` and sends ("environment", it). Then answers ("run", case or job) with the messages of
    `bench_mtl.runner.gathered`, ("warm", name and options of a solver) with ("warmed",), and ("check", instance) with ("mistake", what is
    wrong with it, or None). What it sends are data in the form of `bench_mtl.runner.wire`.
    """
    begin(parent)
    faulthandler.enable()  # the parent keeps the last lines of standard error
    pipe, deadline = WorkerEnd(pipe_fd), SharedDeadline(deadline_fd)
    # A child that a solver forks must not be able to talk in the name of the run, or to move its deadline.
    os.register_at_fork(after_in_child=pipe.close)
    os.register_at_fork(after_in_child=deadline.detach)
    setting: Setting = pipe.receive()
    environment = dict(setting.environment())
    runner = CaseRunner(load_registry(setting.plugins, setting.solvers_of), setting.data_dir)
    pipe.send(("environment", environment))
    while True:
        try:
            what, content = pipe.receive()
        except EOFError:
            return
        if what == "check":
            pipe.send(("mistake", runner.find_mistake(content)))
            continue
        if what == "warm":
            pipe.send(TAKEN)
            runner.warm_up(*content)
            pipe.send(("warmed",))
            continue
        pipe.send(TAKEN)
        before = _State()
        try:
            if isinstance(content, Case):
                ran = runner.run(content, before.watching(pipe.send), deadline)
            else:
                ran = run_job(content, setting.data_dir, pipe.send)
        except BaseException as error:  # even a KeyboardInterrupt can only come from the solver here
            ran = Ran(Record(Status.ERROR, describe(error)))
        tell: Callable[[Message], None] = pipe.send
        tell(("record", ran.record, peak_mib()))
        # What a job loads and compiles on its way stays, and is no leftover of a solver that somebody plugged in.
        tell(("patterns", ran.patterns(), isinstance(content, Case) and (ran.is_void or before.has_leftovers())))


class _State:
    """What a run may change for the runs after it in the same process."""

    def __init__(self) -> None:
        self._measure()

    def _measure(self) -> None:
        self._settings = self._now()
        self._resident_mib = resident_mib(os.getpid())

    def watching(self, tell: Callable[[Message], None]) -> Callable[[Message], None]:
        """`tell`, which measures anew when the problem is built, and when all is compiled: what that has loaded may stay."""

        def told(message: Message) -> None:
            if message[0] == "problem" or message[:2] == ("phase", WARM_UP):
                self._measure()
            tell(message)

        return told

    def has_leftovers(self) -> bool:
        """Whether the run holds on to memory, has left threads or a timer, or has changed a setting of the whole process."""
        return self._holds_memory() or threading.active_count() > 1 or self._now() != self._settings

    def _holds_memory(self) -> bool:
        most = self._resident_mib + _KEPT_MIB
        if resident_mib(os.getpid()) <= most:
            return False
        gc.collect()  # what is garbage, or freed and only not given back yet, is not held
        if sys.platform == "linux":
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)
        return resident_mib(os.getpid()) > most

    @staticmethod
    def _now() -> tuple[object, ...]:
        try:
            place = os.getcwd()
        except OSError:
            place = ""
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
        timer = signal.getitimer(signal.ITIMER_REAL)[0] > 0.0
        processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        return place, handlers, timer, processors, np.geterr(), list(warnings.filters)


class SharedDeadline:
    """A deadline (see `bench_mtl.engine.clock.Deadline`) in memory that two processes share."""

    def __init__(self, fd: int) -> None:
        self._cells = (ctypes.c_double * 2).from_buffer(mmap.mmap(fd, mmap.PAGESIZE))

    @property
    def value(self) -> float:
        return float(self._cells[0])

    @value.setter
    def value(self, value: float) -> None:
        self._cells[0] = value

    @property
    def compiling(self) -> float:
        return float(self._cells[1])

    @compiling.setter
    def compiling(self, seconds: float) -> None:
        self._cells[1] = seconds

    def detach(self) -> None:
        """Share it no longer."""
        self._cells = (ctypes.c_double * 2)()
