"""Who is fastest to each target, by how much over the best solver of the other kind, and in words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from bench_mtl.core.types import Status
from bench_mtl.report.render import enumerated, format_ratio, format_seconds, format_target
from bench_mtl.report.tables.grid import Column, Grid, fastest, grids
from bench_mtl.report.tables.pairs import pair
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED, UNKNOWN, numbers, status_counts
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Array

#: Times closer than this factor are called equal.
ABOUT_EQUAL = 1.1

#: Whom a winner is measured against.
_OTHERS = {SPECIALISED: ONE_SHOT, GENERIC: (SPECIALISED,), PEER: (SPECIALISED,)}


def winners(runs: pd.DataFrame, times: pd.DataFrame, baseline: str | None = None) -> pd.DataFrame:
    """Return one row per problem and target: the fastest solver, and the fastest of the other kind.

    Only a solver that was run on all instances of the problem (its seeds), and reached the target in every one of its runs, can win or be
    the rival. Its time is the geometric mean over the instances of the medians over repetitions. The fastest of each kind are chosen by the
    first repetition, and measured by the others where there are any: so is who of them wins. Where none of the other kind ever got there
    and its time limit stopped every run of each, the shortest time that one of them had stands for theirs, and the ratio is a lower bound.
    With a baseline the rival is that solver; where it wins, it is the fastest of all others.

    Parameters
    ----------
    runs : of a store
    times : their `run_times`
    baseline : label of a solver, or None

    Returns
    -------
    DataFrame
        problem, target, winner, kind, seconds, other (the rival), other_seconds, ratio (other_seconds / seconds), at_least (whether the
        ratio is only a lower bound), ratio_low, ratio_high (see `ratio_interval`; missing where the runs say nothing of the scatter, or the
        ratio is a bound), reference_wins (whether the winner is a generic solver or a peer, or the baseline), walkover (whether no solver
        of the other kind was run on all instances, so that there is nobody to win against), finding (the row as a sentence). Missing where
        nobody reached the target.
    """
    import pandas as pd

    statuses: dict[tuple[str, float], dict[str, str]] = {}
    for (problem, target, solver), ended in times.groupby(["problem", "target", "solver"], sort=False)["status"]:
        statuses.setdefault((str(problem), float(str(target))), {})[str(solver)] = status_counts(ended)
    limits = {str(problem): _seconds_limit(of_problem) for problem, of_problem in runs.groupby("problem_label", sort=False)}
    found = grids(times, {label: (label,) for label, _ in statuses})
    rows = [
        {"problem": grid.group, "target": grid.target, **_row(grid, baseline, statuses[grid.group, grid.target], limits[grid.group])}
        for grid in found
    ]
    numeric = ["seconds", "other_seconds", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows).astype(dict.fromkeys(numeric, "float64"))


def headlines(winners: pd.DataFrame) -> list[str]:
    """Return sentences that count, for each target, which kind of solver was fastest on how many problems; one for targets alike.

    A problem on which solvers of one kind alone were run has no winner: it is counted apart.
    """
    said: dict[str, list[str]] = {}
    for target, rows in winners.groupby("target", sort=False):
        walkovers = rows["walkover"].astype(bool)
        counts = {kind: int((rows["kind"].eq(kind) & ~walkovers).sum()) for kind in (SPECIALISED, GENERIC, PEER)}
        nobody = int(rows["winner"].isna().sum())
        parts = [f"a {kind} solver is fastest on {count}" for kind, count in counts.items() if count]
        parts += [f"no solver gets there on {nobody}"] if nobody else []
        if alone := int(walkovers.sum()):
            parts.append(f"solvers of one kind alone were run, which is no win, on {alone}")
        parts[0] += f" of {len(rows)} problem{'s' if len(rows) > 1 else ''}"
        said.setdefault(enumerated(parts), []).append(format_target(float(str(target))))
    return [f"To a proven relative gap of {enumerated(targets)}, {sentence}." for sentence, targets in said.items()]


def certainty(winners: pd.DataFrame) -> str:
    """Return how many ratios have an interval, are bounds, or have neither, in a sentence; empty where there is no ratio.

    There is no interval where a side was measured once, or where the runs scatter so widely that it would say nothing.
    """
    known = winners["ratio"].notna()
    bounds, with_interval = int((known & winners["at_least"].astype(bool)).sum()), int((known & winners["ratio_low"].notna()).sum())
    rest = int(known.sum()) - bounds - with_interval
    counts = {
        f"{with_interval} with a 95 % interval": with_interval,
        f"{bounds} {'is a bound' if bounds == 1 else 'are bounds'} (no rival got there)": bounds,
        f"{rest} without an interval": rest,
    }
    parts = [words for words, count in counts.items() if count]
    return f"{int(known.sum())} ratio{'s' if known.sum() > 1 else ''}: {enumerated(parts)}." if parts else ""


def findings(winners: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the label and the findings of each problem: for neighbouring targets with one winner and rival, all ratios."""
    found = []
    for problem, rows in winners.groupby("problem", sort=False):
        sentences = []
        for _, alike in itertools.groupby(rows.to_dict("records"), key=lambda row: (row["winner"], row["other"])):
            *looser, last = alike
            ratios = [
                f"{_bound(row)} {format_ratio(row['ratio'], _bound(row))} to {format_target(row['target'])}".lstrip()
                for row in looser
                if row["ratio"] == row["ratio"]
            ]
            also = f"; {', '.join(ratios)}" if ratios else ""
            sentences.append(f"To {format_target(last['target'])}, {last['finding'].removesuffix('.')}{also}.")
        found.append((str(problem), " ".join(sentences)))
    return found


