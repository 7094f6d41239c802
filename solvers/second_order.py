"""What methods of second order share: systems by a Cholesky factor, and second derivatives of the multiclass loss."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bench_mtl.core.types import Array


def solved(H: Array, b: Array, shift: float | Array) -> Array | None:
    """Return (H + diag(shift))^-1 b; None where H + diag(shift) cannot be factorised. H changes, and only its upper half is read."""
    if not len(H):
        return b
    H[np.diag_indices_from(H)] += shift
    try:
        return np.asarray(cho_solve(cho_factor(H, overwrite_a=True, check_finite=False), b, check_finite=False))
    except LinAlgError:
        return None


def class_products(shares: Array, weights: Array, R: Array) -> Array:
    """Return the second derivatives of the multiclass loss times R, row by row: diag(s) - s s^T / w with the shares s = w p, n x m, p the
    probabilities of the classes."""
    return np.asarray(shares * (R - (shares * R).sum(axis=1, keepdims=True) / weights))


def class_gram(blocks: list[Array], shares: Array, weights: Array) -> Array:
    """Return M^T C M with the second derivatives C, for columns M of which each is in one class; `blocks` are those of every class."""
    weighted = [s[:, None] * M for s, M in zip(shares.T, blocks, strict=True)]
    mixed = np.hstack(weighted) / np.sqrt(weights)
    total, start = -(mixed.T @ mixed), 0
    for M, other in zip(blocks, weighted, strict=True):
        own = slice(start, start + M.shape[1])
        total[own, own] += M.T @ other
        start = own.stop
    return np.asarray(total)
