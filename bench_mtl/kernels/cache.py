"""Keeps compiled code on disk in step with the source.

Numba compiles a function anew when the file it stands in has changed, but not when that of a function it calls has, which is part
of its machine code. So where any file of this package has changed, all of its compiled code goes.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

_STAMP = "kernels.stamp"


def forget_outdated() -> None:
    """Delete compiled code beside the source that was made from other source; leave it where it cannot be deleted."""
    folder = Path(__file__).parent
    cache = folder / "__pycache__"
    described = [f"{file.name} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in sorted(folder.glob("*.py"))]
    stamp = hashlib.sha256("\n".join(described).encode()).hexdigest()
    with suppress(OSError):  # a read-only installation, whose files change only together
        file = cache / _STAMP
        if file.exists() and file.read_text() == stamp:
            return
        for pattern in ("*.nbi", "*.nbc"):
            for compiled in cache.glob(pattern):
                compiled.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        file.write_text(stamp)
