"""Who took how long where: the one frame that all tables of times are made from, and one solver against another over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Status
from bench_mtl.stats import Interval, paired_test, ratio_interval
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

#: What solvers are compared over, and where both have a time.
FIELD = ["group", "target"]
PLACE = [*FIELD, "place"]

#: An interval whose ends are further apart than this factor says nothing, and is left out.
WIDEST = 1e6

#: Of fewer pairs that are no ties no test can find anything at the level of 5 %, and none is named.
FEWEST_TESTED = 6


def contests(times: pd.DataFrame, members: Mapping[str, Sequence[str]] | None = None) -> pd.DataFrame:
    """Return a row per group of problems, target, solver and instance, in the order of the runs, from `run_times`.

    `members` are the problem labels of every group; without them every problem is a group.

    Columns: group, target, place (the number of the instance in the group), problem, instance, solver, kind, instances (of the group),
    tried (whether the solver was run on it, and not skipped), runs, reached (how many of them reached the target), repetitions (their
    seconds, the first one first; empty unless all reached it; zero counts as the shortest that can be told from it), first_seconds,
    median_seconds and later_seconds (the first of them, the median of all, and of all but the first where there are several), limit_seconds
    (missing where a run had none), longest_attempt_seconds (where it failed: the shortest of those of the runs that failed; missing where
    one is not known), all_timed_out (whether all that failed were stopped by their time limit), statuses.
    """
    import pandas as pd

    cases = _cases(times)
    if members is None:
        members = {label: (label,) for label in cases["problem"].unique()}
    labels = [(group, label) for group, labels in members.items() for label in labels]
    table = pd.DataFrame(labels, columns=["group", "problem"]).astype({"problem": cases["problem"].dtype})
    table = table.merge(cases, on="problem", sort=False)
    order = {name: pd.Series(pd.factorize(table[name])[0], table.index) for name in ("group", "target")}
    order["solver"] = table.groupby(["group", "solver"], sort=False).ngroup()
    order["place"] = table.groupby(["group", "problem", "case"], sort=False).ngroup()
    table["place"] = order["place"] - order["place"].groupby(table["group"]).transform("min")
    table["instances"] = table.groupby(FIELD)["place"].transform("nunique")
    places = pd.DataFrame(order).sort_values(["group", "target", "solver", "place"]).index
    return table.loc[places].drop(columns="case").reset_index(drop=True)


def _cases(times: pd.DataFrame) -> pd.DataFrame:
    """Return a row per problem, instance, solver and target; `case` is the number of the instance."""
    keys = ["problem", "instance", "solver", "target"]
    ran = times["status"] != Status.SKIPPED
    failed = ran & times["seconds"].isna()
    rows = times[[*keys, "repetition", "seconds", "status"]].assign(
        kind=times["solver"].map(times.groupby("solver")["kind"].last()),
        case=times.groupby(["problem", "instance"], sort=False).ngroup(),
        runs=ran,
        limit_seconds=times["limit_seconds"].fillna(np.inf).where(ran),
        longest_attempt_seconds=times["longest_attempt_seconds"].fillna(-np.inf).where(failed),
        all_timed_out=~failed | (times["status"] == Status.TIMEOUT),
    )
    by_case = rows.groupby(keys, sort=False)
    table = by_case[["case", "kind"]].first()
    table["runs"], table["reached"] = by_case["runs"].sum(), by_case["seconds"].count()
    in_order = rows[ran].sort_values(["repetition", "seconds"]).groupby(keys, sort=False)["seconds"].agg(list).reindex(table.index)
    table["repetitions"] = [
        () if runs == 0 or np.isnan(seconds).any() else tuple(max(each, RESOLUTION) for each in seconds)
        for seconds, runs in zip(in_order, table["runs"], strict=True)
    ]
    table["first_seconds"] = [seconds[0] if seconds else np.nan for seconds in table["repetitions"]]
    table["median_seconds"] = [median(seconds) if seconds else np.nan for seconds in table["repetitions"]]
    table["later_seconds"] = [median(later(seconds)) if seconds else np.nan for seconds in table["repetitions"]]
    table["limit_seconds"] = by_case["limit_seconds"].max().replace(np.inf, np.nan)
    table["longest_attempt_seconds"] = by_case["longest_attempt_seconds"].min().replace(-np.inf, np.nan)
    table["all_timed_out"], table["statuses"] = by_case["all_timed_out"].all(), by_case["status"].agg(tuple)
    return table.assign(tried=table["runs"] > 0).reset_index()


def later(repetitions: tuple[float, ...]) -> tuple[float, ...]:
    """Return all but the first, where there are others: what a choice by the first ones is measured by."""
    return repetitions[1:] or repetitions


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of contests with the times by which a choice that was made by first repetitions is measured."""
    return rows.assign(repetitions=rows["repetitions"].map(later), median_seconds=rows["later_seconds"])


