"""The largest eigenvalue of a matrix that is known by its products alone, in as few of them as its use as a step size allows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bench_mtl.core.types import Array

#: Products at most. Every vector is kept, and orthogonal to all others.
_MOST_PRODUCTS = 40
#: With every product the part of an eigenvalue a quarter above all others grows by e to this power (a Chebyshev polynomial at 1.5).
_GROWTH = math.acosh(1.5)
#: How many times as large as the rest of a start its part along the leading vector has to become.
_CLEAR = 20.0
#: A residual of this share of the Ritz value is rounding: products have nothing more to say.
_EXHAUSTED = 1e-8


def largest_eigenvalue(product: Callable[[Array], Array], start: Array, tolerance: float) -> tuple[float, Array]:
    """Return an estimate of the largest eigenvalue of a symmetric positive semidefinite matrix A, mostly a little above it.

    Lanczos' method finds a Ritz pair whose residual is at most `tolerance` of the Ritz value: some eigenvalue is as near. A random start
    has a part of about 1/sqrt(d) along the leading vector, which residuals do not show at first. So the test counts from as many products
    on as an eigenvalue a quarter above all others needs to stand out. One that is less far above may be missed: the result is then too
    small, by a fifth at most.

    Parameters
    ----------
    product : v -> A v
    start : a vector of length d with a random part
    tolerance : how far from an eigenvalue the Ritz value may be, relative to it

    Returns
    -------
    The Ritz value and its residual together, and the Ritz vector, of norm 1.
    """
    most = min(len(start), _MOST_PRODUCTS)
    fewest = min(most, 1 + math.ceil(math.log(_CLEAR * math.sqrt(len(start))) / _GROWTH))
    basis = np.empty((most, len(start)))
    basis[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    while True:
        vectors = basis[: len(diagonal) + 1]
        image = product(vectors[-1])
        diagonal.append(float(vectors[-1] @ image))
        for _ in range(2):  # once loses orthogonality where a Ritz value is converging
            image = image - vectors.T @ (vectors @ image)
        length = float(np.linalg.norm(image))
        values, eigenvectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal, -1))  # of the lower triangle
        value, weights = max(0.0, float(values[-1])), eigenvectors[:, -1]
        residual = length * abs(float(weights[-1]))
        is_near = residual <= tolerance * value and len(vectors) >= fewest
        if is_near or length <= _EXHAUSTED * value or len(vectors) == most:
            return value + residual, vectors.T @ weights
        off_diagonal.append(length)
        basis[len(vectors)] = image / length
