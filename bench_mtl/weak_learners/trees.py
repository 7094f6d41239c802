"""Shallow decision trees of scikit-learn: grown at random, or found by an oracle that alternates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.checks import real_matrix, whole_number
from bench_mtl.core.designs import dense
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.weak_learners.base import Oracle, WeakLearners, chosen, direction, violations

_LARGEST = float(np.finfo(np.float32).max)
_SPARE_DRAWS = 50
_DRAWS_A_TREE = 5
_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Trees(WeakLearners):
    """Fitted decision trees of scikit-learn (classifiers or regressors) whose outputs are -1 and +1.

    Their features are rounded to single precision, as scikit-learn does. Raises InputError: something else than a fitted tree, other
    outputs, trees fitted to different numbers of features.
    """

    trees: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "trees", tuple(self.trees))
        for tree in self.trees:
            if not hasattr(tree, "tree_"):
                raise InputError("trees", tree, "fitted decision trees of scikit-learn")
            values = set(_node_values(tree)[tree.tree_.children_left < 0].tolist())
            if not values <= {-1.0, 1.0}:
                raise InputError(f"trees must have the outputs -1 and +1 only, but one has {sorted(values - {-1.0, 1.0})[0]:g}")
            if tree.n_features_in_ != self.trees[0].n_features_in_:
                raise InputError(f"trees were fitted to {self.trees[0].n_features_in_} and to {tree.n_features_in_} features")

    def __len__(self) -> int:
        return len(self.trees)

    def outputs(self, X: Any) -> Array:
        matrix = _in_single_precision(X)
        if self.trees and matrix.shape[1] != self.trees[0].n_features_in_:
            raise InputError(f"X has {matrix.shape[1]} features, but the trees were fitted to {self.trees[0].n_features_in_}")
        H = np.empty((matrix.shape[0], len(self)))
        if H.size:
            for j, tree in enumerate(self.trees):
                H[:, j] = _outputs_of(tree, matrix)
        return H

    def take(self, indices: Any) -> Trees:
        return Trees(tuple(self.trees[j] for j in chosen(indices, len(self))))

    def joined(self, other: WeakLearners) -> Trees:
        if not isinstance(other, Trees):
            raise InputError(f"trees can be joined with trees only, not with {type(other).__name__}")
        return Trees(self.trees + other.trees)

    def describe(self, j: int) -> str:
        """Such as ``x[3] > 0.5 ? (x[0] > 2 ? +1 : -1) : -1``."""
        tree, values = self.trees[j].tree_, _node_values(self.trees[j])

        def line(node: int) -> str:
            if tree.children_left[node] < 0:
                return f"{values[node]:+g}"
            inside = [line(child) for child in (tree.children_right[node], tree.children_left[node])]
            parts = [f"({part})" if "?" in part else part for part in inside]
            return f"x[{tree.feature[node]}] > {tree.threshold[node]:g} ? {parts[0]} : {parts[1]}"

        return line(0)

    def features_of(self, j: int) -> tuple[int, ...]:
        features = self.trees[j].tree_.feature
        return tuple(int(feature) for feature in np.unique(features[features >= 0]))


def grow_trees(X: Any, classes: Any, count: int, depth: int, seed: int = 0) -> Trees:
    """Return `count` trees of at most that depth, each fitted to a random half of the classes against the others, on X (n x d).

    Each of the different numbers among the n `classes` goes to one of two sides at random (never all to one), examples get independent
    weights Exp(1), and each split is the best on a random sqrt(d) of the features. A tree that is constant on X, or has the outputs on X of
    an earlier one, is drawn again; there are fewer trees where 5 count + 50 draws have not given as many. Raises InputError: wrong shapes,
    NaN or inf, or numbers beyond single precision in X, no feature with two different values, a single class, a count or depth below 1, a
    negative seed, no tree that is not constant.
    """
    wanted, depth = whole_number("count", count, minimum=1), whole_number("depth", depth, minimum=1)
    generator = np.random.default_rng(whole_number("seed", seed))
    matrix, columns = _usable(X)
    labels = np.asarray(classes)
    if labels.shape != (matrix.shape[0],) or labels.dtype.kind not in "iu":
        raise InputError(f"classes must be {matrix.shape[0]} class numbers, but have shape {labels.shape} and type {labels.dtype}")
    names, numbers = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise InputError("classes must be at least 2 different ones, but all examples have the same")
    trees: dict[bytes, Any] = {}
    for _ in range(_DRAWS_A_TREE * wanted + _SPARE_DRAWS):
        side = _partition(generator, len(names))
        weights = generator.exponential(size=len(numbers))
        tree = _fitted_tree(columns, side[numbers], weights, depth, int(generator.integers(2**31)), max_features="sqrt")
        outputs = _outputs_of(tree, matrix)
        if not np.all(outputs == outputs[0]):
            trees.setdefault(np.packbits(outputs > 0.0).tobytes(), tree)
        if len(trees) == wanted:
            break
    if not trees:
        raise InputError("no tree that is not constant was found on X")
    return Trees(tuple(trees.values()))


def _in_single_precision(X: Any) -> Any:
    """Return X as scikit-learn's trees take it: float32, dense or CSR with 32-bit indices."""
    matrix = real_matrix("X", X)
    entries = matrix.data if isinstance(matrix, sp.csr_array) else matrix
    if max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0))) > _LARGEST:
        raise InputError(f"X has entries larger than {_LARGEST:.3g}, the largest number in the single precision of trees")
    with np.errstate(under="ignore"):
        single = matrix.astype(np.float32)
    if isinstance(single, sp.csr_array):
        return sp.csr_array((single.data, single.indices.astype(np.int32), single.indptr.astype(np.int32)), shape=single.shape)
    return single


