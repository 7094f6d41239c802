"""Cross-validation along paths: every fit is proven, scores are those of a slow twin, grids, weights, rows of their own, bad input."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError
from bench_mtl.estimators import L1BallClassifierCV, L1BallRegressorCV, L1InfClassifierCV, L1InfRegressor, L1InfRegressorCV

RNG = np.random.default_rng(0)
X = RNG.standard_normal((45, 5))
Y = X @ (RNG.standard_normal((5, 3)) * np.array([1.0, 1.0, 1.0, 0.0, 0.0])[:, None]) + 0.5 * RNG.standard_normal((45, 3))
LABELS = (Y > 0.0).astype(int)
CLASSES = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
FOLDS = KFold(3)

#: A choice of each kind. Labels have losses whose optimum has only one set of predictions.
CHOICES: dict[str, Any] = {
    type(model).__name__: model
    for model in (
        public.DirtyClassifierCV([0.05, 0.2], [0.02], loss="logistic"),
        public.DirtyRegressorCV([0.2, 0.02], [0.01, 0.1]),
        L1BallClassifierCV([4.0, 1.0], loss="logistic"),
        L1BallRegressorCV([0.5, 2.0, 3.0]),
        L1InfClassifierCV([1.0, 3.0], loss="logistic"),
        L1InfRegressorCV(penalty_grid=[0.01, 0.1]),
        public.SparseLowRankClassifierCV([1.0], [1.0, 3.0], loss="logistic"),
        public.SparseLowRankRegressorCV([1.0, 5.0], [3.0, 1.0]),
        public.TraceNormClassifierCV([1.0, 3.0], loss="logistic"),
        public.TraceNormRegressorCV(penalty_grid=[1.0, 10.0]),
    )
}
every_choice = pytest.mark.parametrize("name", CHOICES)


def choice_of(name: str, **parameters: Any) -> Any:
    return clone(CHOICES[name]).set_params(cv=FOLDS, **parameters)


def plain_of(name: str, **parameters: Any) -> Any:
    model = CHOICES[name]
    return model.plain(**({"loss": model.loss} if is_classifier(model) else {}), **parameters)


def targets_of(model: Any) -> np.ndarray:
    return LABELS if is_classifier(model) else Y


def likelihood(model: Any, X: Any, y: Any) -> float:
    """Minus the mean logistic loss of labels 0 and 1."""
    return -float(np.logaddexp(0.0, -(2 * y - 1) * model.decision_function(X)).mean())


def settings_of(model: Any) -> list[dict[str, float]]:
    """Return what is tried, from the simplest: radii rise, penalties fall."""
    grids = {
        name.removesuffix("_grid"): values for name, values in model.get_params().items() if name.endswith("_grid") and values is not None
    }
    ordered = {name: sorted(grids[name], reverse=name != "radius") for name in model.tuned if name in grids}
    return [dict(zip(ordered, values, strict=True)) for values in itertools.product(*ordered.values())]


def test_every_choice_is_tested() -> None:
    assert set(CHOICES) == {name for name in public.__all__ if name.endswith("CV")}


@every_choice
def test_scores_and_choice_are_those_of_a_loop_of_fits_from_zero(name: str) -> None:
    scoring = likelihood if is_classifier(CHOICES[name]) else None
    model = choice_of(name, tol=1e-8, scoring=scoring)
    targets = targets_of(model)
    model.fit(X, targets)
    settings = settings_of(model)
    scores = np.empty((len(settings), 3))
    for f, (fitted, left_out) in enumerate(FOLDS.split(X)):
        for i, setting in enumerate(settings):
            plain = plain_of(name, tol=1e-8, **setting).fit(X[fitted], targets[fitted])
            scores[i, f] = (scoring or type(plain).score)(plain, X[left_out], targets[left_out])
    np.testing.assert_allclose(model.cv_scores_, scores, atol=1e-3)
    assert model.cv_gaps_.shape == model.cv_converged_.shape == scores.shape
    assert model.cv_converged_.all()
    assert model.cv_gaps_.max() <= 1e-8
    assert model.best_index_ == scores.mean(axis=1).argmax()
    assert model.best_params_ == settings[model.best_index_]
    assert model.best_score_ == model.cv_scores_[model.best_index_].mean()
    for parameter, value in model.best_params_.items():
        assert getattr(model, f"{parameter}_") == value
        assert getattr(model, f"{parameter}_grid_").tolist() == [setting[parameter] for setting in settings]
    again = plain_of(name, tol=1e-8, **model.best_params_).fit(X, targets)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert (model.objective_, model.dual_bound_, model.gap_, model.n_iter_) == (
        again.objective_, again.dual_bound_, again.gap_, again.n_iter_,
    )  # fmt: skip


# Grids


def test_a_number_of_penalties_falls_from_the_smallest_that_leaves_nothing() -> None:
    model = L1InfRegressorCV(penalty_grid=4, cv=2, tol=1e-2).fit(X, Y)
    largest = np.abs(X.T @ (Y - Y.mean(axis=0)) / len(X)).sum(axis=1).max()
    np.testing.assert_allclose(model.penalty_grid_, largest * 10.0 ** -np.arange(4.0), rtol=1e-9)
    assert not hasattr(model, "radius_")
    shares = L1InfRegressorCV(penalty_grid=["0.1 max", "1 max", largest, "0.1 max"], cv=2, tol=1e-2).fit(X, Y)
    np.testing.assert_allclose(shares.penalty_grid_[[0, -1]], [largest, 0.1 * largest], rtol=1e-9)
    pairs = public.SparseLowRankRegressorCV(2, [1.0], cv=2, tol=1e-2, grid_ratio=0.01).fit(X, Y)
    products = X.T @ (Y - Y.mean(axis=0))
    np.testing.assert_allclose(pairs.penalty_grid_, np.abs(products).max() * np.array([1.0, 0.01]), rtol=1e-9)
    dirty = public.DirtyRegressorCV(2, 2, cv=2, tol=1e-2, grid_ratio=0.01).fit(X, Y)
    G = np.abs(products / len(X))
    np.testing.assert_allclose(dirty.row_penalty_grid_, G.sum(axis=1).max() * np.array([1.0, 1.0, 0.01, 0.01]), rtol=1e-9)
    np.testing.assert_allclose(dirty.entry_penalty_grid_, G.max() * np.array([1.0, 0.01, 1.0, 0.01]), rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "norm"),
    [
        (L1InfRegressorCV(3), lambda W: np.abs(W).max(axis=0).sum()),
        (L1InfClassifierCV(3), lambda W: np.abs(W).max(axis=0).sum()),
        (L1BallRegressorCV(3), lambda W: np.abs(W).sum(axis=1).max()),
        (L1BallClassifierCV(3), lambda W: np.abs(W).sum(axis=1).max()),
        (public.TraceNormRegressorCV(3), lambda W: np.linalg.norm(W, "nuc")),
        (public.SparseLowRankRegressorCV([100.0], 3), lambda W: np.linalg.norm(W, "nuc")),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_number_of_radii_rises_to_the_norm_under_a_small_penalty(model: Any, norm: Any) -> None:
    targets = targets_of(model)
    model = clone(model).set_params(cv=2, tol=1e-2).fit(X, targets)
    np.testing.assert_allclose(model.radius_grid_[1:] / model.radius_grid_[:-1], 10.0, rtol=1e-9)
    if type(model).__name__.startswith("L1Inf"):
        penalised = model.plain(penalty="0.001 max", tol=1e-6).fit(X, targets)
    elif type(model).__name__.startswith("L1Ball"):
        penalised = public.OneNormRegressor("0.001 max", tol=1e-6).fit(X, 2.0 * targets - 1.0 if is_classifier(model) else targets)
    else:
        penalised = public.TraceNormRegressor(penalty="0.001 max", tol=1e-6).fit(X, targets)
    assert model.radius_grid_[-1] == pytest.approx(norm(penalised.coef_), rel=0.1)


# What scikit-learn's users do


@pytest.mark.parametrize(
    "model",
    [
        L1BallRegressorCV([1.0, 2.0], cv=2, tol=1e-2),
        pytest.param(L1InfClassifierCV(2, cv=2, loss="logistic", tol=1e-9), marks=pytest.mark.slow),
        *(pytest.param(clone(model).set_params(cv=2), marks=pytest.mark.slow) for model in CHOICES.values()),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # rows far from unit size, at parameters that suit others
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_the_checks_of_scikit_learn_pass(model: Any) -> None:
    results = check_estimator(model, on_skip=None)
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba"}


def test_pipelines_searches_copies_frames_and_sparse_rows() -> None:
    import pandas as pd

    model = L1InfClassifierCV([1.0, 4.0], loss="logistic", cv=2, scoring="neg_log_loss", fit_intercept=True)
    fitted = clone(model).fit(X, CLASSES)
    assert fitted.cv_scores_.shape == (2, 2)
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert fitted.predict_proba(X).shape == (45, 3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).coef_, fitted.coef_)
    sparse = clone(fitted).fit(sp.coo_array(X), CLASSES.tolist())
    np.testing.assert_allclose(sparse.cv_scores_, fitted.cv_scores_, atol=0.02)
    assert sparse.objective_ == pytest.approx(fitted.objective_, rel=2e-3)
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = L1InfRegressorCV([1.0, 4.0], cv=FOLDS).fit(frame, pd.DataFrame(Y, columns=["x", "y", "z"]))
    assert named.feature_names_in_.tolist() == list("abcde")
    assert named.task_names_.tolist() == ["x", "y", "z"]
    assert make_pipeline(StandardScaler(), model).fit(X, CLASSES).score(X, CLASSES) > 0.7
    search = GridSearchCV(L1InfRegressorCV([1.0, 4.0], cv=2), {"reduction": ["mean", "sum"]}, cv=2).fit(X, Y)
    assert np.isfinite(search.best_score_)


def test_folds_are_given_as_scikit_learn_takes_them() -> None:
    model = L1BallRegressorCV([1.0, 2.0], tol=1e-2)
    by_number = clone(model).set_params(cv=3).fit(X, Y)
    for cv in (FOLDS, list(FOLDS.split(X)), FOLDS.split(X)):
        np.testing.assert_array_equal(model.set_params(cv=cv).fit(X, Y).cv_scores_, by_number.cv_scores_)
    assert model.set_params(cv=None).fit(X, Y).cv_scores_.shape == (2, 5)
    classes = L1BallClassifierCV([1.0, 2.0], cv=3, loss="squared").fit(X[np.argsort(CLASSES)], np.sort(CLASSES))  # classes in equal shares
    assert classes.best_score_ > 0.5


def test_weights_are_numbers_of_copies_of_the_choice_too() -> None:
    weights = np.arange(45) % 3
    copies = np.repeat(np.arange(45), weights)
    splits = [(rows, others) for rows, others in FOLDS.split(X)]
    repeated = [(np.flatnonzero(np.isin(copies, rows)), np.flatnonzero(np.isin(copies, others))) for rows, others in splits]
    for model, targets, scoring in (
        (L1InfRegressorCV([1.0, 3.0], tol=1e-7), Y, None),
        (L1InfClassifierCV([1.0, 3.0], tol=1e-7, loss="squared"), LABELS, None),
        (L1BallClassifierCV([1.0, 3.0], tol=1e-7, loss="logistic"), CLASSES, "neg_log_loss"),
    ):
        model.set_params(scoring=scoring)
        weighted = clone(model).set_params(cv=splits).fit(X, targets, sample_weight=weights)
        counted = clone(model).set_params(cv=repeated).fit(X[copies], targets[copies])
        np.testing.assert_allclose(weighted.cv_scores_, counted.cv_scores_, atol=1e-3)
        assert weighted.radius_ == counted.radius_
        assert weighted.objective_ == pytest.approx(counted.objective_, rel=1e-6)


def test_tasks_with_rows_of_their_own() -> None:
    spans = (slice(0, 12), slice(12, 45), slice(20, 45))
    Xs = [X[span] for span in spans]
    for model in (
        L1InfRegressorCV([0.5, 4.0], cv=3, fit_intercept=True),
        public.DirtyClassifierCV(["0.5 max", "0.1 max"], [0.1], cv=KFold(2)),
    ):
        ys = [targets_of(model)[span, k] for k, span in enumerate(spans)]
        model.fit_tasks(Xs, ys)
        assert model.cv_scores_.shape == (2, 3 if model.cv == 3 else 2)
        assert model.cv_gaps_.max() <= 1e-3
        assert model.score_tasks(Xs, ys) > 0.5
    rows = [list(KFold(3).split(x)) for x in Xs]
    regressor = L1InfRegressorCV([0.5, 4.0], cv=3, tol=1e-7)
    ys = [Y[span, k] for k, span in enumerate(spans)]
    scores = [
        [
            L1InfRegressor(radius, tol=1e-7)
            .fit_tasks([x[r[f][0]] for x, r in zip(Xs, rows, strict=True)], [y[r[f][0]] for y, r in zip(ys, rows, strict=True)])
            .score_tasks([x[r[f][1]] for x, r in zip(Xs, rows, strict=True)], [y[r[f][1]] for y, r in zip(ys, rows, strict=True)])
            for f in range(3)
        ]
        for radius in (0.5, 4.0)
    ]
    np.testing.assert_allclose(regressor.fit_tasks(Xs, ys).cv_scores_, scores, atol=1e-3)
    for parameters, message in (
        ({"scoring": "r2"}, "scoring must be None for tasks"),
        ({"cv": rows[0]}, "cv must be a number of folds or a splitter for tasks"),
        ({"cv": 13}, "cv: Cannot have number of splits"),
    ):
        with pytest.raises(InputError, match=message):
            clone(regressor).set_params(**parameters).fit_tasks(Xs, ys)
    with pytest.raises(InputError, match="sample_weight must be None"):
        regressor.fit_tasks(Xs, ys, [None] * 3)
    with pytest.raises(InputError, match="fold 0: y of task 1 has only one class"):
        L1BallClassifierCV([1.0, 2.0], cv=KFold(2)).fit_tasks([X[:10]] * 2, [LABELS[:10, 0], np.arange(10) < 5])


# What is refused, and what is said


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"radius_grid": 1}, "radius_grid must be a whole number of at least 2"),
    ({"radius_grid": True}, "radius_grid must be a whole number"),
    ({"radius_grid": 2.5}, "radius_grid must be a number of values or a list of values, not 2.5"),
    ({"radius_grid": "many"}, "radius_grid must be a number of values or a list of values, not 'many'"),
    ({"radius_grid": []}, "radius_grid must have at least one value"),
    ({"radius_grid": [1.0, -1.0]}, "radius_grid must be finite and at least 0, not -1"),
    ({"radius_grid": ["0.1 max"]}, "radius_grid must be a number, not '0.1 max'"),
    ({"radius_grid": None, "penalty_grid": ["a lot"]}, "penalty_grid must be a number of at least 0, or a share"),
    ({"penalty_grid": [1.0]}, "give at most one of radius_grid and penalty_grid"),
    ({"grid_ratio": 1.0}, "grid_ratio must be below 1, not 1"),
    ({"grid_ratio": 0.0}, "grid_ratio must be finite and above 0"),
    ({"cv": 1}, r"cv: k-fold cross-validation requires at least one train/test split"),
    ({"cv": "leave one out"}, r"cv: Expected `cv` as an integer"),
    ({"cv": GroupKFold(2)}, r"cv: The 'groups' parameter should not be None"),
    ({"scoring": "neg_log_los"}, "unknown scoring 'neg_log_los': did you mean 'neg_log_loss'"),
    ({"scoring": ["r2"]}, r"scoring must be the name of a score, a callable, or None, not \['r2'\]"),
    ({"scoring": lambda model, X, y: np.nan}, "scoring gives no number for any setting"),
    ({"tol": 0.0}, "tol must be finite and above 0"),
    ({"reduction": "median"}, "reduction must be one of"),
    ({"solver": "magic"}, "unknown solver 'magic'"),
)


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_parameters_are_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        L1InfRegressorCV(radius_grid=[1.0], cv=2).set_params(**parameters).fit(X, Y)


def test_a_fold_with_one_class_and_scores_that_weigh_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="fold 0: y of task 0 has only one class"):
        L1BallClassifierCV([1.0], cv=KFold(2)).fit(X[:10], np.column_stack([np.arange(10) < 5, LABELS[:10, 0]]).astype(int))
    model = L1BallRegressorCV([1.0], cv=3, scoring=lambda model, X, y: model.score(X, y))
    with pytest.raises(InputError, match="scoring must take a keyword sample_weight"):
        model.fit(X, Y, sample_weight=np.ones(45))
    with pytest.raises(InputError, match="cv: the examples to score on in fold 0 have no weight"):
        model.set_params(scoring=None).fit(X, Y, sample_weight=np.arange(45) >= 15)


def test_settings_without_a_score_are_not_chosen_and_that_is_said() -> None:
    model = L1InfRegressorCV([0.5, 2.0], cv=2, tol=1e-2, scoring=lambda model, X, y: np.nan if model.radius == 2.0 else 0.0)
    with pytest.warns(UserWarning, match=r"^1 of the 2 settings have a fold whose score is NaN, and are not chosen$"):
        model.fit(X, Y)
    assert model.radius_ == 0.5


def test_fits_above_their_gap_are_said_once_and_their_gaps_are_kept() -> None:
    model = L1InfRegressorCV([0.5, 2.0], cv=2, tol=1e-12, max_iter=1, solver="projected_gradient")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2
    assert messages[0].startswith("4 of the 4 fits in folds ended above tol = 1e-12: proven gaps reach")
    assert messages[1].startswith("proven relative gap")
    assert {warning.filename for warning in caught} == {__file__}
    assert not model.cv_converged_.any()
    assert model.cv_gaps_.min() > 1e-12


def test_another_fit_forgets_what_the_one_before_chose() -> None:
    model = L1InfRegressorCV([1.0], cv=2, tol=1e-2).fit(X, Y)
    model.set_params(radius_grid=None, penalty_grid=[0.1]).fit(X, Y)
    assert (model.penalty_, model.best_params_) == (0.1, {"penalty": 0.1})
    assert not hasattr(model, "radius_")
    assert not hasattr(model, "radius_grid_")
