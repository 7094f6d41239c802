"""Trees: their outputs, the dictionary, and the oracle."""

from __future__ import annotations

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


def said(line: str, x: Any) -> float:
    """What a described tree says of an example, read as the conditional expression that it is."""
    if "?" not in line:
        return float(line)
    test, _, rest = line.partition(" ? ")
    depth = 0
    for place, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and rest[place : place + 3] == " : ":
            yes, no = rest[:place], rest[place + 3 :]
            break
    feature, _, threshold = test.partition("] > ")
    side = yes if x[int(feature.removeprefix("x["))] > float(threshold) else no
    return said(side.removeprefix("(").removesuffix(")"), x)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_outputs_are_those_of_the_trees(storage: str) -> None:
    X, classes = blobs()
    classifier = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, np.where(classes < 2, 1, -1))
    regressor = DecisionTreeRegressor(random_state=0).fit(X, np.where(classes == 1, 1.0, -1.0))
    trees = Trees((classifier, regressor))
    H = trees.outputs(sp.csr_array(X) if storage == "sparse" else X)
    np.testing.assert_array_equal(H, np.column_stack([classifier.predict(X), regressor.predict(X)]))
    assert trees.features_of(0) == tuple(sorted({f for f in classifier.tree_.feature.tolist() if f >= 0}))


def test_descriptions_are_the_trees() -> None:
    X, classes = blobs()
    trees = grow_trees(X, classes, 8, 3)
    expected = [[said(line, x) for line in trees.names()] for x in X]
    np.testing.assert_array_equal(trees.outputs(X), expected)


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


def test_take_and_join() -> None:
    X, classes = blobs()
    trees = grow_trees(X, classes, 4, 2)
    H = trees.outputs(X)
    np.testing.assert_array_equal(trees.take([2, 0]).joined(trees).outputs(X), np.hstack([H[:, [2, 0]], H]))
    assert trees.take([]).outputs(X).shape == (60, 0)
    assert len(trees.take([]).joined(trees)) == 4


@pytest.mark.parametrize("norm", ROW_NORMS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1.0, 1e-250])
def test_the_oracles_violations_are_true(norm: str, storage: str, scale: float) -> None:
    X, _ = blobs()
    R = np.random.default_rng(3).standard_normal((60, 3))
    oracle = TreeOracle(sp.csr_array(X) if storage == "sparse" else X, depth=2)
    assert not oracle.is_exact
    trees, found = oracle.most_violating(scale * R, norm, 5)
    np.testing.assert_allclose(found / scale, violations(trees.outputs(X).T @ R, norm), rtol=1e-12)
    assert 1 <= len(trees) <= 5
    assert np.all(np.diff(found) <= 0.0)
    assert oracle.highest(scale * R, norm) == found[0]
    again, _ = oracle.most_violating(scale * R, norm, 5)
    assert again.names() == trees.names()


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
