"""The store of a suite's results: a row per run, a row per certified sample, the suite's text and the environments once.

One transaction writes a run with its samples. Rows are never deleted: a run that is made again supersedes the row before,
and rows of cases that the suite no longer lists wait for the day that it lists them again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench_mtl.errors import InputError
from bench_mtl.paths import exists, is_file
from bench_mtl.store.files import FolderLock, connect_to_read, connect_to_write, naming, require_intact
from bench_mtl.store.schema import SCHEMA, SCHEMA_VERSION, migrate
from bench_mtl.suite import Case, Suite
from bench_mtl.types import Certificate, Record, Status

FILE_NAME = "results.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "runs.csv", "samples.csv", "tables", "figures")

#: After so many seconds the next row waits for the disk, so that a power cut costs no more; every row survives the end of the process.
_SYNC_SECONDS = 1.0

#: Rows of samples that are turned into arrays at a time.
_CHUNK = 50_000


@dataclass(frozen=True)
class Outcome:
    """A record with what is known of its problem, its solver and where it was made."""

    record: Record
    dimensions: Mapping[str, int]
    notes: tuple[str, ...]
    solver_version: str
    baseline: Certificate | None = None
    """What is proven of the zero point: the bounds of a run that ended without any of its own."""
    wall_seconds: float | None = None
    """Of the whole run, once its problem stood and all was compiled."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Of the process that made it, as `describe_environment` gives it."""


