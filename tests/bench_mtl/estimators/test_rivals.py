"""MTRL, ASO and MTL(Omega, Sigma) as estimators: scikit-learn's checks, what they have besides coefficients, rows of their own, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from bench_mtl.core.errors import InputError
from bench_mtl.estimators import (
    ASOClassifier,
    ASORegressor,
    MatrixNormalClassifier,
    MatrixNormalRegressor,
    MTRLClassifier,
    MTRLRegressor,
)

#: Each with what a grid search may vary.
MODELS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "MTRLRegressor": (MTRLRegressor(), {"coupling": [0.01, 0.1]}),
    "MTRLClassifier": (MTRLClassifier(), {"coupling": [0.01, 0.1]}),
    "ASORegressor": (ASORegressor(n_components=1), {"penalty": [0.01, 0.1]}),
    "ASOClassifier": (ASOClassifier(n_components=1), {"penalty": [0.01, 0.1]}),
    "MatrixNormalRegressor": (MatrixNormalRegressor(), {"alpha_tasks": [0.01, 0.1]}),
    "MatrixNormalClassifier": (MatrixNormalClassifier(), {"alpha_tasks": [0.01, 0.1]}),
}
REGRESSORS = [name for name in MODELS if name.endswith("Regressor")]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6)) * (RNG.random((60, 6)) < 0.7)
Y = X @ np.outer(RNG.standard_normal(6), [1.0, -1.0, 2.0]) + 0.3 * RNG.standard_normal((60, 3)) + np.array([0.5, 0.0, -0.5])
LABELS = (Y > 0.0).astype(int)
SPANS = (slice(0, 10), slice(10, 50), slice(30, 60))

every_model = pytest.mark.parametrize("name", MODELS)


def model_of(name: str, **parameters: Any) -> Any:
    return clone(MODELS[name][0]).set_params(**parameters)


def targets_of(name: str) -> np.ndarray:
    return LABELS if is_classifier(MODELS[name][0]) else Y


@pytest.mark.parametrize(
    "name", [name if name == "MatrixNormalClassifier" else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
def test_the_checks_of_scikit_learn_pass(name: str) -> None:
    for model in (type(MODELS[name][0])(), model_of(name, fit_intercept=True)):
        results = check_estimator(model, on_skip=None)
        skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
        assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba"}


@every_model
def test_dense_and_sparse_rows_of_all_tasks_and_their_own(name: str) -> None:
    targets = targets_of(name)
    model = model_of(name, fit_intercept=True).fit(X, targets)
    assert model.converged_, model.message_
    assert model.n_iter_ >= 1
    assert model.coef_.shape == (3, 6)
    assert model.score(X, targets) > 0.6
    sparse = model_of(name, fit_intercept=True).fit(sp.csr_array(X), targets)
    np.testing.assert_allclose(sparse.coef_, model.coef_, rtol=1e-5, atol=1e-6)
    own = model_of(name, fit_intercept=True).fit_tasks([X] * 3, list(targets.T))
    np.testing.assert_allclose(own.coef_, model.coef_, atol=0.02)
    Xs, ys = [X[span] for span in SPANS], [targets[span, k] for k, span in enumerate(SPANS)]
    assert model_of(name, fit_intercept=True).fit_tasks(Xs, ys).score_tasks(Xs, ys) > 0.6


@every_model
def test_a_grid_search_works(name: str) -> None:
    search = GridSearchCV(MODELS[name][0], MODELS[name][1], cv=2).fit(X, targets_of(name))
    assert np.isfinite(search.best_score_)


@every_model
def test_objectives_and_gaps(name: str) -> None:
    model = model_of(name).fit(X, targets_of(name))
    assert np.isfinite(model.objective_)
    if name.startswith("MTRL"):
        assert 0.0 <= model.gap_ <= 1e-3
    else:
        assert not hasattr(model, "gap_")
        assert not hasattr(model, "dual_bound_")
        assert model.objectives_[-1] == model.objective_


@pytest.mark.parametrize("name", REGRESSORS)
def test_weights_are_repetitions(name: str) -> None:
    counts = np.arange(60) % 3
    weighted = model_of(name, tol=1e-7).fit(X, Y, sample_weight=2.5 * counts)
    repeated = model_of(name, tol=1e-7).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("name", REGRESSORS)
def test_one_target_is_a_vector(name: str) -> None:
    model = model_of(name).fit(X, Y[:, 0])
    assert model.coef_.shape == (6,)
    assert model.predict(X).shape == (60,)


def test_the_relationships_of_tasks_are_those_of_the_data() -> None:
    model = MTRLRegressor(coupling=0.1).fit(X, Y)
    assert np.trace(model.task_covariance_) == pytest.approx(1.0)
    spread = np.sqrt(np.diag(model.task_covariance_))
    correlations = model.task_covariance_ / np.outer(spread, spread)
    assert correlations[0, 1] < -0.9
    assert correlations[0, 2] > 0.9
    by_the_paper = MTRLRegressor(coupling=0.1, solver="alternating_relationships", solver_options={"perturbation": 1e-4}).fit(X, Y)
    np.testing.assert_allclose(by_the_paper.coef_, model.coef_, atol=0.02)
    assert np.allclose(MTRLRegressor(coupling=1e9).fit(X, 0.0 * Y).task_covariance_, np.eye(3) / 3)


def test_the_structure_is_that_of_the_coefficients() -> None:
    model = ASORegressor(penalty=10.0, n_components=1).fit(X, Y)
    assert model.structure_.shape == (1, 6)
    assert model.n_components_ == 1
    shared = model.coef_ @ model.structure_.T @ model.structure_
    assert np.linalg.norm(model.coef_ - shared) < 0.05 * np.linalg.norm(model.coef_)
    assert ASORegressor(n_components=9).fit(X, Y).n_components_ == 2


def test_many_features_go_through_a_basis() -> None:
    wide = np.hstack([X, RNG.standard_normal((60, 300))])
    with pytest.raises(InputError, match="there are 306 features, but max_features = 300"):
        MatrixNormalClassifier().fit(wide, LABELS)
    model = make_pipeline(TruncatedSVD(20, random_state=0), MatrixNormalClassifier()).fit(wide, LABELS)
    assert model[-1].feature_precision_.shape == (20, 20)
    assert model[-1].task_precision_.shape == (3, 3)


def test_a_fit_that_does_not_end_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter = 1 solver iteration: one iteration"):
        assert not ASORegressor(n_components=1, max_iter=1).fit(X, Y).converged_
    with pytest.warns(ConvergenceWarning, match="max_iter = 1 solver iteration: one turn"):
        assert not MatrixNormalRegressor(max_iter=1).fit(X, Y).converged_
