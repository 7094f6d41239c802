"""What can stand in a row at all. Files without checksums are held against it, for there is nothing else to see damage by."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from bench_mtl.core.types import Certificate, Ending, Status

#: Says what is wrong with the rows of a table, given by column; None where nothing is.
Rule = Callable[[Mapping[str, Any]], str | None]

#: Characters of a label, and of any other text but that of a suite.
_LONGEST_LABEL, _LONGEST_TEXT = 2000, 10**6

#: By how much the gap that a row says may differ from that of its bounds, relative to itself or to 1.
_GAP_SLACK = 1e-6


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_seconds(value: Any) -> bool:
    return _is_finite(value) and value >= 0.0


def _is_gap(value: Any) -> bool:
    return _is_number(value) and value >= -_GAP_SLACK


def _is_upper(value: Any) -> bool:
    return _is_number(value) and value > -math.inf


def _is_lower(value: Any) -> bool:
    return _is_number(value) and value < math.inf


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0.0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_whole(value: Any) -> bool:
    return isinstance(value, int)


def _is_flag(value: Any) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_LABEL


def _is_status(value: Any) -> bool:
    return value in set(Status)


def _is_table(value: Any) -> bool:
    return isinstance(_parsed(value), dict)


def _is_sizes(value: Any) -> bool:
    found = _parsed(value)
    return isinstance(found, dict) and all(map(_is_count, found.values()))


def _is_words(value: Any) -> bool:
    found = _parsed(value)
    return isinstance(found, list) and all(isinstance(word, str) for word in found)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return None


def _or_null(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or rule(value)


_RUN: Mapping[str, Callable[[Any], bool]] = {
    "case_key": _is_label, "position": _or_null(_is_count), "listed": _is_flag, "superseded": _is_flag, "environment_id": _is_whole,
    "problem": _is_label, "problem_label": _is_label, "instance_key": _is_label, "data": _is_table, "data_fingerprint": _is_text,
    "parameters": _is_table, "seed": _or_null(_is_whole), "dimensions": _is_sizes, "notes": _is_words, "solver": _is_label,
    "solver_label": _is_label, "options": _is_table, "solver_version": _is_text, "repetition": _is_count, "threads": _is_positive,
    "target": _is_positive, "limit_seconds": _or_null(_is_seconds), "limits": _is_table, "status": _is_status, "reason": _is_text,
    "primal": _or_null(_is_finite), "dual": _or_null(_is_lower), "relative_gap": _or_null(_is_gap),
    "infeasibility": _or_null(_is_gap), "iterations": _or_null(_is_count), "passes": _or_null(_is_seconds),
    "build_seconds": _is_seconds, "compile_seconds": _is_seconds, "setup_seconds": _is_seconds, "solve_seconds": _is_seconds,
    "certify_seconds": _is_seconds, "wall_seconds": _or_null(_is_seconds), "peak_memory_mib": _or_null(_is_seconds), "info": _is_table,
}  # fmt: skip

_SAMPLE: Mapping[str, Callable[[Any], bool]] = {
    "number": _is_count, "seconds": _is_seconds, "iteration": _is_count, "passes": _is_seconds, "primal": _is_upper, "dual": _is_lower,
    "relative_gap": _is_gap, "infeasibility": _is_gap, "asked_tolerance": _or_null(_is_positive),
}  # fmt: skip

_RUNG: Mapping[str, Callable[[Any], bool]] = {
    "number": _is_count, "asked_tolerance": _is_positive, "seconds": _is_seconds, "setup_seconds": _or_null(_is_seconds),
    "ending": lambda value: value in set(Ending),
}  # fmt: skip

_PLACE: Mapping[str, Callable[[Any], bool]] = {
    "number": _is_count, "file": _is_label, "line": _is_count, "function": _is_text, "source": _is_text,
}  # fmt: skip

_CELL: Mapping[str, Callable[[Any], bool]] = {
    "key": _is_label, "superseded": _is_flag, "environment_id": _is_whole, "settings": _is_table, "status": _is_status, "reason": _is_text,
    "found": _is_table, "seconds": _is_seconds, "wall_seconds": _or_null(_is_seconds), "peak_memory_mib": _or_null(_is_seconds),
}  # fmt: skip


def _wrong_run(row: Mapping[str, Any]) -> str | None:
    said = _wrong_columns(_RUN, row) or _wrong_gap(row)
    if said is None and row["status"] == Status.VERIFIED and row["relative_gap"] is None:
        return "status is verified, but nothing is proven"
    return said


def _wrong_sample(row: Mapping[str, Any]) -> str | None:
    return _wrong_columns(_SAMPLE, row) or _wrong_gap(row)


def _wrong_gap(row: Mapping[str, Any]) -> str | None:
    """Say that a row's gap is not that of its bounds."""
    primal, dual, gap = row["primal"], row["dual"], row["relative_gap"]
    if primal is None or dual is None or gap is None:
        return None
    computed = Certificate(primal, dual, 0.0).relative_gap
    if gap == computed or abs(gap - computed) <= _GAP_SLACK * (1.0 + computed):
        return None
    return f"relative_gap is {gap:.6g}, but that of its bounds {computed:.6g}"


def _wrong_fact(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a row of table `meta`, of those that are computed with."""
    key, value = row["key"], row["value"]
    if key == "targets":
        targets = _parsed(value)
        is_right = isinstance(targets, list) and bool(targets) and all(map(_is_positive, targets))
    else:
        is_right = value.isdecimal() if key == "cases" else isinstance(value, str)
    return None if is_right else f"{key} is {_shown(value)}"


def _wrong_columns(rules: Mapping[str, Callable[[Any], bool]], row: Mapping[str, Any]) -> str | None:
    for column, is_right in rules.items():
        if not is_right(row[column]):
            return f"{column} is {_shown(row[column])}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(str(value))} characters)"


#: By table.
RULES: Mapping[str, Rule] = {
    "meta": _wrong_fact,
    "run": _wrong_run,
    "sample": _wrong_sample,
    "measure": lambda row: _wrong_columns({"name": _is_label, "value": _is_number}, row),
    "rung": lambda row: _wrong_columns(_RUNG, row),
    "place": lambda row: _wrong_columns(_PLACE, row),
    "environment": lambda row: _wrong_columns({"started": _is_text, "description": _is_table}, row),
    "cell": lambda row: _wrong_columns(_CELL, row),
}
