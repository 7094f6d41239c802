"""Generic convex solvers through CVXPY: `table.py` has the options for each one's tolerance, one entry a solver."""

from bench_mtl.solvers.conic.solver import Conic

__all__ = ["Conic"]
