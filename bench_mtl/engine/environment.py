"""What a result depends on besides its code: versions, processor, memory, threads."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "numpy", "scipy", "numba", "cvxpy", "ecos", "scs", "clarabel", "highspy", "pandas", "scikit-learn", "matplotlib",
)  # fmt: skip

#: Optional ones, which are named where they are installed.
_MORE_PACKAGES = (
    "ortools", "highspy-extras", "osqp", "piqp", "proxsuite", "qoco", "moreau", "cvxopt", "sdpa-python", "mosek", "gurobipy", "coptpy",
    "xpress", "celer", "skglm", "cyanure", "spams-bin", "jax", "jaxlib",
    "mpax", "cupdlpx", "cuopt-cu12", "cuopt-cu13", "moreau-cuda12", "moreau-cuda13", "qoco-cuda",
)  # fmt: skip

#: A commit's name in Git's own files.
_COMMIT = re.compile(r"[0-9a-f]{40}")

#: Keys of a description that say which machine it was.
MACHINE = ("processor", "logical_cores", "memory_gib", "system")

#: Memory of one machine as its system reports it changes by less than this share, from one kernel to the next.
_SAME_MEMORY = 0.02

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def describe_environment(threads: int) -> dict[str, Any]:
    """The environment as a JSON-able table; names no user, host or path."""
    import psutil

    from bench_mtl.core.version import __version__

    return {
        "bench_mtl": __version__,
        "python": sys.version.split()[0],
        "commit": current_commit(),
        "packages": dict(_versions()),
        "blas": _blas(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _cpuinfo("model name") or platform.processor() or "unknown",
        "processor_details": _processor_details(),
        "logical_cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "threads": threads,
    }


def machines(environments: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[int]]:
    """The distinct machines that `environments` describe, as they appear, and of every environment the place of its own."""
    found: list[dict[str, Any]] = []
    places = []
    for environment in environments:
        machine = {name: environment.get(name) for name in MACHINE}
        place = next((place for place, other in enumerate(found) if _is_same(machine, other)), len(found))
        if place == len(found):
            found.append(machine)
        places.append(place)
    return found, places


def same_memory(old: Any, new: Any) -> bool:
    """Whether two reports of a memory may be of the same one."""
    return isinstance(old, (int, float)) and isinstance(new, (int, float)) and math.isclose(old, new, rel_tol=_SAME_MEMORY)


def _is_same(machine: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(other[name] == value or (name == "memory_gib" and same_memory(value, other[name])) for name, value in machine.items())


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that make numerical libraries use `threads` threads."""
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


@cache
def _versions() -> Mapping[str, str | None]:
    """Return the versions of packages, which are looked for once: what is imported stays what it was."""
    found = {name: _version(name) for name in _PACKAGES}
    return found | {name: version for name in _MORE_PACKAGES if (version := _version(name)) is not None}


def current_commit(root: Path = Path(__file__).parents[2]) -> str | None:
    """Return the commit that is checked out in `root`, the clone that this is; None where Git's files do not say."""
    try:
        head = (root / ".git" / "HEAD").read_text(encoding="ascii").strip()
        if head.startswith("ref: "):
            name = head.removeprefix("ref: ")
            if (loose := root / ".git" / name).is_file():
                head = loose.read_text(encoding="ascii").strip()
            else:
                packed = (root / ".git" / "packed-refs").read_text(encoding="ascii").splitlines()
                head = next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except (OSError, ValueError):
        return None
    return head[:12] if _COMMIT.fullmatch(head) else None


def _blas() -> str | None:
    """Return the libraries of linear algebra that are loaded, such as ``openblas 0.3.31 (Haswell)``."""
    import numpy  # which loads its own
    from threadpoolctl import threadpool_info

    assert numpy
    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = [f"{library['internal_api']} {library['version']} ({library.get('architecture', 'any')})" for library in loaded]
    return ", ".join(sorted(set(names))) or None  # whichever was loaded first


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor_details() -> str | None:
    """Return what the name of a processor may leave out, such as ``family 25, model 17, AVX-512, 32768K cache``; None where unknown."""
    flags = _cpuinfo("flags").split()
    vectors = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX")) if flag in flags), "")
    numbers = {"family": _cpuinfo("cpu family"), "model": _cpuinfo("model")}
    parts = [f"{name} {number}" for name, number in numbers.items() if number]
    try:
        cache = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text(encoding="ascii").strip()
    except OSError:
        cache = ""
    return ", ".join(filter(None, [*parts, vectors, f"{cache} cache" if cache else ""])) or None


def _cpuinfo(key: str) -> str:
    """Return what Linux says of the first processor under `key`; empty where it says nothing."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.split(":", 1)[0].strip() == key), "")
    except OSError:
        return ""
