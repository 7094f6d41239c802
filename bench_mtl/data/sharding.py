"""Writes the data of a file in shards, block by block, with about two shards in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl.core.checks import is_sparse, real_number, whole_number
from bench_mtl.core.errors import InputError, not_written, plural, unknown
from bench_mtl.core.files import exists, folder_beside
from bench_mtl.core.text import require_label
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.catalogue import options_of, resolved
from bench_mtl.data.readers import read_libsvm, read_npz, read_tabular, write_shards
from bench_mtl.data.readers.common import naming, unpacked_name
from bench_mtl.data.readers.libsvm import libsvm_table
from bench_mtl.data.readers.npz import npz_table
from bench_mtl.data.readers.tabular import tabular_table
from bench_mtl.data.selection import Selection
from bench_mtl.data.table import Table, concatenated

_FLOAT, _MIB, _MOST_MIB = 8, 2**20, 2.0**40
_LARGEST_INT32 = 2**31 - 1
#: A block takes about so many bytes at most, and no more than a shard.
_LARGEST_BLOCK = 32 * _MIB

_AT_ONCE = "needs all rows at once, and shards are written block by block: leave it out, or write a file of the rows that you want"
_OWN_ROWS = "gives each task rows of its own, and shards hold rows that all tasks share: leave it out"
#: Options of readers that need all rows at once, or tasks with rows of their own.
_REFUSED = {
    **dict.fromkeys(("examples", "classes", "impute"), _AT_ONCE),
    "held_out": f"{_AT_ONCE}; the splits of an .npz file are written one by one, with split='train' and split='test'",
    "seed": "is that of a drawing of rows, and shards have all of them: leave it out",
    "task": _OWN_ROWS,
    "target": f"is for files with 'task', which {_OWN_ROWS}",
}


def _libsvm(source: Path, size: int, beside: Path, labels: int | None = None, **how: Any) -> Table:
    return Selection(labels=labels).streamed(libsvm_table(source, size, **how))


def _npz(source: Path, size: int, beside: Path, **chosen: Any) -> Table:
    return Selection(**chosen).streamed(npz_table(source, size, beside))


def _tabular(source: Path, size: int, beside: Path, most_frequent: int | None = None, **how: Any) -> Table:
    return Selection.among_columns(most_frequent).streamed(tabular_table(source, size, **how))


#: What reads a file block by block, by what reads it at once: a file, the bytes of a block, a folder for what is unpacked, options.
_STREAMS: dict[Callable[..., Any], Callable[..., Table]] = {read_libsvm: _libsvm, read_npz: _npz, read_tabular: _tabular}


@dataclass(frozen=True)
class Sharded:
    """What was written in shards."""

    manifest: Path
    name: str
    shards: int
    rows: int
    features: int
    tasks: int
    stored: int
    """Entries of the features that are stored."""
    bytes: int
    """Of all files of features and targets."""
    notes: tuple[str, ...]
    """What was done to the data that a reader should know, one sentence each."""

    def __str__(self) -> str:
        sizes = ((self.shards, "shard"), (self.rows, "row"), (self.features, "feature"), (self.tasks, "task"))
        return f"{', '.join(plural(*size) for size in sizes)}, {self.bytes:,} bytes"


def shard_file(
    spec: Mapping[str, Any], folder: str | Path, *, rows: int | None = None, megabytes: float | None = None, name: str | None = None,
    data_dir: Path | None = None, notify: Callable[[str], None] = lambda _: None,
) -> Sharded:  # fmt: skip
    """Write the data of a file in shards, bit by bit those that `load` makes of it, with about two shards in memory.

    Parameters
    ----------
    spec : the file and the options of its reader, as for `load`: .npz, LIBSVM (.svm, .libsvm, .txt), .csv, .tsv, .parquet or .npy
    folder : a new one
    rows : of a shard
    megabytes : of the features of a shard, and of its targets, in units of 2^20 bytes; 128 where `rows` is not given either
    name : of the data set; that of the file by default
    notify : called with a line on what goes on

    Raises
    ------
    InputError : as `load` does; a folder that exists; both sizes; a file of another kind; options that need all rows at once.
    """
    if rows is not None and megabytes is not None:
        raise InputError("rows and megabytes both say how large a shard is: give one of them")
    most = None if rows is None else whole_number("rows", rows, minimum=1)
    largest = int((128.0 if megabytes is None else real_number("megabytes", megabytes, strict=True, maximum=_MOST_MIB)) * _MIB)
    folder = Path(folder)
    if exists("folder of shards", folder):
        raise InputError(f"{folder} exists: shards are written to a new folder")
    reader, places = resolved(spec, data_dir, prices=False)
    if not places:
        raise InputError(f"'{spec['name']}' is no file: shards are written of a file")
    (source,) = places
    if reader not in _STREAMS:
        raise InputError(f"{source.name} cannot be written in shards: .npz, .svm, .libsvm, .txt, .csv, .tsv, .parquet and .npy files can")
    options = {key: value for key, value in spec.items() if key not in ("name", "file")}
    allowed = options_of(reader)
    for key in options:
        if key in _REFUSED and key in allowed:
            raise InputError(f"{key} {_REFUSED[key]}")
        if key not in allowed:
            raise unknown(f"key for shards of '{source.name}'", key, set(allowed) - set(_REFUSED))
    label = require_label("name", unpacked_name(source).stem if name is None else name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with naming(source), folder_beside(folder) as beside:
            table = _STREAMS[reader](source, _LARGEST_BLOCK if most is not None else min(_LARGEST_BLOCK, largest), beside, **options)
            shown = (plural(table.n_rows, "row"), plural(table.n_features, "feature"), plural(table.n_targets, "task"))
            notify(f"{', '.join(shown)} to write")

            def shards() -> Iterator[tuple[Matrix, Array]]:
                done = 0
                for number, (X, Y) in enumerate(in_shards(table, most, largest), start=1):
                    yield X, Y
                    done += X.shape[0]
                    notify(f"{plural(number, 'shard')} written, {done:,} of {table.n_rows:,} rows")

            manifest = write_shards(folder, shards(), name=label)
    except OSError as error:
        raise not_written(f"shards cannot be written to {folder}", error) from None
    content = json.loads(manifest.read_text(encoding="utf-8"))
    entries = content["shards"]
    return Sharded(
        manifest, content["name"], len(entries), sum(entry["rows"] for entry in entries), content["features"], content["tasks"],
        sum(entry["stored"] for entry in entries), sum(file["bytes"] for entry in entries for file in entry["files"].values()), table.notes,
    )  # fmt: skip


def in_shards(table: Table, rows: int | None, largest: int) -> Iterator[tuple[Matrix, Array]]:
    """Yield features and targets of one shard after the other: `rows` of them, or as many as take `largest` bytes each, at least one."""
    most = max(1, largest // (_FLOAT * max(1, table.n_targets))) if rows is None else rows
    index = 4 if table.n_features <= _LARGEST_INT32 else 8
    pieces: list[tuple[Matrix, Array]] = []
    filled, taken = 0, 0
    for X, Y in table.blocks():
        row_bytes = np.diff(X.indptr).astype(np.int64) * (_FLOAT + index) + index if is_sparse(X) else np.full(len(Y), _FLOAT * X.shape[1])
        start = 0
        while start < len(Y):
            ends = taken + np.cumsum(row_bytes[start : start + most - filled])
            count = len(ends) if rows is not None else int(np.searchsorted(ends, largest, side="right"))
            count = max(count, 0 if filled else 1)
            if count:
                pieces.append((X[start : start + count], Y[start : start + count]))
                start, filled, taken = start + count, filled + count, int(ends[count - 1])
            if not count or filled == most:
                yield concatenated(pieces)
                pieces, filled, taken = [], 0, 0
    if pieces:
        yield concatenated(pieces)
