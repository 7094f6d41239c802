"""ADMM for losses of scores under a sum of norms of rows, over one block of all examples or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.losses import MarginLoss
from bench_mtl.model.margins import HingeFit, PairwiseFit
from bench_mtl.model.normal_equations import factorisable
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.model.solver_state import OwnState, state_of
from bench_mtl.solvers.admm.blocks import Setting, State, block_of, mean_square

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


@dataclass(frozen=True)
class Rule:
    """The options of an ADMM over group forms."""

    relaxation: float | None
    """None for what suits the loss."""
    penalty: float | None
    balance: bool
    residual_tolerance: float | None


class CallBlocks(Protocol):
    """Calls a method of all blocks of examples, wherever they are."""

    def __call__(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[State]:
        """Return block_q.method(*arguments_q) for every block q."""


def group_incompatibility(solver: Solver, problem: Problem) -> str | None:
    """Return why these steps cannot be taken on a problem with a group form, or None: those of the hinge factorise a matrix."""
    form = problem.form(GroupForm)
    if isinstance(form.fit, HingeFit) and not factorisable(form.fit.design):
        return f"{solver.label} factorises H^T H for the hinge, or H H^T, of which both are too large for {problem.name}"
    return None


def group_steps(form: GroupForm, first: Array, rule: Rule, *, dual: Array | None = None) -> Iterator[Iterate]:
    """ADMM from a feasible point, of which the first iterate is this point itself; see `ADMM`.

    Parameters
    ----------
    dual : a dual point that belongs to `first`
    """

    def blocks() -> AbstractContextManager[CallBlocks]:
        block = block_of(form.fit, 1.0)
        return nullcontext(lambda method, arguments: [getattr(block, method)(*arguments[0])])

    yield from consensus_steps(form, first, rule, blocks, 1, lambda duals: duals[0], dual=dual)


def consensus_steps(
    form: GroupForm, first: Array, rule: Rule, blocks: Callable[[], AbstractContextManager[CallBlocks]], count: int,
    join: Callable[[Sequence[Array]], Array], *, dual: Array | None = None, solver: Solver | None = None, start: Iterate | None = None,
) -> Iterator[Iterate]:  # fmt: skip
    """ADMM with the examples in `count` blocks, each with weights W_q of its own; Z is their consensus.

    ::

        W_q <- argmin f_q(H_q W) + lambda/2 ||W - Z + U_q||^2,    W^_q = relaxation W_q + (1 - relaxation) Z
        Z   <- prox of nu / (count lambda) sum_j ||Z_j||, Z >= 0, at the mean of W^_q + U_q,    U_q <- U_q + W^_q - Z

    Parameters
    ----------
    blocks : makes the blocks, and ends what they run in
    join : rows of every block -> rows of all examples in their order
    dual : a dual point that belongs to `first`
    solver : whose states those of the iterates are; without it there are none
    start : an iterate of `solver`, to go on from where it has a state
    """
    own = None if solver is None or start is None else OwnState.of(solver, start)
    average = _Average() if isinstance(form.fit, HingeFit) else None
    step, yielded, work = 0, 0, 0.0
    if own is None or start is None:
        yield Iterate(first, dual, step, work)
        slope, work = _slope(form, first, dual)
        run = _Run(form, first, rule, count, slope)
    else:
        yield start
        step, work, yielded = start.step, start.work, int(own.number("yielded"))
        run = _Run(form, start.primal, rule, count, np.zeros_like(start.primal))
        run.restore(own)
        if average is not None:
            average.restore(own, run.sizes(own))
        if run.has_converged(rule.residual_tolerance):
            return
    with blocks() as call:
        if own is None:
            states = call("start", [(first, run.setting)] * count)
            work += 0.5
        else:
            states = run.balanced(run.states(own), step)
        while True:
            states = call("step", [(state, target, run.setting) for state, target in zip(states, run.targets(), strict=True)])
            step += 1
            work += float(np.mean([state.work for state in states]))
            run.update(states)
            duals = [state.dual for state in states]
            if average is not None:
                average.add(duals, step)
            ended = run.has_converged(rule.residual_tolerance)
            if ended or step <= _ALL or step % (step // _ONE_IN) == 0:
                yielded += 1
                proving = duals if average is None or yielded % 2 else average.values()
                made = None
                if solver is not None:
                    mean = None if average is None else dict(vars(average))
                    made = partial(_state, solver, dict(vars(run)), states, mean, yielded)
                yield Iterate(run.consensus, join(proving), step, work, state=made)
            if ended:
                return
            states = run.balanced(states, step)


class _Average:
    """The mean of the dual points of about the last half of all steps: while they circle, it proves more than any of them."""

    def __init__(self) -> None:
        self._sums: list[Array] = []
        self._before: list[Array] = []
        self._count = self._count_before = 0
        self._next = 2

    def restore(self, own: OwnState, sizes: Sequence[int]) -> None:
        """Be as it was when a state was made."""
        self._count, self._count_before, self._next = map(int, own.array("average_counts", (3,)))
        for name in ("_sums", "_before"):
            if f"average{name}" in own.entries:
                setattr(self, name, _parted(own.array(f"average{name}", (sum(sizes), None)), sizes))

    def add(self, values: Sequence[Array], step: int) -> None:
        if step == self._next:
            self._before, self._count_before, self._count = self._sums, self._count, 0
            self._next = max(step + 1, int(1.4 * step))
        self._sums = list(values) if self._count == 0 else [total + value for total, value in zip(self._sums, values, strict=True)]
        self._count += 1

    def values(self) -> list[Array]:
        total = self._count + self._count_before
        if self._count_before == 0:
            return [value / total for value in self._sums]
        return [(a + b) / total for a, b in zip(self._before, self._sums, strict=True)]


def _state(
    solver: Solver, run: Mapping[str, Any], states: Sequence[State], average: Mapping[str, Any] | None, yielded: int
) -> Mapping[str, Any]:
    """Return the state of a run between two iterations: attributes of `_Run` and `_Average`, and arrays for all blocks together."""
    scores, multipliers = ([getattr(state, name) for state in states] for name in ("scores", "multipliers"))
    kept = {
        "setting": np.array(run["setting"], dtype=np.float64),
        "block_multipliers": np.stack(run["_multipliers"]),
        "next_balance": run["_next_balance"],
        "residuals": np.array([*run["_coupled"], *run["_split"]], dtype=np.float64),
        "sizes": np.array([len(state.dual) for state in states], dtype=np.int64),
        "weights": np.stack([state.weights for state in states]),
        "duals": np.concatenate([state.dual for state in states]),
        "costs": np.array([(state.work, state.curvature, *state.squares) for state in states], dtype=np.float64),
        "scores": None if scores[0] is None else np.concatenate(scores),
        "multipliers": None if multipliers[0] is None else np.concatenate(multipliers),
    }
    if average is not None:
        kept["average_counts"] = np.array([average["_count"], average["_count_before"], average["_next"]], dtype=np.int64)
        for name in ("_sums", "_before"):
            kept[f"average{name}"] = np.concatenate(average[name]) if average[name] else None
    return state_of(solver, yielded=yielded, **kept)


def _parted(array: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the rows of every block, in memory of their own."""
    return [part.copy() for part in np.split(array, np.cumsum(sizes)[:-1])]


