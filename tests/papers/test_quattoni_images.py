"""Models of images, of 2009 and of the report of 2008: images, draws and features, what a cell computes recomputed by loops."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_mtl.metrics import average_equal_error_rate, multitask_auc
from bench_mtl.stats import sign_test
from papers import Array
from papers.quattoni import annotation_data, annotation_models, report2008_cell, report2008_data
from papers.quattoni.annotation import auc_at, needed_shares
from papers.quattoni.annotation_data import Images, Part, images_of, training_rows, training_sets
from papers.quattoni.annotation_models import MODELS, PROOF_STEPS, RADII, Fit, compute, fitted, sharing
from papers.quattoni.report2008_cell import CERTIFIED, GRIDS, METHODS, PAPER, PUBLISHED, trained
from papers.quattoni.report2008_cell import compute as compute_report
from papers.quattoni.report2008_data import IMAGES, SETS, SVD, WORDS, partition, sizes
from papers.quattoni.report2008_data import images_of as images_of_report

TASKS, TRAINED, COUNT, VISUAL = 8, 90, 400, 12
NAMES = np.array([f"word{k}" for k in range(10)])


def collection(count: int) -> tuple[Array, Any]:
    """Return images and ten labels of them."""
    generator = np.random.default_rng(0)
    X = (generator.random((count, VISUAL)) < 0.4).astype(np.float64)
    X[:, 0] = 1.0
    truth = generator.standard_normal((VISUAL, 10))
    return X, (X @ truth + generator.standard_normal((count, 10)) > np.linspace(-0.5, 1.5, 10)).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a small collection under both names, whose last label is frequent among the test images alone."""
    monkeypatch.setattr(annotation_data, "WORDS", TASKS)
    X, Y = collection(130)
    Y[:TRAINED, 9], Y[TRAINED:, 9] = 0, 1
    index = np.arange(130, dtype=np.int32)
    common: dict[str, Any] = {"Y": Y, "train_idx": index[:TRAINED], "test_idx": index[TRAINED:], "label_names": NAMES}
    np.savez(tmp_path / "corel16k001.npz", X=X, **common)
    np.savez(tmp_path / "corel5k.npz", X=np.column_stack([X, index >= TRAINED]), **common)  # with an artefact
    images_of.cache_clear()
    return tmp_path


