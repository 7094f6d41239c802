"""Questions to the file system whose failures name the argument that led there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bench_mtl.core.errors import InputError


def is_file(name: str, path: Path) -> bool:
    """Whether `path` is a regular file.

    Raises
    ------
    InputError : nobody can tell: the path is too long, has a NUL character, or leads through a closed folder.
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


def _mode(name: str, path: Path) -> int:
    """The mode of what is at `path`, 0 where nothing is. `Path.is_file` raises or not, depending on the Python version."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{name} {str(path)!r} cannot be used: {reason}") from None
