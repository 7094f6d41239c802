"""Memory that a thread keeps between calls, so that a projection with `out` allocates nothing that grows with the matrix."""

from __future__ import annotations

import threading

import numpy as np

from bench_mtl.core.types import Array

_kept = threading.local()
_LARGEST_KEPT = 1 << 22  # doubles


def scratch_buffer(name: str, size: int) -> Array:
    """Return `size` doubles of this thread's buffer of that name, with whatever was in it before."""
    buffer: Array | None = getattr(_kept, name, None)
    if buffer is None or buffer.size < size:
        buffer = np.zeros(size)
        if size <= _LARGEST_KEPT:
            setattr(_kept, name, buffer)
    return buffer[:size]
