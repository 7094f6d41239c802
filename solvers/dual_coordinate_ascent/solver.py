"""Dual coordinate ascent on support vector machines."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import whole_number
from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.types import Array, Iterate, gap_up_to_rounding
from bench_mtl.model.forms import RIDGE_HINGES, LinearForm, under_ridge
from bench_mtl.model.losses import SquaredHinge
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.stochastic.examples import TaskRows

#: The first spread of projected gradients at which examples that were left out are visited again; those of liblinear end at 0.1.
_FIRST_WIDTH = 0.1
#: A step is at most one part in so many of all passes so far: an iterate copies the coefficients, which takes as long as some passes over
#: few examples.
_STEP_SHARE = 2
#: A gap that was no proof is to fall to this share.
_NEXT = 0.5


@dataclass(frozen=True)
class DualCoordinateAscent(SteppingSolver):
    """For min_w sigma ||w||^2 + sum_i s_i max(0, 1 - y_i x_i.w), one dual variable a_i in [0, s_i] after the other::

        a_i <- clip(a_i + (1 - y_i x_i.w) / q_i, 0, s_i),    q_i = ||x_i||^2 / (2 sigma)
        w    = 1/(2 sigma) sum_i a_i y_i x_i                 updated at every step

    With squared hinges a_i has no upper end, the slope is 1 - y_i x_i.w - a_i / (2 s_i), and q_i is larger by 1 / (2 s_i).

    A pass visits every example of a task once, in a random order. Examples whose a_i is at a bound with a slope that points further out
    than any slope of the pass before pointed in are left out (shrinking), until the others are solved to a width that then falls. After a
    pass in which no a_i has met or left a bound, conjugate gradients go on with those between their bounds, all at once. Every task is a
    problem of its own. A visit costs the non-zeros of its example; `work` is the number of visits over that of all examples, and steps are
    passes and conjugate gradients. A task whose slopes are rounding is not visited any more; when all are, the solver ends.

    The gap of a task is a sum over its examples, for hinges of (s_i - a_i) max(0, e_i) + a_i max(0, -e_i) with e_i = 1 - y_i x_i.w. A pass
    knows its terms as they were when it came by. When these promise the gap that the run aims at, it is summed over all examples, those
    that are left out included, which come back if it is theirs; a task that has its share of the gap is not visited any more.

    Parameters
    ----------
    seed : seed of the orders

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML 2008, algorithm 3. More,
    Toraldo, "On the solution of large quadratic programming problems with bound constraints", SIAM J. Optim. 1, 1991 (faces).
    """

    seed: int = 0
    aim: float = field(default=0.0, repr=False, compare=False)

    name: ClassVar[str] = "dual_coordinate_ascent"
    takes = (RIDGE_HINGES, under_ridge("squared_hinge"))
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole_number("seed", self.seed)

    def aimed_at(self, relative_gap: float) -> DualCoordinateAscent:
        return replace(self, aim=relative_gap)

    def stepper(self, problem: Problem) -> Passes:
        return Passes(self, problem.form(LinearForm))


class Passes(Stepper):
    """The dual point, the coefficients, and what the passes keep of every task."""

    kept = ("_state", "_visited", "_step", "_aim")

    def __init__(self, solver: DualCoordinateAscent, form: LinearForm) -> None:
        import bench_mtl.solvers.dual_coordinate_ascent.kernels as kernels

        self._solver, self._kernels = solver, kernels
        self._form, self._fit, self._rows = form, form.fit, TaskRows.of(form)
        weights, shrink = np.array(form.fit.weights, dtype=np.float64).ravel(), 1.0 / form.squared_norms.strengths[0]
        is_soft = isinstance(form.fit.loss, SquaredHinge)
        uppers, softness = (np.full_like(weights, np.inf), 0.5 / weights) if is_soft else (weights, np.zeros_like(weights))
        self._boxes = kernels.Boxes(uppers, shrink * self._squared_lengths(), softness, shrink)
        self._visited = self._step = 0
        self._aim = solver.aim

    def _squared_lengths(self) -> Array:
        """Return ||x||^2 of every example, as the labels are."""
        design = self._fit.design
        X: Any = stacked_rows(design)
        if design.is_sparse:
            squares = np.empty(X.shape[0])
            fill: Any = self._kernels.row_squares
            fill(self._rows.values, self._rows.indptr, squares)
        else:
            squares = np.einsum("ij,ij->i", X, X)
        return np.repeat(squares, design.n_tasks) if design.is_shared else squares

    def start(self, at: Iterate) -> Passes:
        """Begin at the dual point of an iterate that has one; a point alone says nothing of the dual, and is the first iterate."""
        fit, uppers, sizes = self._fit, self._boxes.uppers, np.asarray(self._fit.design.sizes, dtype=np.int64)
        a = np.zeros(len(uppers)) if at.dual is None else np.clip((at.dual * fit.targets).ravel(), 0.0, uppers)
        numbers = np.arange(sizes.max())
        orders = np.where(numbers < sizes[:, None], numbers, -1)
        tasks = np.tile([np.inf, -np.inf, _FIRST_WIDTH, np.inf, np.inf, 1.0], (len(sizes), 1))
        V = np.zeros((len(sizes), fit.design.n_features))
        self._first = np.array(at.primal)
        self._state = self._kernels.State(a, V, orders, sizes.copy(), tasks, np.array([self._solver.seed], dtype=np.uint64))
        if at.dual is None:  # all examples have a loss of 1
            tasks[:, self._kernels.GAP] = tasks[:, self._kernels.VALUE] = fit.design.task_sums(fit.weights)
        else:
            for k in range(len(sizes)):
                for part in (self._kernels.sum_coefficients, self._kernels.test_gap):
                    part(self._rows, self._boxes, self._state, k)
        return self

    def step(self, now: Passes) -> Passes | None:
        if self._is_solved:
            return None
        if math.isfinite(self._claim):  # which was no proof: a task that can do better is visited; none where every gap is 0
            gaps, widths = (self._state.tasks[:, column] for column in (self._kernels.GAP, self._kernels.WIDTH))
            self._aim = _NEXT * float((gaps / self._objectives)[widths > 0.0].max()) or -1.0
        visited, passes = self._kernels.passes(self._rows, self._boxes, self._state, self._allowed, 1 + self._step // _STEP_SHARE)
        self._visited += visited
        self._step += passes
        return self

    def iterate(self, now: Passes) -> Iterate:
        point = np.array(self._state.V.T, order="C") if self._step else self._first  # a copy with a single task too
        note = "stalled: the slopes of all dual variables are rounding" if self._is_solved else ""
        dual = (self._rows.labels * self._state.a).reshape(self._fit.targets.shape)  # r = y a
        # The first point may be another one than that of the dual point, whose gap the claim is.
        claim = self._claim
        if not self._step and claim < np.inf:
            tasks = self._state.tasks
            bound = float((tasks[:, self._kernels.VALUE] - tasks[:, self._kernels.GAP]).sum())
            claim = gap_up_to_rounding(self._form.objective(point), bound)
        return Iterate(point, dual, self._step, self._visited / len(self._state.a), note, claim=claim)

    @property
    def _allowed(self) -> Array:
        """The gaps of the tasks that the run aims at: they add up to its share of the objective, and spare tasks whose own is small."""
        return self._aim * self._objectives

    @property
    def _objectives(self) -> Array:
        """The mean of the objective of every task and of their average."""
        values = self._state.tasks[:, self._kernels.VALUE]
        return np.asarray(0.5 * (values + values.mean()))

    @property
    def _claim(self) -> float:
        """The relative gap; inf while that of a task is an estimate."""
        gaps, values, widths = (self._state.tasks[:, column] for column in (self._kernels.GAP, self._kernels.VALUE, self._kernels.WIDTH))
        is_summed = (gaps <= self._allowed) | (widths == 0.0)
        return float(gaps.sum() / values.sum()) if is_summed.all() else np.inf

    @property
    def _is_solved(self) -> bool:
        return not self._state.tasks[:, self._kernels.WIDTH].any()
