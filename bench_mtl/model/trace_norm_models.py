"""Pieces of CVXPY models of losses under a trace norm."""

from __future__ import annotations

from typing import Any, NamedTuple

_CONES = {"squared": frozenset({"linear", "quadratic", "psd"}), "logistic": frozenset({"linear", "psd", "exponential"})}


def conic_forms(loss: str) -> dict[str, frozenset[str]]:
    """The forms of `trace_norm_model` with the cones that they and a "squared" or "logistic" loss need."""
    return {"sdp": _CONES[loss], "nuclear_norm": _CONES[loss]}


class TraceNorm(NamedTuple):
    """A d x m variable Q of CVXPY, with ||Q||_* at most expression / factor, and equal to it at the best values of all other variables."""

    matrix: Any
    expression: Any
    factor: float


def trace_norm_model(form: str, d: int, m: int) -> TraceNorm:
    """A matrix and its trace norm.

    "sdp" writes the lifting out: ||Q||_* <= tau iff some [[A, Q], [Q^T, B]] >= 0 has trace A + trace B <= 2 tau. "nuclear_norm" leaves it
    to `cvxpy.normNuc`.
    """
    import cvxpy as cp

    if form == "sdp":
        lifted = cp.Variable((d + m, d + m), PSD=True)
        return TraceNorm(lifted[:d, d:], cp.trace(lifted), 2.0)
    Q = cp.Variable((d, m))
    return TraceNorm(Q, cp.normNuc(Q), 1.0)
