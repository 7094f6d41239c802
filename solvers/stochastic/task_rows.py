"""The examples of support vector machines, one a task, for solvers that visit them one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm


class TaskRows(NamedTuple):
    """Example r of task k is row firsts_k + r of a matrix, and its label is at places_k + stride r."""

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
        parts: Any
        if design.is_sparse:
            parts = X.data.copy(), X.indices.astype(np.uint32), X.indptr.astype(np.int64)
        else:
            parts = np.array(X, order="C").ravel(), None, None
        starts = np.concatenate([[0], np.cumsum(np.asarray(design.sizes, dtype=np.int64))[:-1]])
        where: Any = (np.zeros(m, dtype=np.int64), np.arange(m), m) if design.is_shared else (starts, starts.copy(), 1)
        (values, indices, indptr), (firsts, places, stride) = parts, where
        return cls(values, indices, indptr, firsts, places, stride, np.array(form.fit.targets).ravel())

    def places_of(self, sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return where the labels of every task are."""
        return [first + self.stride * np.arange(size) for first, size in zip(self.places, sizes, strict=True)]


def squared_lengths(form: LinearForm) -> Array:
    """Return ||x||^2 of every example, in the order of the flattened labels."""
    X: Any = stacked_rows(form.fit.design)
    rows = np.asarray((X * X).sum(axis=1)).ravel()
    return np.repeat(rows, form.fit.design.n_tasks) if form.fit.design.is_shared else rows
