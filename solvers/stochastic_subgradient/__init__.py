"""See `solver.py`."""

from bench_mtl.solvers.stochastic_subgradient.solver import StochasticSubgradient

__all__ = ["StochasticSubgradient"]
