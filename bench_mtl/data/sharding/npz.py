"""Data sets in .npz files in blocks: what `read_npz` makes of one, of arrays that are mapped into memory."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import parsing
from bench_mtl.data.readers.npz import CONVERTED, CSR, GREY_LEVELS, GREY_NOTE, USED, class_note, numeric_headers, require_parts
from bench_mtl.data.selection import Selection, most_frequent, most_frequent_note, no_split, require_range, split_note, split_rows
from bench_mtl.data.sharding.blocks import Blocks, rows_of

_KIND = "an .npz file"
_PIECE = 2**20

Arrays = Mapping[str, NDArray[Any]]
#: Features of some rows, given by the first and the last, or by their numbers.
Rows = Callable[[Any], Matrix]


def npz_blocks(source: Path, block_bytes: int, beside: Path, *, split: str = "all", labels: int | None = None) -> Blocks:
    """Return the rows of an .npz file in blocks. `read_npz` explains the options.

    Parameters
    ----------
    beside : a folder, where compressed arrays are unpacked

    Raises
    ------
    InputError : as `read_npz` does, or a file with `task`.
    """
    Selection(split=split, labels=labels)
    headers = numeric_headers(source, USED)
    if "task" in headers:
        raise InputError("has 'task', which gives each task rows of its own: shards hold rows that all tasks share")
    with parsing(_KIND):
        arrays = {name: _mapped(source, name, beside) for name in headers}
    features = _features(arrays, block_bytes)
    n = features.shape[0]
    targets = _targets(arrays, n, block_bytes)
    rows, row_notes = None, tuple[str, ...]()
    if split != "all":
        if f"{split}_idx" not in arrays:
            raise no_split(split)
        rows = split_rows(split, np.asarray(arrays[f"{split}_idx"]), n)
        row_notes = (split_note(split, len(rows), n),)
    notes, chosen, n_tasks = (*features.notes, *targets.notes, *row_notes), None, targets.n_tasks
    if labels is not None:
        if not targets.are_labels:
            raise InputError("labels cannot be chosen: the targets are real numbers")
        frequency = sum(np.count_nonzero(Y == 1.0, axis=0) for Y in targets.all_rows(n, block_bytes))
        chosen = most_frequent(np.asarray(frequency), labels)
        notes, n_tasks = (*notes, most_frequent_note(labels, n_tasks)), len(chosen)

    def parts() -> Iterator[tuple[Matrix, Array]]:
        start, end = 0, n if rows is None else len(rows)
        while start < end:
            count = min(features.fitting(rows, start, end), rows_of(block_bytes, targets.n_tasks))
            which = slice(start, min(end, start + count)) if rows is None else rows[start : start + count]
            Y = targets.of(which)
            yield features.of(which), Y if chosen is None else Y[:, chosen]
            start += count

    return Blocks(n if rows is None else len(rows), features.shape[1], n_tasks, parts(), notes)


class _Features(NamedTuple):
    shape: tuple[int, int]
    of: Rows
    fitting: Callable[[NDArray[Any] | None, int, int], int]
    """How many of the rows (None: all) from one place to another are a block."""
    notes: tuple[str, ...] = ()


class _Targets(NamedTuple):
    n_tasks: int
    are_labels: bool
    of: Callable[[Any], Array]
    notes: tuple[str, ...] = ()

    def all_rows(self, n: int, block_bytes: int) -> Iterator[Array]:
        count = rows_of(block_bytes, self.n_tasks)
        return (self.of(slice(start, start + count)) for start in range(0, n, count))


def _mapped(source: Path, name: str, beside: Path) -> NDArray[Any]:
    """Return an array of the file, mapped into memory: in its place where it is not compressed, else unpacked; its checksum is compared."""
    with zipfile.ZipFile(source) as archive:
        member = next(found for found in archive.infolist() if found.filename.removesuffix(".npy") == name)
        with archive.open(member) as stream:  # which compares the checksum at the end
            if member.compress_type != zipfile.ZIP_STORED:
                unpacked = beside / f"{name}.npy"
                with unpacked.open("wb") as file:
                    while piece := stream.read(_PIECE):
                        file.write(piece)
                return np.asarray(np.load(unpacked, mmap_mode="r", allow_pickle=False))
            while stream.read(_PIECE):
                pass
    with source.open("rb") as file:
        file.seek(member.header_offset + 26)
        lengths = int.from_bytes(file.read(2), "little") + int.from_bytes(file.read(2), "little")  # of its name and its extra field
        file.seek(lengths, 1)
        version = npy.read_magic(file)
        shape, is_fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
        if not math.prod(shape):
            return np.empty(shape, dtype)
        return np.asarray(np.memmap(source, dtype, "r", file.tell(), shape, "F" if is_fortran else "C"))


def _features(arrays: Arrays, block_bytes: int) -> _Features:
    require_parts(arrays)
    if "X" in arrays:
        return _dense(arrays["X"], block_bytes)
    data, indices, indptr, shape = (arrays[name] for name in CSR)
    return _csr(data, indices, indptr, shape, block_bytes)


def _dense(values: NDArray[Any], block_bytes: int) -> _Features:
    if values.ndim != 2:
        raise InputError(f"X must be n x d, but has shape {values.shape}")
    is_grey = values.dtype == np.uint8
    count = rows_of(block_bytes, values.shape[1])

    def of(rows: Any) -> Array:
        X = np.array(values[rows], dtype=np.float64, order="C")
        if is_grey:
            return X / GREY_LEVELS
        _require_finite("X", X, rows)
        return X

    return _Features((values.shape[0], values.shape[1]), of, lambda *_: count, (GREY_NOTE,) if is_grey else ())


def _csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any], block_bytes: int) -> _Features:
    """Return the rows of CSR parts, each checked."""
    for name, part in zip(CSR, (data, indices, indptr, shape), strict=True):
        if part.ndim != 1:
            raise InputError(f"{name} must have 1 dimension, but has shape {part.shape}")
        if name != "X_data" and part.dtype.kind not in "iu":
            raise InputError(f"{name} must be integers, but has type {part.dtype}")
    if len(shape) != 2 or (np.asarray(shape) < 0).any():
        raise InputError(f"X_shape must be two numbers of at least 0, not {shape.tolist()}")
    n, d = (int(size) for size in shape)
    if len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != len(data) or _falls(indptr, block_bytes):
        raise InputError(f"X_indptr must be {n + 1} numbers that rise from 0 to {len(data)}, the length of X_data")
    if len(indices) != len(data):
        raise InputError(f"X_indices has length {len(indices)}, but X_data has {len(data)}")
    count = rows_of(block_bytes, 2)
    for start in range(0, len(indices), count):
        require_range("X_indices", indices[start : start + count], d, "features", first=start)

    def ends(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if isinstance(rows, slice):
            of = np.array(indptr[rows.start : rows.stop + 1], dtype=np.int64)
            return of[:-1], of[1:]
        return indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)

    def fitting(rows: NDArray[Any] | None, start: int, end: int) -> int:
        end = min(end, start + count)
        first, last = ends(slice(start, end) if rows is None else rows[start:end])
        return max(1, int(np.searchsorted(np.cumsum(last - first), count, side="right")))

    def of(rows: Any) -> sp.csr_array:
        first, last = ends(rows)
        own = np.concatenate([[0], np.cumsum(last - first)])
        which = (
            slice(int(first[0]), int(last[-1]))
            if isinstance(rows, slice)
            else np.repeat(first - own[:-1], last - first) + np.arange(own[-1])
        )
        values, places = np.array(data[which], dtype=np.float64), np.array(indices[which])
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            row = int(np.searchsorted(own, wrong[0], side="right")) - 1
            row = rows.start + row if isinstance(rows, slice) else int(rows[row])
            kind = "NaN" if np.isnan(values[wrong[0]]) else "inf"
            raise InputError(f"X has {kind} at index ({row}, {places[wrong[0]]}): only finite numbers are allowed")
        matrix = sp.csr_array((values, places, own), shape=(len(first), d))
        matrix.sum_duplicates()
        return matrix

    return _Features((n, d), of, fitting)


def _falls(indptr: NDArray[Any], block_bytes: int) -> bool:
    """Return whether a number is below the one before it."""
    count = rows_of(block_bytes, 2)
    pieces = (indptr[start : start + count + 1] for start in range(0, len(indptr) - 1, count))
    return any((piece[1:] < piece[:-1]).any() for piece in pieces)


def _targets(arrays: Arrays, n: int, block_bytes: int) -> _Targets:
    if ("Y" in arrays) == ("y" in arrays):
        raise InputError("has both Y and y: which are the targets?" if "Y" in arrays else "has no targets: neither Y nor y")
    name = "Y" if "Y" in arrays else "y"
    values = arrays[name]
    if values.ndim != (2 if name == "Y" else 1):
        raise InputError(f"{name} must be {'n x m' if name == 'Y' else 'a vector'}, but has shape {values.shape}")
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} rows, but X has {n}")
    columns = values if name == "Y" else values[:, None]
    count = rows_of(block_bytes, columns.shape[1])
    starts = range(0, n, count)
    if values.dtype.kind == "f":

        def real(rows: Any) -> Array:
            Y = np.array(columns[rows], dtype=np.float64, order="C")
            _require_finite(name, Y if name == "Y" else Y[:, 0], rows)
            return Y

        return _Targets(columns.shape[1], False, real)
    if name == "y":
        classes = np.unique(np.concatenate([np.unique(values[start : start + count]) for start in starts])) if n else values
        if {int(value) for value in classes[:3]} not in ({0, 1}, {-1, 1}):
            return _Targets(len(classes), True, lambda rows: np.where(columns[rows] == classes, 1.0, -1.0), (class_note(len(classes)),))
    found: set[float] = set()
    for start in starts:
        block = values[start : start + count].astype(np.float64)
        odd = np.argwhere(~np.isin(block, (-1.0, 0.0, 1.0)))
        if len(odd):
            place = (int(odd[0][0]) + start, *map(int, odd[0][1:]))
            raise InputError(f"labels must be -1/+1 (or 0/1), but entry {place} is {block[tuple(odd[0])]:g}")
        found |= set(np.unique(block).tolist())
    if {0.0, -1.0} <= found:
        raise InputError("labels mix 0 with -1: use -1/+1 (or 0/1)")
    notes = (CONVERTED,) if 0.0 in found else ()
    return _Targets(columns.shape[1], True, lambda rows: np.where(columns[rows] == 1, 1.0, -1.0), notes)


def _require_finite(name: str, block: Array, rows: Any) -> None:
    """Raise InputError naming the first NaN or inf of some rows by its place among all."""
    wrong = np.argwhere(~np.isfinite(block))
    if len(wrong):
        row, *others = map(int, wrong[0])
        kind = "NaN" if np.isnan(block[tuple(wrong[0])]) else "inf"
        row = rows.start + row if isinstance(rows, slice) else int(rows[row])
        raise InputError(f"{name} has {kind} at index {(row, *others) if others else row}: only finite numbers are allowed")
