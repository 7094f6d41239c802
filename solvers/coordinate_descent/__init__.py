"""Coordinate descent under an l1 norm."""

from bench_mtl.solvers.coordinate_descent.solver import CoordinateDescent

__all__ = ["CoordinateDescent"]
