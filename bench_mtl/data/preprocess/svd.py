"""The step svd:K."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.preprocess.step import Fitted, Step, whole_numbers

FORM = "svd:K"
_SMALL_SVD = 1000


def svd(name: str) -> Step:
    """Return the step of that name; InputError where K is missing, or no whole number of at least 1."""
    (k,) = whole_numbers(name, FORM, (1,))
    return lambda data, X: _basis(X, k)


def _basis(X: Matrix, k: int) -> Fitted:
    smaller = min(X.shape)
    if k > smaller:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most min(rows, features) = {smaller}")
    directions, rank = _right_singular(X, k)
    if rank < k:
        raise InputError(f"preprocessing step 'svd:{k}': K must be at most the rank of the data, {rank}")
    note = f"Features were replaced by their {k} leading singular directions (uncentred), of {X.shape[1]}."
    return Fitted(lambda rows: np.asarray(rows @ directions.T), note, keeps_features=False)


def _right_singular(X: Matrix, k: int) -> tuple[Array, int]:
    """Return the k leading right singular vectors as rows, and how many of them belong to non-zero singular values.

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
