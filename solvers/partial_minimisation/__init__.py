"""See `solver.py`."""

from bench_mtl.solvers.partial_minimisation.solver import PartialMinimisation

__all__ = ["PartialMinimisation"]
