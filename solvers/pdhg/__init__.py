"""The primal-dual hybrid gradient method."""

from solvers.pdhg.solver import PDHG

__all__ = ["PDHG"]
