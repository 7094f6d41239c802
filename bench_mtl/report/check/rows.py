"""The rows of a results file as plain values, read with sqlite3 alone.

Nothing here uses what reports are made with (`bench_mtl.report.tables`, `bench_mtl.results`): a fault there cannot hide itself.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import one_line

RESULTS = "results.sqlite"

VERIFIED, TIMEOUT, SKIPPED = "verified", "timeout", "skipped"

#: How runs end, in the order in which they are counted.
STATUSES = (VERIFIED, "inaccurate", "wrong", TIMEOUT, "memory", "crashed", "error", SKIPPED)

SPECIALISED, GENERIC, PEER, UNKNOWN = "specialised", "generic", "peer", "unknown"

#: Kinds that are asked for a tolerance and begin anew with every one.
ONE_SHOT = (GENERIC, PEER)

_PEER_PREFIX = "peer_"

#: Characters of a label that reports show.
_LONGEST_LABEL = 400

#: The memory of one machine is reported with this much of a difference at most.
_SAME_MEMORY = 0.02


@dataclass(frozen=True)
class Sample:
    """A certified point of a run, all of whose numbers are finite."""

    number: int
    seconds: float
    iteration: int
    passes: float
    primal: float
    dual: float
    gap: float
    infeasibility: float
    asked: float | None


@dataclass(frozen=True)
class Measured:
    """What the problem measures of a sample, whether all numbers of that are finite or not."""

    number: int
    seconds: float | None
    passes: float | None
    primal: float | None
    values: Mapping[str, float]
    """By the names of the measures, where there are any."""


@dataclass(frozen=True)
class Place:
    """A line of code that an exception passed."""

    file: str
    line: int
    function: str
    source: str


@dataclass(frozen=True)
class Run:
    """A run that the suite lists, with its samples and the seconds of the tolerances that it was asked for."""

    id: int
    environment: int
    family: str
    problem: str
    """The label."""
    instance: str
    data: str
    parameters: str
    seed: int | None
    dimensions: str
    notes: str
    solver: str
    label: str
    repetition: int
    threads: int
    target: float
    limit: float | None
    limits: str
    status: str
    reason: str
    primal: float | None
    dual: float | None
    gap: float | None
    infeasibility: float | None
    iterations: int | None
    passes: float | None
    spent: Mapping[str, float]
    """Seconds by what they were spent on: build, compile, setup, solve, certify."""
    memory: float | None
    info: Mapping[str, Any]
    kind: str = UNKNOWN
    machine: str = ""
    samples: tuple[Sample, ...] = ()
    places: tuple[Place, ...] = ()
    """Where it raised, the last line of code last; files of older versions have none."""
    rungs: tuple[float, ...] = ()
    """Seconds of every tolerance, set-up included; files of older versions have none."""
    measured: tuple[Measured, ...] = ()
    """Every sample, of runs of which something is measured."""


@dataclass(frozen=True)
class Rows:
    """What a results file holds."""

    name: str
    description: str
    text: str
    targets: tuple[float, ...]
    """Loose to tight."""
    cases: int
    """How many the suite lists."""
    environments: tuple[Mapping[str, Any], ...]
    """Those of listed runs: id, started and what describes them."""
    machines: tuple[Mapping[str, Any], ...]
    runs: tuple[Run, ...]
    by_problem: Mapping[str, tuple[Run, ...]] = field(default_factory=dict)


def read_rows(folder: Path) -> Rows:
    """Return the rows of the results in `folder`.

    Raises
    ------
    InputError : there are none, or they cannot be read, or no run is finished.
    """
    path = folder / RESULTS
    if not path.is_file():
        raise InputError(f"no results in {folder}: there is no {RESULTS}")
    try:
        with closing(_connected(path)) as connection:
            return _read(connection)
    except (sqlite3.Error, KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{path}: {error}") from None
        raise InputError(f"{path}: not a readable results file ({type(error).__name__}: {error})") from None


def _connected(path: Path) -> sqlite3.Connection:
    """Return a connection that writes no file, not even beside the results, where nobody is writing them."""
    is_open = Path(f"{path}-wal").exists()
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro{'' if is_open else '&immutable=1'}", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def _read(connection: sqlite3.Connection) -> Rows:
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    listed = "listed = 1 AND superseded = 0"
    rows = connection.execute(f"SELECT * FROM run WHERE {listed} ORDER BY position IS NULL, position, id").fetchall()
    if not rows:
        raise InputError("no run is finished")
    query = "SELECT id, started, description FROM environment ORDER BY id"
    used = {row["environment_id"] for row in rows}
    environments = tuple(
        {"id": key, "started": started, **json.loads(text)} for key, started, text in connection.execute(query) if key in used
    )
    samples: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute("SELECT * FROM sample ORDER BY run_id, number"):
        samples.setdefault(row["run_id"], []).append(row)
    rungs: dict[int, list[float]] = {}
    if _has_table(connection, "rung"):
        for run_id, seconds in connection.execute("SELECT run_id, seconds FROM rung ORDER BY run_id, number"):
            rungs.setdefault(run_id, []).append(float(seconds))
    raised = _raised(connection)
    measures = _measures(connection)
    machines, places = _machines(environments)
    names = {e["id"]: f"machine {place + 1}" if len(machines) > 1 else "" for e, place in zip(environments, places, strict=True)}
    kinds = _kinds(rows, samples)
    runs = [
        replace(
            _run(row, samples.get(row["id"], []), rungs.get(row["id"], []), kinds, names),
            measured=_measured(samples.get(row["id"], []), measures.get(row["id"], {})),
            places=tuple(raised.get(row["id"], [])),
        )
        for row in rows
    ]
    runs = _with_machines(_with_visible_labels(runs))
    by_problem: dict[str, list[Run]] = {}
    for run in runs:
        by_problem.setdefault(run.problem, []).append(run)
    return Rows(
        name=meta["suite_name"],
        description=meta["description"],
        text=meta["suite_text"],
        targets=tuple(sorted(set(json.loads(meta["targets"])), reverse=True)),
        cases=int(meta.get("cases", 0)),
        environments=environments,
        machines=tuple(machines),
        runs=tuple(run for of_problem in by_problem.values() for run in of_problem),
        by_problem={problem: tuple(of_problem) for problem, of_problem in by_problem.items()},
    )


def _run(
    row: sqlite3.Row, samples: Sequence[sqlite3.Row], rungs: Sequence[float], kinds: Mapping[str, str], machines: Mapping[int, str]
) -> Run:  # fmt: skip
    gap = _finite(row["relative_gap"])
    return Run(
        id=row["id"],
        environment=row["environment_id"],
        family=row["problem"],
        problem=row["problem_label"],
        instance=row["instance_key"],
        data=row["data"],
        parameters=row["parameters"],
        seed=row["seed"],
        dimensions=row["dimensions"],
        notes=row["notes"],
        solver=row["solver"],
        label=row["solver_label"],
        repetition=row["repetition"],
        threads=row["threads"],
        target=row["target"],
        limit=_finite(row["limit_seconds"]),
        limits=row["limits"],
        status=row["status"],
        reason=row["reason"],
        primal=_finite(row["primal"]),
        dual=_finite(row["dual"]),
        gap=None if gap is None else max(0.0, gap),
        infeasibility=_finite(row["infeasibility"]),
        iterations=row["iterations"],
        passes=_finite(row["passes"]),
        spent={name: float(row[f"{name}_seconds"]) for name in ("build", "compile", "setup", "solve", "certify")},
        memory=_finite(row["peak_memory_mib"]),
        info=json.loads(row["info"]),
        kind=kinds[row["solver"]],
        machine=machines[row["environment_id"]],
        samples=tuple(sample for each in samples if (sample := _sample(each)) is not None),
        rungs=tuple(rungs),
    )


def _sample(row: sqlite3.Row) -> Sample | None:
    """Return a sample, or None where one of its numbers is not finite, which proves nothing."""
    names = ("seconds", "passes", "primal", "dual", "relative_gap", "infeasibility")
    seconds, passes, primal, dual, gap, infeasibility = (_finite(row[name]) for name in names)
    if seconds is None or passes is None or primal is None or dual is None or gap is None or infeasibility is None:
        return None
    return Sample(
        row["number"], seconds, row["iteration"], passes, primal, dual, max(0.0, gap), infeasibility, _finite(row["asked_tolerance"])
    )


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).fetchone()
    return found is not None


def _raised(connection: sqlite3.Connection) -> dict[int, list[Place]]:
    """Return where runs raised, by run."""
    found: dict[int, list[Place]] = {}
    if _has_table(connection, "place"):
        for run_id, *place in connection.execute("SELECT run_id, file, line, function, source FROM place ORDER BY run_id, number"):
            found.setdefault(run_id, []).append(Place(*place))
    return found


def _measures(connection: sqlite3.Connection) -> dict[int, dict[int, dict[str, float]]]:
    """Return values by run, number of the sample and name."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    for run_id, number, name, value in connection.execute("SELECT run_id, number, name, value FROM measure"):
        found.setdefault(run_id, {}).setdefault(number, {})[name] = float(value)
    return found


