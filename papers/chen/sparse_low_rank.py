"""The sparse + low-rank model to a proven gap, and what its two parts look like."""

from __future__ import annotations

import numpy as np

from bench_mtl import make_problem
from bench_mtl.data import TaskData
from papers import Array
from papers.solve_to_gap import Enclosed, registry, solve_to_gap

PROBLEM = "sparse_low_rank"


def fit_parts(data: TaskData, gamma: float, tau: float, name: str, target: float, seconds: float) -> Enclosed:
    """Return (P, Q), both d x m, that minimise 1/2 sum_k ||y_k - X_k (p_k + q_k)||^2 + gamma sum |P| subject to ||Q||_* <= tau.

    The others are what `solve_to_gap` takes.
    """
    problem = make_problem(registry().problem(PROBLEM), data, {"penalty": gamma, "radius": tau})
    return solve_to_gap(problem, name, target, seconds)


def singular_values(Q: Array, tau: float) -> Array:
    """Return the singular values of Q, descending; those below 1e-9 of the trace-norm radius are rounding errors and become 0."""
    values = np.linalg.svd(Q, compute_uv=False)
    return np.where(values > 1e-9 * tau, values, 0.0)


def rounded(values: Array, digits: int = 4) -> list[float]:
    """Return a flat list, row by row, rounded to that number of digits of the largest entry: enough for a picture."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return [0.0] * values.size
    scaled = np.round(values / largest, digits) + 0.0  # no -0
    return [float(f"{entry * largest:.{digits}g}") for entry in scaled.ravel()]
