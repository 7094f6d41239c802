"""Dual coordinate ascent on support vector machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import true_or_false, whole_number
from bench_mtl.core.designs import PerTaskDesign, SharedDesign, stacked_rows
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import RidgeForm
from bench_mtl.model.linear_loss import LinearFit, example_weights
from bench_mtl.model.losses import Hinge
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem

#: The first spread of projected gradients at which examples that were left out are looked at again; those of liblinear end at 0.1.
_FIRST_WIDTH = 0.1


@dataclass(frozen=True)
class DualCoordinateAscent(IterativeSolver):
    """For min_w sigma ||w||^2 + sum_i s_i max(0, 1 - y_i x_i.w), one dual variable a_i in [0, s_i] after the other::

        a_i <- clip(a_i + (1 - y_i x_i.w) / q_i, 0, s_i),    q_i = ||x_i||^2 / (2 sigma)
        w    = 1/(2 sigma) sum_i a_i y_i x_i                 kept up to date

    A pass visits every example of a task once, in a random order. Examples whose a_i is at a bound with a slope that points further out
    than any slope of the pass before pointed in are left out (shrinking), until the others are solved to a width that then falls. Every
    task is a problem of its own. A visit costs the non-zeros of its example; `work` is the number of visits over that of all examples, and
    one step is one pass. A task whose slopes are rounding is not visited any more; when all are, the solver ends.

    Parameters
    ----------
    seed : seed of the orders
    shrinking : whether to leave examples out

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008, algorithm 3.
    """

    seed: int = 0
    shrinking: bool = True

    name: ClassVar[str] = "dual_coordinate_ascent"
    takes: ClassVar[tuple[type[Form], ...]] = (RidgeForm,)

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)
        true_or_false("shrinking", self.shrinking)

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is None and not isinstance(problem.form(RidgeForm).fit.loss, Hinge):
            return f"{self.label} is for the hinge loss, and the loss of this {problem.name} is {problem.form(RidgeForm).fit.loss.name}"
        return reason

    def warm_up(self) -> None:
        X, y = np.ones((1, 1)), np.ones((1, 1))
        for block in (X, sp.csr_array(X)):
            for design in (SharedDesign(block, 1), PerTaskDesign([block])):
                _State(RidgeForm(LinearFit(design, y.reshape(design.output_shape), Hinge(), example_weights(design, "mean")), 1.0), 0).run(
                    1
                )

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        """`steps` from the dual point of `start` where it has one; a point alone, which is only yielded, says nothing of the dual."""
        yield start._replace(primal=problem.repair(start.primal), step=0, work=0.0)
        state = _State(problem.form(RidgeForm), self.seed, start.dual)
        step = 0
        while not state.is_solved:
            count = 1 + step // SHOWN_SHARE
            state.run(count, self.shrinking)
            step += count
            note = "stalled: the slopes of all dual variables are rounding" if state.is_solved else ""
            yield Iterate(state.point, state.dual, step, state.work, note)


def _sparse_parts(X: Any) -> tuple[Any, Any, Any]:
    return X.data.copy(), X.indices.astype(np.uint32), X.indptr.astype(np.int64)


class _State:
    """The dual point, the coefficients, and what the passes keep of every task."""

    def __init__(self, form: RidgeForm, seed: int, dual: Array | None = None) -> None:
        fit, design = form.fit, form.fit.design
        m, sizes = design.n_tasks, np.asarray(design.sizes, dtype=np.int64)
        firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        X: Any = stacked_rows(design)
        rows = np.asarray((X * X).sum(axis=1)).ravel()
        squares = np.repeat(rows, m) if design.is_shared else rows
        self._form = form
        # Copies, writable as what `warm_up` compiles for.
        self._data = _sparse_parts(X) if design.is_sparse else (np.array(X, order="C").ravel(), None, None)
        self._where = (np.zeros(m, dtype=np.int64), np.arange(m), m) if design.is_shared else (firsts, firsts.copy(), 1)
        self._shrink = 0.5 / form.ridge
        uppers = np.array(fit.weights, dtype=np.float64).ravel()
        self._boxes = np.array(fit.targets).ravel(), uppers, squares * self._shrink
        self._a = np.zeros(len(uppers)) if dual is None else np.clip((dual * fit.targets).ravel(), 0.0, uppers)
        self._V = np.array(self._shrink * design.adjoint(self.dual).T, order="C") if dual is not None else np.zeros((m, design.n_features))
        numbers = np.arange(sizes.max())
        self._orders = np.where(numbers < sizes[:, None], numbers, -1)
        self._counts = sizes.copy()
        self._tasks = np.tile([np.inf, -np.inf, _FIRST_WIDTH], (m, 1))
        self._random = np.array([seed], dtype=np.uint64)
        self._visited = 0

    def run(self, count: int, shrinking: bool = True) -> None:
        kernel, before = self._kernels.passes, self._tasks[:, 2].copy()
        for _ in range(1 if shrinking else count):
            if not shrinking:
                self._tasks[:, 0], self._tasks[:, 1] = np.inf, -np.inf
            kept = self._a, self._V, self._orders, self._counts, self._tasks, self._random
            self._visited += kernel(*self._data, *self._where, *self._boxes, self._shrink, *kept, count if shrinking else 1)
        if np.any(self._tasks[:, 2] < before):  # every decade: what is followed step by step drifts
            self._V = np.array(self._shrink * self._form.fit.design.adjoint(self.dual).T, order="C")

    @cached_property
    def _kernels(self) -> Any:
        import bench_mtl.solvers.dual_coordinate_ascent.kernels as kernels

        return kernels

    @property
    def is_solved(self) -> bool:
        return not self._tasks[:, 2].any()

    @property
    def point(self) -> Array:
        return np.array(self._V.T, order="C")  # a copy with a single task too

    @property
    def dual(self) -> Array:
        """r = y a, shaped like the labels."""
        return np.asarray((self._boxes[0] * self._a).reshape(self._form.fit.targets.shape))

    @property
    def work(self) -> float:
        return self._visited / len(self._a)
