"""What all runs together prove of every optimum, derived from the bounds of the rows."""

from __future__ import annotations

from dataclasses import dataclass

from bench_mtl.report.check.rows import Rows, Run

#: Bounds may cross by this share of the objective, or of the objective where the iterative solvers started: rounding.
_ROUNDING, _ROUNDING_OF_START = 1e-9, 1e-12


@dataclass(frozen=True)
class Enclosure:
    """The best bounds on one instance."""

    problem: str
    instance: str
    seed: int | None
    dual: float
    dual_by: frozenset[str]
    """Labels of all solvers that proved it."""
    primal: float
    primal_by: frozenset[str]
    missing: tuple[str, ...]
    """Labels of the solvers whose enclosure misses another one."""
    runs: tuple[tuple[Run, bool], ...]
    """All runs with a point, each with whether its enclosure meets the best bounds."""

    @property
    def agrees(self) -> bool:
        return not self.missing

    @property
    def gap(self) -> float:
        """Relative."""
        return max(0.0, self.primal - self.dual) / max(1e-300, abs(self.primal))


def enclosures(rows: Rows) -> tuple[Enclosure, ...]:
    """Return the enclosure of every instance that has a proven point."""
    by_instance: dict[str, list[Run]] = {}
    for run in rows.runs:
        if run.primal is not None:
            by_instance.setdefault(run.instance, []).append(run)
    return tuple(_enclosure(of_instance) for of_instance in by_instance.values())


def _enclosure(runs: list[Run]) -> Enclosure:
    duals = [(run.dual, run.label) for run in runs if run.dual is not None]
    primals = [(run.primal, run.label) for run in runs if run.primal is not None]
    dual, primal = max((value for value, _ in duals), default=float("-inf")), min(value for value, _ in primals)
    starts = [abs(iterative[0].primal) for run in runs if (iterative := [s for s in run.samples if s.asked is None])]
    allowed = max(_ROUNDING * min(abs(value) for value, _ in primals), _ROUNDING_OF_START * max(starts, default=0.0))
    meets = [(run, _meets(run, dual, primal, allowed)) for run in runs]
    return Enclosure(
        problem=runs[0].problem,
        instance=runs[0].instance,
        seed=runs[0].seed,
        dual=dual,
        dual_by=frozenset(label for value, label in duals if value == dual),
        primal=primal,
        primal_by=frozenset(label for value, label in primals if value == primal),
        missing=tuple(dict.fromkeys(run.label for run, is_met in meets if not is_met)),
        runs=tuple(meets),
    )


def _meets(run: Run, dual: float, primal: float, allowed: float) -> bool:
    low, high = run.dual, run.primal
    return low is not None and high is not None and low - primal <= allowed and dual - high <= allowed
