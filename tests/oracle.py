"""Every number of a report derived again from the rows of its results, by sqlite3 and plain Python.

Nothing of `bench_mtl` is used: a fault there cannot hide itself here. The rules are those of docs/reports.md. Words are not derived, and
results of several machines are none of its.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import fmean, linear_regression, median
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

Run: TypeAlias = Any
"""The columns of a row as attributes, and what `read_rows` adds: samples, places, measures, kind, counts_from, counts_below."""
Row: TypeAlias = dict[str, Any]

VERIFIED, TIMEOUT, SKIPPED = "verified", "timeout", "skipped"
STATUSES = (VERIFIED, "inaccurate", "wrong", TIMEOUT, "memory", "crashed", "error", SKIPPED)

SPECIALISED, GENERIC, PEER, UNKNOWN = "specialised", "generic", "peer", "unknown"
ONE_SHOT = (GENERIC, PEER)
#: Whom a winner of each kind is measured against.
RIVALS = {SPECIALISED: ONE_SHOT, GENERIC: (SPECIALISED,), PEER: (SPECIALISED,)}

#: Seconds that cannot be told from none, and the factor that the ends of an interval are apart at most.
RESOLUTION, WIDEST = 1e-6, 1e6


def tables(folder: Path) -> dict[str, list[Row]]:
    """Return the rows of all tables by their names, with the columns of their DataFrames; what a row has not is missing."""
    targets, runs = read_rows(folder)
    groups = list(_groups(targets, runs))
    objectives = _objectives(runs)
    derived: dict[str, Iterable[Row]] = {
        "winners": (_winner(label, target, alike) for label, alike in split(runs, "problem_label").items() for target in targets),
        "speed_ups": with_holm([_speed_up(*group) for group in groups if group[2] > 1]),
        "comparisons": (row for group in groups for row in with_holm(list(_comparisons(*group)))),
        "means": (row for group in groups for row in _means(*group)),
        "summary": (_summary(alike, targets) for alike in split(runs, "problem_label", "solver_label").values()),
        "measures": _measures(runs),
        "scaling": _scaling(runs, targets[-1]),
        "workers": _workers(runs, targets[-1]),
        "communication": _communication(runs),
        "times": (_times(alike) for alike in split(counting(runs, targets[-1]), "problem_label", "solver_label").values()),
        "tolerances": _tolerances(runs),
        "objectives": objectives,
        "enclosures": _enclosures(objectives),
        "time_to_gap": _times_to_gap(runs, targets),
        "instances": _instances(runs, targets),
        "statuses": (_statuses(alike) for alike in split(runs, "solver_label").values()),
        "not_verified": _not_verified(runs),
    }
    return {name: list(rows) for name, rows in derived.items()}


def read_rows(folder: Path) -> tuple[list[float], list[Run]]:
    """Return the targets of a suite, loose to tight, and the runs that it lists, those of a problem together."""
    with closing(sqlite3.connect(f"{(folder / 'results.sqlite').absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        connection.row_factory = sqlite3.Row

        def records(query: str) -> list[Any]:
            return [SimpleNamespace(**dict(row)) for row in connection.execute(query)]

        (targets,) = records("SELECT value FROM meta WHERE key = 'targets'")
        runs = records("SELECT * FROM runs WHERE clock <> 'traced' ORDER BY position")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master") if name in ("sample", "measure", "place")]
        parts = {name: split(records(f"SELECT * FROM {name} ORDER BY run_id, number"), "run_id") for name in names}
    for run in runs:
        run.samples, run.places, measures = (parts.get(name, {}).get(run.id, []) for name in ("sample", "place", "measure"))
        run.measures = {(each.number, each.name): each.value for each in measures}
        run.data, run.info = json.loads(run.data), json.loads(run.info)
    # A generic solver has a model to build, is asked for tolerances or makes its models itself; a peer goes by its name.
    asked = {
        run.solver
        for run in runs
        if run.solver == "generated_lp" or run.build_seconds > 0 or any(sample.asked_tolerance is not None for sample in run.samples)
    }
    sampled = {run.solver for run in runs if run.samples}
    for run in runs:  # without a point of its own a run has the bounds of the zero point; and what is infinite proves nothing
        run.primal, run.dual, run.relative_gap = (
            value if run.infeasibility is not None and value is not None and math.isfinite(value) else None
            for value in (run.primal, run.dual, run.relative_gap)
        )
        run.samples = [each for each in run.samples if math.isfinite(each.primal) and math.isfinite(each.dual)]
    for run in runs:
        run.kind = GENERIC if run.solver in asked else SPECIALISED if run.solver in sampled else UNKNOWN
        run.kind = PEER if run.solver.startswith("peer_") else run.kind
    # A run counts from its target up to the next looser one that its solver was first run for, and one to the tightest for all below.
    for alike in split(runs, "problem_label", "solver_label", "instance_key").values():
        least = min(run.repetition for run in alike)
        first = [run.target for run in alike if run.repetition == least]
        for run in alike:
            beyond = 0.0 if run.status != VERIFIED else min(run.target, *known([run.relative_gap]))
            run.counts_from = beyond if run.target <= min(first) else run.target
            run.counts_below = min((target for target in first if target > run.target), default=2.0)
    for alike in split(runs, "instance_key").values():  # what a gap was beside where a run was verified with a large relative one
        ends = [(run.samples[-1], run.target) for run in alike if run.status == VERIFIED and run.samples]
        units = [(last.primal - last.dual) * (1.0 + 1e-12) / target for last, target in ends if last.relative_gap > target]
        for run in alike:
            run.unit = max(units, default=None)
    together = [run for alike in split(runs, "problem_label").values() for run in alike]
    return sorted(set(json.loads(targets.value)), reverse=True), together


def together(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each key, in the order in which they come."""
    parts: dict[Any, list[Any]] = {}
    for key, value in pairs:
        parts.setdefault(key, []).append(value)
    return parts


