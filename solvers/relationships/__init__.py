"""Solvers of multi-task relationship learning over one design, in the singular basis of X: the paper's, and a gradient method."""

from solvers.relationships.alternating import AlternatingRelationships
from solvers.relationships.gradient import SpectralGradient

__all__ = ["AlternatingRelationships", "SpectralGradient"]
