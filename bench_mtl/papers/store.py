"""The rows of an experiment's cells: one SQLite file a folder, one transaction a row, one writer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists
from bench_mtl.core.types import Status
from bench_mtl.papers.cells import Cell
from bench_mtl.papers.experiment import CellSettings
from bench_mtl.results import Outcome
from bench_mtl.results.files import (
    FolderLock,
    close_written,
    connect_to_read,
    connect_to_write,
    decoding,
    made_folder,
    make_file,
    naming,
    require_intact,
    require_own_wal,
)
from bench_mtl.results.rows import storable

FILE_NAME = "cells.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "comparison.csv", "cells.csv", "tables", "figures")

SCHEMA_VERSION = 1

_SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL)",
    """CREATE TABLE cell (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        superseded INTEGER NOT NULL DEFAULT 0,
        environment_id INTEGER NOT NULL REFERENCES environment (id),
        settings TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        found TEXT NOT NULL,
        seconds REAL NOT NULL,
        wall_seconds REAL,
        peak_memory_mib REAL
    )""",
    "CREATE UNIQUE INDEX cell_of_key ON cell (key) WHERE superseded = 0",
)


class CellStore:
    """An open file of cells. Use as a context manager. Every method raises InputError where the file cannot be used."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FolderLock | None = None) -> None:
        self.path = path
        """Path of the file."""
        self._connection = connection
        self._lock = lock

    @classmethod
    def create(cls, folder: Path, experiment: str) -> Self:
        """The store of an experiment in `folder`: a new one, or the one that holds cells of it already.

        Raises
        ------
        InputError : another run is using the folder, or it holds another experiment's cells, a damaged file, one of another schema, or
            files that a report would overwrite, or it cannot be written.
        """
        path = folder / FILE_NAME
        is_new = not exists("output folder", path)
        if is_new:
            for name in REPORT_NAMES:
                if exists("output folder", folder / name):
                    raise InputError(f"{folder} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another --out")
        with made_folder(folder):
            lock = FolderLock(folder)
            try:
                if is_new:
                    make_file(path, lambda connection: _lay_out(connection, experiment))
                with naming(path):
                    require_own_wal(path)
                    connection = connect_to_write(path)
            except BaseException:
                lock.release()
                raise
            store = cls(path, connection, lock)
            try:
                store._check(experiment)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def open(cls, folder: Path, experiment: str) -> Self:
        """Open the store of an experiment in `folder` to read it, which changes no byte of it.

        Raises
        ------
        InputError : there is none, or it holds another experiment's cells, a damaged file or one of another schema.
        """
        path = folder / FILE_NAME
        if not exists("folder", path):
            raise InputError(f"{folder} holds no {FILE_NAME}")
        with naming(path):
            store = cls(path, connect_to_read(path))
        try:
            store._check(experiment)
        except BaseException:
            store.close()
            raise
        return store

    def _check(self, experiment: str) -> None:
        require_intact(self.path, self._connection)
        meta = dict(self._all("SELECT key, value FROM meta"))
        version = meta.get("schema_version")
        if version != str(SCHEMA_VERSION):
            raise InputError(f"{self.path} has schema version {version}, but this bench_mtl reads version {SCHEMA_VERSION}")
        if meta.get("experiment") != experiment:
            raise InputError(f"{self.path.parent} already holds the cells of '{meta.get('experiment')}': choose another folder with --out")

    def close(self) -> None:
        if self._lock is None:
            self._connection.close()
            return
        try:
            with naming(self.path):
                close_written(self._connection)
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plan(self, cells: Sequence[Cell], *, force: bool = False, retry_failed: bool = False) -> list[Cell]:
        """The cells that are still to be run, in their order.

        Parameters
        ----------
        force : run all of them again; the rows there are, are superseded at once, so that such a run is resumed without `force`.
        retry_failed : run again what ended as crashed or error, likewise.
        """
        keys = {cell.key for cell in cells}
        with decoding(self.path):
            held = [(key, Status(status)) for key, status in self._all("SELECT key, status FROM cell WHERE superseded = 0")]
        again = [(key,) for key, status in held if key in keys and (force or (retry_failed and status.is_failure))]
        if again:
            with self._writing() as connection:
                connection.executemany("UPDATE cell SET superseded = 1 WHERE key = ?", again)
        done = self.finished()
        return [cell for cell in cells if cell.key not in done]

    def finished(self) -> set[str]:
        """Keys of the cells that have a row that counts."""
        return {key for (key,) in self._all("SELECT key FROM cell WHERE superseded = 0")}

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store an environment that cells are run in; returns its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        known = self._all("SELECT id FROM environment WHERE description = ?", text)
        if known:
            return int(known[0][0])
        row = (datetime.now(UTC).isoformat(timespec="seconds"), text)
        with self._writing() as connection:
            return int(connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row).lastrowid or 0)

    def add(self, cell: Cell, outcome: Outcome, environment_id: int) -> None:
        """The row of one cell, in one transaction."""
        record = outcome.record
        row = (
            cell.key, environment_id, _text(cell.settings), str(record.status), record.reason,
            json.dumps(dict(outcome.found), default=_plain), record.times.solve, outcome.wall_seconds, record.peak_memory_mib,
        )  # fmt: skip
        names = "key, environment_id, settings, status, reason, found, seconds, wall_seconds, peak_memory_mib"
        with self._writing() as connection:
            connection.execute(f"INSERT INTO cell ({names}) VALUES ({', '.join('?' * len(row))})", tuple(map(storable, row)))

    def rows(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """The rows of `cells` that there are, in their order: settings, what was found, `status`, `reason`, `seconds`, `environment_id`."""
        held = self._held("key")
        return [held[cell.key] for cell in cells if cell.key in held]

    def rows_of(self, grid: Sequence[CellSettings]) -> list[dict[str, Any]]:
        """The latest row for each of these settings, as `rows` gives them, whatever code, limits and data it was made with."""
        held = self._held("settings")
        return [held[text] for text in map(_text, grid) if text in held]

    def _held(self, column: str) -> dict[str, dict[str, Any]]:
        """The rows that count by a column, of equal ones the latest."""
        query = f"SELECT {column}, settings, found, status, reason, seconds, environment_id FROM cell WHERE superseded = 0 ORDER BY id"
        with decoding(self.path):
            return {
                name: {
                    **json.loads(settings), **json.loads(found),
                    "status": str(Status(status)), "reason": reason, "seconds": seconds, "environment_id": environment,
                }
                for name, settings, found, status, reason, seconds, environment in self._all(query)
            }  # fmt: skip

    def environments(self, ids: set[int]) -> list[dict[str, Any]]:
        """The environments of these ids."""
        with decoding(self.path):
            return [
                {"id": key, "started": started, **json.loads(text)}
                for key, started, text in self._all("SELECT id, started, description FROM environment ORDER BY id")
                if key in ids
            ]

    def durations(self, cells: Sequence[Cell]) -> list[tuple[str, str, float]]:
        """Labels and seconds of the cells that have a row."""
        known = dict(self._all("SELECT key, seconds FROM cell WHERE superseded = 0"))
        return [(*cell.labels, known[cell.key]) for cell in cells if cell.key in known]

    def _all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with naming(self.path), closing(self._connection.execute(query, values)) as cursor:
            return cursor.fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with naming(self.path), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


def experiment_in(folder: Path) -> str | None:
    """The name of the experiment whose cells are in `folder`; None where there is no file of cells.

    Raises
    ------
    InputError : a file that cannot be read as one.
    """
    path = folder / FILE_NAME
    if not exists("folder", path):
        return None
    with naming(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT value FROM meta WHERE key = 'experiment'").fetchone()
    if found is None:
        raise InputError(f"{path} does not say of which experiment it has cells")
    return str(found[0])


def _text(settings: CellSettings) -> str:
    return json.dumps(dict(settings))


def _lay_out(connection: sqlite3.Connection, experiment: str) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    facts = {"schema_version": str(SCHEMA_VERSION), "experiment": experiment}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a cell has found {type(value).__name__}, which a row cannot hold")
