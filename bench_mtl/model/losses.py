"""Loss functions of margins or residuals: values, slopes and what their conjugates demand of a dual point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench_mtl.core.types import Array


def hinge(margins: Array) -> Array:
    """max(0, 1 - margin), entry by entry."""
    return np.maximum(0.0, 1.0 - margins)


def hinge_dual(margins: Array) -> Array:
    """The a in [0, 1] with hinge(t) = max_a a (1 - t) attained at t = margin: 1 below margin 1, else 0.

    Minus this is a subgradient of the hinge. The conjugate term of the saddle form is sum(a) on the box [0, 1].
    """
    return np.asarray(margins < 1.0, dtype=np.float64)


def half_squared(residuals: Array) -> float:
    """1/2 sum of squares."""
    flat = residuals.ravel()
    return 0.5 * float(flat @ flat)


def logistic_dual(margins: Array) -> Array:
    """1 / (1 + exp(margin)): minus the slope of the logistic loss, the a in [0, 1] with log(1 + exp(-t)) = max_a H(a) - a t."""
    return np.exp(-np.logaddexp(0.0, margins))


def entropy(p: Array) -> Array:
    """-p log p, entry by entry, for p >= 0."""
    from scipy.special import entr

    return np.asarray(entr(p))


def binary_entropies(p: Array) -> Array:
    """-p log p - (1 - p) log(1 - p), entry by entry, for p in [0, 1]."""
    return entropy(p) + entropy(1.0 - p)


def soft_max(scores: Array) -> Array:
    """exp(scores) over its sum, row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def log_sum_exp(scores: Array) -> Array:
    """log sum exp of every row."""
    highest = scores.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(scores - highest).sum(axis=1)) + highest[:, 0])


def highest_on_segment(value: Callable[[float], float], slope: Callable[[float], float], limit: float) -> float:
    """max value(c) over c in [0, limit], for a concave function with this slope and with value(0) = 0.

    Where the value is a lower bound for every c, any c gives one; the root of the slope is only the best.
    """
    from scipy.optimize import brentq

    low = limit * 1e-12
    if limit <= 0.0 or slope(low) <= 0.0:
        return 0.0
    c = limit if slope(limit) >= 0.0 else float(brentq(slope, low, limit, xtol=1e-14 * limit, rtol=1e-13))
    return max(0.0, value(c))
