"""Which runs decide what a report says, and are made again for it: the fastest solver of each kind on every problem, to every target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import TYPE_CHECKING

from bench_mtl.results.frames import counting, first_samples, kinds, with_ranges
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.engine.suite import Case

#: A run that takes less than so many seconds is made again at least so many times.
SHORT_SECONDS, SHORT_REPETITIONS = 1.0, 5


@dataclass(frozen=True)
class _Proof:
    """With what a case has proven a target first."""

    case: str
    row: int
    """The id of its run."""
    target: float
    seconds: float
    asked: float
    """The tolerance that a one-shot solver was asked for; NaN of an iterative solver."""


def decisive_cases(
    cases: Sequence[Case], runs: pd.DataFrame, samples: pd.DataFrame, targets: Sequence[float], repetitions: int
) -> list[Case]:
    """Return the cases that repeat the fastest solver of each kind on every problem to every target.

    The first runs say who is fastest, and these say how fast: a choice among many, measured by the runs that it was made by, is too good
    by chance. An iterative solver is stopped at the tightest target that it is repeated for. A one-shot solver is asked for the tolerances
    that proved the targets down to that one, and for no others.

    Parameters
    ----------
    cases : all of the suite
    runs, samples : of the store, with a row for each of them
    targets : of the suite
    repetitions : how many more; at least `SHORT_REPETITIONS` of what takes less than `SHORT_SECONDS`
    """
    first = {case.key: case for case in cases if case.repetition == 0}
    ranged = with_ranges(runs[runs["case_key"].isin(list(first))])
    instances = {str(label): of_problem["instance_key"].nunique() for label, of_problem in ranged.groupby("problem_label")}
    proven: dict[str, list[_Proof]] = {}
    wanted: dict[str, dict[float, int]] = {}
    for target, groups in _proofs(ranged, samples, targets).items():
        for proofs in groups.values():
            for proof in proofs:
                proven.setdefault(proof.case, []).append(proof)
        for proofs in _fastest(groups, instances):
            is_short = max(proof.seconds for proof in proofs) < SHORT_SECONDS
            for proof in proofs:
                wanted.setdefault(proof.case, {})[target] = max(repetitions, SHORT_REPETITIONS) if is_short else repetitions
    after = 1 + max((case.repetition for case in cases), default=0)
    return [again for key, counts in wanted.items() for again in _repeats(first[key], counts, proven[key], after)]


#: Problem, kind of solver, solver.
_Group = tuple[str, str, str]


def _proofs(runs: pd.DataFrame, samples: pd.DataFrame, targets: Sequence[float]) -> dict[float, dict[_Group, list[_Proof]]]:
    """Return by target, problem and solver with what each instance was proven first."""
    kind = kinds(runs, samples)
    found: dict[float, dict[_Group, list[_Proof]]] = {}
    for target, first in first_samples(runs, samples, targets):
        seconds, asked = first["seconds"].to_dict(), first["asked"].to_dict()
        groups = found.setdefault(target, {})
        rows = runs[counting(runs, target) & runs["id"].isin(first.index)]
        for run, key, problem, name, label in zip(
            *(rows[column] for column in ("id", "case_key", "problem_label", "solver", "solver_label")), strict=True
        ):
            proof = _Proof(key, int(run), target, max(seconds[run], RESOLUTION), asked[run])
            groups.setdefault((problem, kind[name], label), []).append(proof)
    return found


def _fastest(groups: Mapping[_Group, list[_Proof]], instances: Mapping[str, int]) -> Iterable[list[_Proof]]:
    """Return, for each problem and kind, the proofs of the solver with the least mean time of those that proved all instances."""
    best: dict[tuple[str, str], tuple[float, list[_Proof]]] = {}
    for (problem, kind, _), proofs in groups.items():
        if len(proofs) == instances[problem]:
            mean = geometric_mean([proof.seconds for proof in proofs])
            best[problem, kind] = min(best.get((problem, kind), (math.inf, [])), (mean, proofs), key=lambda entry: entry[0])
    return [proofs for _, proofs in best.values()]


def _repeats(case: Case, counts: Mapping[float, int], proven: Sequence[_Proof], after: int) -> list[Case]:
    """Return the repetitions of one case: the first ones to the tightest target, those that only looser ones need to these.

    Parameters
    ----------
    counts : how many repetitions each target needs
    proven : with what it proved every target
    after : the number of the first repetition
    """
    found = []
    for number in range(max(counts.values())):
        target = min(target for target, count in counts.items() if count > number)
        asked = {proof.asked for proof in proven if proof.target >= target and not math.isnan(proof.asked)}
        on_the_way = tuple(proof.target for proof in proven if proof.target > target)
        aim = None if asked or case.target == target else case.aimed_at
        tolerances = tuple(sorted(asked, reverse=True))
        again = replace(case, target=target, targets=on_the_way, aim=aim, tolerances=tolerances)
        found.append(replace(again, repetition=after + number, repeats=proven[0].row))
    return found
