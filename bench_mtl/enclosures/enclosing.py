"""`certify`: a proven enclosure of the optimal value of a problem or of a model of CVXPY, and in which words it is put."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.checks import one_of, real_array, real_number, require_shape
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array, Iterate, Limits, Status
from bench_mtl.engine.arguments import a_solver
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

if TYPE_CHECKING:
    import cvxpy

#: What bounds are proven near: the answer, or whatever a second solve finds.
JUDGES = ("value", "answer")

#: Relative gaps that the solver of the lower bound of coefficients is asked for, in turn.
_GAPS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
#: The proven gap of coefficients is at most so many times the true one, unless the solver ends before.
_SHARP = 2.0
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
    """What the solver says; None where it says nothing."""
    status: str
    """The solver's."""
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
        lines = [f"{self.lower!r} <= optimum <= {self.upper!r}, relative gap {self.relative_gap:.1e}"]
        if self.value is not None and not self.lower <= self.value <= self.upper:
            lines.append(f"the solver's value, {self.value!r}, is outside")
        return "\n".join([*lines, *self.why])


def certify(
    model: cvxpy.Problem | Problem,
    values: Mapping[cvxpy.Variable, Any] | Any = None,
    *,
    solver: Solver | str | None = None,
    judge: str | None = None,
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
        ``"answer"``, where bounds are of the feasible points nearest to the answer, so that a bad answer has wide ones. By default the
        second where there are values, else the first.
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
        if unknown := sorted({**options, **({"bounds": bounds} if bounds else {}), **({"gp": gp} if gp else {})}.keys() - {"limits"}):
            raise InputError(f"of a problem there is no {', '.join(unknown)}, but solver and limits")
        if values is None:
            raise InputError("values must be the coefficients to judge, or an estimator")
        return _at_coefficients(model, _coefficients(model, values), solver or "auto", options.get("limits"))
    model = require_model(model)
    if not isinstance(solver, str | None):
        raise InputError("solver", solver, "the name of a solver of CVXPY")
    from bench_mtl.enclosures.bounds import lower_bound, propagated, upper_bound
    from bench_mtl.enclosures.inside import Inner
    from bench_mtl.enclosures.programme import Chain, programme_of

    judge = one_of("judge", judge or ("value" if values is None else "answer"), JUDGES)
    chain = Chain(model, solver, gp=gp, options=options)
    solution = chain.solve() if values is None else _solution_at(model, chain, values, gp=gp)
    value = None if values is not None or model.value is None else float(model.value)
    status = str(solution.status)
    if not solution.primal_vars or not all(np.isfinite(np.sum(part)) for part in solution.primal_vars.values()):
        said = f"the solver gave no point: the model is {status.replace('_', ' ')}, which it says and nobody has proven"
        if values is not None:
            said = "no feasible point has these values, says Clarabel: they leave a constraint, if only by rounding"
        return Enclosure(-np.inf, np.inf, value, status, (said,))
    with np.errstate(all="ignore"):
        p = programme_of(chain.program, solution.primal_vars, solution.dual_vars or {})
        inner = Inner(p, judge)
        upper = upper_bound(p, inner)
        low, high, trusted = _trusted(p, bounds or {})
        box = propagated(p, low, high, upper.value if p.curvature == 0.0 else np.inf)
        lower = lower_bound(p, box, inner)
        low_end, high_end = chain.in_terms_of_the_model(Interval(lower.value, upper.value)).ends
        repaired = {} if upper.point is None else chain.values(p, upper.point)
    too_large = ["too large to be solved again: points inside were sought by products alone"] * inner.is_too_large
    why = (f"lower bound: {lower.why}", f"upper bound: {upper.why}", *too_large, *trusted)
    return Enclosure(low_end, high_end, value, status, why, repaired)


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
    """Leave the values of a model's variables, and those of the multipliers of its constraints, as they were."""
    leaves = [*model.variables(), *(dual for constraint in model.constraints for dual in constraint.dual_variables)]
    before = [leaf._value for leaf in leaves]
    try:
        yield
    finally:
        for leaf, value in zip(leaves, before, strict=True):
            leaf._value = value


def _solution_at(model: cvxpy.Problem, chain: Any, values: Mapping[cvxpy.Variable, Any], *, gp: bool) -> Any:
    """Return an answer to the cone programme at values of the model's variables: what CVXPY adds to them is solved for."""
    import cvxpy
    from cvxpy.reductions.solution import Solution

    if not isinstance(values, Mapping):
        raise InputError("values", values, "a table of the model's variables and their values")
    if missing := [variable.name() for variable in model.variables() if variable not in values]:
        raise InputError(f"values are missing for {', '.join(missing)}")
    fixed = []
    for variable in model.variables():
        array = real_array(f"the values of {variable.name()}", values[variable])
        require_shape(f"the values of {variable.name()}", array, variable.shape)
        fixed.append(variable == array)
    restricted = type(chain)(cvxpy.Problem(model.objective, [*model.constraints, *fixed]), "CLARABEL", gp=gp, options={})
    with _leaving_values(model):
        at = restricted.solve()
    primal, sizes = at.primal_vars or {}, {variable.id: variable.size for variable in chain.program.variables}
    if not primal.keys() >= sizes.keys():  # CVXPY has named what it adds anew: in the order in which it was made
        primal = dict(zip(sorted(sizes), (value for _, value in sorted(primal.items())), strict=False))
    primal = {number: primal[number] for number, size in sizes.items() if number in primal and np.size(primal[number]) == size}
    return Solution(at.status, None, primal if len(primal) == len(sizes) else {}, {}, {})


def _trusted(p: Any, bounds: Mapping[cvxpy.Variable, float]) -> tuple[Array, Array, list[str]]:
    """Return the box that the user vouches for, and the sentences that say so."""
    low, high, sentences = np.full(len(p.c), -np.inf), np.full(len(p.c), np.inf), []
    for variable, largest in bounds.items():
        if getattr(variable, "id", None) not in p.columns:
            raise InputError(f"bounds: {variable} is no variable of the cone programme")
        most = real_number(f"bounds of {variable.name()}", largest)
        low[p.columns[variable.id]], high[p.columns[variable.id]] = -most, most
        sentences.append(f"taken on trust: |{variable.name()}| <= {most:g}")
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
            lower, how = record.best.dual, f"{chosen.label} to a relative gap of {record.best.relative_gap:.1e}"
        best = min(best, record.best.primal)
        if record.status is not Status.VERIFIED:  # nor will it be at a tighter gap
            break
    why = [f"upper bound: the objective at the coefficients, lower bound: {how}"]
    if is_outside := certificate.infeasibility > _ENOUGH:
        why.insert(0, f"the coefficients leave the constraint by {certificate.infeasibility:.1e} of it: what is judged is their projection")
    if upper - best > _ENOUGH * abs(upper):
        why.append(f"better coefficients are known, of an objective of at most {best!r}: a tighter tolerance, or more steps, would do")
    return Enclosure(lower, upper, None, "infeasible" if is_outside else "feasible", tuple(why))


def _coefficients(problem: Problem, values: Any) -> Array:
    """Return the coefficients of an estimator, or an array, in the shape of a point."""
    shape, is_estimator = problem.point_shape, hasattr(values, "get_params")
    if is_estimator and not hasattr(values, "coef_"):
        raise InputError(f"{type(values).__name__} has no coef_: it must have been fitted, and be linear")
    W: Any = values.coef_ if is_estimator else values
    try:
        W = np.asarray(W.toarray() if hasattr(W, "toarray") else W, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the coefficients", values, "an array of numbers or an estimator") from None
    if is_estimator and W.ndim == 2:
        W = W.T
    if W.ndim == 1 and shape == (len(W), 1):
        W = W[:, None]
    if W.shape != shape:
        raise InputError("the coefficients", W.shape, f"have shape {shape}")
    return W
