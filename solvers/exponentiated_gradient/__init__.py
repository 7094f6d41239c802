"""Exponentiated gradient."""

from solvers.exponentiated_gradient.solver import ExponentiatedGradient

__all__ = ["ExponentiatedGradient"]
