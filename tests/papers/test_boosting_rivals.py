"""Boosting beside its rivals: AdaBoost.MH against loops, and what a cell finds."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from papers.boosting import rivals_cell
from papers.boosting.adaboost_mh import adaboost_mh
from papers.boosting.learners import LEARNERS, MOST_STUMPS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.where(RNG.integers(0, 3, 40)[:, None] == np.arange(3), 1.0, -1.0)


def slow_rounds(X: np.ndarray, Y: np.ndarray, rounds: int) -> list[np.ndarray]:
    """Return the scores after each round of AdaBoost.MH, by trying every stump and every vote."""
    n, K = Y.shape
    D, scores, stages = [[1.0 / (n * K)] * K for _ in range(n)], np.zeros((n, K)), []
    for _ in range(rounds):
        best: tuple[float, Any, Any] = (-1.0, None, None)
        for j in range(X.shape[1]):
            values = sorted(set(X[:, j]))
            for low, high in pairwise(values):
                h = [1.0 if x > 0.5 * (low + high) else -1.0 for x in X[:, j]]
                for votes in np.ndindex(*([2] * K)):
                    v = [2.0 * vote - 1.0 for vote in votes]
                    edge = sum(D[i][r] * Y[i, r] * h[i] * v[r] for i in range(n) for r in range(K))
                    if edge > best[0] + 1e-12:
                        best = edge, h, v
        edge, h, v = best
        weight = 0.5 * np.log((1.0 + edge) / (1.0 - edge))
        scores = scores + weight * np.outer(h, v)
        stages.append(scores)
        D = [[D[i][r] * np.exp(-weight * Y[i, r] * h[i] * v[r]) for r in range(K)] for i in range(n)]
        total = sum(map(sum, D))
        D = [[each / total for each in row] for row in D]
    return stages


def test_adaboost_mh_against_all_stumps_and_votes() -> None:
    # Of these labels no two stumps have the same edge in the first rounds.
    signal = np.where((X[:, 0] + 0.3 * X[:, 1] > 0.0)[:, None], [1.0, -1.0, -1.0], Y)
    assert adaboost_mh(X, signal, 3).staged_scores(X) == pytest.approx(np.array(slow_rounds(X, signal, 3)))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    small = rivals_cell.DataSet({"name": "synthetic_multiclass", "classes": 3, "features": 6, "relevant": 2}, 60, 80, is_file=False)
    monkeypatch.setattr(rivals_cell, "SETS", {"synthetic": small})


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("model", LEARNERS)
def test_every_learner_learns_within_its_stumps(model: str) -> None:
    found = rivals_cell.compute({"data": "synthetic", "model": model, "seed": 1}, None).values
    assert found["test_error"] < 0.5  # chance is two thirds
    assert 1 <= found["features"] <= 6
    assert found["features"] <= found["stumps"] <= MOST_STUMPS
    assert rivals_cell.compute({"data": "synthetic", "model": model, "seed": 1}, None).values["test_error"] == found["test_error"]
