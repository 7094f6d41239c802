"""Weights of examples: rows whose fit without weights is the weighted one, so that its proof is the proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix

#: Examples that repetitions may make at most.
_MOST_REPEATED = 10_000_000


def of_positive_weight(X: Matrix, y: NDArray[Any], sample_weight: Any, name: str) -> tuple[Matrix, NDArray[Any], Array | None]:
    """Return the examples of weight above 0, and their weights; all examples and None where `sample_weight` is None.

    Parameters
    ----------
    X, y : examples x features, and a target (or a row of them) for each example
    sample_weight : a number of at least 0 for each example
    name : how messages call the weights

    Raises
    ------
    InputError : weights that are negative, not finite, not as many as examples, or all zero.
    """
    if sample_weight is None:
        return X, y, None
    try:
        weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise InputError(f"{name} must not be all zero")
    return X[kept], y[kept], weights[kept]


def scaled(X: Matrix, y: Array, weights: Array, reduction: str) -> tuple[Matrix, Array]:
    """Return rows and targets times the root of their weight: sum w (y - x.v)^2 is the sum of the squares of these.

    For the reduction "mean" the weights are made to have mean 1.
    """
    roots = np.sqrt(weights / weights.mean() if reduction == "mean" else weights)
    rows = sp.csr_array(X).multiply(roots[:, None]).tocsr() if is_sparse(X) else X * roots[:, None]
    return rows, y * (roots if y.ndim == 1 else roots[:, None])


def are_counts(weights: Array) -> bool:
    """Whether `repeated` takes them."""
    return bool(np.all(weights == np.floor(weights)) and weights.sum() <= _MOST_REPEATED)


def repeated(X: Matrix, y: Array, weights: Array, loss: str, name: str) -> tuple[Matrix, Array]:
    """Return every example as often as its weight says, which is exact for any loss; weights are whole numbers.

    Parameters
    ----------
    loss, name : how messages call the loss and the weights

    Raises
    ------
    InputError : a weight that is no whole number, or so many repetitions that they would not fit into memory.
    """
    odd = weights[weights != np.floor(weights)]
    if len(odd):
        raise InputError(f"{name} must be whole numbers with the loss '{loss}' (only squares take any weights), but one is {odd[0]:g}")
    total = float(weights.sum())
    if total > _MOST_REPEATED:
        raise InputError(f"{name} must add up to at most {_MOST_REPEATED:,} with the loss '{loss}', not to {total:.3g}")
    rows = np.repeat(np.arange(len(weights)), weights.astype(np.intp))
    return X[rows], y[rows]
