"""The deadline of a run, in memory that its process and its watcher share."""

from __future__ import annotations

import ctypes
import mmap


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
