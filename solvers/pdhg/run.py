"""The state of a run of `PDHG`: points, step sizes and restarts around the compiled steps of `bench_mtl.solvers.pdhg.kernels.saddle`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.threads import run_together, useful_threads
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import BallForm, HingeForm
from bench_mtl.model.task_balls import L1TaskBalls
from bench_mtl.solvers.units import LIKE, feature_units, in_units

#: With more entries than the first number, the norms of the data are not computed but estimated from below, by power iterations (the second
#: number of them), and enlarged by this factor; a run that finds them too small enlarges them again.
_EXACT_NORM_ENTRIES, _POWER_ITERATIONS, _NORM_MARGIN = 20_000, 8, 1.05

#: Dense data of at least this number of entries are held in single precision until the gap at a restart is this share of the objective: a
#: pass takes the time that their memory takes. All sums, points and products are in double precision throughout.
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


@dataclass(frozen=True)
class Restarts:
    """The rule for restarts: shares of the first residual (or gap), or of all steps (arXiv:2407.16144, section 4)."""

    sufficient: float = 0.2
    necessary: float = 0.8
    artificial: float = 0.36


def kernel_data(design: Design, precision: type[np.floating] = np.float64) -> tuple[Any, Any, Any, Any, Any]:
    """Return a copy of the design as `kernels.saddle_passes` takes it, tasks with dense data of their own in `precision`."""
    offsets = np.concatenate([[0], np.cumsum(design.sizes)]).astype(np.int64)
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    if design.is_sparse:
        columns = [sp.csc_array(X) for X in blocks]
        indices = np.concatenate([X.indices + begin for X, begin in zip(columns, offsets, strict=False)]).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(X.indptr) for X in columns]))]).astype(np.int64)
        mark = np.zeros((1, 1)) if design.is_shared else None
        return np.concatenate([X.data for X in columns]), mark, indices, indptr, offsets
    if design.is_shared:
        return np.empty(0), np.array(blocks[0], order="C"), None, None, offsets
    values = np.empty(design.n_examples * design.n_features, dtype=precision)
    with np.errstate(over="ignore"):  # the norms show it
        for k, block in enumerate(blocks):
            values[offsets[k] * block.shape[1] : offsets[k + 1] * block.shape[1]].reshape(block.shape[::-1])[:] = block.T
    return values, None, None, None, offsets


@cache
def kernels() -> tuple[Any, Any, Any, Any]:
    """Return the compiled primal half of a step, its dual half, the primal half with a ball for every task, and both in scaled features."""
    import bench_mtl.solvers.pdhg.kernels.saddle as saddle
    import bench_mtl.solvers.pdhg.kernels.saddle_balls as balls
    import bench_mtl.solvers.pdhg.kernels.saddle_passes as passes
    import bench_mtl.solvers.pdhg.kernels.saddle_weighted as weighted

    return saddle, passes, balls, weighted


@dataclass
class _Screening:
    """The rows of W that may leave zero before the gradient is next computed in whole.

    A row is projected to zero, whatever its entries, as long as its l1 norm after the gradient step, V_j = W_j + tau G_j, is at most theta.
    So it needs no new gradient as long as that holds. It is assumed to hold for the next few steps where it would hold even if
    ||V_j||_1 / theta rose twice as far as it has lately moved, or half as far as that of any row has; the next full gradient corrects
    a wrong assumption.
    """

    every: int = 8
    """Steps from one full gradient to the next."""
    steps_left: int = 0
    """Steps before the next full gradient."""
    last_step: int = 0
    excess: Array | None = None
    """||V_j||_1 / theta at the last full gradient, at step `last_step`."""

    def choose(self, V: Array, theta: float, step: int) -> NDArray[np.int64]:
        """Return the rows of the next steps, from a V by a full gradient."""
        self.steps_left = self.every - 1
        elapsed, self.last_step = step - self.last_step, step
        if theta <= 0.0:
            self.excess = None
            return np.arange(len(V))
        excess = np.abs(V).sum(axis=1) / theta
        before, self.excess = self.excess, excess
        if before is None:
            return np.arange(len(V))
        moved = np.abs(excess - before) * max(1.0, self.every / max(1, elapsed))
        return np.flatnonzero(excess + np.maximum(2.0 * moved, 0.5 * float(moved.max())) >= 1.0)


class Run:
    """The state of one run and the data of its steps."""

    def __init__(
        self, form: HingeForm | BallForm, W: Array, dual: Array | None, per_task: bool, primal_weight: float | None, threads: int | None = 1
    ) -> None:
        self.units = feature_units(form.design)
        self.design = design = form.design if self.units is None else in_units(form.design, self.units)
        d, m = design.n_features, design.n_tasks
        self.saddle, self.passes, self.balls, self.weighted = kernels()
        self.form = form
        self.labels = form.labels.ravel()
        signed_weights = form.weights.ravel() * self.labels
        self.primal = np.zeros((self.saddle.PRIMAL_PLANES, d, m))
        self.dual = np.zeros((self.passes.DUAL_ROWS, len(self.labels)))
        self.dual[self.passes.TARGET] = self.labels
        self.dual[self.passes.LOWER] = np.minimum(signed_weights, 0.0)
        self.dual[self.passes.UPPER] = np.maximum(signed_weights, 0.0)
        self.workspace = self.saddle.workspace(d, m)
        self.thresholds = np.zeros(m)
        self.radii = np.array(form.balls.radii) if isinstance(form, BallForm) else np.empty(0)  # writable, as what is warmed up
        self.sums, self.dual_sums = np.zeros((d, m)), np.zeros(len(self.labels))
        self.moves = np.zeros((2, m))
        self.mix, self.theta, self.residual, self.first_residual = np.empty(3), 0.0, math.inf, math.inf
        self.screening, self.all_rows = _Screening(), np.arange(d)
        self.rows = self.all_rows
        self.steps, self.work, self.length = 0, 0.0, 0  # length: steps since the last restart
        self.per_task, self.weight = per_task, 1.0
        self.is_single = not (design.is_sparse or design.is_shared) and design.n_examples * d >= _SINGLE_ENTRIES
        self.data = kernel_data(design, np.float32 if self.is_single else np.float64)
        self.threads = 1 if design.is_shared else min(useful_threads(threads, len(self.data[0])), m)
        self.norms = self._norms()
        self._start(W, dual)
        self.weight = self.first_weight = self._first_weight() if primal_weight is None else primal_weight
        self._set_step_sizes()
        self.error_sum = 0.0
        self.answer = self.primal[self.saddle.STEPPED], self.dual[self.passes.STEPPED]
        self.first_gap = self.last_gap = math.inf

    def iterate(self) -> Iterate:
        """Return a copy of the current answer."""
        W, b = self.answer
        b = np.clip(b, self.dual[self.passes.LOWER], self.dual[self.passes.UPPER])  # an average can be outside by rounding
        return Iterate(self._in_features(W), (b * self.labels).reshape(self.form.labels.shape), self.steps, self.work)

    def _in_features(self, V: Array) -> Array:
        """Return W, a copy, of a point of the method."""
        return V.copy() if self.units is None else V * self.units[:, None]

    def _set_step_sizes(self) -> None:
        """tau = 1 / (omega L) and sigma_k = omega L / L_k^2, with dual_metric = sigma_k / omega."""
        self.scale = float(self.norms.max())
        self.dual_metric = self.scale / self.norms**2
        self.tau, self.step_sizes = 1.0 / (self.weight * self.scale), self.weight * self.dual_metric

    def _norms(self) -> Array:
        """sigma_max(X_k) of every task, the largest of all where they are to share a step size."""
        design = self.design
        exact = design.n_examples * design.n_features <= _EXACT_NORM_ENTRIES
        norms = design.norms() if exact else _NORM_MARGIN * self._estimated_norms()
        if self.is_single and not _SINGLE_NORMS[0] <= norms.max() <= _SINGLE_NORMS[1]:
            self._switch_to_double()
            norms = _NORM_MARGIN * self._estimated_norms()
        largest = float(norms.max())
        if largest == 0.0:
            return np.ones(len(norms))
        if design.is_shared or not self.per_task:
            norms[:] = largest
        return np.maximum(norms, _SMALLEST_NORM * largest)

    def _estimated_norms(self) -> Array:
        """Lower bounds of sigma_max(X_k), by power iterations."""
        d, m = self.primal.shape[1:]
        V, predictions = np.random.default_rng(0).standard_normal((d, m)), np.empty(self.dual.shape[1])
        norms = np.zeros(m)
        self.work += _POWER_ITERATIONS
        if not (self.design.is_sparse or self.design.is_shared):  # a task's data stay in cache
            self.passes.block_norms(self.data[0], self.data[-1], _POWER_ITERATIONS, V, predictions, norms)
            return norms
        for _ in range(_POWER_ITERATIONS):
            V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
            self.passes.forward(*self.data, V, predictions)
            self.passes.adjoint(*self.data, predictions, V, self.all_rows)
            norms = np.sqrt(np.linalg.norm(V, axis=0))
        return norms

    def _start(self, W: Array, dual: Array | None) -> None:
        """Set both points; a missing dual point is that of the subgradient at W."""
        dual_vectors, primal = self.dual, self.primal
        primal[self.saddle.STEPPED] = W if self.units is None else W / self.units[:, None]
        self.passes.forward(*self.data, primal[self.saddle.STEPPED], dual_vectors[self.passes.PREDICTED])
        self.work += 0.5
        lower, upper = dual_vectors[self.passes.LOWER], dual_vectors[self.passes.UPPER]
        if dual is None:
            violated = self.labels * dual_vectors[self.passes.PREDICTED] < 1.0
            dual_vectors[self.passes.STEPPED] = np.where(violated, lower + upper, 0.0)
        else:
            dual_vectors[self.passes.STEPPED] = np.clip(np.ravel(dual) * self.labels, lower, upper)
        self.anchor()

    def anchor(self) -> None:
        """Restart from T(z), the new anchor, with X W and X^T b recomputed."""
        primal, dual = self.primal, self.dual
        primal[self.saddle.POINT] = primal[self.saddle.ANCHOR] = primal[self.saddle.STEPPED]
        dual[self.passes.POINT] = dual[self.passes.ANCHOR] = dual[self.passes.STEPPED]
        self._recompute_products()
        if self.is_single:
            point = primal[self.saddle.POINT], dual[self.passes.PREDICTED], dual[self.passes.POINT], primal[self.saddle.GRADIENT]
            enclosure = self._enclosure(*point)
            if _width(enclosure) <= _SINGLE_GAP * enclosure[0]:
                self._switch_to_double()
                self._recompute_products()
        dual[self.passes.PREDICTED_ANCHOR] = dual[self.passes.PREDICTED]
        self.length = 0
        self.screening.steps_left = 0  # theta may be in other units from here on
        self._set_step_sizes()

    def _recompute_products(self) -> None:
        self.passes.forward(*self.data, self.primal[self.saddle.POINT], self.dual[self.passes.PREDICTED])
        self.passes.adjoint(*self.data, self.dual[self.passes.POINT], self.primal[self.saddle.GRADIENT], self.all_rows)
        self.work += 1.0

    def _switch_to_double(self) -> None:
        self.is_single, self.data = False, kernel_data(self.design)

    def _first_weight(self) -> float:
        """omega = ||b|| / ||W|| for points of the size to expect: b on its bounds, and W a long way along X^T b."""
        dual = self.dual
        b = dual[self.passes.LOWER] + dual[self.passes.UPPER]
        G = self.workspace[2]
        self.passes.adjoint(*self.data, b, G, self.all_rows)
        self.work += 0.5
        far = self.form.far_point(self._in_features(G), float(np.abs(b).sum()), self.scale**2)
        length = float(np.linalg.norm(far if self.units is None else far / self.units[:, None]))
        return self._dual_length(b) / (length * math.sqrt(self.scale)) if length > 0.0 else 1.0

    def _dual_length(self, b: Array) -> float:
        """Return ||b|| in the metric 1 / dual_metric."""
        squares = np.square(b).reshape(self.form.labels.shape)
        per_example = self.design.per_example(1.0 / self.dual_metric)
        return math.sqrt(float((squares * per_example).sum()))

    def _adapt_weight(self) -> None:
        """Adapt omega so that primal and dual points move equally far between restarts (arXiv:2507.14051, section 3.3)."""
        primal_distance = float(np.linalg.norm(self.primal[self.saddle.STEPPED] - self.primal[self.saddle.ANCHOR])) * math.sqrt(self.scale)
        dual_distance = self._dual_length(self.dual[self.passes.STEPPED] - self.dual[self.passes.ANCHOR])
        primal_distance *= self.weight
        if not (math.isfinite(primal_distance + dual_distance) and primal_distance + dual_distance > 0.0):
            return
        if min(primal_distance, dual_distance) > _NO_DISTANCE * max(primal_distance, dual_distance):
            error = math.log(primal_distance / dual_distance)
            self.error_sum += error
            factor = math.exp(-(_PROPORTIONAL * error + _INTEGRAL * self.error_sum))
        else:  # one point stays at its vertex, and the other has far to go
            factor = 1.0 / _ONE_SIDED if dual_distance < primal_distance else _ONE_SIDED
        self.weight = min(max(self.weight * factor, self.first_weight / _WEIGHT_RANGE), self.first_weight * _WEIGHT_RANGE)

    def _count(self) -> int:
        return max(_FEWEST_STEPS, int(_SHARE_OF_STEPS * self.steps))

    def _step(self, p: float, q: float, r: float) -> float:
        """z <- p T(z) + q z + r z0; the fixed-point residual ||z - T(z)|| in the metric of the method, NaN where that is none.

        Its square is ||dW||^2 / tau + ||db||^2 / sigma + 2 <db, X dW>.
        """
        primal, mix, tau = self.primal, self.mix, self.tau
        mix[0], mix[1], mix[2] = p, q, r
        moved = self._primal_step()
        whole = self.screening.steps_left == 0
        rows = self.all_rows if whole else self.rows
        self._coupled_step(rows)
        squares, product = (float(move) for move in self.moves.sum(axis=1))
        if whole:
            ahead = primal[self.saddle.POINT] + tau * primal[self.saddle.GRADIENT]
            self.rows = self.screening.choose(ahead if self.units is None else ahead / self.units[:, None], self.theta, self.steps)
        else:
            self.screening.steps_left -= 1
        self.length += 1
        self.steps += 1
        self.work += 1.0
        lengths = moved / tau + squares
        metric = lengths + product
        return math.sqrt(max(metric, 0.0)) if metric >= -_ROUNDING * lengths else math.nan

    def _primal_step(self) -> float:
        """The primal half, and ||W+ - W||^2."""
        form, tau = self.form, self.tau
        if isinstance(form, BallForm) and self.units is not None:
            one_norm = form.balls.norm == "l1"
            moved = float(self.weighted.weighted_ball_step(self.primal, tau, one_norm, self.radii, self.units, self.mix))
        elif isinstance(form, BallForm):
            moved = float(self.balls.ball_step(self.primal, tau, form.balls.norm == "l1", self.radii, self.thresholds, self.mix))
        else:
            penalised = form.penalty is not None
            theta = tau * (form.penalty or 0.0) if penalised else self.theta
            arguments = self.primal, tau, form.radius or 0.0, penalised, theta
            if self.units is None:
                self.theta, moved = self.saddle.primal_step(*arguments, self.mix, *self.workspace)
            else:
                self.theta, moved = self.weighted.weighted_norm_step(*arguments, self.units, self.mix)
        if self.theta < 0.0 or moved < 0.0:
            raise InputError("pdhg cannot project points of this size: rescale the features or the radius")
        return moved

    def _coupled_step(self, rows: NDArray[np.int64]) -> None:
        """Take the dual half of a step. Sums are separate for every task, so that the number of threads changes no bit."""
        G = self.primal[self.saddle.GRADIENT]
        E = self.primal[self.saddle.EXTRAPOLATED]
        step = partial(self.passes.coupled_step, *self.data, E, self.dual, self.step_sizes, self.mix, G, rows)
        if self.threads == 1:
            step(0, G.shape[1], self.moves)
            return
        ends = np.linspace(0, G.shape[1], self.threads + 1).astype(int).tolist()
        run_together([partial(step, first, last, self.moves) for first, last in pairwise(ends)])

    def _shorten_steps(self) -> None:
        """The norms were underestimated."""
        self.norms *= _ENLARGED
        self.anchor()

    def halpern(self, restarts: Restarts) -> None:
        """Some reflected Halpern steps, up to a restart at most."""
        for _ in range(self._count()):
            k = self.length
            before, self.residual = self.residual, self._step(2.0 * (k + 1) / (k + 2), -(k + 1) / (k + 2), 1.0 / (k + 2))
            residual = self.residual
            if math.isnan(residual):
                self._shorten_steps()
                break
            if k == 0:
                self.first_residual = residual
                continue
            falls_no_longer = residual <= restarts.necessary * self.first_residual and residual > before
            if residual <= restarts.sufficient * self.first_residual or falls_no_longer or k >= restarts.artificial * self.steps:
                self._adapt_weight()
                self.anchor()
                break
        self.answer = self.primal[self.saddle.STEPPED], self.dual[self.passes.STEPPED]

    def average(self, restarts: Restarts) -> None:
        """Take some plain steps; then go on, or restart from their average or from the last point."""
        count = self._count()
        for i in range(count):
            if i == count - 1:
                self.screening.steps_left = 0  # the gap below needs the gradient in whole
            if math.isnan(self._step(1.0, 0.0, 0.0)):
                self._shorten_steps()
                self._reset_average()
                break
            self.sums += self.primal[self.saddle.STEPPED]
            self.dual_sums += self.dual[self.passes.STEPPED]
        if self.length == 0:
            self.answer = self.primal[self.saddle.STEPPED], self.dual[self.passes.STEPPED]
            return
        last = self.primal[self.saddle.STEPPED], self.dual[self.passes.STEPPED]
        average = self.sums / self.length, self.dual_sums / self.length
        gap = _width(self.enclosure(*average))
        self.work += 1.0
        last_gap = _width(self._enclosure(last[0], self.dual[self.passes.PREDICTED], last[1], self.primal[self.saddle.GRADIENT]))
        self.answer, gap = (last, last_gap) if last_gap < gap else (average, gap)
        rises, self.last_gap = gap > self.last_gap, gap
        enough = gap <= restarts.sufficient * self.first_gap or (gap <= restarts.necessary * self.first_gap and rises)
        if enough or self.length >= restarts.artificial * self.steps:
            self.primal[self.saddle.STEPPED], self.dual[self.passes.STEPPED] = self.answer
            self._adapt_weight()
            self.anchor()
            self._reset_average()
            self.first_gap = gap

    def _reset_average(self) -> None:
        self.sums[:] = 0.0
        self.dual_sums[:] = 0.0

    def enclosure(self, W: Array, b: Array) -> tuple[float, float]:
        """Return objective and bound at a feasible W and a b in the box, by a pass over the data in the precision they are held in."""
        predicted, G = np.empty_like(b), np.empty_like(W)
        self.passes.forward(*self.data, W, predicted)
        self.passes.adjoint(*self.data, b, G, self.all_rows)
        return self._enclosure(W, predicted, b, G)

    def _enclosure(self, W: Array, predicted: Array, b: Array, G: Array) -> tuple[float, float]:
        """Return `enclosure` from X W and X^T b."""
        form = self.form
        if self.units is not None:
            W, G = W * self.units[:, None], G / self.units[:, None]
        objective = form.objective(W, predicted.reshape(form.labels.shape))
        return objective, form.bound((self.labels * b).reshape(form.labels.shape), G)


def _width(enclosure: tuple[float, float]) -> float:
    objective, bound = enclosure
    return objective - bound


def compile_kernels() -> None:
    """Compile every signature of the kernels, by a few steps on the smallest designs."""
    X = np.ones((2, 2))
    sparse = sp.csr_array(X)
    unlike = np.array([1.0, 10.0 * LIKE])
    designs = (PerTaskDesign([X]), PerTaskDesign([sparse]), SharedDesign(X, 1), SharedDesign(sparse, 1), SharedDesign(X * unlike, 1))
    for design in designs:
        labels = np.ones(design.output_shape)
        run = Run(BallForm(design, labels, labels, L1TaskBalls(np.ones(1))), np.zeros((2, 1)), None, True, None)
        run.average(Restarts())
        run = Run(HingeForm(design, labels, labels, 1.0, None), np.zeros((2, 1)), None, True, None)
        run.average(Restarts())
        if not (design.is_sparse or design.is_shared):
            for precision in (np.float64, np.float32):
                run.data = kernel_data(design, precision)
                run._estimated_norms()
                run.anchor()
                run.average(Restarts())
