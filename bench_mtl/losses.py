"""Loss functions of margins or residuals: values, slopes and what their conjugates demand of a dual point."""

from __future__ import annotations

import numpy as np

from bench_mtl.types import Array


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


def logistic(margins: Array) -> float:
    """sum log(1 + exp(-margin)), without overflow."""
    return float(np.logaddexp(0.0, -margins).sum())


def logistic_dual(margins: Array) -> Array:
    """1 / (1 + exp(margin)): minus the slope of the logistic loss, the a in [0, 1] with log(1 + exp(-t)) = max_a H(a) - a t."""
    return np.exp(-np.logaddexp(0.0, margins))


def binary_entropy(a: Array) -> float:
    """sum H(a) with H(a) = -a log a - (1 - a) log(1 - a), for a in [0, 1]."""
    from scipy.special import entr

    return float((entr(a) + entr(1.0 - a)).sum())
