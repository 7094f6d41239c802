"""Exponentiated gradient steps on drawn examples, averaged, at the cost of the features that these have."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.solvers.exponentiated_gradient.weights import Weights
from bench_mtl.solvers.stochastic.averages import LazySum
from bench_mtl.solvers.stochastic.examples import Examples, Order
from bench_mtl.solvers.stochastic.runs import DrawnRun


class WeightsRun(DrawnRun):
    """The state of a run with one eta0; its average is weighted by the step sizes.

    Weights are held without being divided by their sum Z, which changes by what the touched ones change by: a point is (U - V) / Z.
    When an average is read, it is settled and divided, at the cost of a pass over all weights.
    """

    def __init__(self, fit: LinearFit, weights: Weights, logs: Array, eta0: float, *, batch: int, seed: int) -> None:
        import bench_mtl.solvers.exponentiated_gradient.kernels as kernels

        self._weights, self._kernels = weights, kernels
        self._examples = Examples.of(fit, by_rows=True)
        super().__init__(Order(self._examples.count, "random", seed), batch)
        self._rule = kernels.Rule(eta0, weights.mass, *weights.signs)
        held, self._slack = weights.parts(np.exp(logs))
        (d, m), simplices = weights.shape, self._slack.shape
        self._sum = LazySum((d, m), simplices)
        self._held = kernels.Held(held, np.ones(simplices), self._sum.late, self._sum.totals)
        outputs = self._examples.targets.shape[1]
        self._scratch = kernels.Scratch(
            *np.empty((2, batch, outputs)),
            np.zeros((d, m)),
            np.empty(d, dtype=np.int64),
            np.zeros(d, dtype=np.bool_),
            *np.empty((2, *simplices)),
        )

    @property
    def average(self) -> Array:
        return self._weights.scaled(self._sum.average(self._difference))

    @property
    def point(self) -> Array:
        """The point now, without averaging."""
        return self._weights.scaled(self._difference / self._held.sums)

    @property
    def predictions(self) -> Array:
        """Those of the last examples, before their step: one an example, or one an example and task of a shared design."""
        return np.asarray(self._scratch.predictions).ravel()

    @property
    def passes_of_a_step(self) -> float:
        """The share of the examples that a step sees."""
        return self._batch / self._examples.count

    def _turn(self) -> None:
        self._sum.turn(self._difference)

    def _take(self, chosen: Any) -> None:
        drawn_steps: Any = self._kernels.drawn_steps
        while len(chosen):
            made = drawn_steps(self._examples.for_kernels, chosen, self.t, self._rule, self._held, self._scratch)
            steps = np.arange(self.t + 1, self.t + abs(made) + 1)
            self._sum.weigh(float((self._rule.eta0 / np.sqrt(steps)).sum()))
            self.t += len(steps)
            chosen = chosen[len(steps) :]
            if made < 0:
                self._divide()

    @property
    def _difference(self) -> Array:
        """U - V."""
        W, m = self._held.weights, self._weights.shape[1]
        return np.asarray(W[:, :m] - W[:, m:] if W.shape[1] > m else W)

    def _divide(self) -> None:
        """Divide all weights by their sum."""
        self._sum.settle(self._difference)
        W, sums = self._held.weights, self._held.sums
        columns = W.sum(axis=0).reshape(-1, self._weights.shape[1]).sum(axis=0)
        total = (columns if len(sums) > 1 else columns.sum(keepdims=True)) + self._slack
        W /= np.tile(total, W.shape[1] // len(total))
        self._slack /= total
        sums[:] = 1.0