@pytest.fixture
def report_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a small collection for the report of 2008."""
    monkeypatch.setattr(report2008_data, "TOPICS", TASKS)
    write(tmp_path, *collection(COUNT))
    return tmp_path


def write(folder: Path, X: Array, Y: Any) -> None:
    np.savez(folder / f"{report2008_data.DATA}.npz", X=X, Y=Y, label_names=NAMES)
    images_of_report.cache_clear()


def parts_of(images: Images) -> dict[str, Part]:
    return {"training": images.training, "validation": images.validation, "test": images.test}


def test_tasks_are_the_words_most_frequent_in_the_training_part_and_features_a_rotation_of_images_of_one_length(folder: Path) -> None:
    images = images_of("corel16k001", folder)
    with np.load(folder / "corel16k001.npz") as file:
        Y, tested = file["Y"], file["X"][TRAINED:]
    counts = sorted(range(10), key=lambda k: -int(Y[:TRAINED, k].sum()))
    assert images.words == tuple(NAMES[k] for k in counts[:TASKS])
    assert "word9" not in images.words
    assert images.test.has_word.sum(axis=0).tolist() == [int(Y[TRAINED:, k].sum()) for k in counts[:TASKS]]
    assert [len(part.features) for part in parts_of(images).values()] == [TRAINED - 9, 9, 130 - TRAINED]
    assert sorted([*images.validation_words, *images.judged_words]) == list(range(TASKS))
    assert images.validation_words.tolist() == [3, 7]
    for part in parts_of(images).values():
        assert np.square(part.features).mean(axis=1) == pytest.approx(np.ones(len(part.features)))
    moments = images.training.features.T @ images.training.features
    assert moments - np.diag(np.diag(moments)) == pytest.approx(np.zeros_like(moments), abs=1e-9)
    angles = (tested @ tested.T) / np.outer(*[np.linalg.norm(tested, axis=1)] * 2)
    assert images.test.features @ images.test.features.T == pytest.approx(VISUAL * angles)
    assert images_of("corel5k", folder).test.features == pytest.approx(images.test.features), "the artefact is left out"


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


@pytest.mark.parametrize("count", [7, COUNT, IMAGES])
def test_the_four_sets_of_the_report_are_a_partition_in_its_shares(count: int) -> None:
    parts = partition(count)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(count))
    for name, part in parts.items():
        assert len(part) == sizes(count)[name]
        assert abs(len(part) - count * SETS[name] / 25589) < 1.0
        assert part.tolist() == partition(count)[name].tolist()


def test_the_basis_is_of_the_images_without_labels_alone_and_topics_are_of_the_training_set(report_folder: Path) -> None:
    X, Y = collection(COUNT)
    rows = partition(COUNT)
    counts = Y[rows["training"]].sum(axis=0)
    order = sorted(range(10), key=lambda k: -int(counts[k]))[:TASKS]
    plain, rotated = (images_of_report(features, report_folder) for features in (WORDS, SVD))
    assert plain.words == tuple(NAMES[k] for k in order)
    _, _, V = np.linalg.svd(X[rows["basis"]])
    for name, part in parts_of(plain).items():
        assert part.has_word.tolist() == (Y[rows[name]][:, order] > 0).tolist()
        assert part.features.tolist() == X[rows[name]].tolist()
        assert abs(parts_of(rotated)[name].features) == pytest.approx(abs(X[rows[name]] @ V.T))  # a singular vector has no sign
    others = np.setdiff1d(np.arange(COUNT), np.concatenate([rows["basis"], rows["test"]]))
    X[others] = 1.0 - X[others]
    Y[rows["basis"]] = 0
    write(report_folder, X, Y)
    assert images_of_report(SVD, report_folder).test.features == pytest.approx(rotated.test.features)


def of_model(found: dict[str, Any], model: str) -> dict[str, Any]:
    return {name.removeprefix(f"{model}_"): value for name, value in found.items() if name.startswith(f"{model}_")}


def require_in_ball(model: str, fit: Fit, Xs: Any, ys: Any) -> None:
    """Hold the objective of a fit to the losses of its coefficients, and these to their ball."""
    losses = [np.maximum(0.0, 1.0 - y * (X @ fit.W[:, k])).mean() for k, (X, y) in enumerate(zip(Xs, ys, strict=True))]
    assert fit.objective == pytest.approx(sum(losses))
    norms = {"l1inf": abs(fit.W).max(axis=1).sum(), "l1": abs(fit.W).sum(axis=0).max(), "l2": np.linalg.norm(fit.W, axis=0).max()}
    assert norms[model] <= fit.radius * (1.0 + 1e-9)


def area(part: Part, W: Array, words: Any) -> float:
    return multitask_auc(part.has_word[:, words], part.features @ W[:, words]).value


def errors_of(part: Part, W: Array, words: Any) -> list[float]:
    return list(average_equal_error_rate(part.has_word[:, words], part.features @ W[:, words]).per_task)


def test_a_cell_against_loops(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotation_models, "PICTURED", 9)
    found = compute({"part": "models", "data": "corel16k001", "examples": 9, "seed": 0}, folder)
    images = images_of("corel16k001", folder)
    Xs, ys = training_sets(images.training, 9, 0)
    assert found.values["samples"] == sum(len(y) for y in ys)
    assert found.values["short"] == sum(int(images.training.has_word[:, k].sum()) < 9 for k in range(TASKS))
    assert found.status == "verified"
    for model in MODELS:
        fits = [fitted(model, radius, Xs, ys) for radius in RADII]
        validation = [area(images.validation, fit.W, images.validation_words) for fit in fits]
        values = of_model(found.values, model)
        assert values["validation_aucs"] == pytest.approx(validation)
        chosen = validation.index(max(validation))
        if not fits[chosen].is_proven:
            fits[chosen] = fitted(model, RADII[chosen], Xs, ys, PROOF_STEPS)
        best = fits[chosen]
        assert values["radius"] == best.radius
        assert values["auc"] == pytest.approx(area(images.test, best.W, images.judged_words))
        assert values["aucs"] == pytest.approx([area(images.test, fit.W, images.judged_words) for fit in fits])
        used = [j for j in range(len(best.W)) if max(abs(best.W[j])) > 1e-6 * abs(best.W).max()]
        assert values["share"] == pytest.approx(len(used) / len(best.W))
        assert values["eer"] == pytest.approx(np.mean(values["eers"]))
        assert values["words"] == [images.words[k] for k in images.judged_words]
        assert np.reshape(values["picture"], best.W.shape) == pytest.approx(abs(best.W), rel=6e-3)
        for fit in fits:
            require_in_ball(model, fit, Xs, ys)
    for rival in ("l2", "l1"):
        wins, losses, p = (found.values[f"{rival}_{what}"] for what in ("wins", "losses", "p"))
        assert p == pytest.approx(sign_test(wins, losses, alternative="greater") or 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_cell_of_the_report_against_loops(method: str, report_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report2008_cell, "STEPS", 25)
    monkeypatch.setattr(report2008_cell, "PICTURED", 10)
    found = compute_report({"method": method, "examples": 10, "features": SVD, "grid": PUBLISHED, "seed": 0}, report_folder)
    images = images_of_report(SVD, report_folder)
    Xs, ys = training_sets(images.training, 10, 0)
    counts = images.training.has_word.sum(axis=0)
    assert found.values["samples"] == sum(map(len, ys)) == sum(3 * min(10, n, (len(images.training.features) - n) // 2) for n in counts)
    assert (found.values["short"], found.values["rarest"]) == (int((counts < 10).sum()), int(counts.min()))
    assert found.values["words"] == [images.words[k] for k in images.judged_words]
    for model in MODELS:
        values = of_model(found.values, model)
        tried = [trained(method, model, radius, Xs, ys) for radius in GRIDS[PUBLISHED]]
        validation = [np.mean(errors_of(images.validation, fit.W, images.validation_words)) for fit in tried]
        assert values["validation_eers"] == pytest.approx(validation)
        chosen = tried[validation.index(min(validation))]
        if method == CERTIFIED and not chosen.is_proven:
            chosen = fitted(model, chosen.radius, Xs, ys, PROOF_STEPS)
        assert values["radius"] == chosen.radius
        errors = errors_of(images.test, chosen.W, images.judged_words)
        assert (values["eer"], values["eers"]) == (pytest.approx(np.mean(errors)), pytest.approx(errors))
        assert values["objective"] == pytest.approx(chosen.objective)
        require_in_ball(model, chosen, Xs, ys)
        optimum = trained(CERTIFIED, model, chosen.radius, Xs, ys).objective
        assert values["objective"] * (1.0 - values["gap"]) <= optimum * (1.0 + 1e-9)
        assert ("eta0" in values) == ("picture" in values) == (method == PAPER)
    assert found.status == ("verified" if method == CERTIFIED else "inaccurate")


def test_sharing_and_the_share_that_an_auc_needs() -> None:
    W = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 1e-9], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    assert sharing(W) == pytest.approx((0.5, 0.5))
    assert sharing(np.zeros((3, 2))) == (0.0, 0.0)
    paths = [("l1inf", [0.1, 0.4, 0.9], [0.6, 0.7, 0.72]), ("l1", [0.2, 0.8, 1.0], [0.5, 0.65, 0.68]), ("l2", [1.0], [0.1])]
    table = pd.DataFrame(paths, columns=["model", "shares", "aucs"]).assign(data="corel5k", seed=0)
    assert needed_shares(table) == [0.4, 1.0, pytest.approx(math.nan, nan_ok=True)]
    assert auc_at(0.3, [0.4, 0.2], [0.7, 0.6]) == pytest.approx(0.65)
    assert math.isnan(auc_at(0.5, [0.4, 0.2], [0.7, 0.6]))
