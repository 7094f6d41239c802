"""A structured interior-point method."""

from solvers.interior_point.solver import InteriorPoint

__all__ = ["InteriorPoint"]