def split(runs: Iterable[Run], *names: str) -> dict[Any, list[Run]]:
    """Return the runs by what these attributes hold."""
    return together((attrgetter(*names)(run), run) for run in runs)


def counting(runs: Iterable[Run], target: float) -> list[Run]:
    return [run for run in runs if run.counts_from <= target < run.counts_below]


def proof(run: Run, target: float) -> Any:
    """Return the cheapest sample that proves the target; near an optimum of zero one whose gap is beside `unit` at most the target."""
    in_time = [sample for sample in run.samples if run.limit_seconds is None or sample.seconds <= run.limit_seconds + 0.3]
    proving = [sample for sample in in_time if sample.relative_gap <= target]
    if proving:
        return min(proving, key=lambda sample: sample.seconds)
    if run.unit is None or (run.status == VERIFIED and run.target > target):
        return None
    near = [sample for sample in in_time if sample.primal - sample.dual <= run.unit * target]
    return min(near, key=lambda sample: sample.seconds, default=None)


def seconds_to(run: Run, target: float) -> float | None:
    sample = proof(run, target)
    return None if sample is None else sample.seconds


def counted(run: Run, number: float | None) -> float | None:
    """Return a number of passes or iterations; a one-shot solver's zero says nothing."""
    return None if run.kind in ONE_SHOT and number == 0 else number


def known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def middle(values: Iterable[float | None]) -> float | None:
    """Return the median of the numbers that there are."""
    numbers = known(values)
    return median(numbers) if numbers else None


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def status_words(runs: Sequence[Run]) -> str:
    ended = [run.status for run in runs]
    return ", ".join(f"{each} {ended.count(each)}/{len(ended)}" for each in STATUSES if each in ended) if len(ended) > 1 else ended[0]


def _named(run: Run, *names: str) -> Row:
    columns = {"problem": "problem_label", "instance": "instance_key", "solver": "solver_label"}
    return {name: getattr(run, columns.get(name, name)) for name in names}


@dataclass(frozen=True)
class Attempt:
    """A solver on one instance."""

    runs: int
    times: tuple[float, ...]  # of those repetitions that got there, and by which it is measured
    first: float = math.inf  # seconds of the first of these, which choices are made by
    reached: int = 0

    @property
    def typical(self) -> float:
        return median(self.times) if self.times else math.inf


