"""Bounds from dual points against a search over a fine grid of scales, models against CVXPY, and constants of weighted losses."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import LOSSES, Logistic, MarginLoss
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.regularisers import Constraint

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5))
SCORES = X @ RNG.standard_normal((5, 3)) + 0.5 * RNG.standard_normal((40, 3))
TARGETS = {
    "squared": SCORES,
    **dict.fromkeys(("logistic", "hinge", "squared_hinge", "exponential"), np.where(SCORES > 0.0, 1.0, -1.0)),
    "multiclass": np.asarray(np.arange(3) == SCORES.argmax(axis=1)[:, None], dtype=np.float64),
}
UNLIMITED = ("squared", "squared_hinge", "exponential")


def fit_of(loss: str) -> LinearFit:
    weights = np.full((40, 1), 0.1) if loss == "multiclass" else np.full((40, 3), 0.1)
    return LinearFit(SharedDesign(X, 3), TARGETS[loss], LOSSES[loss], weights)


def conjugate_value(fit: LinearFit, dual: Array) -> float:
    """-f*(-dual), from the definition of each loss."""
    y, w = fit.targets, fit.weights
    if fit.loss.name == "squared":
        return float((dual * y - dual**2 / (2.0 * w)).sum())
    if fit.loss.name == "hinge":
        return float((dual * y).sum())
    u = y * dual / w
    if fit.loss.name == "squared_hinge":
        return float((w * (u - u**2 / 4.0)).sum())
    if fit.loss.name == "exponential":
        u = np.maximum(u, 1e-300)
        return float((w * (u - u * np.log(u))).sum())
    p = np.clip(y * dual / w if fit.loss.name == "logistic" else y - dual / w, 1e-300, 1.0)
    rest = np.clip(1.0 - p, 1e-300, 1.0)
    return float((w * -(p * np.log(p) + (rest * np.log(rest) if fit.loss.name == "logistic" else 0.0))).sum())


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("limit", [np.inf, 0.2])
@pytest.mark.parametrize("share", [1.0, 0.05])
def test_the_best_scale_of_a_dual_point_is_found(loss: str, limit: float, share: float) -> None:
    fit = fit_of(loss)
    dual = fit.normalised(share * fit.admissible(-fit.derivatives(0.1 * SCORES)))
    assert np.allclose(fit.admissible(dual), dual)
    end = min(limit, 100.0 if loss in UNLIMITED else 1.0)
    scales = end * np.linspace(0.0, 1.0, 2001)
    values = np.array([conjugate_value(fit, c * dual) for c in scales])
    for support in (0.0, 0.3, 3.0, 1e5):
        best = (values - scales * support).max()
        bound = fit.bound(dual, support, limit)
        assert bound >= best - 1e-9
        assert bound <= best + 1e-3 * (1 + best)


#: A loss of one's own that says nothing of CVXPY, nor of second derivatives: log(1 + exp(-rho)) again.
UNMODELLED: Any = type(
    "Unmodelled",
    (MarginLoss,),
    {"name": "unmodelled", "curvature": None, "upper": 1.0}
    | {method: getattr(Logistic, method) for method in ("value", "dual", "gain", "gain_derivative")},
)()


def test_a_loss_of_ones_own_has_what_it_does_not_have_to_define() -> None:
    fit, twin = LinearFit(SharedDesign(X, 3), TARGETS["logistic"], UNMODELLED, fit_of("logistic").weights), fit_of("logistic")
    assert np.allclose(fit.curvatures(SCORES), twin.curvatures(SCORES), rtol=1e-4, atol=1e-7)
    dual = -fit.derivatives(0.1 * SCORES)
    ball = Constraint(L1Inf(), 0.5)
    found, exact = fit.enclose_bound(dual, ball), twin.enclose_bound(dual, ball)
    assert found.lower == pytest.approx(exact.lower, rel=1e-12)
    assert found.lower <= exact.upper
    predictions = Interval.exact(SCORES)
    assert fit.enclose(predictions).lower <= twin.value(SCORES) <= fit.enclose(predictions).upper
    assert float(fit.enclose(predictions).width) <= 1e-12 * twin.value(SCORES)
    with pytest.raises(InputError, match="loss 'unmodelled' has no model here"):
        fit.model(cp.Variable(15))
    with pytest.raises(InputError, match="loss 'unmodelled' has no Lipschitz constant"):
        fit.lipschitz()


@pytest.mark.parametrize("loss", ["hinge", "multiclass"])
def test_some_losses_have_no_second_derivatives_of_single_predictions(loss: str) -> None:
    with pytest.raises(InputError, match=f"loss '{loss}' has no second derivatives"):
        fit_of(loss).curvatures(SCORES)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multiclass"])
def test_the_lipschitz_constant_bounds_the_curvature_and_is_near_it(loss: str) -> None:
    """Along the direction of largest curvature, at W = 0, where that of the logistic loss is largest; with weights that differ by task."""
    weights = np.full((40, 1), 0.1) if loss == "multiclass" else np.broadcast_to([0.1, 0.2, 0.05], (40, 3))
    fit = LinearFit(SharedDesign(X, 3), TARGETS[loss], LOSSES[loss], weights)
    leading = np.linalg.svd(X)[2][0]
    steepest = 0.0
    for direction in (np.outer(leading, [0.0, 1.0, 0.0]), np.outer(leading, [1.0, -1.0, 0.0]) / np.sqrt(2.0)):
        change = fit.derivatives(X @ (1e-6 * direction)) - fit.derivatives(np.zeros((40, 3)))
        steepest = max(steepest, float(np.linalg.norm(X.T @ change)) / 1e-6)
    assert steepest <= fit.lipschitz() * (1.0 + 1e-6)
    assert steepest >= (0.6 if loss == "multiclass" else 0.999) * fit.lipschitz()


@pytest.mark.parametrize("loss", TARGETS)
def test_errors_of_predictions(loss: str) -> None:
    assert LOSSES[loss].error(TARGETS[loss], TARGETS[loss]) == 0.0
    wrong = np.array(TARGETS[loss])
    wrong[:10] = 0.0 if loss == "squared" else -1.0 * wrong[:10]
    share = float((TARGETS[loss][:10] ** 2).sum() / (TARGETS[loss] ** 2).sum()) if loss == "squared" else 0.25
    assert LOSSES[loss].error(wrong, TARGETS[loss]) == pytest.approx(share)
    assert LOSSES["squared"].error(np.ones(2), np.zeros(2)) == 0.0
