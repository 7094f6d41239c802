"""The start of `interior_point`: strictly inside all bounds, in general with no residuals."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.interior_point.equations import Equations, State

#: The share of the radius that is left at the start, and that a given point is moved towards zero.
_SPARE, _RETREAT = 0.1, 0.1
#: theta at the start, relative to the smallest feasible one; the dual of a penalised form, relative to the largest feasible one.
_ABOVE, _BELOW = 1.2, 0.5
#: But no smaller than this share of the duals that suit the margins; below, there is a residual.
_LEAST_BELOW = 0.1


def starting_point(equations: Equations, W: Array) -> State | None:
    """A point near W (m x d) that meets all linear equations; None where the data are so that W = 0 is optimal.

    With a small penalty p - q = G is missed. All products of examples, r a and xi b, start equal to s_k times the same number.
    """
    system, labels, weights = equations.system, equations.labels, equations.weights
    full = system.adjoint(labels * weights)
    if not full.any():
        return None
    given = bool(W.any())
    retreat = _RETREAT if given else 1.0
    W = (1.0 - retreat) * W
    mu = np.abs(W).max(axis=0) + retreat * (1.0 - _SPARE) * _extent(equations, full) / W.shape[1]
    short = 1.0 - labels * system.forward(W)
    # xi r = width^2 and xi - r = 1 - margin; a / b = xi / r then gives r a = xi b.
    width = retreat if given else 1.0
    root = np.hypot(short, 2.0 * width)
    xi = np.where(short > 0.0, 0.5 * (short + root), 2.0 * width**2 / (root - short))
    r = width**2 / xi
    a = weights * (xi / (xi + r))
    G = system.adjoint(labels * a)
    largest = float(np.abs(G).sum(axis=0).max())
    if equations.penalty is None:
        theta = _ABOVE * (largest if largest > 0.0 else float(np.abs(full).sum(axis=0).max()))
    else:
        theta = equations.penalty
        scale = min(1.0, _BELOW * theta / largest) if largest > 0.0 else 1.0
        # Duals far from the centre of their box would be worse than a residual, which the first steps remove.
        a, G = max(scale, _LEAST_BELOW) * a, scale * G
    spare = (theta - np.abs(G).sum(axis=0)) / (2.0 * len(W))
    p, q = np.maximum(G, 0.0) + spare, np.maximum(-G, 0.0) + spare
    slack, dual = [r, xi, (mu - W).ravel(), (mu + W).ravel()], [a, weights - a, p.ravel(), q.ravel()]
    if equations.radius is not None:
        slack.append(np.array([equations.radius - mu.sum()]))
        dual.append(np.array([theta]))
    return State(W, mu, np.concatenate(slack), np.concatenate(dual))


def _extent(equations: Equations, full: Array) -> float:
    """The radius; for a penalised form a guess at the norm of the optimum, at most sum(s) / penalty.

    The guess is ten Polyak steps from zero, whose gradient is -`full`.
    """
    if equations.penalty is None:
        assert equations.radius is not None
        return equations.radius
    total = float(equations.weights.sum())
    largest = float(np.abs(full).max())
    scaled = full / largest
    polyak = total / largest / float((scaled**2).sum()) * float(np.abs(scaled).max(axis=0).sum())
    return min(total / equations.penalty, 10.0 * polyak)
