"""Which runs decide what a report says, and are made again: the fastest of each kind and `auto`, on every problem to every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import TYPE_CHECKING

from bench_mtl.results.frames import AUTO, counting, first_samples, kinds, with_ranges
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.engine.suite import Case

#: A run that takes less than so many seconds is made again at least so many times.
SHORT_SECONDS, SHORT_REPETITIONS = 1.0, 5

_KIND = ["target", "problem_label", "kind"]


def decisive_cases(
    cases: Sequence[Case], runs: pd.DataFrame, samples: pd.DataFrame, targets: Sequence[float], repetitions: int
) -> list[Case]:
    """Return the cases that repeat the fastest of each kind and `auto`, on every problem to every target, `repetitions` times or more.

    The first runs say who is fastest, and these say how fast: a choice among many, measured by the runs that it was made by, is too good
    by chance. An iterative solver is stopped at the tightest target that it is repeated for; a one-shot solver is asked only for the
    tolerances that proved the targets down to that one. `runs` and `samples` are of all `cases` of a suite.
    """
    first = {case.key: case for case in cases if case.repetition == 0 and not case.traced}
    ranged = with_ranges(runs[runs["case_key"].isin(list(first))])
    proofs = _proofs(ranged, samples, targets)
    solvers = proofs.groupby([*_KIND, "solver_label"], sort=False)
    table = solvers.agg(mean=("seconds", geometric_mean), longest=("seconds", "max"), instances=("id", "size")).reset_index()
    # Of the solvers that have proven all instances of a problem.
    complete = table[table["instances"] == table["problem_label"].map(ranged.groupby("problem_label")["instance_key"].nunique())]
    fastest = complete.loc[complete.groupby(_KIND, sort=False)["mean"].idxmin()]
    counts: dict[str, dict[float, int]] = {}
    for *group, longest in fastest[[*_KIND, "solver_label", "longest"]].to_numpy().tolist():
        count = max(repetitions, SHORT_REPETITIONS) if longest < SHORT_SECONDS else repetitions
        for key in solvers.get_group(tuple(group))["case_key"]:
            counts.setdefault(key, {})[group[0]] = count
    after = 1 + max((case.repetition for case in cases), default=0)
    return [again for key, of in counts.items() for again in _repeats(first[key], of, proofs[proofs["case_key"] == key], after)]


def _proofs(runs: pd.DataFrame, samples: pd.DataFrame, targets: Sequence[float]) -> pd.DataFrame:
    """Return the runs that have proven each target, with the seconds and the tolerance that they have done so first with."""
    import pandas as pd

    runs = runs.assign(kind=runs["solver"].map(kinds(runs, samples)).mask(runs["solver"] == AUTO, AUTO))
    parts = [
        runs[counting(runs, target) & runs["id"].isin(first.index)]
        .drop(columns="target")
        .join(first[["seconds", "asked"]], on="id")
        .assign(target=target)
        for target, first in first_samples(runs, samples, targets)
    ]
    proofs = pd.concat(parts, ignore_index=True)
    return proofs.assign(seconds=proofs["seconds"].clip(lower=RESOLUTION))


def _repeats(case: Case, counts: Mapping[float, int], proofs: pd.DataFrame, after: int) -> list[Case]:
    """Return the repetitions of one case, from number `after` on, with `counts` for each target: the first ones to the tightest target."""
    repeats = []
    for number in range(max(counts.values())):
        target = min(target for target, count in counts.items() if count > number)
        tolerances = tuple(sorted(set(proofs.loc[proofs["target"] >= target, "asked"].dropna().tolist()), reverse=True))
        on_the_way = tuple(proofs.loc[proofs["target"] > target, "target"].tolist())
        again = replace(case, target=target, targets=on_the_way, tolerances=tolerances)
        repeats.append(replace(again, repetition=after + number, repeats=int(proofs["id"].iloc[0])))
    return repeats
