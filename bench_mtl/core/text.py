"""Words that somebody else wrote, made fit to be shown: whatever is in them, nothing of it is a command to who reads them.

Labels, notes, reasons, messages of exceptions and names of files come from plug-ins, suites and results of others.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from bench_mtl.core.errors import InputError

#: Characters of a label, a version or the name of a parameter; of any other word of a suite.
LONGEST_LABEL, LONGEST_WORD = 200, 10_000
#: Characters of a line that the command prints of what went wrong.
LONGEST_LINE = 2_000
#: All that may be no visible character, without a look at each of those that most texts are made of.
_DOUBTFUL = re.compile(r"[^\n\t\x20-\x7e]")
#: What a spreadsheet takes for the start of a formula, blanks before it or not, and what stands before such.
_FORMULA = re.compile(r"\s*['=+\-@\t\uff1d\uff0b\uff0d\uff20]|\t")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|-")
#: What stands for the middle of a text that is too long.
_GAP = "..."
#: Letters by their category, but without a shape.
_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")


def visible(text: str) -> str:
    r"""Return a text with all that cannot be seen written as an escape: ``\x1b``, ``\u202e``.

    That are control characters (the terminal's escape sequences start with them), marks of writing direction, characters without width,
    lone surrogates, and separators of lines. New lines and tabs stay.
    """
    return _DOUBTFUL.sub(lambda found: _escape(found[0]), text)


def encodable(text: str) -> str:
    """Return a text with lone surrogates, halves of characters that can be neither sent nor stored, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str, longest: int | None = None) -> str:
    """Return a text as `visible` does, on one line, and cut where it is longer than this many characters."""
    if longest is not None and len(text) > 4 * longest:
        text = text[: 4 * longest]  # white space may go
    line = visible(" ".join(text.split()))
    return line if longest is None or len(line) <= longest else f"{line[:longest]}..."


def shortened(text: str, longest: int) -> str:
    """Return a text with at most so many characters: a longer one loses its middle, where labels are most alike."""
    if len(text) <= longest:
        return text
    if longest <= len(_GAP):
        return text[: max(0, longest)]
    kept = longest - len(_GAP)
    return f"{text[: kept - kept // 2]}{_GAP}{text[len(text) - kept // 2 :]}"


def outward(value: float, digits: int, *, is_upper: bool) -> float:
    """Return a bound with so many digits, rounded up or down: so that what is shown is true as well."""
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=ROUND_CEILING if is_upper else ROUND_FLOOR).create_decimal_from_float(value))


def csv_cell(text: str) -> str:
    """Return a text as `visible` does, in a form that no spreadsheet takes for a formula.

    One that starts with ``=``, ``+``, ``-``, ``@``, a tab or ``'`` gets a ``'`` before it, unless it is a number. So a reader finds the
    text again: one ``'`` less at the start.
    """
    seen = visible(text)
    return f"'{seen}" if _FORMULA.match(seen) and not _NUMBER.fullmatch(seen) else seen


def require_label(name: str, value: str, longest: int = LONGEST_LABEL) -> str:
    """Return `value` if it is fit to be a label: visible characters on one line, not too many.

    Raises InputError: it is not; `name` says what it is.
    """
    if len(value) > longest:
        raise InputError(name, len(value), f"have at most {longest} characters")
    if visible(value) != value or "\n" in value or "\t" in value:
        raise InputError(f"{name} must be visible characters on one line, not '{one_line(value)}'")
    return value


def _escape(character: str) -> str:
    if character not in _SHAPELESS and (character.isprintable() or unicodedata.category(character) == "Zs"):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
