"""Keeps compiled code on disk in step with the source.

Numba compiles a function again when its own file has another time or size, but not when the file of a function that it calls has changed,
although that function is part of its machine code. So all compiled code is deleted where any file of kernels has other content than it was
made from. A file that only has another time costs no more than what Numba compiles again of that file, to the same code.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_STAMP = "kernels.stamp"

_PACKAGE = Path(__file__).parents[2]


def kernel_files() -> list[Path]:
    """Return the files of kernels of this package: those named `kernels.py` or in a folder named `kernels`."""
    roots = (_PACKAGE, _PACKAGE / "problems", _PACKAGE / "solvers")  # the last two may be links, which a search does not follow
    found = {file for root in roots for pattern in ("**/kernels.py", "**/kernels/*.py") for file in root.glob(pattern)}
    return sorted(found)


def folder_of_compiled(file: Path) -> Path:
    """Return where Numba keeps what it compiles of a file."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if not chosen:
        return file.parent / "__pycache__"
    home = str(file.parent.absolute())
    return Path(chosen) / f"{file.parent.name}_{hashlib.sha1(home.encode(), usedforsecurity=False).hexdigest()}"


def has_compiled_code() -> bool:
    """Return whether anything of this package has been compiled on this machine already."""
    return any(True for folder in {folder_of_compiled(file) for file in kernel_files()} for _ in folder.glob("*.nbi"))


def forget_outdated() -> None:
    """Delete compiled code that was made from other source; leave it where it cannot be deleted."""
    files = kernel_files()
    with suppress(OSError):  # a read-only installation, whose files change only together
        described = [f"{file.relative_to(_PACKAGE)} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
        stamp = hashlib.sha256("\n".join(described).encode()).hexdigest()
        note = folder_of_compiled(Path(__file__)) / _STAMP
        if note.exists() and note.read_text() == stamp:
            return
        for cache in {folder_of_compiled(file) for file in files}:
            for compiled in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
                compiled.unlink(missing_ok=True)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(stamp)
