"""Preprocessing steps: what each one computes, on shared and per-task, dense and sparse designs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, preprocess, synthetic_l1inf, synthetic_sparse_low_rank

LAYOUTS = ["shared", "per_task"]
STORAGES = ["dense", "sparse"]
ENTRIES = st.one_of(st.just(0.0), st.floats(-1e3, 1e3, allow_subnormal=False))
MATRICES = arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 6)), elements=ENTRIES)


def make(X: Any, layout: str = "shared", storage: str = "dense") -> TaskData:
    """Two tasks over X: both over all of it, or the first over two rows and the second over the others."""
    matrix = sp.csr_array(X) if storage == "sparse" else X
    if layout == "shared":
        return TaskData.shared(matrix, np.ones((len(X), 2)), name="made", notes=("Before.",))
    return TaskData.per_task([matrix[:2], matrix[2:]], [np.ones(2), np.ones(len(X) - 2)], name="made", notes=("Before.",))


def rows(data: TaskData) -> Any:
    """The pooled rows, dense."""
    blocks = [data.task(k)[0] for k in range(1 if data.design.is_shared else data.n_tasks)]
    return np.concatenate([block.toarray() if data.design.is_sparse else block for block in blocks])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@given(X=MATRICES)
def test_unit_rows(layout: str, storage: str, X: Any) -> None:
    data = preprocess(make(X, layout, storage), ["unit_rows"])
    result = rows(data)
    assert data.design.is_sparse == (storage == "sparse")
    lengths = np.array([math.hypot(*row) for row in X])
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), np.where(lengths > 0.0, 1.0, 0.0), rtol=1e-12)
    np.testing.assert_allclose(result * lengths[:, None], X, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("storage", STORAGES)
def test_unit_rows_at_the_ends_of_the_number_range(storage: str) -> None:
    X = np.array([[1e300, -1e300], [1e-300, 0.0], [5e-324, 5e-324], [0.0, 0.0]])
    data = preprocess(make(X, storage=storage), ["unit_rows"])
    half = math.sqrt(0.5)
    np.testing.assert_allclose(rows(data), np.array([[half, -half], [1, 0], [half, half], [0, 0]]))
    assert data.notes == ("Before.", "Every row was scaled to unit length; 1 zero row(s) stayed zero.")


@pytest.mark.parametrize("layout", LAYOUTS)
@given(X=arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 6)), elements=st.integers(-5, 5).map(float)))
def test_standardise_dense(layout: str, X: Any) -> None:
    data = preprocess(make(X, layout), ["standardise"])
    result = rows(data)
    constant = np.ptp(X, axis=0) == 0.0
    np.testing.assert_allclose(result.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(result[:, ~constant].std(axis=0), 1.0, rtol=1e-12)
    assert not result[:, constant].any()
    assert ("constant" in data.notes[-1]) == constant.any()


@pytest.mark.parametrize("layout", LAYOUTS)
@given(X=arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 6)), elements=st.integers(-2, 2).map(float)))
def test_standardise_sparse_scales_and_does_not_centre(layout: str, X: Any) -> None:
    data = preprocess(make(X, layout, "sparse"), ["standardise"])
    deviation = X.std(axis=0)
    np.testing.assert_allclose(rows(data), X / np.where(deviation > 0.0, deviation, 1.0), rtol=1e-12)
    assert data.design.is_sparse
    assert "not centred" in data.notes[-1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@given(X=arrays(np.float64, st.tuples(st.integers(3, 8), st.integers(1, 6)), elements=st.integers(0, 3).map(float)))
def test_tfidf(layout: str, storage: str, X: Any) -> None:
    data = preprocess(make(X, layout, storage), ["tfidf"])
    weights = np.log((1 + len(X)) / (1 + np.count_nonzero(X, axis=0))) + 1
    np.testing.assert_allclose(rows(data), X * weights, rtol=1e-12)
    assert data.design.is_sparse == (storage == "sparse")


def test_tfidf_does_not_count_stored_zeros() -> None:
    stored = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 0, 1]), np.array([0, 1, 2, 3])), shape=(3, 2))
    made = TaskData.shared(stored, np.ones((3, 1)))
    np.testing.assert_allclose(rows(preprocess(made, ["tfidf"])), rows(preprocess(make(stored.toarray()), ["tfidf"])))


@pytest.mark.parametrize("storage", STORAGES)
def test_tfidf_refuses_negative_entries(storage: str) -> None:
    with pytest.raises(InputError, match="'tfidf' needs counts of at least 0, but X has -2"):
        preprocess(make(np.array([[1.0, 0], [0, -2], [1, 1]]), storage=storage), ["tfidf"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_svd_keeps_the_leading_directions(layout: str, storage: str, k: int) -> None:
    X = np.random.default_rng(0).standard_normal((9, 5))
    data = preprocess(make(X, layout, storage), [f"svd:{k}"])
    assert data.n_features == k
    assert not data.design.is_sparse
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    result = rows(data)
    np.testing.assert_allclose(result @ result.T, (U[:, :k] * s[:k] ** 2) @ U[:, :k].T, atol=1e-10)
    directions = np.linalg.lstsq(X, result, rcond=None)[0]
    assert (directions[np.argmax(np.abs(directions), axis=0), np.arange(k)] > 0.0).all()
    np.testing.assert_allclose(np.abs(directions), np.abs(Vt[:k].T), atol=1e-10)


def test_svd_of_a_large_sparse_matrix_agrees_with_the_full_one() -> None:
    generator = np.random.default_rng(1)
    X = sp.csr_array(generator.standard_normal((1100, 1050)) * (generator.random((1100, 1050)) < 0.01))
    first, second = (preprocess(TaskData.shared(X, np.ones((1100, 1))), ["svd:3"]) for _ in range(2))
    np.testing.assert_array_equal(rows(first), rows(second))
    squares, vectors = np.linalg.eigh((X.T @ X).toarray())
    V = vectors[:, :-4:-1]
    signs = np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(3)])
    np.testing.assert_allclose(rows(first), (X @ V) * signs, atol=1e-8 * np.sqrt(squares[-1]))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("svd:4", r"svd:4': K must be at most min\(rows, features\) = 3"),
        ("svd:3", "svd:3': K must be at most the rank of the data, 2"),
        ("svd", "svd' must be svd:K, with whole numbers of at least 1"),
        ("svd:", "svd:' must be svd:K, with whole numbers of at least 1"),
        ("svd:0", "must be svd:K, with whole numbers"),
        ("svd:-1", "must be svd:K, with whole numbers"),
        ("svd:2.5", "must be svd:K, with whole numbers"),
        ("svd:\u0663", "must be svd:K, with whole numbers"),
        ("standardize", "unknown preprocessing step 'standardize': did you mean 'standardise'"),
        ("", "unknown preprocessing step ''"),
        (3, "preprocess must be names of steps, not 3"),
    ],
)
def test_steps_that_cannot_be_done(step: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        preprocess(make(np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 0], [1, 3, 3]])), [step])


def test_svd_of_zeros_has_no_rank() -> None:
    with pytest.raises(InputError, match="at most the rank of the data, 0"):
        preprocess(make(np.zeros((4, 3))), ["svd:1"])


def test_overflow_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="X after preprocessing step 'standardise' has"):
        preprocess(make(np.array([[1e308, 1], [-1e308, 2], [1e308, 3]])), ["standardise"])


def test_steps_are_applied_in_order_and_told() -> None:
    X = np.array([[3.0, 0, 1], [0, 2, 1], [1, 1, 0], [4, 0, 0]])
    data = preprocess(make(X), ["tfidf", "unit_rows", "svd:2"])
    by_hand = preprocess(preprocess(preprocess(make(X), "tfidf"), "unit_rows"), "svd:2")
    np.testing.assert_array_equal(rows(data), rows(by_hand))
    assert data.notes == by_hand.notes
    assert len(data.notes) == 4
    assert all(note.endswith(".") for note in data.notes)
    assert data.name == "made"


def test_none_changes_nothing() -> None:
    data = make(np.eye(3))
    assert preprocess(data, ["none"]) is data
    assert preprocess(data, []) is data
    assert preprocess(data, "none") is data


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("step", ["unit_rows", "standardise", "tfidf", "svd:2"])
def test_the_given_data_stay_as_they_were(layout: str, storage: str, step: str) -> None:
    X = np.array([[3.0, 0, 1], [0, 2, 1], [1, 1, 0], [4, 0, 0]])
    data = make(X, layout, storage)
    result = preprocess(data, [step])
    np.testing.assert_array_equal(rows(data), X)
    assert data.notes == ("Before.",)
    assert result.design.sizes == data.design.sizes
    assert result.design.is_shared == data.design.is_shared
    np.testing.assert_array_equal(result.targets, data.targets)


def test_truth_is_kept_only_where_it_still_holds() -> None:
    labels = synthetic_l1inf(tasks=2, features=6, examples=5)
    kept = preprocess(labels, ["unit_rows"])
    np.testing.assert_array_equal(kept.truth["W"], labels.truth["W"])
    dropped = preprocess(labels, ["standardise"])
    assert dropped.truth == {}
    assert "do not belong to the features after 'standardise'" in dropped.notes[-1]
    real = synthetic_sparse_low_rank(tasks=3, features=4, examples=5, rank=1, zero_features=0, zero_tasks=0)
    assert preprocess(real, ["unit_rows"]).truth == {}
