"""The sparse + low-rank model to a proven gap, and what its two parts look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.types import Array, Status
from bench_mtl.data import TaskData
from bench_mtl.engine.registry import make_problem
from bench_mtl.papers.solving import proven, registry
from bench_mtl.runner.job import Found

PROBLEM = "sparse_low_rank"


class Parts(NamedTuple):
    """A solution of the model with a proven gap."""

    P: Array
    """d x m."""
    Q: Array
    """d x m."""
    relative_gap: float
    status: Status
    """`VERIFIED` where the gap asked for is proven, otherwise `INACCURATE`."""
    reason: str

    def found(self, values: Mapping[str, Any]) -> Found:
        """What a cell has found that has looked at these parts."""
        return Found({**values, "relative_gap": self.relative_gap}, self.status, self.reason)


def solved(data: TaskData, gamma: float, tau: float, name: str, target: float, seconds: float) -> Parts:
    """The minimiser (P, Q) of 1/2 sum_k ||y_k - X_k (p_k + q_k)||^2 + gamma sum |P| subject to ||Q||_* <= tau.

    Parameters
    ----------
    name : of the solver
    target : the relative gap to prove
    seconds : on the solver's clock, at most

    Raises
    ------
    BenchError : the solver fails.
    """
    problem = make_problem(registry().problem(PROBLEM), data, {"gamma": gamma, "tau": tau})
    found = proven(problem, name, target, seconds)
    P, Q = found.point
    return Parts(P, Q, found.relative_gap, found.status, found.reason)


def singular_values(Q: Array, tau: float) -> Array:
    """Of Q, descending; what is below 1e-9 of the trace-norm radius is rounding, and 0."""
    values = np.linalg.svd(Q, compute_uv=False)
    return np.where(values > 1e-9 * tau, values, 0.0)


def rounded(values: Array, digits: int = 4) -> list[float]:
    """As a flat list, row by row, with so many digits of the largest: enough for a picture."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return [0.0] * values.size
    scaled = np.round(values / largest, digits) + 0.0  # no -0
    return [float(f"{entry * largest:.{digits}g}") for entry in scaled.ravel()]
