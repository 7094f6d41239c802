"""Files that a command writes once it is through; before anything is solved it looks whether it can."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench_mtl.core.errors import InputError


@contextlib.contextmanager
def replacing(option: str, what: str, path: Path) -> Iterator[IO[bytes]]:
    """PATH.part, open to be written; it takes the name PATH at the end, or goes.

    Raises
    ------
    InputError : names `option` and `what` cannot be written.
    """
    part = _part_of(option, path)
    try:
        with _writing_to(option, what, path):
            with part.open("wb") as file:
                yield file
            os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def require_replaceable(option: str, what: str, path: Path) -> None:
    """Raise InputError, as `replacing` would later, where `path` cannot be written."""
    part = _part_of(option, path)
    with _writing_to(option, what, path):
        part.open("wb").close()
        part.unlink()


def _part_of(option: str, path: Path) -> Path:
    """Return the file that takes the name `path` at the end."""
    from bench_mtl.core.files import exists, is_file

    if exists(option, path) and not is_file(option, path):
        raise InputError(f"{option}: {path} is not a file, so it cannot be replaced by one")
    if not path.name:
        raise InputError(f"{option}: '{path}' names no file")
    return path.with_name(f"{path.name}.part")


@contextlib.contextmanager
def _writing_to(option: str, what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{option}: the {what} cannot be written to {path}: {error}") from None
