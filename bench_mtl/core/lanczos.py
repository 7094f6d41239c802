"""The largest eigenvalue of a matrix that is known by its products alone, in as few of them as its use as a step size allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench_mtl.core.types import Array

#: Products at most. Every vector is kept, and orthogonal to all others.
_MOST_PRODUCTS = 100


def largest_eigenvalue(product: Callable[[Array], Array], start: Array, error: float) -> tuple[float, Array]:
    """Return what is at least the largest eigenvalue of a symmetric positive semidefinite matrix A, and at most a share `error` above it.

    Lanczos' method finds a Ritz pair with a residual of this share at most; some eigenvalue is no further from the Ritz value. That it is
    the largest one is as good as certain from a random start, yet not proven.

    Parameters
    ----------
    product : v -> A v
    start : a vector with a random part
    error : how far from an eigenvalue the Ritz value may be, relative to it

    Returns
    -------
    The Ritz value and its residual together, and the Ritz vector, of norm 1.
    """
    vectors = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    while True:
        image = product(vectors[-1])
        diagonal.append(float(vectors[-1] @ image))
        basis = np.array(vectors)
        for _ in range(2):  # once loses orthogonality where a Ritz value is converging
            image = image - basis.T @ (basis @ image)
        length = float(np.linalg.norm(image))
        values, pairs = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, -1))  # of the lower triangle
        value, weights = max(0.0, float(values[-1])), pairs[:, -1]
        residual = length * abs(float(weights[-1]))
        if residual <= error * value or length == 0.0 or len(vectors) == min(len(start), _MOST_PRODUCTS):
            return value + residual, basis.T @ weights
        beside.append(length)
        vectors.append(image / length)
