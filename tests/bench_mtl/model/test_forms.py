"""Bounds from dual points, against a search over a fine grid of scales and against conic solvers' optima."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.designs import PerTaskDesign, SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.forms import L1Form
from bench_mtl.model.linear_loss import LinearFit, example_weights, prediction_error
from bench_mtl.model.norms import l1inf_vertex
from bench_mtl.projections import norm_l1inf, norm_linf1

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 5))
SCORES = X @ RNG.standard_normal((5, 3)) + 0.5 * RNG.standard_normal((40, 3))
TARGETS = {
    "squared": SCORES,
    "logistic": np.where(SCORES > 0.0, 1.0, -1.0),
    "hinge": np.where(SCORES > 0.0, 1.0, -1.0),
    "multiclass": np.asarray(np.arange(3) == SCORES.argmax(axis=1)[:, None], dtype=np.float64),
}


def fit_of(loss: str) -> LinearFit:
    weights = np.full((40, 1), 0.1) if loss == "multiclass" else np.full((40, 3), 0.1)
    return LinearFit(SharedDesign(X, 3), TARGETS[loss], loss, weights)


def conjugate_value(fit: LinearFit, dual: Array) -> float:
    """-f*(-dual), from the definition of each loss."""
    y, w = fit.targets, fit.weights
    if fit.loss == "squared":
        return float((dual * y - dual**2 / (2.0 * w)).sum())
    if fit.loss == "hinge":
        return float((dual * y).sum())
    p = np.clip(y * dual / w if fit.loss == "logistic" else y - dual / w, 1e-300, 1.0)
    rest = np.clip(1.0 - p, 1e-300, 1.0)
    return float((w * -(p * np.log(p) + (rest * np.log(rest) if fit.loss == "logistic" else 0.0))).sum())


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("support", [0.0, 0.3, 3.0, 1e5])
@pytest.mark.parametrize("limit", [np.inf, 0.2])
@pytest.mark.parametrize("share", [1.0, 0.05])
def test_the_best_scale_of_a_dual_point_is_found(loss: str, support: float, limit: float, share: float) -> None:
    fit = fit_of(loss)
    dual = fit.normalised(share * fit.admissible(-fit.slopes(0.1 * SCORES)))
    assert np.allclose(fit.admissible(dual), dual)
    end = min(limit, 100.0 if loss == "squared" else 1.0)
    values = [conjugate_value(fit, c * dual) - c * support for c in end * np.linspace(0.0, 1.0, 2001)]
    bound = fit.bound(dual, support, limit)
    assert bound >= max(values) - 1e-9
    assert bound <= max(values) + 1e-3 * (1 + max(values))


@pytest.mark.parametrize("loss", TARGETS)
def test_slopes_at_the_targets_of_any_scale_are_admissible(loss: str) -> None:
    fit = fit_of(loss)
    for scale in (0.0, 1e-8, 1.0, 1e8):
        slopes = fit.slopes(scale * SCORES)
        assert np.allclose(fit.admissible(-slopes), -slopes, rtol=1e-12, atol=1e-15)
        assert np.isfinite(fit.value(scale * SCORES))


def test_support_and_vertex_agree() -> None:
    direction = RNG.standard_normal((5, 3))
    orientation = np.where(RNG.random((5, 3)) < 0.5, 1.0, -1.0)
    for balls in ("task", "all"):
        for nonneg, signs in ((False, None), (True, None), (True, orientation)):
            form = L1Form(fit_of("squared"), 2.5, None, balls, nonneg, signs)
            vertex = form.vertex(-direction)
            assert np.isclose((direction * vertex).sum(), 2.5 * form.support(direction))
            assert np.array_equal(form.project(vertex), vertex)


def test_nothing_pays_where_all_signs_are_against_it() -> None:
    form = L1Form(fit_of("squared"), 2.0, None, "task", nonneg=True)
    down = -np.ones((5, 3))
    assert form.support(down) == 0.0
    assert not form.vertex(-down).any()


@pytest.mark.parametrize("method", ["newton", "filter", "pivot", "sort"])
def test_every_method_projects_alike(method: str) -> None:
    W = RNG.standard_normal((50, 3))
    for balls in ("task", "all"):
        form = L1Form(fit_of("squared"), 2.0, None, balls)
        assert np.allclose(form.project(W, method=method), form.project(W), atol=1e-13)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multiclass"])
@pytest.mark.parametrize("restriction", [{"radius": 1e-3, "penalty": None}, {"radius": None, "penalty": 1e-2}])
@pytest.mark.parametrize("size", [1e-323, 1e-315, 1e-308, 1e-300, 1e300])
def test_dual_points_at_the_ends_of_the_range_of_doubles_prove_nothing_false(
    loss: str, restriction: dict[str, float | None], size: float
) -> None:
    fit = fit_of(loss)
    for scale in (1e-8, 1.0, 1e8):
        scaled = LinearFit(SharedDesign(scale * X, 3), fit.targets, loss, fit.weights)
        form = L1Form(scaled, balls="task", **restriction)  # type: ignore[arg-type]
        dual = -scaled.slopes(np.zeros_like(SCORES))
        dual /= np.abs(dual).max()
        assert form.bound(size * dual) <= scaled.value(np.zeros_like(SCORES)) * (1 + 1e-12)
        if loss == "squared":
            coarse = size * dual / size  # what the few digits of the smallest doubles leave of it
            assert form.bound(size * dual) == pytest.approx(form.bound(coarse), rel=1e-9)


SIZES = (9, 4, 6)
UNEVEN = RNG.uniform(0.5, 2.0, size=(40, 3))
MODELLED = {
    "shared, tall, weights of tasks": (SharedDesign(X, 3), np.broadcast_to([0.1, 1.0, 3.0], (40, 3))),
    "shared, tall, weights of examples": (SharedDesign(X, 3), UNEVEN),
    "shared, flat": (SharedDesign(X[:4], 3), UNEVEN[:4]),
    "shared, CSR": (SharedDesign(sp.csr_array(X), 3), np.full((40, 3), 0.5)),
    "per task": (PerTaskDesign([X[:size] for size in SIZES]), np.repeat([1.0, 0.5, 2.0], SIZES)),
}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kind", MODELLED)
def test_the_model_in_cvxpy_has_the_loss_and_its_slopes(loss: str, kind: str) -> None:
    design, weights = MODELLED[kind]
    targets = TARGETS[loss][: design.sizes[0]] if design.is_shared else np.concatenate([TARGETS[loss][:n, k] for k, n in enumerate(SIZES)])
    fit = LinearFit(design, targets, loss, weights)
    W = cp.Variable((5, 3))
    value, constraint, as_dual = fit.model(cp.vec(W, order="F"))
    cp.Problem(cp.Minimize(value + 0.5 * cp.sum_squares(W - 0.3)), [constraint]).solve(solver="CLARABEL")
    predictions = design.forward(W.value)
    assert value.value == pytest.approx(fit.value(predictions), rel=1e-6)
    assert np.allclose(as_dual(constraint.dual_value), -fit.slopes(predictions), atol=1e-4)


def test_some_losses_have_no_model_and_no_lipschitz_constant() -> None:
    for loss in ("hinge", "multiclass"):
        with pytest.raises(InputError, match=f"loss '{loss}' has no model"):
            fit_of(loss).model(cp.Variable(15))
    with pytest.raises(InputError, match="loss 'hinge' has no Lipschitz constant"):
        fit_of("hinge").lipschitz()


@pytest.mark.parametrize("loss", ["squared", "logistic", "multiclass"])
def test_the_lipschitz_constant_bounds_the_curvature_and_is_near_it(loss: str) -> None:
    """Along the direction of largest curvature, at W = 0, where that of the logistic loss is largest; with weights that differ by task."""
    weights = np.full((40, 1), 0.1) if loss == "multiclass" else np.broadcast_to([0.1, 0.2, 0.05], (40, 3))
    fit = LinearFit(SharedDesign(X, 3), TARGETS[loss], loss, weights)
    leading = np.linalg.svd(X)[2][0]
    steepest = 0.0
    for direction in (np.outer(leading, [0.0, 1.0, 0.0]), np.outer(leading, [1.0, -1.0, 0.0]) / np.sqrt(2.0)):
        change = fit.slopes(X @ (1e-6 * direction)) - fit.slopes(np.zeros((40, 3)))
        steepest = max(steepest, float(np.linalg.norm(X.T @ change)) / 1e-6)
    assert steepest <= fit.lipschitz() * (1.0 + 1e-6)
    assert steepest >= (0.6 if loss == "multiclass" else 0.999) * fit.lipschitz()


@pytest.mark.parametrize("loss", TARGETS)
def test_errors_of_predictions(loss: str) -> None:
    assert prediction_error(loss, TARGETS[loss], TARGETS[loss]) == 0.0
    wrong = np.array(TARGETS[loss])
    wrong[:10] = 0.0 if loss == "squared" else -1.0 * wrong[:10]
    share = float((TARGETS[loss][:10] ** 2).sum() / (TARGETS[loss] ** 2).sum()) if loss == "squared" else 0.25
    assert prediction_error(loss, wrong, TARGETS[loss]) == pytest.approx(share)
    assert prediction_error("squared", np.ones(2), np.zeros(2)) == 0.0


@pytest.mark.parametrize(("reduction", "expected"), [("mean", [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]), ("sum", np.ones(6))])
def test_weights_of_examples(reduction: str, expected: Array) -> None:
    weights = example_weights(PerTaskDesign([X[:2], X[:4]]), reduction)
    assert np.array_equal(weights, expected)
    assert not weights.flags.writeable


def test_the_vertex_of_the_l1inf_ball_attains_the_dual_norm() -> None:
    G = RNG.standard_normal((5, 3))
    vertex = l1inf_vertex(G, 2.0)
    assert norm_l1inf(vertex) == 2.0
    assert float(np.vdot(G, vertex)) == pytest.approx(-2.0 * norm_linf1(G))
