"""Keeps compiled code on disk in step with the source.

Numba compiles a function again when its own file has changed, but not when the file of a function that it calls has changed, although
that function is part of its machine code. So all compiled code is deleted where any file of kernels has changed.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

_STAMP = "kernels.stamp"

_PACKAGE = Path(__file__).parents[2]


def kernel_files() -> list[Path]:
    """Return the files of kernels of this package: those named `kernels.py` or in a folder named `kernels`."""
    roots = (_PACKAGE, _PACKAGE / "problems", _PACKAGE / "solvers")  # the last two may be links, which a search does not follow
    found = {file for root in roots for pattern in ("**/kernels.py", "**/kernels/*.py") for file in root.glob(pattern)}
    return sorted(found)


def forget_outdated() -> None:
    """Delete compiled code that was made from other source; leave it where it cannot be deleted."""
    files = kernel_files()
    described = [f"{file.relative_to(_PACKAGE)} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files]
    stamp = hashlib.sha256("\n".join(described).encode()).hexdigest()
    own_cache = Path(__file__).parent / "__pycache__"
    with suppress(OSError):  # a read-only installation, whose files change only together
        file = own_cache / _STAMP
        if file.exists() and file.read_text() == stamp:
            return
        for cache in {file.parent / "__pycache__" for file in files}:
            for compiled in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
                compiled.unlink(missing_ok=True)
        own_cache.mkdir(exist_ok=True)
        file.write_text(stamp)
