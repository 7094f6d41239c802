"""`certify`: a proven enclosure of the optimal value of a problem or of a model of CVXPY, and in which words it is put."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.checks import one_of, real_array, real_number
from bench_mtl.core.errors import InputError, shown
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array, Iterate, Limits, Status
from bench_mtl.engine.arguments import a_solver
from bench_mtl.engine.driver import run
from bench_mtl.engine.proofs import format_gap
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

if TYPE_CHECKING:
    import cvxpy

    from bench_mtl.enclosures.programme import Chain

#: What bounds are proven near: the answer, or whatever a second solve finds.
JUDGES = ("value", "answer")

#: Of a solver's answer whose lower bound is further off, relative to its value, that of the values is sought too.
_PROVEN_BY_ANSWERS = 1e-6

#: Relative gaps that the solver of the lower bound of coefficients is asked for, in turn.
_GAPS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
#: The proven gap of coefficients is at most so many times the true one, unless the solver ends before.
_SHARP = 2.0
#: Relative gaps above this get advice.
_WIDE = 1e-2
#: Values that leave the constraints by more than that are stated to do so.
_NOTABLE = 1e-6
#: Below this relative gap nobody asks for more, and coefficients outside the constraint by a larger share are said to be so.
_ENOUGH = 1e-9


@dataclass(frozen=True)
class Enclosure:
    """What is proven of the optimal value of a problem, or of the programme that CVXPY makes of a model, with the floats that it stores."""

    lower: float
    """At most the optimal value; -inf where nothing is proven."""
    upper: float
    """At least the optimal value; inf where nothing is proven."""
    value: float | None
    """What the solver says, None where it says nothing; the objective at values from anywhere; None of a problem, whose it is `upper`."""
    status: str
    """The solver's; "not solved" where it was not asked."""
    why: tuple[str, ...] = ()
    """What was done for each bound, what could not be and what may help, and what was taken on trust."""
    repaired_values: Mapping[cvxpy.Variable, Array] = field(default_factory=dict, repr=False)
    """A point near which a feasible one is proven, whose value is at most one bound; empty where there is none."""

    @property
    def relative_gap(self) -> float:
        """The width over the larger modulus of both bounds: inf where one is missing, 0 where both are 0."""
        width = self.upper - self.lower
        return width / max(abs(self.upper), abs(self.lower)) if np.isfinite(width) and width else 0.0 if width == 0.0 else np.inf

    def __str__(self) -> str:
        return "\n".join([f"{self.lower!r} <= optimum <= {self.upper!r}, relative gap {format_gap(self.relative_gap)}", *self.why])


def certify(
    model: cvxpy.Problem | Problem,
    values: Mapping[cvxpy.Variable, Any] | Any = None,
    *,
    solver: Solver | str | None = None,
    judge: str | None = "value",
    bounds: Mapping[cvxpy.Variable, float] | None = None,
    gp: bool = False,
    **options: Any,
) -> Enclosure:
    """Enclose the optimal value of a problem, or of a convex model of CVXPY; nothing that a solver or LAPACK returns is trusted.

    Of a `Problem` the values are coefficients from anywhere, or a fitted estimator that has `coef_`: the upper bound is their objective,
    so that the gap is theirs. The lower bound is the best that their residuals, or a solver that starts from them, prove.

    Of a model it is experimental: it reads private forms of CVXPY (tested with 1.9). What is proven is of the cone programme that CVXPY
    makes, with the floats that it stores.

    Parameters
    ----------
    model : a problem; or a convex model of linear, second-order, semidefinite, exponential and power cones, with a quadratic objective or
        without
    values : of a problem coefficients in the shape of a point, or an estimator, whose `coef_` is (tasks x features, or features), and
        whose intercepts are those of the problem, the best ones; of a model values of all variables, from anywhere, where None solves it
        by `solver`, which gives its variables their values; values from anywhere leave those of the variables as they are
    solver : of CVXPY, with its `options`; None for CVXPY's choice. Of a problem the solver of the lower bound, or its name ("auto" by
        default), with ``limits=`` as of `bench_mtl.run`.
    judge : ``"value"``, where the answer may be helped by a second solve (Clarabel, with smaller cones), for the tightest bounds; or
        ``"answer"``, where bounds are of the feasible points nearest to the answer, so that a bad answer has wide ones. The upper bound of
        values (of a maximum, the lower one) is of such a point in both cases; with the first the model is solved for the other bound.
        None is the first.
    bounds : for a variable the largest modulus that an entry of some optimal solution has; taken on trust, and stated in `why`
    gp : whether the model is a geometric programme

    Raises
    ------
    InputError : the model has no variables, has integers, cones of another kind, or parameters without values; or CVXPY or the solver
        refuses it. Coefficients or values of another shape, or with NaN or inf; an estimator without `coef_`; options that a problem has
        no use for.

    Notes
    -----
    Jansson, Chaykin and Keil, "Rigorous error bounds for the optimal value in semidefinite programming", SIAM J. Numer. Anal. 46 (2007).
    """
    if isinstance(model, Problem):
        given = {"bounds": bounds, "gp": gp, "judge": judge not in (None, "value")}
        if unknown := sorted({*options, *(name for name, value in given.items() if value)} - {"limits"}):
            raise InputError(f"of a problem there is no {', '.join(unknown)}, but solver and limits")
        if values is None:
            raise InputError("values must be the coefficients to judge, or an estimator")
        return _at_coefficients(model, _coefficients(model, values), solver or "auto", options.get("limits"))
    model = require_model(model)
    if not isinstance(solver, str | None):
        raise InputError("solver", solver, "the name of a solver of CVXPY")
    from bench_mtl.enclosures.programme import Chain

    judge = one_of("judge", "value" if judge is None else judge, JUDGES)
    chain = Chain(model, solver, gp=gp, options=options)
    with contextlib.nullcontext() if values is None else _leaving_values(model):
        return _of_model(chain, values, judge, bounds or {})


