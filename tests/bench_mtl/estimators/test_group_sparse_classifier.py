"""GroupSparseBoostingClassifier: a gap that is true over every stump, stages, sharing, bad input."""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from bench_mtl.core.errors import InputError
from bench_mtl.estimators import GroupSparseBoostingClassifier
from bench_mtl.solvers.multiboost import MultiboostGroup
from bench_mtl.weak_learners import StumpOracle, Stumps, draw_stumps, grow_trees

LOSSES = ("logistic", "squared_hinge", "exponential", "hinge")
ORDERS = {"l12": 2, "l1inf": np.inf, "l1": 1}
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
THIN = np.where(X > 2.0, X, 0.0)


@functools.cache
def fitted(**parameters: Any) -> GroupSparseBoostingClassifier:
    return GroupSparseBoostingClassifier(**parameters).fit(X, Y)


def losses_of(loss: str, scores: np.ndarray, y: np.ndarray) -> float:
    """f by the formulas of the problem."""
    n, K = scores.shape
    margins = scores[np.arange(n), y][:, None] - scores
    if loss == "hinge":
        return float(np.mean([max((r != y[i]) - margins[i, r] for r in range(K)) for i in range(n)]))
    pairs = {
        "logistic": lambda rho: np.log1p(np.exp(-rho)),
        "squared_hinge": lambda rho: np.maximum(0.0, 1.0 - rho) ** 2,
        "exponential": lambda rho: np.exp(-rho),
    }
    return float(pairs[loss](margins).sum() / (n * K))


def require_objective(model: GroupSparseBoostingClassifier) -> None:
    norms = np.linalg.norm(model.coef_, ord=ORDERS[model.norm], axis=1)
    objective = losses_of(str(model.loss), model.learners_.outputs(X) @ model.coef_, Y) + model.penalty_ * norms.sum()
    assert model.objective_ == pytest.approx(objective, rel=1e-12)
    assert model.gap_ == pytest.approx((model.objective_ - model.dual_bound_) / model.objective_, abs=1e-12)
    assert 0.0 <= model.gap_ <= 1e-3
    assert model.converged_


