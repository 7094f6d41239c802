"""The store of a suite's results: a row per run, per certified sample and measure of it, per part of a solution; the suite's text and the
environments once.

One transaction writes a run with its samples, measures and patterns. Rows are never deleted: a run that is made again supersedes the row
before, and rows of cases that the suite no longer lists wait for the day that it lists them again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists, is_file
from bench_mtl.core.types import Status
from bench_mtl.engine.suite import Case, Suite
from bench_mtl.results.files import (
    UNFINISHED,
    FolderLock,
    close_written,
    connect_to_read,
    connect_to_write,
    decoding,
    in_memory,
    made_folder,
    make_file,
    naming,
    require_intact,
    require_own_wal,
)
from bench_mtl.results.rows import Outcome, measure_rows, pattern_rows, run_row, sample_rows
from bench_mtl.results.schema import SCHEMA_VERSION, has_its_tables, lay_out, migrate
from bench_mtl.results.stored_patterns import PATTERN_COLUMNS, Pattern, read_pattern

FILE_NAME = "results.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "report.html", "runs.csv", "samples.csv", "tables", "figures")

#: After so many seconds the next row waits for the disk, so that a power cut costs no more; every row survives the end of the process.
_SYNC_SECONDS = 1.0

#: What `meta` says of the suite in every file.
_FACTS = ("suite_name", "suite_text", "description", "targets")


@dataclass(frozen=True)
class _Listing:
    """Which cases a file is to list, against what it says."""

    waiting: list[Case]
    """Without a row that counts."""
    changes: list[tuple[Any, ...]]
    """What rows are to say that they do not: (listed, position, problem label, solver label, id)."""
    outdated: list[tuple[int]]
    """Ids of rows that are to be superseded."""
    is_new: bool
    """Whether the file says anything else."""


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
            that is not known, or files that a report would overwrite, or it cannot be written. What was there is as it was.
        """
        facts = _facts(suite)
        held = _looked_into(folder, suite)
        with made_folder(folder):
            lock = FolderLock(folder)
            try:
                if not held and not _looked_into(folder, suite):  # another run may have come and gone in between
                    make_file(folder / FILE_NAME, lambda connection: lay_out(connection, facts))
                with naming(folder / FILE_NAME):
                    store = cls(folder / FILE_NAME, connect_to_write(folder / FILE_NAME), lock)
            except BaseException:
                lock.release()
                raise
            try:
                store._prepare(facts)
            except BaseException:
                store.close()
                raise
        return store

    def _prepare(self, facts: Mapping[str, str]) -> None:
        version = self._version()
        with naming(self._path):
            migrate(self._connection, version)
        if not self.meta().items() >= facts.items():
            with self._writing() as connection:
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
            missing = "there is no such folder" if not folder.exists() else f"there is no {FILE_NAME}"
            raise InputError(f"no results in {folder}: {missing} (make some with: bench-mtl run SUITE --out {folder})")
        with naming(path):
            require_own_wal(path)
            store = cls(path, connect_to_read(path))
            try:
                require_intact(path, store._connection)
                version = store._version()
                if version != SCHEMA_VERSION:
                    with closing(store._connection) as connection:
                        store._connection = in_memory(connection)
                    migrate(store._connection, version)
                if not has_its_tables(store._connection):
                    raise InputError(f"{path}: not a readable results file (other columns than it should have): move it away and run again")
                return store
            except BaseException:
                store._connection.close()
                raise

    def _version(self) -> int:
        """The schema version of the file, which there is a way from.

        Raises
        ------
        InputError : there is none, or `meta` lacks something.
        """
        meta = self.meta()
        version = meta.get("schema_version", "unknown")
        if version not in map(str, range(1, SCHEMA_VERSION + 1)):
            raise InputError(f"{self._path} has schema version {version}, but this bench_mtl reads up to version {SCHEMA_VERSION}")
        for name in _FACTS:
            if name not in meta:
                raise InputError(f"{self._path}: not a readable results file (no {name} in table meta): move it away and run again")
        return int(version)

    def close(self) -> None:
        try:
            with naming(self._path):
                if self._lock is None:
                    self._connection.close()
                else:
                    close_written(self._connection)
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Of the file."""
        return self._path

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """All that is read inside belongs together, whatever a run writes meanwhile."""
        with naming(self._path):
            self._connection.execute("BEGIN")
        try:
            yield self
        finally:
            self._connection.rollback()

    def meta(self) -> dict[str, str]:
        return dict(self._all("SELECT key, value FROM meta"))

    def plan(self, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False) -> list[Case]:
        """Make `cases` the ones that the store lists, and return those that are still to be run, in their order.

        Rows of other cases are kept, but no longer listed. A listed row takes the labels that its case has now. A file that says all of
        this already is not touched.

        Parameters
        ----------
        force : run everything again; the rows there are, are superseded at once, so that such a run is resumed without `force`.
        retry_failed : run again what ended as wrong, crashed or error, likewise.
        """
        self._positions = {case.key: place for place, case in enumerate(cases)}
        listing = self._listing(cases, force=force, retry_failed=retry_failed)
        if listing.is_new:
            with self._writing() as connection:
                connection.executemany("UPDATE run SET superseded = 1, listed = 0, position = NULL WHERE id = ?", listing.outdated)
                connection.executemany(
                    "UPDATE run SET listed = ?, position = ?, problem_label = ?, solver_label = ? WHERE id = ?", listing.changes
                )
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('cases', ?)", (str(len(cases)),))
        return listing.waiting

    def foresee(self, suite: Suite, cases: Sequence[Case], *, force: bool = False, retry_failed: bool = False) -> tuple[list[Case], bool]:
        """What `plan` would return, and whether `create` and `plan` would change anything; changes nothing."""
        listing = self._listing(cases, force=force, retry_failed=retry_failed)
        return listing.waiting, listing.is_new or not self.meta().items() >= _facts(suite).items()

    def _listing(self, cases: Sequence[Case], *, force: bool, retry_failed: bool) -> _Listing:
        wanted = {case.key: (1, place, case.instance.label, case.solver_label) for place, case in enumerate(cases)}
        again = frozenset(Status) if force else frozenset(status for status in Status if retry_failed and status.is_failure)
        held = self._all("SELECT id, case_key, status, listed, position, problem_label, solver_label FROM run WHERE superseded = 0")
        left = [row for row in held if not (row[1] in wanted and row[2] in again)]
        # What a row is to say: of a case that is not wanted, that it is not listed, with the labels it has.
        changes = [(*wish, row[0]) for row in left if (wish := wanted.get(row[1], (0, None, *row[5:]))) != row[3:]]
        outdated = [(row[0],) for row in held if row[1] in wanted and row[2] in again]
        done = {row[1] for row in left}
        return _Listing(
            waiting=[case for case in cases if case.key not in done],
            changes=changes,
            outdated=outdated,
            is_new=bool(changes or outdated) or self.meta().get("cases") != str(len(cases)),
        )

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store an environment that runs are made in; returns its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        if not self._environments:
            rows = self._all("SELECT description, id FROM environment ORDER BY id DESC")
            with decoding(self._path):
                self._environments = {json.dumps(json.loads(held), sort_keys=True): key for held, key in rows}
        if text not in self._environments:
            row = (datetime.now(UTC).isoformat(timespec="seconds"), text)
            with self._writing() as connection:
                cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
            self._environments[text] = int(cursor.lastrowid or 0)
        return self._environments[text]

    def environments(self) -> list[dict[str, Any]]:
        """The environments that listed runs were made in."""
        rows = self._all(self._query("environments"))
        with decoding(self._path):
            return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def finished(self) -> set[str]:
        """Keys of the cases that have a row that counts, whether the suite lists them now or not."""
        return {key for (key,) in self._all("SELECT case_key FROM run WHERE superseded = 0")}

    def statuses(self) -> list[Status]:
        """How the listed runs ended."""
        rows = self._all(f"SELECT status FROM run WHERE {_IS_LISTED} {_IN_ORDER}")
        with decoding(self._path):
            return [Status(status) for (status,) in rows]

    def durations(self) -> list[tuple[str, str, float]]:
        """Problem label, solver label and seconds of the listed runs that took any."""
        return self._all(f"SELECT problem_label, solver_label, wall_seconds FROM run WHERE {_IS_LISTED} AND wall_seconds > 0")

    def add(self, case: Case, outcome: Outcome, environment_id: int) -> None:
        """One run with its samples, measures and patterns, in one transaction."""
        row = run_row(case, outcome, environment_id) | {"position": self._positions.get(case.key)}
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        with self._writing() as connection:
            run_id = connection.execute(f"INSERT INTO run ({names}) VALUES ({marks})", tuple(row.values())).lastrowid
            samples = ((run_id, *sample) for sample in sample_rows(outcome.record.samples))
            connection.executemany("INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", samples)
            measures = ((run_id, *measure) for measure in measure_rows(outcome.record.samples))
            connection.executemany("INSERT INTO measure VALUES (?, ?, ?, ?)", measures)
            patterns = ((run_id, *pattern) for pattern in pattern_rows(outcome.patterns))
            connection.executemany("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?)", patterns)

    def runs(self) -> Any:
        """The listed runs as a DataFrame, in the order of the suite's cases."""
        import pandas as pd

        return pd.DataFrame(self._all(self._query("runs")), columns=list(self.columns("runs")))

    def samples(self) -> Any:
        """The samples of the listed runs as a DataFrame, run by run in the order they were made."""
        import numpy as np
        import pandas as pd

        kinds = {name: np.int64 if kind == "INTEGER" else np.float64 for name, kind in self.columns("samples").items()}
        # Straight into an array: a million rows of Python objects would take ten times its memory. NumPy reads "nan", but not None.
        query = self._query("samples").replace("asked_tolerance", "ifnull(asked_tolerance, 'nan')")
        with naming(self._path), decoding(self._path), closing(self._connection.execute(query)) as cursor:
            table = np.fromiter(cursor, np.dtype(list(kinds.items())))
        return pd.DataFrame({name: np.ascontiguousarray(table[name]) for name in kinds}, copy=False)

    def measures(self) -> Any:
        """The measures of the samples of the listed runs as a DataFrame, run by run and sample by sample: run_id, number, name, value.

        Names are categories, in the order of the alphabet.
        """
        import numpy as np
        import pandas as pd

        names: dict[str, int] = {}

        def coded(cursor: sqlite3.Cursor) -> Iterator[tuple[int, int, int, float]]:
            for run_id, number, name, value in cursor:
                if not isinstance(name, str):
                    raise ValueError(f"a measure is called {name!r}")
                yield run_id, number, names.setdefault(name, len(names)), value

        kinds = [("run_id", np.int64), ("number", np.int64), ("name", np.int32), ("value", np.float64)]
        with naming(self._path), decoding(self._path), closing(self._connection.execute(self._query("measures"))) as cursor:
            table = np.fromiter(coded(cursor), np.dtype(kinds))
        columns = {name: np.ascontiguousarray(table[name]) for name, _ in kinds}
        named = pd.Categorical.from_codes(columns["name"], dtype=pd.CategoricalDtype(list(names)))
        return pd.DataFrame(columns | {"name": named.reorder_categories(sorted(names))}, copy=False)

    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of the solutions of the listed runs, run by run, part by part by name; a damaged one is left out."""
        found = (read_pattern(*row) for row in self.rows(f"SELECT {', '.join(PATTERN_COLUMNS)} FROM {_LISTED_ROWS['patterns']}"))
        return tuple(pattern for pattern in found if pattern is not None)

    def columns(self, table: str) -> dict[str, str]:
        """Names of the columns of the listed "runs", "samples", "measures", "environments" or "patterns", with their kinds: INTEGER, REAL
        or TEXT.

        The bits of a pattern, which no table can show, are not among them.
        """
        columns = {name: kind for _, name, kind, *_ in self._all(f"PRAGMA table_info({table.removesuffix('s')})")}
        return {name: kind for name, kind in columns.items() if name not in _OF_THE_LISTING and kind != "BLOB"}

    def _query(self, table: str) -> str:
        columns = ", ".join(self.columns(table))
        return f"SELECT {columns} FROM {_LISTED_ROWS[table]}"

    def chunks(self, table: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of one of the tables of `columns`, at most `size` at a time, in the order of `runs` and `samples`."""
        with naming(self._path), closing(self._connection.execute(self._query(table))) as cursor:
            while rows := cursor.fetchmany(size):
                yield rows

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """What a query finds, row by row."""
        with naming(self._path), closing(self._connection.execute(query)) as cursor:
            yield from cursor

    def _all(self, query: str) -> list[Any]:
        return list(self.rows(query))

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
_IS_LISTED = "listed = 1 AND superseded = 0"

