"""Tells whether two data sets that are asked for in the same words are the same, without making them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.data.catalogue import available, resolved, takes_seed
from bench_mtl.data.readers import read_arff, read_shards
from bench_mtl.data.readers.arff import label_file
from bench_mtl.data.readers.shards import shard_files
from bench_mtl.model.task_data import TaskData

_PACKAGE = Path(__file__).parents[1]

#: Options of data in shards that say who computes with them, and whether files are checked: no bit of a result depends on that.
_WHO = ("cluster", "workers", "memory_gib", "verify")


def fingerprint(spec: Mapping[str, Any], *, data_dir: Path | None = None, seed: int | None = None) -> str:
    """Return a hash of all that decides what `bench_mtl.data.load` makes of the same arguments.

    That is what was asked for, the code of `bench_mtl.data`, and the bytes of the file, or for a generator or an embedded set the libraries
    that it comes from; of data that are preprocessed also the libraries and the weak learners that do it. The data themselves are not made:
    rounding differs between processors, and so would their hash. Raises InputError: as `load` does for a name or file that is not there, or
    one that cannot be read.
    """
    spec, _ = available(spec, data_dir)
    function, paths = resolved(spec, data_dir)
    origin = [_file_digest(path) for path in _files(function, spec, paths)] or [metadata.version("numpy"), metadata.version("scikit-learn")]
    if spec.get("preprocess"):
        origin += [*map(metadata.version, ("numpy", "scipy", "scikit-learn")), _code_digest(_PACKAGE / "weak_learners")]
    # Where a file lies, and who computes with it, says nothing about what is in it.
    left_out = {"name", "file", *_WHO} if paths else {"folder", *_WHO}
    asked = {key: value for key, value in spec.items() if key not in left_out}
    drawn = not paths or takes_seed(spec)
    content = json.dumps(
        [function.__name__, asked, seed if drawn else None, origin, _code_digest(_PACKAGE / "data")], sort_keys=True, default=str
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]


class Watch:
    """The files of some data sets, whose bytes are to stay as they are while cases run."""

    def __init__(self, specs: Iterable[Mapping[str, Any]], data_dir: Path | None) -> None:
        """Digest the files, those of shards too, which have to be the ones that their manifest describes.

        Raises InputError: a file of shards has other bytes than were written.
        """
        self._digests: dict[Path, str] = {}
        for spec in {json.dumps(spec, sort_keys=True, default=str): spec for spec in specs}.values():
            try:
                there = available(spec, data_dir)[0]
                function, paths = resolved(there, data_dir)
            except InputError:  # as problems in memory have none, and what cannot be read has rows that say so
                continue
            self._digests |= {path: _file_digest(path) for path in _files(function, there, paths)}
            for path, written in shard_files(paths[0]).items() if function is read_shards else ():
                self._digests[path] = _file_digest(path)
                if self._digests[path] != written:
                    raise InputError(f"{path} is not what was written: its hash differs from that in {paths[0].name}")

    def changed(self) -> list[Path]:
        """Return the files that have other bytes now."""
        return [path for path, digest in self._digests.items() if not path.is_file() or _file_digest(path) != digest]


def _files(function: Callable[..., TaskData], spec: Mapping[str, Any], paths: Sequence[Path]) -> list[Path]:
    """Return all files that are read, that of the labels of an ARFF file too."""
    beside = label_file(paths[0], spec.get("labels")) if function is read_arff else None
    return [*paths, *([] if beside is None else [beside])]


def _file_digest(path: Path) -> str:
    try:
        state = path.stat()
        return _digest_of(path, state.st_size, (state.st_mtime_ns, state.st_ctime_ns))
    except OSError as error:
        raise InputError(f"data file {path} cannot be read: {error.strerror or error}") from None


@functools.cache
def _digest_of(path: Path, size: int, modified: tuple[int, int]) -> str:
    """Hash of a file's bytes; `size` and `modified` are there to tell its versions apart while this process lives."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def _code_digest(folder: Path) -> str:
    files = sorted(folder.rglob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
