"""Questions to the file system whose failures name the argument that led there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bench_mtl.core.errors import InputError


def is_file(name: str, path: Path) -> bool:
    """Whether `path` is a regular file.

    Raises InputError: nobody can tell: the path is too long, has a NUL character, or leads through a closed folder.
    """
    return stat.S_ISREG(_mode(name, path))


def is_dir(name: str, path: Path) -> bool:
    """Whether `path` is a folder; raises InputError as `is_file` does."""
    return stat.S_ISDIR(_mode(name, path))


def exists(name: str, path: Path) -> bool:
    """Whether anything is at `path`; raises InputError as `is_file` does."""
    return _mode(name, path) != 0


def require_readable(name: str, folder: Path) -> None:
    """Raise InputError for a folder that may not be listed: `Path.glob` finds nothing there and says nothing."""
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"{name} {folder} cannot be read: permission denied")


@contextlib.contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """Yield an empty folder next to one that is to be made, and remove it at the end; those that killed commands have left go first.

    Whoever works in one has locked it.
    """
    import shutil
    import tempfile

    prefix = f".{folder.name}-bench-mtl-"
    for name in os.listdir(folder.parent):
        if name.startswith(prefix):
            with _locked(folder.parent / name) as is_left:
                if is_left:
                    shutil.rmtree(folder.parent / name, ignore_errors=True)
    while True:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=prefix) as made, _locked(Path(made)):
            if Path(made).is_dir():  # else another command took it for one that was left
                yield Path(made)
                return


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a folder, if nobody has; yield whether it is locked now."""
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it is gone, or no folder
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except OSError:  # somebody has, or the file system knows no locks
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)


def _mode(name: str, path: Path) -> int:
    """The mode of what is at `path`, 0 where nothing is. `Path.is_file` raises or not, depending on the Python version."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{name} {str(path)!r} cannot be used: {reason}") from None
