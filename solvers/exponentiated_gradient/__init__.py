"""Exponentiated gradient."""

from bench_mtl.solvers.exponentiated_gradient.solver import ExponentiatedGradient

__all__ = ["ExponentiatedGradient"]
