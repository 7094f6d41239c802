"""The alternating direction method of multipliers for sparse plus low rank."""

from solvers.admm.solver import ADMM

__all__ = ["ADMM"]
