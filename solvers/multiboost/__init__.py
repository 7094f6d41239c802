"""Boosting by column generation: the solvers, the restricted problem over the columns chosen so far, and the losses of scores."""

from bench_mtl.solvers.multiboost.solver import MultiboostGroup, MultiboostL1

__all__ = ["MultiboostGroup", "MultiboostL1"]