def _bound(row: dict[Any, Any]) -> str:
    return ">=" if row["at_least"] else ""


def _row(grid: Grid, baseline: str | None, statuses: dict[str, str], seconds_limit: float | None) -> dict[str, Any]:
    """Return what `winners` says of one problem and target."""
    complete = sorted((column.measured for column in grid.columns if column.solved.all()), key=_first_seconds)
    if not complete:
        row = dict.fromkeys(["winner", "kind", "seconds", "other", "other_seconds", "ratio", "ratio_low", "ratio_high"])
        tried = {column.name: statuses[column.name] for column in grid.columns} or statuses
        finding = f"no solver gets there{_within(grid.columns, tried, seconds_limit)} ({_outcomes(grid, tried)})."
        return {**row, "at_least": False, "reference_wins": False, "walkover": False, "finding": finding}
    best = min(_finalists(complete, baseline), key=_seconds)
    others = _rivals(grid, best, baseline)
    names = {column.name for column in others}
    rival = next((column for column in complete if column.name in names), None)
    seconds = _seconds(best)
    row = {"other": rival and rival.name, "other_seconds": rival and _seconds(rival), "ratio": None, "at_least": False}
    row |= {"ratio_low": None, "ratio_high": None}
    if rival is not None and seconds > RESOLUTION:
        found = pair(rival, best)
        row |= {"ratio": found.ratio, "ratio_low": found.low, "ratio_high": found.high}
    known = [column for column in others if column.kind != UNKNOWN]
    if rival is None and seconds > RESOLUTION and known and all(column.stopped and not column.reached for column in known):
        found = pair(fastest(known, ""), best)
        if found.at_least and found.instances == grid.instances and found.ratio == found.ratio:
            row |= {"ratio": found.ratio, "at_least": True}
    losers, limit = _outcomes(grid, {column.name: statuses[column.name] for column in others}), _within(others, statuses, seconds_limit)
    finding = _finding(best, seconds, row, _Rivals.of(best, others, baseline), losers, limit)
    reference_wins = best.kind in ONE_SHOT if baseline is None else best.name == baseline
    verdict = {"reference_wins": reference_wins, "walkover": not any(column.tried.all() for column in others)}
    return {"winner": best.name, "kind": best.kind, "seconds": seconds, **row, **verdict, "finding": finding}


def _within(columns: Sequence[Column], statuses: dict[str, str], limit: float | None) -> str:
    """Return the limit in words where it ended all that these solvers did, and each had as long: something else may have ended them."""
    if limit is None or not columns:
        return ""
    is_met = all(statuses[column.name] == Status.TIMEOUT and bool((column.had >= limit).all()) for column in columns)
    return f" within the {limit:g} s limit" if is_met else ""


def _rivals(grid: Grid, best: Column, baseline: str | None) -> list[Column]:
    """Return who the winner is measured against; one of no known kind may be of the other."""
    if baseline is None:
        return [column for column in grid.columns if column.kind in (*_OTHERS[best.kind], UNKNOWN)]
    return [column for column in grid.columns if (column.name != baseline if best.name == baseline else column.name == baseline)]


