"""The step of ADMM on one block of examples: all that examines data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.margins import HingeFit, MulticlassFit
from bench_mtl.model.normal_equations import TaskBlocks, normal_blocks, resolvent_blocks

#: The largest number of evaluations in one smooth step, all of which L-BFGS-B keeps; the next iteration continues from there.
_MOST_EVALUATIONS = 12
#: An upper bound that no weight reaches: with bounds on both sides L-BFGS-B trusts the scale of its variables in its first step.
_HIGH = 1e30
#: What stands for values and slopes that overflow, for a line search that computes with them.
_LARGEST = 1e100

_NOTHING = np.empty((0, 0))


class Setting(NamedTuple):
    """The parameters of one iteration that all blocks share."""

    coupling: float
    """lambda, the penalty of W_q = Z."""
    splitting: float
    """beta, the penalty of S_q = H_q W_q."""
    relaxation: float
    accuracy: float
    """The largest entry of the gradient at the end of a smooth step."""


class BlockState(NamedTuple):
    """A block of examples between two iterations: what its next step needs, then what the last one gave. Its arrays are never changed."""

    weights: Array
    """W_q, J x K."""
    curvature: float = 0.0
    """The curvature that the last smooth step met."""
    scores: Array = _NOTHING
    """S_q of the hinge, n_q x K ..."""
    multipliers: Array = _NOTHING
    """... and its scaled multipliers."""
    dual: Array = _NOTHING
    """The part of the dual point for the examples of the block, n_q x K."""
    work: float = 0.5
    """Passes over the block in the last step."""
    squares: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Squared norms: of H_q W_q - S_q, of the larger of the two, of the change of S_q, and of the multipliers."""


class Piece(NamedTuple):
    """The examples of a block, to be sent to where its steps are taken."""

    fit: MulticlassFit
    """The mean loss of the examples of the block."""
    share: float
    """The share of all examples that these are."""

    def block(self) -> SmoothBlock | HingeBlock:
        return HingeBlock(self.fit, self.share) if isinstance(self.fit, HingeFit) else SmoothBlock(self.fit, self.share)


def divided(classes: NDArray[np.intp], count: int) -> list[NDArray[np.intp]]:
    """Return the examples of every block, ascending: of sizes, and numbers of each class, that differ by 1 at most."""
    shuffled = np.random.default_rng(0).permutation(len(classes))
    dealt = shuffled[np.argsort(classes[shuffled], kind="stable")]
    return [np.sort(dealt[q::count]) for q in range(count)]


def pieces(fit: MulticlassFit, division: list[NDArray[np.intp]]) -> list[Piece]:
    if len(division) == 1:
        return [Piece(fit, 1.0)]
    X, total = fit.design.block(0), len(fit.classes)
    return [
        Piece(replace(fit, design=SharedDesign(X[rows], fit.design.n_tasks), classes=fit.classes[rows]), len(rows) / total)
        for rows in division
    ]


@final
@dataclass(frozen=True)
class SmoothBlock:
    """W_q by L-BFGS-B over W >= 0, from where it was, as accurately as the iteration asks for."""

    fit: MulticlassFit
    share: float

    def start(self, weights: Array, setting: Setting) -> BlockState:
        return BlockState(weights, dual=np.zeros(self.fit.design.output_shape))

    def step(self, state: BlockState, target: Array, setting: Setting) -> BlockState:
        """Return the state with W_q near argmin_W f_q(H_q W) + lambda/2 ||W - target||^2."""
        from scipy.optimize import fmin_l_bfgs_b

        # L-BFGS-B takes the curvature in its variables for 1 until it knows better: they are scale W, with a guess of its root.
        scale = float(np.sqrt(max(state.curvature, setting.coupling)))
        ends: list[tuple[Array, Array, Array]] = []  # point, gradient and scores of the first and the last evaluation

        def evaluate(x: Array) -> tuple[float, Array]:
            W = x.reshape(target.shape) / scale
            scores, away = self.fit.design.forward(W), W - target
            value = self.share * self.fit.value(scores) + 0.5 * setting.coupling * float(np.vdot(away, away))
            slopes = np.clip(self.fit.derivatives(scores), -_LARGEST, _LARGEST)
            gradient = ((self.share * self.fit.design.adjoint(slopes) + setting.coupling * away) / scale).ravel()
            ends[1:] = [(np.array(x), gradient, scores)]
            return min(value, _LARGEST), gradient

        x, _, details = fmin_l_bfgs_b(
            evaluate, state.weights.ravel() * scale, bounds=[(0.0, _HIGH)] * target.size, m=_MOST_EVALUATIONS, factr=0.0,
            pgtol=setting.accuracy / scale, maxfun=_MOST_EVALUATIONS,
        )  # fmt: skip
        (first, slope, _), (last, last_slope, scores) = ends[0], ends[-1]
        W, move, work = x.reshape(target.shape) / scale, last - first, float(details["funcalls"])
        if not np.array_equal(x, last):
            scores, work = self.fit.design.forward(W), work + 0.5
        length = float(np.vdot(move, move))
        bend = max(0.0, float(np.vdot(move, last_slope - slope)) / length) if length > 0.0 else 1.0
        return BlockState(W, scale**2 * bend, dual=self.share * self.fit.duals(scores), work=work)


@final
class HingeBlock:
    """W_q by least squares against scores S_q of its own, S_q by the prox of the hinge::

        W_q <- argmin beta/2 ||H_q W - S_q + Y_q||^2 + lambda/2 ||W - target||^2
        S_q <- prox of f_q / beta at A + Y_q,    Y_q <- Y_q + A - S_q,    A = relaxation H_q W_q + (1 - relaxation) S_q

    The first by a matrix made once for every ratio lambda / beta.
    """

    def __init__(self, fit: HingeFit, share: float) -> None:
        self._fit, self._share = fit, share
        self._normal = normal_blocks(fit.design)
        self._resolvent: tuple[float, TaskBlocks] | None = None

    def start(self, weights: Array, setting: Setting) -> BlockState:
        scores = self._fit.design.forward(weights)
        multipliers = -self._fit.residuals(self._share * self._fit.smoothed(scores, 0.1)[1]) / setting.splitting
        return BlockState(weights, scores=scores, multipliers=multipliers, dual=np.zeros(scores.shape))

    def step(self, state: BlockState, target: Array, setting: Setting) -> BlockState:
        S, Y, ratio = state.scores, state.multipliers, setting.coupling / setting.splitting
        W = self._solved(self._fit.design.adjoint(S - Y) + ratio * target, ratio)
        predicted = self._fit.design.forward(W)
        towards = setting.relaxation * predicted + (1.0 - setting.relaxation) * S + Y
        new, dual = self._fit.prox(towards, self._share / setting.splitting)
        multipliers = towards - new
        squares = square(predicted - new), max(square(predicted), square(new)), square(new - S), square(multipliers)
        return BlockState(W, scores=new, multipliers=multipliers, dual=self._share * dual, work=1.0, squares=squares)

    def _solved(self, right: Array, ratio: float) -> Array:
        """(H^T H + ratio I)^-1 right."""
        if self._resolvent is None or self._resolvent[0] != ratio:
            self._resolvent = ratio, resolvent_blocks(self._normal, ratio)
        rows = self._resolvent[1].rows
        return (right - rows.T @ (rows @ right)) / ratio if self._normal.thin else rows @ right


def square(values: Array) -> float:
    return float(np.vdot(values, values))
