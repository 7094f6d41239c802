"""Exponentiated gradient steps on drawn examples, averaged, at the cost of the features that these have."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.solvers.exponentiated_gradient.weights import Weights
from bench_mtl.solvers.stochastic.averages import LazySum
from bench_mtl.solvers.stochastic.examples import Examples, Order
from bench_mtl.solvers.stochastic.runs import DrawnRun


class WeightsRun(DrawnRun):
    """The state of a run with one eta0; its average is weighted by the step sizes.

    Weights are held without being divided by their sums, which change by what the touched ones change by.
    An average costs a pass over all weights.
    """

    kept = ("t", "_order", "_eta0", "_weights", "_sums", "_sum")

    def __init__(self, examples: Examples, weights: Weights, logs: Array, eta0: float, *, batch: int, seed: int) -> None:
        import bench_mtl.solvers.exponentiated_gradient.kernels as kernels

        super().__init__(Order(examples.count, "random", seed), batch)
        self._examples, self._map, self._eta0, self._kernels = examples, weights, eta0, kernels
        self._factors = weights.factors
        self._weights, self._sums = np.exp(logs), np.ones(logs.shape[1])
        self._sum = LazySum(logs.shape, self._sums.shape)
        d, m = weights.shape
        predictions, derivatives = np.empty((2, batch, examples.targets.shape[1]))
        touched, is_touched = np.empty(d, dtype=np.int64), np.zeros(d, dtype=np.bool_)
        ends = np.empty((2, len(self._sums)))
        self._scratch = kernels.Scratch(predictions, derivatives, np.zeros((d, m)), touched, is_touched, ends)

    @property
    def iterate(self) -> Iterate:
        """The average."""
        return Iterate(self._map.point(self._sum.average(self._weights)), None, self.t, self.work)

    @property
    def work(self) -> float:
        return self.t * self._batch / self._examples.count

    @property
    def point(self) -> Array:
        """The point now, without averaging."""
        return self._map.point(self._weights / self._sums)

    @property
    def predictions(self) -> Array:
        """Those of the last examples, before their step: one an example, or one an example and task of a shared design."""
        return np.asarray(self._scratch.predictions).ravel()

    def _turn(self) -> None:
        self._sum.turn(self._weights)

    def _take(self, chosen: Any) -> None:
        drawn_steps: Any = self._kernels.drawn_steps
        weights, late = self._weights.ravel(), self._sum.late.ravel()
        held = self._kernels.Held(weights, late, self._sums, self._sum.totals, self._factors, self._map.signed)
        while len(chosen):
            made = drawn_steps(self._examples.for_kernels, chosen, self.t, self._eta0, held, self._scratch)
            steps = np.arange(self.t + 1, self.t + abs(made) + 1)
            self._sum.weigh(float((self._eta0 / np.sqrt(steps)).sum()))
            self.t += len(steps)
            chosen = chosen[len(steps) :]
            if made < 0:
                self._sum.settle(self._weights)
                self._weights /= self._weights.sum(axis=0)
                self._sums[:] = 1.0
