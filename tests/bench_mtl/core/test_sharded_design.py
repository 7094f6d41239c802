"""Designs in shards: what they give is what the same design in memory gives, with bits that do not depend on where the shards are."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.designs import PerTaskDesign, SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated
from bench_mtl.core.sharded_design import ShardedDesign, ShardedTaskDesign, design_of
from bench_mtl.core.shards import Shards
from bench_mtl.data.readers import read_shards, write_shards

pytestmark = pytest.mark.numerics

N, D, M = 23, 7, 3


def features(kind: str, n: int = N, d: int = D) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    return sp.csr_array(X) if kind == "sparse" else X


def held(X: Any, cuts: tuple[int, ...]) -> Shards:
    ends = [0, *cuts, X.shape[0]]
    return Shards.held([(X[start:end], np.zeros((end - start, M))) for start, end in itertools.pairwise(ends)])


@pytest.fixture(params=["dense", "sparse"])
def pair(request: pytest.FixtureRequest) -> tuple[SharedDesign, ShardedDesign]:
    X = features(request.param)
    return SharedDesign(X, M), ShardedDesign(held(X, (5, 6, 17)), M)


def test_everything_is_that_of_the_design_in_memory(pair: tuple[SharedDesign, ShardedDesign]) -> None:
    plain, sharded = pair
    rng = np.random.default_rng(1)
    W, R = rng.standard_normal((D, M)), rng.standard_normal((N, M))
    for name in ("output_shape", "sizes", "n_features", "n_tasks", "n_examples", "n_stored", "is_sparse", "is_shared"):
        assert getattr(sharded, name) == getattr(plain, name), name
    close: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(sharded.forward(W), plain.forward(W), **close)
    np.testing.assert_allclose(sharded.adjoint(R), plain.adjoint(R), **close)
    np.testing.assert_allclose(sharded.gram(0), plain.gram(0), **close)
    np.testing.assert_allclose(sharded.norms(), plain.norms(), rtol=1e-12)
    assert sharded.squares() == pytest.approx(plain.squares())
    np.testing.assert_array_equal(sharded.stack(R), plain.stack(R))
    np.testing.assert_array_equal(sharded.unstack(sharded.stack(R)), R)
    np.testing.assert_array_equal(sharded.task_sums(R), plain.task_sums(R))
    np.testing.assert_array_equal(sharded.task_outputs(R, 1), R[:, 1])
    some = np.array([4, 1])
    np.testing.assert_array_equal(dense(sharded.restricted(some).block(0)), dense(plain.restricted(some).block(0)))
    rows = np.array([20, 5, 5, 0, 16])
    np.testing.assert_array_equal(dense(sharded.examples(0, rows)), dense(plain.block(0))[rows])
    assert sharded.of_task(2).output_shape == (N, 1)


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


@pytest.mark.parametrize("with_compensation", [False, True])
def test_bounds_hold_in_exact_arithmetic(pair: tuple[SharedDesign, ShardedDesign], with_compensation: bool) -> None:
    _, sharded = pair
    rng = np.random.default_rng(2)
    W, R = rng.standard_normal((D, M)), rng.standard_normal((N, M)) * 10.0 ** rng.integers(-8, 8, (N, 1))
    X = [[Fraction(value) for value in row] for row in dense(pair[0].block(0)).tolist()]
    if with_compensation:
        with compensated():
            forward, adjoint = sharded.enclose_forward(W), sharded.enclose_adjoint(R)
    else:
        forward, adjoint = sharded.enclose_forward(W), sharded.enclose_adjoint(R)
    for i in range(N):
        for k in range(M):
            exact = sum(X[i][j] * Fraction(W[j, k]) for j in range(D))
            assert Fraction(forward.lower[i, k]) <= exact <= Fraction(forward.upper[i, k])
    for j in range(D):
        for k in range(M):
            exact = sum(X[i][j] * Fraction(R[i, k]) for i in range(N))
            assert Fraction(adjoint.lower[j, k]) <= exact <= Fraction(adjoint.upper[j, k])


def test_compensated_products_lose_nothing_between_shards() -> None:
    """Terms that cancel over shards: plain sums lose all digits, compensated ones none."""
    X, R = np.ones((4, D)), np.array([[1e16], [1.0], [-1e16], [1.0]])
    sharded = ShardedDesign(held(X, (1, 2, 3)), 1)
    with compensated():
        value = sharded.enclose_adjoint(R)
    np.testing.assert_array_equal(value.middle, np.full((D, 1), 2.0))


@given(st.lists(st.integers(min_value=1, max_value=N - 1), unique=True, max_size=4))
def test_any_cut_is_one_design(cuts: list[int]) -> None:
    X = features("dense")
    sharded = ShardedDesign(held(X, tuple(sorted(cuts))), M)
    R = np.random.default_rng(3).standard_normal((N, M))
    np.testing.assert_allclose(sharded.adjoint(R), X.T @ R, rtol=1e-12, atol=1e-12)


def test_the_whole_matrix_is_refused(pair: tuple[SharedDesign, ShardedDesign]) -> None:
    for ask in (lambda: pair[1].block(0), pair[1].stacked, pair[1].with_constant):
        with pytest.raises(InputError, match="in shards"):
            ask()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_files_give_the_bits_of_memory(kind: str, tmp_path: Path) -> None:
    X, Y = features(kind), np.random.default_rng(4).standard_normal((N, M))
    manifest = write_shards(tmp_path / "set", [(X[:9], Y[:9]), (X[9:], Y[9:])], name="two")
    data = read_shards(manifest, verify=True)
    assert data.name == "two"
    np.testing.assert_array_equal(data.targets, Y)
    held_design = ShardedDesign(held(X, (9,)), M)
    W = np.random.default_rng(5).standard_normal((D, M))
    np.testing.assert_array_equal(data.design.forward(W), held_design.forward(W))
    np.testing.assert_array_equal(data.design.adjoint(Y), held_design.adjoint(Y))
    again = pickle.loads(pickle.dumps(data.design))
    np.testing.assert_array_equal(again.adjoint(Y), held_design.adjoint(Y))


def test_shards_that_are_not_alike_or_damaged_are_refused(tmp_path: Path) -> None:
    X, Y = features("dense"), np.ones((N, 1))
    with pytest.raises(InputError, match=r"part 1 has features 6, but part 0 has 7"):
        write_shards(tmp_path / "a", [(X, Y), (X[:, :6], Y)])
    with pytest.raises(InputError, match="no part"):
        write_shards(tmp_path / "a", [])
    with pytest.raises(InputError, match="X of part 0"):
        write_shards(tmp_path / "a", [(np.full((2, 2), np.nan), Y[:2])])
    with pytest.raises(InputError, match="rows must agree"):
        write_shards(tmp_path / "a", [(X, Y[:3])])
    assert list(tmp_path.iterdir()) == []  # nothing half written
    manifest = write_shards(tmp_path / "a", [(X, Y)])
    with pytest.raises(InputError, match="exists"):
        write_shards(tmp_path / "a", [(X, Y)])
    file = manifest.parent / "00000.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    read_shards(manifest)
    with pytest.raises(InputError, match=r"00000\.npy is not what was written"):
        read_shards(manifest, verify=True)
    file.write_bytes(content[:-8])
    with pytest.raises(InputError, match=r"00000\.npy has \d+ bytes, and \d+ were written"):
        read_shards(manifest)
    file.unlink()
    with pytest.raises(InputError, match=r"00000\.npy is missing"):
        read_shards(manifest)
    manifest.write_text("{}")
    with pytest.raises(InputError, match="not readable as a manifest of shards"):
        read_shards(manifest)


def test_a_design_that_remembers_its_norms_is_the_same(pair: tuple[SharedDesign, ShardedDesign]) -> None:
    """Workers compare a problem with what it was: a solver that asks for norms has changed nothing."""
    _, sharded = pair
    before = pickle.dumps(sharded)
    sharded.norms()
    assert pickle.dumps(sharded) == before
    assert pickle.loads(before).norms()[0] == sharded.norms()[0]


@pytest.fixture(params=["dense", "sparse"])
def by_task(request: pytest.FixtureRequest) -> tuple[PerTaskDesign, ShardedTaskDesign]:
    Xs = [features(request.param, n) for n in (9, 4, 14)]
    cuts = [(0, slice(5)), (0, slice(5, 9)), (1, slice(4)), (2, slice(14))]
    shards = Shards.held([(Xs[k][rows], np.zeros((Xs[k][rows].shape[0], 1))) for k, rows in cuts], [k for k, _ in cuts])
    made = design_of(shards)
    assert isinstance(made, ShardedTaskDesign)
    return PerTaskDesign(Xs), made


def test_tasks_with_rows_of_their_own_are_those_of_the_design_in_memory(by_task: tuple[PerTaskDesign, ShardedTaskDesign]) -> None:
    plain, sharded = by_task
    rng = np.random.default_rng(1)
    W, R = rng.standard_normal((D, 3)), rng.standard_normal(27)
    for name in ("output_shape", "sizes", "n_features", "n_tasks", "n_examples", "n_stored", "is_sparse", "is_shared"):
        assert getattr(sharded, name) == getattr(plain, name), name
    close: dict[str, Any] = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(sharded.forward(W), plain.forward(W), **close)
    np.testing.assert_allclose(sharded.adjoint(R), plain.adjoint(R), **close)
    np.testing.assert_allclose(sharded.gram(2), plain.gram(2), **close)
    np.testing.assert_allclose(sharded.norms(), plain.norms(), rtol=1e-12)
    assert sharded.squares() == pytest.approx(plain.squares())
    np.testing.assert_array_equal(sharded.task_sums(R), plain.task_sums(R))
    some, rows = np.array([4, 1]), np.array([8, 2, 5])
    np.testing.assert_array_equal(dense(sharded.restricted(some).block(2)), dense(plain.restricted(some).block(2)))
    np.testing.assert_array_equal(dense(sharded.examples(0, rows)), dense(plain.examples(0, rows)))
    for one, other in (
        (sharded.enclose_forward(W), plain.enclose_forward(W)),
        (sharded.enclose_adjoint(R), plain.enclose_adjoint(R)),
    ):
        assert np.all(one.lower <= other.upper)
        assert np.all(other.lower <= one.upper)
    with compensated():
        np.testing.assert_allclose(sharded.enclose_adjoint(R).middle, plain.enclose_adjoint(R).middle, rtol=1e-15, atol=1e-300)
        np.testing.assert_allclose(sharded.enclose_forward(W).middle, plain.enclose_forward(W).middle, rtol=1e-15, atol=1e-300)
    with pytest.raises(InputError, match="in shards"):
        sharded.block(0)


def test_shards_of_tasks_are_written_and_read(tmp_path: Path) -> None:
    X, y = features("dense"), np.random.default_rng(4).standard_normal(N)
    parts = [(X[:9], y[:9]), (X[9:12], y[9:12]), (X[12:], y[12:])]
    data = read_shards(write_shards(tmp_path / "set", parts, tasks=[0, 0, 1]), verify=True)
    assert data.design.sizes == (12, 11)
    np.testing.assert_array_equal(data.targets, y)
    plain = PerTaskDesign([X[:12], X[12:]])
    np.testing.assert_allclose(data.design.adjoint(y), plain.adjoint(y), rtol=1e-13, atol=1e-13)
    for tasks, words in (([0, 1], "tasks has 2 entries, but there are 3 parts"), ([0, 2, 2], "tasks must ascend"), ([1, 0, 1], "ascend")):
        with pytest.raises(InputError, match=words):
            write_shards(tmp_path / "other", parts, tasks=tasks)
    with pytest.raises(InputError, match="targets are one column, not 2"):
        write_shards(tmp_path / "other", [(X, np.ones((N, 2)))], tasks=[0])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("size", [1e200, 1e-170, 1.0])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_norms_of_far_units(kind: str, size: float) -> None:
    X = sp.csr_array(np.eye(6, D)) * size if kind == "sparse" else np.eye(6, D) * size
    design = ShardedDesign(Shards.held([(X[:2], np.zeros((2, 1))), (X[2:], np.zeros((4, 1)))]))
    assert design.norm() == pytest.approx(size)