@dataclass(frozen=True)
class Entrant:
    """A solver on all instances."""

    label: str
    kind: str
    attempts: tuple[Attempt | None, ...]  # None stands for an instance that it was not run on

    @property
    def tried(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt is not None]

    @property
    def is_complete(self) -> bool:
        return all(attempt is not None and attempt.times for attempt in self.attempts)

    @property
    def measured(self) -> Entrant:
        """The same by the repetitions after the first, where there are any: what a choice by the first ones is measured by."""
        return replace(self, attempts=tuple(each and replace(each, times=each.times[1:] or each.times) for each in self.attempts))


def entrants(runs: Sequence[Run], target: float) -> tuple[int, list[Entrant]]:
    """Return the number of instances, and the solvers that were run on any of them."""
    places, solvers = list(split(runs, "problem_label", "instance_key")), []
    for label, of_solver in split(runs, "solver_label").items():
        ran = [run for run in counting(of_solver, target) if run.status != SKIPPED]
        parts = split(ran, "problem_label", "instance_key")
        attempts = tuple(_attempt(parts[place], target) if place in parts else None for place in places)
        solvers += [Entrant(label, of_solver[0].kind, attempts)] if parts else []
    return len(places), solvers


def _attempt(runs: Sequence[Run], target: float) -> Attempt:
    seconds = {run.repetition: seconds_to(run, target) for run in sorted(runs, key=lambda run: run.repetition)}
    times = tuple(max(time, RESOLUTION) for time in known(seconds.values()))
    return Attempt(len(runs), times, times[0] if times else math.inf, len(times))


def by_instance(solvers: Sequence[Entrant]) -> list[list[Attempt]]:
    """Return, for each instance, the attempts of those that were run on it."""
    return [known(column) for column in zip(*(each.attempts for each in solvers), strict=True)]


def fastest(solvers: Sequence[Entrant], label: str = "") -> Entrant:
    """Return the fastest on every instance, chosen by first repetitions."""
    best = tuple(min(column, key=lambda attempt: attempt.first) if column else None for column in by_instance(solvers))
    return Entrant(label, solvers[0].kind, best).measured


class Within(NamedTuple):
    """An end of an interval, which is the hull of Student's interval, the value, and a bootstrap.

    No bootstrap is made here; it cannot leave what the best and the worst choice of repetitions and instances give.
    """

    least: float
    most: float
    may_be_missing: bool


Ends: TypeAlias = tuple[Within | None, Within | None]


def _ends(value: float, student: tuple[float, float], outermost: tuple[float, float], shift: float = 0.0) -> Ends:
    low, high = min(value, student[0]), max(value, student[1])
    lowest, highest = min(low, outermost[0]), max(high, outermost[1])
    may_be_missing = highest + shift > WIDEST * (lowest + shift)
    must_be_missing = high + shift > WIDEST * (low + shift)
    return (None, None) if must_be_missing else (Within(lowest, low, may_be_missing), Within(high, highest, may_be_missing))


def student_quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def half_width(*samples: Sequence[float]) -> float:
    """Return half of Student's 95 % interval of a mean, or of the difference of two means of samples of one variance."""
    freedom = sum(len(each) - 1 for each in samples)
    squares = math.fsum((value - fmean(each)) ** 2 for each in samples for value in each)
    return student_quantile(freedom) * math.sqrt(squares / freedom * sum(1 / len(each) for each in samples))


def ratio_ends(old: Sequence[Sequence[float]], new: Sequence[Sequence[float]]) -> Ends:
    """Return the ends of the interval of the ratio old / new; none where the only instance was measured once by one side."""
    logs = [math.log(median(one) / median(other)) for one, other in zip(old, new, strict=True)]
    center, half = fmean(logs), half_width(logs) if len(logs) > 1 else 0.0
    if len(logs) == 1:
        sides = [[math.log(time) for time in side[0]] for side in (old, new)]
        if min(map(len, sides)) < 2:
            return None, None
        center, half = fmean(sides[0]) - fmean(sides[1]), half_width(*sides)
    least = min(min(one) / max(other) for one, other in zip(old, new, strict=True))
    most = max(max(one) / min(other) for one, other in zip(old, new, strict=True))
    return _ends(math.exp(fmean(logs)), (math.exp(center - half), math.exp(min(center + half, 700.0))), (least, most))