@pytest.mark.parametrize("norm", ORDERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_holds_over_every_stump(norm: str, loss: str) -> None:
    model = fitted(norm=norm, loss=loss)
    require_objective(model)
    assert model.gap_covers_ == "all stumps"
    stumps, tol = draw_stumps(X, 10_000), 1e-5 if loss != "hinge" else 1e-3
    everything = GroupSparseBoostingClassifier(model.penalty_, norm=norm, loss=loss, candidates=stumps, tol=tol).fit(X, Y)
    assert model.dual_bound_ <= everything.objective_ + 1e-12
    assert everything.dual_bound_ <= model.objective_ + 1e-12


@pytest.mark.parametrize("norm", ["l12", "l1inf"])
def test_nu_is_a_share_of_the_smallest_that_makes_all_weights_zero(norm: str) -> None:
    largest = fitted(norm=norm, penalty="1 max").penalty_
    at = GroupSparseBoostingClassifier(largest * (1.0 + 1e-9), norm=norm).fit(X, Y)
    assert at.coef_.shape == (0, 3)
    assert len(at.learners_) == 0
    assert at.gap_ <= 1e-12
    assert at.predict(X).tolist() == [0] * len(X)  # all classes have as many examples: the first
    assert not at.decision_function(X).any()
    assert list(at.staged_predict(X)) == []
    assert not at.feature_importances_.any()
    below = GroupSparseBoostingClassifier(0.9 * largest, norm=norm, tol=1e-6).fit(X, Y)
    assert len(below.learners_) > 0
    assert fitted(norm=norm).penalty_ == pytest.approx(0.05 * largest)


def test_trees_are_covered_as_far_as_they_are_found() -> None:
    model = fitted(weak_learner="tree", random_state=0)
    assert model.gap_covers_ == "trees found"
    require_objective(model)
    again = GroupSparseBoostingClassifier(model.penalty_, candidates=model.learners_, tol=1e-6).fit(X, Y)
    assert model.dual_bound_ <= again.objective_ * (1.0 + 1e-12)
    assert again.gap_covers_ == "learners given"
    few = GroupSparseBoostingClassifier(weak_learner="tree", random_state=0, n_learners=3)
    with pytest.warns(ConvergenceWarning, match="proven relative gap .*, but it covers too little: n_learners = 3 after"):
        few.fit(X, Y)
    assert not few.converged_
    assert few.gap_ <= few.tol  # over these three


@pytest.mark.parametrize("kind", ["stump", "tree"])
def test_drawn_learners_are_those_of_the_library(kind: str) -> None:
    model = GroupSparseBoostingClassifier(weak_learner=kind, candidates="drawn", n_learners=40, random_state=3).fit(X, Y)
    seed = int(np.random.RandomState(3).randint(2**31 - 1))
    drawn = draw_stumps(X, 40, seed) if kind == "stump" else grow_trees(X, Y, 40, 2, seed)
    given = GroupSparseBoostingClassifier(candidates=drawn).fit(X, Y)
    assert model.gap_covers_ == "learners drawn"
    assert np.array_equal(model.coef_, given.coef_)
    assert model.learners_.names() == given.learners_.names()
    assert np.all(np.diff(np.linalg.norm(model.coef_, axis=1)) <= 0.0)
    assert model.gap_ <= 1e-3


def test_seconds_are_counted_once_code_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only compiling moves, and far beyond the budget."""
    now = [0.0]

    def slow(*_: Any) -> None:
        now[0] += 1e6

    monkeypatch.setattr("bench_mtl.estimators.fitting._warm", set())
    monkeypatch.setattr("bench_mtl.estimators.fitting.time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(MultiboostGroup, "warm_up", slow)
    monkeypatch.setattr(StumpOracle, "warm_up", slow)
    model = GroupSparseBoostingClassifier("0.3 max", max_seconds=10.0).fit(X, Y)
    assert now[0] == 2e6
    model.fit(X, Y)
    assert now[0] == 2e6  # once is enough


# What is learned


def test_ties_of_many_classes_go_to_the_one_that_most_examples_have() -> None:
    rare_first = np.concatenate([np.arange(10), np.arange(50, 100), np.arange(100, 130)])
    model = GroupSparseBoostingClassifier("1.01 max").fit(X[rare_first], NAMES[rare_first])
    assert model.class_count_.tolist() == [10, 50, 30]
    assert set(model.predict(X)) == {"versicolor"}
    for penalty in ("0.2 max", "1.01 max"):  # of two classes the sign of the decision says which
        model = GroupSparseBoostingClassifier(penalty).fit(X[rare_first[:60]], NAMES[rare_first[:60]])
        assert model.predict(X).tolist() == model.classes_[(model.decision_function(X) > 0.0).astype(int)].tolist()
    assert set(model.predict(X)) == {"setosa"}


@pytest.mark.parametrize("parameters", [{}, {"norm": "l1inf"}, {"candidates": "drawn", "n_learners": 30, "random_state": 0}])
def test_stages_end_at_the_fit(parameters: dict[str, Any]) -> None:
    model = fitted(**parameters)
    decisions = list(model.staged_decision_function(X))
    assert len(decisions) == len(model.learners_) == len(model.coef_)
    np.testing.assert_allclose(decisions[-1], model.decision_function(X), rtol=0.0, atol=1e-12)
    first = model.learners_.outputs(X)[:, :1] @ model.coef_[:1]
    np.testing.assert_allclose(decisions[0], first, rtol=0.0, atol=1e-15)
    *_, predictions = model.staged_predict(X)
    assert np.array_equal(predictions, model.predict(X))
    *_, score = model.staged_score(X, Y)
    assert score == model.score(X, Y) >= 0.93


def test_who_uses_what() -> None:
    model = GroupSparseBoostingClassifier().fit(X, NAMES)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert np.array_equal(model.classes_[fitted().predict(X)], model.predict(X))
    assert model.shared_by_.shape == model.coef_.shape
    assert model.shared_by_.any(axis=1).all()
    for each in (model, fitted(weak_learner="tree", random_state=0)):
        assert each.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[2:].sum() > 0.9  # petals


def test_rounds_say_how_the_search_went() -> None:
    rounds = fitted().rounds_
    assert rounds[0].learners == 0
    assert rounds[0].violation == pytest.approx(20.0)  # the penalty is a twentieth of the largest
    assert rounds[-1].violation <= 1.01
    bounds = [r.dual_bound for r in rounds]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("kind", ["stump", "tree"])
def test_sparse_examples_are_dense_examples(kind: str) -> None:
    dense, sparse = (GroupSparseBoostingClassifier(weak_learner=kind, random_state=0).fit(A, Y) for A in (THIN, sp.csr_array(THIN)))
    assert kind == "tree" or sparse.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    assert np.array_equal(sparse.predict(sp.csc_array(THIN)), sparse.predict(THIN))


@pytest.mark.parametrize("norm", ["l12", "l1"])
def test_a_gap_that_the_learners_found_leave_is_closed_over_them(norm: str) -> None:
    """The last learners come in when the restricted problem is solved far less closely than `tol`."""
    assert GroupSparseBoostingClassifier(norm=norm, loss="exponential", tol=1e-8).fit(THIN, Y).gap_ <= 1e-8


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": -1.0}, "penalty must be finite and at least 0, not -1"),
        ({"penalty": "much"}, "penalty must be a number of at least 0, or a share"),
        ({"norm": "l2"}, "norm must be one of l12, l1inf, l1, not 'l2'"),
        ({"loss": "logit"}, "unknown loss 'logit'"),
        ({"loss": 3}, "loss must be one of .* or a MarginLoss that is smooth, not 3"),
        ({"weak_learner": "forest"}, "weak_learner must be one of stump, tree, not 'forest'"),
        ({"candidates": "some"}, "candidates must be one of all, drawn, or WeakLearners, not 'some'"),
        ({"candidates": 7}, "candidates must be one of all, drawn, or WeakLearners, not 7"),
        ({"candidates": draw_stumps(X, 3).take([])}, "candidates are no weak learner at all"),
        *(({name: 0}, f"{name} must be a whole number of at least 1") for name in ("n_learners", "learners_per_round", "max_depth")),
        ({"tol": 0.0}, "tol must be finite and above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"max_seconds": 0.0}, "max_seconds must be finite and above 0"),
        ({"solver": "magic"}, "unknown solver 'magic'"),
        ({"solver": "conic", "solver_options": {"speed": 1}}, "unknown option of solver 'conic' 'speed'"),
        ({"solver": "conic", "solver_options": 1}, "solver_options must be a mapping"),
        ({"solver": "pdhg"}, "solver: pdhg takes"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GroupSparseBoostingClassifier(**parameters).fit(X, Y)


def test_bad_data_are_refused_by_name() -> None:
    model = GroupSparseBoostingClassifier()
    for rows, y, message in ((X, np.zeros(len(X), dtype=int), "only one class"), (np.ones_like(X), Y, "no usable feature")):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, y)
    for ask in (lambda m: m.shared_by_, lambda m: m.feature_importances_):
        with pytest.raises(NotFittedError):
            ask(GroupSparseBoostingClassifier())


@pytest.mark.parametrize(
    "parameters", [{"max_iter": 2}, {"max_seconds": 1e-4}, {"candidates": "drawn", "max_iter": 1}, {"penalty": 0.0, "max_iter": 30}]
)
def test_limits_end_a_fit_with_a_warning_and_a_true_gap(parameters: dict[str, Any]) -> None:
    model = GroupSparseBoostingClassifier(tol=1e-9, solver="accelerated_gradient", random_state=0, **parameters)
    with pytest.warns(ConvergenceWarning, match="relative gap") as caught:
        model.fit(X, Y)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.gap_ > 1e-9
    assert model.gap_ == pytest.approx((model.objective_ - model.dual_bound_) / model.objective_, rel=1e-9)
    if "penalty" not in parameters:
        best = GroupSparseBoostingClassifier(tol=1e-6, candidates=parameters.get("candidates", "all"), random_state=0).fit(X, Y)
        assert model.dual_bound_ <= best.objective_ <= model.objective_ * (1.0 + 1e-6)


# Learners as features


def test_learners_are_features_with_names() -> None:
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    model = GroupSparseBoostingClassifier("0.3 max").set_output(transform="pandas").fit(frame, Y)
    features = model.transform(frame)
    np.testing.assert_array_equal(features.to_numpy(), model.learners_.outputs(X))
    assert features.columns.tolist() == model.get_feature_names_out().tolist()
    assert len(set(features.columns)) == len(model.learners_)
    name = features.columns[0]
    assert name.startswith(frame.columns[model.learners_.features_of(0)[0]])
    assert " > " in name or " <= " in name
    unnamed = fitted(penalty="0.3 max")
    assert all(name.startswith("x") and "[" not in name for name in unnamed.get_feature_names_out())
    assert unnamed.get_feature_names_out(list("abcd"))[0][0] in "abcd"
    with pytest.raises(ValueError, match="input_features should have length equal"):
        unnamed.get_feature_names_out(["a"])
    trees = GroupSparseBoostingClassifier("0.3 max", weak_learner="tree", candidates="drawn", n_learners=5, random_state=0).fit(frame, Y)
    assert all("x[" not in name for name in trees.get_feature_names_out())
    model.learners_ = Stumps(np.array([2, 2]), np.array([2.45, 2.45 + 1e-9]), np.array([1.0, 1.0]))  # of one description
    assert model.get_feature_names_out().tolist() == ["petal length > 2.45 (0)", "petal length > 2.45 (1)"]


def test_a_fit_that_fails_leaves_the_one_before() -> None:
    model = GroupSparseBoostingClassifier().fit(X, Y)
    before = model.predict(X)
    for bad, labels in (({"norm": "l7"}, Y % 2), ({"candidates": "none"}, Y % 2), ({}, np.zeros(len(Y)))):
        with pytest.raises(InputError):
            model.set_params(**bad).fit(X, labels)
        np.testing.assert_array_equal(model.predict(X), before)
        model.set_params(norm="l12", candidates="all")
