"""The problems that `interior_point` takes, and the equations of each."""

from __future__ import annotations

import numpy as np

from bench_mtl.model.forms import HingeForm, L1InfForm
from bench_mtl.model.protocols import Problem
from bench_mtl.solvers.interior_point.equations import Equations
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations

NormForm = HingeForm | L1InfForm
"""Losses under an l1,inf norm."""

#: A penalty below this share of the one from which W = 0 is optimal is raised to it: with none the dual has no interior.
_SMALLEST_PENALTY = 1e-12


def norm_form(problem: Problem) -> NormForm:
    """Return the form of the problem that is a `NormForm`."""
    return problem.form(HingeForm) if problem.has_form(HingeForm) else problem.form(L1InfForm)


def without_curvature(problem: Problem) -> str | None:
    """Return the name of the loss of a problem where it has no second derivatives of single predictions."""
    if not problem.has_form(L1InfForm):
        return None
    loss = problem.form(L1InfForm).fit.loss
    return loss.name if loss.couples_tasks or not loss.is_smooth else None


def equations_of(form: NormForm, penalty: float | None, threads: int | None = 1) -> Equations:
    """Return the equations of a form, with `penalty` in the place of its own."""
    return HingeEquations(form, penalty, threads) if isinstance(form, HingeForm) else FitEquations(form, penalty, threads)


def positive_penalty(form: NormForm) -> float | None:
    """Return the penalty of the form, if it has one, raised to one with which the dual has an interior."""
    if form.penalty is None:
        return None
    largest = float(np.abs(form.adjoint(form.dual_at_zero())).sum(axis=1).max())
    return max(form.penalty, _SMALLEST_PENALTY * largest)
