"""Cross-validation along paths: every fit is proven, scores are those of a slow twin, grids, weights, rows of their own, bad input."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimator_table import CHOICES
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError
from bench_mtl.estimators import L1BallClassifierCV, L1BallRegressorCV, L1InfClassifierCV, L1InfRegressor, L1InfRegressorCV

RNG = np.random.default_rng(0)
X = RNG.standard_normal((45, 5))
Y = X @ (RNG.standard_normal((5, 3)) * np.array([1.0, 1.0, 1.0, 0.0, 0.0])[:, None]) + 0.5 * RNG.standard_normal((45, 3))
LABELS = (Y > 0.0).astype(int)
CLASSES = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
FOLDS = KFold(3)


def targets_of(model: Any) -> np.ndarray:
    return LABELS if is_classifier(model) else Y


def likelihood(model: Any, X: Any, y: Any) -> float:
    """Minus the mean logistic loss of labels 0 and 1."""
    return -float(np.logaddexp(0.0, -(2 * y - 1) * model.decision_function(X)).mean())


def settings_of(model: Any) -> list[dict[str, float]]:
    """Return what is tried, from the simplest: radii rise, penalties fall."""
    grids = {name: values for name in model.tuned if (values := getattr(model, f"{name}_grid")) is not None}
    ordered = {name: sorted(values, reverse=name != "radius") for name, values in grids.items()}
    return [dict(zip(ordered, values, strict=True)) for values in itertools.product(*ordered.values())]


def test_every_choice_is_tested() -> None:
    assert set(CHOICES) == {name for name in public.__all__ if name.endswith("CV")}


@pytest.mark.parametrize("name", CHOICES)
def test_scores_and_choice_are_those_of_a_loop_of_fits_from_zero(name: str) -> None:
    model = clone(CHOICES[name]).set_params(cv=FOLDS, tol=1e-8)
    scoring, options = (likelihood, {"loss": model.loss}) if is_classifier(model) else (None, {})
    targets = targets_of(model)
    model.set_params(scoring=scoring).fit(X, targets)
    settings = settings_of(model)
    scores = np.empty((len(settings), 3))
    for f, (fitted, left_out) in enumerate(FOLDS.split(X)):
        for i, setting in enumerate(settings):
            plain = model.plain(tol=1e-8, **options, **setting).fit(X[fitted], targets[fitted])
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
    again = model.plain(tol=1e-8, **options, **model.best_params_).fit(X, targets)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert (model.objective_, model.dual_bound_, model.n_iter_) == (again.objective_, again.dual_bound_, again.n_iter_)


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
    ("model", "penalised", "norm"),
    [
        (L1InfRegressorCV(3), L1InfRegressor, lambda W: np.abs(W).max(axis=0).sum()),
        (L1InfClassifierCV(3), public.L1InfClassifier, lambda W: np.abs(W).max(axis=0).sum()),
        (L1BallRegressorCV(3), public.OneNormRegressor, lambda W: np.abs(W).sum(axis=1).max()),
        (L1BallClassifierCV(3), public.OneNormClassifier, lambda W: np.abs(W).sum(axis=1).max()),
        (public.TraceNormRegressorCV(3), public.TraceNormRegressor, lambda W: np.linalg.norm(W, "nuc")),
        (public.SparseLowRankRegressorCV([100.0], 3), public.TraceNormRegressor, lambda W: np.linalg.norm(W, "nuc")),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_number_of_radii_rises_to_the_norm_under_a_small_penalty(model: Any, penalised: Any, norm: Any) -> None:
    model = clone(model).set_params(cv=2, tol=1e-2).fit(X, targets_of(model))
    np.testing.assert_allclose(model.radius_grid_[1:] / model.radius_grid_[:-1], 10.0, rtol=1e-9)
    largest = norm(penalised(penalty="0.001 max", tol=1e-6).fit(X, targets_of(model)).coef_)
    assert model.radius_grid_[-1] == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_radii_are_those_of_models_with_an_intercept_as_here(loss: str) -> None:
    rows = np.random.default_rng(0).standard_normal((60, 4)) + 5.0
    y = (rows[:, 0] > 5.0).astype(int)
    radii = L1BallClassifierCV(3, loss=loss, fit_intercept=False, cv=2, tol=1e-2).fit(rows, y).radius_grid_
    alone = public.OneNormClassifier("0.001 max", loss=loss, fit_intercept=False, tol=1e-6).fit(rows, y)
    assert radii[-1] == pytest.approx(np.abs(alone.coef_).sum(), rel=0.1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_radii_of_hinges_are_those_of_squares_with_an_intercept(kind: Any) -> None:
    """Also of features that are far from 0."""
    rows = np.random.default_rng(0).standard_normal((60, 4)) + 50.0
    y = (rows[:, 0] > 50.0).astype(int)
    radii = L1BallClassifierCV(3, cv=2, tol=1e-2).fit(kind(rows), y).radius_grid_
    squares = public.OneNormClassifier("0.001 max", loss="squared", tol=1e-6).fit(rows, y)
    assert radii[-1] == pytest.approx(np.abs(squares.coef_).sum(), rel=0.1)


# Folds


def test_folds_are_given_as_scikit_learn_takes_them() -> None:
    model = L1BallRegressorCV([1.0, 2.0], tol=1e-2)
    by_number = clone(model).set_params(cv=3).fit(X, Y)
    for cv in (FOLDS, list(FOLDS.split(X)), FOLDS.split(X)):
        np.testing.assert_array_equal(model.set_params(cv=cv).fit(X, Y).cv_scores_, by_number.cv_scores_)
    assert model.set_params(cv=None).fit(X, Y).cv_scores_.shape == (2, 5)
    classes = L1BallClassifierCV([1.0, 2.0], cv=3, loss="squared").fit(X[np.argsort(CLASSES)], np.sort(CLASSES))  # classes in equal shares
    assert classes.best_score_ > 0.5
    search = GridSearchCV(L1InfRegressorCV([1.0, 4.0], cv=2), {"reduction": ["mean", "sum"]}, cv=2).fit(X, Y)
    assert np.isfinite(search.best_score_)


@pytest.mark.parametrize("model", [L1InfRegressorCV([1.0, 3.0], cv=2), L1InfClassifierCV([1.0, 3.0], cv=2, loss="squared")])
def test_targets_may_be_sparse(model: Any) -> None:
    targets = np.maximum(Y, 0.0) if not is_classifier(model) else LABELS
    scores = clone(model).fit(X, sp.csr_array(targets)).cv_scores_
    np.testing.assert_allclose(scores, clone(model).fit(X, targets).cv_scores_, rtol=1e-2)


def test_a_fold_may_lack_a_class() -> None:
    """The first one is fitted without c, which has probability 0 there, and the others are scored without it."""
    y = np.where(np.arange(45) < 3, "c", np.where(LABELS[:, 0], "b", "a"))
    model = L1InfClassifierCV([1.0, 3.0], loss="logistic", cv=KFold(5), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(model.cv_scores_).all()
    assert model.classes_.tolist() == ["a", "b", "c"]
    known = public.L1InfClassifier(1.0, loss="logistic").fit(X[9:], y[9:]).predict_proba(X[:9])
    chances = [np.finfo(float).eps if label == "c" else row["ab".index(label)] for label, row in zip(y[:9], known, strict=True)]
    assert model.cv_scores_[0, 0] == pytest.approx(np.log(chances).mean(), rel=1e-2)


def test_groups_stay_together() -> None:
    groups = np.arange(45) // 8
    model = L1InfRegressorCV([0.5, 2.0], cv=GroupKFold(3)).fit(X, Y, groups=groups)
    by_splits = L1InfRegressorCV([0.5, 2.0], cv=list(GroupKFold(3).split(X, Y, groups))).fit(X, Y)
    np.testing.assert_array_equal(model.cv_scores_, by_splits.cv_scores_)
    own = clone(model).fit_tasks([X, X[:24]], [Y[:, 0], Y[:24, 1]], groups=[groups, groups[:24]])
    assert own.cv_scores_.shape == (2, 3)
    with pytest.raises(InputError, match="groups must be a list with an entry for each task, not 3"):
        L1InfRegressorCV([1.0], cv=GroupKFold(2)).fit_tasks([X, X], [Y[:, 0], Y[:, 1]], groups=3)
    with pytest.raises(InputError, match="groups must have an entry for each of the 2 tasks, but has 1"):
        clone(model).fit_tasks([X, X[:24]], [Y[:, 0], Y[:24, 1]], groups=[groups])


def test_weights_are_numbers_of_copies_of_the_choice_too() -> None:
    weights = np.arange(45) % 3
    copies = np.repeat(np.arange(45), weights)
    splits = [(rows, others) for rows, others in FOLDS.split(X)]
    repeated = [(np.flatnonzero(np.isin(copies, rows)), np.flatnonzero(np.isin(copies, others))) for rows, others in splits]
    for model, targets in (
        (L1InfRegressorCV([1.0, 3.0], tol=1e-7), Y),
        (L1InfClassifierCV([1.0, 3.0], tol=1e-7, loss="squared"), LABELS),
        (L1BallClassifierCV([1.0, 3.0], tol=1e-7, loss="logistic", scoring="neg_log_loss"), CLASSES),
    ):
        weighted = clone(model).set_params(cv=splits).fit(X, targets, sample_weight=weights)
        counted = clone(model).set_params(cv=repeated).fit(X[copies], targets[copies])
        np.testing.assert_allclose(weighted.cv_scores_, counted.cv_scores_, atol=1e-3)
        assert weighted.radius_ == counted.radius_
        assert weighted.objective_ == pytest.approx(counted.objective_, rel=1e-6)


def test_tasks_with_rows_of_their_own() -> None:
    spans = (slice(0, 12), slice(12, 45), slice(20, 45))
    Xs, ys = [X[span] for span in spans], [Y[span, k] for k, span in enumerate(spans)]
    labelled = public.DirtyClassifierCV(["0.5 max", "0.1 max"], [0.1], cv=KFold(2)).fit_tasks(Xs, [y > 0.0 for y in ys])
    assert labelled.cv_scores_.shape == (2, 2)
    assert labelled.cv_gaps_.max() <= 1e-3
    rows = [list(KFold(3).split(x)) for x in Xs]
    regressor = L1InfRegressorCV([0.5, 4.0], cv=3, tol=1e-7)
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
    with pytest.raises(InputError, match="cv must leave two examples of a task"):
        clone(regressor).set_params(cv=6).fit_tasks([x[:6] for x in Xs], [y[:6] for y in ys])
    with pytest.raises(InputError, match="sample_weight must be None"):
        regressor.fit_tasks(Xs, ys, [None] * 3)
    with pytest.raises(InputError, match="fold 0: y of task 1 has only one class"):
        L1BallClassifierCV([1.0, 2.0], cv=KFold(2)).fit_tasks([X[:10]] * 2, [LABELS[:10, 0], np.arange(10) < 5])


def test_labels_of_tasks_that_are_not_observed_are_left_out_of_folds() -> None:
    for missing, ones in ((np.nan, [0.0, 1.0]), (None, ["a", "b"])):
        ys = [np.array(ones, dtype=object)[LABELS[:, k]] for k in range(2)]
        ys[0][3] = missing
        assert np.isfinite(L1InfClassifierCV([1.0, 3.0], tol=1e-2).fit_tasks([X, X], [list(y) for y in ys]).cv_scores_).all()


# What is refused, and what is said


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"radius_grid": 1}, "radius_grid must be a whole number of at least 2"),
    ({"radius_grid": 2.5}, "radius_grid must be a number of values or a list of values, not 2.5"),
    ({"radius_grid": "many"}, "radius_grid must be a number of values or a list of values, not 'many'"),
    ({"radius_grid": []}, "radius_grid must have at least one value"),
    ({"radius_grid": [1.0, -1.0]}, "radius_grid must be finite and at least 0, not -1"),
    ({"radius_grid": ["0.1 max"]}, "radius_grid must be a number, not '0.1 max'"),
    ({"radius_grid": None, "penalty_grid": ["a lot"]}, "penalty_grid must be a number of at least 0, or a share"),
    ({"penalty_grid": [1.0]}, "give at most one of radius_grid and penalty_grid"),
    ({"grid_ratio": 1.0}, "grid_ratio must be above 0 and below 1, not 1"),
    ({"grid_ratio": 0.0}, "grid_ratio must be above 0 and below 1, not 0"),
    ({"cv": 1}, r"cv: k-fold cross-validation requires at least one train/test split"),
    ({"cv": "leave one out"}, r"cv: Expected `cv` as an integer"),
    ({"cv": [3]}, "cv: "),
    ({"cv": [([0, 1], [99])]}, "cv must give rows of the 45 examples"),
    ({"cv": []}, "cv gives no folds"),
    ({"cv": [([0, 1], np.array([], int))]}, "cv must leave rows to fit to and rows to score on in each fold"),
    ({"cv": GroupKFold(2)}, r"cv: The 'groups' parameter should not be None"),
    ({"scoring": "neg_log_los"}, "scoring: .*'neg_log_los'"),
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
    model.set_params(radius_grid=None, penalty_grid=[0.1], scoring=None).fit(X, Y)  # another fit forgets what was chosen before
    assert (model.penalty_, model.best_params_) == (0.1, {"penalty": 0.1})
    assert not hasattr(model, "radius_")
    assert not hasattr(model, "radius_grid_")


def test_fits_above_their_gap_are_said_once_and_their_gaps_are_kept() -> None:
    model = L1InfRegressorCV([0.5, 2.0], cv=2, tol=1e-12, max_iter=1, solver="projected_gradient")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2
    assert messages[0].startswith("4 of the 4 fits in folds ended above tol = 1e-12: proven gaps reach")
    assert messages[1].startswith("limit of 1 iteration, relative gap")
    assert {warning.filename for warning in caught} == {__file__}
    assert not model.cv_converged_.any()
    assert model.cv_gaps_.min() > 1e-12
