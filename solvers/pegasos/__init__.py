"""See `solver.py`."""

from bench_mtl.solvers.pegasos.solver import Pegasos

__all__ = ["Pegasos"]
