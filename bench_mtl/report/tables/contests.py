"""Who took how long where: the one frame that all tables of times are made from, and one solver against another over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

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
    tried (whether the solver was run on it, and not skipped), runs, reached (how many of them reached the target), repetitions (the seconds
    of these, the first one first; zero counts as the shortest that can be measured), first_seconds, median_seconds and later_seconds
    (the first of them, the median of all, and of all but the first where there are several; missing where there is none), timeouts (the
    seconds that runs had which their limit stopped short of the target), statuses (of those that did not reach it).
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
    failed = times["seconds"].isna()
    had = times["longest_attempt_seconds"].clip(upper=times["limit_seconds"])  # missing where no clock has moved
    rows = times[[*keys, "repetition", "seconds"]].assign(
        kind=times["solver"].map(times.groupby("solver")["kind"].last()),
        case=times.groupby(["problem", "instance"], sort=False).ngroup(),
        runs=ran,
        timeouts=had.where(failed & (times["status"] == Status.TIMEOUT)),
        statuses=times["status"].where(failed),
    )
    table = rows.groupby(keys, sort=False)[["case", "kind"]].first()
    by_case = rows.sort_values(["repetition", "seconds"], kind="stable").groupby(keys, sort=False)
    table["runs"], table["reached"] = by_case["runs"].sum(), by_case["seconds"].count()
    for name, column in {"repetitions": "seconds", "timeouts": "timeouts", "statuses": "statuses"}.items():
        table[name] = by_case[column].agg(_present)
    table["repetitions"] = [tuple(max(each, RESOLUTION) for each in seconds) for seconds in table["repetitions"]]
    table["first_seconds"] = [seconds[0] if seconds else np.nan for seconds in table["repetitions"]]
    table["median_seconds"] = [median(seconds) if seconds else np.nan for seconds in table["repetitions"]]
    table["later_seconds"] = [median(later(seconds)) if seconds else np.nan for seconds in table["repetitions"]]
    return table.assign(tried=table["runs"] > 0).reset_index()


def _present(values: pd.Series[Any]) -> tuple[Any, ...]:
    return tuple(values.dropna())


def later(repetitions: tuple[float, ...]) -> tuple[float, ...]:
    """Return all but the first, where there are others: what a choice by the first ones is measured by."""
    return repetitions[1:] or repetitions


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of contests with the times by which a choice that was made by first repetitions is measured."""
    return rows.assign(repetitions=rows["repetitions"].map(later), median_seconds=rows["later_seconds"])


def fastest(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the fastest of several solvers on every instance as one solver, chosen by the first repetition and measured by the others."""
    tried = rows[rows["tried"]]
    by_place = tried["first_seconds"].fillna(np.inf).groupby([tried[key] for key in PLACE], sort=False)
    return measured(tried.assign(solver=name).loc[by_place.idxmin()])


def pairs(references: pd.DataFrame, solvers: pd.DataFrame) -> pd.DataFrame:
    """Return solvers against references, over the instances of a field that both were tried on.

    The ratio is over those on which both reached the target; where one of them never did there is none.

    Columns: group, target, reference, solver, instances, ratios (on how many of these both reached it), only_solver and only_reference (on
    how many one alone), ratio (geometric mean of the reference's seconds over the solver's: above 1 where the solver is faster), ratio_low
    and ratio_high, lowest_ratio (the smallest of the ratios), wins, losses, ties, test, p_value (who alone reaches the target wins).
    """
    import pandas as pd

    old, new = (_numbered(rows[rows["tried"]]) for rows in (references, solvers))
    both = new.merge(old, on=PLACE, suffixes=("", "_reference"), sort=False).sort_values(["number_reference", "number", "place"])
    keys = [*FIELD, "solver_reference", "solver"]
    rows = [(*names, *_pair(of_pair)) for names, of_pair in both.groupby(keys, sort=False)]
    return pd.DataFrame(rows, columns=[*_PAIRS]).astype(_PAIRS)


#: The types of the columns of `pairs`, which has none to go by where there is no pair.
_PAIRS = {
    "group": "str", "target": "float64", "reference": "str", "solver": "str", "instances": "int64", "ratios": "int64",
    "only_solver": "int64", "only_reference": "int64", "ratio": "float64", "ratio_low": "float64", "ratio_high": "float64",
    "lowest_ratio": "float64", "wins": "int64", "losses": "int64", "ties": "int64", "test": "object", "p_value": "float64",
}  # fmt: skip


def _numbered(tried: pd.DataFrame) -> pd.DataFrame:
    """Return what pairs are made of, with the numbers of the solvers in their order."""
    number = tried.groupby([*FIELD, "solver"], sort=False).ngroup()
    return tried[[*PLACE, "solver", "repetitions", "median_seconds"]].assign(number=number)


def _pair(both: pd.DataFrame) -> tuple[Any, ...]:
    """Return what `pairs` says of two solvers, but for their names."""
    new, old = both["median_seconds"].to_numpy(), both["median_seconds_reference"].to_numpy()
    got_there, reference_got_there = ~np.isnan(new), ~np.isnan(old)
    entered = both[got_there & reference_got_there]
    ratio = low = high = lowest = float("nan")
    if len(entered):
        interval = ratio_interval([*entered["repetitions_reference"]], [*entered["repetitions"]])
        ratio, (low, high) = interval.value, interval_ends(interval)
        lowest = (entered["median_seconds_reference"] / entered["median_seconds"]).min()
    reached = len(entered), (got_there & ~reference_got_there).sum(), (reference_got_there & ~got_there).sum()
    tested = paired_test(new, old)
    counts = tested.wins, tested.losses, tested.ties
    test = (tested.test, tested.p_value) if tested.wins + tested.losses >= FEWEST_TESTED else (None, None)
    return len(both), *reached, ratio, low, high, lowest, *counts, *test


def interval_ends(interval: Interval, shift: float = 0.0) -> tuple[float, float]:
    """Return the ends of an interval, of a mean with this shift; missing where it says nothing."""
    low, high = interval.low, interval.high
    if low is None or high is None or not np.isfinite(high) or high + shift > WIDEST * (low + shift):
        return float("nan"), float("nan")
    return low, high
