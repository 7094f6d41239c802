"""Who is fastest to each target on each problem, and by how much over the best solver of the other kind."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.columns import KIND, PROBLEM, TARGET, Column, column_names, for_files, format_seconds, ratio_of, seconds_of
from bench_mtl.report.tables.contests import FIELD, fastest, measured, pairs
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED, UNKNOWN, status_counts
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

#: Times closer than this factor are called equal.
ABOUT_EQUAL = 1.1

#: Whom a winner is measured against.
_OTHERS = {SPECIALISED: ONE_SHOT, GENERIC: (SPECIALISED,), PEER: (SPECIALISED,)}

_NUMBERS = ["seconds", "other_seconds", "ratio", "ratio_low", "ratio_high"]

COLUMNS = [
    PROBLEM, TARGET, ratio_of("ratio", bounds=("at_least",), interval=("ratio_low", "ratio_high")),
    Column("winner"), KIND, seconds_of("seconds"), Column("other", "Against"),
    seconds_of("other_seconds", "Its seconds"),
    *for_files("reference_wins", "walkover", "failed"),
]  # fmt: skip


def winners(field: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return one row per problem and target: the fastest solver, and the fastest of the other kind.

    Only a solver that was run on all instances of the problem (its seeds), and reached the target in every one of its runs, can win or be
    the rival. Its time is the geometric mean over the instances of the medians over repetitions. The fastest of each kind are chosen by the
    first repetition, and measured by the others where there are any: so is who of them wins. Where none of the other kind ever reached the
    target and its time limit stopped every run of each, the shortest of their longest attempts stands for their time, and the ratio is a
    lower bound. With a baseline the rival is that solver; where it wins, it is the fastest of all others.

    Columns: problem, target, winner, kind, seconds, other (the rival), other_seconds, ratio (other_seconds / seconds), at_least (whether
    the ratio is only a lower bound), ratio_low, ratio_high (see `ratio_interval`; missing where the runs say nothing of the scatter, or the
    ratio is a bound), reference_wins (whether the winner is a generic solver or a peer, or the baseline), walkover (whether no solver of
    the other kind was run on all instances, so that there is nobody to win against), failed (how the runs ended that did not reach the
    target, where no solver or none of the rivals did; else empty). Missing where nobody reached the target.
    """
    import pandas as pd

    standings = _standings(field, baseline)
    rows, bounds = [], []
    for (problem, target), of_field in standings.groupby(FIELD, sort=False):
        row, stopped = _choice(of_field.to_dict("records"), baseline)
        rows.append({"group": problem, "target": target, **row})
        bounds += [(problem, target, solver) for solver in stopped]
    table = pd.DataFrame(rows)
    tried = measured(field[field["tried"]])
    best, rivals = (_rows(tried, table[[*FIELD, name]][table["seconds"] > RESOLUTION]) for name in ("winner", "other"))
    exact = pairs(rivals, best)
    least = pairs(fastest(_rows(field, pd.DataFrame(bounds, columns=[*FIELD, "solver"])), ""), best)
    least = least.merge(field.drop_duplicates(FIELD)[[*FIELD, "instances"]], on=[*FIELD, "instances"])
    ratios = pd.concat([exact, least[least["at_least"].astype(bool) & least["ratio"].notna()]])
    table = table.merge(ratios[[*FIELD, "ratio", "at_least", "ratio_low", "ratio_high"]], on=FIELD, how="left", sort=False)
    table["at_least"] = table["at_least"].eq(True)
    return table.rename(columns={"group": "problem"})[column_names(COLUMNS)].astype(dict.fromkeys(_NUMBERS, "float64"))


def about_equal(winners: pd.DataFrame) -> pd.Series[bool]:
    """Return in which rows of `winners` both took times that are closer than the factor `ABOUT_EQUAL`."""
    return (winners["ratio"] < ABOUT_EQUAL) & ~winners["at_least"].astype(bool)


