"""Semismooth Newton's method on the dual of proximal point steps."""

from bench_mtl.solvers.dual_newton.solver import DualNewton

__all__ = ["DualNewton"]
