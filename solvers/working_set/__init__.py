"""Working sets of rows around an interior-point method."""

from bench_mtl.solvers.working_set.solver import WorkingSet

__all__ = ["WorkingSet"]
