"""Reader of .npz data sets: dense or CSR features; labels, classes or real targets; shared rows or rows per task."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import naming, parsing, readable_file
from bench_mtl.data.selection import Selection, require_range
from bench_mtl.data.table import Rows, Table, rows_of
from bench_mtl.model.task_data import TaskData

_KIND = "an .npz file"
_CSR = ("X_data", "X_indices", "X_indptr", "X_shape")
_USED = ("X", *_CSR, "Y", "y", "task", "train_idx", "test_idx")
_GREY_LEVELS = 255.0
_PIECE = 2**20

Arrays = Mapping[str, NDArray[Any]]


class Header(NamedTuple):
    """What an .npz member says of its array before the array itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def read_npz(
    path: str | Path, *, split: str = "all", labels: int | None = None, classes: str | None = None, target: int = 0,
    examples: int | None = None, held_out: int | bool = False, seed: int = 0,
) -> TaskData:  # fmt: skip
    """Tasks from an .npz file, loaded without pickles.

    Features are `X` (n x d; uint8 means grey levels, divided by 255) or the CSR parts `X_data`, `X_indices`, `X_indptr`,
    `X_shape`. Targets are `Y` (n x m: 0/1 or -1/+1 labels in an integer type, real targets in a floating type) or `y`
    (n: class numbers, which become one-against-all tasks, or a single 0/1 or -1/+1 label, or real targets). With `task`
    (n: task numbers 0, 1, ...) each task has its own rows and one target. Labels become -1/+1; `notes` say so.

    Parameters
    ----------
    path : the file.
    split : ``"train"`` and ``"test"`` take the rows `train_idx` and `test_idx`; ``"all"`` takes every row.
    labels : the number of labels to keep, those most frequent in the whole file (so that both splits have the same tasks);
        ties go to the earlier column.
    classes : make classes of labels, so that every row has exactly one, and leave out the rows that have none. ``"single"``: the rows
        with exactly one label; labels that no row of the file has alone are dropped. ``"sets:K"``: the K most frequent sets of labels in
        the file are the classes, the most frequent first (ties go to the set of the earlier row; no label at all is a set too). Done before
        anything is drawn. A class without training row is named in the notes.
    target : the column of `Y` to use in a file with `task`.
    examples : the number of rows to use, drawn in the proportions of the classes where every row has one; None uses all.
    held_out : true, with the split ``"train"``, for the rows `test_idx` as `TaskData.held_out`; or a number of other rows, drawn as
        for `examples`, which are then not used for training. Both kinds of drawing are for files without `task`.
    seed : of the drawing; without effect where nothing is drawn.

    Raises
    ------
    InputError : anything but such a file (damaged, arrays missing or of wrong shape, pickled objects, an index out of
        range), NaN or inf (the first place is named), labels of other values, an absent split, a task without rows, other
        classes than these or none of them, more examples than there are, held-out rows of a split that has none.
    """
    selection = Selection(split=split, labels=labels, classes=classes, target=target, examples=examples, held_out=held_out, seed=seed)
    source = readable_file(path)
    with naming(source):
        return selection.of(npz_table(source), source.stem)


def npz_headers(path: Path) -> dict[str, Header]:
    """Shapes and types of all arrays of an .npz file, without reading the arrays."""
    if not zipfile.is_zipfile(path):
        raise InputError(f"not readable as {_KIND}: it is no zip archive, or a truncated one")
    with parsing(_KIND), zipfile.ZipFile(path) as archive:
        return {member.filename.removesuffix(".npy"): _header(archive, member) for member in archive.infolist()}


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    with archive.open(member) as stream:
        shape, _, dtype = _array_header(stream, member.filename)
        # Checked before anything of that shape is allocated.
        if not dtype.hasobject and member.file_size != stream.tell() + math.prod(shape) * dtype.itemsize:
            raise InputError(f"array {member.filename} is not as long as its header says")
    return Header(shape, dtype)


def _array_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether it is in Fortran's order, and type of the array that follows."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"array {name} has the unknown format version {version}")
    return (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)


