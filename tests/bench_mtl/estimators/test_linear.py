"""Laws of linear models of many tasks: scikit-learn's checks, proven gaps, rows of their own, intercepts, weights, labels, bad input."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import bench_mtl.estimators as public
from bench_mtl.core.errors import InputError
from bench_mtl.estimators.fitting import Budget
from bench_mtl.estimators.linear import LinearTasks

#: Fits of every kind, and a parameter that a grid search may vary.
FITS: tuple[tuple[LinearTasks, str, list[Any]], ...] = (
    (public.ASOClassifier(n_components=1), "penalty", [0.01, 0.1]),
    (public.ASOClassifier(n_components=1, loss="modified_huber"), "penalty", [0.01, 0.1]),
    (public.ASORegressor(n_components=1), "penalty", [0.01, 0.1]),
    (public.DirtyClassifier(), "row_penalty", ["0.5 max", "0.1 max"]),
    (public.DirtyClassifier(0.05, 0.05, loss="logistic"), "entry_penalty", ["0.5 max", "0.1 max"]),
    (public.DirtyRegressor(), "entry_penalty", ["0.5 max", "0.1 max"]),
    (public.L12Classifier(3.0), "radius", [0.5, 3.0]),
    (public.L12Classifier(penalty="0.1 max", loss="logistic"), "penalty", ["0.2 max", 0.02]),
    (public.L12Regressor(5.0), "radius", [2.0, 5.0]),
    (public.L12Regressor(penalty="0.05 max", reduction="sum"), "penalty", ["0.2 max", 0.02]),
    (public.L1BallClassifier(2.0), "radius", [0.5, 2.0]),
    (public.L1BallClassifier(2.0, loss="logistic"), "radius", [0.5, 2.0]),
    (public.L1BallClassifier(1.0, loss="squared"), "radius", [0.5, 2.0]),
    (public.L1BallRegressor(4.0), "radius", [2.0, 4.0]),
    (public.L1InfClassifier(3.0), "radius", [0.5, 3.0]),
    (public.L1InfClassifier(penalty=0.05, reduction="mean"), "penalty", [0.1, 0.02]),
    (public.L1InfClassifier(penalty="0.1 max", loss="logistic"), "penalty", ["0.2 max", 0.02]),
    (public.L1InfRegressor(5.0), "radius", [2.0, 5.0]),
    (public.L1InfRegressor(penalty="0.05 max", reduction="sum"), "penalty", ["0.2 max", 0.02]),
    (public.L2BallClassifier(2.0), "radius", [0.5, 2.0]),
    (public.LinearSVMMultiTaskClassifier(random_state=0), "C", [0.1, 1.0]),
    (public.MTRLClassifier(), "coupling", [0.01, 0.1]),
    (public.MTRLRegressor(), "coupling", [0.01, 0.1]),
    (public.MatrixNormalClassifier(), "alpha_tasks", [0.01, 0.1]),
    (public.MatrixNormalRegressor(), "alpha_tasks", [0.01, 0.1]),
    (public.OneNormClassifier(), "penalty", [0.5, 2.0]),
    (public.OneNormClassifier(0.02, loss="logistic"), "penalty", [0.02, 0.05]),
    (public.OneNormRegressor(), "penalty", [0.5, 2.0]),
    (public.RidgeMultiTaskClassifier(), "alpha", [0.5, 2.0]),
    (public.RidgeMultiTaskRegressor(), "alpha", [0.5, 2.0]),
    (public.SparseLowRankClassifier(), "radius", [0.5, 2.0]),
    (public.SparseLowRankClassifier(0.5, loss="logistic"), "radius", [0.5, 2.0]),
    (public.SparseLowRankRegressor(0.5, 3.0), "penalty", [0.5, 2.0]),
    (public.TraceNormClassifier(), "radius", [0.5, 2.0]),
    (public.TraceNormClassifier(2.0, loss="logistic"), "radius", [0.5, 2.0]),
    (public.TraceNormRegressor(4.0), "radius", [2.0, 4.0]),
    (public.TraceNormRegressor(penalty=1.0), "penalty", [1.0, 3.0]),
)

#: By what they are.
MODELS = {
    " ".join([type(model).__name__, *(f"{key}={value}" for key, value in model.get_params().items() if key in ("loss", "penalty"))]): model
    for model, _, _ in FITS
}
GRIDS = {name: {key: values} for name, (_, key, values) in zip(MODELS, FITS, strict=True)}
assert len(MODELS) == len(FITS)

RNG = np.random.default_rng(0)
TRUE = RNG.standard_normal((6, 3)) * (np.arange(6) < 4)[:, None]
X = RNG.standard_normal((60, 6)) * (RNG.random((60, 6)) < 0.7)
Y = X @ TRUE + 0.1 * RNG.standard_normal((60, 3)) + np.array([0.5, 0.0, -0.5])
LABELS = (Y > 0.0).astype(int)
SPANS = (slice(0, 10), slice(10, 50), slice(30, 60))

#: Those whose checks by scikit-learn are fast. The others' are in the soak.
CHECKED = ("OneNormRegressor penalty=1.0", "LinearSVMMultiTaskClassifier loss=squared_hinge", "MatrixNormalClassifier penalty=0.1")

#: Those that end at another point within their gap where the same examples come in another order, or as copies, while scikit-learn wants
#: seven digits. (Of optimum and bound there is a test below.)
APART = (
    "L1BallRegressor",
    "OneNormClassifier loss=logistic penalty=0.02",
    "OneNormClassifier loss=squared penalty=1.0",
    "L1BallClassifier loss=squared",
    "RidgeMultiTaskClassifier",
)

#: Those for which what all inherit is tested: of either base class fits by a solver, with parts and without, one by scikit-learn, and one
#: that is not convex. The others' tests of it are in the soak.
REPRESENTATIVES = (
    "ASORegressor penalty=0.1",
    "DirtyClassifier loss=squared",
    "L1BallClassifier loss=hinge",
    "L1InfRegressor penalty=None",
    "RidgeMultiTaskRegressor",
)


def representatives(of: Callable[[LinearTasks], bool] = lambda model: True) -> Any:
    """Parametrise by the names of models; all but the representatives are slow."""
    names = [name for name in sorted(MODELS) if of(MODELS[name])]
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in REPRESENTATIVES else pytest.mark.slow) for name in names]
    )


every_model = pytest.mark.parametrize("name", sorted(MODELS))


def model_of(name: str, **parameters: Any) -> Any:
    return clone(MODELS[name]).set_params(**parameters)


def targets_of(name: str) -> np.ndarray:
    return LABELS if is_classifier(MODELS[name]) else Y


def own_rows(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [X[span] for span in SPANS], [targets_of(name)[span, k] for k, span in enumerate(SPANS)]


def is_convex(model: LinearTasks) -> bool:
    return not type(model).__name__.startswith(("ASO", "MatrixNormal"))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in CHECKED else pytest.mark.slow) for name in sorted(MODELS)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # rows far from unit size, at parameters that suit others
def test_the_checks_of_scikit_learn_pass(name: str) -> None:
    kinds = ("dense", "sparse") if name in APART else ()
    apart = {f"check_sample_weight_equivalence_on_{kind}_data": "other rows, and another point within the gap" for kind in kinds}
    for model in (type(MODELS[name])(), model_of(name)):
        results = check_estimator(model, on_skip=None, expected_failed_checks=apart)
        skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
        assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba"}


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


@every_model
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
def test_rows_that_tasks_share_are_rows_of_their_own_that_are_equal(name: str) -> None:
    targets = targets_of(name)
    shared, apart = model_of(name).fit(X, targets), model_of(name).fit_tasks([X] * 3, list(targets.T))
    assert apart.objective_ == pytest.approx(shared.objective_, rel=2e-3)
    assert apart.score_tasks([X] * 3, list(targets.T)) > 0.8


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
    "DirtyRegressor", "L12Regressor penalty=0.05 max", "L1BallRegressor", "L1InfRegressor penalty=0.05 max", "MTRLRegressor",
    "OneNormRegressor penalty=1.0", "RidgeMultiTaskRegressor", "SparseLowRankRegressor penalty=0.5", "TraceNormRegressor penalty=1.0",
)  # fmt: skip


@pytest.mark.parametrize("weights", [None, np.arange(60) % 4])
@pytest.mark.parametrize("name", SPARSE_MODELS)
def test_intercepts_of_sparse_examples_are_those_of_dense_ones(name: str, weights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = np.where(np.abs(X) > 1.0, X + 2.0, 0.0)
    plain = model_of(name, tol=1e-7).fit(few, Y, weights)
    monkeypatch.setattr("bench_mtl.model.intercepts.MOST_CENTRED", 10)
    sparse = model_of(name, tol=1e-7).fit(sp.csr_array(few), Y, weights)
    assert sparse.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert sparse.dual_bound_ <= plain.objective_ * (1.0 + 1e-12)
    np.testing.assert_allclose(sparse.predict(few), plain.predict(few), atol=2e-2)


@pytest.mark.parametrize("weights", [None, np.arange(1500) % 3])
@pytest.mark.parametrize("name", SPARSE_MODELS)
def test_sparse_examples_stay_sparse_in_memory(name: str, weights: Any) -> None:
    """Centred they would take 72 MB."""
    rng = np.random.default_rng(0)
    rows: Any = sp.random_array((1500, 6000), density=1e-3, rng=rng, format="csr")
    targets = rows @ rng.standard_normal((6000, 2)) + rng.standard_normal((1500, 2))
    model = model_of(name, tol=0.1).fit(rows[:20], targets[:20])  # what is compiled and loaded is not counted
    tracemalloc.start()
    model.fit(rows, targets, weights)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.converged_
    assert used < 60e6


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


def test_a_support_vector_machine_ends_whatever_the_features() -> None:
    """liblinear does not, on the first ones, and refuses indices of 64 bits."""
    model = public.LinearSVMMultiTaskClassifier().fit([[0.0], [1e100]], [0, 1])
    assert model.predict([[0.0], [1e100]]).tolist() == [0, 1]
    assert model.gap_ <= 1e-3
    unlike = X * 10.0 ** np.arange(-4, 8, 2)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        assert public.LinearSVMMultiTaskClassifier(100.0, tol=1e-14, max_seconds=0.2, max_iter=10**9).fit(unlike, LABELS).gap_ < 1.0
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert public.LinearSVMMultiTaskClassifier().fit(wide, LABELS).objective_ == pytest.approx(
        public.LinearSVMMultiTaskClassifier().fit(X, LABELS).objective_, rel=2e-3
    )


def test_the_order_of_examples_is_nothing_to_a_support_vector_machine() -> None:
    order = np.random.default_rng(0).permutation(60)
    model, other = (public.LinearSVMMultiTaskClassifier(tol=0.1).fit(X[rows], LABELS[rows]) for rows in (slice(None), order))
    np.testing.assert_array_equal(model.coef_, other.coef_)


@representatives()
def test_sparse_rows_copies_and_searches(name: str) -> None:
    targets = targets_of(name)
    model, sparse = model_of(name).fit(X, targets), model_of(name).fit(sp.csc_matrix(X), targets)
    assert sparse.objective_ == pytest.approx(model.objective_, rel=2e-3)
    np.testing.assert_allclose(model.predict(sp.csc_matrix(X)), model.predict(X), atol=1e-12)
    for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, targets)):
        np.testing.assert_array_equal(copy.coef_, model.coef_)
    grid = {f"{type(model).__name__.lower()}__{key}": values for key, values in GRIDS[name].items()}
    assert GridSearchCV(make_pipeline(StandardScaler(), model_of(name)), grid, cv=2).fit(X, targets).best_score_ > 0.3


@representatives(lambda model: not type(model).__name__.startswith("MatrixNormal"))  # whose prior counts features
def test_one_task_and_constant_features(name: str) -> None:
    y = targets_of(name)[:, 0]
    model = model_of(name).fit(X, y)
    assert model.predict(X).shape == (60,)
    assert model.coef_.shape == ((1, 6) if is_classifier(model) else (6,))
    padded = model_of(name).fit(np.hstack([X, np.zeros((60, 2))]), y)
    assert padded.objective_ == pytest.approx(model.objective_, rel=2e-3)
    np.testing.assert_array_equal(np.atleast_2d(padded.coef_)[:, 6:], 0.0)
    np.testing.assert_array_equal(model_of(name).fit(np.zeros((60, 2)), y).coef_, 0.0)
    assert model_of(name).fit_tasks([X], [y]).predict(X).shape == (60, 1)


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
        fits.append((wrong, ys, r"^Xs must be a list with an entry for each task, not \w+$"))
        fits.append((Xs, wrong, r"^ys must be a list with an entry for each task, not \w+$"))
    for one, other, message in fits:
        with pytest.raises(InputError, match=message):
            model.fit_tasks(one, other)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2.0, np.nan, X), targets_of(name))
    for ask in (lambda: model_of(name).predict(X), lambda: model_of(name).predict_tasks(Xs)):
        with pytest.raises(NotFittedError):
            ask()
    model.fit_tasks(Xs, ys)
    for one, message in (
        (Xs[:2], "Xs must have an entry for each of the 3 tasks, but has 2"),
        ([Xs[0], Xs[1][:, :5], Xs[2]], r"X of task 1: X has 5 features"),
        (None, "Xs must be a list with an entry for each task, not NoneType"),
    ):
        with pytest.raises(InputError, match=message):
            model.predict_tasks(one)
    for other, message in (
        (None, "ys must be a list with an entry for each task, not NoneType"),
        (ys[:1], "ys must have an entry for each of the 3 tasks, but has 1"),
        ([ys[1], ys[0], ys[2]], r"y of task 0 must have shape \(10,\) to match its X, but has \(40,\)"),
    ):
        with pytest.raises(InputError, match=message):
            model.score_tasks(Xs, other)


BAD_PARAMETERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"fit_intercept": "yes"}, "fit_intercept must be true or false, not 'yes'"),
    ({"tol": -1.0}, "tol must be finite and (above|at least) 0"),
    ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
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
    ({"n_components": -1}, "n_components must be a whole number"),
)


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


@representatives(is_classifier)
def test_labels(name: str) -> None:
    Xs, _ = own_rows(name)
    names = [np.where(LABELS[span, k] == 1, "yes", "no") for k, span in enumerate(SPANS)]
    model = model_of(name).fit_tasks(Xs, [names[0], LABELS[SPANS[1], 1], 2 * LABELS[SPANS[2], 2] - 1])
    assert [pair.tolist() for pair in model.classes_] == [["no", "yes"], [0, 1], [-1, 1]]
    assert set(model.predict_tasks(Xs)[0]) <= {"no", "yes"}
    assert set(model.predict_tasks(Xs)[2]) <= {-1, 1}
    several = model_of(name).fit(X, np.array(["a", "b", "c"])[Y.argmax(axis=1)])
    assert several.classes_.tolist() == ["a", "b", "c"]
    assert several.score(X, several.classes_[Y.argmax(axis=1)]) > 0.7
    assert several.decision_function(X).shape == (60, 3)
    assert [set(p) <= {0, 1} for p in several.predict_tasks([X] * 3)] == [True] * 3
    two = model_of(name).fit(X, names_of_two := np.where(LABELS[:, 0] == 1, "yes", "no"))
    assert two.decision_function(X).shape == (60,)
    np.testing.assert_array_equal(two.predict_tasks([X])[0], two.predict(X))
    assert two.score(X, names_of_two) > 0.7
    np.testing.assert_array_equal(model_of(name).fit(X, sp.csr_array(LABELS)).coef_, model_of(name).fit(X, LABELS).coef_)
    for y, message in (
        (np.array(["a"] * 60), "y has only one class, 'a': a classifier needs at least 2"),
        (LABELS * np.array([1, 0, 1]), "y of task 1 has only one class, 0: a task needs 2"),
        (LABELS + LABELS[:, [1, 2, 0]], "y of task 0 has 3 classes: a task needs 2"),
    ):
        with pytest.raises(InputError, match=message):
            model_of(name).fit(X, y)
    with pytest.raises(InputError, match="y of task 2 has 3 classes: a task needs 2"):
        model_of(name).fit_tasks(Xs, [*names[:2], np.arange(30) % 3])


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
    with pytest.raises(InputError, match=r"^sample_weight must be whole numbers with the loss '\w+' \(only squares .* but one is 0.5$"):
        model_of(name).fit(X, LABELS, 0.5 + weights)


def test_weights_that_are_none() -> None:
    """An example of weight 0 is none, and what cannot be a weight is refused by name."""
    three, model = np.array(["a", "b", "c"])[np.arange(60) % 3], public.OneNormClassifier()
    assert model.fit(X, three, sample_weight=(three != "b").astype(float)).classes_.tolist() == ["a", "c"]
    with pytest.raises(InputError, match="y has only one class, 'a'"):
        model.fit(X, three, sample_weight=three == "a")
    weights = np.arange(60) % 3
    for wrong, message in ((-weights, "[Nn]egative"), (0 * weights, "zero"), (weights[:3], "shape"), (1e9 + weights, "add up")):
        with pytest.raises(InputError, match=f"sample_weight.*{message}"):
            public.L1InfClassifier(0.5).fit(X, LABELS, sample_weight=wrong)
    Xs, ys = own_rows("L1InfClassifier loss=hinge penalty=None")
    for weighed, message in (
        ([None, np.full(40, 0.5), None], "sample_weight of task 1 must be whole numbers with the loss 'hinge'"),
        ([None, np.zeros(40), None], "sample_weight of task 1"),
        ([None], "sample_weight must have an entry for each of the 3 tasks, but has 1"),
        (2.0, "sample_weight must be a list with an entry for each task, not float"),
    ):
        with pytest.raises(InputError, match=message):
            public.L1InfClassifier(0.5).fit_tasks(Xs, ys, weighed)


# Limits


@representatives(lambda model: hasattr(model, "max_seconds"))
def test_limits_end_a_fit_with_a_warning_that_points_to_the_caller(name: str) -> None:
    is_proven = is_convex(MODELS[name])
    for fit in (lambda m: m.fit(X, targets_of(name)), lambda m: m.fit_tasks(*own_rows(name))):
        model = model_of(name, tol=1e-12, max_iter=1)
        message = "proven relative gap .*, above tol = 1e-12" if is_proven else "max_iter = 1 solver iteration: one (iteration|turn)"
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


def test_score_of_regressors_by_task() -> None:
    Xs, ys = own_rows("RidgeMultiTaskRegressor")
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


def test_an_l1inf_fit_is_what_its_formula_says() -> None:
    model = public.L1InfClassifier(2.0).fit(X, LABELS)
    margins = (2 * LABELS - 1) * (X @ model.coef_.T + model.intercept_)
    assert model.objective_ == pytest.approx(np.maximum(0.0, 1.0 - margins).mean(axis=0).sum(), rel=1e-12)
    assert np.abs(model.coef_).max(axis=0).sum() <= 2.0 * (1.0 + 1e-12)
    penalised = public.L1InfClassifier(penalty=0.2, reduction="sum").fit(X, LABELS)
    margins = (2 * LABELS - 1) * (X @ penalised.coef_.T + penalised.intercept_)
    norm = np.abs(penalised.coef_).max(axis=0).sum()
    assert penalised.objective_ == pytest.approx(np.maximum(0.0, 1.0 - margins).sum() + 0.2 * norm, rel=1e-12)
    np.testing.assert_array_equal(public.L1InfClassifier().fit(X, LABELS).coef_, public.L1InfClassifier(1.0).fit(X, LABELS).coef_)


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_a_sparse_and_low_rank_fit_that_the_data_hardly_determine_is_proven_soon(noise: float) -> None:
    """Hardly more features than examples, most directions weak, a small gamma: coordinate-wise methods stall here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 62)) / 3 + noise * rng.standard_normal((60, 62))
    Y = (rng.standard_normal((60, 5)) > 0).astype(int)
    assert public.SparseLowRankClassifier(0.1, 10.0, max_iter=500).fit(X, Y).gap_ <= 1e-3


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


def test_many_features_go_through_a_basis() -> None:
    from sklearn.decomposition import TruncatedSVD

    wide = np.hstack([X, RNG.standard_normal((60, 300))])
    with pytest.raises(InputError, match=r"there are 306 features, but max_features = 300: .*TruncatedSVD in a Pipeline"):
        public.MatrixNormalClassifier().fit(wide, LABELS)
    model = make_pipeline(TruncatedSVD(20, random_state=0), public.MatrixNormalClassifier()).fit(wide, LABELS)
    assert model[-1].feature_precision_.shape == (20, 20)
