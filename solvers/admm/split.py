"""ADMM for a sparse plus a low-rank matrix: the smooth step by a matrix made once, or by products for designs too large for that."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.normal_equations import TaskBlocks, factorisable, mean_curvature, normal_blocks, resolvent_blocks
from bench_mtl.solvers.admm.unlike import unlike_steps
from bench_mtl.solvers.units import feature_units

#: Iterations between two iterates, or a tenth of all so far: an iterate costs half a pass over the data for its dual point.
_FEWEST = 5

#: The first balancing of the penalties; the later ones at twice the steps of the one before.
_FIRST_BALANCE = 10

#: Penalties stay as they are within this factor of what their residuals ask for: a change costs a factorisation.
_WORTH_CHANGING = 1.5
_LARGEST_CHANGE = 10.0

#: The penalty of P to begin with, of the mean eigenvalue of X_k^T X_k, and that of Q to that of P.
_FIRST_PENALTY, _Q_TO_P = 0.15, 3.0

#: The same where the smooth step is iterative, of the mean over no more eigenvalues than there are examples. Proofs need the largest entry
#: of X^T r, which settles later than the norms that are balanced: penalties change only where these are far from what they should be.
_FIRST_BY_PRODUCTS, _Q_TO_P_BY_PRODUCTS, _FAR_OFF = 1.0, 10.0, 3.0


#: The default relaxation.
_RELAXATION = 1.8


class Rule(Protocol):
    """The options of `ADMM` that this problem uses."""

    @property
    def relaxation(self) -> float | None: ...

    @property
    def penalty(self) -> float | None: ...

    @property
    def balance(self) -> bool: ...

    @property
    def aim(self) -> float: ...


def split_steps(form: SplitForm, first: Array, rule: Rule, *, resumed: bool = False) -> Iterator[Iterate]:
    """ADMM from a feasible point, of which the first iterate is this point itself; see `ADMM`."""
    units = feature_units(form.design)
    claims = units is None and factorisable(form.design) and form.design.is_shared
    yield Iterate(first, None, 0, 0.0, claim=math.inf if claims and form.targets.any() else None)
    if units is not None and factorisable(form.design, square=True):
        relaxation = rule.relaxation or _RELAXATION
        yield from unlike_steps(form, first, units, relaxation=relaxation, penalty=rule.penalty, balance=rule.balance, resumed=resumed)
    else:
        yield from (_factorised if factorisable(form.design) else _by_products)(rule, form, first, resumed)


def _factorised(rule: Rule, form: SplitForm, first: Array, resumed: bool) -> Iterator[Iterate]:
    from bench_mtl.solvers.kernels.split import admm_steps

    normal = normal_blocks(form.design)
    target = np.ascontiguousarray(form.design.adjoint(form.targets).T)
    scratch, residuals = np.empty((4, *target.shape)), np.empty((2, 2))
    penalties = _first_penalties(rule, _FIRST_PENALTY * mean_curvature(form.design), _Q_TO_P)
    blocks = resolvent_blocks(normal, _joint(penalties))
    state = np.zeros((5, *target.shape))
    state[:2] = first.transpose(0, 2, 1)
    if resumed:
        # At the optimum the multipliers rho_p U = rho_q V are X^T of the residuals.
        slope = form.design.adjoint(form.targets - form.design.forward(first[0] + first[1])).T
        state[2], state[3] = np.clip(slope, -form.penalty, form.penalty) / penalties[0], slope / penalties[1]
    step, work, next_balance = 0, 2.0 if resumed else 1.0, _FIRST_BALANCE
    squares = float(np.vdot(form.targets, form.targets))
    while True:
        count = max(_FEWEST, step // 10)
        if rule.balance and step < next_balance:
            count = min(count, next_balance - step)
        arguments = (form.penalty, form.radius, *penalties, rule.relaxation or _RELAXATION, state, scratch, residuals, count)
        admm_steps(blocks.rows, blocks.offsets, blocks.thin, target, *arguments)
        step += count
        work += count
        claim = _relative_gap(form, normal, target, squares, state) if form.design.is_shared else None
        # A product with the data for the dual point is for iterates that may be the last.
        dual = None if claim is not None and claim > rule.aim else form.targets - form.design.forward(np.ascontiguousarray(state[4].T))
        work += 0.0 if dual is None else 0.5
        yield Iterate(np.ascontiguousarray(state[:2].transpose(0, 2, 1)), dual, step, work, claim=claim)
        if rule.balance and step == next_balance:
            next_balance *= 2
            factors = _balancing_factors(residuals)
            if max(factors.max(), 1.0 / factors.min()) > _WORTH_CHANGING:
                penalties = (penalties[0] * float(factors[0]), penalties[1] * float(factors[1]))
                state[2:4] /= factors[:, None, None]
                blocks = resolvent_blocks(normal, _joint(penalties))


def _relative_gap(form: SplitForm, normal: TaskBlocks, target: Array, squares: float, state: Array) -> float:
    """Return the relative gap of (P, Q) and of the residuals of S, scaled to be feasible, from X^T X and X^T Y: up to rounding, and at no
    cost in the number of examples.

    Parameters
    ----------
    target, squares : X^T Y, task by task, and ||Y||^2
    state : P, Q, their multipliers, and S, task by task
    """
    from bench_mtl.solvers.kernels.split import apply_blocks

    P, S = state[0], state[4]
    sums = np.ascontiguousarray(P + state[1])
    images = np.empty((2, *S.shape))
    apply_blocks(normal.rows, normal.offsets, normal.thin, sums, images[0])
    apply_blocks(normal.rows, normal.offsets, normal.thin, S, images[1])
    value = 0.5 * (squares - 2.0 * float(np.vdot(sums, target)) + float(np.vdot(sums, images[0]))) + form.penalty * float(np.abs(P).sum())
    G = target - images[1]  # X^T r of the residuals r of S
    along = squares - float(np.vdot(S, target))
    residual = along - float(np.vdot(S, G))
    largest, spectral = float(np.abs(G).max()), float(np.linalg.norm(G, 2))
    rise = along - form.radius * spectral
    scale = min(max(rise / residual, 0.0), form.penalty / largest if largest > 0.0 else math.inf) if residual > 0.0 else 0.0
    bound = scale * rise - 0.5 * scale * scale * residual
    return (value - bound) / value if value > 0.0 else 0.0


def _by_products(rule: Rule, form: SplitForm, first: Array, resumed: bool) -> Iterator[Iterate]:
    """The residuals r of S solve (I + X X^T / rho) r = y - X (P - U + Q - V), and S = P - U + Q - V + X^T r / rho."""
    from bench_mtl.solvers.admm.products import Products, Resolvent
    from bench_mtl.solvers.kernels.split import admm_split

    products = Products.of(form.design)
    resolvent = Resolvent.of(form.design, products)
    state, scratch, residuals = np.zeros((5, *first.shape[1:])), np.empty((4, *first.shape[1:])), np.empty((2, 2))
    few = max(1.0, form.design.n_features / max(form.design.sizes))
    penalties = _first_penalties(rule, _FIRST_BY_PRODUCTS * few * mean_curvature(form.design), _Q_TO_P_BY_PRODUCTS)
    state[:2] = first
    r, work, step, next_balance = np.array(form.targets), 2.0, 0, _FIRST_BALANCE
    if resumed:
        r -= products.forward(first[0] + first[1])
    image = products.adjoint(r)
    if resumed:
        state[2], state[3] = np.clip(image, -form.penalty, form.penalty) / penalties[0], image / penalties[1]
    while True:
        count = 1 + step // 10
        if rule.balance and step < next_balance:
            count = min(count, next_balance - step)
        rho = _joint(penalties)
        for left in range(count - 1, -1, -1):
            np.subtract(state[:2], state[2:4], out=scratch[:2])
            np.add(scratch[0], scratch[1], out=state[4])
            residual = form.targets - r - products.forward(state[4] + image / rho)
            work += 0.5 + resolvent.improve(residual, r, image, rho)
            state[4] += image / rho
            admm_split(form.penalty, form.radius, *penalties, rule.relaxation or _RELAXATION, state, scratch, residuals, left == 0)
        step += count
        yield Iterate(state[:2].copy(), r.copy(), step, work)
        if rule.balance and step == next_balance:
            next_balance *= 2
            factors = _balancing_factors(residuals)
            if max(factors.max(), 1.0 / factors.min()) > _FAR_OFF:
                penalties = (penalties[0] * float(factors[0]), penalties[1] * float(factors[1]))
                state[2:4] /= factors[:, None, None]
            image, work = products.adjoint(r), work + 0.5  # recomputed, so that rounding does not add up


def _first_penalties(rule: Rule, usual: float, q_to_p: float) -> tuple[float, float]:
    penalty = rule.penalty or usual or 1.0
    return penalty, q_to_p * penalty


def _joint(penalties: tuple[float, float]) -> float:
    return penalties[0] * penalties[1] / (penalties[0] + penalties[1])


def _balancing_factors(residuals: Array) -> Array:
    """For rho_p and rho_q: the fourth root of the ratio of their squared relative residuals, damped because a large step overshoots."""
    primal, dual = residuals[:, 0], residuals[:, 1]
    known = (primal > 0.0) & (dual > 0.0)
    ratio = np.divide(primal, dual, out=np.ones(2), where=known)
    return np.clip(ratio**0.25, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE)
