"""Dual coordinate ascent on support vector machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import RIDGE_HINGES, LinearForm, under_ridge
from bench_mtl.model.losses import SquaredHinge
from bench_mtl.model.protocols import SHOWN_SHARE, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.stochastic.examples import TaskRows, squared_lengths

#: The first spread of projected gradients at which examples that were left out are looked at again; those of liblinear end at 0.1.
_FIRST_WIDTH = 0.1


@dataclass(frozen=True)
class DualCoordinateAscent(SteppingSolver):
    """For min_w sigma ||w||^2 + sum_i s_i max(0, 1 - y_i x_i.w), one dual variable a_i in [0, s_i] after the other::

        a_i <- clip(a_i + (1 - y_i x_i.w) / q_i, 0, s_i),    q_i = ||x_i||^2 / (2 sigma)
        w    = 1/(2 sigma) sum_i a_i y_i x_i                 updated at every step

    With squared hinges a_i has no upper end, the slope is 1 - y_i x_i.w - a_i / (2 s_i), and q_i is larger by 1 / (2 s_i).

    A pass visits every example of a task once, in a random order. Examples whose a_i is at a bound with a slope that points further out
    than any slope of the pass before pointed in are left out (shrinking), until the others are solved to a width that then falls. Every
    task is a problem of its own. A visit costs the non-zeros of its example; `work` is the number of visits over that of all examples, and
    one step is one pass. A task whose slopes are rounding is not visited any more; when all are, the solver ends.

    Parameters
    ----------
    seed : seed of the orders

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008, algorithm 3.
    """

    seed: int = 0

    name: ClassVar[str] = "dual_coordinate_ascent"
    takes = (RIDGE_HINGES, under_ridge("squared_hinge"))

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)

    def stepper(self, problem: Problem) -> Passes:
        return Passes(self, problem.form(LinearForm))


class Passes(Stepper):
    """The dual point, the coefficients, and what the passes keep of every task."""

    kept = ("_state", "_visited", "_step")

    def __init__(self, solver: DualCoordinateAscent, form: LinearForm) -> None:
        import bench_mtl.solvers.dual_coordinate_ascent.kernels as kernels

        self._solver, self._kernels = solver, kernels
        self._passes: Any = kernels.passes
        self._fit, self._rows = form.fit, TaskRows.of(form)
        weights, shrink = np.array(form.fit.weights, dtype=np.float64).ravel(), 1.0 / form.squared_norms.strengths[0]
        is_soft = isinstance(form.fit.loss, SquaredHinge)
        uppers, softness = (np.full_like(weights, np.inf), 0.5 / weights) if is_soft else (weights, np.zeros_like(weights))
        self._boxes = kernels.Boxes(uppers, squared_lengths(form) * shrink + softness, softness, shrink)
        self._visited = self._step = 0

    def start(self, at: Iterate) -> Passes:
        """Begin at the dual point of an iterate that has one; a point alone says nothing of the dual."""
        fit, uppers, sizes = self._fit, self._boxes.uppers, np.asarray(self._fit.design.sizes, dtype=np.int64)
        a = np.zeros(len(uppers)) if at.dual is None else np.clip((at.dual * fit.targets).ravel(), 0.0, uppers)
        numbers = np.arange(sizes.max())
        orders = np.where(numbers < sizes[:, None], numbers, -1)
        tasks = np.tile([np.inf, -np.inf, _FIRST_WIDTH], (len(sizes), 1))
        V = np.zeros((len(sizes), fit.design.n_features))
        self._state = self._kernels.State(a, V, orders, sizes.copy(), tasks, np.array([self._solver.seed], dtype=np.uint64))
        if at.dual is not None:
            self._refresh()
        return self

    def _refresh(self) -> None:
        self._state.V[...] = self._boxes.shrink * self._fit.design.adjoint(self._dual).T

    def step(self, now: Passes) -> Passes | None:
        if self._is_solved:
            return None
        tasks, count = self._state.tasks, 1 + self._step // SHOWN_SHARE
        widths = tasks[:, 2].copy()
        self._visited += self._passes(self._rows, self._boxes, self._state, count)
        if np.any(tasks[:, 2] < widths):  # every decade: what is followed step by step drifts
            self._refresh()
        self._step += count
        return self

    def iterate(self, now: Passes) -> Iterate:
        point = np.array(self._state.V.T, order="C")  # a copy with a single task too
        note = "stalled: the slopes of all dual variables are rounding" if self._is_solved else ""
        return Iterate(point, self._dual, self._step, self._visited / len(self._state.a), note)

    @property
    def _is_solved(self) -> bool:
        return not self._state.tasks[:, 2].any()

    @property
    def _dual(self) -> Array:
        """r = y a, shaped like the labels."""
        return np.asarray((self._rows.labels * self._state.a).reshape(self._fit.targets.shape))
