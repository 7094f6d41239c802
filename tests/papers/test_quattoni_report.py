"""The report of 2008: its four sets of images, what a cell computes against loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers import Array
from papers.quattoni import report2008_cell, report2008_data
from papers.quattoni.annotation_data import Part, training_sets
from papers.quattoni.annotation_models import MODELS
from papers.quattoni.report2008_cell import CERTIFIED, GRIDS, METHODS, PAPER, PUBLISHED, compute, trained
from papers.quattoni.report2008_data import DATA, IMAGES, SETS, SVD, WORDS, images_of, partition, sizes

SMALL_TOPICS, COUNT, VISUAL = 8, 400, 12


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a small collection of ten labels."""
    monkeypatch.setattr(report2008_data, "TOPICS", SMALL_TOPICS)
    write(tmp_path, *collection())
    images_of.cache_clear()
    return tmp_path


def collection() -> tuple[Array, Any]:
    generator = np.random.default_rng(0)
    X = (generator.random((COUNT, VISUAL)) < 0.4).astype(np.float64)
    truth = generator.standard_normal((VISUAL, 10))
    return X, (X @ truth + generator.standard_normal((COUNT, 10)) > np.linspace(-0.5, 1.5, 10)).astype(np.uint8)


def write(folder: Path, X: Array, Y: Any) -> None:
    np.savez(folder / f"{DATA}.npz", X=X, Y=Y, label_names=np.array([f"word{k}" for k in range(10)]))


@pytest.mark.parametrize("count", [7, COUNT, IMAGES])
def test_the_four_sets_are_a_partition_in_the_shares_of_the_report(count: int) -> None:
    parts = partition(count)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(count))
    for name, part in parts.items():
        assert len(part) == sizes(count)[name]
        assert abs(len(part) - count * SETS[name] / 25589) < 1.0
        assert part.tolist() == partition(count)[name].tolist()


def test_the_basis_is_of_the_images_without_labels_alone(folder: Path) -> None:
    X, Y = collection()
    rows = partition(COUNT)
    _, _, V = np.linalg.svd(X[rows["basis"]])
    found = images_of(SVD, folder)
    for name, part in (("training", found.training), ("validation", found.validation), ("test", found.test)):
        assert abs(part.features) == pytest.approx(abs(X[rows[name]] @ V.T))  # a singular vector has no sign
    before = found.test.features
    others = np.setdiff1d(np.arange(COUNT), np.concatenate([rows["basis"], rows["test"]]))
    X[others] = 1.0 - X[others]
    Y[rows["basis"]] = 0
    write(folder, X, Y)
    images_of.cache_clear()
    assert images_of(SVD, folder).test.features == pytest.approx(before)


def test_topics_are_the_labels_most_frequent_in_the_training_set(folder: Path) -> None:
    X, Y = collection()
    rows = partition(COUNT)
    counts = Y[rows["training"]].sum(axis=0)
    order = sorted(range(10), key=lambda k: -int(counts[k]))[:SMALL_TOPICS]
    found = images_of(WORDS, folder)
    assert found.words == tuple(f"word{k}" for k in order)
    for name, part in (("training", found.training), ("validation", found.validation), ("test", found.test)):
        assert part.has_word.tolist() == (Y[rows[name]][:, order] > 0).tolist()
        assert part.features.tolist() == X[rows[name]].tolist()
    assert found.validation_words.tolist() == [3, 7]


def equal_error_rate(scores: Array, positive: Any) -> float:
    """Lower a threshold past one distinct score after the other; where the two error rates cross, on the line between their last values."""
    wanted, unwanted = scores[positive], scores[~positive]
    false_positive, false_negative = 0.0, 1.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        after = float(np.mean(unwanted >= threshold)), float(np.mean(wanted < threshold))
        if after[0] >= after[1]:
            before = false_negative - false_positive
            share = before / (before + after[0] - after[1])
            return false_positive + share * (after[0] - false_positive)
        false_positive, false_negative = after
    raise AssertionError("the last threshold takes every example")


def mean_error(part: Part, W: Array, words: Any) -> tuple[float, list[float]]:
    errors = [equal_error_rate(part.features @ W[:, k], part.has_word[:, k]) for k in words]
    return sum(errors) / len(errors), errors


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_against_loops(method: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report2008_cell, "STEPS", 25)
    monkeypatch.setattr(report2008_cell, "PICTURED", 10)
    found = compute({"method": method, "examples": 10, "features": SVD, "grid": PUBLISHED, "seed": 0}, folder)
    images = images_of(SVD, folder)
    Xs, ys = training_sets(images.training, 10, 0)
    counts = images.training.has_word.sum(axis=0)
    assert found.values["samples"] == sum(map(len, ys)) == sum(3 * min(10, n, (len(images.training.features) - n) // 2) for n in counts)
    assert (found.values["short"], found.values["rarest"]) == (int((counts < 10).sum()), int(counts.min()))
    assert found.values["words"] == [images.words[k] for k in images.judged_words]
    for model in MODELS:
        values = {name.removeprefix(f"{model}_"): value for name, value in found.values.items() if name.startswith(f"{model}_")}
        tried = [trained(method, model, radius, Xs, ys) for radius in GRIDS[PUBLISHED]]
        validation = [mean_error(images.validation, each.fit.W, images.validation_words)[0] for each in tried]
        assert values["validation_eers"] == pytest.approx(validation)
        chosen = tried[validation.index(min(validation))]
        assert values["radius"] == chosen.fit.radius
        tested, errors = mean_error(images.test, chosen.fit.W, images.judged_words)
        assert (values["eer"], values["eers"]) == (pytest.approx(tested), pytest.approx(errors))
        losses = [np.maximum(0.0, 1.0 - y * (X @ chosen.fit.W[:, k])).mean() for k, (X, y) in enumerate(zip(Xs, ys, strict=True))]
        assert values["objective"] == pytest.approx(sum(losses))
        W = chosen.fit.W
        norms = {"l1inf": abs(W).max(axis=1).sum(), "l1": abs(W).sum(axis=0).max(), "l2": np.linalg.norm(W, axis=0).max()}
        assert norms[model] <= chosen.fit.radius * (1.0 + 1e-9)
        assert values["objective"] * (1.0 - values["gap"]) <= fitted_objective(model, chosen.fit.radius, Xs, ys) * (1.0 + 1e-9)
        assert ("eta0" in values) == (method == PAPER)
        assert ("picture" in values) == (method == PAPER)
    assert found.status == ("verified" if method == CERTIFIED else "inaccurate")


def fitted_objective(model: str, radius: float, Xs: Any, ys: Any) -> float:
    return trained(CERTIFIED, model, radius, Xs, ys).fit.objective