def pair(reference: Entrant, solver: Entrant) -> Row:
    """Return how many times faster a solver is where both got there, and on how many instances only one did."""
    both = [(old, new) for old, new in zip(reference.attempts, solver.attempts, strict=True) if old is not None and new is not None]
    entered = [(old.times, new.times) for old, new in both if old.times and new.times]
    wins, losses = sum(new.typical < old.typical for old, new in both), sum(new.typical > old.typical for old, new in both)
    row: Row = {"instances": len(both), "ratios": len(entered), "wins": wins, "losses": losses, "ties": len(both) - wins - losses}
    row |= {"only_solver": sum(bool(new.times) and not old.times for old, new in both)}
    row |= {"only_reference": sum(bool(old.times) and not new.times for old, new in both)}
    row |= dict.fromkeys(("ratio", "ratio_low", "ratio_high", "lowest_ratio", "test", "p_value"))
    if entered:
        ratios = [median(old) / median(new) for old, new in entered]
        row |= {"ratio": geometric_mean(ratios), "lowest_ratio": min(ratios)}
        row["ratio_low"], row["ratio_high"] = ratio_ends([old for old, _ in entered], [new for _, new in entered])
    if wins + losses >= 6:  # of fewer no test can find anything
        if all(old.times and new.times for old, new in both):
            differences = [math.log(new.typical) - math.log(old.typical) for old, new in both if new.typical != old.typical]
            return row | {"test": "Wilcoxon", "p_value": wilcoxon(differences)}
        tail = sum(math.comb(wins + losses, count) for count in range(min(wins, losses) + 1))
        return row | {"test": "sign", "p_value": min(1.0, 2 * tail / 2 ** (wins + losses))}
    return row


def wilcoxon(differences: Sequence[float]) -> float:
    from scipy.stats import wilcoxon as of_scipy

    return float(of_scipy(differences).pvalue)


def with_holm(rows: list[Row]) -> list[Row]:
    """Return rows with their p-values corrected for all that there are."""
    tested, least = sorted((row for row in rows if row["p_value"] is not None), key=lambda row: row["p_value"]), 0.0
    for step, row in enumerate(tested):
        least = row["p_adjusted"] = max(least, min(1.0, (len(tested) - step) * row["p_value"]))
    return rows


def _winner(problem: str, target: float, runs: Sequence[Run]) -> Row:
    """Return who is fastest to a target, and over whom: chosen by first repetitions, measured by the others."""
    _, solvers = entrants(runs, target)
    row: Row = {"problem": problem, "target": target, "reference_wins": False, "walkover": False}
    complete = [each.measured for each in solvers if each.is_complete]
    complete.sort(key=lambda each: geometric_mean([attempt.first for attempt in each.tried]))
    seconds = {each.label: geometric_mean([attempt.typical for attempt in each.tried]) for each in complete}
    finalists = list({each.kind: each for each in reversed(complete)}.values())
    if not complete:
        return row
    winner = min(reversed(finalists), key=lambda each: seconds[each.label])
    others = [each for each in solvers if each.kind in (*RIVALS[winner.kind], UNKNOWN)]
    rival = next((each for each in complete if each.label in {other.label for other in others}), None)
    row |= {"winner": winner.label, "kind": winner.kind, "seconds": seconds[winner.label], "reference_wins": winner.kind in ONE_SHOT}
    row |= {"walkover": not any(None not in other.attempts for other in others)}
    row |= {name: sum(getattr(attempt, name) for attempt in winner.tried) for name in ("reached", "runs")}
    if rival is None:
        return row
    row |= {f"other_{name}": sum(getattr(attempt, name) for attempt in rival.tried) for name in ("reached", "runs")}
    row |= {"other": rival.label, "other_seconds": seconds[rival.label]}
    if seconds[winner.label] <= RESOLUTION * (1 + 1e-9):
        return row
    measured = pair(rival, winner)
    return row | {name: measured[name] for name in ("ratio", "ratio_low", "ratio_high")}


def _described(run: Run, left_out: str) -> list[str]:
    """Return the family and the data of a problem, and the options of these."""
    data = {key: value for key, value in run.data.items() if key != left_out}
    what = data.pop("name", None) or data.pop("file", "data")
    return [f"{run.problem} on {what}", *(f"{key} = {value}" for key, value in data.items())]


