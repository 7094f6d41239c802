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
