"""Who is fastest to each target, by how much over the best solver of the other kind, and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bench_mtl.report.render import format_ratio, format_seconds, format_target
from bench_mtl.report.tables.frames import GENERIC, GROUP, SPECIALISED, UNKNOWN, kinds, numbers, status_counts, times_to_gap
from bench_mtl.report.tables.grid import told
from bench_mtl.stats import ratio_interval
from bench_mtl.types import Status

if TYPE_CHECKING:
    import pandas as pd

#: Times closer than this factor are called equal.
ABOUT_EQUAL = 1.1

_OTHER = {SPECIALISED: GENERIC, GENERIC: SPECIALISED}


def winners(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> pd.DataFrame:
    """One row per problem and target: the fastest solver, and the fastest of the other kind.

    Only a solver that reached the target in every one of its runs on the problem can win; its time is their median. Where none
    of the other kind did although some were stopped by their time limit, that limit stands for their time, and the ratio is a lower bound.

    The interval of the ratio is that of `ratio_interval` over the problem's instances (its seeds) and their repetitions, widened to hold
    the ratio where that of the medians over all runs lies outside. It does not know that both solvers were picked for being fastest.

    Returns
    -------
    DataFrame
        problem, target, winner, kind, seconds, other (the fastest of the other kind), other_seconds, ratio
        (other_seconds / seconds), at_least (whether the ratio is only a lower bound), ratio_low, ratio_high (missing where the runs say
        nothing of the scatter, or the ratio is a bound), finding (the row as a sentence). Missing where nobody reached the target.
    """
    import pandas as pd

    targets = tuple(targets)
    entries = _entries(runs, samples, targets)
    limits = {str(problem): _seconds_limit(of_problem) for problem, of_problem in runs.groupby("problem_label", sort=False)}
    return pd.DataFrame(
        [
            {"problem": problem, "target": target, **_row(entries[problem, target], format_target(target), limit)}
            for problem, limit in limits.items()
            for target in targets
        ]
    )


def headlines(winners: pd.DataFrame) -> list[str]:
    """Per target one sentence that counts which kind of solver was fastest on how many problems."""
    lines = []
    for target, rows in winners.groupby("target", sort=False):
        counts = {kind: int((rows["kind"] == kind).sum()) for kind in (SPECIALISED, GENERIC)}
        nobody = len(rows) - sum(counts.values())
        parts = [f"a {kind} solver is fastest on {count}" for kind, count in counts.items() if count]
        parts += [f"no solver gets there on {nobody}"] if nobody else []
        parts[0] += f" of {len(rows)} problem{'s' if len(rows) > 1 else ''}"
        lines.append(f"To a proven relative gap of {format_target(float(str(target)))}, {_enumerated(parts)}.")
    return lines


def findings(winners: pd.DataFrame) -> list[tuple[str, str]]:
    """Per problem its label and its findings: of neighbouring targets with the same winner and rival, the tightest one's."""
    found = []
    for problem, rows in winners.groupby("problem", sort=False):
        by_pair: dict[tuple[Any, Any], str] = {}
        for row in rows.to_dict("records"):
            by_pair[row["winner"], row["other"]] = f"To {format_target(row['target'])}, {row['finding']}"
        found.append((str(problem), " ".join(by_pair.values())))
    return found


def _entries(runs: pd.DataFrame, samples: pd.DataFrame, targets: Iterable[float]) -> dict[tuple[str, float], list[dict[str, Any]]]:
    """By problem and target, per solver: its kind, status, how many runs reached the target, and its time if all did."""
    times = times_to_gap(runs, samples, targets)
    reached = times.groupby([*GROUP, "target"], sort=False)["seconds"].agg(["median", "count", "size"])
    measured = _by_instance(times, runs)
    groups = runs.groupby(GROUP, sort=False)
    about = groups["solver"].first().map(kinds(runs, samples)).to_frame("kind").assign(status=groups["status"].agg(status_counts))
    entries: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in reached.reset_index().join(about, on=GROUP).to_dict("records"):
        entry = {
            "label": str(row["solver_label"]),
            "kind": row["kind"],
            "status": row["status"],
            "runs": row["size"],
            "reached": row["count"],
            "seconds": row["median"] if row["count"] == row["size"] else None,
            "measured": measured[row["problem_label"], row["solver_label"], row["target"]],
        }
        entries.setdefault((str(row["problem_label"]), row["target"]), []).append(entry)
    return entries


def _by_instance(times: pd.DataFrame, runs: pd.DataFrame) -> dict[tuple[str, str, float], dict[str, list[float]]]:
    """By problem, solver and target, per instance the times of its repetitions."""
    found: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    names = [*GROUP, "target", "seconds"]
    instances = times["run_id"].map(runs.set_index("id")["instance_key"]).tolist()
    for instance, problem, solver, target, seconds in zip(instances, *(times[name].tolist() for name in names), strict=True):
        found.setdefault((problem, solver, target), {}).setdefault(instance, []).append(seconds)
    return found