def _finalists(complete: list[Column], baseline: str | None) -> list[Column]:
    """Return the first of each kind, or the baseline and the first of all others."""
    found: dict[object, Column] = {}
    for column in complete:
        found.setdefault(column.kind if baseline is None else column.name == baseline, column)
    return list(found.values())


def _seconds(column: Column) -> float:
    """Over the instances, all of which it solved."""
    return _mean(column.seconds)


def _first_seconds(column: Column) -> float:
    """Of the first repetitions, which choices are made by."""
    return _mean(column.first)


def _mean(seconds: Array) -> float:
    times = seconds.tolist()
    return float(times[0] if len(times) == 1 else geometric_mean(times))


@dataclass(frozen=True)
class _Rivals:
    """How the rivals of a winner are called."""

    many: str
    """What one of them is called after "no"."""
    title: str
    """What the best of them is called."""

    @classmethod
    def of(cls, best: Column, others: list[Column], baseline: str | None) -> _Rivals:
        if baseline is None:
            present = {column.kind for column in others}
            kinds = " or ".join([kind for kind in _OTHERS[best.kind] if kind in present] or _OTHERS[best.kind][:1])
            return cls(f"{kinds} solver", f"the fastest {kinds} solver")
        if best.name == baseline:
            return cls("other solver", "the fastest of the others")
        return cls(f"run of the baseline {baseline}", "the baseline")


def _finding(best: Column, seconds: float, row: dict[str, Any], rivals: _Rivals, losers: str, limit: str) -> str:
    winner, ratio = f"the {best.kind} solver {best.name}", row["ratio"]
    if row["other"] is None:
        if not losers:
            return f"{winner} is there in {format_seconds(seconds)} s; no {rivals.many} was run on this problem, so this is no win."
        lead = "" if ratio is None else f", at least {format_ratio(ratio, '>=')} faster"
        return f"{winner} is fastest with {format_seconds(seconds)} s{lead}; no {rivals.many} gets there{limit} ({losers})."
    against = f"{row['other']}, {rivals.title}"
    low, high = row["ratio_low"], row["ratio_high"]
    interval = "" if low is None or low != low else f"; 95 % interval {format_ratio(low)} to {format_ratio(high)}"
    both = f"({format_seconds(seconds)} s against {format_seconds(row['other_seconds'])} s{interval})"
    if ratio is None:
        return f"{winner} is there at once, before {against} {both}."
    if ratio < ABOUT_EQUAL:
        return f"{winner} is about as fast as {against} {both}."
    verb = "wins: it is" if best.kind in ONE_SHOT else "is"
    return f"{winner} {verb} {format_ratio(ratio)} faster than {against} {both}."


def _outcomes(grid: Grid, statuses: dict[str, str]) -> str:
    """Return how solvers ended, those that ended alike together.

    ``"clarabel, ecos: timeout after 4.2 to 6.3 s; scs: in 2 of 3 runs, verified 2/3, timeout 1/3"``
    """
    columns = {column.name: column for column in grid.columns}
    alike: dict[str, list[str]] = {}
    for name, status in statuses.items():
        alike.setdefault(f"{_extent(columns.get(name), grid.instances)}{status}", []).append(name)
    return "; ".join(f"{', '.join(names)}: {ending}{_had([columns.get(name) for name in names])}" for ending, names in alike.items())


def _had(columns: Sequence[Column | None]) -> str:
    """Return the times that solvers had on the only instance, which they did not solve; nothing where one of them is not known."""
    known = [float(column.had[0]) for column in columns if column is not None and len(column.had) == 1 and column.had[0] == column.had[0]]
    if not known or len(known) < len(columns):
        return ""
    least, most = format_seconds(min(known)), format_seconds(max(known))
    return f" after {least} s" if least == most else f" after {least} to {most} s"


def _extent(column: Column | None, instances: int) -> str:
    if column is None:
        return ""
    some = f"in {column.reached} of {column.runs} runs, " if column.reached else ""
    tried = int(column.tried.sum())
    return some + (f"run on {tried} of {instances} seeds, " if tried < instances else "")


def _seconds_limit(runs: pd.DataFrame) -> float | None:
    """Return what all runs of a problem were limited to."""
    limits = numbers(runs[runs["status"] != Status.SKIPPED], "limit_seconds").unique()
    return float(limits[0]) if len(limits) == 1 and limits[0] == limits[0] else None
