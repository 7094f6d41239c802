"""Looks for damage in a results file, and sets aside what is damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.errors import InputError
from bench_mtl.results.database import FILE_NAME, Store, insert
from bench_mtl.results.digests import META_DIGEST, Damage, any_text, damages, digest, is_whole, meta_digest, seal_meta
from bench_mtl.results.files import UNFINISHED, FolderLock, broken_pages, make_file, naming
from bench_mtl.results.schema import PARTS, SCHEMA, SCHEMA_VERSION, SINGLE


@dataclass(frozen=True)
class Checked:
    """What a look at a results file has come to."""

    rows: int
    """How many it has, superseded ones included, as far as they can be counted."""
    damaged: tuple[str, ...]
    """What is damaged, in words."""


def check(folder: Path) -> Checked:
    """Look at every byte that is read of the results in `folder`; change nothing. Raises InputError where there are none."""
    with Store._opened(folder, is_checked=False) as store:
        pages, damaged = _damages(store)
        names = [store.named(each) for each in damaged]
        return Checked(len(_run_ids(store._connection)), tuple(dict.fromkeys([*filter(None, [pages]), *names])))


def drop(folder: Path) -> tuple[Path, int] | None:
    """Put what is as it was written into a new results file, and keep the old one beside it, if anything is damaged.

    Returns the path of the old file and the number of rows that are only there; None where nothing is damaged. Raises InputError where a
    run is using the folder, the file cannot be read at all, or nothing can be written.
    """
    path = folder / FILE_NAME
    with FolderLock(folder), suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # what waits in the WAL belongs to the file
    with FolderLock(folder), Store._opened(folder, is_checked=False) as store:
        if not any(_damages(store)):
            return None
        aside = next(name for number in range(1, 10**6) if not (name := path.with_name(f"{path.stem}-damaged-{number}.sqlite")).exists())
        with naming(path):
            try:
                os.link(path, aside)
            except OSError:  # the file system has no links
                shutil.copyfile(path, aside)
            for ending in (*UNFINISHED, "-shm"):
                with suppress(FileNotFoundError):
                    os.replace(f"{path}{ending}", f"{aside}{ending}")
        return aside, len(_run_ids(store._connection)) - make_file(path, lambda connection: _copy(store._connection, connection))


def _damages(store: Store) -> tuple[str, list[Damage]]:
    """Return what is said of pages that cannot be read, and what is damaged: where not all can be read, whatever is not whole by itself."""
    connection = store._connection
    pages = ""
    try:
        with naming(store.path):
            pages = broken_pages(store.path, connection)
            return pages, list(damages(connection, proofs=True))
    except InputError as error:
        damaged = [("run", number) for number in _run_ids(connection) if not is_whole(connection, number)]
        return pages or str(error).removeprefix(f"{store.path}: "), damaged


def _run_ids(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of all runs that there are, or were: those that anything belongs to too, from both ends as far as they can be read."""
    numbers: set[int] = set()
    for key, table in (("id", "run"), ("run_id", "sample"), ("run_id", "listing")):
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.Error):
                for (number,) in connection.execute(f"SELECT DISTINCT {key} FROM {table} ORDER BY {key} {order}"):
                    numbers.add(number)
    return sorted(number for number in numbers if isinstance(number, int))


def _copy(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """Copy what is as its digest says, the runs with all that belongs to them; return their number."""
    for statement in SCHEMA:
        new.execute(statement)
    facts = _rows(old, "meta")
    insert(new, "meta", facts)
    if (META_DIGEST, meta_digest(new)) not in facts:
        new.execute("DELETE FROM meta")
    new.execute("INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
    seal_meta(new)
    insert(new, "environment", _rows(old, "environment"))
    environments = {number for (number,) in new.execute("SELECT id FROM environment")}
    numbers = [number for number in _run_ids(old) if is_whole(old, number)]
    for number in numbers:
        if old.execute("SELECT environment_id FROM run WHERE id = ?", (number,)).fetchone()[0] in environments:
            insert(new, "run", _rows(old, "run", f"WHERE id = {number}"))
            for table in (*PARTS, "proof", "listing"):
                insert(new, table, _rows(old, table, f"WHERE run_id = {number}"))
    return int(new.execute("SELECT count(*) FROM run").fetchone()[0])


def _rows(connection: sqlite3.Connection, table: str, where: str = "") -> list[tuple[object, ...]]:
    """Return the rows of a table that can be read, and are as their own digest says where they have one."""
    with suppress(sqlite3.Error), any_text(connection):
        rows = connection.execute(f"SELECT * FROM {table} {where}").fetchall()
        return [row for row in rows if table not in SINGLE or row[-1] == digest(table, *row[:-1])]
    return []
