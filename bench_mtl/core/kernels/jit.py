"""The decorators that compile every kernel: once, cached on disk, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numba

from bench_mtl.core.kernels.cache import forget_outdated

forget_outdated()

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Compiler(Protocol):
    """A decorator that leaves the type of its function alone."""

    def __call__(self, function: _Function, /) -> _Function: ...


#: Sums may be reordered, so that loops use vector instructions. NaN and inf keep their meaning.
_REORDERED = {"reassoc", "nsz", "arcp", "contract"}

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}

#: For code whose rounding matters: compensated sums, the last step of a search. (The flags are stated, because a function otherwise
#: inherits those of the function that it is first compiled for.)
exact: _Compiler = numba.njit(fastmath=False, **_OPTIONS)

#: For a few lines of `exact` code that a hot loop calls: put there before compilation, since passing arrays costs more than such lines do.
inlined: _Compiler = numba.njit(fastmath=False, inline="always", **_OPTIONS)

#: For loops that sum, and may see NaN or inf.
reordered: _Compiler = numba.njit(fastmath=_REORDERED, **_OPTIONS)

#: For loops that compare and select; only for data known to hold no NaN. Index with `range`, over a contiguous slice: that is
#: the form the compiler turns into vector instructions (a pass over `for a in row` or over `row[i + k]` is up to 30 times slower).
selecting: _Compiler = numba.njit(fastmath=_REORDERED | {"nnan"}, **_OPTIONS)
