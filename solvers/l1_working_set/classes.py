"""The multiclass loss, whose tasks share their examples: gradient steps until the non-zeros settle, then Newton's method on their face."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.losses import Multiclass
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import OwnState
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.l1_working_set.face import solved
from bench_mtl.solvers.second_order import class_gram

#: A Newton step must lower the objective by the first share of what its slope promises, and is halved so many times at most.
_ARMIJO, _HALVINGS = 1e-4, 13
#: Slopes below this share of the objective are lost in its rounding: whether they fall decides there whether a step helps.
_ROUNDING = 1e-13
#: A multiplication for a Hessian or its factor is faster by this factor than one in a pass over the data, which waits for memory.
_DENSER = 10.0
#: A Newton step may cost as much as this number of passes, or as all work so far.
_CHEAP_PASSES = 100.0
#: What the gradient steps multiply the curvature of their line search by before each of them.
_FALL = 0.8
#: Gradient steps that must leave the signs of W as they are before Newton steps begin.
_PATIENCE = 5
#: Non-zeros on whose face there are Newton steps, at most; also as a multiple of the number of examples.
_MOST_ACTIVE, _MOST_OF_EXAMPLES = 3000, 1.2


def class_iterates(problem: Problem, start: Array) -> Iterator[Iterate]:
    """Alternate between gradient steps and Newton steps on faces."""
    run = _ClassRun(problem, start)
    yield run.iterate()
    while True:
        yield from run.gradient_steps()
        yield from run.newton_steps()


class _ClassRun:
    """The state of one run."""

    def __init__(self, problem: Problem, start: Array) -> None:
        self.problem, self.form = problem, problem.form(LinearForm)
        self.point = start
        self.step = self.phase = 0
        self.work = 0.0
        design = self.form.fit.design
        self._stored = max(1, design.n_stored * design.n_tasks)
        self._gradient = AcceleratedGradient(step_rule="line_search", restart="gradient", fall=_FALL)

    def iterate(self) -> Iterate:
        return Iterate(self.point, None, self.step, self.work)

    def gradient_steps(self) -> Iterator[Iterate]:
        """Take accelerated steps until the signs settle; where they do not, twice as many as in the last phase."""
        if not self.phase:
            self._gradient = replace(self._gradient, initial_lipschitz=self._curvature())
        self.phase += 1
        settled, end = 0, self.step + 10 * 2 ** min(self.phase, 20)
        for iterate in self._gradient.resume(self.problem, self.iterate()):
            if iterate.step == 0:
                before = self.step, self.work
                continue
            settled = settled + 1 if np.array_equal(np.sign(iterate.primal), np.sign(self.point)) else 0
            self.point, self.step, self.work = iterate.primal, before[0] + iterate.step, before[1] + iterate.work
            yield self.iterate()
            if (settled >= _PATIENCE or self.step >= end) and self._can_afford_newton():
                own = OwnState.of(self._gradient, iterate)
                assert own is not None
                self._gradient = replace(self._gradient, initial_lipschitz=own.number("lipschitz"))
                return

    def _can_afford_newton(self) -> bool:
        active, n = np.count_nonzero(self.point), self.form.fit.design.sizes[0]
        if active > min(_MOST_ACTIVE, int(_MOST_OF_EXAMPLES * n)):
            return False
        return bool((n * active**2 + active**3 / 3.0) / (_DENSER * self._stored) <= max(_CHEAP_PASSES, self.work))

    def newton_steps(self) -> Iterator[Iterate]:
        """Take Newton steps until rounding hides what they gain, or one does not help.

        The bound that a point proves depends on its gradient, whose square the slope is: so steps go on below the rounding of the
        objective.
        """
        form, last_slope = self.form, -math.inf
        while np.count_nonzero(self.point):
            W, predictions = self.point, form.fit.design.forward(self.point)
            objective = self._objective(W, predictions)
            classes, rows = np.nonzero(W.T)
            entries = rows, classes
            signs = np.sign(W[entries])
            g = form.fit.design.adjoint(form.fit.derivatives(predictions))[entries] + (form.penalty or 0.0) * signs
            step = face_step(class_hessian(form, predictions, *entries), g, full_balls(form, W, classes) * signs)
            self.work += 1.0 + 0.5 * len(g) ** 2 * form.fit.design.sizes[0] / self._stored
            slope = math.inf if step is None else float(g @ step)
            rounding = _ROUNDING * abs(objective)
            if step is None or slope >= 0.0 or (last_slope > -rounding and 4.0 * slope < last_slope):
                return
            for halving in range(_HALVINGS):
                length = 0.5**halving
                values = W[entries] + length * step
                moved = np.zeros_like(W)
                moved[entries] = np.where(values * signs > 0.0, values, 0.0)
                moved = self.problem.repair(moved)
                self.work += 0.5
                lower = self._objective(moved, form.fit.design.forward(moved))
                if lower <= objective + _ARMIJO * length * slope + 0.1 * rounding:
                    break
            else:
                return
            self.point, last_slope = moved, slope
            self.step += 1
            yield self.iterate()

    def _objective(self, W: Array, predictions: Array) -> float:
        return self.form.fit.value(predictions) + (self.form.penalty or 0.0) * float(np.abs(W).sum())

    def _curvature(self) -> float:
        """Return the curvature of the loss along its gradient: a first guess from below, which the line search corrects."""
        gradient = self.problem.value_and_gradient(self.point)[1]
        size = float(np.linalg.norm(gradient))
        length = 1e-3 * max(float(np.linalg.norm(self.point)), 1e-3) / size if size > 0.0 else 0.0
        ahead = self.problem.value_and_gradient(self.point - length * gradient)[1]
        self.work += 2.0
        return float(np.linalg.norm(ahead - gradient)) / (length * size) or 1.0 if length else 1.0


def class_hessian(form: LinearForm, predictions: Array, rows: NDArray[np.intp], classes: NDArray[np.intp]) -> Array:
    """Return the second derivatives of the loss in these entries of W, sorted by class."""
    fit = form.fit
    assert isinstance(fit.loss, Multiclass)
    Z = dense(fit.design.block(0)[:, rows])
    blocks = np.split(Z, np.searchsorted(classes, np.arange(1, fit.design.n_tasks)), axis=1)
    return class_gram(blocks, fit.weights * fit.loss.probabilities(predictions), fit.weights)


def full_balls(form: LinearForm, W: Array, classes: NDArray[np.intp]) -> Array:
    """Return the indicators, balls x non-zeros, of the balls whose norm W attains up to rounding; the non-zeros are in these classes."""
    if form.radius is None:
        return np.zeros((0, len(classes)))
    sizes = np.abs(W).sum(axis=0)
    if form.norm.balls == "all":
        sizes, classes = sizes.sum(keepdims=True), np.zeros_like(classes)
    full = np.flatnonzero(sizes >= form.radius * (1.0 - 1e-9))
    return np.asarray(classes == full[:, None], dtype=np.float64)


def face_step(H: Array, g: Array, normals: Array) -> Array | None:
    """Return argmin_d <g, d> + 1/2 d^T H d subject to normals d = 0; None where H cannot be factorised, or is almost 0. H changes."""
    H[np.diag_indices(len(H))] += 1e-12 * float(np.trace(H)) / len(H) + np.finfo(np.float64).tiny
    found = solved(H, np.column_stack([g, normals.T]))
    if found is None or not len(normals):
        return None if found is None else -found[:, 0]
    d, across = -found[:, 0], found[:, 1:]
    d = d - across @ np.linalg.lstsq(normals @ across, normals @ d, rcond=None)[0]
    return np.asarray(d) if np.abs(d).max() <= 1e100 else None
