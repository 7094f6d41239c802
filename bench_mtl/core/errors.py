"""Errors with a name; the command line prints one line of them and exits with 2."""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable
from numbers import Integral, Number, Real
from typing import Any

_LONGEST_NAME = 1_000
#: Characters of a value that a message shows.
_LONGEST_VALUE = 200
#: Entries of a collection that an error holds, at most.
_MOST_ENTRIES = 100
#: So many names are all listed; of more, so many that are nearest.
_FEW_NAMES, _SHOWN_NAMES = 8, 5
#: From which ratio of difflib on a name is suggested for another.
_LIKENESS = 0.6


#: What the system says where a disk, or what a user may have of it, is full, and where it fails.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class BenchError(Exception):
    """Base of every error that bench_mtl raises on purpose."""


class InputError(BenchError, ValueError):
    """An argument, option, file or folder that cannot be used; says which one, what is wrong and what is allowed.

    ``InputError(argument, value, allowed)`` reads "`argument` must be `allowed`, not `value`", or, where `allowed` begins with "have",
    "`argument` must have ..., but has `value`". What is no value of an argument, such as two arguments that contradict each other or a
    damaged file, has only a sentence: ``InputError(sentence)``.

    Attributes
    ----------
    argument : name of the argument, option or key; None where the error has only a sentence
    value : the value that cannot be used, the entry of an array that cannot, or the shape of an array whose shape is wrong; of an array or
        another object, which an error must not hold, the name of its class
    allowed : what can be used, in words
    near : the allowed name that is most like the value, if there is one
    """

    def __init__(
        self, argument: str, value: Any = None, allowed: str | None = None, *, near: str | None = None, sentence: str = ""
    ) -> None:
        super().__init__(sentence or (argument if allowed is None else _sentence(argument, value, allowed, near)))
        self.argument = None if allowed is None else argument
        self.value, self.allowed, self.near = value if _is_small(value) else type(value).__name__, allowed, near

    def within(self, what: object) -> InputError:
        """Return the same error with the name of what it is in, such as a file or a task, before its sentence."""
        return InputError(self.argument or "", self.value, self.allowed, near=self.near, sentence=f"{what}: {self}")


def _is_small(value: object) -> bool:
    """Return whether an error may hold a value: numbers and words, or some of them."""
    if isinstance(value, (list, tuple)):
        return len(value) <= _MOST_ENTRIES and all(isinstance(entry, (Number, str)) for entry in value)
    return value is None or isinstance(value, Number) or (isinstance(value, (str, bytes)) and len(value) <= _LONGEST_NAME)


def _sentence(argument: str, value: Any, allowed: str, near: str | None) -> str:
    hint = "" if near is None else f": did you mean '{near}'?"
    if allowed.startswith("have "):
        what = "shape " if isinstance(value, tuple) and "shape" not in allowed else ""
        return f"{argument} must {allowed}, but has {what}{shown(value)}{hint}"
    return f"{argument} must be {allowed}, not {shown(value)}{hint}"


def shown(value: object) -> str:
    """Return a value as messages show it, in a short line; of an object that is no number, text or collection only the class."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is not None and not isinstance(value, Real) and not isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)):
        return type(value).__name__
    try:
        text = repr(value)
        if isinstance(value, Real) and not isinstance(value, bool):
            text = repr(int(value)) if isinstance(value, Integral) else f"{float(value):g}"
            text = text if float(text) == value else repr(float(value))
    except Exception:  # of an entry whose class is at fault, or of a number with thousands of digits
        return f"this {type(value).__name__}"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def unknown(kind: str, given: str, allowed: Iterable[str], *, more: str = "") -> InputError:
    """Return the error for a name that does not exist, with the nearest of those that do.

    `kind` is what the name represents, such as ``"solver"`` or ``"key in [limits]"``, and `more` the command that lists all, where there is
    one.
    """
    names = sorted(allowed)
    near, words = nearest(given, names), listed(names, given, more=more)
    hint = "" if near is None else f"did you mean '{near}'? "
    sentence = f"unknown {kind} '{given}': {hint}allowed: {words}"
    if len(given) > _LONGEST_NAME:  # as long as nothing that exists
        sentence = f"unknown {kind} '{given[:_LONGEST_NAME]}...', of {len(given)} characters"
    return InputError(kind, given, words, near=near, sentence=sentence)


def nearest(given: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like the given one, upper and lower case being one; None where none is like it."""
    by_folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(given[:_LONGEST_NAME].casefold(), by_folded, n=1, cutoff=_LIKENESS)
    return by_folded[near[0]] if near else None


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return the end of a sentence that suggests the nearest name, ``: did you mean 'x'?``; empty where no name is near."""
    near = nearest(given, names)
    return "" if near is None or near == given else f": did you mean '{near}'?"


def listed(names: Iterable[str], given: str = "", *, more: str = "") -> str:
    """Return names, each once, with commas between them; of many those that are most like the given one, or the first, and how many others.

    `more` is the command that lists all of them, where there is one.
    """
    known = list(dict.fromkeys(names))
    if len(known) <= _FEW_NAMES:
        return ", ".join(known) or "none"
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(given[:_LONGEST_NAME].casefold(), by_folded, n=_SHOWN_NAMES, cutoff=0.0) if given else []
    shown = [by_folded[name] for name in near] or known[:_SHOWN_NAMES]
    return f"{', '.join(shown)} and {len(known) - len(shown)} more{f': {more}' if more else ''}"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, for messages: ``1 round``, ``2 rounds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class IncompleteError(BenchError):
    """A run that cannot be finished, through no fault of its input; what it has stored remains, and it can be resumed."""


def is_full(error: OSError) -> bool:
    """Return whether a disk is full or fails. (NumPy tells no number, but how much was requested and written.)"""
    return error.errno in FULL or (error.errno is None and "requested and" in str(error))


def not_written(what: str, error: OSError) -> BenchError:
    """Return the error for what cannot be written, "the report cannot be written to ...": on a full disk one that can be gone on from."""
    reason = f"{what}: {error.strerror or (os.strerror(errno.ENOSPC) if is_full(error) else error)}"
    if is_full(error):
        return IncompleteError(f"{reason}; what was there before remains, and the same command can be given again")
    return InputError(reason)
