"""Preprocessing by name. Statistics are pooled over the rows of all tasks, so that tasks keep common features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.checks import require_finite
from bench_mtl.data.task_data import TaskData
from bench_mtl.errors import InputError, unknown
from bench_mtl.linops import PerTaskDesign, SharedDesign
from bench_mtl.types import Array, Matrix

_SMALL_SVD = 1000
_SVD_FORM = "svd:K"


class _Step(NamedTuple):
    transform: Callable[[Matrix], tuple[Matrix, str]]
    """Pooled rows to transformed rows, and a sentence that says what was done."""
    keeps_signs: bool
    """Whether sign(x . w) stays the same for every row x and every w."""


def preprocess(data: TaskData, steps: Sequence[str]) -> TaskData:
    """`data` with the named steps applied to its features, in order.

    ============== ===================================================================================================
    ``none``        nothing
    ``unit_rows``   every row scaled to Euclidean length 1; zero rows stay zero
    ``standardise`` every feature to mean 0 and (population) standard deviation 1; constant features become 0. CSR is only
                    scaled, not centred, so that it stays sparse; its constant features keep their values
    ``tfidf``       counts times log((1 + n) / (1 + rows with the word)) + 1, rows not normalised (add ``unit_rows``)
    ``svd:K``       coordinates X V in the K leading right singular directions V of the uncentred rows; dense
    ============== ===================================================================================================

    Statistics are those of all rows of all tasks together. Each step but ``none`` adds a sentence to `notes`. `truth`
    belongs to the features as they were, so it is dropped, except by ``unit_rows`` on -1/+1 labels, which W still gives.

    Parameters
    ----------
    data : tasks with shared or per-task designs, dense or CSR.
    steps : names, in order.

    Raises
    ------
    InputError : an unknown name, a K that is no whole number from 1 to the rank, negative counts, overflow.
    """
    for step in [steps] if isinstance(steps, str) else steps:
        data = _apply(data, step)
    return data


def _apply(data: TaskData, name: str) -> TaskData:
    step = _named(name)
    if step is None:
        return data
    with np.errstate(all="ignore"):  # overflow is refused by name below
        rows, note = step.transform(_pooled(data))
    require_finite(f"X after preprocessing step '{name}'", rows.data if isinstance(rows, sp.csr_array) else rows)
    notes = [*data.notes, note]
    keeps_truth = step.keeps_signs and bool(np.all(np.abs(data.targets) == 1.0))
    if data.truth and not keeps_truth:
        notes.append(f"The true coefficients do not belong to the features after '{name}' and were dropped.")
    return replace(data, design=_split(data, rows), truth=data.truth if keeps_truth else {}, notes=tuple(notes))


def _named(name: str) -> _Step | None:
    if not isinstance(name, str):
        raise InputError(f"preprocess must be names of steps, not {name!r}")
    if name == "none":
        return None
    if name in _STEPS:
        return _STEPS[name]
    if name == "svd" or name.startswith("svd:"):
        digits = name.removeprefix("svd").removeprefix(":")
        if not (digits.isascii() and digits.isdigit()) or int(digits) == 0:
            raise InputError(f"preprocessing step '{name}': K in {_SVD_FORM} must be a whole number of at least 1, e.g. svd:50")
        return _Step(lambda X: _svd_basis(X, int(digits)), keeps_signs=False)
    raise unknown("preprocessing step", name, ["none", *_STEPS, _SVD_FORM])


def _unit_rows(X: Matrix) -> tuple[Matrix, str]:
    # By the largest entry first: squares of very large or very small entries would overflow or vanish.
    largest = _vector(abs(X).max(axis=1) if isinstance(X, sp.csr_array) else np.abs(X).max(axis=1))
    scaled = _rows_divided(X, largest)
    squares = scaled.multiply(scaled) if isinstance(scaled, sp.csr_array) else np.square(scaled)
    unit = _rows_divided(scaled, np.sqrt(_vector(squares.sum(axis=1))))
    empty = int(np.count_nonzero(largest == 0.0))
    return unit, "Every row was scaled to unit length" + (f"; {empty} zero row(s) stayed zero." if empty else ".")


def _rows_divided(X: Matrix, lengths: Array) -> Matrix:
    """Every row over its length; rows of length 0 as they are."""
    divisors = np.where(lengths == 0.0, 1.0, lengths)
    if not isinstance(X, sp.csr_array):
        return np.asarray(X / divisors[:, None])
    return sp.csr_array((X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def _vector(values: Any) -> Array:
    """A row or column, perhaps sparse, as a vector."""
    return np.asarray(values.toarray() if isinstance(values, sp.coo_array) else values, dtype=np.float64).ravel()


def _standardise(X: Matrix) -> tuple[Matrix, str]:
    from sklearn.preprocessing import StandardScaler

    sparse = isinstance(X, sp.csr_array)
    rows = StandardScaler(with_mean=not sparse).fit_transform(X)
    constant = _vector(X.max(axis=0)) == _vector(X.min(axis=0))
    count = int(np.count_nonzero(constant))
    if sparse:
        note = "Features were scaled to unit standard deviation, and not centred, so that they stay sparse"
        return sp.csr_array(rows), note + (f"; {count} constant feature(s) stayed as they are." if count else ".")
    rows[:, constant] = 0.0  # subtracting a rounded mean leaves rounding errors
    note = "Features were standardised to mean 0 and standard deviation 1"
    return np.asarray(rows), note + (f"; {count} constant feature(s) became 0." if count else ".")


def _tfidf(X: Matrix) -> tuple[Matrix, str]:
    from sklearn.feature_extraction.text import TfidfTransformer

    values = np.asarray(X.data if isinstance(X, sp.csr_array) else X)
    if values.size and values.min() < 0.0:
        raise InputError(f"preprocessing step 'tfidf' needs counts of at least 0, but X has {values.min():g}")
    counts = sp.csr_array(X, copy=True)
    counts.eliminate_zeros()  # a stored zero would count as a row with the word
    weighted = sp.csr_array(TfidfTransformer(norm=None).fit_transform(counts))
    rows: Matrix = weighted if isinstance(X, sp.csr_array) else weighted.toarray()
    return rows, "Counts were weighted by inverse document frequency (smoothed; rows were not normalised)."


def _svd_basis(X: Matrix, k: int) -> tuple[Matrix, str]:
    smaller = min(X.shape)
    if k > smaller:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most min(rows, features) = {smaller}")
    directions, rank = _right_singular(X, k)
    if rank < k:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most the rank of the data, {rank}")
    return np.asarray(X @ directions.T), f"Features were replaced by their {k} leading singular directions (uncentred), of {X.shape[1]}."


def _right_singular(X: Matrix, k: int) -> tuple[Array, int]:
    """The k leading right singular vectors as rows, and how many of them belong to non-zero singular values.

    Each vector's entry of largest size is positive, so that the result does not depend on the algorithm's choice.
    """
    import scipy.sparse.linalg as spla

    smaller = min(X.shape)
    largest_entry = float(np.abs(X.data if isinstance(X, sp.csr_array) else X).max(initial=0.0))
    if largest_entry == 0.0:
        return np.zeros((k, X.shape[1])), 0
    if smaller <= _SMALL_SVD or k == smaller:
        _, s, Vt = np.linalg.svd(X.toarray() if isinstance(X, sp.csr_array) else X, full_matrices=False)
        negligible = float(s[0]) * max(X.shape) * np.finfo(np.float64).eps
    else:
        _, s, Vt = spla.svds(X / largest_entry, k=k, v0=np.ones(smaller))
        s, Vt = s[::-1], Vt[::-1]
        # This method squares the matrix, so smaller singular values than this are rounding.
        negligible = float(s[0]) * np.sqrt(max(X.shape) * np.finfo(np.float64).eps)
    Vt = Vt[:k]
    signs = np.sign(Vt[np.arange(k), np.argmax(np.abs(Vt), axis=1)])
    return Vt * signs[:, None], int(np.count_nonzero(s[:k] > negligible))


def _pooled(data: TaskData) -> Matrix:
    """The rows of all tasks; those of a shared design once."""
    if data.design.is_shared:
        return data.design.block(0)
    blocks = [data.design.block(k) for k in range(data.n_tasks)]
    if data.design.is_sparse:
        return sp.csr_array(sp.vstack([sp.csr_array(block) for block in blocks], format="csr"))
    return np.concatenate([np.asarray(block) for block in blocks])


def _split(data: TaskData, rows: Matrix) -> SharedDesign | PerTaskDesign:
    """A design like that of `data` over other rows, as many as `_pooled` gives."""
    if data.design.is_shared:
        return SharedDesign(rows, data.n_tasks)
    ends = np.cumsum(data.design.sizes)
    return PerTaskDesign([rows[end - size : end] for end, size in zip(ends, data.design.sizes, strict=True)])


_STEPS = {
    "unit_rows": _Step(_unit_rows, keeps_signs=True),
    "standardise": _Step(_standardise, keeps_signs=False),
    "tfidf": _Step(_tfidf, keeps_signs=False),
}
