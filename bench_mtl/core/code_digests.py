"""Which code a process would run: a hash of the source files of each package that a run may use, to be compared between machines."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

#: The name that plug-in folders have among packages.
PLUGINS = "the plug-in folder"


def code_digests(plugins: Path | None = None) -> Mapping[str, str]:
    """Return a hash of all Python files of bench_mtl, of other packages that add problems or solvers to it, and of the plug-in folder.

    Unlike `source_digest` it covers also what measures, certifies and stores, and it does not ask what a run needs of all that. It does
    not depend on where the packages are installed. NumPy, SciPy and Python are not in it: the environment of every row names them.

    Returns
    -------
    Mapping[str, str]
        16 hexadecimal digits by the name of the package, empty where there is no such folder.

    Notes
    -----
    A file is read anew only when its time or its size has changed, so that all of it takes some milliseconds.
    """
    found = {name: _digest_of(folder) for name, folder in _packages()}
    return found if plugins is None else found | {PLUGINS: _digest_of(str(plugins))}


@functools.cache
def _packages() -> tuple[tuple[str, str], ...]:
    """Return the names of packages and the folders, or the files, that they are."""
    entries = [*metadata.entry_points(group="bench_mtl.problems"), *metadata.entry_points(group="bench_mtl.solvers")]
    names = {"bench_mtl", *(entry.module.partition(".")[0] for entry in entries)}
    return tuple((name, _place(name)) for name in sorted(names))


def _place(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ""
    return next(iter(spec.submodule_search_locations or ()), spec.origin or "")


def _digest_of(root: str) -> str:
    if not os.path.exists(root):
        return ""
    found = {os.path.relpath(file, root).replace(os.sep, "/"): _file_digest(file, *state) for file, *state in _files(root)}
    lines = [f"{name} {digest}\n" for name, digest in found.items()]
    return hashlib.sha256("".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _files(place: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, time and size of the Python files below a folder, links followed, or of a single file."""
    if os.path.isfile(place):
        details = os.stat(place)
        yield place, details.st_mtime_ns, details.st_size
        return
    for entry in os.scandir(place):
        if entry.is_dir():
            if entry.name.isidentifier() and entry.name != "__pycache__":
                yield from _files(entry.path)
        elif entry.name.endswith(".py"):
            details = entry.stat()
            yield entry.path, details.st_mtime_ns, details.st_size


@functools.lru_cache(maxsize=8192)
def _file_digest(file: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
