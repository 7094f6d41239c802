"""What people pass: labels and targets in any frame, any sparse matrix, folds without a class, groups, and the ends of the range."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((48, 4))
SCORES = X @ RNG.standard_normal((4, 2)) + 0.5 * RNG.standard_normal((48, 2))
TRUTHS = SCORES > 0.0
NAMES = ["left", "right"]

ESTIMATORS = [getattr(public, name) for name in public.__all__]
CLASSIFIERS = [cls for cls in ESTIMATORS if is_classifier(cls()) and not issubclass(cls, public.GroupSparseBoostingClassifier)]
REPRESENTATIVES = ("L1InfClassifier", "LinearSVMMultiTaskClassifier", "L1InfRegressor", "RidgeMultiTaskRegressor")


def each(classes: list[Any]) -> Any:
    """Parametrise by estimators; all but the representatives are slow."""
    marked = [pytest.param(cls, marks=[] if cls.__name__ in REPRESENTATIVES else pytest.mark.slow, id=cls.__name__) for cls in classes]
    return pytest.mark.parametrize("estimator", marked)


#: Labels of two tasks as frames.
FRAMES: dict[str, pd.DataFrame] = {
    "nullable integers": pd.DataFrame(TRUTHS.astype(int), columns=NAMES).astype("Int64"),
    "nullable truths": pd.DataFrame(TRUTHS, columns=NAMES).astype("boolean"),
    "truths": pd.DataFrame(TRUTHS, columns=NAMES),
    "truths and integers": pd.DataFrame({"left": TRUTHS[:, 0], "right": TRUTHS[:, 1].astype(int)}),
    "Arrow's integers": pd.DataFrame(TRUTHS.astype(int), columns=NAMES).astype("int8[pyarrow]"),
    "Arrow's truths": pd.DataFrame(TRUTHS, columns=NAMES).astype("bool[pyarrow]"),
    "words": pd.DataFrame(np.where(TRUTHS, "yes", "no"), columns=NAMES),
    "Arrow's words": pd.DataFrame(np.where(TRUTHS, "yes", "no"), columns=NAMES).astype("string[pyarrow]"),
    "words of their own": pd.DataFrame({"left": np.where(TRUTHS[:, 0], "up", "down"), "right": np.where(TRUTHS[:, 1], "red", "blue")}),
    "words and numbers": pd.DataFrame({"left": np.where(TRUTHS[:, 0], "up", "down"), "right": TRUTHS[:, 1].astype(int)}),
    "categories of words": pd.DataFrame(np.where(TRUTHS, "yes", "no"), columns=NAMES).astype("category"),
    "categories of numbers": pd.DataFrame(TRUTHS.astype(int), columns=NAMES).astype("Int64").astype("category"),
    "objects": pd.DataFrame(TRUTHS.astype(object), columns=NAMES),
    "sparse": pd.DataFrame(TRUTHS.astype(int), columns=NAMES).astype(pd.SparseDtype(int, 0)),
}


@pytest.mark.parametrize("kind", FRAMES)
@each(CLASSIFIERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_in_frames_are_labels(kind: str, estimator: Any) -> None:
    frame = FRAMES[kind]
    model, plain = estimator().fit(X, frame), estimator().fit(X, TRUTHS.astype(int))
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    predicted = model.predict(X)
    assert all(set(predicted[:, k]) <= set(frame.iloc[:, k]) for k in (0, 1))
    assert model.score(X, frame) == plain.score(X, TRUTHS.astype(int))
    assert model.score(X, pd.DataFrame(predicted)) == 1.0
    first = frame["left"]
    one = estimator().fit(X, first)
    assert one.score(X, first) == estimator().fit(X, TRUTHS[:, 0]).score(X, TRUTHS[:, 0])
    assert one.predict(X).ndim == 1
    if hasattr(model, "fit_tasks"):
        own = estimator().fit_tasks([X, X], [frame["left"], frame["right"]])
        assert own.score_tasks([X, X], [frame["left"], frame["right"]]) > 0.5


@pytest.mark.parametrize("kind", FRAMES)
def test_labels_in_frames_are_cross_validated_and_searched(kind: str) -> None:
    frame, truths = FRAMES[kind], TRUTHS.astype(int)
    model, cv = public.L1InfClassifier(2.0), KFold(3) if kind == "words and numbers" else 3  # which scikit-learn does not look at
    np.testing.assert_array_equal(cross_val_score(model, X, frame, cv=cv), cross_val_score(model, X, truths, cv=cv))
    grid = {"radius": [0.1, 2.0]}
    search, plain = (GridSearchCV(model, grid, cv=cv).fit(X, y) for y in (frame, truths))
    assert search.best_score_ == plain.best_score_ == cross_val_score(model.set_params(**search.best_params_), X, frame, cv=cv).mean()
    chosen, by_numbers = (public.L1InfClassifierCV([0.1, 2.0], cv=3).fit(X, y) for y in (frame, truths))
    np.testing.assert_array_equal(chosen.cv_scores_, by_numbers.cv_scores_)
    assert np.isfinite(cross_val_score(model, X, frame["left"], cv=3)).all()


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", "float64", "object", "category"])
def test_targets_in_frames_are_numbers(dtype: str) -> None:
    frame, plain = pd.DataFrame(SCORES, columns=NAMES).astype(dtype), public.L1InfRegressor(2.0).fit(X, SCORES)
    model = public.L1InfRegressor(2.0).fit(pd.DataFrame(X).astype("Float64" if dtype == "category" else dtype), frame)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.score(X, frame) == plain.score(X, SCORES)
    assert cross_val_score(model, X, frame, cv=3).min() > 0.0


def test_boosting_takes_the_same_labels() -> None:
    for kind in FRAMES:
        y = FRAMES[kind]["left"]
        assert public.GroupSparseBoostingClassifier(tol=0.1).fit(X, y).score(X, y) > 0.7, kind


def test_what_is_missing_is_named() -> None:
    y = FRAMES["nullable integers"].copy()
    y.iloc[7, 1] = pd.NA
    for model, targets in ((public.L1InfClassifier(), y), (public.L1InfClassifier(), y["right"]), (public.L1InfRegressor(), y)):
        with pytest.raises(InputError, match=r"^y has no value \(NaN\) in row 7$"):
            model.fit(X, targets)
    with pytest.raises(InputError, match="y of task 1 has no value"):
        public.L1InfClassifier().fit_tasks([X, X], [y["left"], y["right"]])


def sparse_kinds() -> dict[str, Any]:
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    long_indices = sp.csr_array(rows)
    long_indices.indices, long_indices.indptr = long_indices.indices.astype(np.int64), long_indices.indptr.astype(np.int64)
    old = sp.csr_matrix(rows)
    old.indices, old.indptr = old.indices.astype(np.int64), old.indptr.astype(np.int64)
    singles = sp.csr_array(rows.astype(np.float32).astype(float))
    return {
        "dense": rows, "64 bits": long_indices, "matrix of 64 bits": old, "coo": sp.coo_array(rows), "csc matrix": sp.csc_matrix(rows),
        "dia": sp.dia_array(rows), "lil": sp.lil_matrix(rows), "dok": sp.dok_array(rows), "frame": pd.DataFrame.sparse.from_spmatrix(old),
        "integers": sp.csr_array(np.rint(rows).astype(np.int8)) * 1, "singles": singles,
    }  # fmt: skip


@each(ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_examples_of_every_kind(estimator: Any) -> None:
    y = TRUTHS[:, 0].astype(int) if issubclass(estimator, public.GroupSparseBoostingClassifier) else TRUTHS.astype(int)
    expected = estimator().fit(sparse_kinds()["dense"], y)
    for kind, rows in sparse_kinds().items():
        model = estimator().fit(rows, y)
        assert model.predict(rows).shape == y.shape, kind
        if kind not in ("integers", "singles") and hasattr(expected, "objective_"):
            assert model.objective_ == pytest.approx(expected.objective_, rel=5e-3), kind


def test_a_fold_may_lack_a_class() -> None:
    """The first one is fitted without c, which has probability 0 there, and the others are scored without it."""
    y = np.where(np.arange(48) < 3, "c", np.where(TRUTHS[:, 0], "b", "a"))
    model = public.L1InfClassifierCV([1.0, 3.0], loss="logistic", cv=KFold(6), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(model.cv_scores_).all()
    assert model.classes_.tolist() == ["a", "b", "c"]
    known = public.L1InfClassifier(1.0, loss="logistic").fit(X[8:], y[8:]).predict_proba(X[:8])
    chances = [np.finfo(float).eps if label == "c" else row["ab".index(label)] for label, row in zip(y[:8], known, strict=True)]
    assert model.cv_scores_[0, 0] == pytest.approx(np.log(chances).mean(), rel=1e-2)


def test_groups_stay_together() -> None:
    groups = np.arange(48) // 8
    model = public.L1InfRegressorCV([0.5, 2.0], cv=GroupKFold(3)).fit(X, SCORES, groups=groups)
    by_splits = public.L1InfRegressorCV([0.5, 2.0], cv=list(GroupKFold(3).split(X, SCORES, groups))).fit(X, SCORES)
    np.testing.assert_array_equal(model.cv_scores_, by_splits.cv_scores_)
    own = clone(model).fit_tasks([X, X[:24]], [SCORES[:, 0], SCORES[:24, 1]], groups=[groups, groups[:24]])
    assert own.cv_scores_.shape == (2, 3)
    with pytest.raises(InputError, match="groups must have an entry for each of the 2 tasks, but has 1"):
        clone(model).fit_tasks([X, X[:24]], [SCORES[:, 0], SCORES[:24, 1]], groups=[groups])


def test_features_without_coefficients_are_left_out_where_that_is_asked_for() -> None:
    rows = np.hstack([X, RNG.standard_normal((48, 6))])
    model = public.L1InfRegressor(penalty="0.2 max")
    kept = SelectFromModel(model, threshold=1e-5).fit(rows, SCORES)
    np.testing.assert_array_equal(kept.get_support(), np.abs(kept.estimator_.coef_).max(axis=0) > 1e-5)
    assert SelectFromModel(model).fit(rows, SCORES).get_support().sum() <= kept.get_support().sum()


@each([cls for cls in ESTIMATORS if not cls.__name__.startswith("GroupSparse")])
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e160, 1e300])
def test_at_the_ends_of_the_range_a_fit_is_right_or_says_what_is_wrong(estimator: Any, size: float) -> None:
    y = TRUTHS.astype(int) if is_classifier(estimator()) else SCORES
    for rows, targets in ((X * size, y), (X, y if is_classifier(estimator()) else y * size)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason, model = "", estimator()
            try:
                model.fit(rows, targets)
            except InputError as error:
                reason = str(error)
            assert np.isfinite(model.coef_).all() if not reason else "whose squares are out of the range" in reason, reason


def test_separable_classes_end_soon_and_their_gap_is_what_is_said() -> None:
    rows = np.vstack([X + 5.0, X - 5.0])
    y = np.repeat([0, 1], 48)
    model = public.L1InfClassifier(100.0, loss="logistic", max_iter=2000).fit(rows, y)
    zero = 2.0 * 0.5 * np.log(2.0)
    assert model.converged_
    assert model.objective_ - model.dual_bound_ <= 1e-3 * max(model.objective_, 1e-3 * zero)
    assert model.gap_ == (model.objective_ - model.dual_bound_) / model.objective_
    same = public.RidgeMultiTaskRegressor().fit(X, np.full(48, 3.7))
    assert (same.objective_, same.dual_bound_, same.gap_) == (0.0, 0.0, 0.0)
