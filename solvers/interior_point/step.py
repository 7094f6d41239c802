"""One iteration of `interior_point`: predictor, corrector and centrality correctors with one factorisation."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from bench_mtl.core.threads import one_blas_thread
from bench_mtl.core.types import Array
from bench_mtl.solvers.interior_point.equations import Direction, Equations, Residuals, State

#: Centrality correctors at most; how much longer a step each is to allow; the weights tried for it.
CORRECTORS, _LONGER, _WEIGHTS = 4, 0.5, (1.0, 0.7, 0.4)
#: Products of a slack and its dual are wanted within this factor of their target.
_NEIGHBOURHOOD = 5.0
#: A corrector that gains less in the sum of both steps is the last one, and none is tried where both steps are this long.
_WORTHWHILE, _LONG_ENOUGH = 0.03, 0.95
#: The shares of the way to the boundary that are gone at least and at most.
_LEAST_SHARE, _LARGEST_SHARE = 0.97, 0.999
#: A step after which more is missing of the dual point than before, less this share of the step, is halved, so often, unless that costs
#: less than the gap.
_LEAST_FALL, _HALVINGS = 0.1, 8
#: The same for compiled steps.
RULE = (_NEIGHBOURHOOD, _LONGER, _WORTHWHILE, _LONG_ENOUGH, _LEAST_SHARE, _LARGEST_SHARE)
#: Gram matrices do for gaps above this share of the objective at zero: below it their rounding may tell.
_ROUGH = 1e-9
#: Ratios that are compared at a time, for the cache.
_CHUNK = 2**15
#: Systems are solved with care from where residuals could falsify the gap by this share.
_DISTURBING = 1e-3


@np.errstate(all="ignore")
def next_state(
    equations: Equations, x: State, careful: bool, *, correctors: int = CORRECTORS, rounded: bool = True
) -> tuple[State | None, bool]:
    """Return the next iterate, None where rounding has taken over, and whether it took care.

    Residuals call for care where they are `rounded`, and not the start's.
    """
    if x.gap / x.slack.size == 0.0:  # products have underflowed
        return None, careful
    if not careful and x.gap > _ROUGH * equations.scale:
        by_grams = equations.after(x, correctors=CORRECTORS, rule=RULE)
        if by_grams is not None and _is_inside(by_grams):
            return by_grams, False
    residuals = equations.residuals(x)
    careful = careful or (rounded and residuals.cost(x, equations.extent(x)) > _DISTURBING * x.gap)
    try:
        with one_blas_thread() if equations.system.threads > 1 else nullcontext():
            new = advance(equations, x, residuals, careful=careful, correctors=correctors)
    except FloatingPointError:
        return None, careful
    return new if _is_inside(new) else None, careful


def _is_inside(x: State) -> bool:
    ends = [(float(part.min()), float(part.max())) for part in (x.slack, x.dual)]
    return all(low > 0.0 and high < np.inf for low, high in ends) and bool(np.isfinite(x.W).all())


def advance(equations: Equations, x: State, residuals: Residuals, *, careful: bool, correctors: int = CORRECTORS) -> State:
    """The next iterate.

    Mehrotra's predictor-corrector with separate primal and dual steps, then centrality correctors (Gondzio 1996), each with the best
    of a few weights (Colombo and Gondzio 2008), at most `correctors`: where a factorisation costs several solves they are worth it.
    """
    products = x.slack * x.dual
    average = float(products.mean())
    equations.factor(x, careful=careful)
    predictor = equations.direction(x, residuals, -products)
    primal, dual = _steps(_ratios(equations, x, predictor))
    predicted = float((x.slack + primal * predictor.slack) @ (x.dual + dual * predictor.dual)) / products.size
    goal = average * min(1.0, max(0.0, predicted / average)) ** 3
    products += predictor.slack * predictor.dual
    direction = equations.direction(x, residuals, np.subtract(goal, products, out=products))
    ratios = _ratios(equations, x, direction)
    for _ in range(correctors):
        steps = _steps(ratios)
        if min(steps) > _LONG_ENOUGH:
            break
        corrector = equations.direction(x, None, _recentred(x, direction, steps, goal))
        trials = _weighted_ratios(equations, x, direction, corrector, _WEIGHTS)
        best, weight = max(zip(trials, _WEIGHTS, strict=True), key=lambda trial: sum(_steps(trial[0])))
        gain = sum(_steps(best)) - sum(steps)
        if gain <= 0.0:
            break
        direction, ratios = direction.moved(corrector, weight, weight), best
        if gain < _WORTHWHILE:
            break
    # Where the goal is far below the average the method converges faster than linearly, unless steps stop at a fixed share.
    share = min(max(_LEAST_SHARE, 1.0 - goal / average), _LARGEST_SHARE)
    primal, dual = _steps(ratios, share)
    direction = equations.completed(x, residuals, direction)
    return x.moved(direction, primal, dual) if equations.is_linear else _damped(equations, x, direction, primal)


def _damped(equations: Equations, x: State, direction: Direction, step: float) -> State:
    """Return x after a step that may be shorter, so that what is missing of the dual point, which is not linear in W, falls or is small."""
    before, _ = equations.missing(x)
    new = x.moved(direction, step, step)
    for _ in range(_HALVINGS):
        after, cost = equations.missing(new)
        if after <= (1.0 - _LEAST_FALL * step) * before or cost <= new.gap:
            break
        step *= 0.5
        new = x.moved(direction, step, step)
    return new


def _recentred(x: State, direction: Direction, steps: tuple[float, float], goal: float) -> Array:
    """Return the right-hand sides that bring the products after a longer step back into the neighbourhood of the goal."""
    from bench_mtl.solvers.interior_point.kernels import recentred

    primal, dual = (min(1.0, step + _LONGER) for step in steps)
    out = np.empty(x.slack.size)
    recentred((x.slack, x.dual), (direction.slack, direction.dual), (primal, dual), goal, _NEIGHBOURHOOD, out)
    return out


def _steps(ratios: tuple[float, float], share: float = 1.0) -> tuple[float, float]:
    """The primal and the dual step of `_ratios`: `share` of the way to the boundary, at most 1."""
    primal, dual = ratios
    return share / max(primal, share), share / max(dual, share)


def _ratios(equations: Equations, x: State, direction: Direction) -> tuple[float, float]:
    """One over the primal and the dual step along a direction at which x meets the boundary, at least 0."""
    return _weighted_ratios(equations, x, direction, None, (0.0,))[0]


def _weighted_ratios(
    equations: Equations, x: State, direction: Direction, corrector: Direction | None, weights: tuple[float, ...]
) -> list[tuple[float, float]]:
    """`_ratios` of direction + weight * corrector, for every weight."""
    primal = _boundary_ratios(x.slack, direction.slack, None if corrector is None else corrector.slack, weights)
    dual = _boundary_ratios(x.dual, direction.dual, None if corrector is None else corrector.dual, weights)
    if equations.together:
        primal = dual = [max(p, d) for p, d in zip(primal, dual, strict=True)]
    return list(zip(primal, dual, strict=True))


def _boundary_ratios(x: Array, change: Array, other: Array | None, weights: tuple[float, ...]) -> list[float]:
    """max(0, max_i -(change + weight * other)_i / x_i), x > 0, of every weight: one over the step at which x first meets 0."""
    largest = [0.0] * len(weights)
    for start in range(0, x.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        ratios, others = change[part] / x[part], None if other is None else other[part] / x[part]
        for k, weight in enumerate(weights):
            sums = ratios if others is None else ratios + weight * others
            largest[k] = max(largest[k], -float(sums.min()))
    return largest
