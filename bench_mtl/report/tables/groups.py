"""Groups of like problems, and how much faster solvers are than others over them: in ratios, in pairs, and by mean times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.text import one_line
from bench_mtl.report.columns import KIND, SOLVER, TARGET, Column, column_names, count_of, format_p_value, ratio_of, seconds_of
from bench_mtl.report.tables.contests import FIELD, fastest, interval_ends, pairs
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED
from bench_mtl.stats import holm, shifted_mean_interval, suitable_shift

if TYPE_CHECKING:
    import pandas as pd

#: The fastest solver of a kind, chosen anew on every instance.
FASTEST_GENERIC, FASTEST_PEER, FASTEST_SPECIALISED = "fastest generic", "fastest peer", "fastest specialised"

_GROUP = [Column("group"), TARGET]
_RATIO = ratio_of("ratio", interval=("ratio_low", "ratio_high"))
_REACHED = [count_of("ratios", "Both there"), count_of("only_solver", "Solver alone"), count_of("only_reference", "Reference alone")]
_ADJUSTED = Column("p_adjusted", "p (Holm)", format_p_value)

SPEED_UPS = [
    *_GROUP, _RATIO, count_of("instances"), *_REACHED, ratio_of("lowest_ratio"), count_of("losses"),
    Column("p_value", "p", format_p_value), _ADJUSTED,
]  # fmt: skip

COMPARISONS = [
    *_GROUP, Column("reference"), SOLVER, count_of("instances"), *_REACHED, _RATIO,
    count_of("wins"), count_of("losses"), count_of("ties"), Column("test"), Column("p_value", "p", format_p_value), _ADJUSTED,
]  # fmt: skip

MEANS = [
    *_GROUP, SOLVER, KIND, count_of("instances"), count_of("run_on"), count_of("solved"), seconds_of("shift", "Shift (s)"),
    count_of("solved_by_all"), seconds_of("mean", "Mean (s)", interval=("mean_low", "mean_high")),
]  # fmt: skip


def groups(runs: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the problem labels of every group: a problem family on one data set, whatever the parameters and the preprocessing.

    They are in the order of the runs. Where a family has several groups there is one more after them, of the family as a whole:
    ``"all of l1inf_hinge"``.
    """
    first = runs.drop_duplicates("problem_label")
    families: dict[str, dict[str, list[str]]] = {}
    for label, problem, data in zip(first["problem_label"], first["problem"], first["data"], strict=True):
        what, options = data_words(data, "preprocess")
        name = one_line(f"{problem} on {what}{f' ({options})' if options else ''}")
        families.setdefault(problem, {}).setdefault(name, []).append(str(label))
    members: dict[str, tuple[str, ...]] = {}
    for family, of_family in families.items():
        members |= {name: tuple(labels) for name, labels in of_family.items()}
        if len(of_family) > 1:
            members[f"all of {family}"] = tuple(label for labels in of_family.values() for label in labels)
    return members


def data_words(text: str, *left_out: str) -> tuple[str, str]:
    """Return the name of data, from JSON, and its options but for these: ``"synthetic"``, ``"d = 200, m = 60"``."""
    data = {key: value for key, value in json.loads(text).items() if key not in left_out}
    what = data.pop("name", None) or data.pop("file", "data")
    return str(what), ", ".join(f"{key} = {value}" for key, value in data.items())


