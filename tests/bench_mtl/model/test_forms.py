"""Forms under an l1 norm: their sets, supports, corners and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.core.designs import SharedDesign
from bench_mtl.model.forms import L1Form
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import LOSSES

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
    return LinearFit(SharedDesign(X, 3), TARGETS[loss], LOSSES[loss], weights)


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
        scaled = LinearFit(SharedDesign(scale * X, 3), fit.targets, LOSSES[loss], fit.weights)
        form = L1Form(scaled, balls="task", **restriction)  # type: ignore[arg-type]
        dual = -scaled.derivatives(np.zeros_like(SCORES))
        dual /= np.abs(dual).max()
        assert form.bound(size * dual) <= scaled.value(np.zeros_like(SCORES)) * (1 + 1e-12)
        if loss == "squared":
            coarse = size * dual / size  # what the few digits of the smallest doubles leave of it
            assert form.bound(size * dual) == pytest.approx(form.bound(coarse), rel=1e-9)