def _rows(field: pd.DataFrame, solvers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of solvers, of which `solvers` has group, target and label."""
    return field.merge(solvers.dropna().set_axis([*FIELD, "solver"], axis=1), on=[*FIELD, "solver"], sort=False)


def _standings(field: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Return a row per problem, target and solver: first and seconds are means of its first repetitions and of the others, missing where it
    did not solve all, least and most are of its longest attempts; is_stopped says whether all that failed were stopped by their limit."""
    of_solver = field.groupby([*FIELD, "solver"], sort=False)
    table = of_solver[["kind", "instances"]].first()
    for name in ("tried", "runs", "reached"):
        table[name] = of_solver[name].sum()
    table["is_stopped"] = of_solver["all_timed_out"].all()
    for name, column in {"first": "first_seconds", "seconds": "later_seconds"}.items():
        table[name] = of_solver[column].agg(_mean).where(table["tried"] == table["instances"])
    table["least"], table["most"] = (getattr(of_solver["longest_attempt_seconds"], end)() for end in ("min", "max"))
    table["statuses"] = of_solver["statuses"].sum()
    return table.reset_index().assign(is_baseline=lambda rows: rows["solver"] == baseline)


def _mean(seconds: pd.Series[float]) -> float:
    return float(seconds.iloc[0] if len(seconds) == 1 else geometric_mean(seconds))


def _choice(standings: list[dict[Any, Any]], baseline: str | None) -> tuple[dict[str, Any], list[str]]:
    """Return what a row of `winners` says before ratios, and the rivals that a lower bound is of, where no rival reached the target."""
    tried = [each for each in standings if each["tried"]]
    complete = sorted((each for each in tried if each["first"] == each["first"]), key=lambda each: each["first"])
    if not complete:
        failed = f"no solver reaches it ({_outcomes(tried or standings)})"
        row = dict.fromkeys(["winner", "kind", "seconds", "other", "other_seconds"])
        return {**row, "reference_wins": False, "walkover": False, "failed": failed}, []
    side = "kind" if baseline is None else "is_baseline"
    finalists: dict[object, dict[Any, Any]] = {}
    for each in complete:
        finalists.setdefault(each[side], each)
    best = min(finalists.values(), key=lambda each: each["seconds"])
    if baseline is None:
        rivals = [each for each in tried if each["kind"] in (*_OTHERS[best["kind"]], UNKNOWN)]
    else:
        rivals = [each for each in tried if each["is_baseline"] != best["is_baseline"]]
    rival = next((each for each in complete if each in rivals), None)
    stopped = [each for each in rivals if rival is None and each["kind"] != UNKNOWN]
    is_bound = all(each["is_stopped"] and not each["reached"] for each in stopped)
    row = {
        "winner": best["solver"],
        "kind": best["kind"],
        "seconds": best["seconds"],
        "other": rival and rival["solver"],
        "other_seconds": rival and rival["seconds"],
        "reference_wins": best["kind"] in ONE_SHOT if baseline is None else best["is_baseline"],
        "walkover": not any(each["tried"] == each["instances"] for each in rivals),
        "failed": f"no {_called(best, rivals, baseline)} reaches it ({_outcomes(rivals)})" if rivals and rival is None else "",
    }
    return row, [each["solver"] for each in stopped] if is_bound else []


def _called(best: dict[Any, Any], rivals: Sequence[dict[Any, Any]], baseline: str | None) -> str:
    """Return what one of the rivals is called after "no"."""
    if baseline is not None:
        return "other solver" if best["is_baseline"] else f"run of the baseline {baseline}"
    present = {each["kind"] for each in rivals}
    kinds = [kind for kind in _OTHERS[best["kind"]] if kind in present] or _OTHERS[best["kind"]][:1]
    return f"{' or '.join(kinds)} solver"


def _outcomes(standings: Sequence[dict[Any, Any]]) -> str:
    """Return how solvers ended, those that ended alike together.

    ``"clarabel, ecos: timeout after 4.2 to 6.3 s; scs: in 2 of 3 runs, else timeout after 6.1 s"``
    """
    alike: dict[str, list[dict[Any, Any]]] = {}
    for each in standings:
        where = f"run on {each['tried']} of {each['instances']} seeds" if 0 < each["tried"] < each["instances"] else ""
        some = f"in {each['reached']} of {each['runs']} runs" if each["reached"] else ""
        others = " or ".join(status for status in dict.fromkeys(each["statuses"]) if status not in (Status.VERIFIED, Status.SKIPPED))
        ended = f"else {others}" if some and others else "" if some else status_counts(each["statuses"])
        alike.setdefault(", ".join(filter(None, [where, some, ended])), []).append(each)
    return "; ".join(f"{', '.join(each['solver'] for each in of)}: {ending}{_after(of)}" for ending, of in alike.items())


def _after(standings: Sequence[dict[Any, Any]]) -> str:
    """Return how long the longest attempts were; nothing where one is not known."""
    least, most = (format_seconds(pick(each[end] for each in standings)) for pick, end in ((min, "least"), (max, "most")))
    if any(each["least"] != each["least"] for each in standings):
        return ""
    return f" after {least} s" if least == most else f" after {least} to {most} s"
