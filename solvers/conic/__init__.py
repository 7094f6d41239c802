"""Generic convex solvers through CVXPY: `table.py` says how each is told its tolerance, one entry a solver."""

from bench_mtl.solvers.conic.solver import Conic
from bench_mtl.solvers.conic.threads import pinned_thread_count

__all__ = ["Conic", "pinned_thread_count"]
