"""Forms under an l1 norm: their sets, supports, corners and bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.forms import BallForm, GroupForm, HingeForm, L1Form, SimplexForm, SplitForm
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import LOSSES, Squared
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.ball_hinge import BallHinge
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.problems.trace_norm_glm import TraceNormGLM
from bench_mtl.validation.tiny_instances import tiny_instances

pytestmark = pytest.mark.numerics

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


@pytest.mark.parametrize("method", ["newton", "pivot", "sort"])
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


def losses_by_hand(form: HingeForm | BallForm, W: Array) -> float:
    total, scores = 0.0, form.design.forward(W)
    for k in range(form.design.n_tasks):
        t, y, s = (form.design.task_outputs(each, k) for each in (scores, form.labels, form.weights))
        shifts = y - t if form.has_intercept else np.zeros(1)  # the least of a piecewise linear function is at a kink
        total += min(float((s * np.maximum(0.0, 1.0 - y * (t + b))).sum()) for b in shifts)
    return total


@pytest.mark.parametrize("problem", [L1InfHinge, BallHinge, SparseLowRank, GroupBoosting])
def test_objectives_of_forms_by_hand(problem: type[Problem]) -> None:
    """The conformance checks compare a form with its problem; where both call the same code, this holds that against the formula."""
    for tiny in tiny_instances(problem, 0):
        W = tiny.repair(RNG.standard_normal(tiny.point_shape))
        forms = tiny.make_forms()
        if not forms:
            assert tiny.fit.intercept  # type: ignore[attr-defined]
            continue
        (form,) = forms
        if isinstance(form, HingeForm):
            value = losses_by_hand(form, W) + (form.penalty or 0.0) * float(np.abs(W).max(axis=1).sum())
        elif isinstance(form, BallForm):
            value = losses_by_hand(form, W)
        elif isinstance(form, SplitForm):
            t = form.design.forward(W[0] + W[1])
            squares = isinstance(form.loss, Squared)
            losses = 0.5 * (t - form.targets) ** 2 if squares else np.log1p(np.exp(-form.targets * t))
            value = float(losses.sum()) + form.penalty * float(np.abs(W[0]).sum())
        else:
            assert isinstance(form, GroupForm)
            orders = {"l12": 2, "l1inf": np.inf, "l1": 1}
            rows = sum(float(np.linalg.norm(row, orders[form.norm])) for row in W)
            value = form.fit.value(form.fit.design.forward(W)) + form.nu * rows
        assert form.objective(W) == pytest.approx(value, rel=1e-12)
        assert tiny.objective(W) == pytest.approx(value, rel=1e-12)


def test_a_form_that_contradicts_its_problem_is_noticed() -> None:
    portfolio = next(tiny for tiny in tiny_instances(Portfolio, 0) if tiny.has_form(SimplexForm))
    trace = tiny_instances(TraceNormGLM, 0)[0]
    fit, simplex = trace.form(LinearFit), portfolio.form(SimplexForm)
    for wrong, problem, words in (
        (replace(fit, weights=2.0 * fit.weights), trace, "differentiable part"),
        (replace(simplex, mass=2.0), portfolio, "infeasible"),
        (replace(simplex, mass=0.5), portfolio, "infeasible"),
    ):
        with pytest.raises(AssertionError, match=words):
            wrong.check(problem, np.random.default_rng(0))
