"""`certify` proves the gap of coefficients from anywhere: of other libraries, of estimators, of nobody."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, MultiTaskLasso
from sklearn.svm import LinearSVC

from bench_mtl import InputError, TaskData, certify, run
from bench_mtl.problems import L1BallGLM, L1InfGLM, L1InfHinge, RidgeHinge

X, Y = load_diabetes(return_X_y=True)
CANCER, SICK = load_breast_cancer(return_X_y=True)
CANCER = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
LABELS = np.where(SICK == 1, 1.0, -1.0)


def lasso(tol: float):
    model = Lasso(alpha=0.1, tol=tol, max_iter=10**6).fit(X, Y)
    # scikit-learn has the mean of the squares, this problem their sum
    return L1BallGLM(TaskData.shared(X, Y[:, None]), penalty=0.1 * len(Y), intercept=True), model


def logistic(tol: float):
    options = {"C": 0.1, "l1_ratio": 1.0, "solver": "saga", "max_iter": 10**5, "fit_intercept": False, "random_state": 0}
    model = LogisticRegression(tol=tol, **options).fit(CANCER, LABELS)
    return L1BallGLM(TaskData.shared(CANCER, LABELS[:, None]), loss="logistic", penalty=1.0 / (0.1 * len(LABELS))), model


def machine(tol: float):
    model = LinearSVC(C=0.1, loss="hinge", tol=tol, max_iter=10**6, fit_intercept=False, random_state=0).fit(CANCER, LABELS)
    return RidgeHinge(TaskData.shared(CANCER, LABELS[:, None]), ridge=0.5 / (0.1 * len(LABELS))), model


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
@pytest.mark.parametrize("make", [lasso, logistic, machine])
def test_the_gap_of_another_library_is_proven_within_twice_the_true_one(make, tol: float) -> None:
    problem, model = make(tol)
    found = certify(problem, model)
    best = run(problem, "auto", tolerance=1e-10, limits=20.0).best
    assert found.lower <= best.primal
    assert found.upper == problem.objective(problem.repair(np.atleast_2d(model.coef_).T))
    assert found.upper - found.lower <= 2.001 * max(found.upper - best.dual, 1e-9 * found.upper)
    assert ("better coefficients are known" in str(found)) == (found.relative_gap > 1e-9)


def test_estimators_have_tasks_by_features_and_arrays_the_shape_of_a_point() -> None:
    targets = np.stack([Y, X[:, 2] * 100.0], axis=1)
    problem = L1InfGLM(TaskData.shared(X, targets), penalty=1.0, intercept=True)
    model = MultiTaskLasso(alpha=0.1).fit(X, targets)
    by_model, by_array = certify(problem, model), certify(problem, model.coef_.T)
    assert (by_model.lower, by_model.upper) == (by_array.lower, by_array.upper)
    with pytest.raises(InputError, match=r"shape \(10, 2\), but has \(2, 10\)"):
        certify(problem, model.coef_)
    with pytest.raises(InputError, match="Lasso has no coef_"):
        certify(problem, Lasso())
    with pytest.raises(InputError, match="no eps, but solver and limits"):
        certify(problem, model, eps=1e-3)
    with pytest.raises(InputError, match="the array of coefficients has NaN"):
        certify(problem, np.full(problem.point_shape, np.nan))
    with pytest.raises(InputError, match="values must be the coefficients"):
        certify(problem)


def test_what_leaves_the_constraint_is_projected_and_said() -> None:
    problem = L1InfHinge(TaskData.shared(CANCER, LABELS[:, None]), radius=0.5)
    found = certify(problem, LinearRegression(fit_intercept=False).fit(CANCER, LABELS))
    assert found.status == "infeasible"
    assert "leave the constraint by" in str(found)
    assert found.lower <= run(problem, "auto", tolerance=1e-8).best.primal <= found.upper
