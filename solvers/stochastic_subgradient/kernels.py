"""Steps that look at a few examples alone: hinge subgradients of single rows of a dense or CSR design, and counts of what they hit."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import exact, reordered


@reordered
def dense_hinge_step(X: Any, places: Any, chosen: Any, labels: Any, scales: Any, step_size: float, W: Any, hits: Any) -> float:
    """W <- W - step_size * sum_b g_b, g_b a subgradient at W of scales_i max(0, 1 - labels_i x_i.w_k) for example i = chosen_b.

    Returns the sum of those losses at the old W.

    Parameters
    ----------
    places : row of X and task of every example, 2 x n
    hits : where to write whether the margin of chosen_b is below 1
    """
    loss = 0.0
    for b in range(chosen.size):
        i = chosen[b]
        x, k = X[places[0, i]], places[1, i]
        product = 0.0
        for j in range(x.size):
            product += x[j] * W[j, k]
        slack = 1.0 - labels[i] * product
        hits[b] = 1.0 if slack > 0.0 else 0.0
        loss += scales[i] * slack * hits[b]
    for b in range(chosen.size):
        if hits[b] > 0.0:
            i = chosen[b]
            x, k = X[places[0, i]], places[1, i]
            factor = step_size * scales[i] * labels[i]
            for j in range(x.size):
                W[j, k] += factor * x[j]
    return loss


@reordered
def sparse_hinge_step(
    data: Any, indices: Any, indptr: Any, places: Any, chosen: Any, labels: Any, scales: Any, step_size: float, W: Any, hits: Any
) -> float:
    """`dense_hinge_step` for a CSR design."""
    loss = 0.0
    for b in range(chosen.size):
        i = chosen[b]
        row, k = places[0, i], places[1, i]
        product = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            product += data[p] * W[indices[p], k]
        slack = 1.0 - labels[i] * product
        hits[b] = 1.0 if slack > 0.0 else 0.0
        loss += scales[i] * slack * hits[b]
    for b in range(chosen.size):
        if hits[b] > 0.0:
            i = chosen[b]
            row, k = places[0, i], places[1, i]
            factor = step_size * scales[i] * labels[i]
            for p in range(indptr[row], indptr[row + 1]):
                W[indices[p], k] += factor * data[p]
    return loss


@exact
def count_hits(visited: Any, hit: Any, chosen: Any, hits: Any, weight: float) -> None:
    """Adds `weight` to what was visited and to what was hit."""
    for b in range(chosen.size):
        visited[chosen[b]] += weight
        hit[chosen[b]] += weight * hits[b]
