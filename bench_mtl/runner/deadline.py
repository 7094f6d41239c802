"""The deadline of a run, in memory that its process and its watcher share."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


class SharedDeadline:
    """A deadline (see `bench_mtl.engine.clock.Deadline`) in memory that two processes share.

    It keeps no descriptor, so that nobody who writes to one by accident writes there. What is read there may be anything all the same, for
    a solver that writes past its arrays.
    """

    def __init__(self, fd: int) -> None:
        """
        Parameters
        ----------
        fd : of a file of at least one page, which may be closed then

        Raises
        ------
        OSError : no memory for it.
        """
        address = _libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        if address is None or address == _FAILED:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        weakref.finalize(self, _libc.munmap, address, mmap.PAGESIZE)
        self._cells = (ctypes.c_double * 2).from_address(address)

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
