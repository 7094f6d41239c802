"""The generator of classes that share features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import load, synthetic_multiclass


def test_examples_without_noise_are_the_codes() -> None:
    data = synthetic_multiclass(examples=40, classes=8, features=7, relevant=3, strength=2.5, noise=0.0)
    X, W = data.design.block(0), data.truth["W"]
    relevant = np.flatnonzero(W.any(axis=1))
    assert len(relevant) == 3
    assert set(np.abs(W[relevant]).ravel()) == {1.0}
    assert len(np.unique(W, axis=1).T) == 8
    np.testing.assert_array_equal(X, 2.5 * W.T[data.targets.argmax(axis=1)])


def test_classes_are_balanced_and_one_a_row() -> None:
    data = synthetic_multiclass(examples=23, held_out=11, classes=5)
    assert data.held_out is not None
    for some, n in ((data, 23), (data.held_out, 11)):
        assert some.targets.shape == (n, 5)
        np.testing.assert_array_equal((some.targets == 1.0).sum(axis=1), np.ones(n))
        counts = (some.targets == 1.0).sum(axis=0)
        assert counts.max() - counts.min() <= 1
    assert (np.diff(data.targets.argmax(axis=1)) != 1).any()


def test_moments() -> None:
    data = synthetic_multiclass(examples=20000, strength=2.0, noise=0.5, seed=3)
    rest = data.design.block(0) - 2.0 * data.truth["W"].T[data.targets.argmax(axis=1)]
    np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(rest.std(axis=0), 0.5, atol=0.02)


def test_the_true_coefficients_classify_held_out_examples() -> None:
    data = synthetic_multiclass(examples=100, held_out=2000, seed=1)
    assert data.held_out is not None
    right = data.held_out.targets.argmax(axis=1)
    assert np.mean((data.held_out.design.block(0) @ data.truth["W"]).argmax(axis=1) == right) > 0.8
    assert not np.isin(data.held_out.design.block(0)[:, 0], data.design.block(0)[:, 0]).any()


def test_the_seed_decides() -> None:
    a, b, c = (synthetic_multiclass(examples=30, held_out=held, seed=seed) for seed, held in ((0, 0), (0, 5), (1, 0)))
    np.testing.assert_array_equal(a.design.block(0), b.design.block(0))
    np.testing.assert_array_equal(a.targets, b.targets)
    assert not np.array_equal(a.design.block(0), c.design.block(0))


@pytest.mark.parametrize("relevant", [1, 2, 61, 62, 63, 100])
def test_codes_differ(relevant: int) -> None:
    classes = 2 ** min(relevant, 6)
    W = synthetic_multiclass(examples=64, classes=classes, features=100, relevant=relevant).truth["W"]
    assert W.any(axis=1).sum() == relevant
    assert len(np.unique(W.T, axis=0)) == classes


def test_by_name() -> None:
    assert load({"name": "synthetic_multiclass", "examples": 50, "preprocess": "stumps:20"}).n_features == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"examples": 9}, "examples must be at least 10"),
        ({"classes": 1}, "classes must be"),
        ({"relevant": 51}, "relevant must be at most 50"),
        ({"relevant": 0}, "relevant must be"),
        ({"relevant": 3}, "classes must be at most 8"),
        ({"noise": -1.0}, "noise must be"),
        ({"strength": float("nan")}, "strength must be"),
        ({"held_out": -1}, "held_out must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_parameters_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic_multiclass(**options)