def _usable(X: Any) -> tuple[Any, Any]:
    """Return X in single precision as rows, and as the columns that a tree is fitted to, if a feature has two different values in it."""
    matrix = _in_single_precision(X)
    n, d = matrix.shape
    if n and d and np.any(dense(matrix.min(axis=0)) < dense(matrix.max(axis=0))):
        if not isinstance(matrix, sp.csr_array):
            return matrix, matrix
        columns = sp.csc_array(matrix)
        columns.sort_indices()
        return matrix, columns
    raise InputError(f"X has no usable feature: each of its {d} features has one value (in single precision) in all of its {n} row(s)")


def _fitted_tree(columns: Any, labels: NDArray[Any], weights: Array, depth: int, seed: int, max_features: str | None = None) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=depth, random_state=seed, max_features=max_features)
    return tree.fit(columns, labels, sample_weight=weights, check_input=False)


def _outputs_of(tree: Any, matrix: Any) -> Array:
    """Return the outputs of one tree for rows in single precision."""
    return _node_values(tree)[tree.tree_.apply(matrix)]


def _node_values(tree: Any) -> Array:
    """Return what a tree says at each of its nodes."""
    values = tree.tree_.value[:, 0, :]
    return tree.classes_[values.argmax(axis=1)].astype(np.float64) if hasattr(tree, "classes_") else values[:, 0]


def _partition(generator: np.random.Generator, size: int) -> NDArray[np.int64]:
    """-1 or +1 for each of `size` >= 2 classes at random, both among them."""
    while True:
        side = 2 * generator.integers(0, 2, size=size) - 1
        if abs(int(side.sum())) < size:
            return side


@final
class TreeOracle(Oracle):
    """Trees on X (n x d) of at most some depth that violate much: not exact, there may be others that violate more.

    The violation of h is the maximum over v >= 0 of norm 1 of sum_i h(x_i) (R v)_i. For fixed v a tree is fitted to the labels sign(R v)
    with the weights |R v| (greedily, so not the best one either); for a fixed tree the best v is known. The two alternate up to three times
    from each unit vector and from the uniform v, and all trees met compete. Trees constant on X are left out, and of those with equal
    outputs on X one counts, so fewer than asked for may be found, or none. The seed is scikit-learn's, for ties between features. Raises
    InputError: NaN or inf, or numbers beyond single precision, no feature with two different values, a depth below 1.
    """

    is_exact: ClassVar[bool] = False

    def __init__(self, X: Any, depth: int, seed: int = 0) -> None:
        self._depth, self._seed = whole_number("depth", depth, minimum=1), whole_number("seed", seed)
        self._rows, self._columns = _usable(X)
        self.n_rows = self._rows.shape[0]

    def _search(self, R: Array, norm: str, count: int) -> tuple[Trees, Array]:
        K = R.shape[1]
        met: dict[bytes, tuple[Any, float]] = {}
        for start in [*np.eye(K), np.full(K, 1.0 / K)]:
            self._alternate(start, R, norm, met)
        best = sorted(met.values(), key=lambda pair: -pair[1])[:count]
        return Trees(tuple(tree for tree, _ in best)), np.array([size for _, size in best])

    def _alternate(self, v: Array, R: Array, norm: str, met: dict[bytes, tuple[Any, float]]) -> None:
        """Add to `met`, by outputs, the trees met on the way from v and their violations."""
        for _ in range(_ROUNDS):
            pull = R @ v
            if not pull.any():
                return
            weights = np.abs(pull) / np.abs(pull).max()  # scikit-learn squares them
            tree = _fitted_tree(self._columns, np.where(pull > 0.0, 1, -1), weights, self._depth, self._seed)
            h = _outputs_of(tree, self._rows)
            key = np.packbits(h > 0.0).tobytes()
            if np.all(h == h[0]) or key in met:
                return
            G = h @ R
            met[key] = tree, float(violations(G[None], norm)[0])
            v = direction(G, norm)
