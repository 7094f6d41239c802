"""Who is fastest to each target on each problem, and by how much over the best solver of the other kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.columns import KIND, PROBLEM, TARGET, Column, column_names, for_files, ratio_of, seconds_of
from bench_mtl.report.tables.contests import FIELD, measured, pairs
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED, UNKNOWN
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

#: Times closer than this factor are called equal.
ABOUT_EQUAL = 1.1

#: Whom a winner is measured against.
_OTHERS = {SPECIALISED: ONE_SHOT, GENERIC: (SPECIALISED,), PEER: (SPECIALISED,)}

_RATIO = ["ratio", "ratio_low", "ratio_high"]
_TYPES = dict.fromkeys(["seconds", "other_seconds", *_RATIO], "float64")
_TYPES |= dict.fromkeys(["reached", "runs", "other_reached", "other_runs"], "Int64")

COLUMNS = [
    PROBLEM, TARGET, ratio_of("ratio", interval=("ratio_low", "ratio_high")),
    Column("winner"), KIND, seconds_of("seconds", counted=("reached", "runs")), Column("other", "Against"),
    seconds_of("other_seconds", "Its seconds", counted=("other_reached", "other_runs"), instead="rivals"),
    *for_files("reference_wins", "walkover", "failed"),
]  # fmt: skip

#: Of the short table that a report begins with.
OUTCOME = [
    PROBLEM, Column("winner"), ratio_of("ratio", interval=("ratio_low", "ratio_high")), Column("other", "Against", instead="rivals"),
    seconds_of("seconds"), seconds_of("other_seconds", "Its seconds"),
]  # fmt: skip


def winners(field: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return one row per problem and target: the fastest solver, and the fastest of the other kind.

    Only a solver that reached the target on all instances of the problem (its seeds) can win or be the rival. Its time is the geometric
    mean over the instances of the medians over the repetitions that reached it. The fastest of each kind are chosen by the first of these,
    and measured by the others where there are any: so is who of them wins. With a baseline the rival is that solver; where it wins, it is
    the fastest of all others.

    Columns: problem, target, winner, kind, seconds, reached and runs (how many of its runs reached the target, of how many), other (the
    rival), other_seconds, other_reached, other_runs, ratio (other_seconds / seconds; missing where no rival reached the target), ratio_low,
    ratio_high (see `ratio_interval`; missing where the runs say nothing of the scatter), reference_wins (whether the winner is a generic
    solver or a peer, or the baseline), `walkover` (whether no solver of the other kind was run on all instances, so that there is nobody to
    win against), rivals (how their runs ended, where none of them reached it), failed (that in a sentence, and where nobody did; else
    empty). Missing where nobody reached the target.
    """
    import pandas as pd

    standings = _standings(field, baseline)
    rows = [
        {"group": problem, "target": target, **_choice(of_field.to_dict("records"), baseline)}
        for (problem, target), of_field in standings.groupby(FIELD, sort=False)
    ]
    table = pd.DataFrame(rows, columns=[*FIELD, *column_names(COLUMNS)[2:]])
    tried = measured(field[field["tried"]])
    best, rivals = (_rows(tried, table[[*FIELD, name]][table["seconds"] > RESOLUTION]) for name in ("winner", "other"))
    ratios = pairs(rivals, best)[[*FIELD, *_RATIO]]
    table = table.drop(columns=_RATIO).merge(ratios, on=FIELD, how="left", sort=False)
    return table.rename(columns={"group": "problem"})[column_names(COLUMNS)].astype(_TYPES)


def about_equal(winners: pd.DataFrame) -> pd.Series[bool]:
    """Return in which rows of `winners` both took times that are closer than the factor `ABOUT_EQUAL`."""
    return winners["ratio"] < ABOUT_EQUAL


