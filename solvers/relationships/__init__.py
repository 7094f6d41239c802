"""Solvers of multi-task relationship learning over one design, in the singular basis of X: the paper's, and a gradient method."""

from bench_mtl.solvers.relationships.alternating import AlternatingRelationships
from bench_mtl.solvers.relationships.gradient import SpectralGradient

__all__ = ["AlternatingRelationships", "SpectralGradient"]
