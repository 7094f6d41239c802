"""The generators: laws of all of them, and what each draws; the embedded digits are whole."""

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import dense

from bench_mtl.core.errors import InputError
from bench_mtl.data import (
    TaskData,
    digits,
    synthetic_glm,
    synthetic_l1inf,
    synthetic_market,
    synthetic_multiclass,
    synthetic_sparse_low_rank,
    synthetic_stream,
)

LINEAR: dict[str, Any] = {"features": 60, "examples": 20, "density": 0.2, "relevant": 0.1}
SMALL: dict[Any, dict[str, Any]] = {
    digits: {"examples": 50},
    synthetic_glm: LINEAR,
    synthetic_l1inf: {"tasks": 3, "features": 10, "examples": 20},
    synthetic_market: {"periods": 20, "assets": 4},
    synthetic_multiclass: {"examples": 20, "classes": 5},
    synthetic_sparse_low_rank: {"tasks": 3, "features": 7, "examples": 20, "rank": 2, "zero_features": 1, "zero_tasks": 1},
    synthetic_stream: LINEAR,
}
GENERATORS = pytest.mark.parametrize("generator", SMALL, ids=lambda generator: generator.__name__)


def same(a: TaskData | None, b: TaskData | None) -> bool:
    return np.array_equal(a.targets, b.targets) and all(np.array_equal(dense(a, k), dense(b, k)) for k in range(a.n_tasks))


@GENERATORS
def test_the_seed_decides_and_the_truth_is_read_only(generator: Any) -> None:
    data = generator(**SMALL[generator], seed=3)
    assert same(data, generator(**SMALL[generator], seed=3))
    assert not same(data, generator(**SMALL[generator], seed=4))
    assert (data.truth == {}) == (generator in (digits, synthetic_market))
    for array in data.truth.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


@GENERATORS
def test_splits_and_held_out_examples_are_of_streams_of_their_own_and_share_the_coefficients(generator: Any) -> None:
    options = inspect.signature(generator).parameters
    train = generator(**SMALL[generator])
    if "held_out" in options:
        more = generator(**SMALL[generator], held_out=20)
        assert same(train, more)
        assert train.held_out is None
        assert len(more.held_out.targets) == 20
        assert not same(train, more.held_out)
    if "split" in options:
        test = generator(**SMALL[generator], split="test")
        assert not same(train, test)
        np.testing.assert_array_equal(train.truth["W"], test.truth["W"])
        if "held_out" in options:
            assert not same(test, more.held_out)
            assert same(more.held_out, generator(**SMALL[generator], split="test", held_out=20).held_out)
        else:  # seeds whose entropy words look like those of a child seed must not meet it either
            assert not same(generator(**SMALL[generator], seed=2**32), test)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (synthetic_l1inf, {"relevant": 1.5}, "relevant must be above 0 and at most 1"),
    (synthetic_sparse_low_rank, {"rank": 31}, "rank must be a whole number of at least 0 and at most 30"),
    (synthetic_sparse_low_rank, {"zero_features": 101}, "zero_features must be a whole number of at least 0 and at most 100"),
    (synthetic_sparse_low_rank, {"design_std": 0.0}, "design_std must be finite and above 0"),
    (synthetic_glm, {"relevant": 1.1}, r"relevant must be above 0 and at most 1, not 1.1"),
    (synthetic_glm, {"kind": "classes"}, "kind 'classes' needs at least 2 tasks"),
    (synthetic_glm, {"kind": "labels", "label_noise": 1.5}, "label_noise must be at least 0 and at most 1"),
    (synthetic_glm, {"label_noise": 0.1}, "label_noise is for labels and classes"),
    (synthetic_stream, {"features": 1}, "features must be"),
    (synthetic_stream, {"density": 0.6}, r"density must be above 0 and at most 0\.5"),
    (synthetic_stream, {"relevant": 0.2}, r"relevant must be above 0 and at most 0\.1"),
    (synthetic_multiclass, {"examples": 9}, "examples must be a whole number of at least 10"),
    (synthetic_multiclass, {"classes": 1}, "classes must be"),
    (synthetic_multiclass, {"relevant": 51}, "relevant must be a whole number of at least 0 and at most 50"),
    (synthetic_multiclass, {"relevant": 3}, "classes must be at most 8"),
    (synthetic_market, {"cash": -1.0}, "cash must be finite and above -1"),
    (synthetic_market, {"volatility": 1e4}, "price relatives must be finite .* volatility = 10000 or drift_spread"),
    (digits, {"examples": 1798}, "examples must be a whole number of at least 10 and at most 1797"),
]