def _groups(targets: Sequence[float], runs: Sequence[Run]) -> Iterator[tuple[str, float, int, list[Entrant]]]:
    """Yield name, target, number of instances, and solvers: of problems of one family on one data set, and of families of several such."""
    families: dict[str, dict[str, list[Run]]] = {}
    for alike in split(runs, "problem_label").values():
        what, *options = _described(alike[0], "preprocess")
        name = f"{what} ({', '.join(options)})" if options else what
        families.setdefault(alike[0].problem, {}).setdefault(name, []).extend(alike)
    for family, groups in families.items():
        more = {f"all of {family}": [run for of_group in groups.values() for run in of_group]} if len(groups) > 1 else {}
        for name, of_group in {**groups, **more}.items():
            yield from ((name, target, *entrants(of_group, target)) for target in targets)


def _speed_up(group: str, target: float, instances: int, solvers: Sequence[Entrant]) -> Row:
    slow, quick = ([each for each in solvers if each.kind in kinds] for kinds in (ONE_SHOT, (SPECIALISED,)))
    row: Row = {"group": group, "target": target, "instances": instances}
    counts = ("ratios", "only_solver", "only_reference", "losses")
    if not slow or not quick:
        return row | dict.fromkeys(counts, 0) | {"p_value": None}
    measured = pair(fastest(slow), fastest(quick))
    shown = ("ratio", "ratio_low", "ratio_high", "lowest_ratio", "p_value", *counts)
    return row | {name: measured[name] for name in shown}


def _comparisons(group: str, target: float, _: int, solvers: Sequence[Entrant]) -> Iterator[Row]:
    """Yield solvers against the fastest of a kind, and the fastest specialised one against each of that kind."""
    specialised, compared = [each for each in solvers if each.kind == SPECIALISED], list[tuple[Entrant, Entrant]]()
    for kind, left_out in ((GENERIC, (GENERIC,)), (PEER, ONE_SHOT)):
        references = [each for each in solvers if each.kind == kind]
        if references:
            compared += [(fastest(references, f"fastest {kind}"), each) for each in solvers if each.kind not in left_out]
        if specialised and len(references) + len(specialised) > 2:
            compared += [(each, fastest(specialised, "fastest specialised")) for each in references]
    for reference, solver in compared:
        row = {"group": group, "target": target, "reference": reference.label, "solver": solver.label, **pair(reference, solver)}
        del row["lowest_ratio"]
        if row["instances"]:
            yield row


def _means(group: str, target: float, instances: int, solvers: Sequence[Entrant]) -> Iterator[Row]:
    quickest = [min((attempt.typical for attempt in column), default=math.inf) for column in by_instance(solvers)]
    solved = [time for time in quickest if time < math.inf]
    shift = 10.0 ** int(f"{median(solved):.15e}".partition("e")[2]) if solved else 0.0  # the largest power of ten not above it
    competing = [each for each in solvers if None not in each.attempts and any(attempt.times for attempt in each.tried)]
    common = [place for place in range(instances) if competing and all(each.tried[place].times for each in competing)]
    for each in solvers:
        row: Row = {"group": group, "target": target, "solver": each.label, "kind": each.kind, "instances": instances, "shift": shift}
        row |= {"run_on": len(each.tried), "solved": sum(bool(attempt.times) for attempt in each.tried), "solved_by_all": len(common)}
        if each in competing and common:
            row |= _mean_cells([each.tried[place].times for place in common], shift)
        yield row


def shifted_mean(times: Sequence[float], shift: float) -> float:
    """Return exp(mean(log(t + shift))) - shift."""
    return geometric_mean(times) if shift == 0 else shift * math.expm1(fmean(math.log1p(time / shift) for time in times))


def _mean_cells(times: Sequence[Sequence[float]], shift: float) -> Row:
    """Return the mean of a solver over instances, and its interval."""
    medians = [median(each) for each in times]
    row: Row = {"mean": shifted_mean(medians, shift)}
    values = medians if len(times) > 1 else times[0]
    if len(values) > 1:
        center, half = math.log1p(row["mean"] / shift), half_width([math.log1p(value / shift) for value in values])
        student = max(0.0, shift * math.expm1(center - half)), shift * math.expm1(min(center + half, 700.0))
        row["mean_low"], row["mean_high"] = _ends(row["mean"], student, (min(map(min, times)), max(map(max, times))), shift)
    return row


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0


