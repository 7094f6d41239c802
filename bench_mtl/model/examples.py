"""The examples of a loss of linear predictions, one at a time: rows, order, step sizes, and what visits say of the dual."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import frozen, stacked_rows
from bench_mtl.core.types import Array
from bench_mtl.model.forms import L1Form
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss

ORDERS = ("random", "shuffled", "given")


@dataclass(frozen=True)
class Examples:
    """Every example as a row of one CSR matrix, with its task, targets and N-fold weight, N of them in all.

    Of a "multiclass" loss an example is a row of the design, with a target a task; of the others a row and a task, with one target.
    """

    X: Any
    rows: NDArray[np.int64]
    tasks: NDArray[np.int64]
    targets: Array
    """N x 1, or N x tasks."""
    scales: Array
    loss: Loss
    n_tasks: int

    @classmethod
    def of(cls, fit: LinearFit) -> Examples:
        design, m = fit.design, fit.design.n_tasks
        X = sp.csr_array(stacked_rows(design))
        if fit.loss.couples_tasks:
            rows = np.arange(X.shape[0])
            tasks, targets = np.zeros(len(rows), dtype=np.int64), fit.targets
        elif design.is_shared:
            rows, tasks = np.divmod(np.arange(fit.targets.size), m)
            targets = fit.targets.reshape(-1, 1)
        else:
            rows, tasks = np.arange(fit.targets.size), np.repeat(np.arange(m), design.sizes)
            targets = fit.targets.reshape(-1, 1)
        weights = np.ascontiguousarray(fit.weights).reshape(-1)
        return cls(X, frozen(rows), frozen(tasks), frozen(np.ascontiguousarray(targets)), len(rows) * weights, fit.loss, m)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def longest(self) -> int:
        """Non-zeros of a row, at most."""
        return int(np.diff(self.X.indptr).max(initial=1))

    @cached_property
    def for_kernels(self) -> tuple[Any, ...]:
        """What the kernels take, read-only whoever owns it: data, indices, indptr, rows, tasks, targets, scales, loss.

        Kept: where SciPy has chosen 64 bits for the indices they are copied.
        """
        matrix = (self.X.data, self.X.indices.astype(np.int32, copy=False), self.X.indptr.astype(np.int64, copy=False))
        return (*(frozen(part) for part in matrix), self.rows, self.tasks, self.targets, frozen(self.scales), self.loss.code)

    def default_step_size(self, form: L1Form, batch: int = 1) -> float:
        """eta0 of eta_t = eta0 / sqrt(t): R / G, which is the best of Zinkevich's bound up to its constant; 2 / L for the squared loss.

        R is the size of W in the Frobenius norm: the radius times the root of the number of balls, which no W exceeds; with a penalty a
        tenth of f(0) / penalty. G = N max_i s_i ||x_i|| max |loss'| / sqrt(batch) bounds a step's gradient. The derivative of the squared
        loss has no bound, but a step is non-expansive up to 2 / L, L = N max_i s_i ||x_i||^2.
        """
        lengths = np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1))).ravel()[self.rows]
        if not lengths.any():
            return 1.0
        if self.loss.largest_derivative is None:
            return 2.0 / float((self.scales * lengths**2).max())
        G = self.loss.largest_derivative * float((self.scales * lengths).max()) / batch**0.5
        if form.radius is not None:
            R = form.radius * (self.n_tasks**0.5 if form.balls == "task" else 1.0)
        else:
            nothing = form.fit.value(np.zeros(form.fit.targets.shape))
            R = 0.1 * nothing / form.penalty if form.penalty else 1.0 / float(lengths.max())
        return (R or 1.0) / G


class Order:
    """Which example comes next: drawn with replacement ("random"), each once an epoch in a new order ("shuffled"), or as they are."""

    def __init__(self, count: int, order: str, seed: int) -> None:
        self._count, self._order = count, order
        self._rng = np.random.default_rng(seed)
        self._left = np.zeros(0, dtype=np.int64)

    def next(self, number: int) -> NDArray[np.int64]:
        """The next so many examples; in how many portions they are asked for makes no difference."""
        if self._order == "random":
            return self._rng.integers(self._count, size=number)
        parts, missing = [], number
        while missing > 0:
            if not self._left.size:
                self._left = self._rng.permutation(self._count) if self._order == "shuffled" else np.arange(self._count)
            parts.append(self._left[:missing])
            missing -= parts[-1].size
            self._left = self._left[parts[-1].size :]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


class Visits:
    """What visits say of the dual: slopes of the loss, averaged by step size over the steps since the last power of two but one.

    An example not visited since counts with its slope at its last visit, or at W = 0 where there was none.
    """

    def __init__(self, fit: LinearFit) -> None:
        nothing = fit.derivatives(np.zeros(fit.targets.shape)) / fit.weights
        self.latest = np.array(nothing if fit.loss.couples_tasks else nothing.reshape(-1, 1), order="C")
        self._shape = self.latest.shape
        self._now = self._none()
        self._before = self._none()

    def _none(self) -> tuple[Array, Array]:
        return np.zeros(self._shape[0]), np.zeros(self._shape)

    def next_epoch(self) -> None:
        self._before, self._now = self._now, self._none()

    @property
    def for_kernels(self) -> tuple[Array, Array, Array]:
        """Weights and weighted slopes of the visits of this epoch, and the latest slopes: what the kernels write to."""
        return (*self._now, self.latest)

    def dual(self, fit: LinearFit) -> Array:
        """Minus the averaged slopes times the weights of the examples."""
        weights = (self._before[0] + self._now[0])[:, None]
        slopes = np.where(weights > 0.0, (self._before[1] + self._now[1]) / np.where(weights > 0.0, weights, 1.0), self.latest)
        return -slopes.reshape(fit.targets.shape) * fit.weights
