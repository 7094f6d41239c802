"""A primal-dual interior-point method for losses under an l1,inf norm, alone or with an l1 norm of entries, without sparse algebra."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_number, unless_none, whole_number
from bench_mtl.core.designs import PerTaskDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, LinearForm, hinges_under, loss_under, under_rows_and_entries
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge, Squared
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import Problem
from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations
from bench_mtl.solvers.interior_point.step import next_state
from bench_mtl.solvers.interior_point.system import bytes_needed

#: A penalty below this share of the one from which W = 0 is optimal is raised to it: with none the dual has no interior.
SMALLEST_PENALTY = 1e-12
#: Ends where the gap is this share of the objective at zero, which is all that float64 can tell.
SMALLEST_GAP = 1e-17
#: The method ends after this number of iterations in which the gap has not halved.
PATIENCE = 12


@dataclass(frozen=True)
class InteriorPoint(SteppingSolver):
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

    Coefficients that are the sum of rows under an l1,inf penalty and entries S = s+ - s- under an l1 penalty add, with G = X^T a,
    entry_penalty - G = z+ >= 0 and entry_penalty + G = z- >= 0. Eliminating these too leaves the same blocks, softer in every entry.

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
    takes = (
        hinges_under(L1Inf), loss_under("squared", L1Inf), loss_under("logistic", L1Inf),
        under_rows_and_entries("squared"), under_rows_and_entries("logistic"),
    )  # fmt: skip
    takes_intercept: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real_number("memory_gib", self.memory_gib, strict=True)
        unless_none(whole_number, "threads", self.threads, minimum=1)

    def objection(self, problem: Problem) -> str | None:
        needed = bytes_needed(problem.form(LinearForm).design) / 2**30
        if needed > self.memory_gib:
            return f"{self.label} would need {needed:.3g} GiB for its factors, above its memory_gib of {self.memory_gib:g}"
        return None

    def warm_up(self) -> None:
        _warm_up()

    def stepper(self, problem: Problem) -> Iterations:
        form = problem.form(LinearForm)
        return Iterations(None if form.radius == 0.0 else equations_of(with_interior(form), self.threads), form.dual_at_zero())


class Iterations(Stepper):
    """The iterations of the method; None in place of equations where W = 0 is the only point.

    Where that is optimal, as `at_zero`, the dual point there, shows, there is a single one.
    """

    kept = ("_x", "_careful", "_best", "_waited", "_step", "_work")

    def __init__(self, equations: Equations | None, at_zero: Array) -> None:
        self._equations, self._at_zero = equations, at_zero
        self._known: State | None = None
        """The point at which the derivatives are known."""

    def start(self, at: Iterate) -> Iterations:
        self._x = None if self._equations is None else self._equations.start(np.swapaxes(at.primal, -1, -2))
        self._careful, self._best, self._waited, self._shape = False, np.inf, 0, at.primal.shape
        self._step, self._work = 0, 0.5 if self._equations is None else self._equations.system.work
        return self

    def step(self, now: Iterations) -> Iterations | None:
        equations, x = self._equations, self._x
        if equations is None or x is None:
            self._step += 1
            return self if self._step == 1 else None
        if self._waited >= PATIENCE or x.gap <= SMALLEST_GAP * equations.scale:
            return None
        if self._known is not x and self._step:
            equations.missing(x)
        equations.system.work = self._work
        new, self._careful = next_state(equations, x, self._careful)
        if new is None:
            return None
        equations.missing(new)  # known after a step by Gram matrices, and a damped one that was not halved to the last
        self._best, self._waited = (new.gap, 0) if new.gap < 0.5 * self._best else (self._best, self._waited + 1)
        self._x, self._known, self._step, self._work = new, new, self._step + 1, equations.system.work
        return self

    def iterate(self, now: Iterations) -> Iterate:
        if self._equations is None or self._x is None:
            return Iterate(np.zeros(self._shape), self._at_zero, self._step, self._work, claim=0.0)
        return Iterate(self._equations.point(self._x), self._equations.dual_point(self._x), self._step, self._work)


def equations_of(form: LinearForm, threads: int | None = 1) -> Equations:
    """Return the equations of a form, whose penalties are above 0."""
    return HingeEquations(form, threads) if isinstance(form, Hinges) else FitEquations(form, threads)


def with_interior(form: LinearForm) -> LinearForm:
    """Return a form with its penalties, if it has any, raised to those with which the dual has an interior."""
    if form.penalty is None:
        return form
    G = form.adjoint(form.dual_at_zero())
    parts = [
        replace(part, weight=max(part.weight, SMALLEST_PENALTY * part.norm.dual(G))) for part in form.parts if isinstance(part, Penalty)
    ]
    return replace(form, regulariser=Stacked(tuple(parts)) if len(parts) > 1 else parts[0])


@functools.cache
def _warm_up() -> None:
    """Three iterations of hinges and squares on a wide, a tall and a sparse task."""
    wide, tall = np.eye(2, 8), np.eye(16, 8)
    for blocks in ([wide, tall], [sp.csr_array(tall)]):
        design = PerTaskDesign(blocks)
        signs = np.where(np.arange(design.n_examples) % 3 > 0, 1.0, -1.0)
        form = Hinges(LinearFit(design, signs, Hinge(), np.ones(design.n_examples)), Constraint(L1Inf(), 1.0))
        squares = LinearForm(LinearFit(design, signs, Squared(), np.ones(design.n_examples)), Penalty(L1Inf(), 0.1))
        for equations in (HingeEquations(form), FitEquations(squares)):
            iterations = Iterations(equations, form.dual_at_zero())
            now: Iterations | None = iterations.start(Iterate(np.zeros((8, len(blocks)))))
            for _ in range(3):
                now = now and iterations.step(now)
