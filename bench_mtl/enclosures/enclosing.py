"""`certify`: a proven enclosure of the optimal value of a problem or of a model of CVXPY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.enclosures.enclosure import Enclosure
from bench_mtl.model.protocols import Problem

if TYPE_CHECKING:
    import cvxpy

#: What bounds are proven near: the answer alone, or whatever a second solve finds.
JUDGES = ("value", "answer")


def certify(
    model: cvxpy.Problem | Problem,
    values: Mapping[cvxpy.Variable, Any] | Any = None,
    *,
    solver: str | None = None,
    judge: str = "value",
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
    values : coefficients or an estimator, of a problem; values of all variables, from anywhere, of a model, where None solves it by
        `solver`, which gives its variables their values
    solver : of CVXPY, with its `options`; None for CVXPY's choice. Of a problem the solver of the lower bound ("auto" by default), with
        ``limits=`` as of `bench_mtl.run`.
    judge : ``"value"``, where the answer may be helped by a second solve (Clarabel, with smaller cones), for the tightest bounds; or
        ``"answer"``, where bounds are made of the answer alone, so that a bad answer has wide ones
    bounds : for a variable the largest modulus that an entry of some optimal solution has; taken on trust, and said in `why`
    gp : whether the model is a geometric programme

    Raises
    ------
    InputError : the model has no variables, has integers, or cones of another kind; or CVXPY or the solver refuses it. Coefficients of
        another shape; options that a problem has no use for.

    Notes
    -----
    Jansson, Chaykin and Keil, "Rigorous error bounds for the optimal value in semidefinite programming", SIAM J. Numer. Anal. 46 (2007).
    """
    if isinstance(model, Problem):
        from bench_mtl.enclosures.coefficients import enclosed_at

        if unknown := sorted({**options, **({"bounds": bounds} if bounds else {}), **({"gp": gp} if gp else {})}.keys() - {"limits"}):
            raise InputError(f"of a problem there is no {', '.join(unknown)}, but solver and limits")
        if values is None:
            raise InputError("values must be the coefficients to judge, or an estimator")
        return enclosed_at(model, values, solver or "auto", options.get("limits"))
    from bench_mtl.enclosures.bounds import Inner, lower_bound, propagated, upper_bound
    from bench_mtl.enclosures.inside import Repaired, Solved
    from bench_mtl.enclosures.programme import Chain, programme_of

    one_of("judge", judge, JUDGES)
    chain = Chain(model, solver, gp=gp, options=options)
    solution = chain.solve() if values is None else _solution_at(model, chain, values, gp=gp)
    value, status = (None if model.value is None else float(model.value)), str(solution.status)
    if not solution.primal_vars or not all(np.isfinite(np.sum(part)) for part in solution.primal_vars.values()):
        return Enclosure(-np.inf, np.inf, value, status, ("the solver gave no point",))
    with np.errstate(all="ignore"):
        p = programme_of(chain.program, solution.primal_vars, solution.dual_vars or {})
        inner: Inner = Solved(p) if judge == "value" else Repaired(p)
        upper = upper_bound(p, inner)
        low, high, trusted = _trusted(p, bounds or {})
        box = propagated(p, low, high, upper.value if p.curvature == 0.0 else np.inf)
        lower = lower_bound(p, box, inner)
        low_end, high_end = chain.in_terms_of_the_model(Interval(lower.value, upper.value)).ends
        repaired = {} if upper.point is None else chain.values(p, upper.point)
    why = (f"lower bound: {lower.why}", f"upper bound: {upper.why}", *trusted)
    return Enclosure(low_end, high_end, value, status, why, repaired)


def _solution_at(model: cvxpy.Problem, chain: Any, values: Mapping[cvxpy.Variable, Any], *, gp: bool) -> Any:
    """Return an answer to the cone programme at values of the model's variables: what CVXPY adds to them is solved for."""
    import cvxpy
    from cvxpy.reductions.solution import Solution

    if missing := [variable.name() for variable in model.variables() if variable not in values]:
        raise InputError(f"values are missing for {', '.join(missing)}")
    fixed = [variable == np.asarray(values[variable], dtype=np.float64) for variable in model.variables()]
    restricted = type(chain)(cvxpy.Problem(model.objective, [*model.constraints, *fixed]), "CLARABEL", gp=gp, options={})
    at = restricted.solve()
    found, sizes = at.primal_vars or {}, {variable.id: variable.size for variable in chain.program.variables}
    if not found.keys() >= sizes.keys():  # CVXPY has named what it adds anew: in the order in which it was made
        found = dict(zip(sorted(sizes), (value for _, value in sorted(found.items())), strict=False))
    primal = {number: found[number] for number, size in sizes.items() if number in found and np.size(found[number]) == size}
    if len(primal) < len(sizes):
        primal = {}
    for variable in model.variables():
        variable.value = values[variable]
    return Solution(at.status, None, primal, {}, {})


def _trusted(p: Any, bounds: Mapping[cvxpy.Variable, float]) -> tuple[Array, Array, list[str]]:
    """Return the box that the user vouches for, and the sentences that say so."""
    low, high = np.full(len(p.c), -np.inf), np.full(len(p.c), np.inf)
    said = []
    for variable, largest in bounds.items():
        if variable.id not in p.columns:
            raise InputError(f"bounds: {variable.name()} is no variable of the cone programme")
        most = real_number(f"bounds of {variable.name()}", largest)
        low[p.columns[variable.id]], high[p.columns[variable.id]] = -most, most
        said.append(f"taken on trust: |{variable.name()}| <= {most:g}")
    return low, high, said
