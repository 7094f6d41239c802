"""The deadline of a run, in memory that its process and its watcher share."""

from __future__ import annotations

import mmap


class SharedDeadline:
    """A deadline (see `bench_mtl.engine.clock.Deadline`) in the first page of a file, whose descriptor may be closed then.

    What is read there may be anything, for a solver that writes past its arrays. Raises OSError where there is no memory for it.
    """

    def __init__(self, fd: int) -> None:
        self._cells = memoryview(mmap.mmap(fd, mmap.PAGESIZE)).cast("d")

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
        self._cells = memoryview(bytearray(mmap.PAGESIZE)).cast("d")
