"""The decorators that compile every kernel: once, cached on disk, without the GIL."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numba
from numba.core.caching import FunctionCache

from bench_mtl.core.kernels.cache import forget_outdated, has_compiled_code

forget_outdated()

#: What is said once, on standard error unless logging goes elsewhere, before a first compilation; workers of a run say nothing.
_news: list[str] = []
if not has_compiled_code() and "BENCH_MTL_WORKER" not in os.environ:
    _news.append("bench_mtl compiles its loops, once on this machine, for a minute or two (bench-mtl doctor --compile does it ahead)")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Compiler(Protocol):
    """A decorator that leaves the type of its function alone."""

    def __call__(self, function: _Function, /) -> _Function: ...


class _HealingCache(FunctionCache):  # type: ignore[misc] # of a package without types
    """Numba's cache on disk, but what is damaged there, by a full disk or a power cut, is compiled again and replaced."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception:  # of whatever a truncated pickle or object file makes of itself: nothing of it is needed
            self.flush()
            loaded = None
        while loaded is None and _news:
            logging.getLogger("bench_mtl").warning(_news.pop())
        return loaded


def _compiler(**options: Any) -> _Compiler:
    def compiled(function: _Function) -> _Function:
        dispatcher = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        dispatcher._cache = _HealingCache(dispatcher.py_func)
        return dispatcher

    return compiled


def get_ready() -> None:
    """Compile a function that does nothing, for a process that others are forked from: what Numba loads before its first takes longer."""
    numba.njit(_same)(1)


def _same(number: int) -> int:
    return number


#: Sums may be reordered, so that loops use vector instructions. NaN and inf keep their meaning.
_REORDERED = {"reassoc", "nsz", "arcp", "contract"}

#: For code whose rounding matters: compensated sums, the last step of a search. (The flags are stated, because a function otherwise
#: inherits those of the function that it is first compiled for.)
exact: _Compiler = _compiler(fastmath=False)

#: For a few lines of `exact` code that a hot loop calls: put there before compilation, since passing arrays costs more than such lines do.
inlined: _Compiler = _compiler(fastmath=False, inline="always")

#: For loops that sum, and may see NaN or inf.
reordered: _Compiler = _compiler(fastmath=_REORDERED)

#: For loops that compare and select; only for data known to hold no NaN. Index with `range`, over a contiguous slice: that is
#: the form the compiler turns into vector instructions (a pass over `for a in row` or over `row[i + k]` is up to 30 times slower).
selecting: _Compiler = _compiler(fastmath=_REORDERED | {"nnan"})
