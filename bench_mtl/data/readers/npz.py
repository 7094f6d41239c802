"""Reader of .npz data sets: dense or CSR features; labels, classes or real targets; shared rows or rows per task."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from bench_mtl.core.checks import require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.readers.common import naming, one_against_all, parsing, readable_file
from bench_mtl.data.selection import Selection, Table, require_range
from bench_mtl.model.task_data import TaskData, signs

_KIND = "an .npz file"
CSR = ("X_data", "X_indices", "X_indptr", "X_shape")
USED = ("X", *CSR, "Y", "y", "task", "train_idx", "test_idx")
GREY_LEVELS = 255.0
GREY_NOTE = f"Grey levels were divided by {GREY_LEVELS:g}."
CONVERTED = "Labels 0/1 were read as -1/+1."

Arrays = Mapping[str, NDArray[Any]]


class Header(NamedTuple):
    """What an .npz member says of its array before the array itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Targets(NamedTuple):
    values: Array
    """n x m."""
    are_labels: bool
    notes: tuple[str, ...]


def read_npz(
    path: str | Path,
    *,
    split: str = "all",
    labels: int | None = None,
    classes: str | None = None,
    target: int = 0,
    examples: int | None = None,
    held_out: int | bool = False,
    seed: int = 0,
) -> TaskData:
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
        return selection.of(read_table(source), source.stem)


def npz_headers(path: Path) -> dict[str, Header]:
    """Shapes and types of all arrays of an .npz file, without reading the arrays.

    Raises
    ------
    InputError : not an .npz file, or an array shorter or longer than its header says.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"not readable as {_KIND}: it is no zip archive, or a truncated one")
    with parsing(_KIND), zipfile.ZipFile(path) as archive:
        return {member.filename.removesuffix(".npy"): _header(archive, member) for member in archive.infolist()}


def npz_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return those of the named arrays that the file has.

    Raises
    ------
    InputError : not an .npz file, a damaged array, or one of Python objects.
    """
    present = numeric_headers(path, names)
    with parsing(_KIND), np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(file[name]) for name in present}


def numeric_headers(path: Path, names: Iterable[str]) -> dict[str, Header]:
    """Return the headers of those of the named arrays that the file has.

    Raises
    ------
    InputError : as `npz_headers` does, or an array of Python objects.
    """
    headers = npz_headers(path)
    present = {name: headers[name] for name in names if name in headers}
    for name, header in present.items():
        if header.dtype.kind not in "biuf":
            raise InputError(f"array {name} has type {header.dtype}: only numbers are read, never pickled objects")
    return present


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise InputError(f"array {member.filename} has the unknown format version {version}")
        shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
        # Checked before anything of that shape is allocated.
        if not dtype.hasobject and member.file_size != stream.tell() + math.prod(shape) * dtype.itemsize:
            raise InputError(f"array {member.filename} is not as long as its header says")
    return Header(shape, dtype)


def read_table(path: Path) -> Table:
    """Read all rows and targets of an .npz file.

    Raises
    ------
    InputError : as `read_npz` does for files.
    """
    arrays = npz_arrays(path, USED)
    X, feature_notes = _features(arrays)
    n = X.shape[0]
    targets = _targets(arrays, n)
    task = _task_numbers(arrays["task"], n) if "task" in arrays else None
    splits = {name: arrays[f"{name}_idx"] for name in ("train", "test") if f"{name}_idx" in arrays}
    return Table(X, targets.values, targets.are_labels, task, splits, (*feature_notes, *targets.notes))


def require_parts(names: Container[str]) -> None:
    """Raise InputError unless a file has arrays of these names for dense features, or for CSR ones."""
    parts = [name for name in CSR if name in names]
    if "X" in names and parts:
        raise InputError(f"has both X and {parts[0]}: features must be dense or CSR, not both")
    if "X" not in names and not parts:
        raise InputError(f"has no features: neither X nor {', '.join(CSR)}")
    if parts and len(parts) < len(CSR):
        raise InputError(f"has {', '.join(parts)} but no {', '.join(name for name in CSR if name not in names)}")


def _features(arrays: Arrays) -> tuple[Matrix, tuple[str, ...]]:
    require_parts(arrays)
    return _dense(arrays["X"]) if "X" in arrays else (_csr(*(arrays[name] for name in CSR)), ())


def _dense(values: NDArray[Any]) -> tuple[Array, tuple[str, ...]]:
    if values.ndim != 2:
        raise InputError(f"X must be n x d, but has shape {values.shape}")
    X = np.asarray(values, dtype=np.float64)
    if values.dtype == np.uint8:
        return X / GREY_LEVELS, (GREY_NOTE,)
    require_finite("X", X)
    return X, ()


def _csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]) -> sp.csr_array:
    """Return the matrix of CSR parts, each checked: SciPy itself trusts most of them."""
    for name, part in zip(CSR, (data, indices, indptr, shape), strict=True):
        if part.ndim != 1:
            raise InputError(f"{name} must have 1 dimension, but has shape {part.shape}")
        if name != "X_data" and part.dtype.kind not in "iu":
            raise InputError(f"{name} must be integers, but has type {part.dtype}")
    if len(shape) != 2 or (shape < 0).any():
        raise InputError(f"X_shape must be two numbers of at least 0, not {shape.tolist()}")
    n, d = (int(size) for size in shape)
    if len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
        raise InputError(f"X_indptr must be {n + 1} numbers that rise from 0 to {len(data)}, the length of X_data")
    if len(indices) != len(data):
        raise InputError(f"X_indices has length {len(indices)}, but X_data has {len(data)}")
    require_range("X_indices", indices, d, "features")
    values = np.asarray(data, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        row = int(np.searchsorted(indptr, wrong[0], side="right")) - 1
        kind = "NaN" if np.isnan(values[wrong[0]]) else "inf"
        raise InputError(f"X has {kind} at index ({row}, {indices[wrong[0]]}): only finite numbers are allowed")
    return sp.csr_array((values, indices, indptr), shape=(n, d))


def _targets(arrays: Arrays, n: int) -> _Targets:
    if ("Y" in arrays) == ("y" in arrays):
        raise InputError("has both Y and y: which are the targets?" if "Y" in arrays else "has no targets: neither Y nor y")
    name = "Y" if "Y" in arrays else "y"
    values = arrays[name]
    if values.ndim != (2 if name == "Y" else 1):
        raise InputError(f"{name} must be {'n x m' if name == 'Y' else 'a vector'}, but has shape {values.shape}")
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} rows, but X has {n}")
    if values.dtype.kind == "f":
        real = values.astype(np.float64)
        require_finite(name, real)
        return _Targets(real if name == "Y" else real[:, None], False, ())
    if name == "y" and "task" not in arrays and not _is_binary(values):
        Y = one_against_all(values)
        return _Targets(Y, True, (class_note(Y.shape[1]),))
    labels, converted = signs(values.astype(np.float64))
    return _Targets(labels if name == "Y" else labels[:, None], True, (CONVERTED,) if converted else ())


def class_note(count: int) -> str:
    """Return a sentence that says what became of class numbers."""
    return f"The {count} classes of y became one-against-all tasks."


def _is_binary(classes: NDArray[Any]) -> bool:
    """Return whether class numbers are labels already: one task, not two that mirror each other."""
    return {int(value) for value in np.unique(classes)} in ({0, 1}, {-1, 1})


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
