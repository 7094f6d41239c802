"""Results as JSON, for programs that read what a command prints. `docs/command-line.md` says what each command's document holds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_mtl.core.types import Record, Sample
    from bench_mtl.engine.suite import Case
    from bench_mtl.model.protocols import Problem


def to_json(content: Any) -> str:
    """Return JSON in ASCII, which no terminal obeys: tables, lists, texts, numbers, true, false and null.

    NaN, which is no number, is null; infinite numbers are the texts "inf" and "-inf". Paths and whatever else only has words are texts.
    """
    return json.dumps(_plain(content), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def run_document(record: Record) -> dict[str, Any]:
    """Return how a run ended, what it proved, and what it took."""
    best, last = record.best, record.samples[-1] if record.samples else None
    return {
        "status": record.status,
        "reason": record.reason,
        "places": [place._asdict() for place in record.places],
        "objective": None if best is None else best.primal,
        "dual_bound": None if best is None else best.dual,
        "relative_gap": None if best is None else best.relative_gap,
        "infeasibility": None if best is None else best.infeasibility,
        "seconds": record.times.setup + record.times.solve,
        "iterations": None if last is None else last.step,
        "times": record.times,
        "info": dict(record.info),
    }


def sample_document(sample: Sample) -> dict[str, Any]:
    """Return one certified point of a run."""
    certificate = sample.certificate
    return {
        "seconds": sample.seconds,
        "iteration": sample.step,
        "passes": sample.work,
        "asked": sample.asked,
        "objective": certificate.primal,
        "dual_bound": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "infeasibility": certificate.infeasibility,
        "measures": dict(sample.measures),
    }


def problem_document(name: str, problem: Problem) -> dict[str, Any]:
    """Return what is solved: the name of the problem, its sizes, and what a reader should be told of its data."""
    return {"problem": name, "dimensions": dict(problem.dimensions), "notes": list(problem.notes)}


def case_document(case: Case) -> dict[str, Any]:
    """Return what tells a case of a suite from the others."""
    return {
        "problem": case.instance.label,
        "family": case.instance.problem,
        "solver": case.solver_label,
        "seed": case.instance.seed,
        "repetition": case.repetition,
        "target": case.target,
    }


def _plain(value: Any) -> Any:
    """Return a value as what JSON has."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(float(value))
    if isinstance(value, Mapping):
        return {_word(key): _plain(inner) for key, inner in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
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
