"""A primal-dual interior-point method for losses under an l1,inf norm, in which no sparse algebra is left."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.designs import PerTaskDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, LinearForm, hinges_under, loss_under
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.model.regularisers import Constraint
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.forms import equations_of, positive_penalty, without_curvature
from bench_mtl.solvers.interior_point.hinges import HingeEquations
from bench_mtl.solvers.interior_point.step import next_state
from bench_mtl.solvers.interior_point.system import bytes_needed

#: Ends where the gap is this share of the objective at zero, which is all that float64 can tell.
SMALLEST_GAP = 1e-17
#: The method ends after this number of iterations in which the gap has not halved.
PATIENCE = 12


@dataclass(frozen=True)
class InteriorPoint(IterativeSolver):
    """Mehrotra's predictor-corrector with every slack an iterate of its own; for hinges on the linear programme.

    ::

        min_{W, mu, xi}  sum s xi (+ penalty sum_j mu_j)   subject to  y X w + xi - 1 = r >= 0,  xi >= 0,
                         mu_j - W_jk = u >= 0,  mu_j + W_jk = v >= 0  (, radius - sum_j mu_j = c >= 0)

    Eliminating all slacks and duals from the Newton system leaves one positive definite block a task, of size d or n_k,
    whichever is cheaper, and one d x d system in mu (`NewtonSystem`). Points stay strictly feasible on both sides, so that the
    dual a proves the gap that the complementarity says.

    With a smooth loss f in the place of the hinges (squared, logistic) there is no r, a is free with a = -f'(X w), and the second
    derivatives are the weights of the examples in the Newton system. Primal and dual steps have one length then; where f is not
    quadratic they are shortened until what is missing of a falls. From penalties of a thousandth of the largest down that may fail on
    data that a logistic loss can separate.

    The method ends where rounding lets the gap fall no further.

    Work of an iteration: the floating-point operations of its factorisations over those of one X and one X^T product, plus the
    products it takes.

    Parameters
    ----------
    memory_gib : refuse problems whose factors would need more
    threads : largest number of threads for the products of a factorisation of large data; None for the processors

    References
    ----------
    Mehrotra, SIAM J. Optim. 2(4), 1992; Gondzio, Comput. Optim. Appl. 6(2), 1996; Colombo, Gondzio, Comput. Optim. Appl. 41(3), 2008.
    """

    memory_gib: float = 4.0
    threads: int | None = None

    name: ClassVar[str] = "interior_point"
    takes = (hinges_under(L1Inf), loss_under("smooth", L1Inf))
    takes_intercept: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real_number("memory_gib", self.memory_gib, strict=True)
        if self.threads is not None:
            whole_number("threads", self.threads, minimum=1)

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        loss = without_curvature(problem)
        if loss is not None:
            return f"{self.label} needs second derivatives of single predictions, which loss '{loss}' has not"
        needed = bytes_needed(problem.form(LinearForm).design) / 2**30
        if needed <= self.memory_gib:
            return None
        return f"{self.label} would need {needed:.3g} GiB for its factors, above its memory_gib of {self.memory_gib:g}"

    def warm_up(self) -> None:
        _warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        W = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(W, None, 0, 0.0)
        form = problem.form(LinearForm)
        if form.radius == 0.0:
            return
        equations = equations_of(form, positive_penalty(form), self.threads)
        yield from _iterate(equations, W)


def _iterate(equations: Equations, W: Array) -> Iterator[Iterate]:
    x, careful = equations.start(W.T), False
    best, waited, step = np.inf, 0, 0
    while x is not None and waited < PATIENCE and x.gap > SMALLEST_GAP * equations.scale:
        x, careful = next_state(equations, x, careful)
        if x is None:
            return
        step += 1
        yield _handed_over(equations, x, step)
        best, waited = (x.gap, 0) if x.gap < 0.5 * best else (best, waited + 1)


def _handed_over(equations: Equations, x: State, step: int) -> Iterate:
    return Iterate(np.ascontiguousarray(x.W.T), equations.dual_point(x), step, equations.system.work)


@functools.cache
def _warm_up() -> None:
    """Three iterations on a wide, a tall and a sparse task."""
    wide, tall = np.eye(2, 8), np.eye(16, 8)
    for blocks in ([wide, tall], [sp.csr_array(tall)]):
        design = PerTaskDesign(blocks)
        signs = np.where(np.arange(design.n_examples) % 3 > 0, 1.0, -1.0)
        form = Hinges(LinearFit(design, signs, Hinge(), np.ones(design.n_examples)), Constraint(L1Inf(), 1.0))
        for _ in islice(_iterate(HingeEquations(form, None), np.zeros((8, len(blocks)))), 3):
            pass