def _sweeps(runs: Sequence[Run], key: str, target: float, fewest: int) -> Iterator[tuple[Row, dict[int, list[Run]]]]:
    """Yield the solvers on problems that are alike but for one option of their data, a whole number, of which there are several.

    With each its runs, by the numbers with which all of them reached the target, in order.
    """
    having = [run for run in runs if run.status != SKIPPED and _is_size(run.data.get(key))]
    others = [json.dumps({name: value for name, value in run.data.items() if name != key}, sort_keys=True) for run in having]
    for alike in together(((run.problem, run.parameters, other), run) for run, other in zip(having, others, strict=True)).values():
        if len({run.data[key] for run in alike}) >= fewest:
            sweep = ", ".join([*_described(alike[0], key), f"by {key}"])
            for solver, of_solver in split(counting(alike, target), "solver_label").items():
                by_number = sorted(together((run.data[key], run) for run in of_solver).items())
                reached = {number: part for number, part in by_number if all(proof(run, target) for run in part)}
                yield {"sweep": sweep, "target": target, "solver": solver, "points": len(reached)}, reached


def _scaling(runs: Sequence[Run], target: float) -> Iterator[Row]:
    """Yield the slopes of the least-squares lines through the logarithms of size and seconds, with Student's intervals."""
    ran = [run for run in runs if run.status != SKIPPED]
    for key in dict.fromkeys(key for run in ran for key, value in run.data.items() if _is_size(value) and key != "workers"):
        for row, by_size in _sweeps(ran, key, target, 3):
            row |= {"key": key, "size": max(by_size, default=None)}
            x, y = map(math.log, by_size), [math.log(median(seconds_to(run, target) for run in part)) for part in by_size.values()]
            if len(y) >= 3:
                row["exponent"], constant = linear_regression(sizes := list(x), y)
                left = math.fsum((b - constant - row["exponent"] * a) ** 2 for a, b in zip(sizes, y, strict=True)) / (len(y) - 2)
                half = student_quantile(len(y) - 2) * math.sqrt(left / math.fsum((a - fmean(sizes)) ** 2 for a in sizes))
                row |= {"exponent_low": row["exponent"] - half, "exponent_high": row["exponent"] + half}
            yield row


def _workers(runs: Sequence[Run], target: float) -> Iterator[Row]:
    """Yield speed-ups by the number of workers, and the model shared / workers + fixed."""
    for row, by_number in _sweeps(runs, "workers", target, 2):
        if len(by_number) > 1:
            times = {number: [max(proof(run, target).seconds, RESOLUTION) for run in part] for number, part in by_number.items()}
            (fewest, slow), (most, quick) = min(times.items()), max(times.items())
            shared, fixed = linear_regression([1 / number for number in times], [median(each) for each in times.values()])
            speed_up = median(slow) / median(quick)
            row |= {"fewest": fewest, "most": most, "seconds_fewest": median(slow), "seconds_most": median(quick)}
            row |= {"speed_up": speed_up, "efficiency": speed_up * fewest / most, "shared_seconds": shared, "fixed_seconds": fixed}
            row["speed_up_low"], row["speed_up_high"] = ratio_ends([slow], [quick])
            row |= {f"model_{number}": shared / number + fixed if min(shared, fixed) >= 0 else None for number in (16, 1000)}
            row["same_numbers"] = len({(run.primal, run.dual) for part in by_number.values() for run in part}) == 1
        yield row


def _summary(runs: Sequence[Run], targets: Sequence[float]) -> Row:
    in_full = counting(runs, targets[-1])
    gaps = [max(0.0, gap) for gap in known(run.relative_gap for run in in_full)]
    row = _named(runs[0], "problem", "solver", "kind") | {"runs": len(runs), "status": status_words(runs)}
    row |= {"relative_gap": max(gaps, default=None), "in_full": len(in_full), "proven": len(gaps)}
    row["infeasibility"] = max(known(run.infeasibility for run in runs), default=None)
    row |= {name: middle(counted(run, getattr(run, name)) for run in in_full) for name in ("iterations", "passes")}
    for target in targets:
        mantissa, power = f"{target:.6e}".split("e")
        words = f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
        if counted_for := counting(runs, target):
            times = [seconds_to(run, target) for run in counted_for]
            row |= {f"reached_{words}": len(known(times)), f"runs_to_{words}": len(times)}
            row[f"seconds_to_{words}"] = middle(times) if _is_reached_everywhere(counted_for, target) else None
    return row


