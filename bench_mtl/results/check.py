"""Looks for damage in a results file, sets aside what is damaged, and seals files that have no checksums."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.errors import InputError, plural
from bench_mtl.results import marks
from bench_mtl.results.digests import ENVIRONMENT, META, UNREADABLE, Damage, Part, any_text, keys_of, put_all
from bench_mtl.results.files import (
    UNFINISHED,
    FolderLock,
    connect_to_read,
    connect_to_write,
    leftover_parts,
    make_file,
    naming,
    require_intact,
    require_own_wal,
    require_regular,
)
from bench_mtl.results.sqlite_store import SEALED_SINCE, SqliteStore, now


@dataclass(frozen=True)
class Checked:
    """What a look at a results file has found."""

    rows: int
    """How many it has, superseded ones included, as far as they can be counted."""
    is_sealed: bool
    """Whether it has checksums."""
    sealed_since: str | None
    """Since when, where they are younger than the rows."""
    damaged: tuple[str, ...]
    """What is damaged, in words."""
    leftovers: tuple[str, ...]
    """What commands that were killed have left behind, in words."""


def check(kind: type[SqliteStore], path: Path) -> Checked:
    """Look at every byte that is read of the results file at `path`; change nothing.

    Raises
    ------
    InputError : it is no results file at all, or one of another version, or of another kind.
    """
    with _opened(kind, path) as store:
        unreadable = _unreadable(store)
        damaged = [*unreadable, *_named(store)]
        if not damaged:
            damaged += _refusal(store.require_whole)
        meta: Mapping[str, str] = {}
        with suppress(InputError):
            meta = dict(store.query("SELECT key, value FROM meta"))
        return Checked(
            rows=_count(store),
            is_sealed=store.is_sealed,
            sealed_since=meta.get(SEALED_SINCE),
            damaged=tuple(dict.fromkeys(damaged)),
            leftovers=(*(f"{part}: half of a file" for part in leftover_parts(path.parent)), *_marks(store)),
        )


def drop(kind: type[SqliteStore], path: Path) -> tuple[Path, int] | None:
    """Put what is whole into a new file at `path`, and keep the old one beside it, if anything is damaged.

    Returns
    -------
    tuple
        The path of the old file and the number of rows that are only there; None where nothing is damaged.

    Raises
    ------
    InputError : a run is using the folder, the file cannot be read at all, or nothing can be written.
    """
    lock = FolderLock(path.parent)
    try:
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # what waits in the WAL belongs to the file
        with _opened(kind, path) as store:
            unreadable, damaged = _unreadable(store), _damage(store)
            if not unreadable and not damaged:
                return None
            aside = _free_name(path)
            with naming(path):
                _link(path, aside)
                for ending in (*UNFINISHED, "-shm"):
                    with suppress(FileNotFoundError):
                        os.replace(f"{path}{ending}", f"{aside}{ending}")
            kept = make_file(path, lambda connection: _copy_whole(store, connection, damaged))
            return aside, max(_count(store), len(_ids(store))) - kept
    finally:
        lock.release()


def seal(kind: type[SqliteStore], path: Path) -> bool:
    """Give the file its checksums, which date from now; return whether it had none.

    Raises
    ------
    InputError : a run is using the folder, or the file is damaged or cannot be written.
    """
    with _opened(kind, path) as store:
        require_intact(path, store._connection)
        if store.version == str(kind.schema_version):
            return False
        store.require_whole()
    lock = FolderLock(path.parent)
    try:
        with naming(path):
            writing = kind(path, connect_to_write(path), lock)
    except BaseException:
        lock.release()
        raise
    with writing:
        writing.seal()
    return True


def _refusal(action: Callable[[], object]) -> list[str]:
    """Do something, and return what is said if it is refused."""
    try:
        action()
    except InputError as error:
        return [str(error)]
    return []


def _opened(kind: type[SqliteStore], path: Path) -> SqliteStore:
    """Return the store of a file that may be damaged, as long as it says what it is."""
    with naming(path):
        require_regular(path)
        require_own_wal(path)
        store = kind(path, connect_to_read(path))
    try:
        with any_text(store._connection):
            said = _refusal(store._require_version)
        if said and " has schema version " in said[0]:  # that `meta` cannot be read is damage
            raise InputError(said[0])
    except BaseException:
        store.close()
        raise
    return store


def _unreadable(store: SqliteStore) -> list[str]:
    """Return what SQLite says of pages that it cannot read."""
    said = _refusal(lambda: require_intact(store.path, store._connection))
    return [text.removeprefix(f"{store.path}: ").removesuffix(": move it away and run again") for text in said]


def _damage(store: SqliteStore) -> list[Damage]:
    with suppress(InputError):
        return store.damage()
    return [Damage("index", 0)]  # what cannot be read is found when it is copied


def _named(store: SqliteStore) -> list[str]:
    tables = {part.table: part.table for part in store.parts}
    tables = {**tables, store.parts[0].table: "the row itself"}
    names: dict[str, list[str]] = {}
    for found in _damage(store):
        names.setdefault(store.named(found), []).append(found.wrong or tables.get(found.table, ""))
    return [f"{name}: {', '.join(of)}" if any(of) else name for name, of in names.items()]


def _marks(store: SqliteStore) -> Iterator[str]:
    with suppress(InputError), naming(store.path):
        if store.is_sealed:
            for key in marks.running(store._connection):
                yield f"the mark of a case that was running when its command died, or runs now ({key})"
            for key, count in marks.deaths(store._connection).items():
                yield f"the mark of a case during which {plural(count, 'command')} died ({key})"


def _count(store: SqliteStore) -> int:
    with suppress(InputError):
        return int(next(store.query(f"SELECT count(*) FROM {store.parts[0].table} NOT INDEXED"))[0])
    return 0


def _ids(store: SqliteStore) -> list[int]:
    """Return the ids of all rows that there are, or were: those of the digests too, from both ends as far as they can be read."""
    table = store.parts[0].table
    found = keys_of(store._connection, store.parts[0])
    for order in ("ASC", "DESC"):
        with suppress(*UNREADABLE):
            for (key,) in store._connection.execute(f"SELECT id FROM digest WHERE part = ? ORDER BY id {order}", (table,)):
                if isinstance(key, int):
                    found.add(key)
    return sorted(found)


def _copy_whole(store: SqliteStore, new: sqlite3.Connection, damaged: list[Damage]) -> int:
    """Copy what is not damaged and can be read; return the number of rows."""
    for statement in store.tables:
        new.execute(statement)
    bad = {(each.table, each.id) for each in damaged}
    facts = [] if (META.table, 0) in bad else _rows(store, META, 0)
    new.executemany("INSERT INTO meta VALUES (?, ?)", facts or [("schema_version", str(store.schema_version))])
    new.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", ("schema_version", str(store.schema_version)))
    if not store.is_sealed:
        new.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (SEALED_SINCE, now()))
    environments = set()
    for key in keys_of(store._connection, ENVIRONMENT):
        rows = _rows(store, ENVIRONMENT, key)
        if rows and (ENVIRONMENT.table, key) not in bad:
            new.executemany("INSERT INTO environment VALUES (?, ?, ?)", rows)
            environments.add(key)
    kept = 0
    for key in _ids(store):
        if not any((part.table, key) in bad for part in store.parts):
            kept += _copy_row(store, new, key, environments)
    put_all(new, (META, ENVIRONMENT, *store.parts))
    return kept


def _copy_row(store: SqliteStore, new: sqlite3.Connection, key: int, environments: set[int]) -> bool:
    """Copy a row and all that belongs to it, or nothing."""
    try:
        found = [(part, _rows(store, part, key)) for part in store.parts if _has_table(store, part)]
    except UNREADABLE:
        return False
    if not found[0][1]:
        return False
    columns = [name for _, name, *_ in store.query(f"PRAGMA table_info({store.parts[0].table})")]
    if found[0][1][0][columns.index("environment_id")] not in environments:
        return False
    for part, rows in found:
        for row in rows:
            new.execute(f"INSERT INTO {part.table} VALUES ({', '.join('?' * len(row))})", row)
    return True


def _has_table(store: SqliteStore, part: Part) -> bool:
    return bool(list(store.query(f"PRAGMA table_info({part.table})")))


def _rows(store: SqliteStore, part: Part, key: int) -> list[tuple[object, ...]]:
    query = f"SELECT * FROM {part.table} NOT INDEXED WHERE {part.key} = ? {part.ordered}"
    return store._connection.execute(query, (key,)).fetchall()


def _free_name(path: Path) -> Path:
    number = 1
    while (name := path.with_name(f"{path.stem}-damaged-{number}{path.suffix}")).exists():
        number += 1
    return name


def _link(path: Path, other: Path) -> None:
    """Give a file another name too; where the file system has no links, copy it."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copyfile(path, other)
