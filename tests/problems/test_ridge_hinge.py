"""The support vector machine: its bound, its optimum against a library's, bad input."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.conic import Conic
from bench_mtl.validation.conformance import check_weak_duality

RNG = np.random.default_rng(0)
X = RNG.standard_normal((15, 4))
Y = np.where(X @ RNG.standard_normal((4, 2)) + 0.7 * RNG.standard_normal((15, 2)) > 0.0, 1.0, -1.0)
PROBLEM = RidgeHinge(TaskData.shared(X, Y), ridge=0.1)


def test_the_objective_is_the_slides() -> None:
    W = RNG.standard_normal((4, 2))
    expected = sum(0.1 * W[:, k] @ W[:, k] + np.mean([max(0.0, 1.0 - Y[i, k] * X[i] @ W[:, k]) for i in range(15)]) for k in range(2))
    assert PROBLEM.objective(W) == pytest.approx(expected)


def test_the_bound_takes_the_best_scale_of_every_task() -> None:
    a = RNG.random((15, 2)) / 15
    expected = 0.0
    for k in range(2):
        G = X.T @ (a[:, k] * Y[:, k])
        scales = np.linspace(0.0, 1.0 / 15 / a[:, k].max(), 100_001)
        expected += (scales * a[:, k].sum() - scales**2 * (G @ G) / 0.4).max()
    assert PROBLEM.dual_bound(PROBLEM.zero(), a * Y) == pytest.approx(expected, rel=1e-8)
    assert PROBLEM.dual_bound(PROBLEM.zero(), 1e-7 * a * Y) == pytest.approx(expected, rel=1e-8)


def test_the_optimum_is_that_of_a_support_vector_machine() -> None:
    from sklearn.svm import LinearSVC

    record = run(PROBLEM, Conic(), tolerance=Tolerance(1e-8))
    assert record.status is Status.VERIFIED, record.reason
    assert record.solution is not None
    for k in range(2):
        svc = LinearSVC(loss="hinge", C=1.0 / (0.2 * 15), fit_intercept=False, tol=1e-6, max_iter=100_000).fit(X, Y[:, k])
        assert np.allclose(record.solution[:, k], svc.coef_[0], atol=1e-3)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("ridge", [1e-12, 1e12])
def test_extreme_data_have_finite_bounds(scale: float, ridge: float) -> None:
    problem = RidgeHinge(TaskData.shared(scale * X, Y), ridge=ridge)
    check_weak_duality(problem, np.random.default_rng(0))
    if ridge == 1e12 and scale < 1.0:
        assert problem.certify(Iterate(problem.zero())).relative_gap < 1e-12


def test_one_feature_one_example_and_features_of_zeros() -> None:
    empty = X.copy()
    empty[:, 1] = 0.0
    for data in (TaskData.shared(X[:, :1], Y), TaskData.shared(X[:1], Y[:1]), TaskData.shared(empty, Y), TaskData.shared(0.0 * X, Y)):
        record = run(RidgeHinge(data, ridge=0.1), Conic(), tolerance=Tolerance(1e-6))
        assert record.status is Status.VERIFIED, record.reason


def test_held_out_errors_are_measured() -> None:
    data = dataclasses.replace(TaskData.shared(X, Y), held_out=TaskData.shared(sp.csr_array(X), np.where(Y > 0, 1.0, -1.0)))
    problem = RidgeHinge(data, ridge=0.1)
    W = RNG.standard_normal((4, 2))
    assert problem.measures(W) == {"held-out error": pytest.approx(np.mean(np.sign(X @ W) != Y))}
    assert PROBLEM.measures(W) == {}


def test_labels_0_1_are_converted_and_said_so() -> None:
    with pytest.warns(UserWarning, match=r"labels 0/1 were converted to -1/\+1"):
        problem = RidgeHinge(TaskData.shared(X, (Y + 1) / 2), ridge=0.1)
    assert problem.notes == ("labels 0/1 were converted to -1/+1",)
    assert problem.objective(X.T @ Y) == pytest.approx(PROBLEM.objective(X.T @ Y))


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, "much"])
def test_bad_ridges_are_refused(ridge: object) -> None:
    with pytest.raises(InputError, match="ridge must be"):
        RidgeHinge(TaskData.shared(X, Y), ridge=ridge)  # type: ignore[arg-type]


def test_other_labels_are_refused() -> None:
    with pytest.raises(InputError, match="labels must be"):
        RidgeHinge(TaskData.shared(X, X[:, :2]), ridge=1.0)
