"""`certify` for coefficients from anywhere: scikit-learn, another library, a file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Status
from bench_mtl.enclosures.enclosure import Enclosure
from bench_mtl.engine.arguments import a_solver
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import IterativeSolver, Problem

#: Relative gaps that the solver of the lower bound is asked for, in turn.
_GAPS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)

#: The proven gap is at most so many times the true one, unless the solver ends before.
_SHARP = 2.0

#: Below this relative gap nobody asks for more.
_ENOUGH = 1e-9

#: Coefficients outside the constraint by a larger share are said to be so.
_OUTSIDE = 1e-9


def enclosed_at(problem: Problem, given: Any, solver: str = "auto", limits: Limits | float | None = None) -> Enclosure:
    """Enclose the optimal value of a problem between a proven lower bound and the objective of given coefficients.

    The lower bound is the best of what the residuals at the coefficients prove and of what a solver proves that starts from them, and
    goes on until at least half of the gap is known to be that of the coefficients.

    Parameters
    ----------
    given : an array of the shape of a point, or an estimator that has been fitted, whose `coef_` (tasks x features, or features) is
        taken. Intercepts are the problem's: of one with ``intercept=True`` the objective is that of the best ones.
    solver, limits : of the lower bound; see `bench_mtl.run`

    Raises
    ------
    InputError : an estimator without `coef_`, an array of another shape, with NaN or inf, an unknown solver.
    """
    certificate, point = problem.certify_repaired(Iterate(_coefficients(problem, given)))
    lower, upper, best = certificate.dual, certificate.primal, certificate.primal
    how, chosen, start = "the residuals of the coefficients", a_solver(solver), point
    for gap in _GAPS:
        if upper - lower <= max(_SHARP * (upper - best), _ENOUGH * abs(upper)):
            break
        record = run(problem, chosen, tolerance=gap, limits=limits, start=start if isinstance(chosen, IterativeSolver) else None)
        start = start if record.solution is None else record.solution
        if record.best is None:
            how += f" ({chosen.label}: {record.reason})"
            break
        if record.best.dual > lower:
            lower, how = record.best.dual, f"{chosen.label} to a relative gap of {record.best.relative_gap:.1e}"
        best = min(best, record.best.primal)
        if record.status is not Status.VERIFIED:  # nor will it be at a tighter gap
            break
    outside = certificate.infeasibility
    why = (
        [f"the coefficients leave the constraint by {outside:.1e} of it: what is judged is their projection"] if outside > _OUTSIDE else []
    )
    why += [f"upper bound: the objective at the coefficients, lower bound: {how}"]
    if upper - best > _ENOUGH * abs(upper):
        why.append(
            f"better coefficients are known, of an objective of at most {best!r}: a tighter tolerance, or more steps, would find them"
        )
    whole = Enclosure(lower, upper, None, "feasible" if outside <= _OUTSIDE else "infeasible")
    return dataclasses.replace(whole, why=tuple(why))


def _coefficients(problem: Problem, given: Any) -> Array:
    """Return the coefficients of an estimator, or an array, in the shape of a point."""
    shape, is_estimator = problem.point_shape, hasattr(given, "get_params")
    if is_estimator and not hasattr(given, "coef_"):
        raise InputError(f"{type(given).__name__} has no coef_: it must have been fitted, and be linear")
    W: Any = given.coef_ if is_estimator else given
    try:
        W = np.asarray(W.toarray() if hasattr(W, "toarray") else W, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the coefficients must be an array of numbers or an estimator, not {type(given).__name__}") from None
    if is_estimator and W.ndim == 2:
        W = W.T
    if W.ndim == 1 and shape == (len(W), 1):
        W = W[:, None]
    if W.shape != shape:
        raise InputError(f"the coefficients must have shape {shape}, not {W.shape}")
    return W
