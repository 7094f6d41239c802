"""Intercepts as coefficients of a constant feature, which a model penalises as it does the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Matrix
from bench_mtl.data import TaskData
from bench_mtl.estimators.linear import FittedTasks


def with_constant_feature(data: TaskData, value: float) -> TaskData:
    """Return the data with one feature more, the last one, that is `value` in all examples."""
    if data.design.is_shared:
        return TaskData.shared(_with_column(data.design.block(0), value), data.targets, name=data.name)
    tasks = [data.task(k) for k in range(data.n_tasks)]
    return TaskData.per_task([_with_column(X, value) for X, _ in tasks], [y for _, y in tasks], name=data.name)


def as_intercepts(fitted: FittedTasks, value: float) -> FittedTasks:
    """Return the fit with the coefficients of the last feature, which is `value`, as intercepts."""
    W = fitted.coefficients
    return replace(fitted, coefficients=np.ascontiguousarray(W[:-1]), intercepts=value * W[-1])


def _with_column(X: Matrix, value: float) -> Matrix:
    column = np.full((X.shape[0], 1), value)
    return sp.csr_array(sp.hstack([X, sp.csr_array(column)], format="csr")) if is_sparse(X) else np.hstack([X, column])
