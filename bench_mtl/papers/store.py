"""The rows of an experiment's cells: one SQLite file a folder, one transaction a row, one writer."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.files import exists
from bench_mtl.core.types import Status
from bench_mtl.papers.cells import Cell
from bench_mtl.papers.experiment import CellSettings
from bench_mtl.results import Outcome
from bench_mtl.results.digests import Part, put
from bench_mtl.results.files import connect_to_read, decoding, naming, require_intact, require_own_wal, require_regular
from bench_mtl.results.rows import storable
from bench_mtl.results.sqlite_store import ADDED_TABLES, COMMON_TABLES, SqliteStore, insert, lay_out_common

FILE_NAME = "cells.sqlite"

#: What a report writes beside it.
REPORT_NAMES = ("report.md", "report.html", "comparison.csv", "cells.csv", "cover.svg", "tables", "figures")

#: Files of version 2 have no compressed values, and are read as they are.
SCHEMA_VERSION = 3

#: What a cell has found is compressed where its text is longer: pictures and curves, which are most of all bytes.
_LONGEST_TEXT = 1000

CELL = Part("cell", "id")

#: What a row has that is copied; its environment gets another number.
_COPIED = ("key", "settings", "status", "reason", "found", "seconds", "wall_seconds", "peak_memory_mib")

_SCHEMA = (
    *COMMON_TABLES,
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


class CellStore(SqliteStore):
    """An open file of cells. Use as a context manager. Every method raises InputError where the file cannot be used."""

    schema_version, unsealed_version = SCHEMA_VERSION, 1
    parts, added_tables = (CELL,), ADDED_TABLES
    tables = (*_SCHEMA, *ADDED_TABLES)
    label = "settings"

    @classmethod
    def create(cls, folder: Path, experiment: str) -> Self:
        """Return the store of an experiment in `folder`: a new one, or the one that holds cells of it already.

        Raises
        ------
        InputError : another run is using the folder, or it holds another experiment's cells, a damaged file, one of another schema, or
            files that a report would overwrite, or it cannot be written.
        """
        path = folder / FILE_NAME
        store = cls._opened_to_write(path, lambda: _holds_cells(path), lambda connection: _lay_out(connection, experiment))
        store._require_of(experiment, is_new_to=True)
        store.seal()
        store._bury()
        return store

    @classmethod
    def open(cls, folder: Path, experiment: str | None) -> Self:
        """Open the store of an experiment in `folder`, or of any, to read it, which changes no byte of it.

        Raises
        ------
        InputError : there is none, or it holds another experiment's cells, a damaged file or one of another schema.
        """
        path = folder / FILE_NAME
        if not exists("folder", path):
            raise InputError(f"{folder} holds no {FILE_NAME}")
        with naming(path):
            require_regular(path)
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
            require_intact(self.path, self._connection)
            self._require_version()
            self.require_whole()
            held = self.meta().get("experiment")
            if held is None and is_new_to and experiment is not None:  # it was damaged, and set aside
                with self._writing() as connection:
                    self._set_meta(connection, {"experiment": experiment})
                held = experiment
            if experiment not in (None, held):
                raise InputError(f"{self.path.parent} already holds the cells of '{held}': choose another folder with --out")
        except BaseException:
            self.close()
            raise

    def plan(self, cells: Sequence[Cell], *, force: bool = False, retry_failed: bool = False) -> list[Cell]:
        """The cells that are still to be run, in their order.

        Parameters
        ----------
        force : run all of them again; the rows there are, are superseded at once, so that such a run is resumed without `force`.
        retry_failed : run again what ended as crashed or error, likewise.
        """
        keys = {cell.key for cell in cells}
        with decoding(self.path):
            self._require(CELL)
            held = [(id_, key, Status(status)) for id_, key, status in self._all("SELECT id, key, status FROM cell WHERE superseded = 0")]
        again = [id_ for id_, key, status in held if key in keys and (force or (retry_failed and status.is_failure))]
        if again:
            with self._writing() as connection:
                connection.executemany("UPDATE cell SET superseded = 1 WHERE id = ?", [(id_,) for id_ in again])
                put(connection, CELL, again)
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
            other._require(CELL)
            query = f"SELECT {', '.join(_COPIED)}, environment_id FROM cell WHERE superseded = 0 ORDER BY id"
            with decoding(other.path):
                found = [row for row in other._all(query) if row[0] in wanted and not Status(row[_COPIED.index("status")]).is_failure]
            there = {each.pop("id"): each for each in other.environments({row[-1] for row in found})}
        here = {key: self.add_environment(each, each.pop("started")) for key, each in there.items()}
        with self._writing() as connection:
            for *values, environment in found:
                row = {**dict(zip(_COPIED, values, strict=True)), "environment_id": here[environment]}
                self._put_row(connection, insert(connection, "cell", row), values[0])
        return len(found)

    def finished(self) -> set[str]:
        """Keys of the cells that have a row that counts."""
        self._require(CELL)
        return {key for (key,) in self._all("SELECT key FROM cell WHERE superseded = 0")}

    def add(self, cell: Cell, outcome: Outcome, environment_id: int) -> None:
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
            self._put_row(connection, insert(connection, "cell", {name: storable(value) for name, value in row.items()}), cell.key)

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
        self._require(CELL)
        query = f"SELECT {column}, settings, found, status, reason, seconds, environment_id FROM cell WHERE superseded = 0 ORDER BY id"
        with decoding(self.path):
            return {
                name: {
                    **json.loads(settings), **unpacked(found),
                    "status": str(Status(status)), "reason": reason, "seconds": seconds, "environment_id": environment,
                }
                for name, settings, found, status, reason, seconds, environment in self._all(query)
            }  # fmt: skip

    def environments(self, ids: set[int]) -> list[dict[str, Any]]:
        """Return the environments of these ids."""
        return self._described(f"id IN ({', '.join(map(str, ids))})")

    def durations(self, cells: Sequence[Cell]) -> list[tuple[str, str, float]]:
        """Labels and seconds of the cells that have a row."""
        self._require(CELL)
        known = dict(self._all("SELECT key, seconds FROM cell WHERE superseded = 0"))
        return [(*cell.labels, known[cell.key]) for cell in cells if cell.key in known]


def _holds_cells(path: Path) -> bool:
    """Tell whether there is a file of cells. What a report would overwrite where there is none is refused."""
    if exists("output folder", path):
        with naming(path):
            require_own_wal(path)
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
    with naming(path):
        require_regular(path)
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


def _lay_out(connection: sqlite3.Connection, experiment: str) -> None:
    facts = {"schema_version": str(SCHEMA_VERSION), "experiment": experiment}
    lay_out_common(connection, (*_SCHEMA, *ADDED_TABLES), facts)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a cell has found {type(value).__name__}, which a row cannot hold")
