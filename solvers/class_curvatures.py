"""Second derivatives of the multiclass loss: diag(s) - s s^T / w in every row, with s = w p, p the probabilities of the classes."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array


def class_products(shares: Array, weights: Array, R: Array) -> Array:
    """Return the second derivatives s (n x m) times R, row by row."""
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
