"""The problems that `interior_point` takes, and the equations of each."""

from __future__ import annotations

import numpy as np

from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.solvers.interior_point.equations import Equations
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations

#: A penalty below this share of the one from which W = 0 is optimal is raised to it: with none the dual has no interior.
_SMALLEST_PENALTY = 1e-12


def curvature_objection(solver: Solver, problem: Problem) -> str | None:
    """Return why the loss of a problem has not what a Newton system is made of, as a sentence; None where it has."""
    loss = problem.form(LinearForm).fit.loss
    if not loss.couples_tasks:
        return None
    return f"{solver.label} needs second derivatives of single predictions, which loss '{loss.name}' has not"


def equations_of(form: LinearForm, penalty: float | None, threads: int | None = 1) -> Equations:
    """Return the equations of a form, with `penalty` in the place of its own."""
    return HingeEquations(form, penalty, threads) if isinstance(form, Hinges) else FitEquations(form, penalty, threads)


def positive_penalty(form: LinearForm) -> float | None:
    """Return the penalty of the form, if it has one, raised to one with which the dual has an interior."""
    if form.penalty is None:
        return None
    largest = float(np.abs(form.adjoint(form.dual_at_zero())).sum(axis=1).max())
    return max(form.penalty, _SMALLEST_PENALTY * largest)
