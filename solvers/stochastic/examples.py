"""The examples of a loss of linear predictions for stochastic solvers: rows, order, and step sizes."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import frozen, stacked_rows
from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss

ORDERS = ("random", "shuffled", "given")

#: `Examples` for the kernels: a CSR matrix, and of every example its row, task, targets, and weights times N; the code of the loss.
ExampleArrays = namedtuple("ExampleArrays", "data indices indptr rows tasks targets scales loss")


@dataclass(frozen=True)
class Examples:
    """The N examples of a loss: each is a row of one CSR matrix, with its task, its targets, and their weights times N.

    An example has one target, that of its task, unless the loss couples tasks: then it is a row of the design with a target for every
    task. With `by_rows` it is that for every loss of a shared design.
    """

    X: Any
    rows: NDArray[np.int64]
    tasks: NDArray[np.int64]
    targets: Array
    """N x 1, or N x tasks."""
    scales: Array
    """Shaped like the targets."""
    loss: Loss
    n_tasks: int

    @classmethod
    def of(cls, fit: LinearFit, *, by_rows: bool = False) -> Examples:
        design, m = fit.design, fit.design.n_tasks
        X = _csr(stacked_rows(design))
        weights = np.broadcast_to(fit.weights, fit.targets.shape)
        if fit.loss.couples_tasks or (by_rows and design.is_shared):
            rows, tasks = np.arange(X.shape[0]), np.zeros(X.shape[0], dtype=np.int64)
            targets = fit.targets
        else:
            places = np.arange(fit.targets.size)
            rows, tasks = np.divmod(places, m) if design.is_shared else (places, np.repeat(np.arange(m), design.sizes))
            targets, weights = fit.targets.reshape(-1, 1), weights.reshape(-1, 1)
        scales = np.ascontiguousarray(len(rows) * weights)
        return cls(X, frozen(rows), frozen(tasks), frozen(np.ascontiguousarray(targets)), frozen(scales), fit.loss, m)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def longest(self) -> int:
        """The largest number of non-zeros of a row."""
        return int(np.diff(self.X.indptr).max(initial=1))

    @cached_property
    def for_kernels(self) -> ExampleArrays:
        """The read-only arrays of the kernels. They are cached, since 64-bit indices of SciPy are copied to 32 bits."""
        X, matrix = self.X, (self.X.indices.astype(np.int32, copy=False), self.X.indptr.astype(np.int64, copy=False))
        indices, indptr = (frozen(part) for part in matrix)
        return ExampleArrays(frozen(X.data), indices, indptr, self.rows, self.tasks, self.targets, self.scales, self.loss.code)

    def default_step_size(self, fit: LinearFit, radius: float | None, penalty: float | None, balls: int = 1, batch: int = 1) -> float:
        """Return eta0 of eta_t = eta0 / sqrt(t): R / G, the best of Zinkevich's bound up to its constant; 2 / L for the squared loss.

        R is the size of W in the Frobenius norm: the radius times the root of the number of balls, which no W exceeds; with a penalty, a
        tenth of f(0) / penalty times that root. G = N max_i s_i ||x_i|| max |loss'| / sqrt(batch) bounds the gradient of a step. The
        derivative of the squared loss has no bound, but a step is non-expansive up to 2 / L, L = N max_i s_i ||x_i||^2.
        """
        lengths = np.sqrt(np.asarray(self.X.multiply(self.X).sum(axis=1))).reshape(-1, 1)[self.rows]
        if not lengths.any():
            return 1.0
        if self.loss.largest_derivative is None:
            return 2.0 / float((self.scales * lengths**2).max())
        G = self.loss.largest_derivative * float((self.scales * lengths).max()) / batch**0.5
        size = radius
        if size is None:
            size = 0.1 * fit.value(np.zeros(fit.targets.shape)) / penalty if penalty else 1.0 / float(lengths.max())
        return (size or 1.0) * balls**0.5 / G


def _csr(X: Any) -> Any:
    """Return X as a CSR matrix without stored zeros."""
    if sp.issparse(X) or np.count_nonzero(X) < X.size:
        return sp.csr_array(X)
    n, d = X.shape  # SciPy would look for zeros, which takes longer than all else here
    return sp.csr_array((X.ravel(), np.tile(np.arange(d, dtype=np.int32), n), np.arange(0, n * d + 1, d)), shape=X.shape)


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


class TaskRows(NamedTuple):
    """Of support vector machines: example r of task k is row firsts_k + r of a matrix, and its label is at places_k + stride r."""

    values: Any
    """Of a CSR matrix; or of a dense one, row by row."""
    indices: Any
    """Unsigned, so that none counts from the end; None for a dense matrix, as are the next."""
    indptr: Any
    firsts: Any
    places: Any
    stride: int
    labels: Any

    @classmethod
    def of(cls, form: LinearForm) -> TaskRows:
        design, m = form.fit.design, form.fit.design.n_tasks
        X: Any = stacked_rows(design)
        if design.is_sparse:
            values, indices = X.data, X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
            indices, indptr = frozen(indices), frozen(X.indptr.astype(np.int64))
        else:
            values, indices, indptr = np.ascontiguousarray(X).ravel(), None, None
        starts = np.concatenate([[0], np.cumsum(np.asarray(design.sizes, dtype=np.int64))[:-1]])
        where: Any = (np.zeros(m, dtype=np.int64), np.arange(m), m) if design.is_shared else (starts, starts.copy(), 1)
        firsts, places, stride = where
        return cls(frozen(values), indices, indptr, firsts, places, stride, np.array(form.fit.targets).ravel())

    def places_of(self, sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return where the labels of every task are."""
        return [first + self.stride * np.arange(size) for first, size in zip(self.places, sizes, strict=True)]