_IN_ORDER = "ORDER BY position IS NULL, position, id"

#: Columns that say which runs are listed, and in which order: those that are read say so by being there.
_OF_THE_LISTING = ("position", "listed", "superseded")

_LISTED_ROWS = {
    "runs": f"run WHERE {_IS_LISTED} {_IN_ORDER}",
    "samples": f"sample WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number",
    "measures": f"measure WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, number, name",
    "patterns": f"pattern WHERE run_id IN (SELECT id FROM run WHERE {_IS_LISTED}) ORDER BY run_id, part",
    "environments": f"environment WHERE id IN (SELECT environment_id FROM run WHERE {_IS_LISTED}) ORDER BY id",
}


def _facts(suite: Suite) -> dict[str, str]:
    """What `meta` says of a suite."""
    return {
        "suite_name": suite.name,
        "suite_text": suite.text,
        "description": suite.description,
        "targets": json.dumps(suite.targets),
    }


def require_free(folder: Path) -> None:
    """Raise InputError for a folder that holds what new results, or their report, would overwrite or take for theirs."""
    for name in REPORT_NAMES:
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another folder with --out")
    for name in (f"{FILE_NAME}{ending}" for ending in UNFINISHED):
        if exists("output folder", folder / name):
            raise InputError(f"{folder} holds {name} of results that are gone: move it away, or choose another folder with --out")


def _looked_into(folder: Path, suite: Suite) -> bool:
    """Whether `folder` holds results of `suite`. What is damaged or somebody else's is refused before it is opened to be written."""
    if not exists("output folder", folder / FILE_NAME):
        require_free(folder)
        return False
    with Store.open(folder) as store:
        held = store.meta()["suite_name"]
    if held != suite.name:
        raise InputError(f"{folder} already holds the results of suite '{held}': choose another folder with --out")
    return True
