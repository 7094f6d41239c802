"""What a cell of `singer-sequential` computes: the log-wealth of one method on one draw of a market, without costs of trading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import Status, make_problem
from bench_mtl.data import TaskData, synthetic_market
from bench_mtl.projections import project_box_simplex, project_simplex
from bench_mtl.runner import Found
from papers import Array
from papers.singer.passes import Look, as_values, best_fixed, checkpoints, looked_at
from papers.solve_to_gap import registry

#: Options of `synthetic_market`: those of the suite singer-portfolio.
MARKETS: Mapping[str, Mapping[str, Any]] = {
    "calm": {"periods": 1000, "assets": 50},
    "wide": {"periods": 500, "assets": 500},
    "volatile": {"periods": 500, "assets": 200, "volatility": 0.3, "drift_spread": 0.05},
}
#: eta0 of eta_t = eta0 / sqrt(t): the same grid for every method.
ETAS = tuple(2.0**k for k in range(-12, 11))
#: The largest share of an asset, where shares are capped.
CAP = 0.1
#: The rate of Helmbold et al. in their own experiments, which does not fall with t.
CONSTANT_RATE = 0.05
#: A share above this is one of an asset that is held.
HELD = 1e-6

EG, EG_CONSTANT, PROJECTED, CAPPED, UNIFORM, HOLD = "eg", "eg_constant", "projected", "projected_capped", "uniform", "hold"
FIXED, FIXED_CAPPED = "fixed", "fixed_capped"
#: Methods that have an eta0 to choose.
SCHEDULED = (EG, PROJECTED, CAPPED)
METHODS = (*SCHEDULED, EG_CONSTANT, UNIFORM, HOLD, FIXED, FIXED_CAPPED)

#: What proves the best fixed portfolios, to which relative gap, and seconds on its clock.
_PROVES = ("simplex_newton", 1e-6, 60.0)

_Step = Callable[[Array, Array, Array], Array]
"""Portfolios (a row each), relatives over returns (a row each), and step sizes, to the next portfolios."""


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Let one method trade through one draw of a market, or find the best fixed portfolios of its beginnings."""
    relatives = np.asarray(synthetic_market(**MARKETS[settings["market"]], seed=settings["seed"]).design.block(0))
    method = settings["method"]
    if method in (FIXED, FIXED_CAPPED):
        return _fixed(relatives, None if method == FIXED else CAP)
    if method == HOLD:
        values = as_values([_held(relatives)], (0.0,), len(relatives)) | {"has_bound": False}
    else:
        step, etas = _METHODS[method]
        looks, longest = _traded(relatives, step, np.array(etas), method != EG_CONSTANT)
        values = as_values(looks, etas, len(relatives))
        values |= {"longest": longest, "diameter": 2.0**0.5, "has_bound": method in (PROJECTED, CAPPED)}
    return Found(values, Status.INACCURATE, f"traded through {len(relatives)} periods; a portfolio that changes has nothing to prove")


def _multiplied(w: Array, gains: Array, eta: Array) -> Array:
    """EG: shares times exponentials of their gains, in logarithms so that no share is lost."""
    with np.errstate(divide="ignore"):
        logs = np.log(w) + eta[:, None] * gains
    logs -= logs.max(axis=1, keepdims=True)
    shares = np.exp(logs)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _projected(w: Array, gains: Array, eta: Array) -> Array:
    return np.asarray(project_simplex(w + eta[:, None] * gains))


def _capped(w: Array, gains: Array, eta: Array) -> Array:
    return np.stack([project_box_simplex(row, 1.0, 0.0, CAP) for row in w + eta[:, None] * gains])


def _unchanged(w: Array, gains: Array, eta: Array) -> Array:
    return w


_METHODS: Mapping[str, tuple[_Step, tuple[float, ...]]] = {
    EG: (_multiplied, ETAS),
    PROJECTED: (_projected, ETAS),
    CAPPED: (_capped, ETAS),
    EG_CONSTANT: (_multiplied, (CONSTANT_RATE,)),
    UNIFORM: (_unchanged, (0.0,)),
}


def _traded(relatives: Array, step: _Step, etas: Array, falls: bool) -> tuple[list[list[Look]], list[float]]:
    """Return the looks at a pass for every eta0, all of which are made side by side, and the longest gradient of each.

    The loss of a period is -log(w.x). Gradients are taken without their mean, which changes the portfolio of no projection and the regret
    of none.
    """
    T, d = relatives.shape
    longest = np.zeros(len(etas))
    w = np.full((len(etas), d), 1.0 / d)
    totals, found, places = np.zeros(len(etas)), [list[Look]() for _ in etas], set(checkpoints(T))
    for t, x in enumerate(relatives):
        returns = w @ x
        totals -= np.log(returns)
        gains = x / returns[:, None]
        np.maximum(longest, np.linalg.norm(gains - gains.mean(axis=1, keepdims=True), axis=1), out=longest)
        w = step(w, gains, etas / np.sqrt(t + 1.0) if falls else etas)
        if t + 1 in places:
            for looks, total, shares in zip(found, totals, w, strict=True):
                looks.append(_look(float(total), shares))
    return found, longest.tolist()


def _held(relatives: Array) -> list[Look]:
    """Return the looks at equal shares that are bought once and never traded."""
    worth = np.ones(relatives.shape[1])

    def loss(t: int) -> float:
        nonlocal worth
        before, worth = worth.sum(), worth * relatives[t]
        return float(-np.log(worth.sum() / before))

    return looked_at(loss, lambda total: _look(total, worth / worth.sum()), len(relatives))


def _look(total: float, shares: Array) -> Look:
    return Look(total, int(np.count_nonzero(shares)), int(np.count_nonzero(shares > HELD)))


def _fixed(relatives: Array, cap: float | None) -> Found:
    """Return the log-wealth of the best fixed portfolios at the checkpoints, as losses, from above and from below."""
    places = checkpoints(len(relatives))
    parts = [TaskData.shared(relatives[:place], np.ones(place), name="beginning") for place in places]
    problems = [make_problem(registry().problem("portfolio"), part, {} if cap is None else {"upper": cap}) for part in parts]
    return best_fixed(places, problems, [1.0] * len(places), lambda point: int(np.count_nonzero(point > HELD)), _PROVES)
