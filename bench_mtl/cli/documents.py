"""Results as JSON, for programs that read what a command prints. `docs/command-line.md` says what each command's document holds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_mtl.core.types import Certificate, Record, Sample


def to_json(content: Any) -> str:
    """Return JSON in ASCII, which no terminal obeys: tables, lists, texts, numbers, true, false and null.

    NaN, which is no number, is null; infinite numbers are the texts "inf" and "-inf". Paths and whatever else only has words are texts.
    """
    return json.dumps(_plain(content), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def run_document(record: Record) -> dict[str, Any]:
    """Return how a run ended, what it proved, and what it took."""
    return {
        "status": record.status,
        "reason": record.reason,
        "places": [place._asdict() for place in record.places],
        **_bounds(record.best),
        "seconds": record.times.setup + record.times.solve,
        "iterations": record.samples[-1].step if record.samples else None,
        "times": record.times,
        "info": dict(record.info),
    }


def sample_document(sample: Sample) -> dict[str, Any]:
    """Return one certified point of a run."""
    counts = {"seconds": sample.seconds, "iteration": sample.step, "passes": sample.work, "asked": sample.asked}
    return counts | _bounds(sample.certificate) | {"measures": dict(sample.measures)}


def _bounds(certificate: Certificate | None) -> dict[str, float | None]:
    names = {"objective": "primal", "dual_bound": "dual", "relative_gap": "relative_gap", "infeasibility": "infeasibility"}
    return {name: getattr(certificate, field, None) for name, field in names.items()}


def _plain(value: Any) -> Any:
    """Return a value as what JSON has."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(float(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_word(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(_word, value))
    if hasattr(value, "tolist"):  # a number or an array of NumPy
        return _plain(value.tolist())
    return _word(value)


def _word(value: Any) -> str:
    """Return a text that can be written as UTF-8."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
