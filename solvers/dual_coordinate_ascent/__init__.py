"""Dual coordinate ascent for support vector machines."""

from bench_mtl.solvers.dual_coordinate_ascent.solver import DualCoordinateAscent

__all__ = ["DualCoordinateAscent"]
