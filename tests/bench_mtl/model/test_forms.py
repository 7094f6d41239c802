"""Forms: their objectives by hand, what notices a wrong one, and which kinds take which."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.types import Array
from bench_mtl.model.forms import SPARSE_PLUS_LOW_RANK, GroupForm, LinearForm, SimplexForm, hinges_under, loss_under
from bench_mtl.model.norms import L1, FeatureNorm, L1Inf, Trace
from bench_mtl.model.protocols import Kind, Problem, is_of
from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
from bench_mtl.model.squared_norms import PenaltyAndRidge
from bench_mtl.model.task_balls import L1TaskBalls, TaskBalls
from bench_mtl.problems import BallHinge, GroupBoosting, L1BallGLM, L1InfHinge, Portfolio, SparseLowRank
from bench_mtl.validation.tiny_instances import tiny_instances

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)


def losses_by_hand(form: LinearForm, predictions: Array) -> float:
    total, name = 0.0, form.fit.loss.name
    for k in range(form.design.n_tasks):
        t, y, s = (form.design.task_outputs(each, k) for each in (predictions, form.fit.targets, form.fit.weights))
        if name != "hinge":
            far = np.maximum(np.abs(t - y) - getattr(form.fit.loss, "delta", np.inf), 0.0)  # what Huber's loss is lower by
            total += float((s * (np.log1p(np.exp(-y * t)) if name == "logistic" else 0.5 * (t - y) ** 2 - 0.5 * far**2)).sum())
            continue
        shifts = y - t if form.has_intercept else np.zeros(1)  # the least of a piecewise linear function is at a kink
        total += min(float((s * np.maximum(0.0, 1.0 - y * (t + b))).sum()) for b in shifts)
    return total


@pytest.mark.parametrize("problem", [L1InfHinge, BallHinge, SparseLowRank, GroupBoosting])
def test_objectives_of_forms_by_hand(problem: type[Problem]) -> None:
    """The conformance checks compare a form with its problem; where both call the same code, this holds that against the formula."""
    for tiny in tiny_instances(problem, 0):
        W, (form,) = tiny.repair(RNG.standard_normal(tiny.point_shape)), tiny.make_forms()
        if isinstance(form, GroupForm):
            orders = {"l12": 2, "l1inf": np.inf, "l1": 1}
            rows = sum(float(np.linalg.norm(row, orders[form.norm])) for row in W)
            value = form.fit.value(form.fit.design.forward(W)) + form.nu * rows
        else:
            is_split = problem is SparseLowRank
            if is_split and form.has_intercept and form.fit.loss.name == "logistic":
                continue  # whose intercepts no formula has
            norm = np.abs(W[0]).sum() if is_split else np.abs(W).max(axis=1).sum()
            value = losses_by_hand(form, form.design.forward(W[0] + W[1] if is_split else W)) + (form.penalty or 0.0) * float(norm)
        assert form.objective(W) == pytest.approx(value, rel=1e-12)
        assert tiny.objective(W) == pytest.approx(value, rel=1e-12)


def test_a_form_that_contradicts_its_problem_is_noticed() -> None:
    portfolio = next(tiny for tiny in tiny_instances(Portfolio, 0) if tiny.has_form(SimplexForm))
    lasso = next(tiny for tiny in tiny_instances(L1BallGLM, 0))
    linear, simplex = lasso.form(LinearForm), portfolio.form(SimplexForm)
    for wrong, problem, words in (
        (replace(linear, fit=replace(linear.fit, weights=2.0 * linear.fit.weights)), lasso, "objective"),
        (replace(simplex, mass=2.0), portfolio, "infeasible"),
        (replace(simplex, mass=0.5), portfolio, "infeasible"),
    ):
        with pytest.raises(AssertionError, match=words):
            wrong.check(problem, np.random.default_rng(0))


def test_kinds_ask_for_losses_and_norms() -> None:
    hinge, lasso = (next(iter(tiny_instances(kind, 0))).form(LinearForm) for kind in (L1InfHinge, L1BallGLM))
    split = Stacked((Penalty(L1(), 0.3), Constraint(Trace(), 0.7)))
    factored = FeatureNorm(L1(), np.ones((lasso.fit.design.n_features, 1)), True)
    heavier: Any = replace(lasso.fit, weights=2.0 * lasso.fit.weights)
    kinds: dict[str, Kind[Any]] = {
        "hinge loss under L1Inf": hinges_under(L1Inf), "hinge loss under TaskBalls": hinges_under(TaskBalls),
        "smooth loss under L1": loss_under("smooth", L1), "logistic loss under L1": loss_under("logistic", L1),
        "squared loss under L1 + Trace": SPARSE_PLUS_LOW_RANK, "smooth loss under L1Inf": loss_under("smooth", L1Inf),
    }  # fmt: skip
    assert [kind.name for kind in kinds.values()] == list(kinds)
    for form, label, taken in (
        (hinge, "hinge loss under L1Inf", {"hinge loss under L1Inf"}),
        (replace(hinge, regulariser=L1TaskBalls(np.ones(3))), "hinge loss under L1TaskBalls", {"hinge loss under TaskBalls"}),
        (lasso, "squared loss under L1", {"smooth loss under L1"}),
        (replace(lasso, regulariser=PenaltyAndRidge(split.parts[0], 0.1)), "squared loss with a ridge", set()),
        (replace(lasso, regulariser=Penalty(factored, 0.3)), "squared loss with factors or W >= 0", set()),
        (replace(lasso, regulariser=split), "squared loss under L1 + Trace", {"squared loss under L1 + Trace"}),
        (replace(lasso, regulariser=Stacked(split.parts[::-1])), "squared loss under Trace + L1", set()),
        (replace(lasso, fit=heavier, regulariser=split), "squared loss under L1 + Trace", set()),
        (replace(lasso, regulariser=Stacked((Penalty(L1("all", True), 0.3), split.parts[1]))), "squared loss under L1 + Trace", set()),
    ):
        assert form.label == label
        assert {name for name, kind in kinds.items() if is_of(form, kind)} == taken
