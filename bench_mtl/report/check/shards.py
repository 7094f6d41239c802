"""What runs on data in shards sent, and how their times depend on the number of workers, derived anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from statistics import linear_regression, median

from bench_mtl.report.check.cells import Number, Row
from bench_mtl.report.check.clocks import RESOLUTION, time_to
from bench_mtl.report.check.contests import Derived
from bench_mtl.report.check.entrants import Attempt
from bench_mtl.report.check.pairs import interval_of
from bench_mtl.report.check.rows import SKIPPED, Run
from bench_mtl.report.check.scaling import sweep_name, sweeps_of

_COUNTED = ("rounds", "messages", "sent", "received", "again", "shards")


def communication_rows(derived: Derived) -> list[Row]:
    """Return what was sent, by problem, solver, workers and shards."""
    groups: dict[tuple[str, str, int | None, int], list[Run]] = {}
    for run in derived.rows.runs:
        if all(isinstance(run.info.get(name), int) for name in _COUNTED) and run.info["rounds"] > 0:
            key = run.problem, run.label, json.loads(run.data).get("workers"), run.info["shards"]
            groups.setdefault(key, []).append(run)
    return [_communication(*named, runs) for named, runs in groups.items()]


def _communication(problem: str, solver: str, workers: int | None, shards: int, runs: Sequence[Run]) -> Row:
    def a_round(name: str) -> float:
        return median(run.info[name] / run.info["rounds"] for run in runs)

    passes = [(run.info["sent"] + run.info["received"]) / run.passes for run in runs if run.passes]
    return {
        "Problem": problem,
        "Solver": solver,
        "Workers": Number(workers, "count"),
        "Shards": Number(shards, "count"),
        "Runs": Number(len(runs), "count"),
        "Rounds": Number(median(run.info["rounds"] for run in runs), "count"),
        "Messages a round": Number(a_round("messages"), "count"),
        "Sent a round (KiB)": Number(a_round("sent") / 1024, "seconds"),
        "Received a round (KiB)": Number(a_round("received") / 1024, "seconds"),
        "Made again": Number(sum(run.info["again"] for run in runs), "count"),
        "A pass (KiB)": Number(median(passes) / 1024 if passes else None, "seconds"),
    }


def worker_rows(derived: Derived) -> list[Row]:
    """Return speed-ups and the model of the time to the tightest target, by problem and solver."""
    target = derived.rows.targets[-1]
    ran = [run for run in derived.rows.runs if run.status != SKIPPED]
    rows: list[Row] = []
    for runs in sweeps_of(ran, "workers"):
        if len({_workers(run) for run in runs}) > 1:
            counted = [run for run in runs if derived.counts[run.id].holds(target)]
            by_solver = {label: [run for run in counted if run.label == label] for label in dict.fromkeys(run.label for run in counted)}
            rows += [_row(sweep_name(runs[0], "workers"), target, label, of_solver) for label, of_solver in by_solver.items()]
    return rows


def _row(sweep: str, target: float, solver: str, runs: Sequence[Run]) -> Row:
    times: dict[int, tuple[float, ...]] = {}
    proven: set[tuple[float | None, float | None]] = set()
    for number, found in groupby(sorted(runs, key=_workers), key=_workers):
        of_number = list(found)
        reached = [max(time, RESOLUTION) for run in of_number if (time := time_to(run, target)) is not None]
        if len(reached) == len(of_number):
            times[number] = tuple(reached)
            proven |= {(run.primal, run.dual) for run in of_number}
    head: Row = {"Sweep": sweep, "Target": Number(target, "target"), "Solver": solver, "Points": Number(len(times), "count")}
    if len(times) < 2:
        nothing: Row = {title: Number(None, "seconds") for title in _TITLES}
        return head | nothing | {"Same numbers": ""}
    (fewest, slow), *_, (most, fast) = times.items()
    middles = [median(each) for each in times.values()]
    shared, fixed = linear_regression([1 / number for number in times], middles)
    is_sensible = shared >= 0 and fixed >= 0
    ratio = middles[0] / middles[-1]
    # Every repetition measures here: none has chosen anything.
    interval = interval_of([(Attempt(seconds=(slow[0], *slow)), Attempt(seconds=(fast[0], *fast)))])
    cells = (
        Number(fewest, "count"),
        Number(most, "count"),
        Number(middles[0], "seconds"),
        Number(middles[-1], "seconds"),
        Number(ratio, "ratio", interval=interval, has_interval=True),
        Number(ratio * fewest / most, "count"),
        Number(shared, "seconds"),
        Number(fixed, "seconds"),
        Number(shared / 16 + fixed if is_sensible else None, "seconds"),
        Number(shared / 1000 + fixed if is_sensible else None, "seconds"),
    )
    return head | dict(zip(_TITLES, cells, strict=True)) | {"Same numbers": "yes" if len(proven) == 1 else "NO"}


_TITLES = (
    "Fewest workers", "Most workers", "Seconds, fewest", "Seconds, most", "Speed-up", "Efficiency", "Shared (s)", "Fixed (s)",
    "Model, 16 workers (s)", "Model, 1,000 workers (s)",
)  # fmt: skip


def _workers(run: Run) -> int:
    number: int = json.loads(run.data)["workers"]
    return number
