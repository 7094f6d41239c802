"""The primal-dual hybrid gradient method."""

from bench_mtl.solvers.pdhg.solver import PDHG

__all__ = ["PDHG"]
