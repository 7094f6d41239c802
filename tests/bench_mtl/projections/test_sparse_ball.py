"""The sparse l1 ball: against dense projections of the whole vector; its tree stays shallow, and its memory that of the non-zeros."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.projections import SparseBall, project_l1_ball
from bench_mtl.projections.kernels import tree as treap
from bench_mtl.projections.sparse_ball import STORAGES


def depth(nodes: Any, at: int) -> int:
    deepest, level = 0, [at] if at else []
    while level:
        deepest += 1
        level = [int(nodes[i][side]) for i in level for side in ("left", "right") if nodes[i][side]]
    return deepest


def empty_tree(size: int) -> tuple[Any, Any]:
    nodes, state = np.zeros(size + 1, dtype=treap.NODE), np.zeros(treap.STATE, dtype=np.int64)
    treap.clear(nodes, state)
    return nodes, state


@pytest.mark.parametrize("order", ["up", "down", "zigzag", "equal", "random"])
def test_tree_stays_shallow_whatever_the_order(order: str) -> None:
    n = 5_000
    keys = {
        "up": np.arange(n),
        "down": np.arange(n)[::-1],
        "zigzag": np.where(np.arange(n) % 2 == 0, np.arange(n), -np.arange(n)),
        "equal": np.ones(n),
        "random": np.random.default_rng(0).random(n),
    }[order].astype(float)
    nodes, state = empty_tree(n)
    for key in keys:
        treap.insert(nodes, state, key)
    assert depth(nodes, int(state[treap.ROOT])) <= 4.5 * np.log(n)  # all but surely so: 4.31 ln n is the limit


CASES = {
    "ties": {"d": 50, "k": 5, "radius": 1.0, "scale": 1.0, "rounded": True},
    "sparse": {"d": 2000, "k": 20, "radius": 1.0, "scale": 0.05},
    "far outside": {"d": 30, "k": 3, "radius": 1.0, "scale": 1e3},
    "mostly inside": {"d": 300, "k": 10, "radius": 50.0, "scale": 0.1},
    "never outside": {"d": 300, "k": 10, "radius": 1e6, "scale": 0.1},
    "radius 0": {"d": 10, "k": 3, "radius": 0.0, "scale": 1.0},
    "all at once": {"d": 40, "k": 40, "radius": 2.0, "scale": 0.3},
    "tiny": {"d": 50, "k": 5, "radius": 1e-150, "scale": 1e-150},
    "huge": {"d": 50, "k": 5, "radius": 1e150, "scale": 1e150},
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_dense_projection(name: str, nonneg: bool, storage: str) -> None:
    case: dict[str, Any] = CASES[name]
    d, radius = case["d"], case["radius"]
    rng = np.random.default_rng(5)
    ball, w = SparseBall(radius, nonneg=nonneg, storage=storage), np.zeros(d)
    unit = max(radius, case["scale"])
    for step in range(800):
        indices = rng.choice(d, case["k"], replace=False)
        values = case["scale"] * rng.standard_normal(case["k"])
        if "rounded" in case:
            values = np.round(values)
        if step % 10 == 9:  # take some entries away altogether
            values = -w[indices]
        ball.add(indices, values)
        w[indices] += values
        w = project_l1_ball(w, radius, nonneg=nonneg)
        if step % 20 == 19:
            assert np.abs(ball.to_dense(d) - w).max() <= 1e-12 * unit
            assert np.array_equal(ball.get(np.arange(d)), ball.to_dense(d))
            assert ball.nnz == np.count_nonzero(ball.to_dense(d))
            assert ball.norm <= radius * (1 + 1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1e17]], [1.0]),
        ([[1e17, 1e17]], [0.5, 0.5]),
        ([[0.0, 0.0, -0.3], [1e280, -1e280, 0.3]], [0.5, -0.5]),
        ([[1e20], [0.0, 0.5]], [0.75, 0.25]),
    ],
)
def test_an_entry_from_very_far_outside(values: list[list[float]], expected: list[float], storage: str) -> None:
    ball = SparseBall(1.0, storage=storage)
    for update in values:
        ball.add(np.arange(len(update)), update)
    assert np.trim_zeros(ball.to_dense(3), "b").tolist() == expected


@pytest.mark.parametrize("storage", STORAGES)
def test_memory_is_that_of_the_non_zeros(storage: str) -> None:
    """Not of the dimension, nor of how many features have ever been there."""
    rng = np.random.default_rng(0)
    sizes = {}
    for d in (10**4, 10**15):
        ball = SparseBall(1.0, storage=storage)
        for _ in range(2000):
            ball.add(rng.integers(0, d, size=50), np.full(50, 0.01))
        sizes[d] = ball.nbytes
        assert ball.nbytes <= 120 * 4 * (ball.nnz + 50 + 32)
    assert sizes[10**15] <= 2 * sizes[10**4]


@pytest.mark.parametrize("storage", STORAGES)
def test_what_one_projection_subtracts(storage: str) -> None:
    ball = SparseBall(1.0, storage=storage)
    ball.add([7, 10**18], [1.0, -2.0])
    assert ball.theta == pytest.approx(1.0)
    indices, values = ball.items()
    assert (indices.tolist(), values.tolist()) == ([10**18], [-1.0])
    assert ball.get([10**18, 7, 3]).tolist() == [-1.0, 0.0, 0.0]
    ball.add([3], [0.0])
    assert ball.theta == 0.0
    ball.add([10**18], [1.0])
    assert (ball.nnz, ball.norm) == (0, 0.0)
    ball.add([], [])
    ball.add(5, 0.25)
    assert ball.to_dense(6).tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.25]
    point = SparseBall(0.0, storage=storage)
    point.add([4, 2], [1.0, -3.0])
    assert (point.nnz, point.theta) == (0, 3.0)
    ball.clear()
    assert ball.nnz == 0
    assert ball.get(5).tolist() == [0.0]


def test_bad_input_is_refused() -> None:
    ball = SparseBall(1.0)
    ball.add([1], [0.5])
    for indices, values, words in [
        ([-1], [1.0], "indices must be from 0"),
        ([0.5], [1.0], "indices must be a vector of whole numbers"),
        ([[0]], [1.0], "indices must be a vector of whole numbers"),
        ([[1], [1, 2]], [1.0, 2.0], "indices must be a vector of whole numbers"),
        ([1, 2], [1.0], "values must have the shape"),
        ([1], [np.nan], "values has NaN at index 0"),
        (np.array([1, -2]), np.array([1.0, 1.0]), "indices must be from 0"),
        (np.array([1, 2]), np.array([1.0, np.inf]), "values has inf at index 1"),
        ([1, 1], [1e308, 1e308], "values must sum to at most 1e"),
        ([1, 2], [1e290, -1e290], "values must sum to at most 1e"),
    ]:
        with pytest.raises(InputError, match=words):
            ball.add(indices, values)
    assert ball.to_dense(2).tolist() == [0.0, 0.5]
    with pytest.raises(InputError, match="dimension must be above 1"):
        ball.to_dense(1)
    with pytest.raises(InputError, match="radius must be finite"):
        SparseBall(-1.0)
    with pytest.raises(InputError, match="storage must be one of"):
        SparseBall(1.0, storage="heap")
    with pytest.raises(InputError, match="nonneg must be true or false"):
        SparseBall(1.0, nonneg=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda ball: pickle.loads(pickle.dumps(ball))])
def test_a_copy_goes_on_by_itself(storage: str, copied: Callable[[SparseBall], SparseBall]) -> None:
    ball = SparseBall(10.0, storage=storage)
    ball.add([0, 5], [1.0, -2.0])
    other = copied(ball)
    other.add(np.arange(100), np.full(100, 0.01))
    assert ball.nnz == 2
    assert (other.nnz, other.get([0])[0]) == (100, pytest.approx(1.01))
    ball.add([7], [1.0])
    assert (ball.nnz, other.nnz) == (3, 100)
