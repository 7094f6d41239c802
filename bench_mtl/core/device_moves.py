"""Counts what this process has moved to the memory of other devices: seconds, which are on a solver's clock and shown apart, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import NamedTuple


class Moved(NamedTuple):
    """What has been moved so far."""

    seconds: float = 0.0
    size: int = 0
    """Bytes."""

    def since(self, before: Moved) -> str | None:
        """Return in words what has been moved since; None for nothing."""
        size = self.size - before.size
        return f"{size / 2**20:.4g} MiB in {self.seconds - before.seconds:.3g} s" if size else None


_moved = [Moved()]


def moved() -> Moved:
    """Return what this process has moved so far."""
    return _moved[0]


@contextmanager
def moving(size: int) -> Iterator[None]:
    """Count the body, which ends when so many bytes have arrived."""
    began = perf_counter()
    yield
    _moved[0] = Moved(_moved[0].seconds + perf_counter() - began, _moved[0].size + size)
