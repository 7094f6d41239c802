"""The examples of a loss of linear predictions for stochastic solvers: rows, order, step sizes, and dual points from visits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import frozen, stacked_rows
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss

ORDERS = ("random", "shuffled", "given")


@dataclass(frozen=True)
class Examples:
    """The N examples of a loss: each is a row of one CSR matrix, with its task, its targets, and its weight times N.

    An example of a loss that couples tasks is a row of the design with a target for every task; an example of the other losses is a
    row and a task with one target.
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
        X = _by_rows(stacked_rows(design))
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
        """The largest number of non-zeros of a row."""
        return int(np.diff(self.X.indptr).max(initial=1))

    @cached_property
    def for_kernels(self) -> tuple[Any, ...]:
        """The read-only arguments of the kernels: data, indices, indptr, rows, tasks, targets, scales, loss.

        They are cached, since 64-bit indices of SciPy are copied to 32 bits.
        """
        matrix = (self.X.data, self.X.indices.astype(np.int32, copy=False), self.X.indptr.astype(np.int64, copy=False))
        return (*(frozen(part) for part in matrix), self.rows, self.tasks, self.targets, frozen(self.scales), self.loss.code)

    def default_step_size(self, fit: LinearFit, radius: float | None, penalty: float | None, balls: int = 1, batch: int = 1) -> float:
        """Return eta0 of eta_t = eta0 / sqrt(t): R / G, the best of Zinkevich's bound up to its constant; 2 / L for the squared loss.

        R is the size of W in the Frobenius norm: the radius times the root of the number of balls, which no W exceeds; with a penalty, a
        tenth of f(0) / penalty times that root. G = N max_i s_i ||x_i|| max |loss'| / sqrt(batch) bounds the gradient of a step. The
        derivative of the squared loss has no bound, but a step is non-expansive up to 2 / L, L = N max_i s_i ||x_i||^2.
        """
        lengths = np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1))).ravel()[self.rows]
        if not lengths.any():
            return 1.0
        if self.loss.largest_derivative is None:
            return 2.0 / float((self.scales * lengths**2).max())
        G = self.loss.largest_derivative * float((self.scales * lengths).max()) / batch**0.5
        size = radius
        if size is None:
            size = 0.1 * fit.value(np.zeros(fit.targets.shape)) / penalty if penalty else 1.0 / float(lengths.max())
        return (size or 1.0) * balls**0.5 / G


def _by_rows(X: Any) -> Any:
    """Return X as a CSR matrix without stored zeros."""
    if sp.issparse(X) or np.count_nonzero(X) < X.size:
        return sp.csr_array(X)
    n, d = X.shape  # SciPy would look for zeros, which takes longer than all else here
    return sp.csr_array((X.ravel(), np.tile(np.arange(d, dtype=np.int32), n), np.arange(0, n * d + 1, d)), shape=X.shape)


class OnlineRun(Protocol):
    """A run of an online method that is told which example comes next.

    Solvers that have one make it by `online(problem, eta0)`: steps eta_t = eta0 / sqrt(t) from the point 0, along the gradient of the loss
    of one example times its weight times N.
    """

    def take(self, chosen: NDArray[np.int64]) -> None:
        """Take the steps of the chosen examples."""

    @property
    def predictions(self) -> Array:
        """Those of the last example before its step, one or one a task; a view that the next step changes."""

    @property
    def point(self) -> Array:
        """The point now, without averaging, d x m; perhaps a view that the next step changes."""


class Order:
    """The order of examples: "random" draws with replacement, "shuffled" takes each once an epoch in a new order, "given" as they are."""

    def __init__(self, count: int, order: str, seed: int) -> None:
        self._count, self._order = count, order
        self._rng = np.random.default_rng(seed)
        self._left = np.zeros(0, dtype=np.int64)

    def next(self, number: int) -> NDArray[np.int64]:
        """Return the next `number` examples; the sequence does not depend on the sizes of the portions."""
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


class VisitedDuals:
    """A dual point from derivatives at visits: their averages, weighted by step size, over the steps since the last power of two but one.

    An example without a visit in that time keeps the derivative of its last visit, or that at W = 0 where there was none.
    """

    def __init__(self, fit: LinearFit) -> None:
        at_zero = fit.derivatives(np.zeros(fit.targets.shape)) / fit.weights
        self.latest = np.array(at_zero if fit.loss.couples_tasks else at_zero.reshape(-1, 1), order="C")
        self._shape = self.latest.shape
        self._now = self._empty()
        self._before = self._empty()

    def _empty(self) -> tuple[Array, Array]:
        return np.zeros(self._shape[0]), np.zeros(self._shape)

    def next_epoch(self) -> None:
        """Begin a new average; the last one still counts until the next call."""
        self._before, self._now = self._now, self._empty()

    @property
    def for_kernels(self) -> tuple[Array, Array, Array]:
        """What the kernels write to: weights and weighted derivatives of the visits of this epoch, and the latest derivatives."""
        return (*self._now, self.latest)

    def dual(self, fit: LinearFit) -> Array:
        """Return minus the averaged derivatives times the weights of the examples, in the output shape of the design."""
        weights = (self._before[0] + self._now[0])[:, None]
        averages = np.where(weights > 0.0, (self._before[1] + self._now[1]) / np.where(weights > 0.0, weights, 1.0), self.latest)
        return -averages.reshape(fit.targets.shape) * fit.weights
