"""The rows that every table of a report must have, derived anew."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from bench_mtl.core.text import one_line
from bench_mtl.report.check.cells import Number, Row, table_faults, target_words
from bench_mtl.report.check.clocks import time_to
from bench_mtl.report.check.contests import Derived, status_words
from bench_mtl.report.check.document import Table
from bench_mtl.report.check.entrants import Entrant, entrants, fastest
from bench_mtl.report.check.faults import Finding
from bench_mtl.report.check.measures import measure_rows
from bench_mtl.report.check.pairs import Pair, holm, mean_interval, pair, shifted_mean
from bench_mtl.report.check.raised import raised_at
from bench_mtl.report.check.rows import GENERIC, ONE_SHOT, PEER, SKIPPED, SPECIALISED, STATUSES, VERIFIED, Rows, Run
from bench_mtl.report.check.scaling import scaling_rows
from bench_mtl.report.check.shards import communication_rows, worker_rows

_FASTEST = {GENERIC: "fastest generic", PEER: "fastest peer", SPECIALISED: "fastest specialised"}


def faults_of_table(table: Table, derived: Derived, problem: str, left_out: int) -> Iterator[Finding] | None:
    """Return the faults of a table; None where it is of a kind that no rule derives.

    Parameters
    ----------
    problem : the one whose section it stands in; empty elsewhere
    """
    for title, (derive, keys) in _KINDS.items():
        if title in table.titles and not problem:
            return table_faults(table, derive(derived), keys, left_out)
    if problem and {"Solver", "Status"} <= set(table.titles):
        return table_faults(table, summary_rows(derived, problem), ("Solver",), left_out)
    return None


def missing_tables(found: Iterable[Table], derived: Derived) -> Iterator[str]:
    """Yield the tables that the rows give and a report, of these tables outside the sections of problems, has not."""
    titles = {title for table in found for title in table.titles}
    for title, (derive, _) in _KINDS.items():
        is_wanted = title != "Tried" or any(run.status != VERIFIED for run in derived.rows.runs)
        if title not in titles and is_wanted and derive(derived):
            yield f"the table with the column '{title}' is not there"


def winner_rows(derived: Derived) -> list[Row]:
    """Return who is fastest, a row for each problem and target."""
    return [
        {
            "Problem": contest.problem,
            "Target": Number(contest.target, "target"),
            "Winner": "" if contest.winner is None else contest.winner.label,
            "Kind": "" if contest.winner is None else contest.winner.kind,
            "Seconds": Number(contest.seconds, "seconds"),
            "Against": "" if contest.rival is None else contest.rival.label,
            "Its seconds": Number(contest.rival_seconds, "seconds"),
            "Ratio": Number(contest.ratio, "ratio", ">=" if contest.is_bound else "", contest.interval, has_interval=True),
        }
        for contest in derived.contests.values()
    ]


def groups(rows: Rows) -> dict[str, tuple[str, ...]]:
    """Return the labels of the problems of one family on one data set, and of every family of several such."""
    families: dict[str, dict[str, list[str]]] = {}
    for label, runs in rows.by_problem.items():
        data = {key: value for key, value in json.loads(runs[0].data).items() if key != "preprocess"}
        what = data.pop("name", None) or data.pop("file", "data")
        options = ", ".join(f"{key} = {value}" for key, value in data.items())
        where = f", {runs[0].machine}" if runs[0].machine else ""
        name = one_line(f"{runs[0].family} on {what}{f' ({options})' if options else ''}{where}")
        families.setdefault(f"{runs[0].family}{where}", {}).setdefault(name, []).append(label)
    found: dict[str, tuple[str, ...]] = {}
    for family, of_family in families.items():
        found |= {name: tuple(labels) for name, labels in of_family.items()}
        if len(of_family) > 1:
            found[f"all of {family}"] = tuple(label for labels in of_family.values() for label in labels)
    return found


def _of_groups(derived: Derived) -> Iterator[tuple[str, float, int, list[Entrant]]]:
    """Yield group, target, number of instances and solvers, of groups of several instances."""
    for group, labels in groups(derived.rows).items():
        runs = [run for label in labels for run in derived.rows.by_problem[label]]
        for target in derived.rows.targets:
            places, found = entrants(runs, derived.counts, target)
            if len(places) > 1:
                yield group, target, len(places), found


def speed_up_rows(derived: Derived) -> list[Row]:
    """Return how many times faster the fastest specialised solver is than the fastest generic one, by group and target."""
    rows: list[Row] = []
    p_values: list[float | None] = []
    for group, target, instances, found in _of_groups(derived):
        slow, quick = ([each for each in found if each.kind in kinds] for kinds in (ONE_SHOT, (SPECIALISED,)))
        row: Row = {"Group": group, "Target": Number(target, "target"), "Instances": Number(instances, "count")}
        of_pair = pair(fastest(slow, ""), fastest(quick, "")) if slow and quick else None
        rows.append(row | _speed_up_cells(of_pair, instances))
        p_values.append(None if of_pair is None else of_pair.p_value)
    return [row | {"p (Holm)": Number(p, "p")} for row, p in zip(rows, holm(p_values), strict=True)]


def _speed_up_cells(found: Pair | None, instances: int) -> Row:
    if found is None:
        nothing: Row = {"Ratio": Number(None, "ratio"), "Lowest ratio": Number(None, "ratio"), "p": Number(None, "p")}
        return {"Without a ratio": Number(instances, "count"), "Losses": Number(0, "count"), **nothing}
    return {
        "Without a ratio": Number(instances - (0 if found.ratio is None else found.ratios), "count"),
        "Ratio": Number(found.ratio, "ratio", found.sign, found.interval, has_interval=True),
        "Lowest ratio": Number(found.lowest, "ratio"),
        "Losses": Number(found.losses, "count"),
        "p": Number(found.p_value, "p"),
    }


def comparison_rows(derived: Derived) -> list[Row]:
    """Return solver against solver to the tightest target, over groups of several instances."""
    rows: list[Row] = []
    for group, target, _, found in _of_groups(derived):
        if target != derived.rows.targets[-1]:
            continue
        pairs = [(one, other, of_pair) for one, other in _compared(found) if (of_pair := pair(one, other)).instances]
        for (one, other, of_pair), p in zip(pairs, holm([of_pair.p_value for *_, of_pair in pairs]), strict=True):
            if of_pair.instances > 1:
                rows.append(_comparison(group, target, one.label, other.label, of_pair, p))
    return rows


def _comparison(group: str, target: float, reference: str, solver: str, found: Pair, p: float | None) -> Row:
    counts = {"Instances": found.instances, "With a ratio": found.ratios, "Wins": found.wins, "Losses": found.losses, "Ties": found.ties}
    return {
        "Group": group,
        "Target": Number(target, "target"),
        "Reference": reference,
        "Solver": solver,
        **{title: Number(count, "count") for title, count in counts.items()},
        "Ratio": Number(found.ratio, "ratio", found.sign, found.interval, has_interval=True),
        "Test": found.test or "",
        "p": Number(found.p_value, "p"),
        "p (Holm)": Number(p, "p"),
    }


def _compared(found: Sequence[Entrant]) -> Iterator[tuple[Entrant, Entrant]]:
    """Yield the references and the solvers that are compared with them."""
    specialised = [each for each in found if each.kind == SPECIALISED]
    for kind, measured in ((GENERIC, (GENERIC,)), (PEER, ONE_SHOT)):
        references = [each for each in found if each.kind == kind]
        if references:
            best = fastest(references, _FASTEST[kind])
            yield from ((best, each.by_all) for each in found if each.kind not in measured)
        if specialised and len(references) + len(specialised) > 2:
            best = fastest(specialised, _FASTEST[SPECIALISED])
            yield from ((each.by_all, best) for each in references)


def summary_rows(derived: Derived, problem: str) -> list[Row]:
    """Return how the runs of every solver on a problem ended that was run on it."""
    by_solver = _by_solver(derived.rows.by_problem[problem])
    ran = {label: runs for label, runs in by_solver.items() if any(run.status != SKIPPED for run in runs)}
    return [_summary(label, runs[0].kind, runs, derived) for label, runs in ran.items()]


def _summary(label: str, kind: str, runs: Sequence[Run], derived: Derived) -> Row:
    targets = derived.rows.targets
    in_full = [run for run in runs if derived.counts[run.id].holds(targets[-1])]
    gaps = [run.gap for run in in_full if run.gap is not None]
    row: Row = {
        "Solver": label,
        "Kind": kind,
        "Runs": Number(len(runs), "count"),
        "Status": status_words(run.status for run in runs),
        "Relative gap": Number(max(gaps, default=None), "gap", counted=(len(gaps), len(in_full))),
        "Infeasibility": Number(max((run.infeasibility for run in runs if run.infeasibility is not None), default=None), "gap"),
    }
    for title, values in (("Iterations", [run.iterations for run in in_full]), ("Passes", [run.passes for run in in_full])):
        known = [value for value in values if value is not None and not (kind in ONE_SHOT and value == 0)]
        row[title] = Number(median(known) if known else None, "count")
    for target in targets:
        times = [time_to(run, target) for run in runs if derived.counts[run.id].holds(target)]
        reached = [time for time in times if time is not None]
        whole = median(reached) if reached and len(reached) == len(times) else None
        row[f"s to {target_words(target)}"] = Number(whole, "seconds", counted=(len(reached), len(times)))
    return row


def status_rows(derived: Derived) -> list[Row]:
    """Return how often the runs of every solver ended how."""
    rows: list[Row] = []
    for label, runs in _by_solver(derived.rows.runs).items():
        counts = {status: sum(run.status == status for run in runs) for status in STATUSES}
        row: Row = {"Solver": label, "Kind": runs[0].kind, "Tried": Number(len(runs) - counts[SKIPPED], "count")}
        rows.append(row | {status.capitalize(): Number(count, "count") for status, count in counts.items()})
    return rows


def failure_rows(derived: Derived) -> list[Row]:
    """Return every run that is not verified, with its reason, and where it raised if any of them has."""
    failed = [run for run in derived.rows.runs if run.status != VERIFIED]
    rows: list[Row] = [{**_named(run), "Status": run.status, "Reason": run.reason} for run in failed]
    if any(run.places for run in failed):
        rows = [row | {"Place": raised_at(run)} for row, run in zip(rows, failed, strict=True)]
    return rows


def objective_rows(derived: Derived) -> list[Row]:
    """Return the enclosure of the optimum by every run, beside the best one of its instance."""
    return [
        {
            **_named(run),
            "Objective": Number(run.primal, "objective"),
            "Lower bound": Number(run.dual, "objective"),
            "Relative gap": Number(run.gap, "gap"),
            "Best lower bound": Number(found.dual, "objective"),
            "Best objective": Number(found.primal, "objective"),
            "Agrees": "yes" if is_met else "NO",
        }
        for found in derived.enclosures
        for run, is_met in found.runs
    ]


def _named(run: Run) -> Row:
    seed, repetition = Number(run.seed, "count"), Number(run.repetition, "count")
    return {"Problem": run.problem, "Seed": seed, "Repetition": repetition, "Solver": run.label}


def time_rows(derived: Derived) -> list[Row]:
    """Return the medians of the seconds of every solver on every problem, by what they were spent on."""
    rows: list[Row] = []
    for problem, of_problem in derived.rows.by_problem.items():
        for label, runs in _by_solver(of_problem).items():
            ran = [run for run in runs if run.status != SKIPPED]
            row: Row = {"Problem": problem, "Solver": label, "Runs": Number(len(ran), "count")}
            for name, title in (
                ("build", "Build"),
                ("compile", "Compile"),
                ("setup", "Set-up"),
                ("solve", "Solve"),
                ("certify", "Certify"),
            ):
                known = [run.spent[name] for run in runs if _is_known(run, name)]
                row[f"{title} (s)"] = Number(median(known) if known else None, "seconds")
            memory = max((run.memory for run in ran if run.memory is not None), default=None)
            rows.append(row | {"Peak memory (MiB)": Number(memory, "count")})
    return rows


def _is_known(run: Run, name: str) -> bool:
    """Whether a run kept what it spent on something: in files of older versions one that was killed kept its solve alone."""
    is_lost = run.spent["build"] == 0 and run.spent["certify"] == 0
    return not is_lost or (name == "solve" and run.spent["solve"] > 0)


def tolerance_rows(derived: Derived) -> list[Row]:
    """Return what every tolerance asked of a generic solver gave."""
    rows: list[Row] = []
    for problem, of_problem in derived.rows.by_problem.items():
        for label, runs in _by_solver(of_problem).items():
            asked = [(sample.asked, sample) for run in runs for sample in run.samples if sample.asked is not None]
            for tolerance in dict.fromkeys(tolerance for tolerance, _ in asked):
                samples = [sample for other, sample in asked if other == tolerance]
                iterations = [sample.iteration for sample in samples if sample.iteration]
                rows.append({
                    "Problem": problem,
                    "Solver": label,
                    "Tolerance asked": Number(tolerance, "target"),
                    "Answers": Number(len(samples), "count"),
                    "Seconds": Number(median(sample.seconds for sample in samples), "seconds"),
                    "Iterations": Number(median(iterations) if iterations else None, "count"),
                    "Relative gap": Number(max(sample.gap for sample in samples), "gap"),
                    "Infeasibility": Number(max(sample.infeasibility for sample in samples), "gap"),
                })  # fmt: skip
    return rows


def mean_rows(derived: Derived) -> list[Row]:
    """Return shifted geometric means of the time to the tightest target, over groups of several instances."""
    rows: list[Row] = []
    for group, target, instances, found in _of_groups(derived):
        if target != derived.rows.targets[-1] or not found:
            continue
        shift = _shift(found, instances)
        competing = [each for each in found if each.is_tried_everywhere and any(attempt.seconds for attempt in each.tried)]
        common = [place for place in range(instances) if competing and all(each.tried[place].seconds for each in competing)]
        for each in found:
            head: Row = {"Group": group, "Target": Number(target, "target"), "Solver": each.label, "Kind": each.kind}
            solved = sum(bool(attempt.seconds) for attempt in each.tried)
            counts = {"Instances": instances, "Run on": len(each.tried), "Solved": solved, "Solved by all": len(common)}
            head |= {title: Number(count, "count") for title, count in counts.items()} | {"Shift (s)": Number(shift, "seconds")}
            rows.append(head | _mean_cells(each.by_all, common, shift))
    return rows


def _shift(found: Sequence[Entrant], instances: int) -> float:
    """Return the largest power of ten that is not above the median of the fastest times."""
    times = [median(a.seconds) if (a := each.attempts[place]) and a.seconds else math.inf for each in found for place in range(instances)]
    fastest_times = [min(times[place::instances]) for place in range(instances)]
    known = [time for time in fastest_times if 0 < time < math.inf]
    return 10.0 ** int(f"{median(known):.16e}".partition("e")[2]) if known else 0.0


def _mean_cells(solver: Entrant, common: Sequence[int], shift: float) -> Row:
    """Return the means of a solver; a failure counts at what it had, then at ten times its limit."""
    had = tenfold = over_common = interval = None
    attempts = solver.tried
    if solver.is_tried_everywhere:
        if any(attempt.seconds for attempt in attempts) and common:
            over_common = shifted_mean([attempts[place].typical for place in common], shift)
        had = _mean_of([attempt.typical if attempt.seconds else attempt.had for attempt in attempts], shift)
        tenfold = _mean_of([attempt.typical if attempt.seconds else attempt.limit and 10 * attempt.limit for attempt in attempts], shift)
        interval = mean_interval(attempts, shift) if solver.is_whole else None
    sign = ">=" if had is not None and not solver.is_whole else ""
    return {
        "Mean (s)": Number(had, "seconds", sign, interval, has_interval=True),
        "Failures at 10 x limit (s)": Number(tenfold, "seconds"),
        "Over these (s)": Number(over_common, "seconds"),
    }


def _mean_of(times: Sequence[float | None], shift: float) -> float | None:
    known = [time for time in times if time is not None]
    return shifted_mean(known, shift) if len(known) == len(times) else None


def _by_solver(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.label, []).append(run)
    return found


#: The tables by a title that no other one has, with what derives them and what names their rows.
_KINDS: Mapping[str, tuple[Callable[[Derived], Sequence[Row]], tuple[str, ...]]] = {
    "Winner": (winner_rows, ("Problem", "Target")),
    "Lowest ratio": (speed_up_rows, ("Group", "Target")),
    "Reference": (comparison_rows, ("Group", "Target", "Reference", "Solver")),
    "Shift (s)": (mean_rows, ("Group", "Target", "Solver")),
    "At the best point": (measure_rows, ("Problem", "Solver", "Measure")),
    "Exponent": (scaling_rows, ("Sweep", "Solver")),
    "Efficiency": (worker_rows, ("Sweep", "Solver")),
    "Messages a round": (communication_rows, ("Problem", "Solver", "Workers", "Shards")),
    "Build (s)": (time_rows, ("Problem", "Solver")),
    "Tolerance asked": (tolerance_rows, ("Problem", "Solver", "Tolerance asked")),
    "Best objective": (objective_rows, ("Problem", "Seed", "Repetition", "Solver")),
    "Tried": (status_rows, ("Solver",)),
    "Reason": (failure_rows, ("Problem", "Seed", "Repetition", "Solver")),
}

#: Titles of the tables that no rule here derives, with what they are called: none.
UNCHECKED: Mapping[str, str] = {}
