"""What a run leaves behind in its process, for the runs after it."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np

from bench_mtl.runner.gathered import WARM_UP, Message
from bench_mtl.runner.memory import resident_mib

#: What a run may still hold when it is over, beyond what was there when it began: caches of libraries and the like.
_KEPT_MIB = 50.0


class State:
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