def npz_arrays(path: Path, names: Iterable[str], beside: Path | None = None) -> dict[str, NDArray[Any]]:
    """Return those of the named arrays that the file has, in memory; with a folder `beside`, where they may be unpacked, mapped into it."""
    headers = npz_headers(path)
    present = [name for name in names if name in headers]
    for name in present:
        if headers[name].dtype.kind not in "biuf":
            raise InputError(f"array {name} has type {headers[name].dtype}: only numbers are read, never pickled objects")
    with parsing(_KIND), np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(file[name]) if beside is None else _mapped(path, name, beside) for name in present}


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
        shape, is_fortran, dtype = _array_header(file, name)
        if not math.prod(shape):
            return np.empty(shape, dtype)
        return np.asarray(np.memmap(source, dtype, "r", file.tell(), shape, "F" if is_fortran else "C"))


def npz_table(source: Path, size: int | None = None, beside: Path | None = None) -> Table:
    """Return the rows of an .npz file, in blocks of about `size` bytes of arrays that are mapped into memory as in `npz_arrays`."""
    arrays = npz_arrays(source, _USED, beside)
    features = _features(arrays, size)
    n, d = features.shape
    targets = _targets(arrays, n, size)

    def blocks(rows: Rows | None = None) -> Iterator[tuple[Matrix, Array]]:
        start, end = 0, n if rows is None else len(rows)
        while start < end or start == 0:
            stop = min(end, start + min(features.most, targets.most))
            block = np.arange(start, stop) if rows is None else rows[start:stop]
            block = block[: features.fitting(block)]
            yield features.of(block), targets.of(block)
            start += max(1, len(block))

    return Table(
        n, d, targets.shape[1], blocks, targets.are_labels, _task_numbers(arrays["task"], n) if "task" in arrays else None,
        {name: arrays[f"{name}_idx"] for name in ("train", "test") if f"{name}_idx" in arrays}, (*features.notes, *targets.notes),
    )  # fmt: skip


class _Part(NamedTuple):
    """Features or targets."""

    shape: tuple[int, int]
    of: Callable[[Rows], Any]
    """Gives the rows of these numbers."""
    most: int
    """How many rows a block has at most, and `fitting` how many of some do."""
    notes: tuple[str, ...] = ()
    are_labels: bool = True
    fitting: Callable[[Rows], int] = len


def _features(arrays: Arrays, size: int | None) -> _Part:
    parts = [name for name in _CSR if name in arrays]
    if "X" in arrays and parts:
        raise InputError(f"has both X and {parts[0]}: features must be dense or CSR, not both")
    if "X" not in arrays and not parts:
        raise InputError(f"has no features: neither X nor {', '.join(_CSR)}")
    if parts and len(parts) < len(_CSR):
        raise InputError(f"has {', '.join(parts)} but no {', '.join(name for name in _CSR if name not in arrays)}")
    if parts:
        return _csr([arrays[name] for name in _CSR], size)
    values = arrays["X"]
    if values.ndim != 2:
        raise InputError("X", values.shape, "have shape n x d")
    n, d = values.shape
    if values.dtype == np.uint8:
        note = f"Grey levels were divided by {_GREY_LEVELS:g}."
        return _Part((n, d), lambda rows: values[_span(rows)].astype(np.float64) / _GREY_LEVELS, rows_of(size, d), (note,))
    return _Part((n, d), lambda rows: _finite("X", values, rows), rows_of(size, d))


