"""What a cell of the report of 2008 computes: three models of 40 topics on one draw of training sets, C by the equal error rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench_mtl import Status, make_problem
from bench_mtl.data import TaskData
from bench_mtl.metrics import TaskMetric, average_equal_error_rate
from bench_mtl.runner import Found
from papers import Array
from papers.quattoni.annotation_data import Images, Part, training_sets
from papers.quattoni.annotation_models import (
    MODELS,
    PICTURED,
    PROOF_STEPS,
    SEARCH_STEPS,
    STEP_SIZES,
    STEPS,
    TARGET,
    Fit,
    fitted,
    proof,
    sharing,
    short,
)
from papers.quattoni.report2008_data import SVD, images_of
from papers.solve_to_gap import registry

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


class Trained(NamedTuple):
    """A model of all topics for one C."""

    fit: Fit
    eta0: float | None
    """The step size that was chosen, of the report's procedure."""


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
    chosen, rejected = [], []
    for model in MODELS:
        tried = [trained(settings["method"], model, radius, Xs, ys) for radius in GRIDS[settings["grid"]]]
        validation = [_error(images, images.validation, each.fit.W, images.validation_words).value for each in tried]
        place = int(np.argmin(validation))  # of equal ones the smallest C
        if settings["method"] == CERTIFIED and not tried[place].fit.is_proven:
            tried[place] = Trained(fitted(model, tried[place].fit.radius, Xs, ys, PROOF_STEPS), None)
        best, others = tried[place].fit, [each.fit for at, each in enumerate(tried) if at != place]
        chosen.append(best)
        rejected += others
        errors = _error(images, images.test, best.W, images.judged_words)
        share, fill = sharing(best.W)
        own = {
            "radius": best.radius,
            "eer": errors.value,
            "eers": list(errors.per_task),
            "share": share,
            "fill": fill,
            "objective": best.objective,
            "gap": best.gap,
            "rejected_gap": max(fit.gap for fit in others),
            "validation_eers": validation,
            "eer_by_radius": [_error(images, images.test, each.fit.W, images.judged_words).value for each in tried],
        }
        if tried[place].eta0 is not None:
            own["eta0"] = tried[place].eta0
        if _is_drawn(settings):
            own |= {"picture": [float(f"{abs(value):.3g}") for value in best.W.ravel()], "picture_rows": len(best.W)}
        values |= {f"{model}_{name}": value for name, value in own.items()} | {"words": list(errors.counted)}
    return Found(values, *_ending(settings["method"], chosen, rejected))


def _is_drawn(settings: Mapping[str, Any]) -> bool:
    """Return whether the report shows the coefficients of this cell: those of the report's procedure on the first draw."""
    wanted = {"method": PAPER, "examples": PICTURED, "features": SVD, "grid": PUBLISHED, "seed": 0}
    return all(settings[name] == value for name, value in wanted.items())


def _error(images: Images, part: Part, W: Array, words: Any) -> TaskMetric:
    return average_equal_error_rate(part.has_word[:, words], part.features @ W[:, words], names=[images.words[k] for k in words])


def trained(method: str, model: str, radius: float, Xs: Sequence[Array], ys: Sequence[Array]) -> Trained:
    """Return one model for one C: by the report's procedure, or to a proven gap of `TARGET` where `SEARCH_STEPS` steps are enough."""
    return stepped(model, radius, Xs, ys) if method == PAPER else Trained(fitted(model, radius, Xs, ys, SEARCH_STEPS), None)


def stepped(model: str, radius: float, Xs: Sequence[Array], ys: Sequence[Array]) -> Trained:
    """Return the best point, by the training objective, of the report's procedure: `STEPS` projected subgradient steps for each eta0."""
    name, parameters = _PROBLEMS[model]
    problem = make_problem(registry().problem(name), TaskData.per_task(Xs, ys), {**parameters, "radius": radius})
    runs: dict[float, Fit] = {}
    for step_size in STEP_SIZES:
        options = {"step_sizes": (step_size,), "search_iterations": STEPS, "iterations": STEPS}
        solver = registry().solver("projected_subgradient", options)
        (last,) = deque(solver.steps(problem), maxlen=1)  # type: ignore[attr-defined] # an iterative solver
        certificate, W = problem.certify_repaired(last)
        gap = certificate.relative_gap
        runs[step_size] = Fit(radius, W, certificate.primal, certificate.dual, gap, gap <= TARGET)
    eta0 = min(runs, key=lambda step_size: runs[step_size].objective)
    return Trained(runs[eta0], eta0)


def _ending(method: str, chosen: Sequence[Fit], rejected: Sequence[Fit]) -> tuple[Status, str]:
    """Return whether the chosen fits are proven; the report's procedure ends after its steps, whatever is proven of them."""
    status, reason = proof(chosen, rejected)
    return (status, reason) if method == CERTIFIED else (Status.INACCURATE, f"ended after {STEPS} steps for each eta0; {reason}")
