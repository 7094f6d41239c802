"""The alternating direction method of multipliers."""

from bench_mtl.solvers.admm.solver import ADMM

__all__ = ["ADMM"]
