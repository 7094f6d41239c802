"""The start of `interior_point`: strictly inside all bounds, in general with no residuals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.interior_point.equations import Equations

#: The share of the radius that is left at the start.
_SPARE = 0.1
#: theta at the start, relative to the smallest feasible one; the dual of a penalised form, relative to the largest feasible one.
_ABOVE, _BELOW = 1.2, 0.5
#: A penalised form may need a norm of this multiple of a step's, from zero.
_STEPS = 10.0


class Bounds(NamedTuple):
    """Where rows of W start: their bounds, and u, v, c and p, q, theta by `Layout`."""

    mu: Array
    slack: Array
    dual: Array
    scale: float
    """p - q is this multiple of G, at most 1."""


def bounds_at(equations: Equations, W: Array, extent: float, G: Array, full: Array) -> Bounds:
    """Return bounds of W (m x d) for rows that may grow by `extent` in all, and duals of them for G, or for a multiple of it.

    `full` is G at W = 0, which gives theta its size where G itself is 0.
    """
    mu = np.abs(W).max(axis=0) + (1.0 - _SPARE) * extent / W.shape[1]
    largest = float(np.abs(G).sum(axis=0).max())
    scale = 1.0
    if equations.penalty is None:
        theta = _ABOVE * (largest if largest > 0.0 else float(np.abs(full).sum(axis=0).max()))
    else:
        theta = equations.penalty
        scale = min(1.0, _BELOW * theta / largest) if largest > 0.0 else 1.0
        G = scale * G
    spare = (theta - np.abs(G).sum(axis=0)) / (2.0 * len(W))
    p, q = np.maximum(G, 0.0) + spare, np.maximum(-G, 0.0) + spare
    slack, dual = [(mu - W).ravel(), (mu + W).ravel()], [p.ravel(), q.ravel()]
    if equations.radius is not None:
        slack.append(np.array([equations.radius - mu.sum()]))
        dual.append(np.array([theta]))
    return Bounds(mu, np.concatenate(slack), np.concatenate(dual), scale)


def radius_or(equations: Equations, step: float) -> float:
    """Return the radius; for a penalised form a guess at the norm of the optimum by that of a step from zero, at most f(0) / penalty."""
    if equations.radius is not None:
        return equations.radius
    assert equations.penalty is not None
    return min(equations.scale / equations.penalty, _STEPS * step)
