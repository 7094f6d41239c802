"""Trees: their outputs, the dictionary, and the oracle."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bench_mtl.core.errors import InputError
from bench_mtl.model.forms import ROW_NORMS
from bench_mtl.weak_learners import StumpOracle, Stumps, TreeOracle, Trees, draw_stumps, grow_trees, violations


def blobs(n: int = 60, K: int = 4, d: int = 5, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % K
    return rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((K, d))[classes], classes


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_outputs_are_those_of_the_trees(storage: str) -> None:
    X, classes = blobs()
    classifier = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, np.where(classes < 2, 1, -1))
    regressor = DecisionTreeRegressor(random_state=0).fit(X, np.where(classes == 1, 1.0, -1.0))
    trees = Trees((classifier, regressor))
    H = trees.outputs(sp.csr_array(X) if storage == "sparse" else X)
    np.testing.assert_array_equal(H, np.column_stack([classifier.predict(X), regressor.predict(X)]))
    assert trees.features_of(0) == tuple(sorted({f for f in classifier.tree_.feature.tolist() if f >= 0}))


def test_a_description_is_the_tree() -> None:
    X = np.array([[0, 0], [0, 1], [0, 1], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1]], dtype=float)
    tree = DecisionTreeClassifier(random_state=0).fit(X, np.where(X.prod(axis=1) > 0.0, 1, -1))
    assert Trees((tree,)).names() == ("x[0] > 0.5 ? (x[1] > 0.5 ? +1 : -1) : -1",)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("depth", [1, 3])
def test_grown_trees_differ_and_are_not_constant(storage: str, depth: int) -> None:
    X, classes = blobs()
    matrix = sp.csr_array(X) if storage == "sparse" else X
    trees = grow_trees(matrix, classes, 20, depth, seed=1)
    H = trees.outputs(matrix)
    assert H.shape == (60, 20)
    assert len(np.unique(H.T, axis=0)) == 20
    assert set(np.unique(H)) == {-1.0, 1.0}
    assert np.all(np.abs(H.sum(axis=0)) < 60)
    assert max(tree.get_depth() for tree in trees.trees) <= depth
    np.testing.assert_array_equal(H, grow_trees(matrix, classes, 20, depth, seed=1).outputs(X))
    assert not np.array_equal(H, grow_trees(matrix, classes, 20, depth, seed=2).outputs(X))


@pytest.mark.parametrize("norm", ROW_NORMS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [lambda X: TreeOracle(X, depth=2), StumpOracle], ids=["trees", "stumps"])
def test_violations_of_any_oracle_are_true(make: Any, kind: Any, norm: str) -> None:
    X, R = blobs()[0], np.random.default_rng(3).standard_normal((60, 3))
    oracle = make(kind(X))
    assert oracle.is_exact == isinstance(oracle, StumpOracle)
    for scale in (1.0, 1e-250, 1e200):
        learners, found = oracle.most_violating(scale * R, norm, 5)
        np.testing.assert_allclose(found / scale, violations(learners.outputs(X).T @ R, norm), rtol=1e-12)
        assert 1 <= len(learners) <= 5
        assert np.all(np.diff(found) <= 0.0)
        assert oracle.highest(scale * R, norm) == found[0]
        assert oracle.most_violating(scale * R, norm, 5)[0].names() == learners.names()
    H = learners.outputs(X)
    np.testing.assert_array_equal(learners.take([1, 0]).joined(learners).outputs(X), np.hstack([H[:, [1, 0]], H]))
    assert learners.take([]).outputs(X).shape == (60, 0)


def test_deeper_trees_violate_more_than_any_stump_where_two_features_interact() -> None:
    X = np.random.default_rng(0).standard_normal((400, 2))
    R = np.where(X[:, 0] * X[:, 1] > 0.0, 1.0, -1.0)[:, None] * [1.0, -1.0]
    assert TreeOracle(X, 3).highest(R, "l12") > 1.5 * StumpOracle(X).highest(R, "l12")


@pytest.mark.parametrize("norm", ROW_NORMS)
def test_nothing_is_found_without_residuals(norm: str) -> None:
    X, _ = blobs()
    oracle = TreeOracle(X, 2)
    trees, found = oracle.most_violating(np.zeros((60, 3)), norm, 3)
    assert len(trees) == len(found) == 0
    assert oracle.highest(np.zeros((60, 3)), norm) == 0.0


def test_a_class_of_tiny_residuals_is_searched_like_the_others() -> None:
    X = np.random.default_rng(0).standard_normal((50, 2))
    R = np.column_stack([np.ones(50), 1e-200 * np.where(X[:, 1] > 0.3, 1.0, -1.0)])
    trees, found = TreeOracle(X, 1).most_violating(R, "l1", 5)
    best = int(np.argmax(trees.outputs(X).T @ R[:, 1]))
    assert trees.features_of(best) == (1,)
    np.testing.assert_allclose(trees.outputs(X)[:, best] @ R[:, 1], 50e-200)
    assert np.all(np.diff(found) <= 0.0)


X, CLASSES = blobs(n=8)
TREE = DecisionTreeClassifier(random_state=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grow_trees(X, CLASSES, 0, 2), "count must be"),
        (lambda: grow_trees(X, CLASSES, 2, 0), "depth must be"),
        (lambda: grow_trees(X, CLASSES, 2, 2, -1), "seed must be"),
        (lambda: grow_trees(X, CLASSES[:3], 2, 2), "classes must be 8 class numbers"),
        (lambda: grow_trees(X, np.zeros(8, dtype=int), 2, 2), "at least 2 different ones"),
        (lambda: grow_trees(np.ones((8, 2)), CLASSES, 2, 2), "no usable feature"),
        (lambda: grow_trees([[1.0], [1.0 + 1e-12]], [0, 1], 2, 2), "in single precision"),
        (lambda: grow_trees([[1.0], [1e39]], [0, 1], 2, 2), "largest number in the single precision"),
        (lambda: grow_trees([[1.0], [np.nan]], [0, 1], 2, 2), "X has NaN"),
        (lambda: TreeOracle(X, 0), "depth must be"),
        (lambda: TreeOracle(X, 1).most_violating(np.ones((8, 2)), "l12", 0), "count must be"),
        (lambda: TreeOracle(X, 1).highest(np.ones((7, 2)), "l12"), "R must be 8 x K"),
        (lambda: TreeOracle(X, 1).highest(np.ones((8, 2)), "l3"), "norm must be one of"),
        (lambda: Trees((TREE,)), "must be fitted decision trees"),
        (lambda: Trees((DecisionTreeClassifier().fit(X, CLASSES),)), "outputs -1 and \\+1 only"),
        (lambda: grow_trees(X, CLASSES, 1, 1).outputs(X[:, :2]), "X has 2 features, but the trees were fitted to 5"),
        (lambda: grow_trees(X, CLASSES, 1, 1).joined(grow_trees(X[:, :2], CLASSES, 1, 1)), "fitted to 5 and to 2 features"),
        (lambda: grow_trees(X, CLASSES, 1, 1).joined(Stumps(np.array([0]), np.ones(1), np.ones(1))), "joined with trees only"),
        (lambda: draw_stumps(X, 1).joined(grow_trees(X, CLASSES, 1, 1)), "joined with stumps only"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
