"""Laws of the estimators: scikit-learn's checks, proven gaps, rows of their own, intercepts, weights, labels, frames, bad input."""

import inspect
import re
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimator_table import (
    CHOICES,
    CLASSES,
    ESTIMATORS,
    LABELS,
    MODELS,
    RNG,
    SPANS,
    X,
    Y,
    every_model,
    is_convex,
    model_of,
    own_rows,
    representatives,
    targets_of,
)
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import LinearTaskClassifier, of_one_against_all, of_two_classes

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)

#: Those that end at another point within their gap where the same examples come in another order, or as copies, while scikit-learn wants
#: seven digits. (Of optimum and bound there is a test below.)
APART = (
    "L1BallRegressor(radius=4.0)", "OneNormClassifier(loss='logistic', penalty=0.02)", "OneNormClassifier()",
    "L1BallClassifier(loss='squared')", "RidgeMultiTaskClassifier()",
)  # fmt: skip

#: Those that end there at the default tolerance alone: at this one they are the same to seven digits.
CLOSE: dict[str, dict[str, float]] = {
    "L12Regressor(penalty='0.05 max', reduction='sum')": {"tol": 1e-9}, "SparseLowRankRegressorCV": {"tol": 1e-10},
}  # fmt: skip

CHECKED: dict[str, tuple[Any, ...]] = {
    **{name: (type(model)(), clone(model).set_params(**CLOSE.get(name, {}))) for name, model in MODELS.items()},
    **{name: (clone(model).set_params(cv=2, **CLOSE.get(name, {})),) for name, model in CHOICES.items()},
    "few values": (public.L1BallRegressorCV([1.0, 2.0], cv=2, tol=1e-2),),
    "a grid": (public.L1InfClassifierCV(2, cv=2, loss="logistic", tol=1e-9),),
    "few learners": (public.GroupSparseBoostingClassifier(penalty="0.5 max"),),
    "GroupSparseBoostingClassifier": (public.GroupSparseBoostingClassifier(),),
}
#: Those whose checks by scikit-learn are fast. The others' are in the soak.
FAST = (
    "OneNormRegressor()", "LinearSVMMultiTaskClassifier(random_state=0)", "MatrixNormalClassifier()", "few values", "few learners",
)  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in sorted(CHECKED)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # rows far from unit size, at parameters that suit others
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_the_checks_of_scikit_learn_pass(name: str) -> None:
    kinds = ("dense", "sparse") if name in APART else ()
    apart = {f"check_sample_weight_equivalence_on_{kind}_data": "other rows, and another point within the gap" for kind in kinds}
    if name == "ASOClassifier(loss='modified_huber', n_components=1)":
        apart["check_class_weight_classifiers"] = "copies alone stand for weights of this loss, and it says so"
    for model in CHECKED[name]:
        results = check_estimator(clone(model), on_skip=None, expected_failed_checks=apart)
        skipped = {result["check_name"] for result in results if result["status"] == "skipped" and "polars" not in result["check_name"]}
        assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba"}


# What `help` says


@every_estimator
def test_help_lists_every_parameter_the_models_own_first(estimator: Any) -> None:
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w[^\n]*\n-+\n|\Z)", inspect.getdoc(estimator) or "", re.DOTALL)
    headings = [line for line in section[1].splitlines() if line and not line.startswith(" ")]
    assert sorted(name for line in headings for name in line.split(" : ")[0].split(", ")) == sorted(estimator().get_params())
    shared = (
        "fit_intercept", "intercept_scaling", "solver", "solver_options", "tol", "max_iter", "max_seconds", "class_weight", "task_weights",
        "warm_start", "callback",
    )  # fmt: skip
    is_shared = [name in shared for name in inspect.signature(estimator).parameters if name != "random_state"]
    assert is_shared == sorted(is_shared)


# Fits


@every_model
def test_many_tasks_of_the_same_rows(name: str) -> None:
    targets = targets_of(name)
    model = model_of(name).fit(X, targets)
    assert (model.coef_.shape, model.intercept_.shape, model.n_tasks_) == ((3, 6), (3,), 3)
    assert model.converged_, model.message_
    assert model.n_iter_ >= 1
    if is_convex(model):
        assert model.gap_ <= 1e-3
        assert model.gap_ == pytest.approx((model.objective_ - model.dual_bound_) / model.objective_, abs=1e-12)
    else:
        assert not hasattr(model, "gap_")
        assert not hasattr(model, "dual_bound_")
        assert model.objectives_[-1] == model.objective_
    assert model.predict(X).shape == (60, 3)
    assert model.score(X, targets) > 0.5
    scores = (model.decision_function if is_classifier(model) else model.predict)(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-12)
    assert model_of(name, fit_intercept=False).fit(X, targets).intercept_.tolist() == [0.0, 0.0, 0.0]


@representatives()
def test_tasks_with_rows_of_their_own(name: str) -> None:
    Xs, ys = own_rows(name)
    model = model_of(name).fit_tasks(Xs, ys)
    assert (model.coef_.shape, model.intercept_.shape) == ((3, 6), (3,))
    assert [p.shape for p in model.predict_tasks(Xs)] == [(10,), (40,), (30,)]
    assert 0.6 < model.score_tasks(Xs, ys) <= 1.0
    assert model.predict(X).shape == (60, 3)
    scores = model.decision_function_tasks(Xs) if is_classifier(model) else model.predict_tasks(Xs)
    for k in range(3):
        np.testing.assert_allclose(scores[k], Xs[k] @ model.coef_[k] + model.intercept_[k], atol=1e-12)
        if is_classifier(model):
            np.testing.assert_array_equal(model.predict_tasks(Xs)[k], model.predict(Xs[k])[:, k])
    sparse = model_of(name).fit_tasks([sp.csr_array(x) for x in Xs], ys)
    assert getattr(sparse, "objective_", 0.0) == pytest.approx(getattr(model, "objective_", 0.0), rel=2e-3)


