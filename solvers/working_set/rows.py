"""Interior points on some rows of a problem under an l1,inf norm: how a point goes from one set of rows to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array
from bench_mtl.solvers.interior_point.equations import Equations, State

Rows = NDArray[np.intp]
#: The root of a row's equation is found to this relative accuracy, within so many Newton steps, which converge from the right.
_ACCURACY, _STEPS = 1e-10, 40


def moved(x: State, old: Equations, rows: Rows, new: Equations, chosen: Rows, G: Array) -> State:
    """Return x, a point on `rows`, as one on `chosen`.

    A row that stays keeps its numbers, one that leaves takes them along, and one that joins begins on the central path, where its dual
    row is `G` (d x m, of the whole problem) and its products of slacks and duals are the average of x. All that this leaves amiss are
    residuals, which an infeasible interior-point method removes.
    """
    stays = np.isin(chosen, rows, assume_unique=True)
    places = np.searchsorted(rows, chosen[stays])
    m, size = len(x.W), len(chosen)
    W, mu = np.empty((m, size)), np.empty(size)
    slack, dual = np.empty(new.layout.size), np.empty(new.layout.size)
    joining = central_rows(G[chosen[~stays]].T, old.theta(x), x.gap / x.slack.size, old.highest_norm)
    W[:, stays], mu[stays] = x.W[:, places], x.mu[places]
    W[:, ~stays], mu[~stays] = joining.W, joining.mu
    bounds = (*new.layout.bounds(slack), *new.layout.bounds(dual))
    before = (*old.layout.bounds(x.slack), *old.layout.bounds(x.dual))
    begun = (joining.slack[0], joining.slack[1], joining.dual[0], joining.dual[1])
    for part, kept, fresh in zip(bounds, before, begun, strict=True):
        part[:, stays], part[:, ~stays] = kept[:, places], fresh
    for vector, source in ((slack, x.slack), (dual, x.dual)):
        vector[new.layout.examples] = source[old.layout.examples]
        vector[new.layout.features.stop :] = source[old.layout.features.stop :]
    return State(W, mu, slack, dual, x.free, x.b)


def central_rows(G: Array, level: float, product: float, highest: float) -> State:
    """Return rows of W on the central path at their dual rows: u p = v q = `product`, p - q = G, sum_k (p + q)_k = `level`.

    G is m x r, a column a row of W. One whose sum of moduli is above the share `highest` of the level is scaled down to it. With
    p + q = s + sqrt(s^2 + G^2) the last equation gives s > 0, and mu = product / s. `slack` and `dual` of the
    state are (u, v) and (p, q), 2 x m x r.
    """
    magnitudes = np.abs(G)
    norms = magnitudes.sum(axis=0)
    highest *= level
    factors = np.where(norms > highest, highest / np.where(norms > 0.0, norms, 1.0), 1.0)
    magnitudes = magnitudes * factors
    # Convex and increasing in s, and not below 0 here.
    s = (level - factors * norms) / len(G)
    for _ in range(_STEPS):
        roots = np.hypot(s, magnitudes)
        slopes = (1.0 + s / np.where(roots > 0.0, roots, 1.0)).sum(axis=0)
        change = ((s + roots).sum(axis=0) - level) / slopes
        s = np.maximum(s - change, 1e-3 * s)
        if np.all(np.abs(change) <= _ACCURACY * s):
            break
    roots = np.hypot(s, magnitudes)
    large = 0.5 * (s + roots + magnitudes)
    small = 0.5 * s * (1.0 + s / (roots + magnitudes))  # (s + roots - magnitudes) / 2 without cancellation
    dual = np.where(G >= 0.0, np.stack([large, small]), np.stack([small, large]))
    slack = product / dual
    return State(0.5 * (slack[1] - slack[0]), product / s, slack, dual)
