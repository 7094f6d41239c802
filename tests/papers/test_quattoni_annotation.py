"""Image annotation: the images and draws, what a cell computes recomputed by loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from papers.quattoni import annotation_data, annotation_models
from papers.quattoni.annotation import auc_at, needed_shares
from papers.quattoni.annotation_data import Images, images_of, training_rows, training_sets
from papers.quattoni.annotation_models import MODELS, RADII, compute, fitted, sharing

WORDS, TRAINED, TESTED, VISUAL = 8, 90, 40, 12


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a small collection under both names: ten labels, of which the last is frequent among the test images alone."""
    monkeypatch.setattr(annotation_data, "WORDS", WORDS)
    generator = np.random.default_rng(0)
    n = TRAINED + TESTED
    X = (generator.random((n, VISUAL)) < 0.4).astype(np.float64)
    X[:, 0] = 1.0
    truth = generator.standard_normal((VISUAL, 10))
    Y = (X @ truth + generator.standard_normal((n, 10)) > np.linspace(-0.5, 1.5, 10)).astype(np.uint8)
    Y[:TRAINED, 9], Y[TRAINED:, 9] = 0, 1
    index = np.arange(n, dtype=np.int32)
    names = np.array([f"word{k}" for k in range(10)])
    common: dict[str, Any] = {"Y": Y, "train_idx": index[:TRAINED], "test_idx": index[TRAINED:], "label_names": names}
    artefact = np.where(index >= TRAINED, 1.0, 0.0)[:, None]
    np.savez(tmp_path / "corel16k001.npz", X=X, **common)
    np.savez(tmp_path / "corel5k.npz", X=np.hstack([X, artefact]), **common)
    images_of.cache_clear()
    return tmp_path


def test_the_tasks_are_the_words_most_frequent_in_the_training_part(folder: Path) -> None:
    images = images_of("corel16k001", folder)
    with np.load(folder / "corel16k001.npz") as file:
        Y, names = file["Y"], file["label_names"]
    counts = sorted(range(10), key=lambda k: -int(Y[:TRAINED, k].sum()))
    assert images.words == tuple(names[k] for k in counts[:WORDS])
    assert "word9" not in images.words
    assert images.test.has_word.sum(axis=0).tolist() == [int(Y[TRAINED:, k].sum()) for k in counts[:WORDS]]
    assert (len(images.training.features), len(images.validation.features), len(images.test.features)) == (TRAINED - 9, 9, TESTED)
    assert sorted([*images.validation_words, *images.judged_words]) == list(range(WORDS))
    assert images.validation_words.tolist() == [3, 7]


def test_features_are_a_rotation_of_images_of_one_length(folder: Path) -> None:
    images = images_of("corel16k001", folder)
    for part in (images.training, images.validation, images.test):
        assert np.square(part.features).mean(axis=1) == pytest.approx(np.ones(len(part.features)))
    moments = images.training.features.T @ images.training.features
    assert moments - np.diag(np.diag(moments)) == pytest.approx(np.zeros_like(moments), abs=1e-9)
    with np.load(folder / "corel16k001.npz") as file:
        tested = file["X"][TRAINED:]
    angles = (tested @ tested.T) / np.outer(*[np.linalg.norm(tested, axis=1)] * 2)
    assert images.test.features @ images.test.features.T == pytest.approx(VISUAL * angles)


def test_the_artefact_of_corel5k_is_left_out(folder: Path) -> None:
    with_it, without = images_of("corel5k", folder), images_of("corel16k001", folder)
    assert with_it.test.features == pytest.approx(without.test.features)


