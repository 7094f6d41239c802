"""Weights of classes and of tasks, and targets that are not observed: each is the fit that somebody would make by hand."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimator_table import CLASSES, LABELS, MODELS, X, Y, model_of, own_rows, targets_of
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError

GONE = np.random.default_rng(1).random(Y.shape) < 0.25
GONE[5] = True
PARTLY = np.where(GONE, np.nan, Y)
SEEN = [np.flatnonzero(~gone) for gone in GONE.T]
BY_TASK = [X[rows] for rows in SEEN], [Y[rows, k] for k, rows in enumerate(SEEN)]

WEIGHING = (
    "L1InfClassifier(radius=3.0)", "L12Classifier(loss='logistic', penalty='0.1 max')", "OneNormClassifier()",
    "L2BallClassifier(radius=2.0)", "TraceNormClassifier(loss='logistic', radius=2.0)", "MTRLClassifier()",
    "LinearSVMMultiTaskClassifier(random_state=0)", "RidgeMultiTaskClassifier()",
)  # fmt: skip


def balanced(y: np.ndarray) -> np.ndarray:
    labels, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    return (len(y) / (len(labels) * counts))[places]


@pytest.mark.parametrize("name", WEIGHING)
def test_weights_of_classes_are_those_of_their_examples(name: str) -> None:
    by_class = model_of(name, class_weight="balanced").fit(X, CLASSES)
    np.testing.assert_array_equal(by_class.coef_, model_of(name).fit(X, CLASSES, sample_weight=balanced(CLASSES)).coef_)
    others = 0.5 + np.arange(60) % 2
    chosen = model_of(name, class_weight={"a": 2.5}).fit(X, CLASSES, sample_weight=others)
    by_hand = model_of(name).fit(X, CLASSES, sample_weight=np.where(CLASSES == "a", 2.5, 1.0) * others)
    np.testing.assert_array_equal(chosen.coef_, by_hand.coef_)
    assert (chosen.objective_, chosen.dual_bound_) == (by_hand.objective_, by_hand.dual_bound_)
    Xs, ys = own_rows(name)
    tasks = model_of(name, class_weight="balanced").fit_tasks(Xs, ys)
    np.testing.assert_array_equal(tasks.coef_, model_of(name).fit_tasks(Xs, ys, [balanced(y) for y in ys]).coef_)


#: Round balls smooth their hinges for long, with intercepts above all: the test above has these.
OF_TASKS = [(name, is_free) for name in WEIGHING for is_free in (True, False) if not (is_free and name.startswith("L2Ball"))]


@pytest.mark.parametrize(("name", "fit_intercept"), OF_TASKS)
def test_tasks_that_share_their_examples_have_weights_of_their_own_classes(name: str, fit_intercept: bool) -> None:
    tol = 1e-5 if name.startswith(("L1Inf", "L2Ball")) else 1e-9
    model = model_of(name, tol=tol, fit_intercept=fit_intercept, class_weight="balanced").fit(X, LABELS)
    plain = model_of(name, tol=tol, fit_intercept=fit_intercept)
    apart = plain.fit_tasks([X] * 3, list(LABELS.T), [balanced(y) for y in LABELS.T])
    assert model.objective_ == pytest.approx(apart.objective_, rel=2.0 * tol)
    assert max(model.dual_bound_, apart.dual_bound_) <= min(model.objective_, apart.objective_) * (1.0 + 1e-12)
    np.testing.assert_allclose(model.predict(X), apart.predict(X), atol=0.5)


def test_a_dict_may_name_labels_of_several_tasks_and_words_of_digits() -> None:
    words, levels = np.where(LABELS[:, 0] > 0, "yes", "no"), np.where(LABELS[:, 1] > 0, "high", "low")
    model = public.RidgeMultiTaskClassifier(class_weight={"yes": 2.0, "high": 3.0})
    weights = [np.where(words == "yes", 2.0, 1.0), np.where(levels == "high", 3.0, 1.0)]
    by_hand = public.RidgeMultiTaskClassifier().fit_tasks([X, X], [words, levels], weights)
    np.testing.assert_array_equal(model.fit_tasks([X, X], [words, levels]).coef_, by_hand.coef_)
    np.testing.assert_allclose(model.fit(X, np.column_stack([words, levels])).coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)
    digits = np.where(LABELS[:, 0] > 0, "1", "0")
    of_words = model.set_params(class_weight={"0": 1.0, "1": 3.0}).fit(X, digits)
    plain = public.RidgeMultiTaskClassifier().fit(X, digits, sample_weight=np.where(digits == "1", 3.0, 1.0))
    np.testing.assert_array_equal(of_words.coef_, plain.coef_)


def test_a_dict_may_name_a_class_that_a_fold_lacks() -> None:
    classes = np.repeat(["a", "b", "c"], 20)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    model = public.TraceNormClassifierCV(penalty_grid=["0.1 max"], cv=folds, class_weight={"c": 2.0}).fit(X, classes)
    assert model.cv_converged_.all()
    with pytest.raises(InputError, match=r"^class_weight: no task has the label 'x'"):
        model.set_params(class_weight={"x": 2.0}).fit(X, classes)


def test_large_whole_weights_are_weights_of_the_loss_and_no_copies() -> None:
    model = public.L1InfClassifier(radius=2.0, tol=1e-6)
    few, many = (model._read(X, CLASSES, np.where(CLASSES == "a", weight, 1)).data for weight in (2, 100))
    assert few.weights is None
    assert many.weights is not None
    assert (many.design.sizes[0], few.design.sizes[0]) == (60, 60 + np.count_nonzero(CLASSES == "a"))
    weighed = model.fit(X, CLASSES, sample_weight=np.where(CLASSES == "a", 100, 1))
    rows = np.repeat(np.arange(60), np.where(CLASSES == "a", 100, 1))
    copies = clone(model).fit(X[rows], CLASSES[rows])
    assert weighed.objective_ == pytest.approx(copies.objective_, rel=1e-5)


def test_nan_of_any_float_in_lists_and_none_in_lists_of_labels_are_not_observed() -> None:
    lists = [[np.float32(value) for value in row] for row in PARTLY]
    expected = public.L12Regressor(2.0).fit(X, PARTLY.astype(np.float32).astype(float))
    np.testing.assert_array_equal(public.L12Regressor(2.0).fit(X, lists).coef_, expected.coef_)
    labels = [[None if gone else int(label) for label, gone in zip(*rows, strict=True)] for rows in zip(LABELS, GONE, strict=True)]
    chosen = public.L1InfClassifierCV(penalty_grid=["0.1 max"], loss="logistic", cv=3)
    arrays = clone(chosen).fit(X, np.where(GONE, np.nan, LABELS))
    np.testing.assert_array_equal(chosen.fit(X, labels).cv_scores_, arrays.cv_scores_)


def test_weights_that_are_no_weights_of_classes() -> None:
    model = public.OneNormClassifier()
    for weights, message in (
        ("even", "class_weight: .*'balanced'"),
        ({"a": 0.0}, "class_weight of 'a' must be finite and above 0, not 0"),
        ({"a": 1.0, "x": 2.0}, "class_weight: no task has the label 'x'"),
    ):
        with pytest.raises(InputError, match=message):
            model.set_params(class_weight=weights).fit(X, CLASSES)
    with pytest.raises(InputError, match="class_weight must be None with the loss 'logistic' of ASOClassifier"):
        public.ASOClassifier(loss="logistic", class_weight="balanced").fit(X, LABELS)


# Weights of tasks

TASKS = np.array([2.0, 0.5, 1.0])


def half_squares(model: Any) -> np.ndarray:
    return 0.5 * (Y - X @ model.coef_.T - model.intercept_) ** 2


def test_the_loss_of_each_task_is_multiplied_by_its_weight() -> None:
    """After its mean is taken, where there is one; of hinges, squares and squared hinges, in a row space too."""
    mean = public.L1InfRegressor(penalty=0.1, task_weights=TASKS, tol=1e-8).fit(X, Y)
    by_hand = TASKS @ half_squares(mean).mean(axis=0) + 0.1 * np.abs(mean.coef_).max(axis=0).sum()
    assert mean.objective_ == pytest.approx(by_hand, rel=1e-9)
    hinges = public.L1InfClassifier(2.0, task_weights=list(TASKS)).fit(X, LABELS)
    losses = np.maximum(0.0, 1.0 - (2 * LABELS - 1) * (X @ hinges.coef_.T + hinges.intercept_)).mean(axis=0)
    assert hinges.objective_ == pytest.approx(TASKS @ losses, rel=1e-9)
    machine = public.LinearSVMMultiTaskClassifier(2.0, task_weights=TASKS, fit_intercept=False, tol=1e-6).fit(X, LABELS)
    squares = np.maximum(0.0, 1.0 - (2 * LABELS - 1) * (X @ machine.coef_.T)) ** 2
    assert machine.objective_ == pytest.approx(0.5 * (machine.coef_**2).sum() + 2.0 * TASKS @ squares.sum(axis=0), rel=1e-9)
    related = public.MTRLRegressor(0.1, 0.2, task_weights=TASKS).fit(X, Y)
    norms = 0.05 * (related.coef_**2).sum() + 0.1 * np.linalg.norm(related.coef_, "nuc") ** 2
    assert related.objective_ == pytest.approx(2.0 * TASKS @ half_squares(related).mean(axis=0) + norms, rel=1e-9)
    wide = np.random.default_rng(0).standard_normal((60, 200))
    low_rank = public.TraceNormRegressor(penalty=5.0, task_weights=TASKS, tol=1e-6).fit(wide, Y)
    rest = 0.5 * (Y - wide @ low_rank.coef_.T - low_rank.intercept_) ** 2
    assert low_rank.gap_ <= 1e-6
    assert low_rank.objective_ == pytest.approx(TASKS @ rest.sum(axis=0) + 5.0 * np.linalg.norm(low_rank.coef_, "nuc"), rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        public.L12Regressor(penalty=2.0, reduction="sum", tol=1e-10), public.OneNormRegressor(2.0, tol=1e-10),
        public.TraceNormClassifier(penalty=1.0, loss="logistic", tol=1e-10),
        public.L12Classifier(penalty=2.0, loss="logistic", reduction="sum", tol=1e-10),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_in_a_sum_weights_of_tasks_are_copies_of_their_examples(model: Any) -> None:
    y = LABELS if is_classifier(model) else Y
    weighted = clone(model).set_params(task_weights=[2.0, 3.0, 1.0]).fit(X, y)
    copies = clone(model).fit_tasks([np.tile(X, (n, 1)) for n in (2, 3, 1)], [np.tile(y[:, k], n) for k, n in enumerate((2, 3, 1))])
    assert weighted.objective_ == pytest.approx(copies.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, copies.coef_, atol=1e-4)


def test_weights_that_are_no_weights_of_tasks() -> None:
    for wrong in ([1.0, 2.0], [1.0, 0.0, 1.0], 2.0):
        with pytest.raises(InputError, match="task_weights must be 3 numbers above 0, one a task"):
            public.OneNormRegressor(task_weights=wrong).fit(X, Y)


# Targets that are not observed

MASKED = sorted(
    name
    for name in MODELS
    if name.split("(")[0] not in ("L1BallClassifier", "L2BallClassifier", "SparseLowRankClassifier", "MatrixNormalClassifier")
)


@pytest.mark.parametrize("name", MASKED)
def test_a_target_that_is_not_observed_is_a_row_that_its_task_does_without(name: str) -> None:
    targets = targets_of(name)
    weights = np.arange(60) % 3 + 1
    masked = model_of(name).fit(X, np.where(GONE, np.nan, targets), weights)
    apart = model_of(name).fit_tasks(BY_TASK[0], [targets[rows, k] for k, rows in enumerate(SEEN)], [weights[rows] for rows in SEEN])
    np.testing.assert_array_equal(masked.coef_, apart.coef_)
    np.testing.assert_array_equal(masked.intercept_, apart.intercept_)
    assert masked.predict(X).shape == (60, 3)
    own = model_of(name).fit_tasks([X] * 3, list(np.where(GONE, np.nan, targets).T), [weights] * 3)
    np.testing.assert_array_equal(own.coef_, apart.coef_)


def test_what_is_not_observed_may_be_written_in_many_ways() -> None:
    plain = public.L1InfClassifier(2.0).fit(X, np.where(GONE, np.nan, LABELS))
    words = np.where(LABELS == 1, "yes", "no").astype(object)
    words[GONE] = None
    frame = pd.DataFrame(LABELS, columns=list("xyz")).astype("Int64").mask(GONE)
    for y in (words, words.tolist(), pd.DataFrame(words), frame, *(frame.astype(kind) for kind in ("boolean", "Float64", "category"))):
        model = public.L1InfClassifier(2.0).fit(X, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert model.score(X, y) == plain.score(X, np.where(GONE, np.nan, LABELS))
    assert public.L1InfClassifier(2.0).fit(X, frame).classes_[0].tolist() == [0, 1]
    assert set(public.L1InfClassifier(2.0).fit(X, words).predict(X).ravel()) == {"yes", "no"}
    vector = public.L1InfRegressor(2.0).fit(X, PARTLY[:, 0])
    np.testing.assert_array_equal(vector.coef_, public.L1InfRegressor(2.0).fit(X[SEEN[0]], Y[SEEN[0], 0]).coef_)
    rows = np.where(np.arange(60)[:, None] % 4 == 0, np.nan, Y)  # of no task
    kept = np.arange(60) % 4 != 0
    np.testing.assert_array_equal(public.L12Regressor(2.0).fit(X, rows).coef_, public.L12Regressor(2.0).fit(X[kept], Y[kept]).coef_)


def test_scores_are_those_of_the_observed_targets() -> None:
    model = public.L1InfRegressor(3.0).fit(X, PARTLY)
    predicted = model.predict(X)
    by_task = [r2_score(Y[rows, k], predicted[rows, k]) for k, rows in enumerate(SEEN)]
    assert model.score(X, PARTLY) == pytest.approx(np.mean(by_task), rel=1e-12)
    for targets in (list(PARTLY.T), [column[:, None] for column in PARTLY.T]):
        assert model.score_tasks([X] * 3, targets) == pytest.approx(np.mean(by_task), rel=1e-12)
    labels = np.where(GONE, np.nan, LABELS)
    classifier = public.L1InfClassifier(3.0).fit(X, labels)
    right = (classifier.predict(X) == LABELS) | GONE
    assert classifier.score(X, labels) == right.all(axis=1)[~GONE.all(axis=1)].mean()
    for scored in (model, classifier):
        with pytest.raises(InputError, match="y has no observed value to score"):
            scored.score(X, np.full(Y.shape, np.nan))


def test_settings_are_chosen_by_observed_targets() -> None:
    folds, by_hand = KFold(3), []
    model = public.L1InfRegressorCV([0.5, 3.0], cv=folds, tol=1e-7).fit(X, PARTLY)
    for rows, others in folds.split(X):
        fits = [public.L1InfRegressor(radius, tol=1e-7).fit(X[rows], PARTLY[rows]) for radius in (0.5, 3.0)]
        by_hand.append([fit.score(X[others], PARTLY[others]) for fit in fits])
    np.testing.assert_allclose(model.cv_scores_, np.transpose(by_hand), atol=1e-3)
    search = GridSearchCV(public.L1InfRegressor(tol=1e-7), {"radius": [0.5, 3.0]}, cv=folds).fit(X, PARTLY)
    assert search.best_params_ == model.best_params_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(by_hand, axis=0), rtol=1e-12)
    labels = np.where(GONE, np.nan, LABELS)
    chosen = public.DirtyClassifierCV(["0.2 max"], ["0.2 max", "0.05 max"], cv=3).fit(X, labels)
    assert np.isfinite(chosen.cv_scores_).all()
    assert np.isfinite(cross_val_score(public.L12Classifier(2.0), X, labels, cv=folds)).all()
    own = public.L1InfRegressorCV([0.5, 3.0], cv=3).fit_tasks([X] * 3, list(PARTLY.T))
    assert np.isfinite(own.cv_scores_).all()


def test_what_cannot_do_without_a_target_says_so() -> None:
    y = np.where(np.arange(60) == 7, None, CLASSES)
    with pytest.raises(InputError, match=r"^y has no value \(NaN\) in row 7: classes in one vector need that of each example$"):
        public.L1InfClassifier().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        public.GroupSparseBoostingClassifier().fit(X, np.where(np.arange(60) == 7, np.nan, LABELS[:, 0]))
    nothing = np.where(np.arange(3) == 1, np.nan, Y)
    with pytest.raises(InputError, match="y of task 1 has no observed value"):
        public.L1InfRegressor().fit(X, nothing)
    with pytest.raises(InputError, match="y of task 1 has no observed value"):
        public.L1InfRegressor().fit_tasks([X] * 3, list(nothing.T))
    with pytest.raises(InputError, match="y of task 0 has only one class"):
        public.L1InfClassifier().fit(X, np.where((LABELS == 0) & (np.arange(3) == 0), np.nan, LABELS))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.where(np.arange(60) == 7, np.nan, 1.0), "sample_weight"), (np.where(np.arange(60) == 7, -1.0, 1.0), "sample_weight"),
        (np.ones(59), "sample_weight"), (np.ones(1), "sample_weight"), (math.nan, "sample_weight must be finite"),
    ],
)  # fmt: skip
def test_weights_of_a_score_are_checked_as_those_of_a_fit(weights: Any, message: str) -> None:
    model = public.L1InfClassifier(5.0).fit(X, CLASSES)
    for call in (model.fit, model.score):
        with pytest.raises(InputError, match=message):
            call(X, CLASSES, sample_weight=weights)
    assert model.score(X, CLASSES, sample_weight=2.0) == model.score(X, CLASSES)
