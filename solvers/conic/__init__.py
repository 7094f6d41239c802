"""Generic convex solvers through CVXPY: `table.py` says how each is told its tolerance, one entry a solver."""

from bench_mtl.solvers.conic.solver import Conic

__all__ = ["Conic"]
