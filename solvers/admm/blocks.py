"""The step of ADMM on one block of examples: all that looks at data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array
from bench_mtl.model.margins import HingeFit, MulticlassFit
from bench_mtl.model.normal_equations import TaskBlocks, normal_blocks, resolvent_blocks

#: The largest number of evaluations in one smooth step, all of which L-BFGS-B keeps; the next iteration continues from there.
_MOST_EVALUATIONS = 12

#: An upper bound that no weight reaches: with bounds on both sides L-BFGS-B trusts the scale of its variables in its first step.
_HIGH = 1e30

#: What stands for values and slopes that overflow, for a line search that computes with them.
_LARGEST = 1e100


class Setting(NamedTuple):
    """The parameters of one iteration that all blocks share."""

    coupling: float
    """lambda, the penalty of W_q = Z."""
    splitting: float
    """beta, the penalty of S_q = H_q W_q."""
    relaxation: float
    accuracy: float
    """The largest entry of the gradient at the end of a smooth step."""


class State(NamedTuple):
    """The state of a block of examples between two iterations. Its arrays are never changed."""

    weights: Array
    """W_q, J x K."""
    dual: Array
    """The part of the dual point for the examples of the block, n_q x K."""
    work: float
    """Passes over the block in the last step."""
    curvature: float = 0.0
    """The curvature that the last smooth step met."""
    scores: Array | None = None
    """S_q of the hinge, n_q x K ..."""
    multipliers: Array | None = None
    """... its scaled multipliers ..."""
    squares: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """... and squared norms: of H_q W_q - S_q, of the larger of the two, of the change of S_q, and of the multipliers."""


class Block(ABC):
    """A block of examples with its share of the loss of all, f_q."""

    @abstractmethod
    def start(self, weights: Array, setting: Setting) -> State:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, state: State, target: Array, setting: Setting) -> State:
        """Return the state with W_q near argmin_W f_q(H_q W) + lambda/2 ||W - target||^2."""


@final
@dataclass(frozen=True)
class SmoothBlock(Block):
    """W_q by L-BFGS-B over W >= 0, from where it was, as accurately as the iteration asks for."""

    fit: MulticlassFit
    share: float
    """The share of all examples that the block has."""

    def start(self, weights: Array, setting: Setting) -> State:
        return State(weights, self.share * self.fit.duals(self.fit.design.forward(weights)), 0.5)

    def step(self, state: State, target: Array, setting: Setting) -> State:
        from scipy.optimize import fmin_l_bfgs_b

        scale = float(np.sqrt(max(state.curvature, setting.coupling)))
        model = _Model(self.fit, self.share, target, setting.coupling, scale)
        x, _, _ = fmin_l_bfgs_b(
            model, state.weights.ravel() * scale, bounds=[(0.0, _HIGH)] * target.size, m=_MOST_EVALUATIONS, factr=0.0,
            pgtol=setting.accuracy / scale, maxfun=_MOST_EVALUATIONS,
        )  # fmt: skip
        W = x.reshape(target.shape) / scale
        return State(W, self.share * self.fit.duals(model.scores_at(x)), model.work, model.curvature)


class _Model:
    """f_q(H_q W) + lambda/2 ||W - target||^2 as a function of scale W, with the first and the last evaluation.

    L-BFGS-B takes the curvature in its variables for 1 until it knows better, so the scale is a guess of its root.
    """

    def __init__(self, fit: MulticlassFit, share: float, target: Array, coupling: float, scale: float) -> None:
        self._fit, self._share, self._target, self._coupling, self._scale = fit, share, target, coupling, scale
        self._first: tuple[Array, Array] | None = None
        self._last: tuple[Array, Array] = (np.zeros(0), np.zeros(0))
        self._scores = np.zeros(0)
        self.work = 0.0

    def __call__(self, x: Array) -> tuple[float, Array]:
        W = x.reshape(self._target.shape) / self._scale
        self._scores = self._fit.design.forward(W)
        away = W - self._target
        value = self._share * self._fit.value(self._scores) + 0.5 * self._coupling * float(np.vdot(away, away))
        slopes = np.clip(self._fit.derivatives(self._scores), -_LARGEST, _LARGEST)
        gradient = ((self._share * self._fit.design.adjoint(slopes) + self._coupling * away) / self._scale).ravel()
        self._last = np.array(x), gradient
        self._first = self._first or self._last
        self.work += 1.0
        return min(value, _LARGEST), gradient

    def scores_at(self, x: Array) -> Array:
        """Return H_q W at the last point."""
        if not np.array_equal(x, self._last[0]):
            self.work += 0.5
            self._scores = self._fit.design.forward(x.reshape(self._target.shape) / self._scale)
        return self._scores

    @property
    def curvature(self) -> float:
        """The curvature between the first and the last point."""
        assert self._first is not None
        move, change = self._last[0] - self._first[0], self._last[1] - self._first[1]
        length = float(np.vdot(move, move))
        return self._scale**2 * max(0.0, float(np.vdot(move, change)) / length) if length > 0.0 else self._scale**2


@final
class HingeBlock(Block):
    """W_q by least squares against scores S_q of its own, S_q by the prox of the hinge::

        W_q <- argmin beta/2 ||H_q W - S_q + Y_q||^2 + lambda/2 ||W - target||^2
        S_q <- prox of f_q / beta at A + Y_q,    Y_q <- Y_q + A - S_q,    A = relaxation H_q W_q + (1 - relaxation) S_q

    The first by a matrix made once for every ratio lambda / beta.
    """

    def __init__(self, fit: HingeFit, share: float) -> None:
        self._fit, self._share = fit, share
        self._normal = normal_blocks(fit.design)
        self._resolvent: tuple[float, TaskBlocks] | None = None

    def start(self, weights: Array, setting: Setting) -> State:
        scores = self._fit.design.forward(weights)
        dual = self._share * self._fit.smoothed(scores, 0.1)[1]
        multipliers = -self._fit.residuals(dual) / setting.splitting
        return State(weights, dual, 0.5, scores=scores, multipliers=multipliers)

    def step(self, state: State, target: Array, setting: Setting) -> State:
        S, Y = state.scores, state.multipliers
        assert S is not None
        assert Y is not None
        ratio = setting.coupling / setting.splitting
        W = self._solved(self._fit.design.adjoint(S - Y) + ratio * target, ratio)
        predicted = self._fit.design.forward(W)
        towards = setting.relaxation * predicted + (1.0 - setting.relaxation) * S + Y
        new, dual = self._fit.prox(towards, self._share / setting.splitting)
        multipliers = towards - new
        squares = (_square(predicted - new), max(_square(predicted), _square(new)), _square(new - S), _square(multipliers))
        return State(W, self._share * dual, 1.0, scores=new, multipliers=multipliers, squares=squares)

    def _solved(self, right: Array, ratio: float) -> Array:
        """(H^T H + ratio I)^-1 right."""
        if self._resolvent is None or self._resolvent[0] != ratio:
            self._resolvent = ratio, resolvent_blocks(self._normal, ratio)
        rows = self._resolvent[1].rows
        return (right - rows.T @ (rows @ right)) / ratio if self._normal.thin else rows @ right


def block_of(fit: MulticlassFit, share: float) -> Block:
    """Return the block of these examples, which are this share of all."""
    return HingeBlock(fit, share) if isinstance(fit, HingeFit) else SmoothBlock(fit, share)


def mean_square(fit: MulticlassFit) -> float:
    """The mean over the columns of H of ||H_j||^2 / n."""
    X = fit.design.block(0)
    return float(np.square(X.data if is_sparse(X) else X).sum()) / (X.shape[0] * X.shape[1])


def _square(values: Array) -> float:
    return float(np.vdot(values, values))
