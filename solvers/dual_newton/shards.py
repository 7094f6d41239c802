"""Newton's method with a line search for examples in shards: quadratic models of the loss, which are minimised in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from bench_mtl.core.designs import PerTaskDesign, SharedDesign
from bench_mtl.core.rounding import UNIT, Interval
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array, Iterate, gap_up_to_rounding
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Squared
from bench_mtl.model.norms import L1, L12, L1Inf
from bench_mtl.model.regularisers import OfNorm, Penalty, Regulariser, Stacked
from bench_mtl.model.sharded_fit import Expansion
from bench_mtl.model.solver_state import Stepper

#: Which of the features a model has, d truth values.
Chosen = NDArray[np.bool_]
#: Entries of a dense system in all coefficients of the chosen features, at most, 128 MiB. A step has as much as 30 of it in memory at once
#: with one task, whose Gram matrix is as large, and 10 with four: a shard's sums, those of the last point, scaled ones and their Cholesky
#: factors, the model's features and their Gram matrices, its systems. So that is up to 4 GiB.
MOST_ENTRIES_IN_SHARDS = 2**24
#: What is expected of a run: models, Newton steps on each, passes that first-order methods take, and how many multiplications of dense
#: matrices take as long as one of a pass, which waits for memory.
_MODELS, _NEWTON_STEPS, _PASSES, _FASTER = 10.0, 30.0, 300.0, 8.0
#: A row of zeros is chosen whose slope exceeds this share of its penalty: others soon will.
_NEAR = 0.8
#: So many features are chosen at first, at most, and afterwards twice those that have coefficients.
_FIRST, _GROWTH = 500, 2
#: A step must gain this share of what the model promises, and what is lost below the second number is rounding.
_GAIN, _LOSS, _MOST_HALVINGS = 1e-4, 1e-14, 20
#: A gap is smaller where it is below this share of another one.
_CLOSER = 0.5
#: A model is minimised to this relative gap, or until so many steps have made it no smaller: from a good start the first of them are short.
GAP_OF_MODELS, _MOST_IDLE = 1e-13, 8
#: Added to the diagonal of a Gram matrix that is scaled to 1 there, times its size, and by how much more where that is not enough.
_SHIFT, _LARGER_SHIFT = 4.0 * UNIT, 100.0


def can_choose(regulariser: Regulariser) -> bool:
    """Return whether a gradient tells which rows of zeros stay: under penalties by norms of rows and entries."""
    parts = regulariser.parts if isinstance(regulariser, Stacked) else (regulariser,)
    return all(isinstance(part, Penalty) and isinstance(part.norm, (L1, L12, L1Inf)) for part in parts)


def is_cheap(problem: FitProblem) -> bool:
    """Return whether models of all features fit into memory, and have fewer multiplications than the passes of first-order methods."""
    design, coefficients = problem.design, float(math.prod(problem.point_shape))
    stored = float(design.n_stored) * (design.n_tasks if design.is_shared else 1)
    model = 0.5 * stored * (stored / design.n_examples) + _NEWTON_STEPS * coefficients**3 / 3.0
    return coefficients**2 <= MOST_ENTRIES_IN_SHARDS and _MODELS * model <= _FASTER * _PASSES * 2.0 * stored


def on_rows(regulariser: Regulariser, rows: NDArray[np.intp]) -> Regulariser:
    """Return the regulariser of some rows of W, where all others are 0."""
    if isinstance(regulariser, Stacked):
        return Stacked(tuple(on_rows(part, rows) for part in regulariser.parts))
    assert isinstance(regulariser, OfNorm)
    if isinstance(regulariser.norm, L1) and regulariser.norm.orientation is not None:
        return replace(regulariser, norm=replace(regulariser.norm, orientation=regulariser.norm.orientation[rows]))
    return regulariser


class Expanded(NamedTuple):
    """The problem near a point."""

    point: Array
    dual: Array
    chosen: Chosen
    near: Expansion
    objective: float


@dataclass(frozen=True)
class State:
    """Where a run is."""

    point: Array
    dual: Array
    """Given by coefficients, as all dual points of sums over shards."""
    chosen: Chosen
    step: int
    work: float
    gap: float = math.inf


class ShardStepper(Stepper):
    """W <- W + t (V - W), V = argmin_V <G, V - W> + 1/2 sum_k (v_k - w_k)^T X_k^T D_k X_k (v_k - w_k) + R(V), t = 1, 1/2, 1/4, ...

    with the gradient G and the second derivatives D at W, V in the features that are chosen. One pass over the shards gives G, X^T D X and
    the objective at a point. The model is a squared loss of the rows of the Cholesky factor of X^T D X, under the same regulariser, which
    the stepper that `in_memory` makes minimises. Its dual point is given by the coefficients at which the model has that derivative: what
    those of V prove is the root of the gap away.
    """

    def __init__(self, problem: FitProblem, in_memory: Callable[[FitProblem], Stepper]) -> None:
        assert problem.sums is not None
        self._problem, self._sums, self._in_memory = problem, problem.sums, in_memory
        self._chooses = can_choose(problem.regulariser)
        self._most = max(1, math.isqrt(MOST_ENTRIES_IN_SHARDS) // (math.prod(problem.point_shape) // problem.design.n_features))
        # What was computed last, which a run that goes on computes anew.
        self._last: Expanded | None = None
        self._grams: tuple[Chosen, Array] | None = None

    def start(self, at: Iterate) -> State:
        sizes = _largest(at.primal)
        chosen = np.asarray((sizes > 0.0) | (not self._chooses))
        chosen[np.argsort(-sizes, kind="stable")[self._most :]] = False
        return State(at.primal, self._sums.told(self._problem.coefficients(at.primal)), chosen, at.step, at.work)

    def step(self, now: State) -> State | None:
        here, passes = self._expanded(now.point, now.dual, now.chosen), 0.0 if now.step else 1.0
        chosen = self._choice(here)
        if chosen is not now.chosen:
            here, passes = self._expanded(now.point, now.dual, chosen), passes + 1.0
        if not np.isfinite(here.near.grams).all():
            return None
        target, target_dual = self._minimiser(here)
        way = target - here.point
        promise = float((here.near.gradient * way).sum()) + self._problem.prox_value(target) - self._problem.prox_value(here.point)
        is_last = not promise < -_LOSS * abs(here.objective)  # only a better dual point is left
        if is_last:
            gap = self._relative_gap(self._expanded(here.point, target_dual, chosen))
            better = State(here.point, target_dual, chosen, now.step + 1, now.work + passes + 1.0, gap)
            return better if gap < _CLOSER * now.gap else None
        length, point, dual = 1.0, target, target_dual
        for halvings in range(_MOST_HALVINGS):
            enough = here.objective + _GAIN * length * promise + _LOSS * abs(here.objective)
            passes += 1.0
            # Whole steps are tried first and mostly taken; Gram matrices of shorter ones are made where these gain enough.
            if not halvings or self._objective(point) <= enough:
                there, passes = self._expanded(point, dual, chosen), passes + (halvings > 0)
                if there.objective <= enough:
                    return State(point, dual, chosen, now.step + 1, now.work + passes, self._relative_gap(there))
            length *= 0.5
            point, dual = here.point + length * way, here.dual + length * (target_dual - here.dual)
        return None

    def iterate(self, now: State) -> Iterate:
        is_full = self._most <= now.chosen.sum() < len(now.chosen)
        note = f"models have {self._most} features at most, and more may need coefficients: their memory is limited" if is_full else ""
        return Iterate(now.point, now.dual, now.step, now.work, note, claim=now.gap)

    def _objective(self, point: Array) -> float:
        return self._sums.value(self._problem.coefficients(point)) + self._problem.prox_value(point)

    def _expanded(self, point: Array, dual: Array, chosen: Chosen) -> Expanded:
        """Return the problem near a point, in one pass unless it was computed last."""
        last = self._last
        if last is None or last.point is not point or last.dual is not dual or last.chosen is not chosen:
            # Of squares X^T X does not change, and is computed once.
            same = self._grams if isinstance(self._sums.loss, Squared) else None
            grams = same[1] if same is not None and np.array_equal(same[0], chosen) else None
            features = np.flatnonzero(chosen) if grams is None else np.zeros(0, dtype=np.intp)
            near = self._sums.expansion(self._problem.coefficients(point), dual, features)
            near = near if grams is None else near._replace(grams=grams)
            self._grams = chosen, near.grams
            last = self._last = Expanded(point, dual, chosen, near, near.value + self._problem.prox_value(point))
        return last

    def _choice(self, here: Expanded) -> Chosen:
        """Return which features the next model has: those it has where they are enough."""
        if not self._chooses:
            return here.chosen
        moved = self._problem.prox(here.point - here.near.gradient, _NEAR)
        sizes, used = _largest(moved), _largest(here.point) > 0.0
        wanted = used | (sizes > 0.0)
        if not (wanted & ~here.chosen).any():
            return here.chosen
        count = min(self._most, max(_FIRST, _GROWTH * int(used.sum())))
        order = np.lexsort((-sizes, ~used))[:count]  # those with coefficients first
        chosen = np.zeros(len(wanted), dtype=bool)
        chosen[order] = wanted[order]
        return here.chosen if np.array_equal(chosen, here.chosen) else chosen

    def _minimiser(self, here: Expanded) -> tuple[Array, Array]:
        """Return the point at which the model is least, and the dual point of the model."""
        rows, problem, W = np.flatnonzero(here.chosen), self._problem, self._problem.coefficients(here.point)
        target, V = np.array(here.point), np.array(W)
        if len(rows):
            with one_blas_thread():  # as workers: with more of them sums have other bits
                factors = [_Factor.of(gram) for gram in here.near.grams]
                fit, start = self._model(W[rows], here.near.gradient[rows], factors), np.ascontiguousarray(here.point[..., rows, :])
                model = problem.with_parts(fit, on_rows(problem.regulariser, rows))
                target[..., rows, :], r = _minimised(self._in_memory(model), start)
                for k in range(W.shape[1]):  # R_k^T (t_k - R_k v) is X_k^T r there
                    V[rows, k] = factors[k % len(factors)].solved(fit.design.task_outputs(fit.targets - r / fit.weights, k))
        return target, self._sums.told(V)

    def _model(self, W: Array, G: Array, factors: list[_Factor]) -> LinearFit:
        """Return 1/2 sum_k s_k ||R_k v_k - t_k||^2, which has the gradient G at W."""
        m = W.shape[1]
        weights = np.array(self._sums.reading.weights) if isinstance(self._sums.loss, Squared) else np.ones(m)
        design = SharedDesign(factors[0].root, m) if len(factors) < m else PerTaskDesign([factor.root for factor in factors])
        moved = [factors[k % len(factors)].back(G[:, k] / weights[k]) for k in range(m)]
        targets = design.forward(W) - (np.stack(moved, 1) if design.is_shared else np.concatenate(moved))
        return LinearFit(design, targets, Squared(), np.array(np.broadcast_to(design.per_example(weights), design.output_shape)))

    def _relative_gap(self, here: Expanded) -> float:
        """Return the relative gap that a multiple of the dual point proves, up to rounding: gains are concave in it, none below 0."""
        support, limit = self._problem.regulariser.enclose_support(Interval.exact(here.near.slopes))
        return gap_up_to_rounding(here.objective, max(min(limit.ends[0], 1.0) * (here.near.gain - float(support.upper)), 0.0))


def _largest(point: Array) -> Array:
    """Return the largest modulus of the coefficients of every feature, d numbers."""
    return np.asarray(np.abs(point).max(axis=-1).reshape(-1, point.shape[-2]).max(axis=0))


class _Factor(NamedTuple):
    """R = Q diag(sizes) of a Gram matrix R^T R with the upper triangular Q."""

    upper: Array
    sizes: Array

    @property
    def root(self) -> Array:
        return np.asarray(self.upper * self.sizes)

    @classmethod
    def of(cls, gram: Array) -> _Factor:
        """Return a factor of a Gram matrix with as much on its diagonal as rounding needs."""
        squares = np.diagonal(gram)
        sizes = np.sqrt(np.where(squares > 0.0, squares, 1.0))
        scaled, shift = gram / sizes[:, None] / sizes, _SHIFT * len(gram)
        while True:
            try:
                return cls(np.asarray(cholesky(scaled + shift * np.eye(len(gram)), check_finite=False)), sizes)
            except LinAlgError:
                shift *= _LARGER_SHIFT

    def back(self, g: Array) -> Array:
        """Return R^-T g."""
        return np.asarray(solve_triangular(self.upper, g / self.sizes, trans="T", check_finite=False))

    def solved(self, t: Array) -> Array:
        """Return R^-1 t."""
        return np.asarray(solve_triangular(self.upper, t, check_finite=False) / self.sizes)


def _minimised(stepper: Stepper, start: Array) -> tuple[Array, Array]:
    """Return the best point of a run that goes on while its gap falls, and its dual point."""
    now, least, idle = stepper.start(Iterate(start)), math.inf, 0
    best = stepper.iterate(now)
    while least > GAP_OF_MODELS and idle < _MOST_IDLE and (now := stepper.step(now)) is not None:
        iterate = stepper.iterate(now)
        gap = math.inf if iterate.claim is None else iterate.claim
        idle = 0 if gap < _CLOSER * least else idle + 1
        least, best = (gap, iterate) if gap <= least else (least, best)
    assert best.dual is not None
    return best.primal, best.dual
