"""Data sets that are read or made once and shared by all processes that this one starts, in memory that none of them can change.

A process of its own reads or makes a data set; it imports no plug-in. What it has written into a memory file is sealed, and workers and
certifiers map that file instead of reading the data themselves. Only Linux has such files: elsewhere each process reads its own data.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import pickle
import struct
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.errors import BenchError
from bench_mtl.data.catalogue import available, load, may_be_prices, resolved
from bench_mtl.data.readers import read_shards
from bench_mtl.engine.registry import Registry
from bench_mtl.engine.suite import Instance, digest
from bench_mtl.model.task_data import TaskData

#: The data sets used last are kept for later cases, at most so many bytes and files.
KEPT_BYTES, KEPT_FILES = 2**30, 32

#: Where the index of a file begins, and its length.
_HEAD = struct.Struct("<QQ")
#: Arrays begin at multiples of this, as those of NumPy and BLAS like to.
_ALIGNMENT = 64
#: Map all of a file at once.
_POPULATE_READ = 22


class Placed:
    """A data set in a sealed memory file, which lasts as long as this object or whoever has mapped it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        weakref.finalize(self, os.close, descriptor)


def descriptor_of(placed: Placed | None) -> int | None:
    return None if placed is None else placed.descriptor


class Shelf:
    """The data sets that a process has placed: those that somebody holds, and of the last ones `KEPT_BYTES` and `KEPT_FILES` at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._known: weakref.WeakValueDictionary[str, Placed] = weakref.WeakValueDictionary()
        self._kept: dict[str, Placed] = {}
        """The last one used last."""
        self._refused: set[str] = set()

    def placed(self, key: str, make: Callable[[int], bool | None]) -> Placed | None:
        """Return the data set of this key, made unless it is here: while one thread makes it, others that ask for it wait.

        Parameters
        ----------
        make : writes it to a descriptor and returns whether that could be done; None where it was kept from trying, as it may again
        """
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found = self._known.get(key)
            if found is None and key not in self._refused and (found := self._made(key, make)) is None:
                return None
            if found is not None:
                self._keep(key, found)
            return found

    def clear(self) -> None:
        """Keep nothing that nobody holds."""
        with self._lock:
            self._kept.clear()

    def _made(self, key: str, make: Callable[[int], bool | None]) -> Placed | None:
        try:
            placed = Placed(os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
            has_made = make(placed.descriptor)
            if has_made:
                fcntl.fcntl(placed.descriptor, fcntl.F_ADD_SEALS, _seals())
                placed.size = os.fstat(placed.descriptor).st_size
        except OSError:  # no more memory, descriptors or processes: the cases read the data themselves, and show what comes of it
            return None
        if has_made is False:
            self._refused.add(key)
        return placed if has_made else None

    def _keep(self, key: str, placed: Placed) -> None:
        with self._lock:
            self._known[key] = placed
            self._kept.pop(key, None)
            self._kept[key] = placed
            while sum(each.size for each in self._kept.values()) > KEPT_BYTES or len(self._kept) > KEPT_FILES:
                self._kept.pop(next(iter(self._kept)))


def is_possible() -> bool:
    """Whether the system has memory files that can be sealed."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


def key_of(instance: Instance, data_dir: Path | None, threads: int) -> str | None:
    """Return a hash of all that the data of an instance are made from, None for one whose data are not those of the catalogue."""
    if type(instance) is not Instance or not instance.fingerprint:
        return None
    reader = instance.problem if may_be_prices(instance.data) else ""
    return digest([instance.data, instance.fingerprint, instance.seed, str(data_dir), threads, reader])


def write(instance: Instance, registry: Registry, data_dir: Path | None, descriptor: int) -> bool:
    """Read or make the data of an instance and write them to a descriptor; return whether that could be done.

    It is not done for data in shards, which are mapped where they lie, for a table of which only a plug-in says how it is read, and for
    whatever the cases themselves will refuse, in their own words.
    """
    try:
        is_plugged_in = instance.problem not in registry.problems
        if is_plugged_in and may_be_prices(instance.data):
            return False
        prices = is_plugged_in or registry.problem(instance.problem).takes_prices
        if resolved(available(instance.data, data_dir)[0], data_dir, prices)[0] is read_shards:
            return False
        if instance.fingerprint_here(data_dir) != instance.fingerprint:
            return False
        _write(load(instance.data, data_dir=data_dir, seed=instance.seed, prices=prices), descriptor)
    except (BenchError, OSError, MemoryError, _NotContiguousError):
        return False
    return True


def read(descriptor: int) -> tuple[TaskData, weakref.ref[mmap.mmap]]:
    """Return the data that `write` has written, whose arrays lie in the file itself and are read-only, and the map of it."""
    mapped = mmap.mmap(descriptor, os.fstat(descriptor).st_size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    whole = memoryview(mapped)
    start, length = _HEAD.unpack_from(whole)
    content, places = pickle.loads(whole[start : start + length])
    data: TaskData = pickle.loads(content, buffers=[whole[start : start + length] for start, length in places])
    return data, weakref.ref(mapped)


def populate(mapped: weakref.ref[mmap.mmap] | None) -> None:
    """Map all pages again in a fork, which would otherwise do so page by page while the clock of a solver runs."""
    found = None if mapped is None else mapped()
    if found is not None:
        with contextlib.suppress(OSError):  # not before Linux 5.14
            found.madvise(_POPULATE_READ)


class _NotContiguousError(Exception):
    """An array that would come back in another order."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray) and not (thing.flags.c_contiguous or thing.flags.f_contiguous):
            raise _NotContiguousError
        return NotImplemented


def _write(data: TaskData, descriptor: int) -> None:
    stream, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(data)
    written: dict[tuple[int, int], int] = {}
    places = []
    with open(descriptor, "wb", closefd=False) as file:
        file.write(_HEAD.pack(0, 0))
        for buffer in buffers:
            raw = buffer.raw()
            own = np.frombuffer(raw, np.uint8).ctypes.data, raw.nbytes
            if own not in written:  # an array may be seen in two shapes
                file.write(bytes(-file.tell() % _ALIGNMENT))
                written[own] = file.tell()
                file.write(raw)
            places.append((written[own], raw.nbytes))
        start = file.tell()
        length = file.write(pickle.dumps((stream.getvalue(), places)))
        file.seek(0)
        file.write(_HEAD.pack(start, length))


def _seals() -> int:
    """All that keep whoever has the descriptor from changing the file, or the seals."""
    return fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