def _row(entries: list[dict[str, Any]], target: str, seconds_limit: float | None) -> dict[str, Any]:
    """What `winners` says of one problem and target."""
    limit = "" if seconds_limit is None else f" within the {seconds_limit:g} s limit"
    complete = sorted((entry for entry in entries if entry["seconds"] is not None), key=lambda entry: entry["seconds"])
    if not complete:
        row = dict.fromkeys(["winner", "kind", "seconds", "other", "other_seconds", "ratio"])
        ends = {"at_least": False, "ratio_low": None, "ratio_high": None}
        return {**row, **ends, "finding": f"no solver gets there{limit} ({_outcomes(_tried(entries) or entries)})."}
    best = complete[0]
    other_kind = _OTHER[best["kind"]]
    rivals = [entry for entry in complete if entry["kind"] == other_kind]
    rival = rivals[0] if rivals else None
    ratio = rival["seconds"] / best["seconds"] if rival and best["seconds"] > 0 else None
    losers = _tried(entries, (other_kind, UNKNOWN))
    bounded = rival is None and seconds_limit is not None and best["seconds"] > 0
    at_least = bounded and any(entry["kind"] == other_kind and str(Status.TIMEOUT) in entry["status"] for entry in losers)
    if at_least and seconds_limit is not None:
        ratio = seconds_limit / best["seconds"]
    low, high = _interval(rival, best, ratio) if rival and ratio else (None, None)
    return {
        "winner": best["label"],
        "kind": best["kind"],
        "seconds": best["seconds"],
        "other": rival and rival["label"],
        "other_seconds": rival and rival["seconds"],
        "ratio": ratio,
        "at_least": at_least,
        "ratio_low": low,
        "ratio_high": high,
        "finding": _finding(best, rival, ratio, (low, high), losers, limit),
    }


def _interval(rival: dict[str, Any], best: dict[str, Any], ratio: float) -> tuple[float | None, float | None]:
    """Of rival / best, over the instances that both were run on."""
    both = [instance for instance in best["measured"] if instance in rival["measured"]]
    sides = [[entry["measured"][instance] for instance in both] for entry in (rival, best)]
    if not both or min(time for side in sides for times in side for time in times) <= 0:
        return None, None
    low, high = told(ratio_interval(*sides))
    return (min(low, ratio), max(high, ratio)) if low == low else (None, None)


def _tried(entries: list[dict[str, Any]], kinds: tuple[str, ...] = (SPECIALISED, GENERIC, UNKNOWN)) -> list[dict[str, Any]]:
    """The solvers of these kinds that were run; one that does not fit the problem has not lost."""
    return [entry for entry in entries if entry["kind"] in kinds and entry["status"] != Status.SKIPPED]


def _finding(
    best: dict[str, Any],
    rival: dict[str, Any] | None,
    ratio: float | None,
    ends: tuple[float | None, float | None],
    losers: list[dict[str, Any]],
    limit: str,
) -> str:
    kind, other_kind = best["kind"], _OTHER[best["kind"]]
    winner = f"the {kind} solver {best['label']}"
    if rival is None:
        if not losers:
            return f"{winner} is fastest with {format_seconds(best['seconds'])} s; no {other_kind} solver was run on this problem."
        lead = "" if ratio is None else f", at least {format_ratio(ratio)} faster"
        failed = f"no {other_kind} solver gets there{limit} ({_outcomes(losers)})"
        return f"{winner} is fastest with {format_seconds(best['seconds'])} s{lead}; {failed}."
    against = f"{rival['label']}, the fastest {other_kind} solver"
    low, high = ends
    interval = "" if low is None or high is None else f"; 95 % interval {format_ratio(low)} to {format_ratio(high)}"
    both = f"({format_seconds(best['seconds'])} s against {format_seconds(rival['seconds'])} s{interval})"
    if ratio is None:
        return f"{winner} is there at once, before {against} {both}."
    if ratio < ABOUT_EQUAL:
        return f"{winner} is about as fast as {against} {both}."
    verb = "wins: it is" if kind == GENERIC else "is"
    return f"{winner} {verb} {format_ratio(ratio)} faster than {against} {both}."


def _outcomes(entries: list[dict[str, Any]]) -> str:
    """``"scs: timeout; ecos: reached in 2 of 3 runs, verified 2/3, timeout 1/3"``."""
    return "; ".join(
        f"{entry['label']}: " + (f"in {entry['reached']} of {entry['runs']} runs, " if entry["reached"] else "") + entry["status"]
        for entry in entries
    )


def _seconds_limit(runs: pd.DataFrame) -> float | None:
    """What all runs of a problem were limited to."""
    limits = numbers(runs, "limit_seconds").unique()
    return float(limits[0]) if len(limits) == 1 and limits[0] == limits[0] else None


def _enumerated(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