def _is_reached_everywhere(runs: Sequence[Run], target: float) -> bool:
    return all(any(proof(run, target) for run in alike) for alike in split(runs, "instance_key").values())


def _reached(runs: Sequence[Run], target: float, *measured: str) -> Row:
    """Return how many runs count for a target and reach it, and the medians of what that took, where on each instance one does."""
    samples = [(run, sample) for run in runs if (sample := proof(run, target)) is not None]
    row: Row = {"target": target, "runs": len(runs), "reached": len(samples)}
    if _is_reached_everywhere(runs, target):
        row["seconds"] = median(sample.seconds for _, sample in samples)
        for name in measured:
            column = {"iterations": "iteration"}.get(name, name)
            row[name] = middle(counted(run, getattr(sample, column)) for run, sample in samples)
    return row


def _times_to_gap(runs: Sequence[Run], targets: Sequence[float]) -> Iterator[Row]:
    for alike in split(runs, "problem_label", "solver_label").values():
        for target in targets:
            if counted_for := counting(alike, target):
                row = _named(alike[0], "problem", "solver", "kind") | _reached(counted_for, target, "passes")
                is_reached = _is_reached_everywhere(counted_for, target)
                times = known(seconds_to(run, target) for run in counted_for) if is_reached else []
                yield row | {"seconds_low": min(times, default=None), "seconds_high": max(times, default=None)}


def _instances(runs: Sequence[Run], targets: Sequence[float]) -> Iterator[Row]:
    for target in targets:
        for alike in split(counting(runs, target), "problem_label", "instance_key", "solver_label").values():
            row = _named(alike[0], "problem", "instance", "seed", "solver", "kind") | _reached(alike, target, "passes", "iterations")
            yield row | {"limit_seconds": max(known(run.limit_seconds for run in alike), default=None), "status": status_words(alike)}


def _measures(runs: Sequence[Run]) -> Iterator[Row]:
    """Yield what is measured at the best and at the last points."""
    ends = [(run, min(run.samples, key=lambda sample: sample.primal), run.samples[-1]) for run in runs if run.measures]
    parts = together(
        ((run.problem_label, run.solver_label, name), (run, best, last))
        for run, best, last in ends
        for name in dict.fromkeys(name for number, name in run.measures if number in (best.number, last.number))
    )
    for (problem, solver, name), points in parts.items():
        row: Row = {"problem": problem, "solver": solver, "kind": points[0][0].kind, "measure": name, "runs": len(points)}
        having = [(run, best) for run, best, _ in points if (best.number, name) in run.measures]
        row |= {"seconds": middle(best.seconds for _, best in having), "passes": middle(counted(run, best.passes) for run, best in having)}
        at_last = known(run.measures.get((last.number, name)) for run, _, last in points)
        for column, values in (("value", [run.measures[best.number, name] for run, best in having]), ("last", at_last)):
            row[column] = middle(values)
            row[f"{column}_low"], row[f"{column}_high"] = (pick(values, default=None) if len(points) > 1 else None for pick in (min, max))
        yield row


def _communication(runs: Sequence[Run]) -> Iterator[Row]:
    names = ("rounds", "messages", "sent", "received", "shards")
    counted_all = [run for run in runs if all(isinstance(run.info.get(name), int) for name in names) and run.info["rounds"] > 0]
    keys = [(run.problem_label, run.solver_label, run.data.get("workers"), run.info["shards"]) for run in counted_all]
    for (problem, solver, workers, shards), alike in together(zip(keys, counted_all, strict=True)).items():
        row: Row = {"problem": problem, "solver": solver, "workers": workers, "shards": shards, "runs": len(alike)}
        row |= {"rounds": median(run.info["rounds"] for run in alike), "again": sum(run.info.get("again", 0) for run in alike)}
        for name, unit in (("messages", 1), ("sent", 1024), ("received", 1024)):
            a_round = median(run.info[name] / run.info["rounds"] / unit for run in alike)
            row[f"{name}_a_round{'_kib' if unit > 1 else ''}"] = a_round
        passes = [(run.info["sent"] + run.info["received"]) / run.passes / 1024 for run in alike if run.passes]
        yield row | {"a_pass_kib": middle(passes)}


