"""ADMM for losses of scores under a sum of norms of rows, over one block of all examples or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import is_sparse, real_number, true_or_false, unless_none
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.margins import HingeFit, MulticlassFit, PairwiseFit
from bench_mtl.model.normal_equations import factorisable
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.model.solver_state import Stepper
from bench_mtl.solvers.admm.blocks import BlockState, Setting, square
from bench_mtl.solvers.stochastic.averages import RecentMean

#: The first balancing of the penalties; the later ones at twice the steps of the one before.
_FIRST_BALANCE = 4
#: Penalties stay as they are within this factor of what their residuals ask for, where a change costs a factorisation.
_WORTH_CHANGING = 1.5
_LARGEST_CHANGE = 10.0
#: For smooth steps, and for the hinge, of which long steps keep circling.
_RELAXATION, _RELAXATION_SPLIT = 1.8, 1.3
#: The accuracy of a smooth step, relative to the last change of the multipliers.
_ACCURACY = 0.1
#: Every step up to the first number yields an iterate, later one in a hundredth of all steps so far.
_ALL, _ONE_IN = 100, 100
#: Calls a method of every block: ``block_q.method(*arguments(q))``, in their order.
Call = Callable[[str, Callable[[int], tuple[Any, ...]]], Iterable[BlockState]]


@dataclass(frozen=True)
class Rule:
    """The options of every ADMM; of the relaxation and the penalty None means what suits the problem."""

    relaxation: float | None
    penalty: float | None
    balance: bool

    @classmethod
    def of(cls, solver: Solver) -> Self:
        return cls(*(getattr(solver, option.name) for option in fields(cls)))

    def __post_init__(self) -> None:
        unless_none(real_number, "relaxation", self.relaxation, strict=True, below=2.0)
        unless_none(real_number, "penalty", self.penalty, strict=True)
        true_or_false("balance", self.balance)


def group_objection(solver: Solver, problem: Problem, blocks: int = 1) -> str | None:
    """Return why these steps cannot be taken on a problem with a group form, or None: those of the hinge factorise a matrix a block."""
    form = problem.form(GroupForm)
    design = form.fit.design
    if blocks > 1:
        design = SharedDesign(design.block(0)[: -(-design.sizes[0] // blocks)], design.n_tasks)
    if isinstance(form.fit, HingeFit) and not factorisable(design):
        return f"{solver.label} factorises H^T H for the hinge, or H H^T, of which both are too large for {problem.name}"
    return None


@dataclass(frozen=True)
class Average:
    """The mean of the dual points of about the last half of all steps: while they circle, it proves more than any of them."""

    mean: RecentMean
    anew: int = 2
    """The step at which it begins anew."""

    def plus(self, value: Array, step: int) -> Average:
        begins = step == self.anew
        return Average(self.mean.plus(value, 1.0, anew=begins), max(step + 1, int(1.4 * step)) if begins else self.anew)


@dataclass(frozen=True)
class State:
    """A run between two steps."""

    Z: Array
    U: Array
    """The scaled multipliers of W_q = Z, Q x J x K."""
    blocks: tuple[BlockState, ...]
    setting: Setting
    average: Average | None
    """Of the hinge."""
    work: float
    step: int = 0
    yielded: int = 0
    next_balance: int = _FIRST_BALANCE
    residuals: tuple[float, ...] = (np.inf,) * 4
    """Relative, primal and dual: of W_q = Z, then of S_q = H_q W_q."""


class ConsensusStepper(Stepper):
    """The steps of `ConsensusADMM`, with the examples in Q blocks, each with weights W_q of its own; Z is their consensus.

    `blocks` makes the blocks of the examples of a `division`, and ends what they run in.
    """

    def __init__(
        self, form: GroupForm, solver: Solver, division: Sequence[NDArray[np.intp]], blocks: Callable[[], AbstractContextManager[Call]]
    ) -> None:
        self._form, self._rule, self._division, self._count = form, Rule.of(solver), division, len(division)
        self._is_split = isinstance(form.fit, HingeFit)
        self._relaxation = self._rule.relaxation or (_RELAXATION_SPLIT if self._is_split else _RELAXATION)
        self._open = ExitStack()
        self._call = self._open.enter_context(blocks())

    def close(self) -> None:
        self._open.close()

    def step(self, now: State) -> State:
        """Take steps up to the next that is shown."""
        while True:
            now = self._after(self._balanced(now))
            if now.step <= _ALL or now.step % (now.step // _ONE_IN) == 0:
                return replace(now, yielded=now.yielded + 1)

    def iterate(self, now: State) -> Iterate:
        is_last = now.average is None or now.yielded % 2 == 1
        dual = self.joined([state.dual for state in now.blocks]) if is_last else now.average.mean.value  # type: ignore[union-attr]
        return Iterate(now.Z, dual, now.step, now.work)

    def joined(self, parts: Sequence[Array]) -> Array:
        """Return the rows of all blocks in the order of the examples."""
        if self._count == 1:
            return parts[0]
        together = np.empty(self._form.fit.design.output_shape)
        for rows, part in zip(self._division, parts, strict=True):
            together[rows] = part
        return together

    def start(self, at: Iterate) -> State:
        """Return the first state: at a solution lambda U is the positive part of H^T R, scaled to a subgradient of the penalty."""
        form, fit, count = self._form, self._form.fit, self._count
        dual = fit.duals(fit.design.forward(at.primal)) if at.dual is None else at.dual
        G = np.maximum(fit.design.adjoint(fit.residuals(fit.admissible(dual))), 0.0)
        norms = form.dual_norms(G)[:, None]
        slope = G * np.minimum(1.0, np.divide(form.nu, norms, out=np.ones_like(norms), where=norms > form.nu))
        typical, (n, K) = _mean_square(fit) or 1.0, fit.design.output_shape
        coupling = self._rule.penalty or (typical / count if self._is_split else _curvature(fit) * typical / (K * count))
        # The gradient of f at the first point is the scale of what the first step may leave of its own.
        accuracy = _ACCURACY * 0.01 * (float(np.abs(slope).max()) or form.nu)
        setting = Setting(coupling, 1.0 / n if self._is_split else 0.0, self._relaxation, accuracy)
        blocks = tuple(self._call("start", lambda _: (at.primal, setting)))
        average = Average(RecentMean(np.zeros((n, K)), np.zeros((n, K)))) if self._is_split else None
        return State(at.primal, np.stack([slope / (count * coupling)] * count), blocks, setting, average, 1.5)

    def _after(self, now: State) -> State:
        """Return the state after a step of all W_q, Z and U_q, with its residuals."""
        Z, setting, count = now.Z, now.setting, self._count
        blocks = tuple(self._call("step", lambda q: (now.blocks[q], Z - now.U[q], setting)))
        W = np.stack([state.weights for state in blocks])
        ahead = setting.relaxation * W + (1.0 - setting.relaxation) * Z + now.U
        new = self._form.prox(ahead.sum(axis=0) / count, 1.0 / (count * setting.coupling))
        U, apart = ahead - new, W - new
        gap, size, change, pull = np.sum([state.squares for state in blocks], axis=0)
        residuals = (
            _ratio(square(apart), max(square(W), count * square(new))), _ratio(count * square(new - Z), square(U)),
            _ratio(gap, size + len(self._form.fit.classes)), _ratio(change, pull),
        )  # fmt: skip
        accuracy = _ACCURACY * setting.coupling * float(max(np.abs(new - Z).max(), np.abs(apart).max()))
        step = now.step + 1
        average = None if now.average is None else now.average.plus(self.joined([state.dual for state in blocks]), step)
        return replace(
            now, Z=new, U=U, blocks=blocks, setting=setting._replace(accuracy=accuracy), residuals=residuals, average=average, step=step,
            work=now.work + float(np.mean([state.work for state in blocks])),
        )  # fmt: skip

    def _balanced(self, now: State) -> State:
        """Return the state with the penalties adapted, where it is time to."""
        if not self._rule.balance or now.step != now.next_balance:
            return now
        now = replace(now, next_balance=2 * now.step)
        coupled, split = _factor(*now.residuals[:2]), _factor(*now.residuals[2:])
        if self._is_split and max(coupled, split, 1.0 / coupled, 1.0 / split) <= _WORTH_CHANGING:
            return now
        setting = now.setting._replace(coupling=now.setting.coupling * coupled, splitting=now.setting.splitting * split)
        blocks = tuple(state._replace(multipliers=state.multipliers / split) for state in now.blocks)
        return replace(now, U=now.U / coupled, setting=setting, blocks=blocks)


def _mean_square(fit: MulticlassFit) -> float:
    """The mean over the columns of H of ||H_j||^2 / n."""
    X = fit.design.block(0)
    return float(np.square(X.data if is_sparse(X) else X).sum()) / (X.shape[0] * X.shape[1])


def _curvature(fit: object) -> float:
    """The second derivative of the loss at a margin of 0, by a difference of its slopes: a scale, no bound."""
    assert isinstance(fit, PairwiseFit)
    slopes = fit.loss.dual(np.array([-0.5, 0.5]))
    return max(float(slopes[0] - slopes[1]), 1e-3)


def _factor(primal: float, dual: float) -> float:
    """The root of the ratio of two relative residuals, damped because a large step overshoots."""
    if not (0.0 < primal < np.inf and 0.0 < dual < np.inf):
        return 1.0
    return float(np.clip((primal / dual) ** 0.5, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))


def _ratio(squares: float, of_squares: float) -> float:
    return float(np.sqrt(squares / of_squares)) if of_squares > 0.0 else (0.0 if squares == 0.0 else np.inf)
