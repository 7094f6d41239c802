"""Bounds from dual points, against a search over a fine grid of scales and against conic solvers' optima."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.forms import L1Form, LinearFit
from bench_mtl.linops import SharedDesign
from bench_mtl.types import Array

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
