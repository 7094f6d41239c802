"""A results file as a file: how it is opened, checked, locked, and what is said when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from bench_mtl.errors import InputError

LOCK_NAME = "results.lock"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what SQLite says into an InputError that names the file and says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorname", "")
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            reason = f"another program is using this file ({error}): wait for its end, or choose another folder with --out"
        elif kind.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR")):
            reason = f"not a readable results file ({error}): move it away and run again"
        else:
            reason = f"cannot be read or written: {error}"
        raise InputError(f"{path}: {reason}") from None


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode, so that others may read while a run writes; makes the file if need be."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, on media that cannot be written too."""
    # SQLite keeps an index of the WAL beside the file; where it cannot, the file must be taken as it is.
    immutable = "" if os.access(path.parent, os.W_OK) else "&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro{immutable}", uri=True)


def require_intact(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError where the file is damaged."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        error = sqlite3.DatabaseError(" ".join(str(verdict).split()))
        error.sqlite_errorname = "SQLITE_CORRUPT"
        raise error


class FolderLock:
    """Keeps a second run out of a results folder. The system lets go of it when this process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        import fcntl

        path = folder / LOCK_NAME
        try:
            self._file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError(f"output folder {folder} cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = " ".join(self._file.read().split())
            self._file.close()
            who = f" ({holder})" if holder else ""
            raise InputError(
                f"another run is using this folder, {folder}{who}: wait for its end, or choose another folder with --out"
            ) from None
        with suppress(OSError):  # who it is matters less than that it is locked, which needs no space on the disk
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            self._file.flush()

    def release(self) -> None:
        with suppress(OSError):  # what could not be written above is tried again here
            self._file.close()
