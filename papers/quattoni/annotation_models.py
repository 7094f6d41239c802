"""What a cell of the annotation experiment computes: models by C, what they score, how they share features, how they converge."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench_mtl import NEGLIGIBLE_ENTRY, Status
from bench_mtl.data import TaskData
from bench_mtl.metrics import TaskMetric, average_equal_error_rate, multitask_auc, pair_sign_test
from bench_mtl.runner import Found
from papers import Array
from papers.quattoni.annotation_data import Images, Part, images_of, training_sets
from papers.solve_to_gap import registry

MODELS = ("l1inf", "l1", "l2")
#: The joint model's rivals.
RIVALS = ("l2", "l1")
#: The paper's C.
RADII = (0.1, 1.0, 10.0, 100.0)
#: The relative gap to prove.
TARGET = 1e-3
#: Steps of pdhg for every C, and for the chosen one where these do not prove it. (Nearly separable tasks take many for nothing.)
SEARCH_STEPS, PROOF_STEPS = 1000, 5000
#: The set whose coefficients are drawn: its number of positive examples, and its first seed.
PICTURED = 30
#: Of the paper's subgradient method, and where its objective is looked at.
STEP_SIZES = (0.1, 1.0, 10.0, 100.0)
STEPS = 200
LOOKS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 40, 50, 70, 100, 140, 200)

#: Names in `bench_mtl.estimators`.
_CLASSES = {"l1inf": "L1InfClassifier", "l1": "L1BallClassifier", "l2": "L2BallClassifier"}


class Fit(NamedTuple):
    """A model of all words."""

    radius: float
    W: Array  # d x words
    objective: float
    bound: float  # proven, below the smallest objective
    gap: float
    is_proven: bool
    eta0: float | None = None  # the step size, of a fit that ended after a number of steps, whatever they prove


class Chosen(NamedTuple):
    """The fits of a model for every C."""

    best: Fit
    others: list[Fit]

    @property
    def by_radius(self) -> list[Fit]:
        """All of them."""
        return sorted([self.best, *self.others], key=lambda fit: fit.radius)

    def values(self, images: Images, *, is_pictured: bool) -> dict[str, Any]:
        """Return what a cell has found of the model that is chosen; of its coefficients the sizes."""
        W, errors, (share, fill) = self.best.W, error(images, images.test, self.best.W, images.judged_words), sharing(self.best.W)
        found: dict[str, Any] = {
            "radius": self.best.radius,
            "eer": errors.value,
            "eers": list(errors.per_task),
            "words": list(errors.counted),
        }
        found |= {"share": share, "fill": fill, "gap": self.best.gap, "rejected_gap": max(fit.gap for fit in self.others)}
        return found | ({"picture": [float(f"{abs(value):.3g}") for value in W.ravel()], "picture_rows": len(W)} if is_pictured else {})


def chosen(model: str, tried: Sequence[Fit], merits: Sequence[float], Xs: Sequence[Array], ys: Sequence[Array]) -> Chosen:
    """Return the fit of the highest merit, of equal ones that of the smallest C; it takes more steps where they are to prove it."""
    place = int(np.argmax(merits))
    best, others = tried[place], [fit for at, fit in enumerate(tried) if at != place]
    return Chosen(best if best.is_proven or best.eta0 is not None else fitted(model, best.radius, Xs, ys, PROOF_STEPS), others)


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Compute one of the three parts of the experiment."""
    images = images_of(settings["data"], data_dir)
    Xs, ys = training_sets(images.training, settings["examples"], settings["seed"])
    return {"models": compared, "path": path, "convergence": convergence}[settings["part"]](settings, images, Xs, ys)


def compared(settings: Mapping[str, Any], images: Images, Xs: Sequence[Array], ys: Sequence[Array]) -> Found:
    """Train the three models on one draw of training sets for every C, choose C on the validation words, and judge on the other words."""
    judged = images.judged_words
    test = images.test.has_word[:, judged]
    values: dict[str, Any] = {"samples": sum(map(len, ys)), "short": short(images, settings["examples"])}
    found: dict[str, Chosen] = {}
    for model in MODELS:
        tried = [fitted(model, radius, Xs, ys) for radius in RADII]
        validation = [_auc(images.validation, fit.W, images.validation_words) for fit in tried]
        found[model] = fits = chosen(model, tried, validation, Xs, ys)
        own = {
            **fits.values(images, is_pictured=settings["examples"] == PICTURED and settings["seed"] == 0),
            "auc": _auc(images.test, fits.best.W, judged),
            "validation_aucs": validation,
            "aucs": [_auc(images.test, fit.W, judged) for fit in fits.by_radius],
        }
        values |= {f"{model}_{name}": value for name, value in own.items()}
    scores = {model: images.test.features @ fits.best.W[:, judged] for model, fits in found.items()}
    for rival in RIVALS:
        counts = pair_sign_test(test, scores["l1inf"], scores[rival], seed=settings["seed"]).pooled
        of_rival = {"pairs": counts.pairs, "wins": counts.wins, "losses": counts.losses, "p": counts.p_value}
        values |= {f"{rival}_{name}": value for name, value in of_rival.items()}
    return Found(values, *proof(found.values()))


