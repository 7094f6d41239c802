"""What all tables are made with: how the rows of a store are read, grouped and counted.

A group is one solver on one labelled problem: its seeds and repetitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import GENERIC_NAMES, GRACE_SECONDS, PEER_PREFIX, Status

if TYPE_CHECKING:
    import pandas as pd

SPECIALISED, GENERIC, PEER, UNKNOWN = "specialised", "generic", "peer", "unknown"

#: Kinds that are asked for a tolerance and answer once: what specialised solvers are measured against.
ONE_SHOT = (GENERIC, PEER)

#: The solver that users are told to take, whichever kind of problem they have.
AUTO = "auto"

#: Above every relative gap that can be a target.
_ABOVE_ALL = 2.0

#: What the runs of a group share.
GROUP = ["problem_label", "solver_label"]


def times_to_gap(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """Seconds of solving until each run first has a proven relative gap of at most each target; missing if it never has.

    For an iterative solver that is its first such sample. For a generic one, whose seconds count from zero at every
    tolerance, it is the cheapest tolerance that proves the target. Both are the least seconds over such samples.
    Columns: run_id, problem_label, solver_label, target, seconds; a row per run and target that it counts for (`counting`).
    """
    import pandas as pd

    about = runs[["id", "problem_label", "solver_label"]].rename(columns={"id": "run_id"})
    parts = [
        about[counting(runs, target)].join(first[["seconds"]], on="run_id").assign(target=target)
        for target, first in first_samples(runs, samples, targets)
    ]
    return pd.concat(parts, ignore_index=True)


def with_ranges(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with `counts_from` and `counts_below`: the targets that each counts for, from the one up to below the other.

    A run counts for its own target and for all looser ones, but of a solver that was run for every target by itself each run counts from
    its own target to the next. Targets beyond the tightest are for those that were run to that and did not reach it; one that did was
    stopped there, and counts as far as its gap.
    """
    keys = [*GROUP, "instance_key"]
    is_first = runs["repetition"] == runs.groupby(keys, sort=False)["repetition"].transform("min")
    groups = {labels: sorted(set(numbers(first, "target"))) for labels, first in runs[is_first].groupby(keys, sort=False)}
    tightest = numbers(runs, "relative_gap").fillna(inf).clip(upper=numbers(runs, "target"))
    reached = tightest.where(runs["status"] == Status.VERIFIED, 0.0)
    low, high = [], []
    for problem, solver, instance, target, beyond in zip(*(runs[name] for name in [*keys, "target"]), reached, strict=True):
        targets = groups[problem, solver, instance]
        low.append(beyond if target <= targets[0] else float(target))
        high.append(min((other for other in targets if other > target), default=_ABOVE_ALL))
    return runs.assign(counts_from=low, counts_below=high)


def counting(runs: pd.DataFrame, target: float) -> pd.Series[bool]:
    """Return which runs count for a target; all where nobody has asked `with_ranges`."""
    import pandas as pd

    if "counts_from" not in runs:
        return pd.Series(True, index=runs.index)
    return (runs["counts_from"] <= target) & (target < runs["counts_below"])


