"""Exponentiated gradient steps on drawn examples, averaged: over all weights, or over those of the features that the examples have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.solvers.exponentiated_gradient.weights import LONGEST_STEP, Weights, scheduled_step

#: Sums of weights are kept within these by dividing all weights by them: above, products might overflow; below, what they were
#: computed from by adding and subtracting was so much larger that digits are lost.
_SUMS = (1e-3, 1e10)

#: No weight falls below this, and so none is lost for good.
_LEAST = 1e-280


class Examples:
    """The examples of a loss of linear predictions, to draw from: rows of a shared design, or those of all tasks, one after the other."""

    def __init__(self, fit: LinearFit) -> None:
        design = fit.design
        self._fit, self._X = fit, stacked_rows(design)
        self._tasks = None if design.is_shared else np.repeat(np.arange(design.n_tasks), design.sizes)
        self.count = int(self._X.shape[0])
        self.is_sparse = design.is_sparse

    def rows(self, chosen: Any) -> tuple[Any, Array]:
        """Return the features of the chosen examples, and their values as a dense matrix."""
        X = self._X
        if not self.is_sparse:
            return slice(None), X[chosen]
        spans = [slice(X.indptr[i], X.indptr[i + 1]) for i in chosen]
        if len(spans) == 1:
            return X.indices[spans[0]].astype(np.int64), X.data[None, spans[0]]
        features, places = np.unique(np.concatenate([X.indices[span] for span in spans]), return_inverse=True)
        values = np.zeros((len(spans), len(features)))
        values[np.repeat(np.arange(len(spans)), [span.stop - span.start for span in spans]), places] = np.concatenate(
            [X.data[span] for span in spans]
        )
        return features.astype(np.int64), values

    def gradient(self, chosen: Any, values: Array, predictions: Array) -> Array:
        """Return the gradient of the chosen examples' losses in the rows of W that `rows` gave, times N over their number.

        Parameters
        ----------
        values, predictions : of the chosen examples: the values that `rows` gave, and these times the rows of W
        """
        part = replace(self._fit, targets=self._fit.targets[chosen], weights=self._fit.weights[chosen])
        if self._tasks is None:
            slopes = part.derivatives(predictions)
        else:
            places = np.arange(len(chosen)), self._tasks[chosen]
            slopes = np.zeros(predictions.shape)
            slopes[places] = part.derivatives(predictions[places])
        return np.asarray(values.T @ slopes) * (self.count / len(chosen))


class Run(ABC):
    """The state of a run on drawn examples with one eta0; its average is over the steps since the last power of two but one."""

    def __init__(self, examples: Examples, weights: Weights, eta0: float, batch: int, seed: int) -> None:
        self._examples, self._weights = examples, weights
        self._eta0, self._batch, self._rng = eta0, batch, np.random.default_rng(seed)
        self.t = 0
        #: Those of the last examples, before their step: one an example and task.
        self.predictions = np.zeros(0)
        self._total = self._total_before = 0.0

    def advance(self) -> None:
        """Take one step, on examples that are drawn."""
        self.take(self._rng.integers(self._examples.count, size=self._batch))

    def take(self, chosen: Any) -> None:
        """Take one step, on these examples."""
        self.t += 1
        if self.t & (self.t - 1) == 0:
            self._new_epoch()
            self._total_before, self._total = self._total, 0.0
        eta = self._eta0 / self.t**0.5
        self._total += eta
        self._step(chosen, eta)

    @property
    @abstractmethod
    def average(self) -> Array:
        """The average point, with the step sizes as weights."""

    @property
    @abstractmethod
    def point(self) -> Array:
        """The point now, without averaging."""

    @abstractmethod
    def _new_epoch(self) -> None: ...

    @abstractmethod
    def _step(self, chosen: Any, eta: float) -> None:
        """Add the point to the average, and take a step from it."""


class DenseRun(Run):
    """Every step goes through all weights."""

    def __init__(self, examples: Examples, weights: Weights, logs: Array, eta0: float, batch: int, seed: int) -> None:
        super().__init__(examples, weights, eta0, batch, seed)
        self._logs = logs
        self._sum = self._sum_before = np.zeros(())

    @property
    def average(self) -> Array:
        return np.asarray((self._sum + self._sum_before) / (self._total + self._total_before))

    @property
    def point(self) -> Array:
        return self._weights.point(np.exp(self._logs))

    def _new_epoch(self) -> None:
        self._sum_before, self._sum = self._sum, np.zeros(())

    def _step(self, chosen: Any, eta: float) -> None:
        point = self._weights.point(np.exp(self._logs))
        self._sum = self._sum + eta * point
        _, values = self._examples.rows(chosen)
        predictions = values @ point
        self.predictions = predictions.ravel()
        self._logs = scheduled_step(self._logs, self._weights.prices(self._examples.gradient(chosen, values, predictions)), eta)


class SparseRun(Run):
    """The same steps at the cost of the features that the drawn examples have, however many there are.

    Weights U, V are held without being divided by their sum Z, which changes by what the touched ones change by. The average needs
    sum_t eta_t (U - V)_t / Z_t: while a row of U - V stays as it is, that grows by the growth of S = sum_t eta_t / Z_t, and is settled when
    the row is next touched. When the average is read, everything is settled and divided, at the cost of a pass over all weights.
    """

    def __init__(self, examples: Examples, weights: Weights, logs: Array, eta0: float, batch: int, seed: int) -> None:
        super().__init__(examples, weights, eta0, batch, seed)
        U, V, self._slack = weights.parts(np.exp(logs))
        # Row by row U, V, the sum so far and S when it was last settled, side by side: a row that is touched is one place in memory.
        self._rows = np.stack([U, V, np.zeros(U.shape), np.zeros(U.shape)], axis=1)
        self._Z, self._S = np.ones(self._slack.shape), np.zeros(self._slack.shape)
        self._sum_before = np.zeros(U.shape)

    @property
    def average(self) -> Array:
        self._settle()
        return self._weights.scaled((self._rows[:, 2] + self._sum_before) / (self._total + self._total_before))

    @property
    def point(self) -> Array:
        return self._weights.scaled((self._rows[:, 0] - self._rows[:, 1]) / self._Z)

    def _new_epoch(self) -> None:
        self._settle()
        self._sum_before = self._rows[:, 2].copy()
        self._rows[:, 2] = 0.0

    def _step(self, chosen: Any, eta: float) -> None:
        from bench_mtl.solvers.exponentiated_gradient.kernels import put_rows, take_rows

        self._S += eta / self._Z
        J, values = self._examples.rows(chosen)
        rows = np.empty((len(J), *self._rows.shape[1:]))
        flat, all_flat = (part.reshape(len(part), 4 * part.shape[2]) for part in (rows, self._rows))
        take_rows(all_flat, J, flat)
        U, V, sums, settled = rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]
        before = U + V
        sums += (U - V) * (self._S - settled)
        settled[...] = self._S
        predictions = values @ self._weights.scaled((U - V) / self._Z, J)
        self.predictions = predictions.ravel()
        prices = self._weights.scaled(self._examples.gradient(chosen, values, predictions), J)
        size = self._weights.size_of_rows(prices)
        if size > 0.0:
            growth = np.exp(-min(eta, LONGEST_STEP / size) * prices)
            np.maximum(U * growth, _LEAST, out=U)
            if self._weights.signed:
                np.maximum(V / growth, _LEAST, out=V)
            self._Z += self._weights.column_sums(U + V - before)
        put_rows(all_flat, J, flat)
        if self._Z.min() < _SUMS[0] or self._Z.max() > _SUMS[1]:
            self._settle()

    def _settle(self) -> None:
        """Bring the averages of all rows up to date, and divide all weights by their sum."""
        U, V, sums, settled = (self._rows[:, i] for i in range(4))
        sums += (U - V) * (self._S - settled)
        settled[...] = 0.0
        Z = self._weights.column_sums(U) + self._weights.column_sums(V) + self._slack
        U /= Z
        V /= Z
        self._slack /= Z
        self._S[...] = 0.0
        self._Z = np.ones(Z.shape)
