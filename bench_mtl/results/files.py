"""A results file as a file: how it is made, opened and locked, and what is reported when it cannot be used."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from bench_mtl.core.errors import IncompleteError, InputError, not_written
from bench_mtl.core.files import exists

T = TypeVar("T")

LOCK_NAME = "results.lock"

#: Endings of the files beside a results file that hold changes which are not in it yet, or not yet undone.
UNFINISHED = ("-wal", "-journal")

#: How SQLite says that a disk is full, or fails.
_FULL = ("SQLITE_FULL", *(f"SQLITE_IOERR_{what}" for what in ("WRITE", "FSYNC", "DIR_FSYNC", "TRUNCATE", "SHMSIZE")))

#: How it says that it would have to write beside a file, and cannot.
_CANNOT_WRITE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system say into an InputError that names the file and says what to do."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite names what is garbage
        raise unreadable(path, str(error)) from None
    except sqlite3.Error as error:
        kind, words = getattr(error, "sqlite_errorname", ""), " ".join(str(error).split())
        if kind.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR")) or words.startswith("Could not decode"):
            raise unreadable(path, words) from None
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            advice = "wait for its end, or choose another folder with --out"
            raise InputError(f"{path}: another program is using this file ({words}): {advice}") from None
        reason = f"{path}: cannot be read or written: {words}"
        if kind.startswith(_FULL):
            raise IncompleteError(f"{reason}; what was stored before remains, and the same command goes on from there") from None
        raise InputError(reason) from None
    except OSError as error:
        raise not_written(f"{path}: cannot be read or written", error) from None


def unreadable(path: Path, reason: str) -> InputError:
    """Return the error of a file that is no results file, or is one no more."""
    return InputError(f"{path}: not a readable results file ({reason}): move it away and run again")


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make `folder` with its parents, or raise InputError. What of them was made here goes again where the block fails."""
    missing = [each for each in (folder, *folder.parents) if not exists("output folder", each)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(f"output folder {folder} cannot be written", error) from None
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


def make_file(path: Path, fill: Callable[[sqlite3.Connection], T], make_room: Callable[[], object] = lambda: None) -> T:
    """Make a new file at `path` and return what `fill` does; it is there in full or not at all, also after a power cut.

    What is there gives way to it; `make_room` is called before, when the new file is complete. InputError says that it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with naming(path):
            part.unlink(missing_ok=True)  # left behind by a process that was killed
            with closing(sqlite3.connect(part)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")  # what fails is deleted as a file
                connection.execute("PRAGMA synchronous = OFF")  # synced once, below
                with connection:
                    connection.execute("BEGIN")
                    result = fill(connection)
            _sync(part)
            make_room()
            os.replace(part, path)
            _sync(path.parent)
            return result
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection in WAL mode, so that others may read while a run writes."""
    return _opened(sqlite3.connect(path), "PRAGMA foreign_keys = ON", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")


def close_written(connection: sqlite3.Connection) -> None:
    """Close so that the results are one file, which can be copied, committed and read from any medium."""
    with suppress(sqlite3.Error):  # somebody reads, or the disk is full: the WAL stays, with nothing lost
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that sees all that was committed and changes nothing, on media that cannot be written too."""
    try:
        return _connected(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(_CANNOT_WRITE):
            raise
    if not _has_unfinished(path):
        return _connected(path, "mode=ro&immutable=1")
    # A WAL needs an index beside it, and changes that were cut short must be undone. Where that cannot be done in place, and where
    # it would change a file that is only to be read, it is done to a copy.
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / path.name
        for ending in ("", *UNFINISHED):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        with closing(sqlite3.connect(copy)) as connection:
            in_memory = sqlite3.connect(":memory:")
            connection.backup(in_memory)
            return in_memory


def _connected(path: Path, parameters: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?{parameters}", uri=True)
    return _opened(connection, "SELECT count(*) FROM sqlite_master")  # opens the file, which connecting does not


def _opened(connection: sqlite3.Connection, *statements: str) -> sqlite3.Connection:
    with ExitStack() as on_error:
        on_error.enter_context(closing(connection))
        for statement in statements:
            connection.execute(statement)
        on_error.pop_all()
    return connection


def broken_pages(path: Path, connection: sqlite3.Connection) -> str:
    """Return what SQLite says of pages of the file that it cannot read; nothing where it can read all."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    # SQLite takes what was cut off the last page for zeros. While there are unfinished changes, that page may be among them.
    if path.stat().st_size % page and not _has_unfinished(path):
        return "the last page was cut off"
    return "" if verdict == "ok" else " ".join(str(verdict).split())


def _has_unfinished(path: Path) -> bool:
    return any(each.exists() and each.stat().st_size for each in (Path(f"{path}{ending}") for ending in UNFINISHED))


#: Of the lock files that this process has locked.
_descriptors: set[int] = set()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second run out of a results folder, until the end of this process at the latest; InputError where that is not possible."""
    path = folder / LOCK_NAME
    try:
        while (descriptor := _locked(path)) is None:
            pass
    except BlockingIOError:
        raise InputError(f"another run is using this folder, {folder}: wait for its end, or choose another folder with --out") from None
    except OSError as error:
        raise not_written(f"output folder {folder} cannot be written", error) from None
    _descriptors.add(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # before the lock goes, so that it is nobody else's
        _descriptors.discard(descriptor)
        os.close(descriptor)


def _unlock_in_child() -> None:
    """A forked child would keep the folder locked for as long as it lives."""
    while _descriptors:
        os.close(_descriptors.pop())


os.register_at_fork(after_in_child=_unlock_in_child)


def _locked(path: Path) -> int | None:
    """Return the descriptor of a lock file, locked; None where its holder has just deleted it, so that it locks nobody out."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
