"""Solvers that leave something behind in their process for the runs after them."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import decimal
import faulthandler
import gc
import io
import locale
import os
import platform
import resource
import signal
import socket
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from bench_mtl.core.types import Iterate
from bench_mtl.model.protocols import Answer, OneShotSolver

_kept: list[Any] = []


@dataclass(frozen=True)
class Leaves(OneShotSolver):
    """Takes 120 MiB for a while, leaves what `leaves` says, and says what process it was called in. `number` only tells cases apart."""

    leaves: str = "nothing"
    number: int = 0

    name = "leaves"
    requires = frozenset()
    tolerances = (1e-3,)

    @property
    def label(self) -> str:
        return f"{self.leaves}_{self.number}"

    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        work = np.ones(120 * 2**17)
        _LEFT[self.leaves](work)
        return Answer(Iterate(program.zero()), False, "the zero point", info={"pid": os.getpid()})


def _spin() -> None:
    while True:
        pass


_libc = ctypes.CDLL(None, use_errno=True)


def _limit(name: str, soft: int) -> None:
    number = getattr(resource, name)
    resource.setrlimit(number, (soft, resource.getrlimit(number)[1]))


def _posix_timer() -> None:
    timer = ctypes.c_void_p()
    assert _libc.timer_create(1, None, ctypes.byref(timer)) == 0


def _traced(*_: Any) -> None:
    """Says that it need not be told more."""


def _heard(*_: Any) -> None:
    """A handler of a signal."""


def _blas_threads() -> None:
    from threadpoolctl import ThreadpoolController

    for library in ThreadpoolController().lib_controllers:
        library.set_num_threads(7)


def _finder() -> None:
    class Finder:
        def find_spec(self, *_: Any) -> None:
            return None

    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]


def _shared_memory() -> None:
    name = f"/dev/shm/bench_mtl_test_{os.getpid()}"
    with open(name, "wb"):
        os.utime(name)


def _child() -> None:
    if os.fork() == 0:
        time.sleep(60.0)
        os._exit(0)


def _keep_open(fd: int) -> None:
    _kept.append(fd)


def _everything_open() -> None:
    _limit("RLIMIT_NOFILE", 40)
    with contextlib.suppress(OSError):
        while True:
            os.dup(0)


def _generator() -> None:
    np.random.set_bit_generator(np.random.Philox(1))


def _other_locale() -> None:
    name = "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8"
    locale.setlocale(locale.LC_ALL, name)


_LEFT: dict[str, Callable[[Any], object]] = {
    "nothing": lambda work: None,
    "memory": _kept.append,
    "thread": lambda work: threading.Thread(target=_spin, daemon=True).start(),
    "raw_thread": lambda work: _thread.start_new_thread(_spin, ()),
    "place": lambda work: os.chdir("/"),
    "processors": lambda work: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    "limit_cpu": lambda work: _limit("RLIMIT_CPU", 10**6),
    "limit_fsize": lambda work: _limit("RLIMIT_FSIZE", 10**4),
    "limit_as": lambda work: _limit("RLIMIT_AS", 2**46),
    "limit_nofile": lambda work: _limit("RLIMIT_NOFILE", 60),
    "everything_open": lambda work: _everything_open(),
    "timer_real": lambda work: signal.setitimer(signal.ITIMER_REAL, 1e6),
    "timer_virtual": lambda work: signal.setitimer(signal.ITIMER_VIRTUAL, 1e6),
    "timer_prof": lambda work: signal.setitimer(signal.ITIMER_PROF, 1e6),
    "timer_posix": lambda work: _posix_timer(),
    "timer_faulthandler": lambda work: faulthandler.dump_traceback_later(1e6, exit=True),
    "blas_threads": lambda work: _blas_threads(),
    "trace": lambda work: sys.settrace(_traced),
    "profile": lambda work: sys.setprofile(_traced),
    "trace_of_threads": lambda work: threading.settrace(_traced),
    "stack_of_threads": lambda work: threading.stack_size(2**20),
    "recursion": lambda work: sys.setrecursionlimit(5000),
    "switching": lambda work: sys.setswitchinterval(0.5),
    "no_gc": lambda work: gc.disable(),
    "rare_gc": lambda work: gc.set_threshold(10**6),
    "callback_of_gc": lambda work: gc.callbacks.append(_traced),
    "frozen": lambda work: gc.freeze(),
    "rounding": lambda work: _libc.fesetround({"x86_64": 0x800, "aarch64": 0x400000}.get(platform.machine(), 0)),
    "traps": lambda work: _libc.feenableexcept(4),
    "seterr": lambda work: np.seterr(all="raise"),
    "seterrcall": lambda work: np.seterrcall(_traced),
    "buffer_size": lambda work: np.setbufsize(16),
    "print_options": lambda work: np.set_printoptions(precision=2),
    "generator": lambda work: _generator(),
    "locale": lambda work: _other_locale(),
    "decimals": lambda work: setattr(decimal.getcontext(), "prec", 5),
    "warnings": lambda work: warnings.simplefilter("ignore"),
    "nice": lambda work: os.nice(3),
    "idle": lambda work: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "input_priority": lambda work: psutil.Process().ionice(psutil.IOPRIO_CLASS_BE, 7),
    "umask": lambda work: os.umask(0o077),
    "environment": lambda work: os.environ.update(BENCH_MTL_LEFT="1"),
    "mask": lambda work: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}),
    "handler": lambda work: signal.signal(signal.SIGUSR2, _heard),
    "handler_in_real_time": lambda work: signal.signal(signal.SIGRTMIN + 3, _heard),
    "path": lambda work: sys.path.append("/nowhere"),
    "finder": lambda work: _finder(),
    "hook_of_path": lambda work: sys.path_hooks.append(_traced),  # type: ignore[arg-type]
    "module": lambda work: sys.modules.update(json=types.ModuleType("json")),
    "stdout": lambda work: setattr(sys, "stdout", io.StringIO()),
    "excepthook": lambda work: setattr(sys, "excepthook", _traced),
    "descriptor": lambda work: _keep_open(os.open("/dev/null", os.O_RDONLY)),
    "memfd": lambda work: _keep_open(os.memfd_create("left")),
    "closed": lambda work: os.close(0),
    "shared_memory": lambda work: _shared_memory(),
    "child": lambda work: _child(),
    "timer_slack": lambda work: _libc.prctl(29, 10**6, 0, 0, 0),
    "no_new_privileges": lambda work: _libc.prctl(38, 1, 0, 0, 0),
    "death_signal": lambda work: _libc.prctl(1, 10, 0, 0, 0),
    "timeout_of_sockets": lambda work: socket.setdefaulttimeout(1.0),
}