def speed_ups(field: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return how many times faster the fastest specialised solver is than the fastest generic one, by group of like problems and target.

    Both are chosen anew on every instance. Peers count among the generic solvers here. With a baseline it is the fastest of all others
    against that.

    Columns: group (of two instances or more), target, instances (of the group), and as of `pairs`: ratio, ratio_low, ratio_high, ratios,
    only_solver, only_reference, lowest_ratio, losses (instances on which the generic solvers or the baseline are faster), p_value;
    p_adjusted (by Holm, over the table).
    """
    field = field[field["instances"] > 1]
    is_slow = field["kind"].isin(ONE_SHOT) if baseline is None else field["solver"] == baseline
    is_quick = field["kind"] == SPECIALISED if baseline is None else ~is_slow
    paired = pairs(fastest(field[is_slow], FASTEST_GENERIC), fastest(field[is_quick], FASTEST_SPECIALISED)).drop(columns="instances")
    table = field.drop_duplicates(FIELD)[[*FIELD, "instances"]].merge(paired, on=FIELD, how="left", sort=False)
    counts = ["ratios", "only_solver", "only_reference", "losses"]
    table[counts] = table[counts].fillna(0).astype("int64")
    return table.assign(p_adjusted=holm(table["p_value"]))[column_names(SPEED_UPS)]


def comparisons(field: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return how many times faster solvers are than a reference, per group of like problems and target.

    Without a baseline every solver that is not generic is compared with the fastest generic one of each instance, which is unfair to it,
    and the fastest specialised one of each instance with every generic one, unfair to that; those that are specialised in the same way with
    peers. With a baseline all other solvers, and the fastest specialised of them, are compared with it.

    Columns: as of `pairs`, without lowest_ratio; p_adjusted (by Holm, over all rows of the group and target that have a test).
    """
    import pandas as pd

    paired = pd.concat([pairs(references, solvers) for references, solvers in _compared(field[field["tried"]], baseline)])
    table = field[FIELD].drop_duplicates().merge(paired, on=FIELD, sort=False)
    table["p_adjusted"] = table.groupby(FIELD, sort=False)["p_value"].transform(holm).astype("float64")
    return table[column_names(COMPARISONS)]


def _compared(field: pd.DataFrame, baseline: str | None) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield references and solvers."""
    if baseline is not None:
        reference, others = field[field["solver"] == baseline], field[field["solver"] != baseline]
        yield reference, others
        yield reference, fastest(_with_more_than(1, others[others["kind"] == SPECIALISED]), FASTEST_SPECIALISED)
        return
    for kind, name, left_out in ((GENERIC, FASTEST_GENERIC, (GENERIC,)), (PEER, FASTEST_PEER, ONE_SHOT)):
        references = field[field["kind"] == kind]
        yield fastest(references, name), field[~field["kind"].isin(left_out)]
        several = _with_more_than(2, field[field["kind"].isin((kind, SPECIALISED))])  # of two it is the row above
        yield references, fastest(several[several["kind"] == SPECIALISED], FASTEST_SPECIALISED)


def _with_more_than(number: int, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of groups and targets with more solvers."""
    return rows[rows.groupby(FIELD)["solver"].transform("nunique") > number]


def means(field: pd.DataFrame) -> pd.DataFrame:
    """Shifted geometric means of the time to each target, per group of like problems and solver.

    An instance counts as solved where a repetition reached the target, with the median of those that did. Means are over the instances that
    were solved by every solver that was tried on all of the group and solved any; others have none.

    Columns: group, target, solver, kind, instances (of the group), run_on (how many of them the solver was tried on), solved, shift (of all
    solvers of the group, see `suitable_shift`), solved_by_all (how many instances the means are over), mean, mean_low and mean_high (its
    interval, see `shifted_mean_interval`).
    """
    import pandas as pd

    rows = [row for _, tried in field[field["tried"]].groupby(FIELD, sort=False) for row in _means(tried)]
    return pd.DataFrame(rows, columns=column_names(MEANS))


def _means(tried: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of one group and target."""
    shift = suitable_shift(tried.groupby("place")["median_seconds"].min().to_numpy()[:, None])
    instances = int(tried["instances"].iloc[0])
    solved = {solver: rows["median_seconds"].notna().to_numpy() for solver, rows in tried.groupby("solver", sort=False)}
    competing = [each for each in solved.values() if len(each) == instances and each.any()]
    common = np.all(competing, axis=0) if competing else np.zeros(instances, dtype=bool)
    for solver, rows in tried.groupby("solver", sort=False):
        row = {name: rows[name].iloc[0] for name in (*FIELD, "solver", "kind", "instances")}
        row |= {"run_on": len(rows), "solved": int(solved[solver].sum()), "shift": shift, "solved_by_all": int(common.sum())}
        if len(rows) == instances and solved[solver].any() and common.any():
            interval = shifted_mean_interval([*rows.loc[common, "repetitions"]], shift)
            row["mean"], (row["mean_low"], row["mean_high"]) = interval.value, interval_ends(interval, shift)
        yield row
