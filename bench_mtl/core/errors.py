"""Errors with a name; the command line prints one line of them and exits with 2."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

_LONGEST_NAME = 1_000


#: What the system says where a disk, or what a user may have of it, is full, and where it fails.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


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


def not_written(what: str, error: OSError) -> BenchError:
    """Return the error for what cannot be written: on a full disk one that can be gone on from, else one of the input.

    Parameters
    ----------
    what : the beginning of the sentence, such as "the report cannot be written to results".
    """
    reason = f"{what}: {error.strerror or error}"
    if error.errno in FULL:
        return IncompleteError(f"{reason}; what was there before is kept, and the same command can be given again")
    return InputError(reason)
