"""The rows of an experiment's cells: one SQLite file a folder, one transaction a row, one writer. Rows are never deleted nor changed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench_mtl import InputError, Status
from bench_mtl.results import Outcome
from papers.cells import Cell
from papers.experiment import CellSettings

FILE_NAME = "cells.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cell (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, superseded INTEGER NOT NULL DEFAULT 0,
    environment_id INTEGER NOT NULL REFERENCES environment (id), settings TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
    found TEXT NOT NULL, seconds REAL NOT NULL, wall_seconds REAL, peak_memory_mib REAL);
CREATE UNIQUE INDEX IF NOT EXISTS cell_of_key ON cell (key) WHERE superseded = 0;
CREATE TABLE IF NOT EXISTS row_digest (cell_id INTEGER PRIMARY KEY, digest TEXT NOT NULL);
"""

#: What a cell has computed is compressed where its text is longer: pictures and curves, which are most of all bytes.
_LONGEST_TEXT = 1000

#: How a cell may have ended that has an outcome.
WITH_OUTCOME = (Status.VERIFIED, Status.INACCURATE)

#: What a row holds that its digest is of.
_COLUMNS = ("key", "settings", "status", "reason", "found", "seconds", "wall_seconds", "peak_memory_mib")


class CellStore:
    """An open file of cells, as `bench_mtl.runner.run_cases` writes to one. Use as a context manager.

    Raises InputError for a file that cannot be used: another run has it, it is of another experiment, it is damaged.
    """

    def __init__(self, folder: Path, experiment: str = "", *, writes: bool = False) -> None:
        self.path = folder / FILE_NAME
        if not writes and not self.path.is_file():
            raise InputError(f"{folder} holds no {FILE_NAME}")
        if writes:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{folder} cannot be made: {error.strerror}") from None
        with ExitStack() as on_error:
            try:
                if writes:
                    lock = os.open(folder, os.O_RDONLY)
                    on_error.callback(os.close, lock)
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                uri = f"{self.path.resolve().as_uri()}?mode={'rwc' if writes else 'ro'}"
                self._connection = on_error.enter_context(closing(sqlite3.connect(uri, uri=True)))
                if writes:
                    self._connection.executescript(f"PRAGMA journal_mode = WAL; {_TABLES} DROP TABLE IF EXISTS digest;")
                    self._connection.execute("INSERT OR IGNORE INTO meta VALUES ('experiment', ?)", (experiment,))
                    self._connection.commit()
                self.experiment = str(self._all("SELECT value FROM meta WHERE key = 'experiment'")[0][0])
                if self._all("PRAGMA quick_check") != [("ok",)]:
                    raise InputError(f"{self.path} is damaged")
            except BlockingIOError:
                raise InputError(f"another run is using {folder}") from None
            except (sqlite3.Error, IndexError) as error:
                raise InputError(f"{self.path} cannot be read as a file of cells: {error}") from None
            if experiment not in ("", self.experiment):
                raise InputError(f"{folder} already holds the cells of '{self.experiment}': choose another folder with --out")
            self._writes, self._open = writes, on_error.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writes:
            with suppress(sqlite3.OperationalError):  # somebody reads it: then the log stays beside it
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._open.close()

    def finished(self) -> set[str]:
        """Keys of the cells that have a row that counts."""
        return {key for (key,) in self._all("SELECT key FROM cell WHERE superseded = 0")}

    def plan(self, cells: Sequence[Cell], *, force: bool = False, retry_failed: bool = False) -> list[Cell]:
        """Return the cells that are still to be run; rows of those that are to be run again are superseded at once."""
        keys = {cell.key for cell in cells}
        held = self._all("SELECT id, key, status FROM cell WHERE superseded = 0")
        again = [(id_,) for id_, key, status in held if key in keys and (force or (retry_failed and status not in WITH_OUTCOME))]
        with self._connection:
            self._connection.executemany("UPDATE cell SET superseded = 1 WHERE id = ?", again)
        done = self.finished()
        return [cell for cell in cells if cell.key not in done]

    def take_over(self, cells: Sequence[Cell], folder: Path) -> int:
        """Copy from the store in another folder the rows of those cells that have none here and an outcome there; return how many."""
        wanted = {cell.key for cell in cells} - self.finished()
        with CellStore(folder) as other:
            rows = [(environment, row) for environment, row in other._held() if row[0] in wanted and row[2] in WITH_OUTCOME]
            environments = {each.pop("id"): each for each in other.environments({environment for environment, _ in rows})}
        for environment, row in rows:
            self._put(row, self.add_environment(environments[environment]))
        return len(rows)

    def deaths(self) -> Mapping[str, int]:
        """No cell is held responsible for the end of a command."""
        return {}

    def begin(self, key: str) -> None:
        """Nothing is written before a cell has ended."""

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Return the id of an environment, which is stored where it is new."""
        started = str(description.get("started", datetime.now(UTC).isoformat(timespec="seconds")))
        text = json.dumps({key: value for key, value in description.items() if key != "started"}, sort_keys=True)
        held = self._all("SELECT id FROM environment WHERE description = ?", text)
        if held:
            return int(held[0][0])
        with self._connection:
            cursor = self._connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", (started, text))
        return int(cursor.lastrowid or 0)

    def add(self, cell: Cell, outcome: Outcome, environment_id: int) -> None:
        """Store the row of one cell."""
        record, settings, found = outcome.record, json.dumps(dict(cell.settings)), packed(outcome.found)
        costs = (record.times.solve, outcome.wall_seconds, record.peak_memory_mib)
        self._put([cell.key, settings, str(record.status), record.reason, found, *costs], environment_id)

    def _put(self, row: Sequence[Any], environment_id: int) -> None:
        names, marks = ", ".join(_COLUMNS), ", ".join("?" * len(_COLUMNS))
        try:
            with self._connection:
                cursor = self._connection.execute(f"INSERT INTO cell (environment_id, {names}) VALUES (?, {marks})", (environment_id, *row))
                self._connection.execute("INSERT INTO row_digest VALUES (?, ?)", (cursor.lastrowid, _digest(row)))
        except sqlite3.OperationalError as error:  # a full disk
            raise InputError(f"{self.path} cannot be written: {error}") from None

    def rows(self, grid: Sequence[CellSettings]) -> list[dict[str, Any]]:
        """Return the latest row for each of these settings, in their order, whatever code, limits and data it was made with.

        A row has its settings, what was found, `status`, `reason`, `seconds` and `environment_id`.
        """
        held = {}
        for environment, (_, settings, status, reason, found, seconds, *_) in self._held():
            more = {"status": str(Status(status)), "reason": reason, "seconds": seconds, "environment_id": environment}
            held[settings] = {**json.loads(settings), **unpacked(found), **more}
        return [held[text] for settings in grid if (text := json.dumps(dict(settings))) in held]

    def _held(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the rows that count, each with the id of its environment. Raises InputError: one is not what was written."""
        names = ", ".join(f"cell.{name}" for name in _COLUMNS)
        joined = "row_digest.digest FROM cell LEFT JOIN row_digest ON cell_id = id"
        for environment, *row, digest in self._all(f"SELECT environment_id, {names}, {joined} WHERE superseded = 0 ORDER BY id"):
            if digest != _digest(row):
                raise InputError(f"{self.path} is damaged: the row of {row[1]} is not what was written")
            yield environment, row

    def environments(self, ids: set[int]) -> list[dict[str, Any]]:
        """Return the environments of these ids."""
        rows = self._all(f"SELECT id, started, description FROM environment WHERE id IN ({', '.join(map(str, sorted(ids)))}) ORDER BY id")
        return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def _all(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()


def packed(values: Mapping[str, Any]) -> str | bytes:
    """Return values as a row holds them: JSON, compressed by zlib where it is long."""
    text = json.dumps(dict(values), default=_plain)
    return text if len(text) <= _LONGEST_TEXT else zlib.compress(text.encode(), 9)


def unpacked(content: str | bytes) -> dict[str, Any]:
    """Return the values that `packed` made a row's content of."""
    values: dict[str, Any] = json.loads(zlib.decompress(content) if isinstance(content, bytes) else content)
    return values


def _digest(row: Sequence[Any]) -> str:
    plain = [value.hex() if isinstance(value, bytes) else value for value in row]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a cell has found {type(value).__name__}, which a row cannot hold")