def fastest(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the fastest of several solvers on every instance as one solver, chosen by the first repetition and measured by the others.

    Where none reached the target, its longest attempt is the shortest of theirs: no one of them was faster than that.
    """
    tried = rows[rows["tried"]]
    has_failed = tried["first_seconds"].isna()
    attempts = tried["longest_attempt_seconds"].fillna(-np.inf).where(has_failed)
    shortest = attempts.groupby([tried[key] for key in PLACE]).transform("min").replace(-np.inf, np.nan)
    by_place = tried["first_seconds"].fillna(np.inf).groupby([tried[key] for key in PLACE], sort=False)
    return measured(tried.assign(solver=name, longest_attempt_seconds=shortest.where(has_failed)).loc[by_place.idxmin()])


def pairs(references: pd.DataFrame, solvers: pd.DataFrame) -> pd.DataFrame:
    """Return solvers against references, over the instances of a field that both were tried on.

    A failure, whatever its reason, counts at its longest attempt: where only the reference has failed anywhere, the ratio is a lower
    bound, where only the solver has, an upper one, and where both have, on different instances, it would be neither and is missing, as it
    is where the time of a failure is not known. Instances that both fail on do not enter the ratio.

    Columns: group, target, reference, solver, instances, ratios (how many of these somebody solved, which the ratio is of), ratio
    (geometric mean of the reference's seconds over the solver's: above 1 where the solver is faster), at_least and at_most (whether it is a
    bound), ratio_low and ratio_high, lowest_ratio (the smallest of the ratios), wins, losses, ties, test, p_value.
    """
    import pandas as pd

    old, new = (_numbered(rows[rows["tried"]]) for rows in (references, solvers))
    both = new.merge(old, on=PLACE, suffixes=("", "_reference"), sort=False).sort_values(["number_reference", "number", "place"])
    keys = [*FIELD, "solver_reference", "solver"]
    rows = [(*names, *_pair(of_pair)) for names, of_pair in both.groupby(keys, sort=False)]
    return pd.DataFrame(rows, columns=[*_PAIRS]).astype(_PAIRS)


#: The types of the columns of `pairs`, which has none to go by where there is no pair.
_PAIRS = {
    "group": "str", "target": "float64", "reference": "str", "solver": "str", "instances": "int64", "ratios": "int64", "ratio": "float64",
    "at_least": "bool", "at_most": "bool", "ratio_low": "float64", "ratio_high": "float64", "lowest_ratio": "float64", "wins": "int64",
    "losses": "int64", "ties": "int64", "test": "object", "p_value": "float64",
}  # fmt: skip


def _numbered(tried: pd.DataFrame) -> pd.DataFrame:
    """Return what pairs are made of, with the numbers of the solvers in their order."""
    number = tried.groupby([*FIELD, "solver"], sort=False).ngroup()
    return tried[[*PLACE, "solver", "repetitions", "median_seconds", "longest_attempt_seconds"]].assign(number=number)


def _pair(both: pd.DataFrame) -> tuple[Any, ...]:
    """Return what `pairs` says of two solvers, but for their names."""
    new, old = both["median_seconds"].to_numpy(), both["median_seconds_reference"].to_numpy()
    is_entered = ~(np.isnan(new) & np.isnan(old))
    new_failed, old_failed = (bool(np.isnan(seconds[is_entered]).any()) for seconds in (new, old))
    after, before = (_entered(both, of, is_entered) for of in ("", "_reference"))
    ratio = low = high = lowest = float("nan")
    if after and all(after) and all(before) and not (old_failed and new_failed):
        interval = ratio_interval(before, after)
        ratio = interval.value
        lowest = min(median(one) / median(other) for one, other in zip(before, after, strict=True))
        if not old_failed and not new_failed:
            low, high = interval_ends(interval)
    tested = paired_test(new, old)
    counts = tested.wins, tested.losses, tested.ties
    test = (tested.test, tested.p_value) if tested.wins + tested.losses >= FEWEST_TESTED else (None, None)
    at_least, at_most = old_failed and not new_failed, new_failed and not old_failed
    return len(both), len(after), ratio, at_least, at_most, low, high, lowest, *counts, *test


def _entered(both: pd.DataFrame, of: str, is_entered: NDArray[np.bool_]) -> list[tuple[float, ...]]:
    """Return what stands for the times of a solver on every instance; nothing where that is not known."""
    times = zip(both[f"repetitions{of}"], both[f"longest_attempt_seconds{of}"], is_entered, strict=True)
    return [repetitions or ((attempt,) if attempt == attempt else ()) for repetitions, attempt, enters in times if enters]


def interval_ends(interval: Interval, shift: float = 0.0) -> tuple[float, float]:
    """Return the ends of an interval, of a mean with this shift; missing where it says nothing."""
    low, high = interval.low, interval.high
    if low is None or high is None or not np.isfinite(high) or high + shift > WIDEST * (low + shift):
        return float("nan"), float("nan")
    return low, high
