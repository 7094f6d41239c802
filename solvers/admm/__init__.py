"""The alternating direction method of multipliers."""

from solvers.admm.solver import ADMM

__all__ = ["ADMM"]