@representatives()
def test_other_forms_of_the_same_examples_have_the_same_optimum(name: str) -> None:
    """Rows of their own that are equal, sparse rows, one task, features of zeros."""
    targets = targets_of(name)
    shared, apart = model_of(name).fit(X, targets), model_of(name).fit_tasks([X] * 3, list(targets.T))
    assert apart.objective_ == pytest.approx(shared.objective_, rel=2e-3)
    sparse = model_of(name).fit(sp.csc_matrix(X), targets)
    assert sparse.objective_ == pytest.approx(shared.objective_, rel=2e-3)
    np.testing.assert_allclose(shared.predict(sp.csc_matrix(X)), shared.predict(X), atol=1e-12)
    y = targets[:, 0]
    one = model_of(name).fit(X, y)
    assert one.predict(X).shape == (60,)
    assert one.coef_.shape == ((1, 6) if is_classifier(one) else (6,))
    assert model_of(name).fit_tasks([X], [y]).predict(X).shape == (60, 1)
    if not name.startswith("MatrixNormal"):  # whose prior counts features
        padded = model_of(name).fit(np.hstack([X, np.zeros((60, 2))]), y)
        assert padded.objective_ == pytest.approx(one.objective_, rel=2e-3)
        np.testing.assert_array_equal(np.atleast_2d(padded.coef_)[:, 6:], 0.0)
        np.testing.assert_array_equal(model_of(name).fit(np.zeros((60, 2)), y).coef_, 0.0)


# Intercepts


@representatives(lambda model: is_convex(model) and not isinstance(model, public.LinearSVMMultiTaskClassifier))
def test_an_intercept_is_free(name: str) -> None:
    """Where features or, of regressors, targets are, is nothing to a fit."""
    targets, shift = targets_of(name), np.array([3.0, -2.0, 0.0, 5.0, 1.0, -4.0])
    model, moved = model_of(name, tol=1e-6).fit(X, targets), model_of(name, tol=1e-6).fit(X + shift, targets)
    assert moved.objective_ == pytest.approx(model.objective_, rel=3e-6)
    assert moved.dual_bound_ <= model.objective_ * (1.0 + 1e-9)
    sparse = model_of(name, tol=1e-6).fit(sp.csr_array(X + shift), targets)
    assert sparse.objective_ == pytest.approx(model.objective_, rel=3e-6)
    if not is_classifier(model):
        high = model_of(name, tol=1e-6).fit(X, targets + 1000.0)
        assert high.objective_ == pytest.approx(model.objective_, rel=3e-6)
        assert high.score(X, targets + 1000.0) == pytest.approx(model.score(X, targets), abs=1e-3)
    if model.loss == "squared":
        scores = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(scores.mean(axis=0), (2 * targets - 1 if is_classifier(model) else targets).mean(axis=0), atol=1e-9)


