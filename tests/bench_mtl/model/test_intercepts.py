"""Free intercepts: exact balance of dual points, best intercepts against a plain search, largest penalties, and what is centred."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from bench_mtl import InputError, Limits, TaskData, Tolerance, load_registry, run
from bench_mtl.core.designs import PerTaskDesign, SharedDesign
from bench_mtl.core.rounding import UNIT, Interval
from bench_mtl.model.forms import Hinges
from bench_mtl.model.intercepts import centred, exactly_balanced
from bench_mtl.model.linear_loss import LinearFit, example_weights
from bench_mtl.model.losses import LOSSES
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.regularisers import Penalty

pytestmark = pytest.mark.numerics

REGISTRY = load_registry()
rng = np.random.default_rng(0)
SHARED = SharedDesign(rng.standard_normal((12, 3)), 4)
OWN = PerTaskDesign([rng.standard_normal((n, 3)) for n in (5, 9, 7)])


def sums(dual: Any, design: Any) -> list[Fraction]:
    """Sums in exact arithmetic."""
    return [sum(map(Fraction, design.task_outputs(dual, k).tolist()), Fraction(0)) for k in range(design.n_tasks)]


@given(arrays(np.float64, (12, 4), elements=st.floats(-1e12, 1e12)))
def test_balanced_duals_add_up_to_nothing_at_all_and_are_no_larger(dual: Any) -> None:
    found = exactly_balanced(dual, SHARED)
    assert sums(found, SHARED) == [0] * 4
    assert np.all(np.abs(found) <= np.abs(dual))
    assert np.all(found * dual >= 0.0)


def test_what_is_balanced_already_hardly_moves() -> None:
    dual = rng.standard_normal(OWN.output_shape)
    for k in range(3):
        OWN.task_outputs(dual, k)[:] -= OWN.task_outputs(dual, k).mean()
    found = exactly_balanced(dual, OWN)
    assert sums(found, OWN) == [0] * 3
    np.testing.assert_allclose(found, dual, atol=1e-12)
    one_sided = exactly_balanced(np.abs(dual), OWN)
    assert not one_sided.any()


def labels_of(design: Any, positive: float = 0.4) -> Any:
    return np.where(rng.random(design.output_shape) < positive, 1.0, -1.0)


@pytest.mark.parametrize("design", [SHARED, OWN], ids=["shared", "own"])
@pytest.mark.parametrize("name", ["squared", "logistic", "hinge", "quantile"])
def test_intercepts_are_the_best_ones_task_by_task(name: str, design: Any) -> None:
    loss, y = LOSSES[name], labels_of(design)
    t, w = 3.0 * rng.standard_normal(design.output_shape) + 5.0, example_weights(design, "mean")
    fit = LinearFit(design, y, loss, w, intercept=True)
    b = fit.intercepts(t)
    total = 0.0
    for k in range(design.n_tasks):
        t_k, y_k, w_k = (design.task_outputs(each, k) for each in (t, y, w))

        def f(shift: float, t_k: Any = t_k, y_k: Any = y_k, w_k: Any = w_k) -> float:
            return loss.total(t_k + shift, y_k, w_k)

        least = min(minimize_scalar(f, bounds=bounds, method="bounded", options={"xatol": 1e-10}).fun for bounds in ((-30, 30), (-8, 2)))
        assert f(b[k]) <= least + 1e-8
        total += f(b[k])
    assert fit.value(t) == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(design.task_sums(fit.derivatives(t)), 0.0, atol=1e-12)
    lower, upper = fit.enclose(Interval.exact(t)).ends
    assert lower <= total <= upper * (1 + 1e-12)


def test_active_hinges_are_balanced_and_a_subgradient_even_at_ties() -> None:
    X = np.repeat(rng.standard_normal((4, 2)), 3, axis=0)
    design = SharedDesign(X, 2)
    labels = np.where(np.arange(24).reshape(12, 2) % 3 == 0, 1.0, -1.0)
    hinges = Hinges(LinearFit(design, labels, LOSSES["hinge"], example_weights(design, "mean"), True), Penalty(L1Inf(), 0.0))
    W = rng.standard_normal((2, 2))
    margins = hinges.margins(W)
    a = hinges.duals(margins)
    assert sums(hinges.labels * a, design) == [0, 0]
    assert hinges.loss(margins) == pytest.approx(float((a * (1.0 - margins)).sum()), rel=1e-12)
    for _ in range(20):
        V = W + rng.standard_normal((2, 2))
        plane = hinges.loss(margins) - float((hinges.adjoint(a) * (V - W)).sum())
        assert hinges.loss(hinges.margins(V)) >= plane - 1e-12


@pytest.mark.parametrize("name", ["l1inf_hinge", "l12_hinge"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_largest_penalty_of_unequal_classes_is_the_smallest_that_leaves_nothing(name: str, share: float) -> None:
    """W = 0 is proven with it, and is not optimal with a little less; of many features, and whatever the order of examples."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((60, 70)) + 3.0
    scores = X @ draw.standard_normal((70, 2))
    labels = np.where(np.quantile(scores, [1.0 - share, 0.6], axis=0)[[0, 1], [0, 1]] < scores, 1.0, -1.0)
    order = draw.permutation(60)
    forms = (
        TaskData.shared(X, labels), TaskData.shared(sp.csr_array(X[order]), labels[order]),
        TaskData.per_task([X, X[order]], [labels[:, 0], labels[order, 1]]),
    )  # fmt: skip
    problems = [REGISTRY.problem(name).from_data(data, penalty="1 max", intercept=True) for data in forms]
    largest = problems[0].penalty
    assert [problem.penalty for problem in problems] == pytest.approx([largest] * 3, rel=1e-6)
    zero = problems[0].objective(problems[0].zero())

    def enclosure(factor: float) -> Any:
        problem = REGISTRY.problem(name).from_data(forms[0], penalty=factor * largest, intercept=True)
        return run(problem, "auto", tolerance=Tolerance(1e-5), limits=Limits(seconds=30.0)).best

    assert enclosure(1.0).dual >= zero * (1.0 - 1e-4)
    assert enclosure(0.9).primal <= zero * (1.0 - 1e-4)
    if share == 0.1:  # where all of the other class count alike
        uniform = np.linalg.norm(problems[0].gradient_at_zero(), 1 if name == "l1inf_hinge" else 2, axis=1).max()
        assert largest < 0.7 * uniform