def _measured(samples: Sequence[sqlite3.Row], values: Mapping[int, Mapping[str, float]]) -> tuple[Measured, ...]:
    if not values:
        return ()
    return tuple(
        Measured(row["number"], _finite(row["seconds"]), _finite(row["passes"]), _finite(row["primal"]), values.get(row["number"], {}))
        for row in samples
    )


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _kinds(rows: Sequence[sqlite3.Row], samples: Mapping[int, Sequence[sqlite3.Row]]) -> dict[str, str]:
    """Return by solver what kind it is, by what its runs show."""
    asked, sampled = set[str](), set[str]()
    for row in rows:
        of_run = samples.get(row["id"], ())
        if row["build_seconds"] > 0 or any(sample["asked_tolerance"] is not None for sample in of_run):
            asked.add(row["solver"])
        if of_run:
            sampled.add(row["solver"])
    return {solver: _kind(solver, solver in asked, solver in sampled) for solver in {row["solver"] for row in rows}}


def _kind(solver: str, is_asked: bool, is_sampled: bool) -> str:
    if solver.startswith(_PEER_PREFIX):
        return PEER
    return GENERIC if is_asked else SPECIALISED if is_sampled else UNKNOWN


def _machines(environments: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the different machines, and of every environment the place of its own."""
    found: list[dict[str, Any]] = []
    places = []
    for environment in environments:
        machine = {name: environment.get(name) for name in ("processor", "logical_cores", "memory_gib", "system")}
        place = next((place for place, other in enumerate(found) if _is_same(machine, other)), len(found))
        if place == len(found):
            found.append(machine)
        places.append(place)
    return found, places


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    def alike(name: str) -> bool:
        mine, theirs = one[name], other[name]
        if name == "memory_gib" and isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
            return math.isclose(mine, theirs, rel_tol=_SAME_MEMORY)
        return bool(mine == theirs)

    return all(alike(name) for name in one)


def _with_visible_labels(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with their labels as reports show them: on one line, and numbered where that changes them."""
    families, problems = _shown(run.family for run in runs), _shown(run.problem for run in runs)
    solvers, labels = _shown(run.solver for run in runs), _shown(run.label for run in runs)
    return [
        replace(run, family=families[run.family], problem=problems[run.problem], solver=solvers[run.solver], label=labels[run.label])
        for run in runs
    ]


def _shown(labels: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    changed = 0
    for label in dict.fromkeys(labels):
        line = one_line(label, _LONGEST_LABEL)
        changed += line != label
        found[label] = label if line == label else f"{line} ({changed})"
    return found


def _with_machines(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with the machine in the label of their problem, where there are several."""
    return [replace(run, problem=f"{run.problem} [{run.machine}]") if run.machine else run for run in runs]
