"""Held-out examples are transformed with the statistics of the training examples, and signs of coefficients stay where they belong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, preprocess

RNG = np.random.default_rng(7)
TRAINING = RNG.integers(0, 4, (9, 4)).astype(float)
HELD_OUT = RNG.integers(0, 4, (5, 4)).astype(float)
STEPS = ["unit_rows", "standardise", "tfidf", "svd:2"]


def made(X: Any, layout: str, storage: str) -> TaskData:
    matrix = sp.csr_array(X) if storage == "sparse" else X
    if layout == "shared":
        return TaskData.shared(matrix, np.ones((len(X), 2)), name="made")
    return TaskData.per_task([matrix[:2], matrix[2:]], [np.ones(2), np.ones(len(X) - 2)], name="made")


def rows(data: TaskData | None) -> Any:
    assert data is not None
    blocks = [data.task(k)[0] for k in range(1 if data.design.is_shared else data.n_tasks)]
    return np.concatenate([block.toarray() if data.design.is_sparse else block for block in blocks])


def by_hand(step: str, storage: str) -> Any:
    """The transformed held-out rows."""
    n = len(TRAINING)
    if step == "unit_rows":
        lengths = np.linalg.norm(HELD_OUT, axis=1, keepdims=True)
        return HELD_OUT / np.where(lengths > 0.0, lengths, 1.0)
    if step == "standardise":
        mean = TRAINING.mean(axis=0) if storage == "dense" else 0.0
        return (HELD_OUT - mean) / TRAINING.std(axis=0)
    if step == "tfidf":
        return HELD_OUT * (np.log((1 + n) / (1 + np.count_nonzero(TRAINING, axis=0))) + 1)
    Vt = np.linalg.svd(TRAINING, full_matrices=False)[2][:2]
    return HELD_OUT @ (Vt * np.sign(Vt[np.arange(2), np.abs(Vt).argmax(axis=1)])[:, None]).T


@pytest.mark.parametrize("layout", ["shared", "per_task"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("step", STEPS)
def test_held_out_rows_get_the_statistics_of_the_training_rows(layout: str, storage: str, step: str) -> None:
    alone = made(TRAINING, layout, storage)
    both = preprocess(alone.with_held_out(made(HELD_OUT, layout, storage)), [step])
    np.testing.assert_array_equal(rows(both), rows(preprocess(alone, [step])))
    np.testing.assert_allclose(rows(both.held_out), by_hand(step, storage), atol=1e-12)
    assert both.held_out is not None
    assert both.held_out.design.sizes == made(HELD_OUT, layout, storage).design.sizes
    assert both.held_out.design.is_sparse == both.design.is_sparse


def test_features_constant_in_training_become_0_in_held_out_rows() -> None:
    training = TRAINING.copy()
    training[:, 1] = 0.1
    data = preprocess(made(training, "shared", "dense").with_held_out(made(HELD_OUT, "shared", "dense")), ["standardise"])
    assert not rows(data.held_out)[:, 1].any()


def test_negative_counts_and_overflow_of_held_out_rows_are_refused() -> None:
    data = made(TRAINING, "shared", "dense")
    with pytest.raises(InputError, match="'tfidf' needs counts of at least 0, but X has -1"):
        preprocess(data.with_held_out(made(-np.ones((2, 4)), "shared", "dense")), ["tfidf"])
    small = made(1e-3 * TRAINING, "shared", "dense")
    with pytest.raises(InputError, match="X after preprocessing step 'standardise' has inf"):
        preprocess(small.with_held_out(made(np.full((2, 4), 1.79e308), "shared", "dense")), ["standardise"])


@pytest.mark.parametrize("step", STEPS)
def test_signs_stay_with_the_features_they_belong_to(step: str) -> None:
    orientation = np.where(RNG.random((4, 2)) < 0.5, 1.0, -1.0)
    data = preprocess(replace(made(TRAINING, "shared", "dense"), orientation=orientation), [step])
    if step == "svd:2":
        assert data.orientation is None
        assert "signs of the coefficients do not belong to the features after 'svd:2'" in data.notes[-1]
    else:
        assert data.orientation is orientation
