"""Steps that scale rows or features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.preprocess.step import Fitted
from bench_mtl.model.task_data import TaskData


def unit_rows(data: TaskData, X: Matrix) -> Fitted:
    """Divide every row by its Euclidean length; zero rows stay as they are."""
    empty = int(np.count_nonzero(_largest(X) == 0.0))
    note = "Every row was scaled to unit length" + (f"; {empty} zero row(s) stayed zero." if empty else ".")
    return Fitted(_unit, note, keeps_signs=True)


def standardise(data: TaskData, X: Matrix) -> Fitted:
    """Scale every feature to mean 0 (unless sparse) and standard deviation 1."""
    from sklearn.preprocessing import StandardScaler

    sparse = isinstance(X, sp.csr_array)
    scaler = StandardScaler(with_mean=not sparse).fit(X)
    constant = _vector(X.max(axis=0)) == _vector(X.min(axis=0))
    count = int(np.count_nonzero(constant))

    def transform(rows: Matrix) -> Matrix:
        scaled = scaler.transform(rows)
        if sparse:
            return sp.csr_array(scaled)
        scaled[:, constant] = 0.0  # subtracting a rounded mean leaves rounding errors
        return np.asarray(scaled)

    if sparse:
        note = "Features were scaled to unit standard deviation, and not centred, so that they stay sparse"
        return Fitted(transform, note + (f"; {count} constant feature(s) stayed as they are." if count else "."))
    note = "Features were standardised to mean 0 and standard deviation 1"
    return Fitted(transform, note + (f"; {count} constant feature(s) became 0." if count else "."))


def tfidf(data: TaskData, X: Matrix) -> Fitted:
    """Counts times inverse document frequencies."""
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(norm=None).fit(_counts(X))

    def transform(rows: Matrix) -> Matrix:
        weighted = sp.csr_array(weights.transform(_counts(rows)))
        return weighted if isinstance(rows, sp.csr_array) else weighted.toarray()

    return Fitted(transform, "Counts were weighted by inverse document frequency (smoothed; rows were not normalised).")


def _counts(X: Matrix) -> sp.csr_array:
    values = np.asarray(X.data if isinstance(X, sp.csr_array) else X)
    if values.size and values.min() < 0.0:
        raise InputError(f"preprocessing step 'tfidf' needs counts of at least 0, but X has {values.min():g}")
    counts = sp.csr_array(X, copy=True)
    counts.eliminate_zeros()  # a stored zero would count as a row with the word
    return counts


def _unit(X: Matrix) -> Matrix:
    # By the largest entry first: squares of very large or very small entries would overflow or vanish.
    scaled = _rows_divided(X, _largest(X))
    squares = scaled.multiply(scaled) if isinstance(scaled, sp.csr_array) else np.square(scaled)
    return _rows_divided(scaled, np.sqrt(_vector(squares.sum(axis=1))))


def _largest(X: Matrix) -> Array:
    """Return the largest absolute value of every row."""
    return _vector(abs(X).max(axis=1) if isinstance(X, sp.csr_array) else np.abs(X).max(axis=1))


def _rows_divided(X: Matrix, lengths: Array) -> Matrix:
    """Divide every row by its length; rows of length 0 stay as they are."""
    divisors = np.where(lengths == 0.0, 1.0, lengths)
    if not isinstance(X, sp.csr_array):
        return np.asarray(X / divisors[:, None])
    return sp.csr_array((X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def _vector(values: Any) -> Array:
    """Return a row or column, perhaps sparse, as a vector."""
    return np.asarray(values.toarray() if isinstance(values, sp.coo_array) else values, dtype=np.float64).ravel()
