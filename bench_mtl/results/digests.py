"""Digests of what is stored, which `docs/results.md` describes, so that nothing that was damaged since is read as another result.

A run has one of its row and all its parts, every environment, proof and place in the listing its own, and all facts of `meta` have one.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import Any

from bench_mtl.results.schema import PARTS, SINGLE

_BYTES = 16

#: In table `meta`, the digest of all its other rows.
META_DIGEST = "digest"

#: What is damaged: a table, and the number that its rows are named by (0 of `meta`).
Damage = tuple[str, Any]


def digest(table: str, *values: Any) -> bytes:
    """Return the digest of one row of a table: BLAKE2b over the JSON text of the table's name and of the row's values."""
    return hashlib.blake2b(_text(table, values), digest_size=_BYTES).digest()


def run_digests(connection: sqlite3.Connection, run_id: int | None = None) -> dict[int, bytes]:
    """Return the digest of every run, or of one, by its id: BLAKE2b over the JSON texts of its row and of the rows of each part."""
    hashes: dict[int, Any] = {}
    for table, key, order in [("run", "id", "id"), *((part, "run_id", f"run_id, {order}") for part, order in PARTS.items())]:
        where = "" if run_id is None else f"WHERE {key} = {int(run_id)}"
        rows = connection.execute(f"SELECT {key}, * FROM {table} {where} ORDER BY {order}")
        width = len(rows.description) - (table == "run")  # without the digest itself
        for number, group in groupby(rows, itemgetter(0)):
            text = _text(table, *(row[1:width] for row in group))
            hashes.setdefault(number, hashlib.blake2b(digest_size=_BYTES)).update(text)
    return {number: each.digest() for number, each in hashes.items()}


def meta_digest(connection: sqlite3.Connection) -> str:
    """Return the digest of all facts in table `meta`, in the order of their keys."""
    facts = connection.execute("SELECT key, value FROM meta WHERE key <> ? ORDER BY key", (META_DIGEST,)).fetchall()
    return digest("meta", *facts).hex()


def seal(connection: sqlite3.Connection) -> None:
    """Store the digests of everything as it is now, in the transaction that is open."""
    connection.create_function("digest_of", -1, digest)
    for table in SINGLE:
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")][:-1]
        connection.execute(f"UPDATE {table} SET digest = digest_of('{table}', {', '.join(columns)})")
    connection.executemany("UPDATE run SET digest = ? WHERE id = ?", [(value, key) for key, value in run_digests(connection).items()])
    seal_meta(connection)


def seal_meta(connection: sqlite3.Connection) -> None:
    """Store the digest of the facts in table `meta` as they are now, in the transaction that is open."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (META_DIGEST, meta_digest(connection)))


def damages(connection: sqlite3.Connection, *, proofs: bool = False) -> Iterator[Damage]:
    """Yield what is not as its digest says (of table `proof`, most of a file, if `proofs`), and what refers to rows that are gone."""
    with any_text(connection):
        if connection.execute("SELECT value FROM meta WHERE key = ?", (META_DIGEST,)).fetchone() != (meta_digest(connection),):
            yield "meta", 0
        for table, key in SINGLE.items():
            if table != "proof" or proofs:
                for number, *row, stored in connection.execute(f"SELECT {key}, * FROM {table}"):
                    if stored != digest(table, *row):
                        yield table, number
        stored_digests = dict(connection.execute("SELECT id, digest FROM run"))
        computed = run_digests(connection)
        for number in stored_digests | computed:
            if stored_digests.get(number) != computed.get(number):
                yield "run", number
        homeless = "SELECT id FROM run WHERE environment_id NOT IN (SELECT id FROM environment)"
        for (number,) in connection.execute(f"{homeless} UNION SELECT run_id FROM listing WHERE run_id NOT IN (SELECT id FROM run)"):
            yield "run", number


def is_whole(connection: sqlite3.Connection, run_id: int) -> bool:
    """Return whether a run can be read, and is as its digest says."""
    with suppress(sqlite3.Error, ValueError, TypeError, OverflowError):
        stored = connection.execute("SELECT digest FROM run WHERE id = ?", (run_id,)).fetchone()
        return stored is not None and stored[0] == run_digests(connection, run_id)[run_id]
    return False


def _text(table: str, *rows: Any) -> bytes:
    text = json.dumps([table, *rows], separators=(",", ":"), default=lambda blob: hashlib.blake2b(blob, digest_size=_BYTES).hexdigest())
    return text.encode("ascii")


@contextmanager
def any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text that is no UTF-8 is read all the same inside, to be compared and shown."""
    before: Callable[[bytes], Any] = connection.text_factory
    connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
    try:
        yield
    finally:
        connection.text_factory = before