class Store:
    """An open results file. Use as a context manager. Every method raises InputError where the file cannot be used.

    Make one with `create` (to write, one at a time a folder) or `open` (to read, even while somebody writes).
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FolderLock | None = None) -> None:
        self._path = path
        self._connection = connection
        self._lock = lock
        self._positions: dict[str, int] = {}
        self._environments: dict[str, int] = {}
        self._synced = time.monotonic()

    @classmethod
    def create(cls, folder: Path, suite: Suite) -> Self:
        """The store of `suite` in `folder`: a new one, or the one that holds results of this suite already.

        A suite whose file has changed since goes on too: `plan` tells what of it is done.

        Raises
        ------
        InputError : another run is using the folder, or it holds another suite's results, or a damaged file, or one of a schema
            that is not known, or files that a report would overwrite, or it cannot be written.
        """
        path = folder / FILE_NAME
        held = exists("output folder", path)
        if held:
            _require_suite(folder, suite)
        else:
            _require_free(folder)
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                raise InputError(f"output folder {folder} cannot be written: {error}") from None
        lock = FolderLock(folder)
        try:
            with naming(path):
                connection = connect_to_write(path)
            store = cls(path, connection, lock)
        except BaseException:
            lock.release()
            raise
        try:
            store._prepare(suite, new=not held)
        except BaseException:
            store.close()
            if not held:
                path.unlink(missing_ok=True)  # half made, it would only be refused the next time
            raise
        return store

    def _prepare(self, suite: Suite, *, new: bool) -> None:
        facts = {
            "suite_name": suite.name,
            "suite_text": suite.text,
            "description": suite.description,
            "targets": json.dumps(suite.targets),
        }
        if not new:
            version = self._version()
            with naming(self._path):
                migrate(self._connection, version)
            if self.meta().items() >= facts.items():
                return
        with self._writing() as connection:
            if new:
                # One transaction, unlike executescript: a file with half of its tables would be refused for ever after.
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                facts["schema_version"] = str(SCHEMA_VERSION)
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The store in `folder`, to be read. A file of an earlier schema is read as if it had been migrated.

        Raises
        ------
        InputError : there is none, or it is damaged, or of a schema that is not known. Nothing is changed, then or otherwise.
        """
        path = folder / FILE_NAME
        if not is_file("results folder", path):
            raise InputError(f"no results in {folder}: there is no {FILE_NAME} (make some with: bench-mtl run SUITE --out {folder})")
        with naming(path):
            connection = connect_to_read(path)
            try:
                require_intact(connection)
                store = cls(path, connection)
                version = store._version()
                if version != SCHEMA_VERSION:
                    store._connection = sqlite3.connect(":memory:")
                    with closing(connection):
                        connection.backup(store._connection)
                    migrate(store._connection, version)
                return store
            except BaseException:
                connection.close()
                raise

    def _version(self) -> int:
        """The schema version of the file, which there is a way from.

        Raises
        ------
        InputError : there is none.
        """
        version = self.meta().get("schema_version", "")
        if not version.isdigit() or not 1 <= int(version) <= SCHEMA_VERSION:
            raise InputError(
                f"{self._path} has schema version {version or 'unknown'}, but this bench_mtl reads up to version {SCHEMA_VERSION}"
            )
        return int(version)

    def close(self) -> None:
        try:
            with naming(self._path):
                self._connection.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def meta(self) -> dict[str, str]:
        return dict(self._rows("SELECT key, value FROM meta"))

    def plan(self, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False) -> list[Case]:
        """Make `cases` the ones that the store lists, and return those that are still to be run, in their order.

        Rows of other cases are kept, but no longer listed. A listed row takes the labels that its case has now.

        Parameters
        ----------
        force : run everything again; the rows there are, are superseded.
        retry_failed : run again what ended as wrong, crashed or error.
        """
        listing = [(place, case.instance.label, case.solver_label, case.key) for place, case in enumerate(cases)]
        if force or retry_failed or not self._lists(listing):
            with self._writing() as connection:
                connection.execute("UPDATE run SET listed = 0, position = NULL WHERE listed = 1")
                connection.executemany(
                    "UPDATE run SET listed = 1, position = ?, problem_label = ?, solver_label = ? WHERE case_key = ? AND superseded = 0",
                    listing,
                )
                if force or retry_failed:
                    which = "1" if force else f"status IN ({', '.join(map(repr, _FAILURES))})"
                    connection.execute(f"UPDATE run SET superseded = 1 WHERE listed = 1 AND superseded = 0 AND {which}")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('cases', ?)", (str(len(cases)),))
        self._positions = {case.key: place for place, case in enumerate(cases)}
        finished = self.finished()
        return [case for case in cases if case.key not in finished]

    def _lists(self, listing: Sequence[tuple[int, str, str, str]]) -> bool:
        """Whether the rows there are say just this already: what has nothing new to say does not touch the file."""
        held = self._rows("SELECT position, problem_label, solver_label, case_key, listed FROM run WHERE superseded = 0 ORDER BY position")
        listed = {tuple(row[:4]) for row in held if row[4]}
        wanted = {row[3]: row for row in listing}
        return self.meta().get("cases") == str(len(listing)) and listed == {wanted[row[3]] for row in held if row[3] in wanted}

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store an environment that runs are made in; returns its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        if not self._environments:
            rows = self._rows("SELECT description, id FROM environment ORDER BY id DESC")
            self._environments = {json.dumps(json.loads(held), sort_keys=True): key for held, key in rows}
        if text not in self._environments:
            row = (datetime.now(UTC).isoformat(timespec="seconds"), text)
            with self._writing() as connection:
                cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
            self._environments[text] = int(cursor.lastrowid or 0)
        return self._environments[text]

    def environments(self) -> list[dict[str, Any]]:
        """The environments that listed runs were made in."""
        query = "SELECT id, started, description FROM environment WHERE id IN (SELECT environment_id FROM current) ORDER BY id"
        rows = self._rows(f"{_CURRENT} {query}")
        return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def finished(self) -> set[str]:
        """Keys of the cases that have a row that counts, whether the suite lists them now or not."""
        return {key for (key,) in self._rows("SELECT case_key FROM run WHERE superseded = 0")}

    def statuses(self) -> list[Status]:
        """How the listed runs ended."""
        return [Status(status) for (status,) in self._rows(f"{_CURRENT} SELECT status FROM current {_IN_ORDER}")]

    def durations(self) -> list[tuple[str, str, float]]:
        """Problem label, solver label and seconds of the listed runs that took any."""
        return self._rows(f"{_CURRENT} SELECT problem_label, solver_label, wall_seconds FROM current WHERE wall_seconds > 0")

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with its samples, in one transaction."""
        row = _run_row(case, outcome, environment_id) | {"position": self._positions.get(case.key)}
        samples = [
            (
                number, sample.seconds, sample.step, sample.work, sample.certificate.primal,
                sample.certificate.dual, sample.certificate.relative_gap, sample.certificate.infeasibility, sample.asked,
            )
            for number, sample in enumerate(outcome.record.samples)
        ]  # fmt: skip
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._writing() as connection:
            run_id = connection.execute(f"INSERT INTO run ({names}) VALUES ({marks})", tuple(row.values())).lastrowid
            connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ((run_id, *sample) for sample in samples))

    def runs(self) -> Any:
        """The listed runs as a DataFrame, in the order of the suite's cases."""
        import pandas as pd

        with naming(self._path), closing(self._connection.execute(f"{_CURRENT} SELECT * FROM current {_IN_ORDER}")) as cursor:
            frame = pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])
        return frame.drop(columns=["position", "listed", "superseded"])

    def samples(self) -> Any:
        """The samples of the listed runs as a DataFrame, run by run in the order they were made."""
        import pandas as pd

        whole = ("run_id", "number", "iteration")
        real = ("seconds", "passes", "primal", "dual", "relative_gap", "infeasibility", "asked_tolerance")
        query = f"{_CURRENT} SELECT {', '.join(whole + real)} FROM sample WHERE run_id IN (SELECT id FROM current) ORDER BY run_id, number"
        parts = []
        with naming(self._path), closing(self._connection.execute(query)) as cursor:
            # Arrays chunk by chunk: a million rows of Python objects would take ten times their memory.
            while rows := cursor.fetchmany(_CHUNK):
                columns = list(zip(*rows, strict=True))
                parts.append([np.array(c, np.int64 if i < len(whole) else np.float64) for i, c in enumerate(columns)])
        joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
        empty = [np.empty(0, np.int64 if name in whole else np.float64) for name in whole + real]
        frame = pd.DataFrame(dict(zip(whole + real, joined or empty, strict=True)), copy=False)
        return frame[["run_id", "number", "seconds", "iteration", *real[1:]]]

    def _rows(self, query: str) -> list[Any]:
        with naming(self._path):
            return self._connection.execute(query).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with naming(self._path):
            durable = time.monotonic() - self._synced > _SYNC_SECONDS
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
            if durable:
                self._synced = time.monotonic()


