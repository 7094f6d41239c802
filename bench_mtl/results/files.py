"""A results file as a file: how it is made, opened, checked, locked, and what is said when it cannot be used."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from bench_mtl.core.errors import IncompleteError, InputError, not_written
from bench_mtl.core.files import exists, is_file

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
    except sqlite3.Error as error:
        kind = getattr(error, "sqlite_errorname", "")
        if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            reason = f"another program is using this file ({error}): wait for its end, or choose another folder with --out"
        elif kind.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR")) or str(error).startswith("Could not decode"):
            reason = f"not a readable results file ({' '.join(str(error).split())}): move it away and run again"
        elif kind.startswith(_FULL):
            raise IncompleteError(
                f"{path}: cannot be read or written: {error}; what was stored before is kept, and the same command goes on from there"
            ) from None
        else:
            reason = f"cannot be read or written: {error}"
        raise InputError(f"{path}: {reason}") from None
    except UnicodeDecodeError:  # Python cannot read what SQLite says of a name that is garbage
        raise InputError(f"{path}: not a readable results file: move it away and run again") from None
    except OSError as error:
        raise not_written(f"{path}: cannot be read or written", error) from None


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn the failure to make sense of what a file holds into an InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: not a readable results file ({' '.join(str(error).split())}): move it away and run again") from None


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """`folder` with its parents. What of them was made here goes again where the block fails.

    Raises
    ------
    InputError : it cannot be made.
    """
    made = [each for each in (folder, *folder.parents) if not exists("output folder", each)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(f"output folder {folder} cannot be written", error) from None
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):
                each.rmdir()
        raise


def make_file(path: Path, fill: Callable[[sqlite3.Connection], T]) -> T:
    """A new file at `path`, filled under another name first: it is there whole or not at all, also after a power cut.

    Returns what `fill` does.

    Raises
    ------
    InputError : it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with naming(path):
            part.unlink(missing_ok=True)  # left behind by a process that was killed
            with closing(sqlite3.connect(part)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")  # what fails is deleted as a whole
                connection.execute("PRAGMA synchronous = OFF")  # synced once, below
                with connection:
                    connection.execute("BEGIN")
                    result = fill(connection)
            _sync(part)
            os.replace(part, path)
            _sync(path.parent)
            return result
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def connect_to_write(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode, so that others may read while a run writes."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


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
    # A WAL needs an index beside it, and changes that were cut short must be undone. Where that cannot be done in place, and where
    # it would change a file that is only to be read, it is done to a copy.
    if any(_size(path, ending) for ending in UNFINISHED):
        return _recovered(path)
    return _connected(path, "mode=ro&immutable=1")


def require_regular(path: Path) -> None:
    """Refuse what stands in the place of a results file, or of one that SQLite keeps beside it, and is no plain file.

    Opening a pipe would wait for ever, and what is written through a link would be lost to others.

    Raises
    ------
    InputError : names it.
    """
    for name in (path, *(Path(f"{path}{ending}") for ending in (*UNFINISHED, "-shm"))):
        mode = _lstat_mode(name)
        is_link_to_file = name == path and stat.S_ISLNK(mode) and is_file("results folder", path)
        if mode and not stat.S_ISREG(mode) and not is_link_to_file:
            raise InputError(f"{name} is {_kind(mode)}, where a plain file should be: move it away")


def require_no_link(path: Path) -> None:
    """Refuse to write through a symbolic link: the lock is of the folder that the link is in.

    Raises
    ------
    InputError : `path` is one.
    """
    if path.is_symlink():
        raise InputError(f"{path} is a symbolic link, where a plain file should be: name the folder of the file itself with --out")


def _lstat_mode(path: Path) -> int:
    """Return the mode of what is at a path, of a link itself; 0 where nothing is, or nobody can tell, which opening it will say."""
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _kind(mode: int) -> str:
    kinds = {stat.S_ISLNK: "a symbolic link", stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for is_of, name in kinds.items() if is_of(mode)), "a device")


#: Folders of a report, and the endings of what it writes.
_REPORT_FOLDERS, _REPORT_ENDINGS = (".", "tables", "figures"), ("md", "html", "csv", "tex", "parquet", "svg", "pdf", "png", "sqlite")


def leftover_parts(folder: Path) -> list[Path]:
    """Return the halves of files that commands which were killed have left in a results folder."""
    found = []
    for name in _REPORT_FOLDERS:
        for ending in _REPORT_ENDINGS:
            found += [path for path in sorted((folder / name).glob(f"*.{ending}.part")) if path.is_file() and not path.is_symlink()]
    return found


#: A part that is younger may be another command's, which writes a report.
_OLD_SECONDS = 60.0


def remove_parts(folder: Path) -> None:
    """Delete the halves of files that nobody is writing any more. The caller holds the lock of the folder."""
    for part in leftover_parts(folder):
        with suppress(OSError):
            if part.suffixes[-2:] == [".sqlite", ".part"] or time.time() - part.stat().st_mtime > _OLD_SECONDS:
                part.unlink()


def require_own_wal(path: Path) -> None:
    """Refuse a WAL that some other file left behind: SQLite would take its content for that of this one.

    Raises
    ------
    InputError : the file says that it has no WAL, and there is one.
    """
    # Looking into the file drops the locks that SQLite has on it for this process; a run of this process has looked before.
    if not _size(path, "-wal") or FolderLock.is_held_here(path.parent):
        return
    with path.open("rb") as file:
        modes = file.read(20)[18:]
    if modes == b"\1\1" and _size(path, "-wal"):
        raise InputError(f"{path}: {path.name}-wal beside it belongs to another file: move it away")


def require_intact(path: Path, connection: sqlite3.Connection) -> None:
    """Raise InputError where the file is damaged."""
    with naming(path):
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        # SQLite takes what was cut off the last page for zeros. While there are unfinished changes, that page may be among them.
        if path.stat().st_size % page and not any(_size(path, ending) for ending in UNFINISHED):
            verdict = "the last page was cut off"
    if verdict != "ok":
        raise InputError(f"{path}: not a readable results file ({' '.join(str(verdict).split())}): move it away and run again")


def _connected(path: Path, parameters: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?{parameters}", uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")  # opens the file, which connecting does not
    except BaseException:
        connection.close()
        raise
    return connection


def _recovered(path: Path) -> sqlite3.Connection:
    """A copy in memory of what the file holds once its WAL is followed, or a change that was cut short is undone."""
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / path.name
        shutil.copyfile(path, copy)
        for ending in UNFINISHED:
            if _size(path, ending):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        with closing(sqlite3.connect(copy)) as connection:
            return in_memory(connection)


def in_memory(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A copy of a database that is changed without changing its file."""
    copy = sqlite3.connect(":memory:")
    try:
        connection.backup(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def _size(path: Path, ending: str) -> int:
    """Bytes of the file beside `path`; 0 where there is none."""
    try:
        return os.stat(f"{path}{ending}").st_size
    except OSError:
        return 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """Keeps a second run out of a results folder. The system lets go of it when this process ends, however it ends.

    Raises
    ------
    InputError : another run has it, or the folder cannot be written or locked.
    """

    _held: weakref.WeakSet[FolderLock] = weakref.WeakSet()

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._folder = folder.resolve()
        try:
            self._descriptor = _locked(self._path)
        except BlockingIOError:
            holder = _holder(self._path)
            raise InputError(
                f"another run is using this folder, {folder}{holder}: wait for its end, or choose another folder with --out"
            ) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise InputError(f"{self._path} is a symbolic link, where the lock of the folder should be: remove it") from None
            raise not_written(f"output folder {folder} cannot be written", error) from None
        self._held.add(self)
        with suppress(OSError):  # who it is matters less than that it is locked, which needs no space on the disk
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())

    @classmethod
    def is_held_here(cls, folder: Path) -> bool:
        """Whether this process has the lock of `folder`."""
        resolved = folder.resolve()
        return any(lock._folder == resolved for lock in cls._held)

    @classmethod
    def release_in_child(cls) -> None:
        """A forked child would keep the folder locked for as long as it lives."""
        for lock in list(cls._held):
            lock._close()

    def release(self) -> None:
        if self in self._held:
            with suppress(OSError):
                self._path.unlink()  # before the lock goes, so that it is nobody else's
            self._close()

    def _close(self) -> None:
        self._held.discard(self)
        with suppress(OSError):
            os.close(self._descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FolderLock.release_in_child)


def _locked(path: Path) -> int:
    """Descriptor of the lock file, locked; raises BlockingIOError where somebody else has it, OSError where it cannot be made."""
    import fcntl

    while True:
        # Through a link another file would be overwritten, and a pipe or a device would be waited for.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, f"{path.name} is {_kind(mode)}, where the lock of the folder should be")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder deletes the file as it lets go: a lock on what has no name any more locks nobody out.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _holder(path: Path) -> str:
    try:
        text = " ".join(path.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return ""
    return f" ({text[:200]})" if text else ""
