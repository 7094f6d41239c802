"""The largest eigenvalue by products, against LAPACK's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.lanczos import largest_eigenvalue
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Array, Limits
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_glm import L1InfGLM

pytestmark = pytest.mark.numerics


def matrix(kind: str, size: int) -> Array:
    rng = np.random.default_rng(size)
    X = rng.standard_normal((3 * size, size))
    if kind == "decaying":
        X *= 0.8 ** np.arange(size)
    elif kind == "diagonal":
        return np.diag(rng.random(size))
    elif kind == "rank 1":
        X = X[:, :1] @ X[:1]
    return X.T @ X


@pytest.mark.parametrize("kind", ["random", "decaying", "diagonal", "rank 1"])
@pytest.mark.parametrize("size", [1, 2, 30, 300])
@pytest.mark.parametrize("error", [0.1, 0.02])
def test_it_is_as_near_as_it_says_in_few_products(kind: str, size: int, error: float) -> None:
    A, products = matrix(kind, size), []
    exact = float(np.linalg.eigvalsh(A)[-1])

    def product(v: Array) -> Array:
        products.append(v)
        return A @ v

    value, vector = largest_eigenvalue(product, np.random.default_rng(0).standard_normal(size), error)
    # Some eigenvalue is within the residual of the Ritz value: at best the largest, and of those close to it the next.
    assert (1.0 - error) * exact <= value <= (1.0 + error) * exact * (1.0 + 1e-12)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert len(products) <= min(size, 40)
    assert np.allclose(np.array(products) @ np.array(products).T, np.eye(len(products)), atol=1e-12)


@pytest.mark.parametrize("A", [np.zeros((4, 4)), np.eye(4), np.diag([1.0, 0.0, 0.0, 0.0])], ids=["zero", "identity", "one"])
def test_a_start_that_is_an_eigenvector_ends_it(A: Array) -> None:
    value, vector = largest_eigenvalue(lambda v: A @ v, np.array([2.0, 0.0, 0.0, 0.0]), 0.02)
    assert value == A[0, 0]
    assert vector.tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(10))
def test_the_norm_of_shards_is_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((9, 600)) * 10.0 ** rng.integers(-3, 3) for _ in range(1 + 2 * seed)]
    norm = ShardedDesign(Shards.held([(part, np.zeros((9, 1))) for part in parts])).norm()
    exact = float(np.linalg.norm(np.concatenate(parts), 2))
    assert 0.98 * exact <= norm <= 1.01 * exact  # an estimate: eigenvalues that are close to each other are found late


@pytest.mark.parametrize("rise", [0.25, 1.0, 10.0])
@pytest.mark.parametrize("size", [50, 600, 20_000])
def test_one_eigenvalue_above_many_equal_ones_is_found(size: int, rise: float) -> None:
    """The first residual does not show it: it is the rise over the root of the size."""
    for place in np.linspace(0, size - 1, 10).astype(int):
        values = np.ones(size)
        values[place] += rise
        found, _ = largest_eigenvalue(partial(np.multiply, values), np.random.default_rng(0).standard_normal(size), 0.02)
        assert found == pytest.approx(1.0 + rise, rel=0.02)


@pytest.mark.parametrize("rise", [0.25, 1.0, 10.0])
@pytest.mark.parametrize("size", [50, 600, 20_000])
def test_one_eigenvalue_above_a_spread_of_others_is_found(size: int, rise: float) -> None:
    values = np.random.default_rng(size).random(size)
    for place in np.linspace(0, size - 1, 10).astype(int):
        lifted = values.copy()
        lifted[place] = 1.0 + rise
        found, _ = largest_eigenvalue(partial(np.multiply, lifted), np.random.default_rng(1).standard_normal(size), 0.02)
        assert 0.98 * (1.0 + rise) <= found <= 1.02 * (1.0 + rise)


@pytest.mark.parametrize("frequent", [3, 77, 1234])
def test_a_frequent_category_among_rare_ones_makes_no_step_too_long(frequent: int) -> None:
    """A norm that missed it would be that of the others, less than half of it, and the steps would diverge."""
    rng = np.random.default_rng(0)
    categories = rng.permutation(np.concatenate([np.repeat(np.arange(5000), 4), np.full(16, frequent)]))
    n = len(categories)
    X = sp.csr_array((np.ones(n), (np.arange(n), categories)), shape=(n, 5000))
    y = np.where(rng.random((n, 1)) < 0.5 + 0.3 * np.sign(np.sin(categories))[:, None], 1.0, -1.0)
    shards = Shards.held([(X[rows], y[rows]) for rows in np.array_split(np.arange(n), 4)])
    design = ShardedDesign(shards)
    assert design.norm() == pytest.approx(np.sqrt(20.0), rel=0.01)
    problem = L1InfGLM(replace(TaskData.shared(X, y), design=design), penalty="0.1 max")
    assert run(problem, "accelerated_gradient", tolerance=1e-3, limits=Limits(iterations=500)).status == "verified"


def test_shards_of_other_features_than_those_of_the_sample_count() -> None:
    """The leading vector of the sample is one of the whole, too, of a smaller eigenvalue."""
    parts = [np.zeros((5, 900)) for _ in range(9)]
    for k, part in enumerate(parts):
        part[:, 100 * k] = 1.0 if k == 0 else 1.0 + k / 9.0
    norm = ShardedDesign(Shards.held([(part, np.zeros((5, 1))) for part in parts])).norm()
    assert norm == pytest.approx(np.sqrt(5.0) * (1.0 + 8 / 9.0), rel=0.02)


def test_nothing_in_the_sample() -> None:
    parts = [np.zeros((5, 900)) for _ in range(3)]
    parts[2][:, 7] = 2.0
    norm = ShardedDesign(Shards.held([(part, np.zeros((5, 1))) for part in parts])).norm()
    assert norm == pytest.approx(np.sqrt(20.0), rel=0.02)
