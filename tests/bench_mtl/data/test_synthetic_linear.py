"""Generators of sparse linear models: dense and sparse designs, and documents in very many dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, synthetic_glm, synthetic_stream

SMALL: dict[str, Any] = {"features": 400, "examples": 30, "density": 0.05, "relevant": 0.05}


def dense(data: TaskData) -> Any:
    X = data.design.block(0)
    return X.toarray() if isinstance(X, sp.csr_array) else np.asarray(X)


def same(a: TaskData, b: TaskData) -> bool:
    return np.array_equal(a.targets, b.targets) and np.array_equal(dense(a), dense(b))


@given(
    tasks=st.integers(2, 4),
    features=st.integers(1, 20),
    examples=st.integers(1, 15),
    relevant=st.floats(0.01, 1.0),
    kind=st.sampled_from(["regression", "labels", "classes"]),
    density=st.sampled_from([1.0, 0.3]),
    split=st.sampled_from(["train", "test"]),
)
def test_glm_without_noise_follows_the_model(
    tasks: int, features: int, examples: int, relevant: float, kind: str, density: float, split: str
) -> None:
    quiet: dict[str, Any] = {"noise_std": 0.0} if kind == "regression" else {"label_noise": 0.0}
    data = synthetic_glm(
        tasks=tasks,
        features=features,
        examples=examples,
        relevant=relevant,
        kind=kind,
        density=density,
        split=split,
        held_out=4,
        **quiet,
    )
    assert data.held_out is not None
    assert data.held_out.design.output_shape == (4, tasks)
    W = data.truth["W"]
    np.testing.assert_array_equal(np.count_nonzero(W, axis=0), max(1, round(relevant * features)))
    for part in (data, data.held_out):
        assert part.design.is_shared
        assert part.design.is_sparse == (density < 1.0)
        responses = part.design.forward(W)
        if kind == "regression":
            np.testing.assert_allclose(part.targets, responses, atol=1e-12)
        elif kind == "labels":
            np.testing.assert_array_equal(part.targets, np.where(responses >= 0.0, 1.0, -1.0))
        else:
            np.testing.assert_array_equal(part.targets.argmax(axis=1), responses.argmax(axis=1))
            np.testing.assert_array_equal(part.targets.sum(axis=1), 2 - tasks)


def test_glm_density_is_exact() -> None:
    X = synthetic_glm(features=50, examples=40, density=0.1).design.block(0)
    assert X.nnz == 200
    assert abs(X.data.std() - 1.0) < 0.2


def test_glm_noise_is_as_large_as_asked() -> None:
    data = synthetic_glm(tasks=2, features=30, examples=500)
    assert abs((data.targets - data.design.forward(data.truth["W"])).std() - 1.0) < 0.1
    labels = synthetic_glm(tasks=2, features=30, examples=500, kind="labels", held_out=100)
    classes = synthetic_glm(tasks=3, features=30, examples=500, kind="classes", held_out=100)
    for part, n in ((labels, 500), (labels.held_out, 100)):
        assert part is not None
        wrong = part.targets != np.where(part.design.forward(labels.truth["W"]) >= 0.0, 1.0, -1.0)
        np.testing.assert_array_equal(wrong.sum(axis=0), n // 10)
    for part, n in ((classes, 500), (classes.held_out, 100)):
        assert part is not None
        wrong = part.targets.argmax(axis=1) != part.design.forward(classes.truth["W"]).argmax(axis=1)
        assert wrong.sum() == n // 10


@pytest.mark.parametrize("generator", [synthetic_glm, synthetic_stream])
def test_streams_of_a_seed_are_independent_and_share_the_coefficients(generator: Any) -> None:
    sizes: dict[str, Any] = {"features": 60, "examples": 20, "density": 0.2, "relevant": 0.1}
    train, test = generator(**sizes, held_out=20), generator(**sizes, split="test", held_out=20)
    assert same(train, generator(**sizes))
    assert generator(**sizes).held_out is None
    assert same(train.held_out, test.held_out)
    assert not same(train, test)
    assert not same(train, train.held_out)
    assert not same(test, test.held_out)
    assert not same(train, generator(**sizes, seed=1))
    np.testing.assert_array_equal(train.truth["W"], test.truth["W"])
    with pytest.raises(ValueError, match="read-only"):
        train.truth["W"][0, 0] = 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 0}, "tasks must be"),
        ({"features": 0}, "features must be"),
        ({"examples": 0}, "examples must be"),
        ({"held_out": -1}, "held_out must be"),
        ({"relevant": 1.1}, r"relevant must be at most 1 \(it is the share of non-zero coefficients\)"),
        ({"density": 0.0}, "density must be finite and above 0"),
        ({"kind": "counts"}, "kind must be one of regression, labels, classes"),
        ({"kind": "classes"}, "kind 'classes' needs at least 2 tasks"),
        ({"kind": "labels", "label_noise": 1.5}, "label_noise must be at most 1"),
        ({"label_noise": 0.1}, "label_noise is for labels and classes"),
        ({"noise_std": -1.0}, "noise_std must be"),
        ({"seed": -1}, "seed must be"),
        ({"split": "both"}, "split must be one of"),
    ],
)
def test_glm_refuses_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_glm(**options)


@given(
    features=st.integers(2, 300),
    examples=st.integers(1, 6),
    density=st.floats(0.001, 0.5),
    relevant=st.floats(0.001, 0.1),
    values=st.sampled_from(["tfidf", "binary"]),
)
def test_stream_rows_have_so_many_features_and_unit_length(
    features: int, examples: int, density: float, relevant: float, values: str
) -> None:
    data = synthetic_stream(features=features, examples=examples, density=density, relevant=relevant, values=values, label_noise=0.0)
    X = data.design.block(0)
    np.testing.assert_array_equal(np.diff(X.indptr), max(1, round(density * features)))
    np.testing.assert_allclose(np.linalg.norm(dense(data), axis=1), 1.0, rtol=1e-12)
    assert X.data.min() > 0.0
    W = data.truth["W"]
    assert np.count_nonzero(W) == max(1, round(relevant * features))
    np.testing.assert_array_equal(data.targets, np.where(X @ W >= 0.0, 1.0, -1.0))


def test_stream_features_are_as_frequent_as_words() -> None:
    d, n = 5000, 400
    data = synthetic_stream(features=d, examples=n, density=0.01, values="binary")
    frequency = np.count_nonzero(dense(data), axis=0)
    p = np.log1p(1.0 / (np.arange(d) + 2.7)) / math.log1p(d / 2.7)
    assert abs(p.sum() - 1.0) < 1e-9
    tokens = 50.0  # so many that the expected number of different ones is 50
    while (1.0 - (1.0 - p) ** tokens).sum() < 50.0:
        tokens += 1.0
    expected = n * (1.0 - (1.0 - p) ** tokens)
    for first, last in ((0, 10), (10, 100), (100, 1000), (1000, d)):
        assert abs(frequency[first:last].sum() / expected[first:last].sum() - 1.0) < 0.1
    relevant = np.flatnonzero(synthetic_stream(features=d, examples=1, density=0.01, relevant=0.1).truth["W"])
    assert expected[relevant].max() < 0.7 * n
    assert relevant.max() > d / 2


def test_stream_tfidf_values_follow_the_formula() -> None:
    data = synthetic_stream(**SMALL)
    X, d = data.design.block(0), SMALL["features"]
    information = -np.log(np.log1p(1.0 / (np.arange(d) + 2.7)) / math.log1p(d / 2.7))
    row = dense(data)[0]
    features = np.flatnonzero(row)
    ratio = row[features] / information[features]
    counts = np.exp(ratio / ratio.min() - 1.0)  # the rarest features occur once
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert counts.max() > 1.0
    assert X.nnz == 30 * 20


def test_stream_flips_so_many_labels() -> None:
    data = synthetic_stream(**SMALL, label_noise=0.2)
    clean = np.where(data.design.forward(data.truth["W"]) >= 0.0, 1.0, -1.0)
    assert np.count_nonzero(clean != data.targets) == 6


def test_stream_takes_memory_in_proportion_to_its_nonzeros() -> None:
    import tracemalloc

    tracemalloc.start()
    data = synthetic_stream(features=10**6, examples=50, density=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.design.block(0).nnz == 50_000
    assert peak < 8 * 10**6 * 1.5 + 200 * 50_000  # w and its check, and the rows; the dense design would take 400 MB


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 1}, "features must be"),
        ({"examples": 0}, "examples must be"),
        ({"density": 0.6}, r"density must be at most 0\.5"),
        ({"density": 0}, "density must be finite and above 0"),
        ({"relevant": 0.2}, r"relevant must be at most 0\.1"),
        ({"values": "counts"}, "values must be one of tfidf, binary"),
        ({"label_noise": -0.1}, "label_noise must be"),
        ({"held_out": 0.5}, "held_out must be"),
        ({"seed": -1}, "seed must be"),
        ({"split": "dev"}, "split must be one of"),
    ],
)
def test_stream_refuses_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_stream(**{**SMALL, **options})


def test_held_out_examples_must_fit() -> None:
    data = synthetic_glm(tasks=2, features=3, examples=4)
    with pytest.raises(InputError, match="held-out examples have 4 features, but the data have 3"):
        data.with_held_out(synthetic_glm(tasks=2, features=4, examples=4))
    with pytest.raises(InputError, match="held-out examples have 1 tasks, but the data have 2"):
        data.with_held_out(synthetic_glm(features=3, examples=4))
