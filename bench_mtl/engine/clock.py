"""The clock of a run: it belongs to the driver, counts only the solver's time, and can publish its deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Deadline(Protocol):
    """Where a watcher in another process reads when to give up (`time.monotonic` seconds; 0 while the clock stands)."""

    value: float


class Clock:
    """A stopwatch with a budget. Only time inside `running()` counts."""

    def __init__(self, seconds: float | None = None, deadline: Deadline | None = None, elapsed: float = 0.0) -> None:
        self.elapsed = elapsed
        self._budget = seconds
        self._deadline = deadline

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the body, and publish the deadline while it runs."""
        if self._deadline is not None and self._budget is not None:
            self._deadline.value = time.monotonic() + max(0.0, self._budget - self.elapsed)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.elapsed += time.perf_counter() - start
            if self._deadline is not None:
                self._deadline.value = 0.0

    @property
    def is_spent(self) -> bool:
        return self._budget is not None and self.elapsed >= self._budget


@contextmanager
def timed(seconds: dict[str, float], key: str) -> Iterator[None]:
    """Add the time of the body to ``seconds[key]``."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[key] = seconds.get(key, 0.0) + time.perf_counter() - start