def _slope(form: GroupForm, point: Array, dual: Array | None) -> tuple[Array, float]:
    """Return lambda U near a solution, for one block, and the work: the positive part of H^T R, scaled to a subgradient of the penalty."""
    fit = form.fit
    if dual is None:
        dual = fit.duals(fit.design.forward(point))
    G = np.maximum(fit.design.adjoint(fit.residuals(fit.admissible(dual))), 0.0)
    norms = form.dual_norms(G)[:, None]
    return np.asarray(G * np.minimum(1.0, np.divide(form.nu, norms, out=np.ones_like(norms), where=norms > form.nu))), 1.0


class _Residuals(NamedTuple):
    """The relative residuals of a constraint."""

    primal: float
    dual: float


class _Run:
    """The state of a run outside the blocks: Z, the multipliers U_q and the penalties."""

    def __init__(self, form: GroupForm, first: Array, rule: Rule, count: int, slope: Array) -> None:
        self._form, self._rule, self._count = form, rule, count
        self._is_split = isinstance(form.fit, HingeFit)
        typical = mean_square(form.fit) or 1.0
        n, K = form.fit.design.output_shape
        if self._is_split:
            splitting = 1.0 / n
            coupling = rule.penalty or typical / count
        else:
            splitting = 0.0
            coupling = rule.penalty or _curvature(form.fit) * typical / (K * count)
        # The gradient of f at the first point is the scale of what the first step may leave of its own.
        relaxation = rule.relaxation or (_RELAXATION_SPLIT if self._is_split else _RELAXATION)
        self.setting = Setting(coupling, splitting, relaxation, _ACCURACY * 0.01 * (float(np.abs(slope).max()) or form.nu))
        self.consensus = first
        self._multipliers = [slope / (count * coupling)] * count
        self._next_balance = _FIRST_BALANCE
        self._coupled = self._split = _Residuals(np.inf, np.inf)

    def restore(self, own: OwnState) -> None:
        """Be where the run was that has made a state, with Z the point that it is of."""
        coupling, splitting, relaxation, accuracy = map(float, own.array("setting", (4,)))
        self.setting = Setting(coupling, splitting, relaxation, accuracy)
        self._multipliers = [U.copy() for U in own.array("block_multipliers", (self._count, *self.consensus.shape))]
        self._next_balance = int(own.number("next_balance"))
        residuals = tuple(map(float, own.array("residuals", (4,))))
        self._coupled, self._split = _Residuals(*residuals[:2]), _Residuals(*residuals[2:])

    def sizes(self, own: OwnState) -> list[int]:
        """Return the examples of every block as a state has them.

        Raises
        ------
        InputError : they are not all examples.
        """
        sizes = [int(size) for size in own.array("sizes", (self._count,))]
        if min(sizes) < 0 or sum(sizes) != self._form.fit.design.output_shape[0]:
            raise InputError(f"the blocks of the state to go on from have {sum(sizes)} examples in all, which are not those of the problem")
        return sizes

    def states(self, own: OwnState) -> list[State]:
        """Return the states of the blocks."""
        sizes, count = self.sizes(own), self._count
        shape = self._form.fit.design.output_shape

        def parts(name: str) -> Sequence[Array | None]:
            return _parted(own.array(name, shape), sizes) if name in own.entries else [None] * count

        weights, costs = own.array("weights", (count, *self.consensus.shape)), own.array("costs", (count, 6))
        duals = _parted(own.array("duals", shape), sizes)
        return [
            State(W.copy(), dual, work, curvature, scores, multipliers, (a, b, c, d))
            for W, dual, (work, curvature, a, b, c, d), scores, multipliers in zip(
                weights, duals, costs.tolist(), parts("scores"), parts("multipliers"), strict=True
            )
        ]

    def targets(self) -> list[Array]:
        return [self.consensus - U for U in self._multipliers]

    def update(self, states: Sequence[State]) -> None:
        """Take the steps of Z and U_q, and compute the residuals."""
        Z, lam, share = self.consensus, self.setting.coupling, self.setting.relaxation
        ahead = [share * state.weights + (1.0 - share) * Z + U for state, U in zip(states, self._multipliers, strict=True)]
        new = self._form.prox(sum(ahead[1:], ahead[0]) / self._count, 1.0 / (self._count * lam))
        self._multipliers = [A - new for A in ahead]
        self.consensus = new
        apart = [state.weights - new for state in states]
        most = max(sum(_square(state.weights) for state in states), self._count * _square(new))
        moved = self._count * _square(new - Z)
        self._coupled = _Residuals(_ratio(sum(map(_square, apart)), most), _ratio(moved, sum(map(_square, self._multipliers))))
        if self._is_split:
            totals = np.sum([state.squares for state in states], axis=0)
            self._split = _Residuals(
                _ratio(totals[0], totals[1] + float(self._form.fit.design.output_shape[0])), _ratio(totals[2], totals[3])
            )
        largest = max(float(np.abs(new - Z).max()), *(float(np.abs(A).max()) for A in apart))
        self.setting = self.setting._replace(accuracy=_ACCURACY * lam * largest)

    def has_converged(self, tolerance: float | None) -> bool:
        residuals = (*self._coupled, *(self._split if self._is_split else ()))
        return tolerance is not None and max(residuals) <= tolerance

    def balanced(self, states: list[State], step: int) -> list[State]:
        """Adapt the penalties where it is time to; return the states with their multipliers scaled."""
        if not self._rule.balance or step != self._next_balance:
            return states
        self._next_balance *= 2
        coupled, split = _factor(self._coupled), _factor(self._split)
        if self._is_split and max(coupled, split, 1.0 / coupled, 1.0 / split) <= _WORTH_CHANGING:
            return states
        self.setting = self.setting._replace(coupling=self.setting.coupling * coupled)
        self._multipliers = [U / coupled for U in self._multipliers]
        if not self._is_split:
            return states
        self.setting = self.setting._replace(splitting=self.setting.splitting * split)
        return [state._replace(multipliers=state.multipliers / split) for state in states if state.multipliers is not None]


def _curvature(fit: object) -> float:
    """The second derivative of the loss at a margin of 0, by a difference of its slopes: a scale, no bound."""
    assert isinstance(fit, PairwiseFit)
    loss: MarginLoss = fit.loss
    slopes = loss.dual(np.array([-0.5, 0.5]))
    return max(float(slopes[0] - slopes[1]), 1e-3)


def _factor(residuals: _Residuals) -> float:
    """The root of the ratio of two relative residuals, damped because a large step overshoots."""
    if not (0.0 < residuals.primal < np.inf and 0.0 < residuals.dual < np.inf):
        return 1.0
    return float(np.clip((residuals.primal / residuals.dual) ** 0.5, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))


def _ratio(squares: float, of_squares: float) -> float:
    return float(np.sqrt(squares / of_squares)) if of_squares > 0.0 else (0.0 if squares == 0.0 else np.inf)


def _square(values: Array) -> float:
    return float(np.vdot(values, values))
