"""The clock of a run: it belongs to the driver, counts only the solver's time, and can publish its deadline.

It is paused while Numba compiles: what a machine's first run compiles says nothing about the solver.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter  # a solver that replaces them in their module changes no clock here
from typing import Protocol

from bench_mtl.core.compilation import compiling_seconds, told_of_compiling
from bench_mtl.core.types import OVERRUN


class Deadline(Protocol):
    """Where a watcher in another process reads when to give up (`time.monotonic` seconds; 0 while the clock is paused)."""

    value: float
    compiling: float
    """Seconds in which the clock stood because something was compiled; inf while it does."""


class Clock:
    """A stopwatch with a budget. Only time inside `running()` counts, without what is compiled there.

    With `may_overrun` the deadline that it publishes comes later than its budget by `OVERRUN` times that.
    """

    def __init__(
        self, seconds: float | None = None, deadline: Deadline | None = None, elapsed: float = 0.0, *, may_overrun: bool = False
    ) -> None:
        self.elapsed = elapsed
        self.compiling = 0.0
        """Seconds of compiling inside `running()`, which are no part of `elapsed`."""
        self._budget = seconds
        self._overrun = OVERRUN * (seconds or 0.0) if may_overrun else 0.0
        self._deadline = deadline
        self._start = self._compiled = 0.0
        self._is_running = False

    @contextmanager
    def running(self, *, to_deadline: bool = True) -> Iterator[None]:
        """Count the time of the body, and publish the deadline while it runs, unless it may go on beyond that."""
        self._start, self._compiled, self._is_running = perf_counter(), compiling_seconds(), to_deadline
        if to_deadline:
            self._publish(self.elapsed)
        with told_of_compiling(self._note_compiling):
            try:
                yield
            finally:
                (self.elapsed, self.compiling), self._is_running = self._counted(), False
                if self._deadline is not None:
                    self._deadline.value = 0.0

    @property
    def is_spent(self) -> bool:
        return self._budget is not None and self.elapsed >= self._budget

    def _counted(self) -> tuple[float, float]:
        """`elapsed` and `compiling` up to now."""
        compiled = compiling_seconds() - self._compiled
        return self.elapsed + perf_counter() - self._start - compiled, self.compiling + compiled

    def _publish(self, elapsed: float) -> None:
        if self._deadline is not None and self._budget is not None:
            self._deadline.value = monotonic() + max(0.0, self._budget + self._overrun - elapsed)

    def _note_compiling(self, begins: bool) -> None:
        if self._deadline is None or not self._is_running:
            return
        if begins:
            self._deadline.compiling = math.inf
            self._deadline.value = 0.0
        else:
            elapsed, self._deadline.compiling = self._counted()
            self._publish(elapsed)


@contextmanager
def timed(seconds: dict[str, float], key: str) -> Iterator[None]:
    """Add the time of the body to ``seconds[key]``."""
    start = perf_counter()
    try:
        yield
    finally:
        seconds[key] = seconds.get(key, 0.0) + perf_counter() - start
