"""ADMM for a sparse plus a low-rank matrix: the smooth step by a matrix made once, or by products for designs too large for that."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, lapack

from bench_mtl.core.designs import Design
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Array, Iterate, gap_up_to_rounding
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.normal_equations import factorisable, mean_curvature, normal_blocks, resolvent_blocks
from bench_mtl.solvers.admm.group import Rule
from bench_mtl.solvers.units import feature_units, in_units

#: The default relaxation.
_RELAXATION = 1.8
#: The first balancing of the penalties; the later ones at twice the steps of the one before. More often is unstable.
_FIRST_BALANCE = 10
#: The most that one balancing changes the penalty of P, and that of Q; where they are measured in unlike features, that of Q.
_LARGEST_CHANGE, _LARGEST_CHANGE_Q = 10.0, 100.0
#: The penalty of P to begin with, of the mean eigenvalue of X_k^T X_k, and that of Q to that of P.
_FIRST_PENALTY, _Q_TO_P = 0.15, 3.0
#: The same where the smooth step is iterative, of the mean over no more eigenvalues than there are examples.
_FIRST_BY_PRODUCTS, _Q_TO_P_BY_PRODUCTS = 1.0, 10.0
#: The smallest shift of a matrix of columns of norm 1, for each of its columns.
_SMALLEST_SHIFT = 10.0 * float(np.finfo(float).eps)
#: Conjugate gradients end at this share of the residual of the last iteration's answer, so that the error falls as the iterates converge.
_LEFT = 0.2
#: The largest number of conjugate gradient steps in one iteration; the next one continues from there.
_MOST_STEPS = 20
#: Leading eigenpairs of X X^T in the preconditioner, and random directions beside them to find these.
_PAIRS, _BESIDE = 32, 8


def split_steps(form: LinearForm, first: Array, rule: Rule, aim: float, *, resumed: bool) -> Iterator[Iterate]:
    """ADMM from a feasible point, of which the first iterate is this point itself; see `ADMM`.

    Iterates have dual points near the relative gap `aim`. A run that is `resumed` begins near the optimum, by multipliers from residuals.
    """
    units, can_factorise = feature_units(form.design), factorisable(form.design)
    claims = units is None and can_factorise and form.design.is_shared
    yield Iterate(first, None, 0, 0.0, claim=math.inf if claims and form.fit.targets.any() else None)
    slope = form.design.adjoint(form.fit.targets - form.design.forward(first[0] + first[1])) if resumed else None
    run: _Run
    if units is not None and factorisable(form.design, square=True):
        run = _Unlike(form, first, rule, slope, units)
    else:
        run = _Factorised(form, first, rule, slope, aim) if can_factorise else _ByProducts(form, first, rule, slope)
    step, next_balance = 0, _FIRST_BALANCE
    while True:
        count = run.between(step)
        if rule.balance and step < next_balance:
            count = min(count, next_balance - step)
        run.advance(count)
        step += count
        yield run.iterate(step)
        if rule.balance and step == next_balance:
            next_balance *= 2
            run.balance()


class _Run(ABC):
    """P, Q, their scaled multipliers U and V, and a way to take steps.

    P and Q are task by task or feature by feature, as the steps want them, and rho_p of each row or of all. The slopes are those near the
    optimum, rho_p U and rho_q V: X^T of the residuals in the features of P, which have a scale, and in those of Q.
    """

    state: Any
    """P, Q, U, V, and S, the last argmin of the smooth part."""
    worth_changing: ClassVar[float]
    """Penalties stay as they are within this factor of what their residuals ask for."""
    work: float

    def __init__(
        self, form: LinearForm, first: Array, rule: Rule, penalties: tuple[Any, float], slopes: tuple[Array, Array] | None, scale: Any = 1.0
    ) -> None:
        from bench_mtl.solvers.kernels import split as kernels

        self.kernels, self.form, self.penalties, self.relaxation = kernels, form, penalties, rule.relaxation or _RELAXATION
        self.penalty, self.radius = form.penalty_and_radius
        self.thresholds, self.state = self.penalty * scale, np.zeros((5, *first.shape[1:]))
        self.state[:2] = first
        if slopes is not None:
            self.state[2], self.state[3] = np.clip(slopes[0], -self.thresholds, self.thresholds) / penalties[0], slopes[1] / penalties[1]
        self.scratch, self.residuals = np.empty((4, *first.shape[1:])), np.empty((2, 2))
        self.changed()

    @staticmethod
    def between(step: int) -> int:
        """Return the iterations until the next iterate, which costs half a pass over the data for its dual point."""
        return max(5, step // 10)

    @abstractmethod
    def advance(self, count: int) -> None: ...

    @abstractmethod
    def iterate(self, step: int) -> Iterate: ...

    def balance(self) -> None:
        factors = self.factors()
        if max(float(np.maximum(factor, 1.0 / factor).max()) for factor in factors) > self.worth_changing:
            self.penalties = self.penalties[0] * factors[0], self.penalties[1] * float(factors[1])
            for multipliers, factor in zip(self.state[2:4], factors, strict=True):
                multipliers /= factor
            self.changed()

    def factors(self) -> Array | tuple[Array, Array]:
        """Fourth roots of the ratios of relative residuals, damped because a large step overshoots."""
        primal, dual = self.residuals[:, 0], self.residuals[:, 1]
        ratio = np.divide(primal, dual, out=np.ones(2), where=(primal > 0.0) & (dual > 0.0))
        return np.asarray(np.clip(ratio**0.25, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE))

    def changed(self) -> None:
        """Take the penalties as they are now."""
        penalties = self.penalties
        self.rho = penalties[0] * penalties[1] / (penalties[0] + penalties[1])
        self.rule = self.kernels.Splitting(self.penalty, self.radius, *penalties, self.relaxation)


class _Factorised(_Run):
    """By (X_k^T X_k + rho I)^-1, task by task; a change of the penalties costs a factorisation."""

    worth_changing = 1.5

    def __init__(self, form: LinearForm, first: Array, rule: Rule, slope: Array | None, aim: float) -> None:
        self.aim, self.normal = aim, normal_blocks(form.design)
        self.target = np.ascontiguousarray(form.design.adjoint(form.fit.targets).T)
        self.squares = float(np.vdot(form.fit.targets, form.fit.targets))
        penalty = rule.penalty or _FIRST_PENALTY * mean_curvature(form.design) or 1.0
        slopes = None if slope is None else (slope.T, slope.T)
        super().__init__(form, first.transpose(0, 2, 1), rule, (penalty, _Q_TO_P * penalty), slopes)
        self.work = 1.0 if slope is None else 2.0

    def changed(self) -> None:
        super().changed()
        self.blocks = resolvent_blocks(self.normal, self.rho)

    def advance(self, count: int) -> None:
        self.kernels.admm_steps(self.blocks, self.target, self.rule, self.state, self.scratch, self.residuals, count)
        self.work += count

    def iterate(self, step: int) -> Iterate:
        form, state = self.form, self.state
        claim = self._relative_gap() if form.design.is_shared else None
        # A product with the data for the dual point is for iterates that may be the last.
        dual = None if claim is not None and claim > self.aim else form.fit.targets - form.design.forward(np.ascontiguousarray(state[4].T))
        self.work += 0.0 if dual is None else 0.5
        point = np.array(state[:2].transpose(0, 2, 1), order="C")  # a copy with a single task too
        return Iterate(point, dual, step, self.work, claim=claim)

    def _relative_gap(self) -> float:
        """Return the relative gap of (P, Q) and of the residuals of S, scaled to be feasible, from X^T X and X^T Y: up to rounding, and at
        no cost in the number of examples."""
        normal, target, squares, P, S = self.normal, self.target, self.squares, self.state[0], self.state[4]
        sums = np.ascontiguousarray(P + self.state[1])
        images = np.empty((2, *S.shape))
        self.kernels.apply_blocks(normal, sums, images[0])
        self.kernels.apply_blocks(normal, S, images[1])
        loss = 0.5 * (squares - 2.0 * float(np.vdot(sums, target)) + float(np.vdot(sums, images[0])))
        value = loss + self.penalty * float(np.abs(P).sum())
        G = target - images[1]  # X^T r of the residuals r of S
        along = squares - float(np.vdot(S, target))
        residual = along - float(np.vdot(S, G))
        largest, spectral = float(np.abs(G).max()), float(np.linalg.norm(G, 2))
        rise = along - self.radius * spectral
        scale = min(max(rise / residual, 0.0), self.penalty / largest if largest > 0.0 else math.inf) if residual > 0.0 else 0.0
        bound = scale * rise - 0.5 * scale * scale * residual
        return gap_up_to_rounding(value, bound, 0.5 * NEGLIGIBLE_SHARE * squares)


class _ByProducts(_Run):
    """The residuals r of S solve (I + X X^T / rho) r = y - X (P - U + Q - V), and S = P - U + Q - V + X^T r / rho.

    Proofs need the largest entry of X^T r, which settles later than the norms that are balanced: penalties change only where these are far
    from what they should be.
    """

    worth_changing = 3.0

    def __init__(self, form: LinearForm, first: Array, rule: Rule, slope: Array | None) -> None:
        few = max(1.0, form.design.n_features / max(form.design.sizes))
        penalty = rule.penalty or _FIRST_BY_PRODUCTS * few * mean_curvature(form.design) or 1.0
        slopes = None if slope is None else (slope, slope)
        super().__init__(form, first, rule, (penalty, _Q_TO_P_BY_PRODUCTS * penalty), slopes)
        self.resolvent = Resolvent.of(form.design)
        self.r = np.array(form.fit.targets) if slope is None else form.fit.targets - form.design.forward(first[0] + first[1])
        self.image, self.work = self.resolvent.adjoint(self.r), 2.0

    @staticmethod
    def between(step: int) -> int:
        return 1 + step // 10

    def advance(self, count: int) -> None:
        form, state, scratch, r, image, rho = self.form, self.state, self.scratch, self.r, self.image, self.rho
        for left in range(count - 1, -1, -1):
            np.subtract(state[:2], state[2:4], out=scratch[:2])
            np.add(scratch[0], scratch[1], out=state[4])
            residual = form.fit.targets - r - form.design.forward(state[4] + image / rho)
            self.work += 0.5 + self.resolvent.improve(residual, r, image, rho)
            state[4] += image / rho
            self.kernels.admm_split(self.rule, state, scratch, self.residuals, left == 0)

    def iterate(self, step: int) -> Iterate:
        return Iterate(self.state[:2].copy(), self.r.copy(), step, self.work)

    def balance(self) -> None:
        super().balance()
        self.image, self.work = self.resolvent.adjoint(self.r), self.work + 0.5  # recomputed, so that rounding does not add up


class _Unlike(_Run):
    """Where features are of unlike scale: a penalty rho_j / t_j^2 for row j of P, for units t in which the columns of the data have norm 1.

    The prox of the l1 norm allows a penalty for each row, that of the trace norm only one for all. The steps are those in the scaled
    features P_j / t_j, Q_j / t_j, in which the matrix to factorise is well scaled. Q itself is projected in its own units.
    """

    worth_changing = 0.0

    def __init__(self, form: LinearForm, first: Array, rule: Rule, slope: Array | None, units: Array) -> None:
        self.t, self.design = units[:, None], in_units(form.design, units)
        t, normal = self.t, normal_blocks(self.design, square=True)
        self.grams = [normal.block(k) for k in range(len(normal.offsets) - 1)]
        self.target = self.design.adjoint(form.fit.targets)
        # The second is the geometric mean of the squared norms of the columns.
        penalties = np.full_like(t, rule.penalty or _FIRST_PENALTY), float(np.exp(-2.0 * np.log(units).mean()))
        slopes = None if slope is None else (t * slope, slope)
        super().__init__(form, np.stack([first[0] / t, first[1]]), rule, penalties, slopes, t)
        self.work = 1.0 if slope is None else 2.0

    def changed(self) -> None:
        """Set the upper Cholesky factor of every X_k^T X_k + diag(shifts): inverses would lose digits of nearly dependent columns."""
        rho_p, rho_q = self.penalties[0], self.penalties[1] * self.t**2
        self.share = rho_q / (rho_p + rho_q)  # of P in what S = P + Q moves by
        self.cholesky = []
        for gram in self.grams:
            shifted = np.array(gram, order="F")
            # Below the rounding of the factor a shift does not keep nearly dependent columns apart.
            shifted[np.diag_indices(len(shifted))] += np.maximum((rho_p * self.share)[:, 0], _SMALLEST_SHIFT * len(shifted))
            self.cholesky.append(cho_factor(shifted, overwrite_a=True, check_finite=False)[0])

    def _solved(self, right: Array) -> Array:
        if len(self.cholesky) == 1:
            return np.asarray(lapack.dpotrs(self.cholesky[0], right, lower=0)[0])
        columns = [lapack.dpotrs(factor, column, lower=0)[0] for factor, column in zip(self.cholesky, right.T, strict=True)]
        return np.stack(columns, axis=1)

    def advance(self, count: int) -> None:
        P, Q, U, V, _ = self.state
        t, share, relaxation, rho_p, project_trace = self.t, self.share, self.relaxation, self.penalties[0], self.kernels.project_trace
        for _ in range(count):
            near_p, near_q = P - U, (Q - V) / t
            S = self._solved(self.target + rho_p * share * (near_p + near_q))
            rest = S - near_p - near_q
            A, B = near_p + share * rest, t * (near_q + (1.0 - share) * rest)
            P_before, Q_before = P, Q
            U = U + relaxation * A + (1.0 - relaxation) * P
            P = U - np.clip(U, -self.thresholds / rho_p, self.thresholds / rho_p)
            U = U - P
            V = V + relaxation * B + (1.0 - relaxation) * Q
            Q = np.empty_like(V)
            project_trace(V, self.radius, Q)
            V = V - Q
        self.state, self.moves = (P, Q, U, V, S), ((A, P, P_before, U), (B, Q, Q_before, V))
        self.work += count + 0.5

    def iterate(self, step: int) -> Iterate:
        P, Q, _, _, S = self.state
        return Iterate(np.stack([self.t * P, Q]), self.form.fit.targets - self.design.forward(S), step, self.work)

    def factors(self) -> tuple[Array, Array]:
        of_p, of_q = self.moves
        whole = _row_factors(tuple(M.reshape(1, -1) for M in of_q), _LARGEST_CHANGE_Q)
        return _row_factors(of_p, _LARGEST_CHANGE), whole[0, 0]


def _row_factors(moves: tuple[Array, ...], largest: float) -> Array:
    """For every row: the root of the ratio of its relative residuals, primal to dual; 1 where one of the two is 0."""
    smooth, point, before, multipliers = moves  # the first is the argmin of the smooth part
    sizes = (np.sqrt(np.square(M).sum(axis=1, keepdims=True)) for M in (smooth - point, smooth, point, point - before, multipliers))
    gap, ahead, here, change, pull = sizes
    size = np.maximum(ahead, here)
    counts = (gap > 0.0) & (size > 0.0) & (change > 0.0) & (pull > 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(counts, (gap / size) / (change / pull), 1.0)
    return np.asarray(np.clip(np.sqrt(ratio), 1.0 / largest, largest))


def adjoint_of(design: Design) -> Callable[[Array], Array]:
    """Return R -> X^T R; a shared sparse X is stored by columns too, which halves its time."""
    if design.is_in_shards or not design.is_shared or not design.is_sparse:
        return design.adjoint
    transposed = sp.csr_array(design.block(0).T)
    return lambda R: np.asarray(transposed @ R)


@dataclass(frozen=True)
class Resolvent:
    """Solves (I + X X^T / rho) r = q by preconditioned conjugate gradients, every task of a shared design on its own.

    With leading eigenpairs X X^T ~ V D V^T, the least of which is the scale of the rest, the preconditioner is
    r -> r - V (1 - (1 + D_min / rho) / (1 + D / rho)) V^T r.

    References
    ----------
    Frangella, Tropp, Udell, SIAM Journal on Matrix Analysis and Applications 44(2), 2023, equation 1.3.
    """

    design: Design
    adjoint: Callable[[Array], Array]
    vectors: Array
    values: Array

    @classmethod
    def of(cls, design: Design) -> Resolvent:
        """Return a resolvent with eigenpairs by one subspace iteration; without eigenpairs for tasks with data of their own."""
        n, d, adjoint = design.sizes[0], design.n_features, adjoint_of(design)
        if not design.is_shared:
            return cls(design, adjoint, np.zeros((1, 0)), np.zeros(0))
        directions = np.random.default_rng(0).standard_normal((n, min(_PAIRS + _BESIDE, n, d)))
        basis = np.linalg.qr(design.forward(adjoint(np.linalg.qr(directions)[0])))[0]
        half = adjoint(basis)
        values, vectors = np.linalg.eigh(half.T @ half)
        kept = max(1, len(values) - _BESIDE)
        return cls(design, adjoint, np.ascontiguousarray((basis @ vectors)[:, -kept:]), np.maximum(values[-kept:], 0.0))

    def improve(self, residual: Array, r: Array, image: Array, rho: float) -> int:
        """Bring r nearer to the solution, with image = X^T r; all three arrays change. Return the number of products."""
        shares = 1.0 - (1.0 + self.values[:1] / rho) / (1.0 + self.values / rho)
        goal = _LEFT * float(np.linalg.norm(residual))
        direction, size = np.zeros_like(r), np.ones(r.shape[1:])
        for step in range(_MOST_STEPS):
            if float(np.linalg.norm(residual)) <= goal:
                return step
            steered = residual
            if len(shares):
                steered = residual - self.vectors @ (shares[:, None] * (self.vectors.T @ residual))
            before, size = size, _products(residual, steered)
            direction = steered + _ratio(size, before) * direction if step else steered
            back = self.adjoint(direction)
            curved = direction + self.design.forward(back) / rho
            length = _ratio(size, _products(direction, curved))
            r += length * direction
            image += length * back
            residual -= length * curved
        return _MOST_STEPS


def _products(a: Array, b: Array) -> Array:
    """Return <a, b> for every column, or for vectors as a whole."""
    return np.asarray(np.einsum("i...,i...->...", a, b))


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
