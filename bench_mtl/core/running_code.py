"""Which code this process runs: a hash of the source files of each package that a run may use, to be compared between machines."""

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

_BY_NOW = "by now"


def code_digests(plugins: Path | None = None) -> dict[str, str]:
    """Return a hash, in 16 hexadecimal digits, of all Python files of each package that a run may use, by its name.

    These are bench_mtl, other packages that add problems or solvers to it, and the plug-in folder; the digits of one that is not there are
    empty. Unlike `source_digest` it covers also what measures, certifies and stores, and it does not ask what a run needs of all that. It
    does not depend on where the packages are installed. NumPy, SciPy and Python are not in it: the environment of every row names them.
    """
    places = _places() if plugins is None else {**_places(), PLUGINS: str(plugins)}
    return {name: _digest_of(place) for name, place in places.items()}


def running_code(plugins: Path | None = None) -> dict[str, str]:
    """Return `code_digests`; where files have changed since this process loaded them, its digest is neither the old nor the new one."""
    now = code_digests(plugins)
    return {name: digest if _loaded.get(name, digest) == digest else f"{_loaded[name]}, {_BY_NOW} {digest}" for name, digest in now.items()}


def difference(expected: Mapping[str, str], found: object) -> str | None:
    """Return how what another process says of its code differs from the code of this one, in words that follow its name."""
    if not isinstance(found, Mapping):
        return "does not say which code it has: install the bench_mtl of this command there, and start it again"
    for name, digest in expected.items():
        other = found.get(name)
        if other == digest:
            continue
        if not other:
            return f"does not have {name} of this command"
        remedy = "start it again" if _BY_NOW in str(other) else "install the same on both and start it again"
        return f"has other code of {name} than this command ({other} instead of {digest}): {remedy}"
    return None


@functools.cache
def _places() -> Mapping[str, str]:
    """Return the folders, or the files, of packages by their names; empty where there is none."""
    entries = [*metadata.entry_points(group="bench_mtl.problems"), *metadata.entry_points(group="bench_mtl.solvers")]
    specs = {name: importlib.util.find_spec(name) for name in sorted({"bench_mtl", *(entry.module.partition(".")[0] for entry in entries)})}
    return {name: next(iter(spec.submodule_search_locations or ()), spec.origin or "") if spec else "" for name, spec in specs.items()}


def _digest_of(place: str) -> str:
    if not os.path.exists(place):
        return ""
    lines = [f"{os.path.relpath(file, place).replace(os.sep, '/')} {_file_digest(file, *_state(file))}\n" for file in _files(place)]
    return hashlib.sha256("".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _files(place: str) -> Iterator[str]:
    """Yield the Python files below a folder, links followed, or a single file."""
    if os.path.isfile(place):
        yield place
    for folder, folders, names in os.walk(place, followlinks=True):
        folders[:] = [name for name in folders if name.isidentifier() and name != "__pycache__"]
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))


def _state(file: str) -> tuple[int, int]:
    """Return time and size of a file, which is read anew only when one of them has changed."""
    details = os.stat(file)
    return details.st_mtime_ns, details.st_size


@functools.lru_cache(maxsize=8192)
def _file_digest(file: str, changed: int, size: int) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


#: The code that this process has loaded, whatever its files become while it runs.
_loaded = code_digests()