@GENERATORS
def test_options_of_other_types_are_refused_by_name(generator: Any) -> None:
    for name in inspect.signature(generator).parameters:
        for value in ([], -1, math.nan):
            with pytest.raises(InputError, match=f"^{name} "):
                generator(**{**SMALL[generator], name: value})


@pytest.mark.parametrize(("generator", "options", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_arguments_are_refused_by_name(generator: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generator(**{**(LINEAR if generator is synthetic_stream else {}), **options})


@given(
    tasks=st.integers(1, 8), features=st.integers(1, 30), examples=st.integers(1, 6), relevant=st.floats(0.01, 1.0),
    seed=st.integers(0, 2**40), split=st.sampled_from(["train", "test"]),
)  # fmt: skip
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


def test_l1inf_has_the_papers_sizes_by_default_and_supports_of_every_size() -> None:
    data = synthetic_l1inf()
    assert (data.n_tasks, data.n_features, data.design.sizes) == (60, 200, (40,) * 60)
    assert np.count_nonzero(data.truth["W"].any(axis=1)) == 20
    W = synthetic_l1inf(tasks=400, features=20, relevant=0.3, examples=1).truth["W"]
    assert set(np.count_nonzero(W, axis=0).tolist()) == {3, 4, 5, 6}


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
def test_sparse_low_rank_follows_its_model_and_scales_with_its_deviations(shared: bool) -> None:
    sizes = {**SMALL[synthetic_sparse_low_rank], "shared": shared}
    data = synthetic_sparse_low_rank(**sizes, noise_std=0.0)
    assert data.design.is_shared == shared
    np.testing.assert_allclose(data.design.forward(data.truth["P"] + data.truth["Q"]), data.targets, atol=1e-12)
    scaled = synthetic_sparse_low_rank(**sizes, sparse_std=2.0, low_rank_std=3.0, design_std=0.5)
    np.testing.assert_allclose(scaled.truth["P"], 2.0 * data.truth["P"])
    np.testing.assert_allclose(scaled.truth["Q"], 3.0 * data.truth["Q"], atol=1e-12)
    np.testing.assert_allclose(dense(scaled), 0.5 * dense(data))


@given(
    tasks=st.integers(2, 4), features=st.integers(1, 20), examples=st.integers(1, 15), relevant=st.floats(0.01, 1.0),
    kind=st.sampled_from(["regression", "labels", "classes"]), density=st.sampled_from([1.0, 0.3]),
    split=st.sampled_from(["train", "test"]),
)  # fmt: skip
def test_glm_without_noise_follows_the_model(
    tasks: int, features: int, examples: int, relevant: float, kind: str, density: float, split: str
) -> None:
    quiet: dict[str, Any] = {"noise_std": 0.0} if kind == "regression" else {"label_noise": 0.0}
    sizes: dict[str, Any] = {"tasks": tasks, "features": features, "examples": examples, "relevant": relevant, "density": density}
    data = synthetic_glm(**sizes, kind=kind, split=split, held_out=4, **quiet)
    W = data.truth["W"]
    np.testing.assert_array_equal(np.count_nonzero(W, axis=0), max(1, round(relevant * features)))
    for part, n in ((data, examples), (data.held_out, 4)):
        assert part.design.output_shape == (n, tasks)
        assert part.design.is_sparse == (density < 1.0)
        responses = part.design.forward(W)
        if kind == "regression":
            np.testing.assert_allclose(part.targets, responses, atol=1e-12)
        elif kind == "labels":
            np.testing.assert_array_equal(part.targets, np.where(responses >= 0.0, 1.0, -1.0))
        else:
            np.testing.assert_array_equal(part.targets.argmax(axis=1), responses.argmax(axis=1))
            np.testing.assert_array_equal(part.targets.sum(axis=1), 2 - tasks)


def test_glm_density_and_noise_are_as_asked() -> None:
    X = synthetic_glm(features=50, examples=40, density=0.1).design.block(0)
    assert X.nnz == 200
    assert abs(X.data.std() - 1.0) < 0.2
    data = synthetic_glm(tasks=2, features=30, examples=500)
    assert abs((data.targets - data.design.forward(data.truth["W"])).std() - 1.0) < 0.1
    labels = synthetic_glm(tasks=2, features=30, examples=500, kind="labels", held_out=100)
    classes = synthetic_glm(tasks=3, features=30, examples=500, kind="classes", held_out=100)
    for part, whole, n in (
        (labels, labels, 500),
        (labels.held_out, labels, 100),
        (classes, classes, 500),
        (classes.held_out, classes, 100),
    ):
        responses = part.design.forward(whole.truth["W"])
        if whole is labels:
            np.testing.assert_array_equal((part.targets != np.where(responses >= 0.0, 1.0, -1.0)).sum(axis=0), n // 10)
        else:
            assert np.count_nonzero(part.targets.argmax(axis=1) != responses.argmax(axis=1)) == n // 10


@given(
    features=st.integers(2, 300), examples=st.integers(1, 6), density=st.floats(0.001, 0.5), relevant=st.floats(0.001, 0.1),
    values=st.sampled_from(["tfidf", "binary"]),
)  # fmt: skip
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


def test_stream_values_and_labels_follow_the_formula() -> None:
    d = 400
    data = synthetic_stream(features=d, examples=30, density=0.05, relevant=0.05, label_noise=0.2)
    information = -np.log(np.log1p(1.0 / (np.arange(d) + 2.7)) / math.log1p(d / 2.7))
    row = dense(data)[0]
    features = np.flatnonzero(row)
    ratio = row[features] / information[features]
    counts = np.exp(ratio / ratio.min() - 1.0)  # the rarest features occur once
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert counts.max() > 1.0
    assert data.design.block(0).nnz == 30 * 20
    clean = np.where(data.design.forward(data.truth["W"]) >= 0.0, 1.0, -1.0)
    assert np.count_nonzero(clean != data.targets) == 6


def test_stream_takes_memory_in_proportion_to_its_nonzeros() -> None:
    import tracemalloc

    synthetic_stream(features=100, examples=5, density=0.1)  # what is loaded is not counted
    tracemalloc.start()
    data = synthetic_stream(features=10**6, examples=50, density=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.design.block(0).nnz == 50_000
    assert peak < 8 * 10**6 * 1.5 + 200 * 50_000  # w and its check, and the rows; the dense design would take 400 MB


def test_held_out_examples_must_fit() -> None:
    data = synthetic_glm(tasks=2, features=3, examples=4)
    with pytest.raises(InputError, match="held-out examples have 4 features, but the data have 3"):
        data.with_held_out(synthetic_glm(tasks=2, features=4, examples=4))
    with pytest.raises(InputError, match="held-out examples have 1 tasks, but the data have 2"):
        data.with_held_out(synthetic_glm(features=3, examples=4))


@pytest.mark.parametrize("relevant", [1, 2, 61, 62, 63, 100])
def test_multiclass_examples_without_noise_are_different_codes(relevant: int) -> None:
    classes = 2 ** min(relevant, 6)
    data = synthetic_multiclass(examples=64, classes=classes, features=100, relevant=relevant, strength=2.5, noise=0.0)
    W = data.truth["W"]
    assert np.count_nonzero(W.any(axis=1)) == relevant
    assert set(np.abs(W[W.any(axis=1)]).ravel()) == {1.0}
    assert len(np.unique(W.T, axis=0)) == classes
    np.testing.assert_array_equal(dense(data), 2.5 * W.T[data.targets.argmax(axis=1)])


def test_multiclass_examples_are_balanced_and_as_noisy_as_asked() -> None:
    data = synthetic_multiclass(examples=23, held_out=11, classes=5)
    for some, n in ((data, 23), (data.held_out, 11)):
        np.testing.assert_array_equal((some.targets == 1.0).sum(axis=1), np.ones(n))
        assert np.ptp((some.targets == 1.0).sum(axis=0)) <= 1
    assert (np.diff(data.targets.argmax(axis=1)) != 1).any()
    many = synthetic_multiclass(examples=20000, strength=2.0, noise=0.5, seed=3)
    rest = dense(many) - 2.0 * many.truth["W"].T[many.targets.argmax(axis=1)]
    np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(rest.std(axis=0), 0.5, atol=0.02)
    told_apart = synthetic_multiclass(examples=100, held_out=2000, seed=1)
    right = told_apart.held_out.targets.argmax(axis=1)
    assert np.mean((dense(told_apart.held_out) @ told_apart.truth["W"]).argmax(axis=1) == right) > 0.8


def test_digits_are_ten_tasks_over_one_design_of_which_samples_are_proportional() -> None:
    whole = digits()
    assert (whole.design.output_shape, whole.n_features) == ((1797, 10), 64)
    np.testing.assert_array_equal(whole.targets.sum(axis=1), -8.0)
    assert (dense(whole).min(), dense(whole).max()) == (0.0, 1.0)
    assert same(digits(seed=1), digits(seed=2))
    for examples in (10, 11, 100, 333, 1797):
        counts = np.count_nonzero(digits(examples=examples, seed=5).targets == 1.0, axis=0)
        assert counts.sum() == examples
        assert np.abs(counts - np.count_nonzero(whole.targets == 1.0, axis=0) * examples / 1797).max() < 1.0
        assert counts.min() >= 1
    data = digits(examples=100, held_out=50, seed=5)
    assert (np.abs(np.count_nonzero(data.held_out.targets == 1.0, axis=0) - 5) <= 1).all()
    assert "100 and 50 held-out of 1797 images were drawn in the classes' proportions" in data.notes[-1]
    rest = digits(held_out=300, seed=5)
    rows = np.concatenate([dense(rest), dense(rest.held_out)])
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], dense(whole)[np.lexsort(dense(whole).T)])


def test_the_market_follows_its_law() -> None:
    d, T = 6, 40_000
    data = synthetic_market(periods=T, assets=d, factors=2, common=0.6, volatility=0.1, drift_spread=0.02)
    logs = np.log(dense(data))
    np.testing.assert_allclose(logs.std(axis=0), 0.1, rtol=0.03)
    rng = np.random.default_rng(0)
    mu, B = 0.02 * rng.standard_normal(d), rng.standard_normal((d, 2))
    B[:, 0] = np.abs(B[:, 0])
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    np.testing.assert_allclose(logs.mean(axis=0), mu, atol=0.003)
    np.testing.assert_allclose(np.corrcoef(logs.T), 0.6 * B @ B.T + 0.4 * np.eye(d), atol=0.03)
    np.testing.assert_array_equal(data.targets, 1.0)


def test_later_periods_change_no_earlier_one_and_cash_is_one_column_more() -> None:
    whole = dense(synthetic_market(periods=30, assets=4, seed=3))
    part = synthetic_market(periods=20, assets=4, seed=3, held_out=10, cash=0.0002)
    for some, rows in ((part, whole[:20]), (part.held_out, whole[20:])):
        np.testing.assert_array_equal(dense(some), np.column_stack([rows, np.full(len(rows), 1.0002)]))
    X = dense(synthetic_market(periods=5, assets=2, volatility=0.0))  # without risk there are drifts only
    np.testing.assert_array_equal(X, np.tile(X[0], (5, 1)))
