"""The alternating direction method of multipliers (ADMM) for a sparse plus a low-rank matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.checks import real_number
from bench_mtl.errors import InputError
from bench_mtl.forms import SplitForm
from bench_mtl.normal_equations import factorisable, mean_curvature, normal_blocks, resolvent_blocks
from bench_mtl.protocols import Capability, IterativeSolver, Problem
from bench_mtl.types import Array, Iterate

#: Iterations between two iterates handed over, or a tenth of all so far: each costs half a pass over the data for its dual point.
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
_FIRST_BY_PRODUCTS, _Q_TO_P_BY_PRODUCTS, _FAR_OFF = 0.5, 10.0, 3.0


@dataclass(frozen=True)
class ADMM(IterativeSolver):
    """Splits the loss, in copies (P', Q') of the matrices, from the l1 norm of P and the trace-norm ball of Q.

    ::

        (P', Q') <- argmin f(P' + Q') + rho_p/2 ||P' - P + U||^2 + rho_q/2 ||Q' - Q + V||^2
        P <- soft threshold of P^ + U at gamma / rho_p,    U <- U + P^ - P,    P^ = relaxation P' + (1 - relaxation) P
        Q <- projection of Q^ + V onto the ball,           V <- V + Q^ - Q,    Q^ = relaxation Q' + (1 - relaxation) Q

    With S = P' + Q' and rho = rho_p rho_q / (rho_p + rho_q) the first step is (X_k^T X_k + rho I) s_k = X_k^T y_k + rho (P - U + Q - V)_k:
    one product with a matrix made once, by Woodbury's identity where a task has fewer examples than features. An iteration costs nothing
    in the number of examples. The dual point is the residual of S. Residual balancing adapts rho_p and rho_q, each on its own.

    Designs too large for that take preconditioned conjugate gradients on the residuals of S instead, as many steps as bring those
    nearer by a fixed factor: a few products with X and its transpose an iteration.

    Parameters
    ----------
    relaxation : above 0 and below 2
    penalty : rho_p to begin with, above 0; by default a share of the mean eigenvalue of X_k^T X_k. rho_q begins at 3 rho_p, for large
        designs at 10 rho_p
    balance : whether penalties adapt

    References
    ----------
    Boyd, Parikh, Chu, Peleato, Eckstein, Foundations and Trends in Machine Learning 3(1), 2011, section 3.4; Wohlberg 2017,
    arXiv 1704.06209, for the relative residuals.
    """

    relaxation: float = 1.8
    penalty: float | None = None
    balance: bool = True

    name: ClassVar[str] = "admm"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SPLIT})

    def __post_init__(self) -> None:
        if real_number("relaxation", self.relaxation, strict=True) >= 2.0:
            raise InputError(f"relaxation must be below 2, not {self.relaxation:g}")
        if self.penalty is not None:
            real_number("penalty", self.penalty, strict=True)
        if not isinstance(self.balance, bool):
            raise InputError(f"balance must be true or false, not {self.balance!r}")

    def misfit(self, problem: Problem) -> str | None:
        reason = super().misfit(problem)
        if reason is not None:
            return reason
        form = problem.split_form()
        if form.loss != "squared":
            return f"{self.label} solves its smooth step by factorisation, which the {form.loss} loss of {problem.name} does not allow"
        return None

    def warm_up(self) -> None:
        from bench_mtl.kernels.split import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.split_form()
        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first, None, 0, 0.0)
        yield from (self._factorised if factorisable(form.design) else self._by_products)(form, first, start is not None)

    def _factorised(self, form: SplitForm, first: Array, resumed: bool) -> Iterator[Iterate]:
        from bench_mtl.kernels.split import admm_steps

        normal = normal_blocks(form.design)
        target = np.ascontiguousarray(form.design.adjoint(form.targets).T)
        scratch, residuals = np.empty((4, *target.shape)), np.empty((2, 2))
        penalties = self._first_penalties(_FIRST_PENALTY * mean_curvature(form.design), _Q_TO_P)
        blocks = resolvent_blocks(normal, _joint(penalties))
        state = np.zeros((5, *target.shape))
        state[:2] = first.transpose(0, 2, 1)
        if resumed:
            # At the optimum the multipliers rho_p U = rho_q V are X^T of the residuals.
            slope = form.design.adjoint(form.targets - form.design.forward(first[0] + first[1])).T
            state[2], state[3] = np.clip(slope, -form.gamma, form.gamma) / penalties[0], slope / penalties[1]
        step, work, next_balance = 0, 2.0 if resumed else 1.0, _FIRST_BALANCE
        while True:
            count = max(_FEWEST, step // 10)
            if self.balance and step < next_balance:
                count = min(count, next_balance - step)
            arguments = (form.gamma, form.tau, *penalties, self.relaxation, state, scratch, residuals, count)
            admm_steps(blocks.rows, blocks.offsets, blocks.thin, target, *arguments)
            step += count
            work += count + 0.5
            dual = form.targets - form.design.forward(np.ascontiguousarray(state[4].T))
            yield Iterate(np.ascontiguousarray(state[:2].transpose(0, 2, 1)), dual, step, work)
            if self.balance and step == next_balance:
                next_balance *= 2
                factors = _balancing_factors(residuals)
                if max(factors.max(), 1.0 / factors.min()) > _WORTH_CHANGING:
                    penalties = (penalties[0] * float(factors[0]), penalties[1] * float(factors[1]))
                    state[2:4] /= factors[:, None, None]
                    blocks = resolvent_blocks(normal, _joint(penalties))

    def _by_products(self, form: SplitForm, first: Array, resumed: bool) -> Iterator[Iterate]:
        """The residuals r of S solve (I + X X^T / rho) r = y - X (P - U + Q - V), and S = P - U + Q - V + X^T r / rho."""
        from bench_mtl.kernels.split import admm_split
        from solvers.admm.products import Products, Resolvent

        products = Products.of(form.design)
        resolvent = Resolvent.of(form.design, products)
        state, scratch, residuals = np.zeros((5, *first.shape[1:])), np.empty((4, *first.shape[1:])), np.empty((2, 2))
        few = max(1.0, form.design.n_features / max(form.design.sizes))
        penalties = self._first_penalties(_FIRST_BY_PRODUCTS * few * mean_curvature(form.design), _Q_TO_P_BY_PRODUCTS)
        state[:2] = first
        r, work, step, next_balance = np.array(form.targets), 2.0, 0, _FIRST_BALANCE
        if resumed:
            r -= products.forward(first[0] + first[1])
        image = products.adjoint(r)
        if resumed:
            state[2], state[3] = np.clip(image, -form.gamma, form.gamma) / penalties[0], image / penalties[1]
        while True:
            count = 1 + step // 10
            if self.balance and step < next_balance:
                count = min(count, next_balance - step)
            rho = _joint(penalties)
            for left in range(count - 1, -1, -1):
                np.subtract(state[:2], state[2:4], out=scratch[:2])
                np.add(scratch[0], scratch[1], out=state[4])
                residual = form.targets - r - products.forward(state[4] + image / rho)
                work += 0.5 + resolvent.improve(residual, r, image, rho)
                state[4] += image / rho
                admm_split(form.gamma, form.tau, *penalties, self.relaxation, state, scratch, residuals, left == 0)
            step += count
            yield Iterate(state[:2].copy(), r.copy(), step, work)
            if self.balance and step == next_balance:
                next_balance *= 2
                factors = _balancing_factors(residuals)
                if max(factors.max(), 1.0 / factors.min()) > _FAR_OFF:
                    penalties = (penalties[0] * float(factors[0]), penalties[1] * float(factors[1]))
                    state[2:4] /= factors[:, None, None]
                image, work = products.adjoint(r), work + 0.5  # afresh, so that rounding does not gather

    def _first_penalties(self, usual: float, q_to_p: float) -> tuple[float, float]:
        penalty = self.penalty or usual or 1.0
        return penalty, q_to_p * penalty


def _joint(penalties: tuple[float, float]) -> float:
    return penalties[0] * penalties[1] / (penalties[0] + penalties[1])


def _balancing_factors(residuals: Array) -> Array:
    """For rho_p and rho_q: the fourth root of the ratio of their squared relative residuals, damped because a large step overshoots."""
    primal, dual = residuals[:, 0], residuals[:, 1]
    known = (primal > 0.0) & (dual > 0.0)
    ratio = np.divide(primal, dual, out=np.ones(2), where=known)
    return np.clip(ratio**0.25, 1.0 / _LARGEST_CHANGE, _LARGEST_CHANGE)
