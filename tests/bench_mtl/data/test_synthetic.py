"""The generators follow the papers' recipes, and the embedded digits are whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, digits, synthetic_l1inf, synthetic_sparse_low_rank


def same(a: TaskData, b: TaskData) -> bool:
    return np.array_equal(a.targets, b.targets) and all(np.array_equal(a.task(k)[0], b.task(k)[0]) for k in range(a.n_tasks))


def test_l1inf_has_the_papers_sizes_by_default() -> None:
    data = synthetic_l1inf()
    assert (data.n_tasks, data.n_features) == (60, 200)
    assert data.design.sizes == (40,) * 60
    assert not data.design.is_shared
    relevant = np.flatnonzero(np.abs(data.truth["W"]).sum(axis=1))
    assert len(relevant) == 20


@given(
    tasks=st.integers(1, 8),
    features=st.integers(1, 30),
    examples=st.integers(1, 6),
    relevant=st.floats(0.01, 1.0),
    seed=st.integers(0, 2**40),
    split=st.sampled_from(["train", "test"]),
)
def test_l1inf_follows_the_recipe(tasks: int, features: int, examples: int, relevant: float, seed: int, split: str) -> None:
    data = synthetic_l1inf(tasks=tasks, features=features, examples=examples, relevant=relevant, seed=seed, split=split)
    W = data.truth["W"]
    assert W.shape == (features, tasks)
    size_of_V = max(1, round(relevant * features))
    assert np.count_nonzero(W.any(axis=1)) <= size_of_V
    for k in range(tasks):
        X, y = data.task(k)
        assert X.shape == (examples, features)
        assert math.ceil(size_of_V / 2) <= np.count_nonzero(W[:, k]) <= size_of_V
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(y, np.where(X @ W[:, k] >= 0.0, 1.0, -1.0))


def test_l1inf_sizes_of_supports_take_every_value() -> None:
    W = synthetic_l1inf(tasks=400, features=20, relevant=0.3, examples=1).truth["W"]
    assert set(np.count_nonzero(W, axis=0).tolist()) == {3, 4, 5, 6}


def test_l1inf_is_deterministic_and_seeds_differ() -> None:
    sizes: dict[str, Any] = {"tasks": 3, "features": 10, "examples": 5}
    assert same(synthetic_l1inf(**sizes, seed=3), synthetic_l1inf(**sizes, seed=3))
    assert not same(synthetic_l1inf(**sizes, seed=3), synthetic_l1inf(**sizes, seed=4))


def test_l1inf_test_split_has_the_same_coefficients_and_other_examples() -> None:
    train, test = synthetic_l1inf(examples=30), synthetic_l1inf(examples=50, split="test")
    np.testing.assert_array_equal(train.truth["W"], test.truth["W"])
    shared_rows = {row.tobytes() for row in train.task(0)[0]} & {row.tobytes() for row in test.task(0)[0]}
    assert not shared_rows
    # Seeds whose entropy words look like those of a child seed must not meet it either.
    assert not same(synthetic_l1inf(examples=30, seed=2**32), synthetic_l1inf(examples=30, seed=0, split="test"))


def test_truth_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        synthetic_l1inf(tasks=2, features=4, examples=2).truth["W"][0, 0] = 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 0}, "tasks must be a whole number of at least 1"),
        ({"features": 2.5}, "features must be a whole number"),
        ({"examples": -1}, "examples must be"),
        ({"examples": True}, "examples must be"),
        ({"relevant": 0.0}, "relevant must be finite and above 0"),
        ({"relevant": 1.5}, "relevant must be at most 1"),
        ({"relevant": math.nan}, "relevant must be finite"),
        ({"seed": -1}, "seed must be"),
        ({"split": "both"}, "split must be one of train, test"),
    ],
)
def test_l1inf_refuses_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_l1inf(**options)


def test_sparse_low_rank_has_the_papers_structure_by_default() -> None:
    data = synthetic_sparse_low_rank()
    P, Q = data.truth["P"], data.truth["Q"]
    assert (data.n_tasks, data.n_features, data.design.sizes) == (30, 100, (60,) * 30)
    assert P.shape == Q.shape == (100, 30)
    assert not P[:30].any()
    assert not P[:, :10].any()
    assert np.count_nonzero(P) == 70 * 20
    assert np.linalg.matrix_rank(Q) == 10


@pytest.mark.parametrize("shared", [False, True])
def test_sparse_low_rank_targets_follow_the_model(shared: bool) -> None:
    data = synthetic_sparse_low_rank(tasks=5, features=7, examples=4, rank=2, zero_features=2, zero_tasks=1, noise_std=0.0, shared=shared)
    assert data.design.is_shared == shared
    W = data.truth["P"] + data.truth["Q"]
    np.testing.assert_allclose(data.design.forward(W), data.targets, atol=1e-12)


def test_sparse_low_rank_scales_with_its_deviations() -> None:
    sizes: dict[str, Any] = {"tasks": 6, "features": 9, "examples": 3, "rank": 4, "zero_features": 1, "zero_tasks": 1}
    plain = synthetic_sparse_low_rank(**sizes)
    scaled = synthetic_sparse_low_rank(**sizes, sparse_std=2.0, low_rank_std=3.0, design_std=0.5)
    np.testing.assert_allclose(scaled.truth["P"], 2.0 * plain.truth["P"])
    np.testing.assert_allclose(scaled.truth["Q"], 3.0 * plain.truth["Q"], atol=1e-12)
    np.testing.assert_allclose(scaled.task(0)[0], 0.5 * plain.task(0)[0])


def test_sparse_low_rank_is_deterministic_and_seeds_differ() -> None:
    assert same(synthetic_sparse_low_rank(seed=1), synthetic_sparse_low_rank(seed=1))
    assert not same(synthetic_sparse_low_rank(seed=1), synthetic_sparse_low_rank(seed=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 31}, r"rank must be at most min\(features, tasks\) = 30"),
        ({"rank": -1}, "rank must be a whole number"),
        ({"zero_features": 101}, "zero_features must be at most features = 100"),
        ({"zero_tasks": 31}, "zero_tasks must be at most tasks = 30"),
        ({"noise_std": -1.0}, "noise_std must be finite and at least 0"),
        ({"sparse_std": math.inf}, "sparse_std must be finite"),
        ({"design_std": 0.0}, "design_std must be finite and above 0"),
        ({"low_rank_std": "1"}, "low_rank_std must be a number"),
        ({"shared": 1}, "shared must be true or false"),
        ({"seed": 0.5}, "seed must be"),
    ],
)
def test_sparse_low_rank_refuses_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_sparse_low_rank(**options)


def test_digits_are_ten_tasks_over_one_design() -> None:
    data = digits()
    assert data.design.output_shape == (1797, 10)
    assert data.n_features == 64
    np.testing.assert_array_equal(data.targets.sum(axis=1), -8.0)
    X, _ = data.task(0)
    assert X.min() == 0.0
    assert X.max() == 1.0


@pytest.mark.parametrize("examples", [10, 11, 100, 333, 1797])
def test_digits_sample_is_proportional(examples: int) -> None:
    whole, data = digits(), digits(examples=examples, seed=5)
    counts = np.count_nonzero(data.targets == 1.0, axis=0)
    assert counts.sum() == examples
    expected = np.count_nonzero(whole.targets == 1.0, axis=0) * examples / 1797
    assert np.abs(counts - expected).max() < 1.0
    assert counts.min() >= 1


def test_digits_sample_depends_on_the_seed_only() -> None:
    assert same(digits(examples=50, seed=1), digits(examples=50, seed=1))
    assert not same(digits(examples=50, seed=1), digits(examples=50, seed=2))
    assert same(digits(seed=1), digits(seed=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"examples": 9}, "examples must be"), ({"examples": 1798}, "examples must be at most 1797"), ({"seed": -1}, "seed must be")],
)
def test_digits_refuses_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        digits(**options)


def test_digits_held_out_images_are_others_in_the_same_proportions() -> None:
    data = digits(examples=100, held_out=50, seed=5)
    assert same(data, digits(examples=100, seed=5))
    assert data.held_out is not None
    assert data.held_out.design.output_shape == (50, 10)
    counts = np.count_nonzero(data.held_out.targets == 1.0, axis=0)
    assert (np.abs(counts - 5) <= 1).all()
    assert "100 and 50 held-out of 1797 images were drawn in the classes' proportions" in data.notes[-1]
    rest = digits(held_out=300, seed=5)
    assert rest.held_out is not None
    rows = np.concatenate([rest.task(0)[0], rest.held_out.task(0)[0]])
    assert len(rows) == 1797
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], digits().task(0)[0][np.lexsort(digits().task(0)[0].T)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": 1788}, "held_out must be at most 1787, so that 10 of 1797 images are left"),
        ({"examples": 1000, "held_out": 798}, "examples = 1000 and held_out = 798 are more than the 1797 images"),
        ({"held_out": -1}, "held_out must be"),
        ({"held_out": True}, "held_out must be"),
    ],
)
def test_digits_refuses_bad_numbers_of_held_out_images(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        digits(**options)
