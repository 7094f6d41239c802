"""One iteration of `interior_point`: predictor, corrector and centrality correctors with one factorisation."""

from __future__ import annotations

import numpy as np

from bench_mtl.types import Array
from solvers.interior_point.equations import Direction, Equations, Residuals, State

#: Centrality correctors at most; how much longer a step each is to allow; the weights tried for it.
_CORRECTORS, _LONGER, _WEIGHTS = 3, 0.5, (1.0, 0.7, 0.4)
#: Products of a slack and its dual are wanted within this factor of their target.
_NEIGHBOURHOOD = 10.0
#: A corrector that gains less in the sum of both steps is the last one, and none is tried where both steps are this long.
_WORTHWHILE, _LONG_ENOUGH = 0.03, 0.95
#: The shares of the way to the boundary that are gone at least and at most.
_LEAST_SHARE, _LARGEST_SHARE = 0.9, 0.999


def advance(equations: Equations, x: State, residuals: Residuals, *, careful: bool) -> State:
    """The next iterate.

    Mehrotra's predictor-corrector with separate primal and dual steps, then centrality correctors (Gondzio 1996), each with the best
    of a few weights (Colombo and Gondzio 2008): here a factorisation costs several solves.
    """
    products = x.slack * x.dual
    average = float(products.mean())
    equations.factor(x, careful=careful)
    predictor = equations.direction(x, residuals, -products)
    primal, dual = _steps(x, predictor)
    predicted = float((x.slack + primal * predictor.slack) @ (x.dual + dual * predictor.dual)) / products.size
    goal = average * min(1.0, max(0.0, predicted / average)) ** 3
    direction = equations.direction(x, residuals, goal - products - predictor.slack * predictor.dual)
    steps = _steps(x, direction)
    for _ in range(_CORRECTORS):
        if min(steps) > _LONG_ENOUGH:
            break
        corrector = equations.direction(x, None, _recentred(x, direction, steps, goal))
        trials = [(_steps(x, direction, corrector, weight), weight) for weight in _WEIGHTS]
        best, weight = max(trials, key=lambda trial: sum(trial[0]))
        gain = sum(best) - sum(steps)
        if gain <= 0.0:
            break
        direction, steps = direction.plus(corrector, weight), best
        if gain < _WORTHWHILE:
            break
    # Where the goal is far below the average the method converges faster than linearly, unless steps stop at a fixed share.
    share = min(max(_LEAST_SHARE, 1.0 - goal / average), _LARGEST_SHARE)
    return x.moved(direction, *_steps(x, direction, share=share))


def _recentred(x: State, direction: Direction, steps: tuple[float, float], goal: float) -> Array:
    """What brings the products after a longer step back into the neighbourhood of the goal."""
    primal, dual = (min(1.0, step + _LONGER) for step in steps)
    products = (x.slack + primal * direction.slack) * (x.dual + dual * direction.dual)
    target = np.clip(products, goal / _NEIGHBOURHOOD, goal * _NEIGHBOURHOOD)
    target -= products
    return np.maximum(target, -goal * _NEIGHBOURHOOD, out=target)


def _steps(
    x: State, direction: Direction, corrector: Direction | None = None, weight: float = 0.0, share: float = 1.0
) -> tuple[float, float]:
    """The primal and the dual step along direction + weight * corrector: `share` of the way to the boundary, at most 1."""
    from bench_mtl.kernels.newton import boundary_ratio

    other = direction if corrector is None else corrector
    primal = boundary_ratio(x.slack, direction.slack, other.slack, weight)
    dual = boundary_ratio(x.dual, direction.dual, other.dual, weight)
    return share / max(primal, share), share / max(dual, share)
