"""Outcomes of runs as rows of a results file, and patterns of solutions as they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bench_mtl.core.text import encodable
from bench_mtl.core.types import Certificate, Proof, Record, Sample
from bench_mtl.engine.suite import Case
from bench_mtl.model.patterns import Mask, PackedPattern, unpack
from bench_mtl.results.schema import TIMED, TRACED


@dataclass(frozen=True)
class Outcome:
    """A record with what belongs to it of its problem, its solver and where it was made.

    The `baseline` is proven of the zero point: the bounds of a run that ended without any of its own. `wall_seconds` are of the run once
    its problem stood and all was compiled, the `environment` is that of its process, as `describe_environment` gives it, the `patterns` are
    of the solution, the `proofs` prove its bounds again, and the `disturbances` are what the machine did beside the run, in words. `found`
    is what a job that is no case of a suite has found.
    """

    record: Record
    dimensions: Mapping[str, int]
    notes: tuple[str, ...]
    solver_version: str
    baseline: Certificate | None = None
    wall_seconds: float | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    patterns: tuple[PackedPattern, ...] = ()
    proofs: tuple[Proof, ...] = ()
    disturbances: tuple[str, ...] = ()
    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """Where the entries of one matrix of a run's solution are not negligible (`bench_mtl.model.patterns.NEGLIGIBLE_ENTRY`).

    The `part` is the name of the matrix, such as W, or P and Q, `nonzeros` counts entries that are not exactly zero, however small, and the
    `rank` is None where nobody has computed it. The mask is packed in `bits`, so that thousands fit in memory.
    """

    run_id: int
    part: str
    nonzeros: int
    rank: int | None
    shape: tuple[int, int]
    bits: bytes

    @property
    def mask(self) -> Mask:
        """Rows x columns, true where the entry is in the pattern."""
        return unpack(self.bits, *self.shape)


def run_row(case: Case, outcome: Outcome, environment_id: int) -> dict[str, Any]:
    """The row of table `run`, by column."""
    record, instance, best = outcome.record, case.instance, outcome.record.best or outcome.baseline
    last = record.samples[-1] if record.samples else None
    sizes = {name: int(size) for name, size in outcome.dimensions.items()}
    row = {
        "case_key": case.key, "environment_id": environment_id, "problem": instance.problem, "problem_label": instance.label,
        "instance_key": instance.key, "data": json.dumps(instance.data), "data_fingerprint": instance.fingerprint,
        "parameters": json.dumps(instance.parameters), "seed": instance.seed, "dimensions": json.dumps(sizes),
        "notes": json.dumps(outcome.notes), "solver": case.solver, "solver_label": case.solver_label, "options": json.dumps(case.options),
        "solver_version": outcome.solver_version, "repetition": case.repetition, "threads": case.threads,
        "clock": TRACED if case.traced else TIMED, "target": case.target,
        "limit_seconds": case.limits.seconds, "limits": json.dumps(asdict(case.limits)), "status": str(record.status),
        "reason": record.reason, "primal": best and best.primal, "dual": best and best.dual, "relative_gap": best and best.relative_gap,
        "infeasibility": record.best and record.best.infeasibility, "iterations": last and int(last.step), "passes": last and last.work,
        **{f"{name}_seconds": seconds for name, seconds in asdict(record.times).items()}, "wall_seconds": outcome.wall_seconds,
        "peak_memory_mib": record.peak_memory_mib, "disturbances": json.dumps(outcome.disturbances),
        "info": json.dumps(dict(record.info), default=str),
    }  # fmt: skip
    return {name: storable(value) for name, value in row.items()}


def part_rows(outcome: Outcome) -> dict[str, Iterator[tuple[Any, ...]]]:
    """The rows of each part of a run, by table, without the run's id."""
    record = outcome.record
    return {
        "sample": _sample_rows(record.samples),
        "measure": ((number, name, float(value)) for number, sample in enumerate(record.samples) for name, value in sample.measures),
        "pattern": ((each.part, each.rows, each.columns, each.nonzeros, each.rank, each.bits) for each in outcome.patterns),
        "rung": (
            (number, float(rung.asked), float(rung.seconds), None if rung.setup is None else float(rung.setup), str(rung.ending))
            for number, rung in enumerate(record.rungs)
        ),
        "place": ((number, *map(storable, place)) for number, place in enumerate(record.places)),
    }


def _sample_rows(samples: tuple[Sample, ...]) -> Iterator[tuple[Any, ...]]:
    for number, sample in enumerate(samples):
        point = sample.certificate
        yield (
            number, float(sample.seconds), int(sample.step), float(sample.work), float(point.primal), float(point.dual),
            float(point.relative_gap), float(point.infeasibility), None if sample.asked is None else float(sample.asked),
        )  # fmt: skip


def storable(value: Any) -> Any:
    """`value` as SQLite takes it: a message may hold bytes that were no text, which Python keeps as lone surrogates."""
    return encodable(value) if isinstance(value, str) else value