def first_samples(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> Iterator[tuple[float, pd.DataFrame]]:
    """Yield, for each target, seconds, passes, iterations and tolerance of the sample with which each run reached it (`times_to_gap`).

    An answer that came `GRACE_SECONDS` after its limit, or later, reaches nothing.
    """
    import pandas as pd

    points = pd.DataFrame({"run_id": samples["run_id"], "gap": numbers(samples, "relative_gap")})
    for name, source in {"seconds": "seconds", "passes": "passes", "iterations": "iteration", "asked": "asked_tolerance"}.items():
        points[name] = numbers(samples, source)
    points["distance"] = numbers(samples, "primal") - numbers(samples, "dual")
    # Where the optimum is almost zero `Tolerance.met_by` verifies a run although its relative gap is large: what its last gap is to its
    # target, that another one, of any run on the instance, may be to another target.
    verified = runs[runs["status"] == Status.VERIFIED]
    points["aim"] = points["run_id"].map(pd.Series(numbers(verified, "target").to_numpy(), index=verified["id"]))
    by_run = points.groupby("run_id")
    # A little more than the quotient, whose rounding must not cost a run its own target.
    units = by_run["distance"].transform("last") * (1.0 + 1e-12) / points["aim"]
    units = units.where(by_run["gap"].transform("last") > points["aim"])
    points["unit"] = units.groupby(points["run_id"].map(pd.Series(runs["instance_key"].to_numpy(), index=runs["id"]))).transform("max")
    limits = points["run_id"].map(pd.Series(numbers(runs, "limit_seconds").to_numpy(), index=runs["id"])).fillna(inf)
    points = points[points["seconds"] <= limits + GRACE_SECONDS]
    for target in targets:
        first = _earliest(points[points["gap"] <= target])
        is_near = ~(points["aim"] > target) & (points["distance"] <= points["unit"] * target)
        rest = points[is_near & ~points["run_id"].isin(first.index)]
        yield target, (pd.concat([first, _earliest(rest)]) if len(rest) else first)[["seconds", "passes", "iterations", "asked"]]


def _earliest(points: pd.DataFrame) -> pd.DataFrame:
    return points.loc[points.groupby("run_id")["seconds"].idxmin()].set_index("run_id")


def longest_attempts(runs: pd.DataFrame, samples: pd.DataFrame, rungs: pd.DataFrame) -> pd.Series[float]:
    """Return the seconds of the longest attempt of each run, by id: what is certain where its solver did not get to a target.

    An iterative solver had all that its clock counted; a one-shot solver, which begins anew with every tolerance, the longest of these,
    set-up included; where these are not listed, the longest of its samples, and the last one. Missing where no clock has moved, such as
    that of a one-shot solver that was stopped before it was asked for anything.
    """
    import numpy as np

    by_id = runs.set_index("id")
    last = numbers(by_id, "setup_seconds") + numbers(by_id, "solve_seconds")
    sampled = samples.assign(seconds=numbers(samples, "seconds")).groupby("run_id")["seconds"].max()
    listed = rungs.assign(seconds=numbers(rungs, "seconds")).groupby("run_id")["seconds"].max()
    longest = sampled.reindex(last.index)
    return listed.reindex(last.index).fillna(longest.mask(longest < last, last)).fillna(last).replace(0.0, np.nan)


def kinds(runs: pd.DataFrame, samples: pd.DataFrame) -> dict[str, str]:
    """Return, for each solver name, whether it is generic, specialised, a peer or (it never got anywhere) unknown.

    Peers go by their names, see `PEER_PREFIX`. Generic solvers are the other one-shot ones, which are asked for a tolerance and have a
    model to build, and `GENERIC_NAMES`.
    """
    asked = samples.loc[samples["asked_tolerance"].notna(), "run_id"].unique()
    marks = runs[["solver"]].assign(
        generic=runs["id"].isin(asked) | (numbers(runs, "build_seconds") > 0) | runs["solver"].isin(GENERIC_NAMES),
        sampled=runs["id"].isin(samples["run_id"].unique()),
    )
    of_solver = marks.groupby("solver", sort=False).any()
    return {
        str(solver): PEER if str(solver).startswith(PEER_PREFIX) else GENERIC if generic else SPECIALISED if sampled else UNKNOWN
        for solver, generic, sampled in zip(of_solver.index, of_solver["generic"], of_solver["sampled"], strict=True)
    }


def all_skipped(statuses: pd.Series[Any]) -> pd.Series[Any]:
    """Return which of the texts of `status_counts` say that every run was skipped."""
    return statuses.str.fullmatch(rf"{Status.SKIPPED}(?: (\d+)/\1)?")


def status_counts(statuses: Iterable[str]) -> str:
    """``"verified"`` for one run, ``"verified 2/3, timeout 1/3"`` for several, in the order of `Status`."""
    counts = Counter(statuses)
    if counts.total() == 1:
        return next(iter(counts))
    return ", ".join(f"{status} {counts[status]}/{counts.total()}" for status in Status if status in counts)


def numbers(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a column as floats; SQL's null is missing. (A column of nulls alone comes out of SQLite without a type.)"""
    import pandas as pd

    return pd.to_numeric(frame[column]).astype("float64")


def integers(frame: pd.DataFrame, column: str) -> pd.Series[int]:
    """Return a column as whole numbers that may be missing."""
    return numbers(frame, column).astype("Int64")


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table by group with its groups as columns, named as in all tables."""
    return table.reset_index().rename(columns={"problem_label": "problem", "solver_label": "solver"})
