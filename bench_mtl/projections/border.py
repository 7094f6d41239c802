"""The border of every projection: inside it there are float64 arrays in C order alone, and memory that a thread keeps between calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array

_kept = threading.local()
_LARGEST_KEPT = 1 << 22  # doubles


def projected(A: AnyArray, out: AnyArray | None, compute: Callable[[Array, Array], object], *, toward_zero: bool = True) -> AnyArray:
    """What `compute(source, result)` writes to `result`, in `out` or a new array of the type of A.

    Both are float64, in C order, and one array or two without common memory. Where A is float32, what is written is rounded towards zero,
    which leaves no ball, or to the nearest.
    """
    target = result_array(out, A)
    source = A if A.dtype == np.float64 and A.flags.carray else np.array(A, dtype=np.float64, order="C")
    result = target if target.dtype == np.float64 else np.empty(A.shape)
    if source is not result and np.may_share_memory(source, result):
        source = source.copy()
    compute(source, result)
    if result is not target:
        with np.errstate(over="ignore", under="ignore"):
            np.copyto(target, result, casting="same_kind")
        if toward_zero:
            np.nextafter(target, target.dtype.type(0), out=target, where=np.abs(target) > np.abs(result))
    return target


def result_array(out: AnyArray | None, like: AnyArray) -> AnyArray:
    """The array to write a result to: `out` where it fits, a new one where it is None.

    Raises InputError: `out` is not a writable array in C order of the shape and type of `like`.
    """
    if out is None:
        return np.empty(like.shape, like.dtype)
    if isinstance(out, np.ndarray) and out.shape == like.shape and out.dtype == like.dtype and out.flags.carray:
        return out
    is_not = type(out).__name__
    if isinstance(out, np.ndarray):
        flaw = "" if out.flags.writeable else " that is read-only"
        is_not = f"{out.dtype} of shape {out.shape}{flaw}{'' if out.flags.c_contiguous else ' in another order'}"
    raise InputError(f"out must be a writable {like.dtype} array of shape {like.shape} in C order, such as np.empty makes, not {is_not}")


def scratch_buffer(name: str, size: int) -> Array:
    """Return `size` doubles of this thread's buffer of that name, with whatever was in it: with `out` nothing large is allocated then."""
    buffer: Array | None = getattr(_kept, name, None)
    if buffer is None or buffer.size < size:
        buffer = np.zeros(size)
        if size <= _LARGEST_KEPT:
            setattr(_kept, name, buffer)
    return buffer[:size]


def ldexp(value: Any, exponent: int) -> Any:
    """value 2^exponent, infinite where that overflows."""
    if exponent == 0:
        return value
    with np.errstate(over="ignore"):
        return np.ldexp(value, exponent)
