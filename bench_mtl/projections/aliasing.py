"""Inputs and outputs that may share memory, or lie in memory in a way that kernels cannot work on."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import AnyArray


def separated(A: AnyArray, out: AnyArray | None) -> tuple[AnyArray, bool]:
    """Return A, or a copy of it where `out` shares a part of its memory; and whether `out` is exactly A's memory."""
    if out is None or not np.may_share_memory(A, out):
        return A, False
    same = A is out or (A.ctypes.data == out.ctypes.data and A.strides == out.strides)
    return (A if same else A.copy()), same


def work_arrays(A: AnyArray, target: AnyArray, same: bool) -> tuple[AnyArray, AnyArray, bool]:
    """Return the array to read, a contiguous array to write to (`target` where it is one), and whether these are the same.

    A is copied to the second unless it has the same strides and is writable: one memory order and one compiled variant are enough.
    """
    plain = target.flags.aligned and (target.flags.c_contiguous or target.flags.f_contiguous)
    work = target if plain else np.empty(A.shape, A.dtype)
    if work is target and (same or (A.strides == work.strides and A.flags.writeable and A.flags.aligned)):
        return A, work, same
    np.copyto(work, A)
    return work, work, True
