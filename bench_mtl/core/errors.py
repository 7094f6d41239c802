"""Errors with a name; the command line prints one line of them and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_NAME = 1_000


class BenchError(Exception):
    """Base of every error that bench_mtl raises on purpose."""


class InputError(BenchError, ValueError):
    """An argument, option, file or folder that cannot be used; says which one, what is wrong and what is allowed."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist, with the nearest one that does.

    Parameters
    ----------
    kind : what the name stands for, e.g. ``"solver"`` or ``"key in [limits]"``.
    given : the name as it was written.
    allowed : the names that exist.
    """
    names = sorted(allowed)
    if len(given) > _LONGEST_NAME:  # as long as nothing that exists
        return InputError(f"unknown {kind} '{given[:_LONGEST_NAME]}...', of {len(given)} characters")
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InputError(f"unknown {kind} '{given}': {hint}allowed: {', '.join(names) or 'none'}")


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, for messages: ``1 round``, ``2 rounds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class IncompleteError(BenchError):
    """A run that cannot be finished, through no fault of its input; what it has stored is kept, and it can be resumed."""
