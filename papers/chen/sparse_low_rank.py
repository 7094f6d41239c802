"""The sparse + low-rank model to a proven gap, and what its two parts look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bench_mtl import Status, make_problem
from bench_mtl.data import TaskData
from bench_mtl.runner import Found
from papers import Array
from papers.solve_to_gap import registry, solve_to_gap

PROBLEM = "sparse_low_rank"


class Parts(NamedTuple):
    """A solution of the model with a proven gap."""

    P: Array
    """d x m."""
    Q: Array
    """d x m."""
    relative_gap: float
    status: Status
    """`VERIFIED` where the wanted gap is proven, otherwise `INACCURATE`."""
    reason: str

    def found(self, values: Mapping[str, Any]) -> Found:
        """Return what a cell has found that has looked at these parts."""
        return Found({**values, "relative_gap": self.relative_gap}, self.status, self.reason)


def fit_parts(data: TaskData, gamma: float, tau: float, name: str, target: float, seconds: float) -> Parts:
    """Return the minimiser (P, Q) of 1/2 sum_k ||y_k - X_k (p_k + q_k)||^2 + gamma sum |P| subject to ||Q||_* <= tau.

    Parameters
    ----------
    name : of the solver
    target : the relative gap to prove
    seconds : on the solver's clock, at most

    Raises
    ------
    BenchError : the solver fails.
    """
    problem = make_problem(registry().problem(PROBLEM), data, {"penalty": gamma, "radius": tau})
    found = solve_to_gap(problem, name, target, seconds)
    P, Q = found.point
    return Parts(P, Q, found.relative_gap, found.status, found.reason)


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
