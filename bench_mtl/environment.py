"""What a result depends on besides its code: versions, processor, memory, threads."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from typing import Any

_PACKAGES = (
    "numpy", "scipy", "numba", "cvxpy", "ecos", "scs", "clarabel", "highspy", "pandas", "scikit-learn", "matplotlib",
)  # fmt: skip

#: Keys of a description that say which machine it was.
MACHINE = ("processor", "logical_cores", "memory_gib", "system")

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def describe_environment(threads: int) -> dict[str, Any]:
    """The environment as a JSON-able table; names no user, host or path."""
    import psutil

    from bench_mtl import __version__

    return {
        "bench_mtl": __version__,
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in _PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "logical_cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "threads": threads,
    }


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables by which numerical libraries are told to use `threads` threads."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Environment variables that a process started inside inherits, so that its libraries use `threads` threads."""
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(thread_variables(threads))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"
