"""Coordinate descent and Newton's method on working sets of entries, for l1 norms."""

from bench_mtl.solvers.l1_working_set.solver import L1WorkingSet

__all__ = ["L1WorkingSet"]