def _times(runs: Sequence[Run]) -> Row:
    """Return the medians of what runs spent; of older files a run that was killed has lost all but its solve."""
    ran = [run for run in runs if run.status != SKIPPED]
    row = _named(runs[0], "problem", "solver") | {"runs": len(ran)}
    for name in ("build_seconds", "compile_seconds", "setup_seconds", "solve_seconds", "certify_seconds"):
        whole = [run for run in runs if run.build_seconds or run.certify_seconds or (name == "solve_seconds" and run.solve_seconds)]
        row[name] = middle(getattr(run, name) for run in whole)
    return row | {"peak_memory_mib": max(known(run.peak_memory_mib for run in ran), default=None)}


def _tolerances(runs: Sequence[Run]) -> Iterator[Row]:
    answers = [(run, sample) for run in runs for sample in run.samples if sample.asked_tolerance is not None]
    parts = together(((run.problem_label, run.solver_label, sample.asked_tolerance), sample) for run, sample in answers)
    for (problem, solver, asked), samples in parts.items():
        row: Row = {"problem": problem, "solver": solver, "asked": asked, "answers": len(samples)}
        row |= {"seconds": middle(each.seconds for each in samples), "iterations": middle(each.iteration or None for each in samples)}
        yield row | {name: max(max(0.0, getattr(each, name)) for each in samples) for name in ("relative_gap", "infeasibility")}


def _objectives(runs: Sequence[Run]) -> list[Row]:
    """Return the enclosures of the optimum by all runs, beside the best bounds of their instances."""
    proven = [run for run in runs if run.primal is not None]
    best = {}
    for instance, alike in split(proven, "instance_key").items():
        starts = [abs(started[0].primal) for run in alike if (started := [each for each in run.samples if each.asked_tolerance is None])]
        allowed = max(1e-9 * min(abs(run.primal) for run in alike), 1e-12 * max(starts, default=0.0))
        best[instance] = max(known(run.dual for run in alike), default=None), min(run.primal for run in alike), allowed
    rows = []
    for run in proven:
        dual, primal, allowed = best[run.instance_key]
        row = _named(run, "problem", "instance", "seed", "repetition", "solver", "primal", "dual")
        gap = None if run.relative_gap is None else max(0.0, run.relative_gap)
        row |= {"relative_gap": gap, "best_dual": dual, "best_primal": primal}
        beyond = [low - high for low, high in ((run.dual, primal), (dual, run.primal)) if low is not None]
        rows.append(row | {"agrees": all(each <= allowed for each in beyond)})
    return rows


def _enclosures(objectives: Sequence[Row]) -> Iterator[Row]:
    for alike in together((each["instance"], each) for each in objectives).values():
        low = max((row for row in alike if row["dual"] is not None), key=lambda row: row["dual"], default={"dual": None, "solver": None})
        high = min(alike, key=lambda row: row["primal"])
        missing = list(dict.fromkeys(row["solver"] for row in alike if not row["agrees"]))
        row = {name: alike[0][name] for name in ("problem", "instance", "seed")} | {"dual": low["dual"], "dual_solver": low["solver"]}
        row |= {"primal": high["primal"], "primal_solver": high["solver"], "agrees": not missing, "disagreeing": ", ".join(missing)}
        is_open = missing or low["dual"] is None
        yield row | {"relative_gap": None if is_open else max(0.0, high["primal"] - low["dual"]) / max(1e-300, abs(high["primal"]))}


def _statuses(runs: Sequence[Run]) -> Row:
    ended = {status: sum(run.status == status for run in runs) for status in STATUSES}
    return {"solver": runs[0].solver_label, "kind": runs[0].kind, "tried": len(runs) - ended[SKIPPED], **ended}


def _not_verified(runs: Sequence[Run]) -> Iterator[Row]:
    failed = [run for run in runs if run.status != VERIFIED]
    for run in failed:
        place = f"{run.places[-1].file}:{run.places[-1].line}" if run.places else ""
        row = _named(run, "problem", "seed", "repetition", "solver", "status", "reason")
        yield row | ({"place": place} if any(each.places for each in failed) else {})
