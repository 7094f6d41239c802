"""What a cell of Quattoni et al.'s figure 1 computes: a model of synthetic tasks, judged by its error and its features."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import NEGLIGIBLE_ENTRY, TaskData, make_problem
from bench_mtl.data import synthetic_l1inf
from bench_mtl.metrics import error_rate, feature_selection
from bench_mtl.projections import norm_l1inf
from bench_mtl.runner import Found
from papers import Array
from papers.solve_to_gap import Enclosed, point_after_steps, registry, solve_to_gap

TASKS, FEATURES = 60, 200
#: Of each task; the paper does not say how many.
TEST_EXAMPLES = 500
#: Of each trial step size and of the chosen run, which are the same runs.
STEPS = 200
#: The relative gap to which the same models are solved beside the paper's procedure.
TARGET = 1e-3
#: On the clock of a solver that is to prove it.
SECONDS = 120.0

_PROBLEMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "l1inf": ("l1inf_hinge", {"radius": "truth"}),
    "l1": ("ball_hinge", {"radius": "truth", "norm": "l1"}),
    "l2": ("ball_hinge", {"radius": "truth", "norm": "l2"}),
}
MODELS = tuple(_PROBLEMS)
#: The l2 model with SVM-Light's penalty, 1/2 ||w||^2 + C sum of hinges, as the paper trains it on images (section 6). It has no radius.
SVM = "svm"

#: The paper's procedure, and the optimum of the same model.
PAPER, CERTIFIED = "200 steps", "certified"
METHODS = (PAPER, CERTIFIED)


#: The setting `radius` of cells that choose it by validation; what they try, over the mean norm of the true coefficients; C of the SVM.
VALIDATION = "validation"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Train one model on one draw of the tasks, and judge it on test examples and by its features."""
    recipe = {"tasks": TASKS, "features": FEATURES, "seed": settings["seed"]}
    data = synthetic_l1inf(**recipe, examples=settings["examples"])
    if settings.get("radius") == VALIDATION:
        fit, choice = _validated(data, settings)
    else:
        fit, choice = trained(data, settings, {"radius": "truth"}), {}
    test = synthetic_l1inf(**recipe, examples=TEST_EXAMPLES, split="test")
    features = feature_selection(fit.point, test.truth["W"], threshold=NEGLIGIBLE_ENTRY * float(abs(fit.point).max()))
    values = {"test_error": _error(test, fit.point), "precision": features.precision, "recall": features.recall}
    return fit.found({**values, "selected": features.selected, "objective": fit.objective, **choice})


def trained(data: TaskData, settings: Mapping[str, Any], strength: Mapping[str, float | str]) -> Enclosed:
    """Return what a method makes of a model with a radius, for l1 and l2 that of every task, or a penalty.

    The paper's makes 200 steps for each of four eta0, and keeps the best iterate of the run with the lowest training objective.
    """
    if settings["model"] == SVM:
        problem = make_problem(registry().problem("ridge_hinge"), data, strength)
        return solve_to_gap(problem, "dual_coordinate_ascent", TARGET, SECONDS)
    name, parameters = _PROBLEMS[settings["model"]]
    problem = make_problem(registry().problem(name), data, {**parameters, **strength})
    if settings["method"] == CERTIFIED:
        return solve_to_gap(problem, "pdhg", TARGET, SECONDS)
    return point_after_steps(problem, "projected_subgradient", {"search_iterations": STEPS, "iterations": STEPS})


def _validated(data: TaskData, settings: Mapping[str, Any]) -> tuple[Enclosed, dict[str, float]]:
    """Return the model with the radius, or the C, of the lowest validation error, the smallest of these, and what was chosen."""
    held_out = validation_examples(data.truth["W"], settings["examples"], settings["seed"])
    tried = {value: trained(data, settings, strength) for value, strength in _strengths(data, settings).items()}
    errors = {factor: _error(held_out, fit.point) for factor, fit in tried.items()}
    chosen = min(errors, key=errors.__getitem__)
    return tried[chosen], {"factor": chosen, "validation_error": errors[chosen]}


def _strengths(data: TaskData, settings: Mapping[str, Any]) -> dict[float, dict[str, float]]:
    """Return what is tried, by factor or C. With losses that are means, C of SVM-Light is a penalty of 1 / (2 C n)."""
    if settings["model"] == SVM:
        return {C: {"ridge": 0.5 / (C * settings["examples"])} for C in COSTS}
    truth = data.truth["W"]
    norms = {"l1inf": norm_l1inf(truth), "l1": float(abs(truth).sum(axis=0).mean()), "l2": float(np.linalg.norm(truth, axis=0).mean())}
    return {factor: {"radius": factor * norms[settings["model"]]} for factor in FACTORS}


def validation_examples(truth: Array, examples: int, seed: int) -> TaskData:
    """Return examples of the same tasks, drawn as the others are, from a stream of their own."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))  # neither that of training nor that of test examples
    drawn = [generator.standard_normal((examples, truth.shape[0])) for _ in range(truth.shape[1])]
    designs = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in drawn]
    labels = [np.where(X @ truth[:, k] >= 0.0, 1.0, -1.0) for k, X in enumerate(designs)]
    return TaskData.per_task(designs, labels, name="validation")


def _error(data: TaskData, W: Array) -> float:
    scores, tasks = data.design.forward(W), range(data.n_tasks)
    labels = [data.design.task_outputs(data.targets, k) for k in tasks]
    return error_rate(labels, [data.design.task_outputs(scores, k) for k in tasks]).value
