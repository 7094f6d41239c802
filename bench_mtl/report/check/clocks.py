"""What time a run took to a target, what time it had, and for which targets it counts: the rules of docs/reports.md, made anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bench_mtl.report.check.rows import VERIFIED, Run

#: Above every relative gap.
_ABOVE_ALL = 2.0

#: Seconds that cannot be told from none.
RESOLUTION = 1e-6


@dataclass(frozen=True)
class Counting:
    """The targets that a run counts for: from one up to below another."""

    low: float
    below: float

    def holds(self, target: float) -> bool:
        """Return whether the run counts for this target."""
        return self.low <= target < self.below


def counting(runs: Iterable[Run]) -> Mapping[int, Counting]:
    """Return by id the targets that each run counts for.

    A run counts for its own target and looser ones, and one to the tightest target of its solver's first runs for tighter ones too, which
    it has missed. Where a solver was run for several targets by itself, a run counts up to the next looser of these.
    """
    runs = tuple(runs)
    own: dict[tuple[str, str, str], list[float]] = {}
    for run in runs:
        if run.repetition == 0:
            own.setdefault((run.problem, run.label, run.instance), []).append(run.target)
    found = {}
    for run in runs:
        targets = own.get((run.problem, run.label, run.instance), [run.target])
        low = 0.0 if run.target <= min(targets) else run.target
        found[run.id] = Counting(low, min((target for target in targets if target > run.target), default=_ABOVE_ALL))
    return found


def time_to(run: Run, target: float) -> float | None:
    """Return the least seconds of a sample that proves the target; None where none does.

    A run that is verified near an optimum of zero, where no gap is small relative to it, got there with its last sample.
    """
    proving = [sample.seconds for sample in run.samples if sample.gap <= target]
    if proving:
        return min(proving)
    accepted = run.status == VERIFIED and run.target <= target and run.samples
    return run.samples[-1].seconds if accepted else None


def had(run: Run) -> float | None:
    """Return the longest time that the solver is certain to have had in one go, seconds; None where nothing is.

    That is the longest of the tolerances it was asked for. Where these are not known: of its samples, and what it spent in the end.
    """
    if run.rungs:
        return max(run.rungs)
    last = run.spent["setup"] + run.spent["solve"]
    known = [sample.seconds for sample in run.samples] + ([last] if last > 0 else [])
    return max(known, default=None)