def require_model(model: object, name: str = "model") -> cvxpy.Problem:
    """Return a model of CVXPY. Raises InputError, which calls it `name`: it is none, or it has parameters without values."""
    import cvxpy

    if not isinstance(model, cvxpy.Problem):
        raise InputError(name, model, "a Problem of bench_mtl or a cvxpy.Problem")
    if unset := [parameter.name() for parameter in model.parameters() if parameter.value is None]:
        raise InputError(f"{name} has parameters without values, {', '.join(unset)}: set them first")
    return model


@contextlib.contextmanager
def _leaving_values(model: cvxpy.Problem) -> Iterator[None]:
    """Leave the values of a model, of its variables and of the multipliers of its constraints as they were."""
    leaves = [*model.variables(), *(dual for constraint in model.constraints for dual in constraint.dual_variables)]
    parts: list[tuple[Any, str]] = [(leaf, "_value") for leaf in leaves]
    parts += [(model, name) for name in ("_value", "_status", "_solution", "_solver_stats")]
    before = [getattr(part, name) for part, name in parts]
    try:
        yield
    finally:
        for (part, name), value in zip(parts, before, strict=True):
            setattr(part, name, value)


def _of_model(chain: Chain, values: Mapping[cvxpy.Variable, Any] | None, judge: str, bounds: Mapping[cvxpy.Variable, float]) -> Enclosure:
    """Enclose the optimal value of a model, of which the variables get the values that are judged."""
    from bench_mtl.enclosures.bounds import lower_bound, propagated, upper_bound
    from bench_mtl.enclosures.inside import Inner, completed
    from bench_mtl.enclosures.programme import largest_rounding_of_exponents, programme_of

    stored = {} if values is None else chain.arrays(values)
    solution, failed = None, []
    try:
        solution = chain.solve() if values is None or judge == "value" else None
    except InputError as error:
        if values is None:
            raise
        failed = [f"{error}: the lower bound is that of the values alone"]
    arrays = chain.projected(stored)
    primal, duals = ({}, {}) if solution is None else (solution.primal_vars or {}, solution.dual_vars or {})
    is_answered = bool(primal) and all(np.isfinite(np.sum(part)) for part in primal.values())
    status = "not solved" if solution is None else str(solution.status)
    no_point = f"the solver gave no point: the model is {status.replace('_', ' ')}, which it says and nobody has proven"
    if values is None and not is_answered:
        return Enclosure(-np.inf, np.inf, None if chain.model.value is None else float(chain.model.value), status, (no_point,))
    with np.errstate(all="ignore"):
        p = at = programme_of(chain, primal, duals) if is_answered else programme_of(chain, {}, {})
        if values is not None:
            at = completed(p, chain.point_at(arrays))
            p = p if is_answered else at
        inner = Inner(p, judge)
        near = inner if values is None else Inner(at, "answer")
        upper = upper_bound(at, near, is_first=values is not None)
        low, high, trusted = _trusted(chain, bounds)
        box = propagated(p, low, high, upper.value if p.curvature == 0.0 else np.inf)
        lower = lower_bound(p, box, inner)
        if p is not at and not lower.value >= p.most - _PROVEN_BY_ANSWERS * p.scale:
            lower = max((lower, lower_bound(at, box, near)), key=lambda bound: bound.value)
        if lower.value > upper.value and bounds:
            raise InputError("the bounds contradict a feasible point: one of them is too small")
        low_end, high_end = chain.in_terms_of_the_model(Interval(lower.value, upper.value)).ends
        repaired = {} if upper.point is None else chain.values(upper.point)
    moved = [float(np.abs(repaired[variable] - value).max(initial=0.0)) for variable, value in arrays.items() if variable in repaired]
    shifted = [variable.name() for variable, value in arrays.items() if not np.allclose(value, stored[variable], rtol=1e-12, atol=1e-300)]
    value = chain.model.value if values is None else np.ravel(chain.model.objective.value)[0]
    of_lower, of_upper = (upper, lower) if chain.is_flipped else (lower, upper)
    sentences = [f"lower bound: {of_lower.why}", f"upper bound: {of_upper.why}", *failed]
    if values is None and value is not None and not low_end <= value <= high_end:
        sentences.append(f"the value of the answer, {float(value)!r}, is outside")
    if (off := _violation(chain.model) if arrays else 0.0) > _NOTABLE:
        sentences.insert(0, f"the values leave the constraints by up to {off:.1e}: the bounds are of another point")
    if shifted:
        sentences.append(f"what is judged of {', '.join(shifted)} is the projection to what attributes of variables allow")
    if rounding := largest_rounding_of_exponents(chain.model):
        sentences.append(f"CVXPY replaces an exponent or weight by a fraction, {rounding:.0e} away, and what is proven is of the fraction")
    sentences += [] if solution is None or is_answered else [no_point]
    sentences += [f"the feasible point is about {max(moved):.0e} from the values in the entry that moved most"] if any(moved) else []
    sentences += ["too large to be solved again: points inside were sought by products alone"] * inner.is_too_large
    found = Enclosure(low_end, high_end, None if value is None else float(value), status, (*sentences, *trusted), repaired)
    is_wide = not bounds and _WIDE < found.relative_gap < np.inf  # where a bound is missing, its reason is stated
    return replace(found, why=(*found.why, "bounds on variables (`bounds`) or another solver may help")) if is_wide else found