@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_training_sets_keep_the_proportion(positives: int, more: int, seed: int, drawn: int) -> None:
    has_word = np.random.default_rng(drawn).random((60, 3)) < 0.3
    small, large = (list(training_rows(has_word, n, seed)) for n in (positives, positives + more))
    for k in range(3):
        column = has_word[:, k]
        count = min(positives, int(column.sum()), int((~column).sum()) // 2)
        assert len(small[k]) == len(set(small[k].tolist())) == 3 * count
        assert int(column[small[k]].sum()) == count
        assert set(small[k].tolist()) <= set(large[k].tolist())
    assert [rows.tolist() for rows in small] == [rows.tolist() for rows in training_rows(has_word, positives, seed)]


def area(scores: np.ndarray, has_word: np.ndarray) -> tuple[float, int]:
    """AUC by pairs, and the positive examples."""
    positive, negative = scores[has_word], scores[~has_word]
    won = sum((p > q) + 0.5 * (p == q) for p in positive for q in negative)
    return float(won) / (len(positive) * len(negative)), len(positive)


def pooled_area(images: Images, part: Any, W: np.ndarray, words: Any) -> float:
    found = [area(part.features @ W[:, k], part.has_word[:, k]) for k in words]
    return sum(value * weight for value, weight in found) / sum(weight for _, weight in found)


def test_a_cell_against_loops(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotation_models, "PICTURED", 9)
    found = compute({"part": "models", "data": "corel16k001", "examples": 9, "seed": 0}, folder)
    images = images_of("corel16k001", folder)
    Xs, ys = training_sets(images.training, 9, 0)
    assert found.values["samples"] == sum(len(y) for y in ys)
    assert found.values["short"] == sum(int(images.training.has_word[:, k].sum()) < 9 for k in range(WORDS))
    assert found.status == "verified"
    for model in MODELS:
        fits = [fitted(model, radius, Xs, ys) for radius in RADII]
        validation = [pooled_area(images, images.validation, fit.W, images.validation_words) for fit in fits]
        values = {name.removeprefix(f"{model}_"): value for name, value in found.values.items() if name.startswith(f"{model}_")}
        assert values["validation_aucs"] == pytest.approx(validation)
        chosen = validation.index(max(validation))
        if not fits[chosen].is_proven:
            fits[chosen] = fitted(model, RADII[chosen], Xs, ys, annotation_models.PROOF_STEPS)
        best = fits[chosen]
        assert values["radius"] == best.radius
        assert values["auc"] == pytest.approx(pooled_area(images, images.test, best.W, images.judged_words))
        assert values["aucs"] == pytest.approx([pooled_area(images, images.test, fit.W, images.judged_words) for fit in fits])
        used = [j for j in range(len(best.W)) if max(abs(best.W[j])) > 1e-6 * abs(best.W).max()]
        assert values["share"] == pytest.approx(len(used) / len(best.W))
        assert values["eer"] == pytest.approx(np.mean(values["eers"]))
        assert values["words"] == [images.words[k] for k in images.judged_words]
        assert np.reshape(values["picture"], best.W.shape) == pytest.approx(abs(best.W), rel=6e-3)
        for fit in fits:  # each a model of its own ball, recomputed
            losses = [np.maximum(0.0, 1.0 - y * (X @ fit.W[:, k])).mean() for k, (X, y) in enumerate(zip(Xs, ys, strict=True))]
            assert fit.objective == pytest.approx(sum(losses))
            sizes = {"l1inf": abs(fit.W).max(axis=1).sum(), "l1": abs(fit.W).sum(axis=0).max(), "l2": np.linalg.norm(fit.W, axis=0).max()}
            assert sizes[model] <= fit.radius * (1.0 + 1e-9)
    for rival in ("l2", "l1"):
        wins, losses = (found.values[f"{rival}_{what}"] for what in ("wins", "losses"))
        assert wins + losses <= found.values[f"{rival}_pairs"]
        total = wins + losses
        tail = sum(math.comb(total, i) for i in range(wins, total + 1)) / 2**total
        assert found.values[f"{rival}_p"] == pytest.approx(tail if total else 1.0)


def test_the_subgradient_method_falls_and_stays_above_the_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotation_models, "STEPS", 20)
    monkeypatch.setattr(annotation_models, "LOOKS", (1, 5, 20))
    found = compute({"part": "convergence", "data": "corel16k001", "examples": 9, "radius": 10.0, "seed": 0}, folder).values
    objectives = found["objectives"]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] == pytest.approx(float(WORDS))  # all margins are 0 at the first point
    assert objectives[-1] >= found["bound"]
    assert objectives[-1] == min(found["last_objectives"])
    assert found["bound"] <= found["optimum"] <= found["bound"] / (1.0 - 1.1 * annotation_models.TARGET)


def test_sharing() -> None:
    W = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 1e-9], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    assert sharing(W) == pytest.approx((0.5, 0.5))
    assert sharing(np.zeros((3, 2))) == (0.0, 0.0)


def test_the_share_that_an_auc_needs() -> None:
    paths = [("l1inf", [0.1, 0.4, 0.9], [0.6, 0.7, 0.72]), ("l1", [0.2, 0.8, 1.0], [0.5, 0.65, 0.68]), ("l2", [1.0], [0.1])]
    table = pd.DataFrame(paths, columns=["model", "shares", "aucs"]).assign(data="corel5k", seed=0)
    assert needed_shares(table) == [0.4, 1.0, pytest.approx(math.nan, nan_ok=True)]
    assert auc_at(0.3, [0.4, 0.2], [0.7, 0.6]) == pytest.approx(0.65)
    assert math.isnan(auc_at(0.5, [0.4, 0.2], [0.7, 0.6]))
