"""Dual coordinate ascent on support vector machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import true_or_false, whole_number
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import RIDGE_HINGES, Hinges
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge
from bench_mtl.model.protocols import SHOWN_SHARE, IterativeSolver, Problem
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.solvers.stochastic.task_rows import TaskRows, squared_lengths

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
    takes = (RIDGE_HINGES,)

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)
        true_or_false("shrinking", self.shrinking)

    def warm_up(self) -> None:
        for X in (np.ones((1, 1)), sp.csr_array(np.ones((1, 1)))):
            fit = LinearFit(SharedDesign(X, 1), np.ones((1, 1)), Hinge(), np.ones((1, 1)))
            _State(Hinges(fit, SquaredNorms(2.0)), 0).run(1)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        """`steps` from the dual point of `start` where it has one; a point alone, which is only yielded, says nothing of the dual."""
        self.refuse_state(start)
        yield start._replace(primal=problem.repair(start.primal), step=0, work=0.0)
        state = _State(problem.form(Hinges), self.seed, start.dual)
        step = 0
        while not state.is_solved:
            count = 1 + step // SHOWN_SHARE
            state.run(count, self.shrinking)
            step += count
            note = "stalled: the slopes of all dual variables are rounding" if state.is_solved else ""
            yield Iterate(state.point, state.dual, step, state.work, note)


class _State:
    """The dual point, the coefficients, and what the passes keep of every task."""

    def __init__(self, form: Hinges, seed: int, dual: Array | None = None) -> None:
        import bench_mtl.solvers.dual_coordinate_ascent.kernels as kernels

        fit, sizes = form.fit, np.asarray(form.fit.design.sizes, dtype=np.int64)
        self._passes: Any = kernels.passes
        self._fit, self._rows = fit, TaskRows.of(form)
        uppers, shrink = np.array(fit.weights, dtype=np.float64).ravel(), 1.0 / form.squared_norms.ridge
        self._boxes = kernels.Boxes(uppers, squared_lengths(form) * shrink, shrink)
        a = np.zeros(len(uppers)) if dual is None else np.clip((dual * fit.targets).ravel(), 0.0, uppers)
        numbers = np.arange(sizes.max())
        orders = np.where(numbers < sizes[:, None], numbers, -1)
        tasks = np.tile([np.inf, -np.inf, _FIRST_WIDTH], (len(sizes), 1))
        V = np.zeros((len(sizes), fit.design.n_features))
        self._state = kernels.State(a, V, orders, sizes.copy(), tasks, np.array([seed], dtype=np.uint64))
        self._visited = 0
        if dual is not None:
            self._refresh()

    def _refresh(self) -> None:
        self._state.V[...] = self._boxes.shrink * self._fit.design.adjoint(self.dual).T

    def run(self, count: int, shrinking: bool = True) -> None:
        tasks = self._state.tasks
        widths = tasks[:, 2].copy()
        for _ in range(1 if shrinking else count):
            if not shrinking:
                tasks[:, 0], tasks[:, 1] = np.inf, -np.inf
            self._visited += self._passes(self._rows, self._boxes, self._state, count if shrinking else 1)
        if np.any(tasks[:, 2] < widths):  # every decade: what is followed step by step drifts
            self._refresh()

    @property
    def is_solved(self) -> bool:
        return not self._state.tasks[:, 2].any()

    @property
    def point(self) -> Array:
        return np.array(self._state.V.T, order="C")  # a copy with a single task too

    @property
    def dual(self) -> Array:
        """r = y a, shaped like the labels."""
        return np.asarray((self._rows.labels * self._state.a).reshape(self._fit.targets.shape))

    @property
    def work(self) -> float:
        return self._visited / len(self._state.a)
