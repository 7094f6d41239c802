"""Which rows of an .npz data set are for training, and which are held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.data.sampling import classes_of, sample


class Asked(NamedTuple):
    """The options of a reader that choose rows."""

    split: str
    examples: int | None
    held_out: int | bool
    seed: int


class Chosen(NamedTuple):
    """Row numbers, and what a reader should be told of them."""

    training: NDArray[Any]
    held_out: NDArray[Any] | None
    notes: tuple[str, ...]


def choose_rows(arrays: Mapping[str, NDArray[Any]], targets: Array, asked: Asked, has_class: NDArray[np.bool_] | None = None) -> Chosen:
    """The rows of a split, or some of them.

    Parameters
    ----------
    has_class : which rows there are at all; None for every row.

    Raises
    ------
    InputError : an absent or damaged split, more rows than there are, rows to draw in a file with 'task'.
    """
    n = len(targets)
    rows, notes = _rows_with_class(arrays, asked.split, n, has_class)
    if asked.held_out is True:
        if asked.split != "train":
            raise InputError(f"held_out = true takes the rows of the split 'test', so split must be 'train', not '{asked.split}'")
        tested = _rows_with_class(arrays, "test", n, has_class)[0]
        common = np.intersect1d(rows, tested)
        if len(common):
            raise InputError(f"held_out = true needs splits without common rows, but row {int(common[0])} is in both")
        held_out: NDArray[Any] | None = tested
        number = 0
    else:
        held_out, number = None, 0 if asked.held_out is False else asked.held_out
    if "task" in arrays and (asked.examples is not None or number):
        raise InputError("examples and a number of held_out rows are only for files without 'task'")
    drawn = sample(classes_of(targets[rows]), asked.examples, number, asked.seed, what="rows")
    if drawn is not None:
        notes = (*notes, drawn.note(len(rows), "rows", asked.seed))
        if number:
            held_out = rows[drawn.held_out]
        rows = rows[drawn.training]
    if asked.held_out is True and held_out is not None:
        notes = (*notes, f"The {len(held_out)} rows of the split 'test' are held out.")
    return Chosen(rows, held_out, notes)


def _rows_with_class(
    arrays: Mapping[str, NDArray[Any]], split: str, n: int, has_class: NDArray[np.bool_] | None
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Row numbers of a split, of the rows that there are."""
    rows, notes = _split_rows(arrays, split, n)
    if has_class is None or has_class[rows].all():
        return rows, notes
    kept = rows[has_class[rows]]
    if len(kept) == 0:
        raise InputError(f"no row of the split '{split}' has a class")
    return kept, (*notes, f"{len(kept)} of them have a class.") if notes else ()


def _split_rows(arrays: Mapping[str, NDArray[Any]], split: str, n: int) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Row numbers of a split."""
    if split == "all":
        return np.arange(n), ()
    name = f"{split}_idx"
    if name not in arrays:
        raise InputError(f"has no split '{split}': the array {name} is missing; use split = 'all'")
    rows = arrays[name]
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(f"{name} must be a vector of row numbers, but has shape {rows.shape} and type {rows.dtype}")
    if len(rows) == 0:
        raise InputError(f"{name} is empty: split '{split}' has no row")
    require_range(name, rows, n, "rows")
    return rows, (f"Only the {len(rows)} rows of the split '{split}' were used, of {n}.",)


def require_range(name: str, indices: NDArray[Any], size: int, what: str) -> None:
    """Raise InputError where an index is not one of `size`."""
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if len(wrong):
        place = int(wrong[0])
        raise InputError(f"{name} has {indices[place]} at position {place}, but there are {size} {what}, numbered from 0")
