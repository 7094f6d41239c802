"""Accelerated gradient steps until the non-zeros settle, then Newton's method on the face of the l1 ball that they span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bench_mtl.core.checks import whole_number
from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import L1Form
from bench_mtl.model.losses import Multiclass, Squared
from bench_mtl.model.protocols import Capability, Form, IterativeSolver, Problem
from bench_mtl.solvers.l1_quadratic import L1Quadratic
from bench_mtl.solvers.projected_gradient import prox_step
from bench_mtl.solvers.units import feature_units

#: Share of the mean curvature that is added to a Hessian, so that it can be factorised where columns are dependent.
_RIDGE = 1e-12

#: A Newton step must lower the objective by this share of what its slope promises.
_ARMIJO = 1e-4

#: A shorter Newton step does not help: gradient steps follow.
_SMALLEST_STEP = 1e-4

#: Slopes below this share of the objective are lost in its rounding: whether they fall decides there whether a step helps.
_ROUNDING = 1e-13

#: Larger entries of a Newton step come from curvatures of almost 0, and their products overflow.
_LARGEST_STEP = 1e100

#: A multiplication for a Hessian or its factor is faster by this factor than one in a pass over the data, which waits for memory.
_DENSER = 10.0

#: A Newton step may cost as much as this number of passes, or as all work so far.
_CHEAP_PASSES = 100.0

#: Gradient steps that must leave the signs of W as they are before Newton steps begin.
_PATIENCE = 5

#: Quadratic models over all entries of W are made up to this number of them: a step solves a system of up to that order on every face.
_LARGEST_MODEL = 400

#: Phases of Newton steps on faces before models are made of data whose columns are alike.
_FACE_PHASES = 3

#: Faces that a model is minimised on, at most: a point between is feasible and lower, and the next model starts from it.
_FACES = 40

#: The share of the mean curvature that is added to the first such model.
_FIRST_DAMPING = 1e-4

#: Features up to which X^T X is made whole for a squared loss, once as much has been spent on parts of it.
_LARGEST_GRAM = 2000


@dataclass(frozen=True)
class FaceNewton(IterativeSolver):
    """Alternates between two phases:

    1. accelerated proximal gradient steps with restarts and a line search, until the signs of W stay the same for 5 steps (or after
       a number of steps that doubles from phase to phase), and a Newton step costs no more than all that came before;
    2. Newton steps on the face that these signs span: with S the non-zeros, g and H the gradient and Hessian of f on S,

           argmin_d  <g, d> + 1/2 d^T H d    subject to   sum_{j in S, ball b} sign(W_j) d_j = 0   for every ball b that is full

       (with a penalty g + penalty sign(W) in place of g, and no constraint), followed by a line search on the objective at the projection
       of W + t d. What changes sign on the way leaves the face. A step that does not help ends it, and so does a face that is solved.

    A Newton step costs one pass over the data, n |S|^2 products for the Hessian, which work counts as the passes that make as many, and
    |S|^3 / 3 for its factor, which work leaves out. For a squared loss X^T X is computed once where that is cheaper.

    Where the norms of the columns of the data differ by more than a factor of 1000, both phases and their projections are in features
    scaled to norm 1: else the curvature of the largest column sets the length of all gradient steps, and hides those of the others in H.

    On such faces the H of a softmax is singular, as all classes may gain the same, and its steps leave the face. So for a multiclass loss
    and at most 400 entries of W, the second phase is there, and after three phases on any data, one of damped Newton steps over the whole
    feasible set: to the minimiser of <g, d> + 1/2 d^T (H + damping I) d, found by an active-set method, and then a line search. Work leaves
    out the factors of H on the faces that this passes.

    Parameters
    ----------
    most_active : largest number of non-zeros for Newton steps, which at most 1.2 times the number of examples may have in any case

    References
    ----------
    More, Toraldo, SIAM Journal on Optimization 1, 1991 (gradient projection to find the face, a Newton-like method on it);
    Lee, Sun, Saunders, SIAM Journal on Optimization 24, 2014 (proximal Newton methods, also the steps to minimisers of models).
    """

    most_active: int = 3000

    name: ClassVar[str] = "face_newton"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    takes: ClassVar[tuple[type[Form], ...]] = (L1Form,)

    def __post_init__(self) -> None:
        whole_number("most_active", self.most_active)

    def warm_up(self) -> None:
        _project_weighted(np.ones((2, 1)), 1.0, "task", np.ones(2))

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        run = _Run(problem, self, problem.repair(problem.start_point() if start is None else start))
        yield run.iterate()
        while True:
            yield from run.gradient_steps()
            yield from run.model_steps() if run.needs_models else run.newton_steps()


class _Run:
    """The state of one run."""

    def __init__(self, problem: Problem, options: FaceNewton, start: Array) -> None:
        self._problem, self._form = problem, problem.form(L1Form)
        self._space = _Features(problem, self._form)
        self.point = start
        self.step = 0
        self.work = 0.0  # without Hessians
        self._L = 0.0
        self._phase = 0
        self._most_active = min(options.most_active, int(1.2 * self._form.fit.design.n_examples))
        self._grams = _Grams(self._form)
        self._stored = stored_products(self._form)
        self._damping = _FIRST_DAMPING
        self._can_have_models = isinstance(self._form.fit.loss, Multiclass) and start.size <= _LARGEST_MODEL

    @property
    def needs_models(self) -> bool:
        """Whether the second phase is of steps to minimisers of models over the whole feasible set."""
        return self._can_have_models and (self._space.are_scaled or self._phase > _FACE_PHASES)

    def iterate(self) -> Iterate:
        return Iterate(self.point, None, self.step, self.work + 0.5 * self._grams.products / self._stored)

    def gradient_steps(self) -> Iterator[Iterate]:
        """Take accelerated steps with restarts until the signs settle; where they do not, twice as many as in the last phase."""
        space, point = self._space, self._space.scaled(self.point)
        previous, t_before, t, settled = point, 0.0, 1.0, 0
        self._phase += 1
        most = 10 * 2 ** min(self._phase, 20)
        made = 0
        while made < most or not self._can_afford_newton():
            search = point + (t_before - 1.0) / t * (point - previous)
            value, gradient = space.value_and_gradient(search)
            if self._L == 0.0:
                self._L = self._curvature(search, gradient)
            L = 0.8 * self._L
            new, self._L, trials = prox_step(space, space.prox, search, value, gradient, L, search=True)
            self.work += 1.0 + 0.5 * trials
            t_before, t = t, 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
            uphill = float(((search - new) * (new - point)).sum()) > 0.0
            if uphill:
                t_before, t = 0.0, 1.0
            settled = settled + 1 if np.array_equal(np.sign(new), np.sign(point)) else 0
            previous, point = (new if uphill else point), new
            self.point = space.unscaled(point)
            self.step += 1
            made += 1
            yield self.iterate()
            if settled >= _PATIENCE and self._can_afford_newton():
                return

    def _can_afford_newton(self) -> bool:
        active, design = np.count_nonzero(self.point), self._form.fit.design
        if active > self._most_active:
            return False
        price = (design.sizes[0] * active**2 + active**3 / 3.0) / (_DENSER * self._stored)
        return bool(price <= max(_CHEAP_PASSES, self.work))

    def newton_steps(self) -> Iterator[Iterate]:
        """Take Newton steps until the face is solved, or one does not help."""
        slope = -np.inf
        while np.count_nonzero(self.point):
            new, slope, is_last = self._newton_step(slope)
            if new is None:
                return
            self.point = new
            self.step += 1
            yield self.iterate()
            if is_last:
                return

    def _newton_step(self, last_slope: float) -> tuple[Array | None, float, bool]:
        """Return the new point (None where the step does not help), the slope along the step, and whether the face is solved.

        The bound that a point proves depends on its gradient, whose square the slope is: so steps go on below the rounding of the
        objective.
        """
        form, W = self._form, self.point
        predictions = form.fit.design.forward(W)
        objective = self._objective(W, predictions)
        gradient = form.fit.design.adjoint(form.fit.derivatives(predictions))
        self.work += 1.0
        rows, columns = np.nonzero(W)
        signs = np.sign(W[rows, columns])
        g = gradient[rows, columns] + (form.penalty or 0.0) * signs
        H = face_hessian(form, predictions, rows, columns, self._grams)
        step = self._space.newton_step(H, g, signs, full_balls(form, W, rows, columns), rows)
        slope = 0.0 if step is None else float(g @ step)
        rounding = _ROUNDING * abs(objective)
        if step is None or slope >= 0.0 or (last_slope > -rounding and 4.0 * slope < last_slope):
            return None, slope, True
        t = 1.0
        while t >= _SMALLEST_STEP:
            values = W[rows, columns] + t * step
            moved = np.zeros_like(W)
            moved[rows, columns] = np.where(values * signs > 0.0, values, 0.0)
            moved = self._space.repair(moved)
            self.work += 0.5
            if self._objective(moved, form.fit.design.forward(moved)) <= objective + _ARMIJO * t * slope + 0.1 * rounding:
                return moved, slope, isinstance(form.fit.loss, Squared) and t == 1.0 and bool(np.all(values * signs > 0.0))
            t *= 0.5
        return None, slope, True

    def model_steps(self) -> Iterator[Iterate]:
        """Take steps to minimisers of quadratic models of f over the whole feasible set, until one does not help."""
        slope = -np.inf
        while True:
            new, slope = self._model_step(slope)
            if new is None:
                return
            self.point = new
            self.step += 1
            yield self.iterate()

    def _model_step(self, last_slope: float) -> tuple[Array | None, float]:
        """Return the new point, None where the step does not help, and the change that the step promises to first order."""
        form, W = self._form, self.point
        predictions = form.fit.design.forward(W)
        objective = self._objective(W, predictions)
        rows, columns = (axis.ravel() for axis in np.indices(W.shape))
        H = face_hessian(form, predictions, rows, columns, self._grams)
        gradient = form.fit.design.adjoint(form.fit.derivatives(predictions))
        self.work += 1.0
        target = self._space.model_step(H, gradient, W, self._damping)
        step = target - W
        penalty = form.penalty or 0.0
        slope = float((gradient * step).sum()) + penalty * float(np.abs(target).sum() - np.abs(W).sum())
        rounding = _ROUNDING * abs(objective)
        if slope >= 0.0 or (last_slope > -rounding and 4.0 * slope < last_slope):
            return None, slope
        t, moved, value = 1.0, target, self._objective_at(target)
        while value < 0.5 * objective:  # separable classes: the loss falls exponentially along the step
            further = self._space.repair(W + 2.0 * t * step)
            value_further = self._objective_at(further)
            if not value_further < 0.5 * value:
                break
            t, moved, value = 2.0 * t, further, value_further
        while t >= _SMALLEST_STEP:
            if value <= objective + _ARMIJO * min(t, 1.0) * slope + 0.1 * rounding:
                self._damping = max(self._damping / 100.0, _RIDGE) if t >= 1.0 else min(10.0 * self._damping, 1.0)
                return moved, slope
            t *= 0.5
            moved = self._problem.repair(W + t * step)
            value = self._objective_at(moved)
        self._damping = _FIRST_DAMPING
        return None, slope

    def _objective_at(self, W: Array) -> float:
        self.work += 0.5
        return self._objective(W, self._form.fit.design.forward(W))

    def _objective(self, W: Array, predictions: Array) -> float:
        penalty = self._form.penalty
        return self._form.fit.value(predictions) + (0.0 if penalty is None else penalty * float(np.abs(W).sum()))

    def _curvature(self, point: Array, gradient: Array) -> float:
        """Return the curvature of the loss along its gradient: a first guess from below, which the line search corrects."""
        size = float(np.linalg.norm(gradient))
        if size == 0.0:
            return 1.0
        length = 1e-3 * max(float(np.linalg.norm(point)), 1e-3) / size
        ahead = self._space.value_and_gradient(point - length * gradient)[1]
        self.work += 1.0
        return float(np.linalg.norm(ahead - gradient)) / (length * size) or 1.0


class _Features:
    """The problem in features in which the columns of the data are alike, W_j = t_j V_j; V = W where they are already.

    The norm of W is then one of V with weights t. An unweighted projection would take the same from every entry of W, which is all of those
    of large columns.
    """

    def __init__(self, problem: Problem, form: L1Form) -> None:
        self._problem, self._form = problem, form
        self._units = feature_units(form.fit.design)

    def scaled(self, W: Array) -> Array:
        return W if self._units is None else W / self._units[:, None]

    def unscaled(self, V: Array) -> Array:
        return V if self._units is None else self._problem.repair(V * self._units[:, None])

    def smooth_value(self, V: Array) -> float:
        return self._problem.smooth_value(V if self._units is None else V * self._units[:, None])

    def value_and_gradient(self, V: Array) -> tuple[float, Array]:
        if self._units is None:
            return self._problem.value_and_gradient(V)
        value, gradient = self._problem.value_and_gradient(V * self._units[:, None])
        return value, gradient * self._units[:, None]

    def prox(self, V: Array, step_size: float) -> Array:
        if self._units is None:
            return self._problem.prox(V, step_size)
        inside, t = self._form.norm.to_cone(V), self._units
        if self._form.radius is not None:
            return _project_weighted(inside, self._form.radius, self._form.balls, t)
        cut = step_size * (self._form.penalty or 0.0) * t[:, None]
        return np.asarray(np.sign(inside) * np.maximum(np.abs(inside) - cut, 0.0))

    def repair(self, W: Array) -> Array:
        return self._problem.repair(W) if self._units is None else self.unscaled(self.prox(self.scaled(W), 0.0))

    @property
    def are_scaled(self) -> bool:
        return self._units is not None

    def model_step(self, H: Array, gradient: Array, W: Array, damping: float) -> Array:
        """Return the feasible minimiser of the quadratic model of f at W, with the Hessian of all entries of W, damped in V."""
        form = self._form
        t = np.ones(len(W)) if self._units is None else self._units
        weights = np.repeat(t, W.shape[1])
        H = H * weights * weights[:, None]
        H[np.diag_indices(len(H))] += damping * float(np.trace(H)) / len(H) + np.finfo(np.float64).tiny
        balls = np.indices(W.shape)[1].ravel() if form.balls == "task" else np.zeros(W.size, dtype=np.intp)
        allowed = form.norm.oriented(np.ones_like(W)).ravel() if form.nonneg else np.zeros(W.size)
        model = L1Quadratic(H, gradient.ravel() * weights, W.ravel() / weights, weights, balls, form.radius, form.penalty or 0.0, allowed)
        with np.errstate(over="ignore", invalid="ignore"):
            V = model.minimise(_FACES)
        return self._problem.repair((V * weights).reshape(W.shape)) if np.abs(V).max() <= _LARGEST_STEP else W

    def newton_step(self, H: Array, g: Array, signs: Array, full: Array, rows: NDArray[np.intp]) -> Array | None:
        """Return `constrained_newton` by a Hessian in V, whose ridge is small beside every entry of its diagonal."""
        if self._units is None:
            return constrained_newton(H, g, signs, full)
        t = self._units[rows]
        step = constrained_newton(H * t * t[:, None], g * t, signs, full * t)
        return None if step is None else step * t


def _project_weighted(V: Array, radius: float, balls: str, t: Array) -> Array:
    """Return the projection of V on sum_j t_j |V_jk| <= radius for every k (balls "task"), or summed over k too ("all")."""
    from bench_mtl.solvers.kernels.weighted_norms import project_weighted_l1

    columns = [V.ravel()] if balls == "all" else list(V.T)
    weights = np.repeat(t, V.shape[1]) if balls == "all" else t
    projected = [column.copy() for column in columns]
    for column in projected:
        project_weighted_l1(column, float(radius), weights, 0.0)
    return projected[0].reshape(V.shape) if balls == "all" else np.ascontiguousarray(np.array(projected).T)


def face_hessian(form: L1Form, predictions: Array, rows: NDArray[np.intp], columns: NDArray[np.intp], grams: _Grams | None = None) -> Array:
    """Return the second derivatives of the loss in the entries (rows, columns) of W; `grams` keeps and counts products."""
    fit = form.fit
    grams = _Grams(form) if grams is None else grams
    H = np.zeros((len(rows), len(rows)))
    if isinstance(fit.loss, Multiclass):
        Z = dense(fit.design.block(0)[:, rows])
        shares = fit.loss.probabilities(predictions)[:, columns]
        mixed = Z * shares * fit.weights**0.5
        H -= mixed.T @ mixed
        grams.products += mixed.size * len(rows)
        for k in np.unique(columns):
            own = np.flatnonzero(columns == k)
            grams.products += len(Z) * len(own) ** 2
            H[np.ix_(own, own)] += (Z[:, own] * (shares[:, own] * fit.weights)).T @ Z[:, own]
        return H
    curvatures = fit.curvatures(predictions)
    for k in np.unique(columns):
        own = np.flatnonzero(columns == k)
        gram = grams.of_task(int(k), len(own))
        if gram is not None:
            H[np.ix_(own, own)] = gram[np.ix_(rows[own], rows[own])]
            continue
        Z = dense(fit.design.block(int(k))[:, rows[own]])
        scaled = Z * np.sqrt(fit.design.task_outputs(curvatures, int(k)))[:, None]
        H[np.ix_(own, own)] = scaled.T @ scaled
        grams.products += scaled.size * len(own)
    return H


def full_balls(form: L1Form, W: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """Return the indicators, balls x non-zeros, of the balls whose norm W attains up to rounding."""
    if form.radius is None:
        return np.zeros((0, len(rows)))
    if form.balls == "all":
        return np.ones((1, len(rows))) if np.abs(W).sum() >= form.radius * (1.0 - 1e-9) else np.zeros((0, len(rows)))
    full = np.flatnonzero(np.abs(W).sum(axis=0) >= form.radius * (1.0 - 1e-9))
    return np.asarray(columns == full[:, None], dtype=np.float64)


def constrained_newton(H: Array, g: Array, signs: Array, full: Array) -> Array | None:
    """Return argmin_d <g, d> + 1/2 d^T H d subject to (full * signs) d = 0; None where H cannot be factorised, or is almost 0."""
    H[np.diag_indices(len(H))] += _RIDGE * float(np.trace(H)) / len(H) + np.finfo(np.float64).tiny
    try:
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    normals = full * signs
    solved = cho_solve(factor, np.column_stack([g, normals.T]), check_finite=False)
    d, across = -solved[:, 0], solved[:, 1:]
    if len(normals):
        if not np.abs(solved).max() <= _LARGEST_STEP:
            return None
        d = d - across @ np.linalg.lstsq(normals @ across, normals @ d, rcond=None)[0]
    return np.asarray(d) if np.abs(d).max() <= _LARGEST_STEP else None


def stored_products(form: L1Form) -> int:
    """Return the number of multiplications in one product with the design, over all tasks."""
    design = form.fit.design
    return max(1, design.n_stored * (design.n_tasks if design.is_shared else 1))


class _Grams:
    """The matrices X_k^T D X_k of a squared loss with weights D, computed once; tasks that share X and weights share one."""

    def __init__(self, form: L1Form) -> None:
        fit = form.fit
        self._fit = fit
        self._common = fit.design.is_shared and bool(np.all(fit.weights == fit.weights[:, :1]))
        self.products = 0
        """The number of multiplications so far."""
        self._spent: dict[int, int] = {}
        self._made: dict[int, Array] = {}

    def of_task(self, k: int, size: int) -> Array | None:
        """Return the matrix of task k, or None while its parts (now one of `size` non-zeros) have cost less than the whole."""
        design, key = self._fit.design, 0 if self._common else k
        d = design.n_features
        if not isinstance(self._fit.loss, Squared) or d > _LARGEST_GRAM:
            return None
        self._spent[key] = self._spent.get(key, 0) + size * size
        if key not in self._made and self._spent[key] > d * d:
            X = dense(design.block(k))
            scaled = X * np.sqrt(design.task_outputs(self._fit.weights, k))[:, None]
            self._made[key] = scaled.T @ scaled
            self.products += scaled.size * d
        return self._made.get(key)
