"""What all stores of results share: one SQLite file a folder, one writer at a time, one transaction a row, environments once."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from bench_mtl.core.errors import IncompleteError, InputError
from bench_mtl.results import marks
from bench_mtl.results.digests import ENVIRONMENT, META, TABLE, Damage, Part, any_text, damage, put, put_all, stored, total_is_false
from bench_mtl.results.files import (
    FolderLock,
    close_written,
    connect_to_write,
    decoding,
    made_folder,
    make_file,
    naming,
    remove_parts,
    require_no_link,
    require_regular,
)
from bench_mtl.results.values import RULES

#: Seconds after which the next row waits for the disk, so that a power cut costs no more; every row survives the end of the process.
_SYNC_SECONDS = 1.0

#: Tables that every store has.
COMMON_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE environment (id INTEGER PRIMARY KEY, started TEXT NOT NULL, description TEXT NOT NULL)",
)

#: Tables that the stores have got last, so that files without them are read too.
ADDED_TABLES = (
    TABLE,
    marks.TABLE,
)

#: In `meta` of a file whose digests are younger than its rows: since when (UTC, ISO 8601).
SEALED_SINCE = "sealed_since"

#: At most so many damaged rows are named in one message, each with so many characters.
_MOST_NAMED, _LONGEST_NAME = 5, 200


class SqliteStore:
    """An open file of results. Use as a context manager. Every method raises InputError where the file cannot be used."""

    schema_version: ClassVar[int]
    unsealed_version: ClassVar[int]
    """The last one of files without digests, which are read all the same, as are those in between."""
    parts: ClassVar[tuple[Part, ...]]
    """What belongs to a row, the table of rows first."""
    added_tables: ClassVar[tuple[str, ...]]
    """What a file without digests has not got."""
    lacking: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    """What files of earlier versions that have digests have not got, by their version."""
    tables: ClassVar[tuple[str, ...]]
    """The statements that make all tables and indices."""
    label: ClassVar[str]
    """SQL of what people call a row."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FolderLock | None = None) -> None:
        self.path = path
        """The file."""
        self._connection = connection
        self._lock = lock
        self._environments: dict[str, int] = {}
        self._synced = time.monotonic()
        self._version: int | None = None
        """Of the data that `_digests` and `_checked` are of; None after this store has written."""
        self._digests: dict[tuple[str, int], bytes] | None = None
        self._checked: set[Part] = set()
        self._has_begun = False
        """Whether a case may be marked as running."""

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
            require_regular(path)
            require_no_link(path)
            lock = FolderLock(path.parent)
            try:
                remove_parts(path.parent)
                if not is_there and not exists():
                    make_file(path, lay_out)
                with naming(path):
                    return cls(path, connect_to_write(path), lock)
            except BaseException:
                lock.release()
                raise

    def close(self) -> None:
        try:
            if self._has_begun:
                with suppress(InputError, IncompleteError), self._writing(may_be_lost=True) as connection:
                    marks.end(connection, died=False)
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
        self._require(META)
        return dict(self._all("SELECT key, value FROM meta"))

    @property
    def version(self) -> str:
        """The version of its schema, as it says."""
        return str(dict(self._all("SELECT key, value FROM meta")).get("schema_version", "unknown"))

    def _require_version(self) -> None:
        """Raise InputError for a file of another version of the schema."""
        version = self.version
        if version not in map(str, range(self.unsealed_version, self.schema_version + 1)):
            raise InputError(f"{self.path} has schema version {version}, but this bench_mtl reads version {self.schema_version}")
        if (version != str(self.unsealed_version)) is not self.is_sealed:
            has = "has" if self.is_sealed else "has no"
            raise InputError(f"{self.path}: damaged: it says that its schema is of version {version}, but {has} checksums")

    @property
    def is_sealed(self) -> bool:
        """Whether the file has digests, by which damage is noticed."""
        return self.has_table("digest")

    def has_table(self, name: str) -> bool:
        """Whether the file has a table of this name, which those of earlier versions may not have."""
        return bool(self._all(f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{name}'"))

    def require_whole(self) -> None:
        """Raise InputError where anything is not what was written."""
        self._require(META, ENVIRONMENT, *self.parts)

    def damage(self) -> list[Damage]:
        """Return what is not what was written, or could never have been, as far as digests can tell."""
        with naming(self.path), self._reading(), any_text(self._connection):
            indices = [Damage("index", 0)] * (not self._has_whole_indices())
            if not self.is_sealed:
                return [each for part in (META, ENVIRONMENT, *self.parts) for each in self._impossible(part)] + indices
            held = stored(self._connection)
            found = damage(self._connection, (META, ENVIRONMENT, *self.parts), held) + indices
            # Where an entry is damaged its row is named, which is more than that the sum is false.
            return found or [Damage("digest", 0)] * total_is_false(held)

    def _has_whole_indices(self) -> bool:
        """Whether the indices have the rows of their tables: the quick check of `require_intact` does not look at them."""
        checks = (self._connection.execute(f"PRAGMA integrity_check({part.table})") for part in (META, self.parts[0]))
        return all(check.fetchall() == [("ok",)] for check in checks)

    def _require(self, *parts: Part) -> None:
        """Raise InputError where a part is not what was written. What has been checked is so until somebody writes."""
        with naming(self.path), self._reading():
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            if self._version != version:
                self._checked.clear()
                self._digests = stored(self._connection) if self.is_sealed else None
                self._version = version
                if not self._has_whole_indices() or (self._digests is not None and total_is_false(self._digests)):
                    self._version = None
                    self._refuse(self.damage())
            for part in parts:
                if part not in self._checked:
                    self._check(part)
                    self._checked.add(part)

    def _check(self, part: Part) -> None:
        if self._digests is None:
            self._refuse(list(self._impossible(part)))
        else:
            self._refuse(damage(self._connection, [part], self._digests))

    def _impossible(self, part: Part) -> Iterator[Damage]:
        """Yield the rows of a part that no run can have made: all that can be told of a file without digests."""
        if part.table not in RULES or not self.has_table(part.table):
            return
        with (
            any_text(self._connection),
            closing(self._connection.execute(f"SELECT {part.key}, * FROM {part.table} {part.ordered}")) as rows,
        ):
            columns = [column for column, *_ in rows.description[1:]]
            for key, *values in rows:
                wrong = RULES[part.table](dict(zip(columns, values, strict=True)))
                if wrong is not None:
                    yield Damage(part.table, key if isinstance(key, int) else 0, wrong)

    def _refuse(self, found: list[Damage]) -> None:
        """Raise InputError that names what is damaged, if anything is."""
        if not found:
            return
        names = list(dict.fromkeys(f"{self.named(each)}{each.wrong and f', where {each.wrong},'}" for each in found))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise InputError(
            f"{self.path}: damaged: {', '.join(names[:_MOST_NAMED])}{more} {'is' if len(names) == 1 else 'are'} not what was written: "
            f"bench-mtl check {self.path.parent} --drop sets aside what is damaged"
        )

    def named(self, found: Damage) -> str:
        """Return what people call the rows that are damaged."""
        if found.table == META.table:
            return "what the file says of itself"
        if found.table == ENVIRONMENT.table:
            return f"environment {found.id}"
        if found.table == "digest":
            return "the list of checksums"
        if found.table == "index":
            return "an index of its rows"
        try:
            with any_text(self._connection):
                query = f"SELECT {self.label} FROM {self.parts[0].table} NOT INDEXED WHERE id = ?"
                row = self._connection.execute(query, (found.id,)).fetchone()
        except sqlite3.Error:
            row = None
        if row is None:
            return f"row {found.id}, which is gone"
        text = " ".join(str(row[0]).split())
        return f"row {found.id} ({text if len(text) <= _LONGEST_NAME else f'{text[:_LONGEST_NAME]}...'})"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """All that is read inside is of one moment."""
        if self._connection.in_transaction:
            yield
            return
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def begin(self, key: str) -> None:
        """Mark a case as running until it has a row, or the store is closed."""
        with self._writing(may_be_lost=True) as connection:
            marks.begin(connection, key)
        self._has_begun = True

    def deaths(self) -> dict[str, int]:
        """Return how many commands have died while a case ran that has no row yet, by its key; of those in which any has."""
        with naming(self.path):
            return marks.deaths(self._connection) if self.is_sealed else {}

    def _bury(self) -> None:
        """Count the cases that were running when the command before died. This store holds the lock, so nobody runs them now."""
        with naming(self.path):
            has_died = bool(marks.running(self._connection))
        if has_died:
            with self._writing() as connection:
                marks.end(connection, died=True)

    def seal(self) -> None:
        """Give a file without digests such, which date from now, and one of an earlier version the tables of this one."""
        if not self.is_sealed:
            since = now()
            with self._writing() as connection:
                for statement in self.added_tables:
                    connection.execute(statement)
                facts = {"schema_version": str(self.schema_version), SEALED_SINCE: since}
                connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
                put_all(connection, (META, ENVIRONMENT, *self.parts))
        elif (version := self.version) != str(self.schema_version):
            self._require(META)
            with self._writing() as connection:
                for statement in self.lacking.get(int(version), ()):
                    connection.execute(statement)
                self._set_meta(connection, {"schema_version": str(self.schema_version)})

    def _put_row(self, connection: sqlite3.Connection, key: int, case_key: str) -> None:
        """Store the digests of a new row and all that belongs to it; its case runs no more."""
        for part in self.parts:
            put(connection, part, [key])
        marks.forget(connection, case_key)

    def _set_meta(self, connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
        put(connection, META, [0])

    def add_environment(self, description: Mapping[str, Any], started: str | None = None) -> int:
        """Store an environment that runs are made in, from a time on, or from now; return its id, which an equal one has already."""
        text = json.dumps(description, sort_keys=True)
        if not self._environments:
            self._require(ENVIRONMENT)
            rows = self._all("SELECT description, id FROM environment ORDER BY id DESC")
            with decoding(self.path):
                self._environments = {json.dumps(json.loads(held), sort_keys=True): key for held, key in rows}
        if text not in self._environments:
            row = (started or now(), text)
            with self._writing() as connection:
                cursor = connection.execute("INSERT INTO environment (started, description) VALUES (?, ?)", row)
                put(connection, ENVIRONMENT, [int(cursor.lastrowid or 0)])
            self._environments[text] = int(cursor.lastrowid or 0)
        return self._environments[text]

    def _described(self, condition: str) -> list[dict[str, Any]]:
        """Return the environments for which an SQL condition holds, by id."""
        self._require(ENVIRONMENT)
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
    def _writing(self, *, may_be_lost: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold one transaction open: all of it is written or nothing; it waits for no disk where a power cut may take it."""
        with naming(self.path):
            self._version = None
            durable = not may_be_lost and time.monotonic() - self._synced > _SYNC_SECONDS
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
            if durable:
                self._synced = time.monotonic()


def now() -> str:
    """Return the time as the tables have it: UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def lay_out_common(connection: sqlite3.Connection, statements: Iterable[str], facts: Mapping[str, str]) -> None:
    """Make the tables of a new file that says `facts` of itself, in the transaction that is open: `executescript` would end it."""
    for statement in statements:
        connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())
    put_all(connection, (META,))


def insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> int:
    """Insert a row, given by column, and return its id."""
    marks = ", ".join("?" * len(row))
    return int(connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())).lastrowid or 0)