def path(settings: Mapping[str, Any], images: Images, Xs: Sequence[Array], ys: Sequence[Array]) -> Found:
    """One model over a finer grid of C: its AUC on the judged words, that on the validation words, and how many features it uses."""
    fits = [fitted(settings["model"], float(radius), Xs, ys) for radius in np.geomspace(RADII[0], RADII[-1], settings["points"])]
    values = {
        "radii": [fit.radius for fit in fits],
        "aucs": [_auc(images.test, fit.W, images.judged_words) for fit in fits],
        "validation_aucs": [_auc(images.validation, fit.W, images.validation_words) for fit in fits],
        "shares": [sharing(fit.W)[0] for fit in fits],
        "gap": max(fit.gap for fit in fits),
    }
    return Found(values, *proof(Chosen(fit, []) for fit in fits))


def convergence(settings: Mapping[str, Any], images: Images, Xs: Sequence[Array], ys: Sequence[Array]) -> Found:
    """Return the objective of the joint model along the paper's subgradient method, by eta0, and the proven optimum."""
    optimum = fitted("l1inf", settings["radius"], Xs, ys, PROOF_STEPS)
    problem = registry().problem("l1inf_hinge").from_data(TaskData.per_task(Xs, ys), radius=settings["radius"])
    curves: dict[float, list[float]] = {}
    for step_size in STEP_SIZES:
        options = {"step_sizes": (step_size,), "search_iterations": STEPS, "iterations": STEPS}
        steps = registry().solver("projected_subgradient", options).steps(problem)  # type: ignore[attr-defined] # an iterative solver
        curves[step_size] = [problem.certify(iterate).primal for iterate in steps if iterate.step in LOOKS]
    best = min(curves, key=lambda step_size: curves[step_size][-1])
    values = {
        "samples": sum(map(len, ys)),
        "eta0": best,
        "steps": list(LOOKS),
        "objectives": curves[best],
        "last_objectives": [curve[-1] for curve in curves.values()],
        "optimum": optimum.objective,
        "bound": optimum.bound,
        "gap": optimum.gap,
    }
    return Found(values, *proof([Chosen(optimum, [])]))


def fitted(model: str, radius: float, Xs: Sequence[Array], ys: Sequence[Array], steps: int = SEARCH_STEPS) -> Fit:
    """One model for one C, to a proven gap of `TARGET` where that number of steps is enough."""
    from sklearn.exceptions import ConvergenceWarning

    from bench_mtl import estimators

    estimator = getattr(estimators, _CLASSES[model])(radius=radius, fit_intercept=False, solver="pdhg", tol=TARGET, max_iter=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status of the cell says so
        estimator.fit_tasks(Xs, ys)
    return Fit(radius, estimator.coef_.T, estimator.objective_, estimator.dual_bound_, estimator.gap_, estimator.converged_)


def sharing(W: Array) -> tuple[float, float]:
    """Return the share of the features that any word uses, and the mean share of the words that use such a feature."""
    used = np.abs(W) > NEGLIGIBLE_ENTRY * np.abs(W).max()
    rows = used.any(axis=1)
    return float(rows.mean()), float(used[rows].mean()) if rows.any() else 0.0


def _auc(part: Part, W: Array, words: Any) -> float:
    return multitask_auc(part.has_word[:, words], part.features @ W[:, words]).value


def error(images: Images, part: Part, W: Array, words: Any) -> TaskMetric:
    """Return the equal error rates of these words, and their mean."""
    return average_equal_error_rate(part.has_word[:, words], part.features @ W[:, words], names=[images.words[k] for k in words])


def short(images: Images, positives: int) -> int:
    """Return how many words have fewer positive training images than wanted."""
    return int((images.training.has_word.sum(axis=0) < positives).sum())


def proof(found: Iterable[Chosen]) -> tuple[Status, str]:
    """Return whether all fits that are chosen are proven; those of a rejected C need not be, and are counted."""
    every = list(found)
    fits, rejected = [each.best for each in every], [fit for each in every for fit in each.others]
    status = Status.VERIFIED if all(fit.is_proven for fit in fits) else Status.INACCURATE
    return status, "; ".join(_counted(*each) for each in ((fits, "fits"), (rejected, "fits of a C not chosen")) if each[0])


def _counted(fits: Sequence[Fit], what: str) -> str:
    unproven = [fit.gap for fit in fits if not fit.is_proven]
    rest = f", the others to {max(unproven):.1e}" if unproven else ""
    return f"{len(fits) - len(unproven)} of {len(fits)} {what} proven to a relative gap of {TARGET:g}{rest}"