def _csr(parts: list[NDArray[Any]], size: int | None) -> _Part:
    """Return the rows of CSR parts, each checked: SciPy itself trusts most of them."""
    for name, part in zip(_CSR, parts, strict=True):
        if part.ndim != 1:
            raise InputError(name, part.shape, "have 1 dimension")
        if name != "X_data" and part.dtype.kind not in "iu":
            raise InputError(f"{name} must be integers, but has type {part.dtype}")
    data, indices, indptr, shape = parts
    if len(shape) != 2 or (np.asarray(shape) < 0).any():
        raise InputError("X_shape", shape.tolist(), "two numbers of at least 0")
    n, d = (int(length) for length in shape)
    most = rows_of(size, 2)
    pieces = (indptr[start : start + most + 1] for start in range(0, len(indptr) - 1, most))
    if len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != len(data) or any((piece[1:] < piece[:-1]).any() for piece in pieces):
        raise InputError(f"X_indptr must be {n + 1} numbers that rise from 0 to {len(data)}, the length of X_data")
    if len(indices) != len(data):
        raise InputError(f"X_indices has length {len(indices)}, but X_data has {len(data)}")
    for start in range(0, len(indices), most):
        require_range("X_indices", indices[start : start + most], d, "features", first=start)

    def ends(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the entries of each row begin in `data`, and where those of all begin and end once they are together."""
        first = indptr[rows].astype(np.int64)
        return first, np.concatenate([[0], np.cumsum(indptr[rows + 1].astype(np.int64) - first)])

    def of(rows: Rows) -> sp.csr_array:
        first, own = ends(rows)
        run = _span(rows)
        which: Any = (
            slice(int(indptr[run.start]), int(indptr[run.stop]))
            if isinstance(run, slice)
            else np.repeat(first - own[:-1], np.diff(own)) + np.arange(own[-1])
        )
        values, places = np.asarray(data[which], dtype=np.float64), np.asarray(indices[which])
        if not np.isfinite(values).all():
            wrong = int(np.argmax(~np.isfinite(values)))
            row = int(rows[np.searchsorted(own, wrong, side="right") - 1])
            raise _not_finite("X", values[wrong], (row, int(places[wrong])))
        return sp.csr_array((values, places, own), shape=(len(rows), d))

    return _Part((n, d), of, most, fitting=lambda rows: max(1, int(np.searchsorted(ends(rows)[1], most, side="right")) - 1))


def _targets(arrays: Arrays, n: int, size: int | None) -> _Part:
    if ("Y" in arrays) == ("y" in arrays):
        raise InputError("has both Y and y: which are the targets?" if "Y" in arrays else "has no targets: neither Y nor y")
    name = "Y" if "Y" in arrays else "y"
    values = arrays[name]
    if values.ndim != (2 if name == "Y" else 1):
        raise InputError(f"{name} must be {'n x m' if name == 'Y' else 'a vector'}, but has shape {values.shape}")
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} rows, but X has {n}")
    columns = values if name == "Y" else values[:, None]
    m = columns.shape[1]
    count = rows_of(size, m)
    if values.dtype.kind == "f":
        return _Part((n, m), lambda rows: _finite(name, values, rows).reshape(len(rows), m), count, are_labels=False)
    starts = range(0, n, count)
    if name == "y" and "task" not in arrays:
        classes = np.unique(np.concatenate([np.unique(values[start : start + count]) for start in starts] or [values]))
        first = {int(value) for value in classes[:3]}
        if not (first <= {0, 1} or first <= {-1, 1}):  # else they are labels, of one task
            note = f"The {len(classes)} classes of y became one-against-all tasks."
            shape, most = (n, len(classes)), rows_of(size, len(classes))
            return _Part(shape, lambda rows: np.where(columns[_span(rows)] == classes, 1.0, -1.0), most, (note,))
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
    notes = ("Labels 0/1 were read as -1/+1.",) if 0.0 in found else ()
    return _Part((n, m), lambda rows: np.where(columns[_span(rows)] == 1, 1.0, -1.0), count, notes)


def _span(numbers: Rows) -> Any:
    """Return what numbers index, as a slice where each is the next one: that copies nothing."""
    is_run = len(numbers) > 0 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and bool((np.diff(numbers) == 1).all())
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if is_run else numbers


def _finite(name: str, values: NDArray[Any], rows: Rows) -> Array:
    """Return the values of some rows, unless there is a NaN or inf; the first is named by its place among all rows."""
    block = np.asarray(values[_span(rows)], dtype=np.float64)
    for place in np.argwhere(~np.isfinite(block))[:1].tolist():
        raise _not_finite(name, block[tuple(place)], (int(rows[place[0]]), *place[1:]))
    return block


def _not_finite(name: str, value: float, place: tuple[int, ...]) -> InputError:
    kind, where = "NaN" if np.isnan(value) else "inf", place if len(place) > 1 else place[0]
    return InputError(f"{name} has {kind} at index {where}: only finite numbers are allowed")


def _task_numbers(task: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the task of each of n rows, checked."""
    if task.shape != (n,) or task.dtype.kind not in "iu":
        raise InputError(f"task must be {n} task numbers, one a row, but has shape {task.shape} and type {task.dtype}")
    numbers = np.unique(task)
    wrong = np.flatnonzero(numbers != np.arange(len(numbers)))
    if len(wrong):
        first, given = int(wrong[0]), int(numbers[wrong[0]])
        raise InputError(f"task has {given}: numbers start at 0" if given < 0 else f"task {first} has no row: numbers must be 0, 1, ...")
    return task
