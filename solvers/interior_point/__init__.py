"""A structured interior-point method."""

from bench_mtl.solvers.interior_point.solver import InteriorPoint

__all__ = ["InteriorPoint"]
