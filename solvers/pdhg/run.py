"""A run of `PDHG`: its state, and the steps that change it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import run_together, useful_threads
from bench_mtl.core.types import Array
from bench_mtl.model.forms import Hinges
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.solvers.units import feature_units, in_units

#: With more entries than the first number, the norms of the data are not computed but estimated from below, by power iterations (the second
#: number of them), and enlarged by this factor; a run that finds them too small enlarges them again.
_EXACT_NORM_ENTRIES, _POWER_ITERATIONS, _NORM_MARGIN = 20_000, 8, 1.05
#: Dense data of tasks of their own, of at least this number of entries, are held in single precision until the gap at a restart is this
#: share of the objective: a pass takes the time that their memory takes. All sums, points and products are in double precision throughout.
_SINGLE_ENTRIES, _SINGLE_GAP = 100_000, 1e-5
#: The norms of the data between which single precision neither overflows nor loses them.
_SINGLE_NORMS = 1e-15, 1e15
#: Rounding alone may leave the squared residual this far below zero, relative to its parts; beyond it the norms are enlarged so much.
_ROUNDING, _ENLARGED = 1e-9, 1.05**5
#: The norm of a task counts as at least this share of the largest.
_SMALLEST_NORM = 1e-3
#: Gains of the proportional and the integral part of the primal weight's control (arXiv:2507.14051, section 3.3). A distance below the
#: third share of the other counts as 0, and the weight then changes by the fourth number. It stays within the last factor of the first one.
_PROPORTIONAL, _INTEGRAL, _NO_DISTANCE, _ONE_SIDED, _WEIGHT_RANGE = 0.99, 0.01, 1e-10, 10.0, 1e10
#: Steps between two iterates: at least the first number, and about this share of the steps so far.
_FEWEST_STEPS, _SHARE_OF_STEPS = 10, 0.05
#: A run restarts where the residual is the first share of the first one, or the second share and rises, or after a share of all steps
#: (arXiv:2407.16144, section 4).
_SUFFICIENT, _NECESSARY, _ARTIFICIAL = 0.2, 0.8, 0.36
#: Steps from one full gradient to the next.
_FULL_EVERY = 8


@dataclass
class State:
    """Where a run is. Its arrays change with every step."""

    planes: Array
    """The `Primal` matrices, d x m in the units of the features; their gradient has the rows that steps have needed."""
    duals: Array
    """The `Dual` vectors, flat, times the labels."""
    norms: Array
    """Of the data, one a task."""
    excess: Array
    """||V_j||_1 / theta of every row at the last full gradient, V = W + tau G; inf where that says nothing."""
    active: Array
    """1 for the rows of which the next steps need the gradient, otherwise 0."""
    thresholds: Array
    """Of the last projection on balls, where the searches of the next begin."""
    steps: int = 0
    work: float = 0.0
    length: int = 0
    """Steps since the last restart."""
    residual: float = math.inf
    first_residual: float = math.inf
    weight: float = 1.0
    first_weight: float = 1.0
    error_sum: float = 0.0
    theta: float = 0.0
    """The same under an l1,inf norm."""
    full_step: int = 0
    """The step of the last full gradient."""
    until_full: int = 0
    is_single: bool = False
    """Whether the data are in single precision."""


def should_restart(residual: float, before: float, first: float, length: int, steps: int) -> bool:
    """Return whether a run should begin anew, by its residuals and the numbers of its steps."""
    falls_no_longer = residual <= _NECESSARY * first and residual > before
    return residual <= _SUFFICIENT * first or falls_no_longer or length >= _ARTIFICIAL * steps


class Run:
    """Steps on the data of one problem, and the state that they change.

    A row of W is projected to zero, whatever its entries, as long as its l1 norm after the gradient step, V_j = W_j + tau G_j, is at most
    theta. So it needs no new gradient as long as that holds. It is assumed to hold for the next few steps where it would hold even if
    ||V_j||_1 / theta rose twice as far as it has lately moved, or half as far as that of any row has; the next full gradient corrects
    a wrong assumption.
    """

    def __init__(self, form: Hinges, threads: int | None = 1, state: State | None = None) -> None:
        import bench_mtl.solvers.pdhg.kernels as kernels

        self.kernels, self.form = kernels, form
        self.units = feature_units(form.design)
        self.design = form.design if self.units is None else in_units(form.design, self.units)
        d, m = self.design.n_features, self.design.n_tasks
        self.labels = form.labels.ravel()
        if state is None:
            n = len(self.labels)
            state = State(
                np.zeros((5, d, m)), np.zeros((9, n)), norms=np.ones(m), excess=np.full(d, np.inf), active=np.ones(d),
                thresholds=np.zeros(m),
            )  # fmt: skip
            state.is_single = not (self.design.is_shared or self.design.is_sparse) and self.design.n_examples * d >= _SINGLE_ENTRIES
        self.state = state
        self.data = columns(self.design, single=state.is_single)
        self.threads = 1 if self.design.is_shared else min(useful_threads(threads, len(self.data.values)), self.design.n_tasks)
        ends = form.weights.ravel() * self.labels
        self.planes, self.duals = state.planes, state.duals
        self.primal, self.dual = kernels.Primal(*self.planes), kernels.Dual(*self.duals)
        self.dual.target[:], self.dual.lower[:], self.dual.upper[:] = self.labels, np.minimum(ends, 0.0), np.maximum(ends, 0.0)
        units = np.ones(d) if self.units is None else self.units
        self.target = (
            kernels.Balls(units, form.regulariser.norm == "l1", np.array(form.regulariser.radii), state.thresholds)
            if isinstance(form.regulariser, TaskBalls)
            else kernels.norm_of(self.units, (d, m), form.radius, form.penalty is not None)
        )
        self.moves, self.all_rows, self.rows = np.zeros((2, m)), np.arange(d), np.flatnonzero(state.active)
        self._set_step_sizes()

    def start(self, W: Array, dual: Array | None, *, per_task: bool, primal_weight: float | None) -> None:
        """Begin at both points; a missing dual point is that of the subgradient at W."""
        state = self.state
        self.primal.stepped[:] = W if self.units is None else W / self.units[:, None]
        state.norms[:] = self._norms(per_task)
        self._set_step_sizes()
        if dual is None:
            self._forward(self.primal.stepped, self.dual.predicted)
            b = np.where(self.labels * self.dual.predicted < 1.0, self.dual.lower + self.dual.upper, 0.0)
        else:
            b = np.clip(np.ravel(dual) * self.labels, self.dual.lower, self.dual.upper)
        self.dual.stepped[:] = b
        state.weight = state.first_weight = self._first_weight() if primal_weight is None else primal_weight
        self.restart()

    def answer(self) -> tuple[Array, Array]:
        """Return T(z), in arrays that the steps do not change."""
        W = self.primal.stepped.copy() if self.units is None else self.primal.stepped * self.units[:, None]
        return W, (self.dual.stepped * self.labels).reshape(self.form.labels.shape)

    def halpern(self) -> None:
        """Take some reflected Halpern steps, up to a restart at most."""
        state = self.state
        for _ in range(self._count()):
            before, k = state.residual, state.length
            state.residual = self._step(2.0 * (k + 1) / (k + 2), -(k + 1) / (k + 2), 1.0 / (k + 2))
            if math.isnan(state.residual):
                self._shorten()
                break
            if k == 0:
                state.first_residual = state.residual
            elif should_restart(state.residual, before, state.first_residual, k, state.steps):
                self._adapt_weight()
                self.restart()
                break

    def _count(self) -> int:
        return max(_FEWEST_STEPS, int(_SHARE_OF_STEPS * self.state.steps))

    def _shorten(self) -> None:
        """The norms were underestimated."""
        self.state.norms *= _ENLARGED
        self.restart()

    def restart(self) -> None:
        """Begin anew at T(z), with its products."""
        state = self.state
        self.primal.point[:] = self.primal.anchor[:] = self.primal.stepped
        self.dual.point[:] = self.dual.anchor[:] = self.dual.stepped
        products = self.primal.point, self.dual.predicted, self.dual.point, self.primal.gradient
        self._multiply(*products)
        if state.is_single:
            gap, objective = self._gap(*products)
            if gap <= _SINGLE_GAP * objective:
                self._switch_to_double()
                self._multiply(*products)
        self.dual.predicted_anchor[:] = self.dual.predicted
        state.length = state.until_full = 0  # theta may be in other units from here on
        self._set_step_sizes()

    def _multiply(self, W: Array, predicted: Array, b: Array, G: Array) -> None:
        """Write X W and X^T b."""
        self._forward(W, predicted)
        self._adjoint(b, G)

    def _gap(self, W: Array, predicted: Array, b: Array, G: Array) -> tuple[float, float]:
        """Return gap and objective at a feasible W and a b in the box, from X W and X^T b, with the data as precise as they are."""
        form, units, shape = self.form, 1.0 if self.units is None else self.units[:, None], self.form.labels.shape
        objective = form.objective(W * units, predicted.reshape(shape))
        return objective - form.bound((self.labels * b).reshape(shape), G / units), objective

    def _switch_to_double(self) -> None:
        self.state.is_single, self.data = False, columns(self.design)

    def _set_step_sizes(self) -> None:
        """tau = 1 / (omega L) and sigma_k = omega L / L_k^2, with dual_metric = sigma_k / omega."""
        state = self.state
        self.scale = float(state.norms.max())
        self.dual_metric = self.scale / state.norms**2
        self.tau, self.step_sizes = 1.0 / (state.weight * self.scale), state.weight * self.dual_metric

    def _step(self, p: float, q: float, r: float) -> float:
        """z <- p T(z) + q z + r z0; the fixed-point residual ||z - T(z)|| in the metric of the method, NaN where that is none.

        Its square is ||dW||^2 / tau + ||db||^2 / sigma + 2 <db, X dW>.
        """
        state, step = self.state, self.kernels.Step(self.tau, self.step_sizes, p, q, r)
        if isinstance(self.form.regulariser, TaskBalls):
            moved = float(self.kernels.ball_step(self.planes, step, self.target))
        else:
            theta = state.theta if self.form.penalty is None else self.tau * self.form.penalty
            state.theta, moved = self.kernels.norm_step(self.planes, step, self.target, theta)
        if state.theta < 0.0 or moved < 0.0:
            raise InputError("pdhg cannot project points of this size: rescale the features or the radius")
        full = state.until_full == 0
        squares, product = self._coupled_step(step, self.all_rows if full else self.rows)
        if full:
            self._choose_rows()
        state.until_full -= 1
        state.steps += 1
        state.length += 1
        state.work += 1.0
        lengths = moved / self.tau + squares
        metric = lengths + product
        return math.sqrt(max(metric, 0.0)) if metric >= -_ROUNDING * lengths else math.nan

    def _coupled_step(self, step: Any, rows: NDArray[np.int64]) -> tuple[float, float]:
        """Take the dual half of a step. Sums are separate for every task, so that the number of threads changes no bit."""
        dual, kernels = self.dual, self.kernels
        if self.design.is_shared:
            self._forward(self.primal.extrapolated, dual.extrapolated, work=0.0)
            squares, product = kernels.dual_step(self.duals, 0, len(dual.point), step, 0)
            self._adjoint(dual.point, self.primal.gradient, rows, work=0.0)
            return float(squares), float(product)
        take = partial(kernels.coupled_step, self.data, self.planes, self.duals, step, rows)
        if self.threads == 1:
            take((0, self.design.n_tasks), self.moves)
        else:
            ends = np.linspace(0, self.design.n_tasks, self.threads + 1).astype(int).tolist()
            run_together([partial(take, tasks, self.moves) for tasks in pairwise(ends)])
        squares, product = self.moves.sum(axis=1)
        return float(squares), float(product)

    def _forward(self, W: Array, out: Array, work: float = 0.5) -> None:
        """Write predictions, as a flat dual array."""
        self.state.work += work
        if not self.design.is_shared:
            self.kernels.forward(self.data, W, out)
        elif self.design.is_sparse:
            self.kernels.shared_forward(self.data, W, out.reshape(-1, W.shape[1]))
        else:
            np.matmul(self.data.values, W, out=out.reshape(-1, W.shape[1]))

    def _adjoint(self, b: Array, G: Array, rows: NDArray[np.int64] | None = None, work: float = 0.5) -> None:
        """Write the d x m matrix with columns X_k^T b_k; these rows of it at least."""
        self.state.work += work
        rows = self.all_rows if rows is None else rows
        if not self.design.is_shared:
            self.kernels.adjoint(self.data, b, G, rows)
        elif self.design.is_sparse:
            self.kernels.shared_adjoint(self.data, b.reshape(-1, G.shape[1]), G, rows)
        else:
            np.matmul(self.data.values.T, b.reshape(-1, G.shape[1]), out=G)

    def _choose_rows(self) -> None:
        """Choose the rows whose gradients the next steps need, from a full one."""
        state = self.state
        elapsed, state.full_step, state.until_full = state.steps - state.full_step, state.steps, _FULL_EVERY
        before, state.excess[:] = state.excess.copy(), np.inf
        if state.theta > 0.0:
            V = self.primal.point + self.tau * self.primal.gradient
            state.excess[:] = np.abs(V if self.units is None else V / self.units[:, None]).sum(axis=1) / state.theta
        with np.errstate(invalid="ignore"):
            moved = np.abs(state.excess - before) * max(1.0, _FULL_EVERY / max(1, elapsed))
            settled = state.excess + np.maximum(2.0 * moved, 0.5 * float(moved.max())) < 1.0
        state.active[:] = ~settled
        self.rows = np.flatnonzero(~settled)

    def _norms(self, per_task: bool) -> Array:
        """sigma_max(X_k) of every task, the largest of all where they are to share a step size."""
        design = self.design
        exact = design.n_examples * design.n_features <= _EXACT_NORM_ENTRIES
        norms = design.norms() if exact else _NORM_MARGIN * self.estimated_norms()
        if self.state.is_single and not _SINGLE_NORMS[0] <= norms.max() <= _SINGLE_NORMS[1]:
            self._switch_to_double()
            norms = _NORM_MARGIN * self.estimated_norms()
        largest = float(norms.max())
        if largest == 0.0:
            return np.ones(len(norms))
        if design.is_shared or not per_task:
            norms[:] = largest
        return np.maximum(norms, _SMALLEST_NORM * largest)

    def estimated_norms(self) -> Array:
        """Return lower bounds of sigma_max(X_k), by power iterations."""
        # In units in which neither squares nor fourth powers of the norms leave the range of doubles; powers of four change no bit.
        largest = max(float(self.data.values.max(initial=0.0)), -float(self.data.values.min(initial=0.0)))
        unit = math.ldexp(1.0, min(2 * (math.frexp(largest)[1] // 2), 1022))
        V, predictions = np.random.default_rng(0).standard_normal(self.primal.point.shape), np.empty(len(self.labels))
        if not self.design.is_shared:
            self.state.work += _POWER_ITERATIONS
            self.kernels.power_iterations(self.data, unit, _POWER_ITERATIONS, V, predictions, self.all_rows)
        else:
            for _ in range(_POWER_ITERATIONS):
                V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
                V /= unit
                self._forward(V, predictions)
                self._adjoint(predictions, V)
        return np.asarray(math.sqrt(unit) * np.sqrt(np.linalg.norm(V, axis=0)))

    def _first_weight(self) -> float:
        """omega = ||b|| / ||W|| for points of the size to expect: b on its bounds, and W a long way along X^T b."""
        b, G = self.dual.lower + self.dual.upper, np.empty_like(self.primal.point)
        self._adjoint(b, G)
        units = np.ones(len(G)) if self.units is None else self.units
        far = self.form.far_point(G * units[:, None], float(np.abs(b).sum()), self.scale * self.scale)
        length = float(np.linalg.norm(far / units[:, None]))
        return self._dual_length(b) / (length * math.sqrt(self.scale)) if length > 0.0 else 1.0

    def _dual_length(self, b: Array) -> float:
        """Return ||b|| in the metric 1 / dual_metric."""
        squares = np.square(b).reshape(self.form.labels.shape)
        return math.sqrt(float((squares * self.design.per_example(1.0 / self.dual_metric)).sum()))

    def _adapt_weight(self) -> None:
        """Adapt omega so that primal and dual points move equally far between restarts (arXiv:2507.14051, section 3.3)."""
        state = self.state
        primal_distance = state.weight * math.sqrt(self.scale) * float(np.linalg.norm(self.primal.stepped - self.primal.anchor))
        dual_distance = self._dual_length(self.dual.stepped - self.dual.anchor)
        if not (math.isfinite(primal_distance + dual_distance) and primal_distance + dual_distance > 0.0):
            return
        if min(primal_distance, dual_distance) > _NO_DISTANCE * max(primal_distance, dual_distance):
            error = math.log(primal_distance / dual_distance)
            state.error_sum += error
            factor = math.exp(-(_PROPORTIONAL * error + _INTEGRAL * state.error_sum))
        else:  # one point stays at its vertex, and the other has far to go
            factor = 1.0 / _ONE_SIDED if dual_distance < primal_distance else _ONE_SIDED
        state.weight = min(max(state.weight * factor, state.first_weight / _WEIGHT_RANGE), state.first_weight * _WEIGHT_RANGE)


def columns(design: Design, *, single: bool = False) -> Any:
    """Return a copy of the design as the kernels take it; of one dense matrix for all tasks the `values` alone, as they are."""
    from bench_mtl.solvers.pdhg.kernels import Columns

    offsets = np.concatenate([[0], np.cumsum(design.sizes)]).astype(np.int64)
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    if design.is_sparse:
        columns = [sp.csc_array(X) for X in blocks]
        indices = np.concatenate([X.indices + begin for X, begin in zip(columns, offsets, strict=False)]).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(X.indptr) for X in columns]))]).astype(np.int64)
        return Columns(np.concatenate([X.data for X in columns]), indices, indptr, offsets)
    if design.is_shared:
        return Columns(blocks[0], None, None, offsets)
    values = np.empty(design.n_examples * design.n_features, dtype=np.float32 if single else np.float64)
    for k, X in enumerate(blocks):
        with np.errstate(over="ignore"):  # the norms show it
            values[offsets[k] * X.shape[1] : offsets[k + 1] * X.shape[1]].reshape(X.shape[::-1])[:] = X.T
    return Columns(values, None, None, offsets)
