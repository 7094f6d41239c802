"""Norms of matrices of coefficients: what problems constrain or penalise."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array


def l1inf_vertex(direction: Array, radius: float) -> Array:
    """argmin <direction, W> subject to sum_j max_k |W_jk| <= radius.

    W_j = -radius sign(direction_j) in the row j of `direction` with the largest l1 norm, all else 0.
    """
    vertex = np.zeros(direction.shape)
    row = int(np.abs(direction).sum(axis=1).argmax())
    vertex[row] = np.where(direction[row] > 0.0, -radius, radius)
    return vertex