@pytest.mark.parametrize("name", ["l1inf_hinge", "l12_hinge"])
def test_a_task_whose_labels_are_all_the_same_adds_nothing_to_the_largest_penalty(name: str) -> None:
    draw = np.random.default_rng(0)
    X, labels = draw.standard_normal((30, 5)), np.where(draw.random((30, 2)) < 0.3, 1.0, -1.0)
    labels[:, 1] = -1.0
    both, first = (
        REGISTRY.problem(name).from_data(TaskData.shared(X, Y), penalty="1 max", intercept=True) for Y in (labels, labels[:, :1])
    )
    assert both.penalty == pytest.approx(first.penalty, rel=1e-5)


def tasks(name: str, offset: float = 3.0) -> TaskData:
    X = rng.standard_normal((40, 6)) + offset
    T = X @ (rng.standard_normal((6, 3)) * (rng.random((6, 1)) < 0.6))
    if name == "squared":
        return TaskData.shared(X, T + 100.0)
    return TaskData.shared(X, np.where(np.quantile(T, 0.7, axis=0) < T, 1.0, -1.0))


def test_centred_data_are_those_of_the_best_intercept() -> None:
    data = tasks("squared")
    W = rng.standard_normal((6, 3))
    residuals = data.targets - data.design.forward(W)
    made, centres = centred(data)
    np.testing.assert_allclose(centres.intercepts(W), residuals.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(made.targets - made.design.forward(W), residuals - residuals.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("value", [3.7, -0.1, 1e-200, 1e200, 0.0])
@pytest.mark.parametrize("n", [3, 60, 1001])
def test_what_is_constant_is_centred_to_nothing(value: float, n: int) -> None:
    X = np.column_stack([np.full(n, value), np.arange(float(n)), 1e6 + 1e-3 * np.arange(float(n))])
    for data in (TaskData.shared(X, np.full((n, 2), value)), TaskData.per_task([X, X], [np.full(n, value)] * 2)):
        made, centres = centred(data)
        assert not made.targets.any()
        for k in range(2):
            block = made.design.block(k)
            assert not block[:, 0].any()
            np.testing.assert_allclose(block[:, 1:], X[:, 1:] - X[:, 1:].mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(centres.targets, value, rtol=1e-12)


@pytest.mark.parametrize("place", [0, 500, 999])
def test_an_outlier_costs_the_other_entries_no_digits(place: int) -> None:
    x = 0.1 * np.arange(1000.0)
    x[place] = 1e12
    made, _ = centred(TaskData.shared(x[:, None], np.ones((1000, 1))))
    found = made.design.block(0)[:, 0]
    for i, j in zip(range(999), range(1, 1000), strict=True):
        exact = Fraction(x[j]) - Fraction(x[i])
        assert abs(Fraction(found[j]) - Fraction(found[i]) - exact) <= 6 * Fraction(UNIT) * Fraction(abs(found[i]) + abs(found[j]))


#: Examples, targets, weights, and a dual point with coefficients: some W and b explain all targets, so that the optimum is 0.
AT_THE_ENDS: list[tuple[list[list[float]], float | None, float, float]] = [
    ([[1e300, 2.0**52], [1e300, 2.0**52 + 1.0]], None, 1.0, 0.5),
    ([[1e-30], [3e-30]], 1e-300, 1e31, 2.5e29),
    ([[1e10], [2e10]], 1e300, 1.0, 1e-11),
    ([[1e-200], [3e-200]], None, 1e201, 2.5e199),
]


@pytest.mark.parametrize(("X", "weight", "radius", "slope"), AT_THE_ENDS)
def test_bounds_with_intercepts_hold_at_the_ends_of_the_range(
    X: list[list[float]], weight: float | None, radius: float, slope: float
) -> None:
    weights = None if weight is None else [weight, weight]
    data = TaskData.shared(X, [[0.0], [1.0]], weights=weights)
    problem = REGISTRY.problem("l1inf_glm").from_data(data, radius=radius, reduction="mean" if weights is None else "sum", intercept=True)
    W = np.zeros(problem.point_shape)
    W[-1] = slope
    for dual in ([[-1.0], [0.0]], [[-1.0], [1.0]], [[0.5], [-0.5]]):
        with np.errstate(all="ignore"):
            assert problem.dual_bound(W, np.array(dual)) <= 0.0
            assert problem.objective(W) >= 0.0


def test_what_takes_no_intercept_says_so() -> None:
    data = tasks("labels")
    problem = REGISTRY.problem("l1inf_hinge").from_data(data, intercept=True, radius=1.0)
    assert "takes no free intercept" in str(REGISTRY.solver("pdhg").incompatibility(problem))
    with pytest.raises(InputError, match="intercept must be true or false"):
        REGISTRY.problem("l1inf_hinge").from_data(data, intercept="yes", radius=1.0)
    classes = TaskData.shared(rng.standard_normal((6, 2)), np.eye(3)[np.arange(6) % 3])
    with pytest.raises(InputError, match="intercept must be false with the loss 'multiclass'"):
        REGISTRY.problem("l1_ball_glm").from_data(classes, loss="multiclass", radius=1.0, intercept=True)
