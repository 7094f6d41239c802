"""Euclidean projections and proximal operators: pure functions, one module a set.

Each takes a finite array of float32 or float64 (others become float64), leaves it alone, and returns a new one of its shape and type in C
order, or writes to `out`, which may be the input itself. Radii, weights and thresholds are at least 0. All raise InputError: NaN or inf
(the first place is named), another number of dimensions, a negative radius, an unknown option, an `out` that does not fit.
"""

from bench_mtl.projections.box_simplex import project_box_simplex
from bench_mtl.projections.l1inf_ball import L1InfProjection, l1inf_projection, norm_l1inf, norm_linf1, project_l1inf_ball, prox_l1inf
from bench_mtl.projections.l2_ball import norm_l12, project_l2_ball, project_l12_ball, prox_l12
from bench_mtl.projections.simplex import METHODS, project_l1_ball, project_simplex, soft_threshold
from bench_mtl.projections.sparse_ball import STORAGES, SparseBall, SparseParts
from bench_mtl.projections.trace_ball import (
    TraceProjection,
    norm_trace,
    project_trace_ball,
    prox_squared_trace,
    prox_trace,
    trace_ball_projection,
    trace_proximal_point,
)

__all__ = [
    "METHODS", "STORAGES", "L1InfProjection", "SparseBall", "SparseParts", "TraceProjection", "l1inf_projection", "norm_l1inf", "norm_l12",
    "norm_linf1", "norm_trace", "project_box_simplex", "project_l1_ball", "project_l1inf_ball", "project_l2_ball", "project_l12_ball",
    "project_simplex", "project_trace_ball", "prox_l1inf", "prox_l12", "prox_squared_trace", "prox_trace", "soft_threshold",
    "trace_ball_projection", "trace_proximal_point",
]  # fmt: skip
