"""Classes made of sets of labels, and the rows that have one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array

FORM = "single or sets:K, with K a whole number of at least 2"
_NAMED = 12


class Classes(NamedTuple):
    """Classes of some rows."""

    targets: Array
    """n x K: in the rows that have a class +1 for it and -1 for the others, meaningless elsewhere."""
    has_class: NDArray[np.bool_]
    """n: which rows have one."""
    notes: tuple[str, ...]


def number_of_sets(classes: Any) -> int | None:
    """Return K for ``"sets:K"``, None for ``"single"``."""
    if classes == "single":
        return None
    if isinstance(classes, str):
        family, _, digits = classes.partition(":")
        if family == "sets" and digits.isascii() and digits.isdigit() and int(digits) >= 2:
            return int(digits)
    raise InputError(f"classes must be {FORM}, not {classes!r}")


def classes_of_labels(labels: Array, n_sets: int | None) -> Classes:
    """Make the labels classes of the rows with exactly one of them, or make the `n_sets` most frequent sets of labels classes.

    Parameters
    ----------
    labels : n x m, -1/+1.
    """
    return _single(labels) if n_sets is None else _sets(labels, n_sets)


def _single(labels: Array) -> Classes:
    n, m = labels.shape
    alone = np.count_nonzero(labels == 1.0, axis=1) == 1
    used = np.flatnonzero((labels[alone] == 1.0).any(axis=0))
    if len(used) < 2:
        raise InputError(f"classes = 'single' needs at least 2 labels that some row has alone, but of {m} label(s) {len(used)} are such")
    note = f"{np.count_nonzero(alone)} of {n} rows have exactly one label and were kept."
    if len(used) < m:
        note += f" {m - len(used)} of {m} labels were dropped: no row has one of them alone."
    return Classes(labels[:, used], alone, (note,))


def _sets(labels: Array, wanted: int) -> Classes:
    n = len(labels)
    different, first, number, counts = np.unique(labels == 1.0, axis=0, return_index=True, return_inverse=True, return_counts=True)
    if wanted > len(different):
        raise InputError(f"classes = 'sets:{wanted}' asks for more than the {len(different)} different sets of labels there are")
    chosen = np.lexsort((first, -counts))[:wanted]
    targets = np.where(number.reshape(n, 1) == chosen, 1.0, -1.0)
    kept = (targets == 1.0).any(axis=1)
    names = ", ".join("{" + ", ".join(map(str, np.flatnonzero(row))) + "}" for row in different[chosen[:_NAMED]])
    note = (
        f"The {wanted} most frequent of {len(different)} sets of labels became classes, {names}{', ...' if wanted > _NAMED else ''}; "
        f"{np.count_nonzero(kept)} of {n} rows were kept."
    )
    return Classes(targets, kept, (note,))


def missing_classes(targets: Array) -> tuple[str, ...]:
    """Return a note that names the classes without a row, or nothing."""
    missing = np.flatnonzero(~(targets == 1.0).any(axis=0))
    if not len(missing):
        return ()
    return (f"No training row has class {', '.join(map(str, missing))} (numbered from 0).",)
