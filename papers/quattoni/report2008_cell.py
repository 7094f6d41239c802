"""What a cell of the report of 2008 computes: three models of 40 topics on one draw of training sets, C by the equal error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_mtl import Status, make_problem
from bench_mtl.data import TaskData
from bench_mtl.runner import Found
from papers import Array
from papers.quattoni.annotation_data import training_sets
from papers.quattoni.annotation_models import MODELS, PICTURED, STEP_SIZES, STEPS, TARGET, Chosen, Fit, chosen, error, fitted, proof, short
from papers.quattoni.report2008_data import SVD, images_of
from papers.solve_to_gap import point_after_steps, registry

#: The report's procedure, and the optimum of the same model.
PAPER, CERTIFIED = "200 steps", "certified"
METHODS = (PAPER, CERTIFIED)
#: The values of C that are tried: the report's, or more of them and over more decades.
PUBLISHED, FINER = "published", "finer"
GRIDS: Mapping[str, tuple[float, ...]] = {PUBLISHED: (1.0, 10.0, 100.0), FINER: (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)}

_PROBLEMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "l1inf": ("l1inf_hinge", {}),
    "l1": ("ball_hinge", {"norm": "l1"}),
    "l2": ("ball_hinge", {"norm": "l2"}),
}


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Train each model on one draw of training sets for every C, choose C on the validation topics, and judge on the others."""
    images = images_of(settings["features"], data_dir)
    Xs, ys = training_sets(images.training, settings["examples"], settings["seed"])
    values: dict[str, Any] = {
        "samples": sum(map(len, ys)),
        "short": short(images, settings["examples"]),
        "feature_count": images.training.features.shape[1],
        "rarest": int(images.training.has_word.sum(axis=0).min()),
    }
    pictured = {"method": PAPER, "examples": PICTURED, "features": SVD, "grid": PUBLISHED, "seed": 0}  # as of the report's picture
    found: list[Chosen] = []
    for model in MODELS:
        tried = [trained(settings["method"], model, radius, Xs, ys) for radius in GRIDS[settings["grid"]]]
        validation = [error(images, images.validation, fit.W, images.validation_words).value for fit in tried]
        fits = chosen(model, tried, [-each for each in validation], Xs, ys)
        found.append(fits)
        own = {
            **fits.values(images, is_pictured=all(settings[name] == value for name, value in pictured.items())),
            "objective": fits.best.objective,
            "validation_eers": validation,
            "eer_by_radius": [error(images, images.test, fit.W, images.judged_words).value for fit in fits.by_radius],
        }
        own |= {} if fits.best.eta0 is None else {"eta0": fits.best.eta0}
        values |= {"words": own.pop("words")} | {f"{model}_{name}": value for name, value in own.items()}
    status, reason = proof(found)
    if settings["method"] == PAPER:  # which ends after its steps, whatever is proven
        return Found(values, Status.INACCURATE, f"ended after {STEPS} steps for each eta0; {reason}")
    return Found(values, status, reason)


def trained(method: str, model: str, radius: float, Xs: Sequence[Array], ys: Sequence[Array]) -> Fit:
    """Return one model for one C: by the report's procedure, or to a proven gap of `TARGET` where a search's steps are enough.

    Of the report's procedure it is the best point, by the training objective, of `STEPS` projected subgradient steps for each eta0.
    """
    if method == CERTIFIED:
        return fitted(model, radius, Xs, ys)
    name, parameters = _PROBLEMS[model]
    problem = make_problem(registry().problem(name), TaskData.per_task(Xs, ys), {**parameters, "radius": radius})
    runs = []
    for eta0 in STEP_SIZES:
        options = {"step_sizes": (eta0,), "search_iterations": STEPS, "iterations": STEPS}
        W, objective, bound, gap, *_ = point_after_steps(problem, "projected_subgradient", options)
        runs.append(Fit(radius, W, objective, bound, gap, gap <= TARGET, eta0))
    return min(runs, key=lambda fit: fit.objective)
