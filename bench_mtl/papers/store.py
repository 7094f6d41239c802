"""The rows of an experiment's cells: one SQLite file a folder, one transaction a row, one writer."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists
from bench_mtl.core.types import Status
from bench_mtl.papers.cells import Cell
from bench_mtl.papers.experiment import CellSettings
from bench_mtl.results import Outcome, Store
from bench_mtl.results.database import now
from bench_mtl.results.files import broken_pages, connect_to_read, connect_to_write, locked, made_folder, make_file, naming, unreadable
from bench_mtl.results.rows import storable

FILE_NAME = "cells.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "report.html", "comparison.csv", "cells.csv", "cover.svg", "tables", "figures")

#: Files of version 2 have no compressed values, and are read as they are.
SCHEMA_VERSION = 3

#: What a cell has found is compressed where its text is longer: pictures and curves, which are most of all bytes.
_LONGEST_TEXT = 1000

#: What a row has that is copied; its environment gets another number.
_COPIED = ("key", "settings", "status", "reason", "found", "seconds", "wall_seconds", "peak_memory_mib")

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


class CellStore(Store):
    """An open file of cells. Use as a context manager. Every method raises InputError where the file cannot be used."""

    @classmethod
    def create(cls, folder: Path, experiment: str) -> Self:  # type: ignore[override]
        """Return the store of an experiment in `folder`: a new one, or the one that holds cells of it already.

        Raises
        ------
        InputError : another run is using the folder, or it holds another experiment's cells, a damaged file, one of another schema, or
            files that a report would overwrite, or it cannot be written.
        """
        path = folder / FILE_NAME
        is_there = _holds_cells(path)
        with made_folder(folder), ExitStack() as on_error:
            on_error.enter_context(locked(folder))
            if not is_there and not _holds_cells(path):
                make_file(path, lambda connection: _lay_out(connection, experiment))
            with naming(path):
                connection = connect_to_write(path)
            store = cls(path, connection, on_error.pop_all())
        store._require_of(experiment, is_new_to=True)
        return store

    @classmethod
    def open(cls, folder: Path, experiment: str | None) -> Self:  # type: ignore[override]
        """Open the store of an experiment in `folder`, or of any, to read it, which changes no byte of it.

        Raises
        ------
        InputError : there is none, or it holds another experiment's cells, a damaged file or one of another schema.
        """
        path = folder / FILE_NAME
        if not exists("folder", path):
            raise InputError(f"{folder} holds no {FILE_NAME}")
        with naming(path):
            store = cls(path, connect_to_read(path))
        store._require_of(experiment)
        return store

    def _require_of(self, experiment: str | None, *, is_new_to: bool = False) -> None:
        """Close the store and raise InputError where it does not hold intact cells of this experiment, or of any.

        Parameters
        ----------
        is_new_to : whether a file that does not say of which experiment it is becomes one of this
        """
        try:
            with naming(self.path):
                if reason := broken_pages(self.path, self._connection):
                    raise unreadable(self.path, reason)
            held = self.meta().get("experiment")
            if experiment not in (None, held):
                raise InputError(f"{self.path.parent} already holds the cells of '{held}': choose another folder with --out")
        except BaseException:
            self.close()
            raise

    def plan(self, cells: Sequence[Cell], *, force: bool = False, retry_failed: bool = False) -> list[Cell]:  # type: ignore[override]
        """The cells that are still to be run, in their order.

        Parameters
        ----------
        force : run all of them again; the rows there are, are superseded at once, so that such a run is resumed without `force`.
        retry_failed : run again what ended as crashed or error, likewise.
        """
        keys = {cell.key for cell in cells}
        held = [(id_, key, Status(status)) for id_, key, status in self._all("SELECT id, key, status FROM cell WHERE superseded = 0")]
        again = [id_ for id_, key, status in held if key in keys and (force or (retry_failed and status.is_failure))]
        if again:
            with self._writing() as connection:
                connection.executemany("UPDATE cell SET superseded = 1 WHERE id = ?", [(id_,) for id_ in again])
        done = self.finished()
        return [cell for cell in cells if cell.key not in done]

    def take_over(self, cells: Sequence[Cell], folder: Path) -> int:
        """Copy from the store in another folder, of any experiment, the rows of those cells that have none here and did not fail there.

        Return how many that were.

        Raises
        ------
        InputError : there is no store, or it cannot be read.
        """
        wanted = {cell.key for cell in cells} - self.finished()
        with type(self).open(folder, None) as other:
            query = f"SELECT {', '.join(_COPIED)}, environment_id FROM cell WHERE superseded = 0 ORDER BY id"
            found = [row for row in other._all(query) if row[0] in wanted and not Status(row[_COPIED.index("status")]).is_failure]
            there = {each.pop("id"): each for each in other.environments({row[-1] for row in found})}
        here = {key: self.add_environment(each, each.pop("started")) for key, each in there.items()}
        with self._writing() as connection:
            for *values, environment in found:
                row = {**dict(zip(_COPIED, values, strict=True)), "environment_id": here[environment]}
                insert(connection, "cell", row)
        return len(found)

    def finished(self) -> set[str]:
        """Keys of the cells that have a row that counts."""
        return {key for (key,) in self._all("SELECT key FROM cell WHERE superseded = 0")}

    def add(self, cell: Cell, outcome: Outcome, environment_id: int) -> None:  # type: ignore[override]
        """The row of one cell, in one transaction."""
        record = outcome.record
        row = {
            "key": cell.key,
            "environment_id": environment_id,
            "settings": _text(cell.settings),
            "status": str(record.status),
            "reason": record.reason,
            "found": packed(outcome.found),
            "seconds": record.times.solve,
            "wall_seconds": outcome.wall_seconds,
            "peak_memory_mib": record.peak_memory_mib,
        }
        with self._writing() as connection:
            insert(connection, "cell", {name: storable(value) for name, value in row.items()})

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
        return {
            name: {
                **json.loads(settings), **unpacked(found),
                "status": str(Status(status)), "reason": reason, "seconds": seconds, "environment_id": environment,
            }
            for name, settings, found, status, reason, seconds, environment in self._all(query)
        }  # fmt: skip

    def meta(self) -> dict[str, str]:
        """Return what the file says of itself."""
        return dict(self._all("SELECT key, value FROM meta"))

    def deaths(self) -> dict[str, int]:
        """No cell is held responsible for the end of a command."""
        return {}

    def begin(self, key: str) -> None:
        """Nothing is written before a cell has ended."""

    def add_environment(self, description: Mapping[str, Any], started: str | None = None) -> int:
        """Return the id of an environment, which is stored where it is new."""
        text = json.dumps(description, sort_keys=True)
        for number, held in self._all("SELECT id, description FROM environment"):
            if json.dumps(json.loads(held), sort_keys=True) == text:
                return int(number)
        with self._writing() as connection:
            return insert(connection, "environment", {"started": started or now(), "description": text})

    def environments(self, ids: set[int]) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the environments of these ids."""
        rows = self._all(f"SELECT id, started, description FROM environment WHERE id IN ({', '.join(map(str, ids))}) ORDER BY id")
        return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def durations(self, cells: Sequence[Cell]) -> list[tuple[str, str, float]]:  # type: ignore[override]
        """Labels and seconds of the cells that have a row."""
        known = dict(self._all("SELECT key, seconds FROM cell WHERE superseded = 0"))
        return [(*cell.labels, known[cell.key]) for cell in cells if cell.key in known]