SPARSE_MODELS = (
    "DirtyRegressor()", "L12Regressor(penalty='0.05 max', reduction='sum')", "L1BallRegressor(radius=4.0)",
    "L1InfRegressor(penalty='0.05 max', reduction='sum')", "MTRLRegressor()", "OneNormRegressor()", "RidgeMultiTaskRegressor()",
    "SparseLowRankRegressor(penalty=0.5, radius=3.0)", "TraceNormRegressor(penalty=1.0)",
)  # fmt: skip
#: Penalties that leave few rows: working sets have the columns of theirs dense, and factors of that size.
FEW_ROWS: dict[str, dict[str, Any]] = {
    "DirtyRegressor()": {"row_penalty": "0.5 max", "entry_penalty": "0.5 max"},
    "L1InfRegressor(penalty='0.05 max', reduction='sum')": {"penalty": "0.3 max"},
}


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", SPARSE_MODELS)
def test_sparse_examples_stay_sparse_and_have_the_intercepts_of_dense_ones(
    name: str, is_weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Centred the larger ones would take 72 MB."""
    rng = np.random.default_rng(0)
    rows: Any = sp.random_array((1500, 6000), density=1e-3, rng=rng, format="csr")
    targets = rows @ rng.standard_normal((6000, 2)) + rng.standard_normal((1500, 2))
    model = model_of(name, tol=0.1, **FEW_ROWS.get(name, {})).fit(rows[:20], targets[:20])  # what is compiled and loaded is not counted
    tracemalloc.start()
    model.fit(rows, targets, np.arange(1500) % 3 if is_weighted else None)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 60e6
    few, weights = np.where(np.abs(X) > 1.0, X + 2.0, 0.0), np.arange(60) % 4 if is_weighted else None
    plain = model_of(name, tol=1e-7).fit(few, Y, weights)
    monkeypatch.setattr("bench_mtl.model.intercepts.MOST_CENTRED", 10)
    sparse = model_of(name, tol=1e-7).fit(sp.csr_array(few), Y, weights)
    assert sparse.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert sparse.dual_bound_ <= plain.objective_ * (1.0 + 1e-12)
    np.testing.assert_allclose(sparse.predict(few), plain.predict(few), atol=2e-2)


# Weights


@representatives(lambda model: model.loss == "squared")
def test_weights_of_squares_are_numbers_of_copies(name: str) -> None:
    """With the same optimum and the same bound; only shares count of weights in a mean."""
    targets, tol = targets_of(name), 1e-7 if is_convex(MODELS[name]) else 1e-8
    weights = np.arange(60) % 3 + (np.arange(60) < 10)
    rows = np.repeat(np.arange(60), weights)
    model = model_of(name, tol=tol)
    weighted, copies = clone(model).fit(X, targets, weights), clone(model).fit(X[rows], targets[rows])
    Xs, ys = own_rows(name)
    apart = [weights[span] for span in SPANS]
    own = clone(model).fit_tasks(Xs, ys, apart)
    repeated = [[np.repeat(part, w, axis=0) for part, w in zip(parts, apart, strict=True)] for parts in (Xs, ys)]
    own_copies = clone(model).fit_tasks(*repeated)
    if not is_convex(model):
        np.testing.assert_allclose(clone(model).fit(X, targets, 2.5 * weights).coef_, copies.coef_, atol=1e-3)
        np.testing.assert_allclose(own.coef_, own_copies.coef_, atol=1e-3)
        return
    for one, other in ((weighted, copies), (own, own_copies)):
        assert max(one.dual_bound_, other.dual_bound_) <= min(one.objective_, other.objective_) * (1.0 + 1e-12)
        assert one.objective_ == pytest.approx(other.objective_, rel=2e-7)
    assert clone(model).fit(sp.csr_array(X), targets, 0.3 + weights).gap_ <= tol


@representatives(lambda model: model.loss != "squared")
def test_weights_of_other_losses_are_copies(name: str) -> None:
    weights = np.arange(60) % 3
    rows = np.repeat(np.arange(60), weights)
    weighted, copies = model_of(name).fit(X, LABELS, weights), model_of(name).fit(X[rows], LABELS[rows])
    np.testing.assert_array_equal(weighted.coef_, copies.coef_)
    assert getattr(weighted, "objective_", 0.0) == getattr(copies, "objective_", 0.0)
    if model_of(name).counts_weights:
        halves = model_of(name).fit(X, LABELS, 0.5 * weights)
        assert halves.dual_bound_ <= halves.objective_
        if model_of(name).reduction == "mean":
            assert halves.objective_ == pytest.approx(copies.objective_, rel=1e-4)
        return
    with pytest.raises(InputError, match=r"^sample_weight must be whole numbers with the loss '\w+' \(only squares .* but one is 0.5$"):
        model_of(name).fit(X, LABELS, 0.5 + weights)


def test_weights_that_are_none() -> None:
    """An example of weight 0 is none, and what cannot be a weight is refused by name."""
    three, model, weights = np.array(["a", "b", "c"])[np.arange(60) % 3], public.OneNormClassifier(), np.arange(60) % 3
    assert model.fit(X, three, sample_weight=(three != "b").astype(float)).classes_.tolist() == ["a", "c"]
    with pytest.raises(InputError, match="y has only one class, 'a'"):
        model.fit(X, three, sample_weight=three == "a")
    for wrong, message in ((-weights, "[Nn]egative"), (0 * weights, "zero"), (weights[:3], "shape")):
        with pytest.raises(InputError, match=f"sample_weight.*{message}"):
            public.L1InfClassifier(0.5).fit(X, LABELS, sample_weight=wrong)
    for size in (1e307, 1e308):
        for alike, targets in ((public.L1InfClassifier(0.5), LABELS), (public.L1InfRegressor(0.5, fit_intercept=False), X[:, :2])):
            with pytest.raises(InputError, match="sample_weight must not be so large"):
                alike.fit(X, targets, sample_weight=np.full(60, size))
    for weighed, message in (
        ([None, np.zeros(40), None], "sample_weight of task 1"),
        ([None], "sample_weight must have an entry for each of the 3 tasks, but has 1"),
        (2.0, "sample_weight must be a list with an entry for each task, not 2"),
    ):
        with pytest.raises(InputError, match=message):
            public.L1InfClassifier(0.5).fit_tasks(*own_rows("L1InfClassifier(radius=3.0)"), weighed)


# Labels and frames


@representatives(is_classifier)
def test_labels(name: str) -> None:
    Xs, _ = own_rows(name)
    names = [np.where(LABELS[span, k] == 1, "yes", "no") for k, span in enumerate(SPANS)]
    model = model_of(name).fit_tasks(Xs, [names[0], LABELS[SPANS[1], 1], 2 * LABELS[SPANS[2], 2] - 1])
    assert [pair.tolist() for pair in model.classes_] == [["no", "yes"], [0, 1], [-1, 1]]
    assert set(model.predict_tasks(Xs)[0]) <= {"no", "yes"}
    assert set(model.predict_tasks(Xs)[2]) <= {-1, 1}
    several = model_of(name).fit(X, CLASSES)  # scikit-learn checks more of it
    assert [set(p) <= {0, 1} for p in several.predict_tasks([X] * 3)] == [True] * 3
    two = model_of(name).fit(X, np.where(LABELS[:, 0] == 1, "yes", "no"))
    np.testing.assert_array_equal(two.predict_tasks([X])[0], two.predict(X))
    np.testing.assert_array_equal(model_of(name).fit(X, sp.csr_array(LABELS)).coef_, model_of(name).fit(X, LABELS).coef_)
    for y, message in (
        (np.array(["a"] * 60), "y has only one class, 'a': a classifier needs at least 2"),
        (LABELS * np.array([1, 0, 1]), "y of task 1 has only one class, 0: a task needs 2"),
        (pd.DataFrame(LABELS * np.array([1, 0, 1]), columns=["x", "y", "z"]), "y of task 'y' has only one class, 0: a task needs 2"),
        (LABELS + LABELS[:, [1, 2, 0]], "y of task 0 has 3 classes: a task needs 2"),
        (np.array([["a", "b", 1], [1, "a", 2]] * 30, dtype=object), "y of task 0 has labels that cannot be ordered"),
    ):
        with pytest.raises(InputError, match=message):
            model_of(name).fit(X, y)
    with pytest.raises(InputError, match="y of task 2 has 3 classes: a task needs 2"):
        model_of(name).fit_tasks(Xs, [*names[:2], np.arange(30) % 3])


TRUTHS, NAMES = LABELS[:, :2] > 0, ["left", "right"]
WORDS = pd.DataFrame(np.where(TRUTHS, "yes", "no"), columns=NAMES)
NUMBERS = pd.DataFrame(TRUTHS.astype(int), columns=NAMES)

#: Labels of two tasks as frames.
FRAMES: dict[str, pd.DataFrame] = {
    "nullable integers": NUMBERS.astype("Int64"),
    "nullable truths": NUMBERS.astype("boolean"),
    "truths and integers": pd.DataFrame({"left": TRUTHS[:, 0], "right": TRUTHS[:, 1].astype(int)}),
    "Arrow's integers": NUMBERS.astype("int8[pyarrow]"),
    "Arrow's truths": NUMBERS.astype("bool[pyarrow]"),
    "words": WORDS,
    "Arrow's words": WORDS.astype("string[pyarrow]"),
    "words of their own": pd.DataFrame({"left": np.where(TRUTHS[:, 0], "up", "down"), "right": np.where(TRUTHS[:, 1], "red", "blue")}),
    "words and numbers": pd.DataFrame({"left": np.where(TRUTHS[:, 0], "up", "down"), "right": TRUTHS[:, 1].astype(int)}),
    "categories of words": WORDS.astype("category"),
    "categories of numbers": NUMBERS.astype("Int64").astype("category"),
    "objects": NUMBERS.astype(bool).astype(object),
    "sparse": NUMBERS.astype(pd.SparseDtype(int, 0)),
}


@pytest.mark.parametrize(
    ("model", "kind"),
    [(public.L1InfClassifier(2.0), kind) for kind in FRAMES]
    + [(public.RidgeMultiTaskClassifier(), kind) for kind in ("words", "categories of numbers", "sparse")],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_labels_in_frames_are_labels(model: Any, kind: str) -> None:
    frame, truths = FRAMES[kind], TRUTHS.astype(int)
    model, plain = clone(model).fit(X, frame), clone(model).fit(X, truths)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.task_names_.tolist() == NAMES
    predicted = model.predict(X)
    assert all(set(predicted[:, k]) <= set(frame.iloc[:, k]) for k in (0, 1))
    assert model.score(X, frame) == plain.score(X, truths)
    assert model.score(X, pd.DataFrame(predicted)) == 1.0
    own = clone(model).fit_tasks([X, X], [frame["left"], frame["right"]])
    assert own.score_tasks([X, X], [frame["left"], frame["right"]]) > 0.5
    one = clone(model).fit(X, frame["left"])
    assert one.score(X, frame["left"]) == clone(model).fit(X, TRUTHS[:, 0]).score(X, TRUTHS[:, 0])
    assert one.predict(X).ndim == 1
    if kind != "words and numbers":  # which scikit-learn does not look at
        np.testing.assert_array_equal(cross_val_score(model, X, frame, cv=3), cross_val_score(model, X, truths, cv=3))
    if type(model) is public.L1InfClassifier:
        chosen, by_numbers = (public.L1InfClassifierCV([0.1, 2.0], cv=3).fit(X, y) for y in (frame, truths))
        np.testing.assert_array_equal(chosen.cv_scores_, by_numbers.cv_scores_)
        assert public.GroupSparseBoostingClassifier(tol=0.1).fit(X, frame["left"]).score(X, frame["left"]) > 0.7


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", "object", "category"])
def test_targets_in_frames_are_numbers(dtype: str) -> None:
    frame, plain = pd.DataFrame(Y, columns=list("xyz")).astype(dtype), public.L1InfRegressor(2.0).fit(X, Y)
    model = public.L1InfRegressor(2.0).fit(pd.DataFrame(X).astype("Float64" if dtype == "category" else dtype), frame)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.score(X, frame) == plain.score(X, Y)


def test_what_is_missing_is_named() -> None:
    y = FRAMES["nullable integers"].copy()
    y.iloc[7, 1] = pd.NA
    for model in (public.L1InfClassifier(), public.GroupSparseBoostingClassifier()):
        with pytest.raises(InputError, match=r"^y has no value \(NaN\) in row 7"):
            model.fit(X, y["right"])


def test_tasks_have_the_names_of_their_columns_alone() -> None:
    frame, targets = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y[:, :2], columns=NAMES)
    model = public.DirtyRegressor().fit(frame, targets)
    assert (model.feature_names_in_.tolist(), model.task_names_.tolist()) == (list("abcdef"), NAMES)
    assert not hasattr(model.fit(frame, targets.to_numpy()), "task_names_")
    assert not hasattr(model.fit(frame, targets).fit_tasks([frame, frame], [targets["left"], targets["right"]]), "task_names_")
    assert not hasattr(model.fit(frame, targets.set_axis([0, 1], axis=1)), "task_names_")
    with pytest.warns(UserWarning, match="A column-vector y was passed"):  # whose tasks are the classes
        assert not hasattr(public.OneNormClassifier().fit(frame, pd.DataFrame({"class": CLASSES})), "task_names_")


QUICK = ("L1InfClassifier", "LinearSVMMultiTaskClassifier", "L1InfRegressor", "RidgeMultiTaskRegressor")


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e160, 1e300, 1e307])
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(cls, marks=[] if cls.__name__ in QUICK else pytest.mark.slow, id=cls.__name__)
        for cls in ESTIMATORS
        if cls is not public.GroupSparseBoostingClassifier  # whose learners do not mind
    ],
)
def test_at_the_ends_of_the_range_a_fit_is_right_or_says_what_is_wrong(estimator: Any, size: float) -> None:
    """In few iterations: a fit that has not met its gap by then has to say the same."""
    y = LABELS if is_classifier(estimator()) else Y
    for rows, targets in ((X * size, y), (X, y if is_classifier(estimator()) else y * size)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason, model = "", estimator(max_iter=100)
            try:
                model.fit(rows, targets)
            except InputError as error:
                reason = str(error)
            assert np.isfinite(model.coef_).all() if not reason else "whose squares are out of the range" in reason, reason


def test_separable_classes_end_soon_and_their_gap_is_what_is_said() -> None:
    rows, y = np.vstack([X + 5.0, X - 5.0]), np.repeat([0, 1], 60)
    model = public.L1InfClassifier(100.0, loss="logistic", max_iter=2000).fit(rows, y)
    assert model.objective_ - model.dual_bound_ <= 1e-3 * max(model.objective_, 1e-3 * np.log(2.0))
    assert model.gap_ == (model.objective_ - model.dual_bound_) / model.objective_
    same = public.RidgeMultiTaskRegressor().fit(X, np.full(60, 3.7))
    assert (same.objective_, same.dual_bound_, same.gap_) == (0.0, 0.0, 0.0)


def test_ridge_on_data_that_are_fitted_exactly_ends_beside_the_scale_of_the_problem() -> None:
    Y = X @ np.random.default_rng(1).standard_normal((X.shape[1], 3))
    model = public.RidgeMultiTaskRegressor(alpha=1e-18, fit_intercept=False).fit(X, Y)
    assert model.dual_bound_ <= model.objective_ <= 1e-9


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_ridge_with_a_free_intercept_is_bounded_whatever_the_offset(offset: float) -> None:
    """Sparse rows that are not centred, where dual points have to add up to 0; the optimum is that of targets without the offset."""
    rng = np.random.default_rng(0)
    rows = sp.random_array((4000, 300), density=0.02, format="csr", rng=rng)
    y = np.round(2.0**20 * (rows @ rng.standard_normal(300) + rng.standard_normal(4000))) / 2.0**20  # exact with any of the offsets
    best = public.RidgeMultiTaskRegressor(tol=1e-9).fit(rows, y)
    model = public.RidgeMultiTaskRegressor().fit(rows, y + offset)
    assert model.dual_bound_ <= best.objective_
    assert model.dual_bound_ <= model.objective_
    assert model.intercept_ == pytest.approx(best.intercept_ + offset, rel=1e-3)


@pytest.mark.parametrize("many", [False, True])
def test_ridge_weighs_large_sparse_examples_without_making_them_dense(many: bool) -> None:
    rng = np.random.default_rng(0)
    rows = sp.random_array((300, 20_000), density=2e-3, format="csr", rng=rng)
    labels = (rng.random((300, 2 if many else 1)) < 0.3).astype(int)
    model = public.RidgeMultiTaskClassifier(class_weight="balanced", tol=1e-6)
    peaks = []
    for _ in range(2):  # the first may load and compile
        tracemalloc.start()
        model.fit(rows, labels if many else labels[:, 0])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks) < 0.5 * 8 * rows.shape[0] * rows.shape[1]
    for k, y in enumerate(labels.T):
        weights = len(y) / (2.0 * np.bincount(y))[y]
        one = Ridge(1.0, tol=1e-10).fit(rows, 2.0 * y - 1.0, sample_weight=weights)
        np.testing.assert_allclose(model.coef_[k], one.coef_, atol=1e-4 * np.abs(one.coef_).max())
        assert np.atleast_1d(model.intercept_)[k] == pytest.approx(one.intercept_, rel=1e-3)


# A fit that fails


def test_a_fit_that_fails_leaves_the_model_as_it_was() -> None:
    three, two = np.arange(len(X)) % 3, np.arange(len(X)) % 2
    model = public.L1InfClassifier(1.0, loss="squared").fit(X, three)
    before = model.predict(X)
    with pytest.raises(InputError):
        model.set_params(radius=-1.0).fit(X, two)
    np.testing.assert_array_equal(model.predict(X), before)
    fresh = public.L1InfClassifier(-1.0)
    with pytest.raises(InputError):
        fresh.fit(X, two)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_scores_take_the_targets_that_fits_take() -> None:
    Y = sp.csr_array(np.round(X[:, :2]))
    model = public.L1InfRegressor(1.0).fit(X, Y)
    assert model.score(X, Y) == pytest.approx(model.score(X, Y.toarray()))
    tasks = public.L1InfRegressor(1.0).fit_tasks([X, X], [X[:, 0], X[:, 1]])
    assert tasks.score_tasks([X, X], [X[:, [0]], X[:, [1]]]) == tasks.score_tasks([X, X], [X[:, 0], X[:, 1]])


def test_examples_of_weight_0_have_no_part_in_scores() -> None:
    Y = X[:, :2].copy()
    Y[0, 0] = np.nan
    model = public.L1InfRegressor(1.0).fit(X, X[:, :2])
    weights = np.ones(len(X))
    weights[5:] = 0.0
    Y[1:5, 0] = np.nan  # so that all observed rows of the first task weigh nothing
    assert model.score(X, Y, weights) == pytest.approx(r2_score(Y[:5, 1], model.predict(X)[:5, 1]))


# Probabilities


def test_probabilities() -> None:
    model = public.L1InfClassifier(3.0, loss="logistic")
    for targets in (np.array(["no", "yes"])[LABELS[:, 0]], CLASSES):
        p = model.fit(X, targets).predict_proba(X)
        alone = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
        expected = np.stack([1.0 - alone, alone], axis=1) if alone.ndim == 1 else alone / alone.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p, expected)
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert log_loss(CLASSES, p) < np.log(3.0)
    assert cross_val_score(model, X, CLASSES, scoring="neg_log_loss", cv=2).min() > -1.1
    scores = model.fit(X, LABELS).decision_function(X)
    for k, (p, logs) in enumerate(zip(model.predict_proba(X), model.predict_log_proba(X), strict=True)):
        np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-scores[:, k])))
        np.testing.assert_allclose(np.log(p), logs)
    model.fit_tasks([X[:20], X[20:]], [LABELS[:20, 0], np.array(["no", "yes"])[LABELS[20:, 1]]])
    first, second = model.predict_proba_tasks([X[:7], X])
    assert (first.shape, second.shape) == ((7, 2), (60, 2))
    np.testing.assert_array_equal(model.classes_[1][second.argmax(axis=1)], model.predict_tasks([X[:7], X])[1])
    np.testing.assert_allclose(second, model.predict_proba(X)[1])


@pytest.mark.filterwarnings("error")
def test_probabilities_of_scores_far_from_0() -> None:
    np.testing.assert_allclose(of_two_classes(np.array([-1000.0, 0.0, 1000.0])), [[0.0, -1000.0], [-np.log(2.0)] * 2, [-1000.0, 0.0]])
    none = of_one_against_all(np.array([[-1000.0, -1001.0], [1000.0, -1000.0]]))
    np.testing.assert_allclose(np.exp(none).sum(axis=1), 1.0)


@pytest.mark.parametrize("estimator", [cls for cls in ESTIMATORS if issubclass(cls, LinearTaskClassifier)], ids=lambda cls: cls.__name__)
def test_only_the_logistic_loss_has_probabilities(estimator: Any) -> None:
    for loss in ("hinge", "squared", "squared_hinge", "logistic"):
        model = estimator(loss=loss) if "loss" in estimator().get_params() else estimator()
        for method in ("predict_proba", "predict_log_proba", "predict_proba_tasks"):
            assert hasattr(model, method) == (model.loss == "logistic")
        if model.loss != "logistic":
            with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
                model.predict_proba(X)
            message = f"{estimator.__name__} has probabilities with loss='logistic', and none with the loss {model.loss!r}"
            assert str(caught.value.__cause__) == message


# Bad input


@representatives()
def test_bad_input_is_refused_by_name(name: str) -> None:
    (Xs, ys), model = own_rows(name), model_of(name)
    fits: list[tuple[Any, Any, str]] = [
        ([Xs[0], np.full((40, 6), np.nan), Xs[2]], ys, r"task 1: Input X contains NaN"),
        (Xs[:2], ys, "Xs has 2 tasks, but ys has 3"),
        ([], [], "Xs has no task"),
        ([Xs[0], Xs[1][:, :5], Xs[2]], ys, r"task 1: X has 5 features, but .* is expecting 6 features"),
        (Xs, [ys[1], ys[0], ys[2]], r"task 0: Found input variables with inconsistent numbers of samples"),
    ]
    for wrong in (None, "two", iter(Xs), {0: Xs[0]}, sp.csr_array(X)):
        fits.append((wrong, ys, r"^Xs must be a list with an entry for each task, not .+$"))
        fits.append((Xs, wrong, r"^ys must be a list with an entry for each task, not .+$"))
    for one, other, message in fits:
        with pytest.raises(InputError, match=message) as refused:
            model.fit_tasks(one, other)
        assert "\n" not in str(refused.value)
    with pytest.raises(NotFittedError):
        model_of(name).predict_tasks(Xs)
    model.fit_tasks(Xs, ys)
    for one, message in (
        (Xs[:2], "Xs must have an entry for each of the 3 tasks, but has 2"),
        ([Xs[0], Xs[1][:, :5], Xs[2]], r"X of task 1: X has 5 features"),
        (None, "Xs must be a list with an entry for each task, not None"),
    ):
        with pytest.raises(InputError, match=message):
            model.predict_tasks(one)
    for other, message in (
        (None, "ys must be a list with an entry for each task, not None"),
        (ys[:1], "ys must have an entry for each of the 3 tasks, but has 1"),
        ([ys[1], ys[0], ys[2]], r"y of task 0 must have shape \(10,\) to match its X, but has \(40,\)"),
    ):
        with pytest.raises(InputError, match=message):
            model.score_tasks(Xs, other)


BAD_PARAMETERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"fit_intercept": "yes"}, "fit_intercept must be true or false, not 'yes'"),
    ({"tol": -1.0}, "tol must be finite and (above|at least) 0"),
    ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
    ({"callback": 3}, "callback must be a function or None, not 3"),
    ({"max_seconds": -1.0}, "max_seconds must be finite and above 0"),
    ({"solver": "magic"}, "unknown solver 'magic'"),
    ({"solver": 1}, "solver must be the name of a registered solver, not 1"),
    ({"solver": "simplex_newton"}, "solver: simplex_newton takes CurvedForm"),
    ({"solver_options": {"restart": "none"}}, "solver_options are those of a solver, but solver is None"),
    ({"loss": "squint"}, "loss must be one of .*, not 'squint'"),
    ({"reduction": "median"}, "reduction must be one of .*, not 'median'"),
    *(({name: -1.0}, f"{name} must be finite and at least 0") for name in ("entry_penalty", "alpha_features", "alpha_tasks")),
    *(({name: 0.0}, f"{name} must be finite and above 0") for name in ("alpha", "C", "covariance_ridge", "intercept_scaling")),
    ({"max_features": 0}, "max_features must be a whole number"),
    ({"max_features": 5}, r"there are 6 features, but max_features = 5: .*TruncatedSVD in a Pipeline"),
    ({"n_components": -1}, "n_components must be a whole number"),
)


def test_text_among_targets_is_no_missing_one() -> None:
    for y in (["nan"] * len(X), [["nan", "2.0"]] * len(X)):
        with pytest.raises(InputError, match="y has the text 'nan'"):
            public.L1InfRegressor().fit(X, y)
        with pytest.raises(InputError, match="y of task 0 has the text 'nan'"):
            public.L1InfRegressor().fit_tasks([X], [[row[0] if isinstance(row, list) else row for row in y]])


@every_model
def test_bad_parameters_are_refused_by_name(name: str) -> None:
    known = MODELS[name].get_params()
    bad = [(parameters, message) for parameters, message in BAD_PARAMETERS if set(parameters) <= set(known)]
    if "radius" in known:
        is_alternative = "penalty" in known and None in (known["radius"], known["penalty"])
        bad.append(({"radius": -1.0, **({"penalty": None} if is_alternative else {})}, r"radius\b.* must be finite and at least 0"))
        bad += [({"radius": 1.0, "penalty": 1.0}, "give exactly one of radius")] * is_alternative
    elif "penalty" in known:
        bad.append(({"penalty": -1.0}, "penalty must be finite and (at least|above) 0"))
    for parameters, message in bad:
        with pytest.raises(InputError, match=message):
            model_of(name, **parameters).fit(X, targets_of(name))


# Limits


@representatives(lambda model: hasattr(model, "max_seconds"))
def test_limits_end_a_fit_with_a_warning_that_points_to_the_caller(name: str) -> None:
    is_proven = is_convex(MODELS[name])
    for fit in (lambda m: m.fit(X, targets_of(name)), lambda m: m.fit_tasks(*own_rows(name))):
        model = model_of(name, tol=1e-12, max_iter=1)
        message = (
            r"limit of 1 iteration, relative gap .* proven \(target 1e-12\)"
            if is_proven
            else "max_iter = 1 solver iteration: one (iteration|turn)"
        )
        with pytest.warns(ConvergenceWarning, match=message) as caught:
            fit(model)
        assert caught[0].filename == __file__
        assert not model.converged_
        assert not is_proven or model.gap_ > 1e-12
        assert model.n_iter_ >= 1


@pytest.mark.parametrize("max_seconds", [None, 60.0])
def test_seconds_begin_once_code_is_compiled(monkeypatch: pytest.MonkeyPatch, max_seconds: float | None) -> None:
    events: list[str] = []

    def budget(*arguments: Any) -> Budget:
        events.append("clock")
        return Budget(*arguments)

    monkeypatch.setattr("bench_mtl.estimators.solved.Budget", budget)
    monkeypatch.setattr("bench_mtl.estimators.solved.warm_up", lambda *parts: events.extend(type(part).__name__ for part in parts))
    public.L1BallClassifier(loss="hinge", max_seconds=max_seconds, fit_intercept=False).fit(X, LABELS)
    assert events[1:] == (["clock"] if max_seconds is None else ["PDHG", "BallHinge", "clock"])  # at first the parameters are checked


# What some have of their own


def test_the_intercept_of_a_support_vector_machine_is_that_of_a_constant_feature() -> None:
    model = public.LinearSVMMultiTaskClassifier(intercept_scaling=2.0, random_state=0).fit(X, LABELS)
    extended = np.hstack([X, np.full((60, 1), 2.0)])
    by_hand = public.LinearSVMMultiTaskClassifier(fit_intercept=False, random_state=0).fit(extended, LABELS)
    assert model.objective_ == by_hand.objective_
    np.testing.assert_array_equal(model.coef_, by_hand.coef_[:, :6])
    np.testing.assert_array_equal(model.intercept_, 2.0 * by_hand.coef_[:, 6])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [0.1, 30.0])
def test_a_support_vector_machine_is_that_of_liblinear_and_its_gap_is_proven(loss: str, C: float) -> None:
    model = public.LinearSVMMultiTaskClassifier(C, loss=loss, tol=1e-6).fit(X, LABELS)
    assert model.gap_ <= 1e-6
    for k, y in enumerate(LABELS.T):
        theirs = LinearSVC(C=C, loss=loss, tol=1e-9, max_iter=10**6, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.coef_[k], theirs.coef_[0], atol=5e-3 * np.abs(theirs.coef_).max())
        np.testing.assert_allclose(model.intercept_[k], theirs.intercept_[0], atol=5e-3 * np.abs(theirs.coef_).max())
    hinges = np.maximum(0.0, 1.0 - (2 * LABELS - 1) * (X @ model.coef_.T + model.intercept_)) ** (2 if loss == "squared_hinge" else 1)
    by_hand = 0.5 * (np.square(model.coef_).sum() + np.square(model.intercept_).sum()) + C * hinges.sum()
    assert model.objective_ == pytest.approx(by_hand, rel=1e-12)
    order = np.random.default_rng(0).permutation(60)
    other = public.LinearSVMMultiTaskClassifier(C, loss=loss, tol=1e-6).fit(X[order], LABELS[order])
    np.testing.assert_array_equal(model.coef_, other.coef_)  # the order of examples is nothing to it
    unlike = X * 10.0 ** np.arange(-4, 8, 2)
    with pytest.warns(ConvergenceWarning, match=r"time limit of 0.2 s, relative gap .*StandardScaler"):
        public.LinearSVMMultiTaskClassifier(100.0, tol=1e-14, max_seconds=0.2, max_iter=10**9).fit(unlike, LABELS)


def test_score_of_regressors_by_task() -> None:
    Xs, ys = own_rows("RidgeMultiTaskRegressor()")
    model = public.RidgeMultiTaskRegressor(fit_intercept=False).fit_tasks(Xs, ys)
    by_hand = [1.0 - ((y - x @ w) ** 2).sum() / ((y - y.mean()) ** 2).sum() for x, y, w in zip(Xs, ys, model.coef_, strict=True)]
    assert model.score_tasks(Xs, ys) == pytest.approx(np.mean(by_hand), rel=1e-12)
    zeros = [np.zeros((2, 6))] * 3
    assert model.score_tasks(zeros, [np.zeros(2), np.ones(2), np.ones(2)]) == pytest.approx(1.0 / 3.0)


def test_parts_add_up() -> None:
    model = public.SparseLowRankRegressor(0.5, 3.0).fit(X, Y)
    np.testing.assert_allclose(model.sparse_coef_ + model.low_rank_coef_, model.coef_, atol=1e-12)
    assert np.linalg.svd(model.low_rank_coef_, compute_uv=False).sum() <= 3.0 + 1e-9
    assert public.SparseLowRankRegressor().fit(X, Y[:, 0]).sparse_coef_.shape == (6,)


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_a_sparse_and_low_rank_fit_that_the_data_hardly_determine_is_proven_soon(noise: float) -> None:
    """Hardly more features than examples, most directions weak, a small gamma: coordinate-wise methods stall here."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 62)) / 3 + noise * rng.standard_normal((60, 62))
    labels = (rng.standard_normal((60, 5)) > 0).astype(int)
    assert public.SparseLowRankClassifier(0.1, 10.0, max_iter=500).fit(rows, labels).gap_ <= 1e-3


def test_the_relationships_of_tasks_are_those_of_the_data() -> None:
    targets = X @ np.outer([1.0, -2.0, 0.5, 0.0, 1.0, 1.5], [1.0, -1.0, 2.0]) + 0.3 * RNG.standard_normal((60, 3))
    model = public.MTRLRegressor(coupling=0.1).fit(X, targets)
    assert np.trace(model.task_covariance_) == pytest.approx(1.0)
    spread = np.sqrt(np.diag(model.task_covariance_))
    correlations = model.task_covariance_ / np.outer(spread, spread)
    assert correlations[0, 1] < -0.9 < 0.9 < correlations[0, 2]
    by_the_paper = public.MTRLRegressor(coupling=0.1, solver="alternating_relationships", solver_options={"perturbation": 1e-4})
    np.testing.assert_allclose(by_the_paper.fit(X, targets).coef_, model.coef_, atol=0.02)
    assert np.allclose(public.MTRLRegressor(coupling=1e9).fit(X, 0.0 * Y).task_covariance_, np.eye(3) / 3)


@pytest.mark.parametrize(("factor", "is_told"), [(1e4, True), (2.0, False)])
def test_a_fit_that_does_not_come_to_its_end_tells_of_columns_of_unlike_size(factor: float, is_told: bool) -> None:
    X = np.random.default_rng(0).standard_normal((30, 4)) * [1.0, 1.0, factor, 1.0]
    with pytest.warns(ConvergenceWarning) as told:
        public.L2BallClassifier(radius=10.0, max_iter=1, tol=1e-9).fit(X, X[:, 0] > 0.3)
    assert any("StandardScaler" in str(each.message) for each in told) is is_told
    sparse = sp.csr_array(np.column_stack([X, np.zeros(30)]))
    with pytest.warns(ConvergenceWarning) as told:
        public.L2BallClassifier(radius=10.0, max_iter=1, tol=1e-9).fit(sparse, X[:, 0] > 0.3)
    assert any("MaxAbsScaler" in str(each.message) for each in told) is is_told
