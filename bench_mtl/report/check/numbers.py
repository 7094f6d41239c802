"""Printed numbers against derived ones: equal at the precision that is printed, and bounds on the side where they hold."""

from __future__ import annotations

import math
import re
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["ratio", "seconds", "gap", "objective", "count", "target", "p"]

#: What a report prints in the place of a number that does not exist.
BLANK = "-"

#: Numbers are computed in another order here than in reports.
_ROUNDING = 1e-12

_DIGITS = re.compile(r"(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:e(?P<power>[+-]?\d+))?(?P<times>x?)")


def value_of(text: str) -> float:
    """Return a printed number; a times sign at its end is none of it."""
    return float(text.removesuffix("x"))


def unit_of(text: str, form: Form) -> float:
    """Return what the last printed digit that means something counts."""
    found = _DIGITS.fullmatch(text)
    if found is None:
        return 0.0
    unit = 10.0 ** (int(found["power"] or 0) - len(found["part"] or ""))
    if form == "ratio" and found["part"] is None and found["power"] is None:
        unit *= 10.0 ** max(0, len(found["whole"]) - 2)  # two digits mean something
    return unit


def is_as_printed(text: str, value: float | None, form: Form, sign: str = "") -> bool:
    """Return whether `text` is how `value` is printed; of a bound, on the side where it holds, and by less than a digit off."""
    if value is None or text == BLANK:
        return value is None and text == BLANK
    if _DIGITS.fullmatch(text) is None or (form == "ratio") is not text.endswith("x"):
        return False
    printed, unit = value_of(text), unit_of(text, form)
    if printed == 0.0 and form not in ("count", "p") and not sign:
        return value == 0.0
    slack = _ROUNDING * abs(value)
    if sign == ">=":
        return printed <= value + slack and value - printed < unit + slack
    if sign == "<=":
        return printed >= value - slack and printed - value < unit + slack
    return abs(printed - value) <= 0.5 * unit * (1.0 + 1e-6) + slack


def shown(value: float | None, form: Form, sign: str = "") -> str:
    """Return a derived number for a message, with four digits."""
    if value is None:
        return "none"
    digits = 10 if form == "objective" else 4
    return f"{sign} {value:.{digits}g}".lstrip() + ("x" if form == "ratio" else "")


def is_between(text: str, form: Form, low: float, high: float) -> bool:
    """Return whether a printed number may stand for one of those between two."""
    if _DIGITS.fullmatch(text) is None:
        return text == "infx" and high == math.inf
    half = 0.5 * unit_of(text, form) * (1.0 + 1e-6)
    return low * (1.0 - _ROUNDING) - half <= value_of(text) <= high * (1.0 + _ROUNDING) + half
