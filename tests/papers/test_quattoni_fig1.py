"""Figure 1 of Quattoni et al.: what a cell computes, recomputed by hand."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from bench_mtl.data import synthetic_l1inf
from papers.quattoni import fig1_cell
from papers.quattoni.fig1_cell import CERTIFIED, PAPER, compute

TINY = {"tasks": 5, "features": 20, "seed": 3}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment on few tasks and features, with few steps."""
    monkeypatch.setattr(fig1_cell, "TASKS", TINY["tasks"])
    monkeypatch.setattr(fig1_cell, "FEATURES", TINY["features"])
    monkeypatch.setattr(fig1_cell, "TEST_EXAMPLES", 40)
    monkeypatch.setattr(fig1_cell, "STEPS", 30)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("model", fig1_cell.MODELS)
def test_a_cell_against_loops(model: str) -> None:
    test, found = synthetic_l1inf(**TINY, examples=40, split="test"), {}
    for method in (PAPER, CERTIFIED):
        settings = {"model": model, "method": method, "examples": 15, "seed": TINY["seed"]}
        found[method] = compute(settings, None)
        W = fig1_cell.trained(synthetic_l1inf(**TINY, examples=15), settings, {"radius": "truth"}).point
        wrong = []
        for k in range(5):
            X, y = test.task(k)
            wrong.append(sum((float(x @ W[:, k]) > 0.0) != (label > 0.0) for x, label in zip(X, y, strict=True)) / 40)
        relevant = {j for j in range(20) if any(test.truth["W"][j] != 0.0)}
        chosen = {j for j in range(20) if max(abs(W[j])) > 1e-6 * abs(W).max()}
        values = found[method].values
        assert values["test_error"] == pytest.approx(np.mean(wrong))
        assert values["precision"] == pytest.approx(len(chosen & relevant) / len(chosen))
        assert values["recall"] == pytest.approx(len(chosen & relevant) / len(relevant))
    paper, certified = found[PAPER].values, found[CERTIFIED].values
    assert found[CERTIFIED].status == "verified"
    assert certified["relative_gap"] <= fig1_cell.TARGET
    assert certified["objective"] * (1.0 - fig1_cell.TARGET) <= paper["objective"]  # nothing is below a proven optimum
    assert paper["objective"] * (1.0 - paper["relative_gap"]) <= certified["objective"]


def test_a_validated_radius_is_that_of_the_least_error(tiny: None) -> None:
    settings = {"model": "l1", "method": PAPER, "examples": 15, "seed": TINY["seed"]}
    found = compute({**settings, "radius": fig1_cell.VALIDATION}, None).values
    data = synthetic_l1inf(**TINY, examples=15)
    norm = float(np.mean([abs(data.truth["W"][:, k]).sum() for k in range(5)]))
    held_out = fig1_cell.validation_examples(data.truth["W"], 15, TINY["seed"])
    errors = {}
    for factor in fig1_cell.FACTORS:
        W = fig1_cell.trained(data, settings, {"radius": factor * norm}).point
        wrong = [np.mean((X @ W[:, k] > 0.0) != (y > 0.0)) for k in range(5) for X, y in [held_out.task(k)]]
        errors[factor] = float(np.mean(wrong))
    assert found["validation_error"] == pytest.approx(min(errors.values()))
    assert found["factor"] == min(factor for factor, error in errors.items() if error <= min(errors.values()) + 1e-12)


def test_the_svm_has_the_penalty_of_least_validation_error(tiny: None) -> None:
    settings = {"model": fig1_cell.SVM, "method": CERTIFIED, "examples": 15, "seed": TINY["seed"], "radius": fig1_cell.VALIDATION}
    found = compute(settings, None)
    data = synthetic_l1inf(**TINY, examples=15)
    held_out = fig1_cell.validation_examples(data.truth["W"], 15, TINY["seed"])
    errors = {}
    for C in fig1_cell.COSTS:
        wrong = []
        for k in range(5):
            (X, y), (X_held, y_held) = data.task(k), held_out.task(k)
            svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-8, max_iter=200_000).fit(X, y)  # SVM-Light's problem
            wrong.append(np.mean(svm.predict(X_held) != y_held))
        errors[C] = np.mean(wrong)
    chosen = found.values["factor"]
    assert found.status == "verified"
    assert errors[chosen] == pytest.approx(found.values["validation_error"], abs=0.03)
    assert errors[chosen] <= min(errors.values()) + 0.03