def _rows(field: pd.DataFrame, solvers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of solvers, of which `solvers` has group, target and label."""
    return field.merge(solvers.dropna().set_axis([*FIELD, "solver"], axis=1), on=[*FIELD, "solver"], sort=False)


def _standings(field: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Return a row per problem, target and solver: first and seconds are means of its first repetitions and of the others, missing where it
    did not get there on all instances; timeouts and statuses are of all runs that did not."""
    of_solver = field.groupby([*FIELD, "solver"], sort=False)
    table = of_solver[["kind", "instances"]].first()
    for name in ("tried", "runs", "reached", "timeouts", "statuses"):
        table[name] = of_solver[name].sum()
    for name, column in {"first": "first_seconds", "seconds": "later_seconds"}.items():
        table[name] = of_solver[column].agg(_mean).where(table["tried"] == table["instances"])
    return table.reset_index().assign(is_baseline=lambda rows: rows["solver"] == baseline)


def _mean(seconds: pd.Series[float]) -> float:
    return float(seconds.iloc[0] if len(seconds) == 1 else geometric_mean(seconds))


def _choice(standings: list[dict[Any, Any]], baseline: str | None) -> dict[str, Any]:
    """Return what a row of `winners` says before ratios."""
    tried = [each for each in standings if each["tried"]]
    complete = sorted((each for each in tried if each["first"] == each["first"]), key=lambda each: each["first"])
    if not complete:
        failed = f"no solver reached it ({_outcomes(tried or standings)})"
        row = dict.fromkeys(["winner", "kind", "other"])
        return {**row, "reference_wins": False, "walkover": False, "rivals": "", "failed": failed}
    side = "kind" if baseline is None else "is_baseline"
    finalists: dict[object, dict[Any, Any]] = {}
    for each in complete:
        finalists.setdefault(each[side], each)
    best = min(finalists.values(), key=lambda each: each["seconds"])
    if baseline is None:
        rivals = [each for each in tried if each["kind"] in (*_OTHERS[best["kind"]], UNKNOWN)]
    else:
        rivals = [each for each in tried if each["is_baseline"] != best["is_baseline"]]
    rival = next((each for each in complete if each in rivals), {})
    in_vain = rivals if not rival else []
    return {
        "winner": best["solver"],
        **{name: best[name] for name in ("kind", "seconds", "reached", "runs")},
        "other": rival.get("solver"),
        **{f"other_{name}": rival.get(name) for name in ("seconds", "reached", "runs")},
        "reference_wins": best["kind"] in ONE_SHOT if baseline is None else best["is_baseline"],
        "walkover": not any(each["tried"] == each["instances"] for each in rivals),
        "rivals": _ending(in_vain, {name: sum(each[name] for each in in_vain) for name in ("reached", "runs")}),
        "failed": f"no rival reached it ({_outcomes(rivals)})" if in_vain else "",
    }


def _outcomes(standings: Sequence[dict[Any, Any]]) -> str:
    """Return how solvers ended, those that ended alike together: ``"clarabel, ecos: not in 60 s; scs: in 2 of 3 runs, else crashed"``."""
    alike: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for each in standings:
        alike.setdefault((each["tried"], each["reached"], each["runs"], frozenset(each["statuses"])), []).append(each)
    return "; ".join(f"{', '.join(each['solver'] for each in of)}: {_on_seeds(of[0])}{_ending(of, of[0])}" for of in alike.values())


def _on_seeds(standing: dict[Any, Any]) -> str:
    tried, instances = standing["tried"], standing["instances"]
    return f"run on {tried} of {instances} seeds, " if 0 < tried < instances else ""


def _ending(standings: Sequence[dict[Any, Any]], counted: Mapping[str, int]) -> str:
    """Return how the runs of solvers ended, of which some may have got there: ``"in 2 of 3 runs, else not in 6 to 60 s or crashed"``."""
    statuses = {status for each in standings for status in each["statuses"]}
    if any(each["tried"] for each in standings):
        statuses.discard(Status.SKIPPED)
    seconds = [had for each in standings for had in each["timeouts"]]
    words = {str(status): str(status) for status in Status}
    if seconds:
        words[Status.TIMEOUT] = f"not in {' to '.join(dict.fromkeys(map(_limit, (min(seconds), max(seconds)))))} s"
    ended = " or ".join(text for status, text in words.items() if status in statuses)
    some = f"in {counted['reached']} of {counted['runs']} runs" if counted["reached"] else ""
    return ", else ".join(filter(None, [some, ended]))


def _limit(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 1000.0 else f"{seconds:.0f}"
