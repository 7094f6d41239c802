"""Coordinate descent and Newton's method on working sets of entries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_matrix, real_number, whole_number
from bench_mtl.core.designs import Design, frozen_matrix
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Array, Iterate, gap_up_to_rounding
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss, Multiclass, Squared
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.solvers.l1_working_set.balls import Ball, ConstrainedBall, PenalisedBall, Sizes
from bench_mtl.solvers.l1_working_set.classes import class_iterates
from bench_mtl.solvers.l1_working_set.columns import Chosen, Columns, Model, columns_of
from bench_mtl.solvers.l1_working_set.slopes import Slopes
from bench_mtl.solvers.l1_working_set.tasks import LogisticTask, SquaredTask, Task

#: The line through two solutions is followed at most so many times their distance.
_LONGEST_EXTENSION = 2.0


@dataclass(frozen=True, eq=False)
class Memory:
    """What runs along a path know of the data of those before: copied columns, and values of the penalty or the radius with starts."""

    columns: WeakKeyDictionary[Design, dict[bool, list[Columns]]] = field(default_factory=WeakKeyDictionary)
    """For problems with intercepts and without."""
    passed: WeakKeyDictionary[Design, tuple[float | None, float, Array]] = field(default_factory=WeakKeyDictionary)
    """Of the last two runs the values, and the start of the last: the solution of the one before."""

    def extended(self, form: LinearForm, solution: Array) -> Array:
        """Return `solution`, that for the last value, moved on the line through it and the one before to the value of a form.

        Between the values at which an entry becomes or ceases to be zero, the solutions of the lasso are a line in its penalty. Zeros stay,
        and an entry that would change its sign becomes zero. Values that turn round or are far apart leave the solution as it is.
        """
        design, value = form.fit.design, form.penalty if form.radius is None else form.radius
        assert value is not None
        earlier, last, start = self.passed.get(design, (None, None, solution))
        self.passed[design] = last, value, solution
        if earlier is None or last is None or earlier == last or start.shape != solution.shape:
            return solution
        ratio = (value - last) / (last - earlier)
        if not 0.0 < ratio <= _LONGEST_EXTENSION:
            return solution
        moved = solution + ratio * (solution - start)
        return np.where(moved * solution > 0.0, moved, 0.0)


@dataclass(frozen=True)
class L1WorkingSet(IterativeSolver):
    """Solves for few entries of W at a time: the non-zeros, and those of 0 whose derivative of f is largest.

    A step takes one product X_k^T r_k with the residuals of all examples, which tells by how much every entry misses its condition of
    optimality, and solves every task that is not at its optimum on its working set, to a share of what it misses. A set has at most
    `growth` times as many entries as W has non-zeros, or as many as the one before, and leaves out those that the strong rule discards
    with a margin. From one step to the next the penalty falls at most to 0.3 of the largest slope, until it is the one that is wanted: so
    no set is solved for a penalty at which it has far too few entries.

    On a set, with H the second derivatives of f at the predictions (for a logistic loss a model of it, followed by a line search) and g the
    gradient, what is minimised is <g, d> + 1/2 d^T H d + penalty ||w + d||_1:

    1. by sweeps of cyclic coordinate descent, of which one in five is over the whole set and the others over its non-zeros, with
       Anderson's extrapolation of five of them;
    2. once sweeps have cost as much as it does, by Newton's step on the face that the signs of w span: one system of linear equations
       in the non-zeros, and further ones where entries become 0 on the way.

    A multiclass loss, whose tasks share their examples, is minimised over all entries: by accelerated gradient steps with restarts and a
    line search until the signs of W settle, and a Newton step costs no more than all that came before; then by Newton's method on the face
    that they span, on which full balls stay full, until a step does not help. Features of unlike size are for `DualNewton` there.

    A free intercept is minimised over at once: what is solved is the problem of columns without their means, those weighted with H. Sparse
    columns stay sparse, as a Hessian without means is one with a row more.

    A radius z is met by Newton's method for the penalty on the set: ||w||_1 falls with the penalty by s^T H^-1 s, s the signs of the
    non-zeros, and w by H^-1 s; by secants where H is too large. Tasks that share a ball share their penalty. The point of an iterate is
    scaled into the ball.

    The data stay as they are, by rows; columns are copied when they are first in a working set (of sparse data all). Where a step was
    short, slopes that it cannot have brought to the penalty are left as they were.
    Work counts products with the data by their multiplications; those for H count as the multiplications of sweeps that take as long, and
    its factors are left out.

    Parameters
    ----------
    first : entries of the first working set, at most
    growth : the largest ratio of the size of a working set to the number of non-zeros, above 1

    References
    ----------
    Massias, Gramfort, Salmon, "Celer: a fast solver for the lasso with dual extrapolation", ICML 2018 (working sets); Bertrand, Massias,
    "Anderson acceleration of coordinate descent", AISTATS 2021; Bertrand, Klopfenstein, Bannier, Gidel, Massias, "Beyond L1: faster and
    better sparse models with skglm", NeurIPS 2022; Lee, Sun, Saunders, SIAM Journal on Optimization 24, 2014 (models of the loss); More,
    Toraldo, SIAM Journal on Optimization 1, 1991 (gradient steps to find a face, a Newton-like method on it);
    Osborne, Presnell, Turlach, IMA Journal of Numerical Analysis 20(3), 2000 (the path, for the search on the penalty).
    """

    first: int = 50
    growth: float = 3.0
    aim: float = field(default=0.0, repr=False)
    """The relative gap of the run: what may be the last working set is solved to it at once. Set by `aimed_at`."""
    memory: Memory | None = field(default=None, repr=False, compare=False)
    """Set by `along_path`."""

    name: ClassVar[str] = "l1_working_set"
    takes = (loss_under("squared", L1), loss_under("logistic", L1), loss_under("multiclass", L1))
    takes_intercept = True

    def __post_init__(self) -> None:
        whole_number("first", self.first, minimum=1)
        real_number("growth", self.growth, minimum=1.0, strict=True)

    def warm_up(self) -> None:
        """Solve on columns of either layout, and make and sweep over products of them, which tiny instances may not do."""
        from bench_mtl.solvers.l1_working_set.kernels import combine, descend, products

        gram, ones, every = Chosen(np.eye(5), None, None, np.arange(5)), np.ones(5), np.arange(5)
        descend(gram, Model(0.1, None, ones, 0.0 * ones, 0.0), 0.0 * ones, ones.copy(), 1e-3, 6)
        products(gram, ones, ones.copy())
        combine(gram, ones, ones.copy())
        for X in (np.eye(5), sp.csr_array(np.eye(5))):
            columns = columns_of(frozen_matrix(real_matrix("X", X)))
            for weights, h in ((ones, None), (np.arange(1.0, 6.0), ones)):
                SquaredTask(columns, ones, weights, None).solve(every, 0.1, 1e-3)
                columns.gram(every, h)

    def aimed_at(self, relative_gap: float) -> L1WorkingSet:
        return replace(self, aim=relative_gap)

    def along_path(self) -> L1WorkingSet:
        """Return a solver that keeps the columns that it copies, and their products, for as long as their design is there.

        It starts where the line through the last two solutions ends.
        """
        return replace(self, memory=Memory())

    def _columns_of(self, fit: LinearFit) -> list[Columns]:
        """Return the columns of every task; tasks that share X share them."""
        design, has_intercept = fit.design, fit.intercept
        kept = {} if self.memory is None else self.memory.columns.setdefault(design, {})
        if has_intercept not in kept:
            shared = [columns_of(design.block(0), has_intercept)] * design.n_tasks if design.is_shared else None
            kept[has_intercept] = shared or [columns_of(design.block(k), has_intercept) for k in range(design.n_tasks)]
        return kept[has_intercept]

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.form(LinearForm)
        if start is not None and self.memory is not None:
            start = self.memory.extended(form, start)
        point = problem.repair(problem.start_point() if start is None else start)
        if isinstance(form.fit.loss, Multiclass):
            yield from class_iterates(problem, point)
            return
        yield Iterate(point, claim=math.inf)
        design = form.fit.design
        least = NEGLIGIBLE_SHARE * form.fit.value(np.zeros(design.output_shape))  # about the scale of the problem
        balls = _balls(form, point, self._columns_of(form.fit), Sizes(self.first, self.growth, self.aim))
        tasks = [task for ball in balls for task in ball.tasks]
        stored = sum(task.columns.stored for task in tasks)
        step, slopes_of = 0, Slopes(design, tasks)
        gradient = slopes_of.follow(_dual(form, tasks), is_near=False)
        while not all(ball.is_solved for ball in balls):
            slopes = list(np.ascontiguousarray(gradient.T))
            for ball in balls:
                own = [slopes.pop(0) for _ in ball.tasks]
                if not ball.is_solved:
                    ball.advance(own)
            step += 1
            work = 0.5 * (slopes_of.products + sum(task.products for task in tasks) / stored)
            W = np.ascontiguousarray(np.stack([ball.share * task.w for ball in balls for task in ball.tasks], axis=1))
            dual = _dual(form, tasks)
            gradient = slopes_of.follow(dual, is_near=all(ball.is_near for ball in balls))  # of the next step
            yield Iterate(W, dual, step, work, claim=_relative_gap(form, balls, W, dual, gradient, least))


def _relative_gap(form: LinearForm, balls: list[Ball], W: Array, dual: Array, gradient: Array, least: float) -> float:
    """Return the gap as a share of the objective, or of `least`, up to rounding, from X^T r of the dual point r."""
    predictions = form.fit.design.unstack(np.concatenate([ball.share * task.t for ball in balls for task in ball.tasks]))
    return gap_up_to_rounding(form.objective(W, predictions), form.bound(dual, gradient), least)


def _dual(form: LinearForm, tasks: list[Task]) -> Array:
    return form.fit.design.unstack(np.concatenate([task.dual() for task in tasks]))


def _intercept(loss: Loss, y: Array, weights: Array, design: Design, t: Array) -> float:
    """Return the best intercept to the predictions t of one task."""
    return float(loss.intercepts(t[:, None], y[:, None], weights[:, None], design)[0])


def _balls(form: LinearForm, start: Array, columns: list[Columns], sizes: Sizes) -> list[Ball]:
    fit = form.fit
    design = fit.design
    kind = SquaredTask if isinstance(fit.loss, Squared) else LogisticTask
    cones = np.ones_like(start) if form.norm.nonneg and form.norm.orientation is None else form.norm.orientation
    tasks: list[Task] = []
    for k in range(design.n_tasks):
        cone = np.ascontiguousarray(cones[:, k]) if form.norm.nonneg else None
        y, weights = design.task_outputs(fit.targets, k), design.task_outputs(fit.weights, k)
        task = kind(columns[k], y, weights, cone, partial(_intercept, fit.loss, y, weights, design.of_task(k)) if fit.intercept else None)
        if start[:, k].any():
            task.begin(start[:, k], form.penalty or 0.0)
        tasks.append(task)
    if form.radius is None:
        assert form.penalty is not None
        return [PenalisedBall(task, sizes, form.penalty) for task in tasks]
    if form.norm.balls == "all":
        return [ConstrainedBall(tasks, sizes, form.radius)]
    return [ConstrainedBall([task], sizes, form.radius) for task in tasks]