#: The runs that count: of cases that the suite lists now, the last one each.
_CURRENT = "WITH current AS (SELECT * FROM run WHERE listed = 1 AND superseded = 0)"

_IN_ORDER = "ORDER BY position IS NULL, position, id"

_FAILURES = tuple(status.value for status in Status if status.is_failure)


def finished_in(folder: Path) -> set[str]:
    """Keys of the cases that `folder` has a row of; none where it has no results.

    Raises
    ------
    InputError : as `Store.open` does for results that cannot be used.
    """
    if not exists("output folder", folder / FILE_NAME):
        return set()
    with Store.open(folder) as store:
        return store.finished()


def _require_suite(folder: Path, suite: Suite) -> None:
    """Look before anything is opened to be written: what is damaged or somebody else's stays as it is."""
    with Store.open(folder) as store:
        held = store.meta().get("suite_name")
    if held != suite.name:
        raise InputError(f"{folder} already holds the results of suite '{held}': choose another folder with --out")


def _require_free(folder: Path) -> None:
    for name in REPORT_NAMES:
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another folder with --out")


def _run_row(case: Case, outcome: Outcome, environment_id: int) -> dict[str, Any]:
    record, best = outcome.record, outcome.record.best or outcome.baseline
    last = record.samples[-1] if record.samples else None
    return {
        "case_key": case.key,
        "environment_id": environment_id,
        "problem": case.instance.problem,
        "problem_label": case.instance.label,
        "instance_key": case.instance.key,
        "data": json.dumps(case.instance.data),
        "data_fingerprint": case.instance.fingerprint,
        "parameters": json.dumps(case.instance.parameters),
        "seed": case.instance.seed,
        "dimensions": json.dumps(dict(outcome.dimensions)),
        "notes": json.dumps(outcome.notes),
        "solver": case.solver,
        "solver_label": case.solver_label,
        "options": json.dumps(case.options),
        "solver_version": outcome.solver_version,
        "repetition": case.repetition,
        "threads": case.threads,
        "target": case.target,
        "limit_seconds": case.limits.seconds,
        "limits": json.dumps(asdict(case.limits)),
        "status": str(record.status),
        "reason": record.reason,
        "primal": best and best.primal,
        "dual": best and best.dual,
        "relative_gap": best and best.relative_gap,
        "infeasibility": record.best and record.best.infeasibility,
        "iterations": last and last.step,
        "passes": last and last.work,
        **{f"{name}_seconds": seconds for name, seconds in asdict(record.times).items()},
        "wall_seconds": outcome.wall_seconds,
        "peak_memory_mib": record.peak_memory_mib,
        "info": json.dumps(dict(record.info), default=str),
    }
