"""X^T r of dual points that follow one another: after a short step, of the entries alone that it can bring to the penalty."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.solvers.l1_working_set.columns import Features
from bench_mtl.solvers.l1_working_set.tasks import Task

#: Some slopes are renewed where that takes at most this share of the multiplications of a product with all data.
_FEW = 0.25


class Slopes:
    """X^T r, d x m, of one dual point r after the other; of entries that are no matter, that of an earlier one, which is none either."""

    def __init__(self, design: Design, tasks: list[Task]) -> None:
        self._design, self._tasks = design, tasks
        self.products = 0.0
        """Products with all data so far."""

    def follow(self, dual: Array, *, is_near: bool) -> Array:
        """Return the slopes of the next dual point.

        Those of a point that `is_near` the one before are renewed for some entries: x_j.r is within ||x_j|| ||r - r'|| of x_j.r', and
        where that leaves it below the largest slope of a non-zero it is no matter to a bound, nor to what joins the next set.
        """
        renewed = self._renewed(dual) if is_near else None
        if renewed is not None:
            return renewed
        self._dual, self._all = dual, self._design.adjoint(dual)
        self.products += 1.0
        return self._all

    def _renewed(self, dual: Array) -> Array | None:
        """Return the slopes with those alone renewed that may matter; None where that hardly takes less than a product with all data."""
        parts = [self._near(k, task, dual) for k, task in enumerate(self._tasks)]
        stored = sum(task.columns.stored for task in self._tasks)
        price = sum(task.columns.price(features) for task, features in zip(self._tasks, parts, strict=True))
        if price > _FEW * stored:
            return None
        values = self._all.copy()
        for k, (task, features) in enumerate(zip(self._tasks, parts, strict=True)):
            values[features, k] = task.columns.products_with(features, self._design.task_outputs(dual, k))
        self.products += price / stored
        return values

    def _near(self, k: int, task: Task, dual: Array) -> Features:
        """Return the entries of a task whose slopes may be above the largest of its non-zeros."""
        r = self._design.task_outputs(dual, k)
        moved = float(np.linalg.norm(r - self._design.task_outputs(self._dual, k)))
        highest = float(np.abs(task.columns.products_with(task.support, r)).max(initial=0.0))
        norms = np.broadcast_to(self._design.column_norms, self._all.shape)[:, k]
        is_near = ~(np.abs(self._all[:, k]) + moved * norms <= highest)  # of NaN, too
        is_near[task.support] = True
        return np.flatnonzero(is_near)
