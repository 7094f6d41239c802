"""Euclidean projections and proximal operators: pure functions, one module a set.

Each takes a finite float64 array, leaves it alone and returns a new one.
"""

from bench_mtl.projections.l1_ball import project_l1_ball, soft_threshold
from bench_mtl.projections.l1inf_ball import norm_l1inf, norm_linf1, project_l1inf_ball, prox_l1inf
from bench_mtl.projections.simplex import project_simplex
from bench_mtl.projections.trace_ball import norm_trace, project_trace_ball

__all__ = [
    "norm_l1inf",
    "norm_linf1",
    "norm_trace",
    "project_l1_ball",
    "project_l1inf_ball",
    "project_simplex",
    "project_trace_ball",
    "prox_l1inf",
    "soft_threshold",
]
