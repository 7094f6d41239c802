"""The alternating direction method of multipliers (ADMM), for problems of two shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Iterate
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, GroupForm, LinearForm
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import SteppingSolver
from bench_mtl.solvers.admm.blocks import Piece
from bench_mtl.solvers.admm.group import Call, ConsensusStepper, Rule, group_objection
from bench_mtl.solvers.admm.split import split_steps


@dataclass(frozen=True)
class ADMM(SteppingSolver):
    """Splits a loss, in copies of the matrices, from penalties and constraints.

    A sparse plus a low-rank matrix: the loss in copies (P', Q') from the l1 norm of P and the trace-norm ball of Q::

        (P', Q') <- argmin f(P' + Q') + rho_p/2 ||P' - P + U||^2 + rho_q/2 ||Q' - Q + V||^2
        P <- soft threshold of P^ + U at gamma / rho_p,    U <- U + P^ - P,    P^ = relaxation P' + (1 - relaxation) P
        Q <- projection of Q^ + V onto the ball,           V <- V + Q^ - Q,    Q^ = relaxation Q' + (1 - relaxation) Q

    With S = P' + Q' and rho = rho_p rho_q / (rho_p + rho_q) the first step is (X_k^T X_k + rho I) s_k = X_k^T y_k + rho (P - U + Q - V)_k:
    one product with a matrix made once, by Woodbury's identity where a task has fewer examples than features. An iteration costs nothing
    in the number of examples. The dual point is the residual of S. Residual balancing adapts rho_p and rho_q, each on its own.
    Designs too large for that take preconditioned conjugate gradients on the residuals of S instead, as many steps as bring those
    nearer by a fixed factor: a few products with X and its transpose an iteration.
    Where the norms of the features differ by more than 1,000, every row of P has a penalty of its own, balanced on its own, in features
    scaled to norm 1; then rho_q begins at the geometric mean of the squared norms. The trace norm allows one penalty only.

    A loss of scores of classes f(H W) under a sum of norms of rows::

        W <- argmin f(H W) + lambda/2 ||W - Z + U||^2   subject to  W >= 0
        Z <- prox of nu/lambda sum_j ||Z_j||, Z >= 0, at W^ + U,    U <- U + W^ - Z,    W^ = relaxation W + (1 - relaxation) Z

    The first step is by L-BFGS-B, begun where the last one has ended and as accurate as the residuals ask for. The iterates are Z, with
    the dual point of the scores H W. For the hinge it is least squares against scores S in a second copy, S = H W with penalty beta
    besides W = Z with lambda, by a matrix made once for every beta / lambda; S takes the prox of the hinge, row by row, which gives the
    dual point. Either way there are two blocks, {W} and {Z} or {S, Z}.

    Parameters
    ----------
    relaxation : over-relaxation, above 0 and below 2; by default 1.8, for the hinge 1.3
    penalty : first rho_p, or lambda, above 0; by default a share of the mean eigenvalue of X_k^T X_k, or of the mean curvature of
        the loss. rho_q begins at 3 rho_p, for large designs at 10 rho_p. For features of unlike scale: first rho_p of the scaled ones
    balance : whether residual balancing adapts the penalties; the textbook method keeps them

    References
    ----------
    Boyd, Parikh, Chu, Peleato, Eckstein, Foundations and Trends in Machine Learning 3(1), 2011, sections 3.3.1 and 3.4; Wohlberg 2017,
    arXiv 1704.06209, for the relative residuals; Paisitkriangkrai, Shen, van den Hengel, CVPR 2012, appendix, section 2.1.
    """

    relaxation: float | None = None
    penalty: float | None = None
    balance: bool = True
    aim: float = field(default=math.inf, repr=False)
    """The relative gap of the run, near which iterates have dual points. Set by `aimed_at`."""

    name: ClassVar[str] = "admm"
    takes = (SPARSE_PLUS_LOW_RANK, GroupForm)
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Rule.of(self)

    def warm_up(self) -> None:
        """Make the splits between products with sparse data, which tiny instances do not: their systems are factorised."""
        from bench_mtl.solvers.kernels.split import Splitting, admm_split

        admm_split(Splitting(*np.ones(5)), np.zeros((5, 2, 2)), np.zeros((4, 2, 2)), np.zeros((2, 2)), True)

    def objection(self, problem: Problem) -> str | None:
        if not problem.has_form(GroupForm):
            return None
        if problem.is_in_shards:
            return f"{self.label} needs all examples of {problem.name} in one matrix, which has them in shards"
        return group_objection(self, problem)

    def aimed_at(self, relative_gap: float) -> ADMM:
        return replace(self, aim=relative_gap)

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        if problem.has_form(GroupForm):
            return super().resume(problem, start)
        self.refuse_state(start)
        return split_steps(
            problem.form(LinearForm), problem.repair(start.primal), Rule.of(self), self.aim, resumed=bool(start.primal.any())
        )

    def stepper(self, problem: Problem) -> ConsensusStepper:
        form = problem.form(GroupForm)
        block = Piece(form.fit, 1.0).block()
        call: Call = lambda method, arguments: [getattr(block, method)(*arguments(0))]  # noqa: E731
        return ConsensusStepper(form, self, [np.arange(len(form.fit.classes))], lambda: nullcontext(call))
