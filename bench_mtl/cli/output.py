"""Files that a command writes once it is through; before anything is solved it checks that it can."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench_mtl.core.errors import InputError


@contextlib.contextmanager
def replacing(option: str, what: str, path: Path, *, is_trial: bool = False) -> Iterator[IO[bytes]]:
    """PATH.part, open to be written; it takes the name PATH at the end, unless that `is_trial`, or goes.

    Raises
    ------
    InputError : names `option` and `what` cannot be written.
    """
    from bench_mtl.core.files import exists, is_file

    if exists(option, path) and not is_file(option, path):
        raise InputError(f"{option}: {path} is not a file, so it cannot be replaced by one")
    if not path.name:
        raise InputError(f"{option}: '{path}' names no file")
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not is_trial:
            os.replace(part, path)
    except (OSError, ValueError) as error:
        raise InputError(f"{option}: the {what} cannot be written to {path}: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def require_replaceable(option: str, what: str, path: Path) -> None:
    """Raise InputError, as `replacing` would later, where `path` cannot be written."""
    with replacing(option, what, path, is_trial=True):
        pass
