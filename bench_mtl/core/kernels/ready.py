"""Gets Numba ready, for a process that others are forked from."""

from __future__ import annotations

import numba


def get_ready() -> None:
    """Compile a function that does nothing: before its first one, Numba loads so much that this takes longer than most functions do."""
    numba.njit(_same)(1)


def _same(number: int) -> int:
    return number
