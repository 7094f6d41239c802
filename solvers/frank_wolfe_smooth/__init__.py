"""Frank-Wolfe for smooth losses: the solver, the sets whose corners it moves between, and its step sizes."""

from bench_mtl.solvers.frank_wolfe_smooth.solver import FrankWolfeSmooth

__all__ = ["FrankWolfeSmooth"]
