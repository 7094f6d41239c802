"""Chen, Liu, Ye's comparison of learners: splits, tuning and scores against loops."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from bench_mtl import BenchError, TaskData
from papers.chen import learners, protocol
from papers.chen.learners import MODELS, fitted
from papers.chen.protocol import FOLDS, _best_threshold, by_prevalence, one_label, outcome, tune
from papers.chen.sets import SETS, split


def labelled(examples: int, *, seed: int = 0, labels: int = 3, features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((examples, features))
    truth = np.random.default_rng(99).standard_normal((features, labels))
    return X, X @ truth + generator.standard_normal((examples, labels)) > 0.5


def task_data(train: int = 36, test: int = 50) -> TaskData:
    (X, Y), (X_test, Y_test) = labelled(train), labelled(test, seed=1)
    held_out = TaskData.shared(X_test, np.where(Y_test, 1.0, -1.0))
    return replace(TaskData.shared(X, np.where(Y, 1.0, -1.0)), held_out=held_out)


def area(Y: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean of the areas of the labels."""
    return float(np.mean([roc_auc_score(Y[:, k], scores[:, k]) for k in range(Y.shape[1])]))


@pytest.mark.parametrize(
    ("name", "has_intercept"),
    [  # by turns; the other half is slow
        pytest.param(name, has_intercept, marks=pytest.mark.slow if (i + has_intercept) % 2 else [])
        for i, name in enumerate(MODELS)
        for has_intercept in (False, True)
    ],
)
def test_every_learner_against_loops(name: str, has_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tight = 1e-6  # so that a fit from its neighbour ranks as one from 0
    monkeypatch.setattr(protocol, "TUNING_TOLERANCE", tight)
    monkeypatch.setattr(learners, "TUNING_STEPS", 100_000)
    model = replace(MODELS[name], grid={key: values[:: len(values) - 1] for key, values in MODELS[name].grid.items()})
    monkeypatch.setitem(protocol.MODELS, name, model)  # type: ignore[arg-type]
    data = task_data()
    found = outcome(data, name, 4, has_intercept=has_intercept, is_bounded=True).values
    length = np.sqrt((data.design.block(0) ** 2).sum() / data.design.sizes[0])
    (X, Y), (X_test, Y_test) = ((part.design.block(0) / length, part.targets > 0.0) for part in (data, data.held_out))

    def scores_of(setting: Any, rows: Any, others: Any, tolerance: float | None = tight) -> np.ndarray:
        return fitted(model, setting, X[rows], Y[rows], has_intercept=has_intercept, tolerance=tolerance).scores(others)

    every, means, on_test = np.arange(len(X)), [], []
    for setting in model.settings():
        parts = map(np.sort, np.array_split(np.random.default_rng(4).permutation(len(X)), FOLDS))
        values = [area(Y[part], scores_of(setting, np.setdiff1d(every, part), X[part])) for part in parts]
        means.append((np.mean(values), setting))
        on_test.append(area(Y_test, scores_of(setting, every, X_test)))
    best = max(means, key=lambda pair: pair[0])
    assert (found["setting"], found["tuning_fits"]) == (best[1], FOLDS * len(means))
    assert found["tuning_auc"] == pytest.approx(best[0])
    assert found["best_on_test"] == pytest.approx(max(on_test), abs=0.01)
    scores = scores_of(best[1], every, X_test, None)
    assert found["average_auc"] == pytest.approx(area(Y_test, scores))
    assert found["pooled_auc"] == pytest.approx(roc_auc_score(Y_test.ravel(), scores.ravel()))
    for kind in ("macro", "micro"):
        by_share = by_prevalence(scores, Y.mean(axis=0))
        for column, decided in (("", scores > 0.0), ("_prevalence", by_share), ("_one_label", one_label(scores))):
            assert found[f"{kind}_f1{column}"] == pytest.approx(f1_score(Y_test, decided, average=kind))


def test_of_equal_scores_the_first_is_decided_for() -> None:
    scores = np.array([[1.0, 1.0], [1.0, 2.0], [0.0, 2.0], [1.0, 0.0]])
    np.testing.assert_array_equal(by_prevalence(scores, np.array([0.5, 0.25])), [[1, 0], [1, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(by_prevalence(scores, np.array([0.0, 1.0])), [[0, 1], [0, 1], [0, 1], [0, 1]])
    np.testing.assert_array_equal(one_label(scores), [[1, 0], [0, 1], [0, 1], [1, 0]])


def test_thresholds_are_the_best_of_all() -> None:
    X, Y = labelled(30)
    tuned = tune(MODELS["RidgeReg"], X, Y, 0)
    scores = np.zeros(Y.shape)
    for part in np.array_split(np.random.default_rng(0).permutation(30), FOLDS):
        rest = np.array(sorted(set(range(30)) - set(part.tolist())))
        scores[part] = fitted(MODELS["RidgeReg"], tuned.setting, X[rest], Y[rest]).scores(X[part])
    for k, threshold in enumerate(tuned.thresholds):
        ours = f1_score(Y[:, k], scores[:, k] > threshold)
        assert ours == pytest.approx(max(f1_score(Y[:, k], scores[:, k] > value) for value in [-np.inf, *scores[:, k]]))


def test_labels_without_both_kinds_of_examples_are_named_and_not_learnt() -> None:
    data = task_data()
    targets = np.array(data.targets)
    targets[:, 1] = -1.0
    tested = np.array(data.held_out.targets)
    tested[:, 2] = 1.0
    data = replace(TaskData.shared(data.design.block(0), targets), held_out=TaskData.shared(data.held_out.design.block(0), tested))
    found = outcome(data, "RidgeReg", 0).values
    assert found["labels_skipped"] == ["1", "2"]
    assert found["labels_counted"] == 1
    with pytest.raises(BenchError, match="no label has both a positive and a negative training example"):
        outcome(replace(data, targets=np.full(targets.shape, -1.0)), "RidgeReg", 0)


def test_wide_data_are_given_to_the_learner_of_covariances_in_few_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(protocol.MODELS, "MTL(Omega,Sigma)", replace(MODELS["MTL(Omega,Sigma)"], most_features=4))  # type: ignore[arg-type]
    assert outcome(task_data(), "MTL(Omega,Sigma)", 0).values["features_given"] == 4


def test_splits_of_real_data(data_dir: Path) -> None:
    first, again, other = (split(SETS["yeast"], 0.1, seed, data_dir) for seed in (0, 0, 1))
    assert first.design.sizes[0] == 242
    assert first.held_out.design.sizes[0] == 2417 - 242
    np.testing.assert_allclose(np.linalg.norm(first.design.block(0), axis=1), 1.0)
    np.testing.assert_array_equal(first.targets, again.targets)
    assert not np.array_equal(first.targets, other.targets)
    raw = split(SETS["yeast"], 0.1, 0, data_dir, "raw")
    np.testing.assert_array_equal(raw.targets, first.targets)
    assert not np.allclose(raw.design.block(0), first.design.block(0))


def test_the_grid_of_the_mixed_norm_holds_those_of_its_special_cases() -> None:
    mixed, sparse, trace = (MODELS[name] for name in ("MixedNorm", "OneNorm", "TraceNorm"))
    assert {0.0, *trace.grid["tau"]} == set(mixed.grid["tau"])
    assert {1.0, *sparse.grid["penalty"]} == set(mixed.grid["gamma"])


@pytest.mark.parametrize("seed", range(20))
def test_no_threshold_has_a_higher_f1(seed: int) -> None:
    """Of scores of which many are equal, and of ones where all are best decided positive."""
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 4, 8).astype(float), rng.random(8) < 0.4
    positive[rng.integers(8)] = True

    def f1(threshold: float) -> float:
        decided = scores > threshold
        return 2.0 * np.count_nonzero(decided & positive) / (np.count_nonzero(decided) + np.count_nonzero(positive))

    assert f1(_best_threshold(positive, scores)) == max(f1(threshold) for threshold in np.arange(-0.5, 4.0, 0.5))