def _holds_cells(path: Path) -> bool:
    """Tell whether there is a file of cells. What a report would overwrite where there is none is refused."""
    if exists("output folder", path):
        return True
    for name in REPORT_NAMES:
        if exists("output folder", path.parent / name):
            raise InputError(f"{path.parent} holds {name} but no {FILE_NAME}: the report would overwrite it; choose another --out")
    return False


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


def packed(values: Mapping[str, Any]) -> str | bytes:
    """Return values as a row holds them: JSON, compressed by zlib where it is long."""
    text = json.dumps(dict(values), default=_plain)
    return text if len(text) <= _LONGEST_TEXT else zlib.compress(text.encode(), 9)


def unpacked(content: str | bytes) -> dict[str, Any]:
    """Return the values that `packed` made a row's content of.

    Raises
    ------
    ValueError : it is no such content.
    """
    try:
        values: dict[str, Any] = json.loads(zlib.decompress(content) if isinstance(content, bytes) else content)
    except zlib.error as error:
        raise ValueError(f"compressed values cannot be read: {error}") from None
    return values


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert a row, given by column, and return its id."""
    marks = ", ".join("?" * len(row))
    return int(connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())).lastrowid or 0)


def _lay_out(connection: sqlite3.Connection, experiment: str) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    facts = {"schema_version": str(SCHEMA_VERSION), "experiment": experiment}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a cell has found {type(value).__name__}, which a row cannot hold")
