"""Searches for damage in a results file, and sets aside what is damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.results.database import FILE_NAME, Store, insert, lay_out
from bench_mtl.results.digests import META_DIGEST, Damage, any_text, damages, digest, is_whole
from bench_mtl.results.files import UNFINISHED, broken_pages, locked, make_file, naming
from bench_mtl.results.schema import PARTS, SINGLE


@dataclass(frozen=True)
class Checked:
    """How many rows a results file has, superseded ones included, as far as they can be counted, and what is damaged, in words."""

    rows: int
    damaged: tuple[str, ...]


def check(folder: Path) -> Checked:
    """Look at every byte that is read of the results in `folder`; change nothing. Raises InputError where there are none."""
    with Store._opened(folder, is_checked=False) as store:
        pages, damaged = _damages(store)
        names = [store.named(each) for each in damaged]
        return Checked(len(_run_ids(store._connection)), tuple(dict.fromkeys([*filter(None, [pages]), *names])))


def drop(folder: Path) -> tuple[Path, int, int] | None:
    """Put what is as it was written into a new results file, if anything is damaged, and keep the old one beside it.

    Return the path of the old file, and how many rows, and how many places in the listing of other rows, are only there; None where
    nothing is damaged. All stays as it was where it raises InputError: a run is using the folder, the file cannot be read at all, or
    nothing can be written.
    """
    path = folder / FILE_NAME
    with locked(folder), Store._opened(folder, is_checked=False) as store:
        pages, damaged = _damages(store)
        if not pages and not damaged:
            return None
        aside = next(name for number in range(1, 10**6) if not (name := path.with_name(f"{path.stem}-damaged-{number}.sqlite")).exists())
        copied = make_file(path, lambda connection: _copy(store._connection, connection), partial(_set_aside, path, aside))
        lost = set(_run_ids(store._connection)) - copied
        return aside, len(lost), len({number for table, number in damaged if table == "listing"} - lost)


def _set_aside(path: Path, aside: Path) -> None:
    """Give a results file another name too, and with it what is not in the file yet."""
    try:
        try:
            os.link(path, aside)
        except OSError:  # the file system has no links
            shutil.copyfile(path, aside)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    for ending in (*UNFINISHED, "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{ending}", f"{aside}{ending}")


def _damages(store: Store) -> tuple[str, list[Damage]]:
    """Return what is said of pages that cannot be read, and what is damaged: where not all can be read, whatever is not whole by itself."""
    connection, pages = store._connection, ""
    try:
        with naming(store.path):
            pages = broken_pages(store.path, connection)
            return pages, list(damages(connection, proofs=True))
    except InputError as error:
        damaged = [("run", number) for number in _run_ids(connection) if not is_whole(connection, number)]
        return pages or str(error).removeprefix(f"{store.path}: "), damaged


def _run_ids(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of all runs that there are, or were: those that anything belongs to too, from both ends as far as they can be read."""
    numbers: set[Any] = set()
    for key, table in (("id", "run"), ("run_id", "sample"), ("run_id", "listing")):
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.Error):
                numbers.update(chain.from_iterable(connection.execute(f"SELECT DISTINCT {key} FROM {table} ORDER BY {key} {order}")))
    return sorted(number for number in numbers if isinstance(number, int))


def _copy(old: sqlite3.Connection, new: sqlite3.Connection) -> set[int]:
    """Copy what is as its digest says, the runs with all that belongs to them; return their ids."""
    facts = dict(_rows(old, "meta"))
    lay_out(new, facts if facts.pop(META_DIGEST, "") == digest("meta", *sorted(facts.items())).hex() else {})
    environments = _rows(old, "environment")
    insert(new, "environment", environments)
    copied = set()
    for number in filter(partial(is_whole, old), _run_ids(old)):
        (run,) = _rows(old, "run", f"WHERE id = {number}")
        if run[2] in {key for key, *_ in environments}:
            copied.add(number)
            insert(new, "run", [run])
            for table in (*PARTS, "proof", "listing"):
                insert(new, table, _rows(old, table, f"WHERE run_id = {number}"))
    return copied


def _rows(connection: sqlite3.Connection, table: str, where: str = "") -> list[tuple[Any, ...]]:
    """Return the rows of a table that can be read, and are as their own digest says where they have one."""
    with suppress(sqlite3.Error), any_text(connection):
        rows = connection.execute(f"SELECT * FROM {table} {where}").fetchall()
        return [row for row in rows if table not in SINGLE or row[-1] == digest(table, *row[:-1])]
    return []
