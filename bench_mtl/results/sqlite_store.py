"""What all stores of results share: one SQLite file a folder, one writer at a time, one transaction a row, environments once."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from bench_mtl.core.errors import InputError
from bench_mtl.results.files import FolderLock, close_written, connect_to_write, decoding, made_folder, make_file, naming

#: Seconds after which the next row waits for the disk, so that a power cut costs no more; every row survives the end of the process.
_SYNC_SECONDS = 1.0

#: Tables that every store has.
COMMON_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL)",
)


class SqliteStore:
    """An open file of results. Use as a context manager. Every method raises InputError where the file cannot be used."""

    schema_version: ClassVar[int]

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FolderLock | None = None) -> None:
        self.path = path
        """The file."""
        self._connection = connection
        self._lock = lock
        self._environments: dict[str, int] = {}
        self._synced = time.monotonic()

    @classmethod
    def _opened_to_write(cls, path: Path, exists: Callable[[], bool], lay_out: Callable[[sqlite3.Connection], None]) -> Self:
        """Return the store of the file at `path`, whose folder is locked until it is closed.

        Parameters
        ----------
        exists : tells whether the file is there already, and raises InputError for a folder that must not be used. It is called
            before anything is made, and where there was nothing again under the lock: another run may have come and gone.
        lay_out : fills a new file
        """
        is_there = exists()
        with made_folder(path.parent):
            lock = FolderLock(path.parent)
            try:
                if not is_there and not exists():
                    make_file(path, lay_out)
                with naming(path):
                    return cls(path, connect_to_write(path), lock)
            except BaseException:
                lock.release()
                raise

    def close(self) -> None:
        try:
            with naming(self.path):
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

    def meta(self) -> dict[str, str]:
        """Return what the file says of itself."""
        return dict(self._all("SELECT key, value FROM meta"))

    def _require_version(self) -> dict[str, str]:
        """Return `meta` of a file that is of this version of the schema."""
        meta = self.meta()
        version = meta.get("schema_version", "unknown")
        if version != str(self.schema_version):
            raise InputError(f"{self.path} has schema version {version}, but this bench_mtl reads version {self.schema_version}")
        return meta

    def add_environment(self, description: Mapping[str, Any]) -> int:
        """Store an environment that runs are made in; return its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        if not self._environments:
            rows = self._all("SELECT description, id FROM environment ORDER BY id DESC")
            with decoding(self.path):
                self._environments = {json.dumps(json.loads(held), sort_keys=True): key for held, key in rows}
        if text not in self._environments:
            row = (datetime.now(UTC).isoformat(timespec="seconds"), text)
            with self._writing() as connection:
                cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
            self._environments[text] = int(cursor.lastrowid or 0)
        return self._environments[text]

    def _described(self, condition: str) -> list[dict[str, Any]]:
        """Return the environments for which an SQL condition holds, by id."""
        rows = self._all(f"SELECT id, started, description FROM environment WHERE {condition} ORDER BY id")
        with decoding(self.path):
            return [{"id": key, "started": started, **json.loads(text)} for key, started, text in rows]

    def query(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield what a query finds, row by row."""
        with naming(self.path), closing(self._connection.execute(query)) as cursor:
            yield from cursor

    def _all(self, query: str) -> list[Any]:
        return list(self.query(query))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Hold one transaction open: all of it is written or nothing."""
        with naming(self.path):
            durable = time.monotonic() - self._synced > _SYNC_SECONDS
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
            if durable:
                self._synced = time.monotonic()


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert a row, given by column, and return its id."""
    marks = ", ".join("?" * len(row))
    return int(connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())).lastrowid or 0)
