"""Marks of the cases that are running, by which the next command sees which were when one died."""

from __future__ import annotations

import hashlib
import json
import sqlite3

TABLE = """CREATE TABLE started (
    case_key TEXT PRIMARY KEY,
    deaths INTEGER NOT NULL,
    is_running INTEGER NOT NULL,
    digest BLOB NOT NULL
) WITHOUT ROWID"""


def begin(connection: sqlite3.Connection, key: str) -> None:
    """Mark a case as running, in the transaction that is open."""
    _put(connection, key, _held(connection).get(key, (0, False))[0], is_running=True)


def forget(connection: sqlite3.Connection, key: str) -> None:
    """Remove the mark of a case that has a row now, in the transaction that is open."""
    connection.execute("DELETE FROM started WHERE case_key = ?", (key,))


def end(connection: sqlite3.Connection, *, died: bool) -> None:
    """Say that no case is running any more, in the transaction that is open.

    Parameters
    ----------
    died : whether the command that ran them has died, rather than ended them
    """
    for key, (deaths, is_running) in _held(connection).items():
        if is_running:
            _put(connection, key, deaths + died, is_running=False)


def running(connection: sqlite3.Connection) -> list[str]:
    """Return the keys of the cases that are marked as running."""
    return [key for key, (_, is_running) in _held(connection).items() if is_running]


def deaths(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many commands have died while a case ran, by its key; of those in which any has."""
    return {key: count for key, (count, _) in _held(connection).items() if count > 0}


def _held(connection: sqlite3.Connection) -> dict[str, tuple[int, bool]]:
    """Return all marks; one that is damaged is none, so that its case is only run once more."""
    rows = connection.execute("SELECT case_key, deaths, is_running, digest FROM started")
    return {key: (count, bool(is_running)) for key, count, is_running, digest in rows if digest == _digest(key, count, is_running)}


def _put(connection: sqlite3.Connection, key: str, count: int, *, is_running: bool) -> None:
    row = key, count, int(is_running)
    connection.execute("INSERT OR REPLACE INTO started VALUES (?, ?, ?, ?)", (*row, _digest(*row)))


def _digest(*row: object) -> bytes:
    return hashlib.blake2b(json.dumps(row, default=str).encode(), digest_size=16).digest()