def _violation(model: cvxpy.Problem) -> float:
    """Return by how much the values of a model's variables leave its constraints at most, as far as CVXPY can tell."""
    off = [0.0]
    for constraint in model.constraints:
        with contextlib.suppress(NotImplementedError, ValueError, TypeError, AttributeError):
            off.append(float(np.max(np.abs(constraint.violation()))))
    return float(np.nanmax(off))


def _trusted(chain: Chain, bounds: Mapping[cvxpy.Variable, float]) -> tuple[Array, Array, list[str]]:
    """Return the box that the user vouches for, and the sentences that say so."""
    low, high, sentences = np.full(chain.width, -np.inf), np.full(chain.width, np.inf), []
    if not isinstance(bounds, Mapping):
        raise InputError("bounds", bounds, "a table of the model's variables and their bounds")
    chain.require_variables("bounds", bounds)
    for variable, largest in bounds.items():
        if not len(columns := chain.columns_of(variable)):
            raise InputError(f"bounds: {variable} is no variable of the cone programme")
        most = real_number(f"bounds of {variable.name()}", largest)
        low[columns], high[columns] = -most, most
        sentences.append(f"taken on trust: |{variable.name()}| <= {shown(most)}")
    return low, high, sentences


def _at_coefficients(problem: Problem, W: Array, solver: Solver | str, limits: Limits | float | None) -> Enclosure:
    """Enclose the optimal value between a lower bound, of the residuals or of a solver that starts from there, and the objective at W.

    The solver goes on until at least half of the gap is known to be that of the coefficients.
    """
    certificate, point = problem.certify_repaired(Iterate(W))
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
            lower, how = record.best.dual, f"{chosen.label} to a relative gap of {format_gap(record.best.relative_gap)}"
        best = min(best, record.best.primal)
        if record.status is not Status.VERIFIED:  # nor will it be at a tighter gap
            break
    why = [f"upper bound: the objective at the coefficients, lower bound: {how}"]
    if is_outside := certificate.infeasibility > _ENOUGH:
        why.insert(
            0, f"the coefficients leave the constraint by {format_gap(certificate.infeasibility)} of it: what is judged is their projection"
        )
    if upper - best > _ENOUGH * abs(upper):
        why.append(f"better coefficients are known, of an objective of at most {best!r}: a tighter tolerance, or more steps, would do")
    return Enclosure(lower, upper, None, "infeasible" if is_outside else "feasible", tuple(why))


def _coefficients(problem: Problem, values: Any) -> Array:
    """Return the coefficients of an estimator, or an array, in the shape of a point."""
    shape, is_estimator = problem.point_shape, hasattr(values, "get_params")
    if is_estimator and not hasattr(values, "coef_"):
        raise InputError(f"{type(values).__name__} has no coef_: it must have been fitted, and be linear")
    W: Any = values.coef_ if is_estimator else values
    W = real_array("the array of coefficients", W.toarray() if hasattr(W, "toarray") else W)
    if is_estimator and W.ndim == 2:
        W = W.T
    if W.ndim == 1 and shape == (len(W), 1):
        W = W[:, None]
    if W.shape != shape:
        raise InputError("the array of coefficients", W.shape, f"have shape {shape}")
    return W
