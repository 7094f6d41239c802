"""How the learners are compared: the protocols that the paper's words allow, a random split, parameters tuned on it, and scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_mtl import BenchError, Limits, Status, is_sparse
from bench_mtl.data import TaskData, preprocess
from bench_mtl.metrics import average_auc, macro_f1, micro_f1
from bench_mtl.runner import Found
from papers import Array, Mask, Matrix
from papers.chen.learners import MODELS, TOLERANCE, Fit, Model, fitted, fitted_grid
from papers.chen.sets import SETS, split

#: What the learners are given; `papers.chen.sets` has the steps.
FEATURES = ("normalised", "raw")
#: Of scores x.w + b: b is 0, or free (IndSVM's is penalised, as in scikit-learn).
INTERCEPTS = ("without", "free")
#: Columns of F1 by the rule of decision; macro or micro is to be filled in.
DECISIONS: Mapping[str, str] = {
    "at 0": "{}_f1",
    "prevalence": "{}_f1_prevalence",
    "one label": "{}_f1_one_label",
    "own thresholds": "{}_f1_thresholds",
}
#: Columns of the area under the curve by its kind.
AUCS: Mapping[str, str] = {"per label": "average_auc", "pooled": "pooled_auc"}
#: Their cells have the most repetitions.
MAIN = (("normalised", "without"), ("raw", "free"))
#: Centred features, no intercept, decisions at 0, the mean of the labels' AUC stand first: the paper's f(x) = w.x read to the letter.
PROTOCOLS: Mapping[str, Sequence[str]] = {
    "features": FEATURES,
    "intercept": INTERCEPTS,
    "decision": tuple(DECISIONS),
    "auc": tuple(AUCS),
}
#: Problems and solvers that the learners take from the registry.
LEARNER_CODE = (
    "sparse_low_rank", "trace_norm_glm", "task_relationships", "l1_ball_glm", "admm",
    "partial_minimisation", "auto", "accelerated_gradient", "spectral_gradient", "l1_working_set",
)  # fmt: skip

#: A cell is all fits of a tuning.
TUNING_LIMITS = Limits(seconds=None, wall_seconds=1800.0, memory_gib=8.0)

#: The experiment whose name the cells of all tables have, so that one table can take over what another has computed.
CELLS_OF = "chen-table2"

#: Of the examples, for training.
SHARE = 0.1

#: Of the training part: each is judged by a fit to the others.
FOLDS = 3

#: Of the fits that only rank settings.
TUNING_TOLERANCE = 1e-2


#: Learners and data sets of which also the best score on the held-out part over the grid is kept: a bound on what tuning could find.
_BOUNDED = (("MixedNorm", "TraceNorm"), ("scene", "yeast"))


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Tune and judge one learner on one split: settings data, model, features, intercept, seed, and perhaps share."""
    name, model, seed = settings["data"], settings["model"], settings["seed"]
    data = split(SETS[name], settings.get("share", SHARE), seed, data_dir, settings["features"])
    is_bounded = model in _BOUNDED[0] and name in _BOUNDED[1] and "share" not in settings
    return outcome(data, model, seed, has_intercept=settings["intercept"] == "free", is_bounded=is_bounded)


def files(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the data sets of a cell that are read from files."""
    return [SETS[settings["data"]].spec]


def grid(
    sets: Sequence[str], models: Sequence[str], seeds: int, shares: Sequence[float] = (), *, others: int = 0
) -> tuple[Mapping[str, Any], ...]:
    """Return the settings of all cells, repetition by repetition: `seeds` of the main protocols of fits (`MAIN`), `others` of the rest."""
    fits = [(features, intercept) for features in FEATURES for intercept in INTERCEPTS]
    return tuple(
        {"data": name, "model": model, **({"share": share} if shares else {}), "features": features, "intercept": intercept, "seed": seed}
        for seed in range(max(seeds, others))
        for features, intercept in fits
        if seed < (seeds if (features, intercept) in MAIN else others)
        for name in sets
        for share in shares or (SHARE,)
        for model in models
    )


def outcome(data: TaskData, name: str, seed: int, *, has_intercept: bool = False, is_bounded: bool = False) -> Found:
    """Tune the learner of that name on the training part, fit it to all of that part, and judge it on the held-out one.

    With `is_bounded` all settings are judged on the held-out part too, and the best score is retained.
    """
    model = MODELS[name]
    assert data.held_out is not None
    X, X_test = _features(model, data)
    names = [str(k) for k in range(data.n_tasks)]
    Y, Y_test = (targets > 0.0 for targets in (data.targets, data.held_out.targets))
    usable = _two_sided(Y)
    if not usable.any():
        raise BenchError("no label has both a positive and a negative training example")
    unlearnt = [label for label, is_used in zip(names, usable, strict=True) if not is_used]
    Y, Y_test, names = Y[:, usable], Y_test[:, usable], [label for label, is_used in zip(names, usable, strict=True) if is_used]
    tuned = tune(model, X, Y, seed, has_intercept=has_intercept)
    fit = fitted(model, tuned.setting, X, Y, has_intercept=has_intercept)
    scores = fit.scores(X_test)
    auc = average_auc(Y_test, scores, names=names)
    return Found(
        {
            "average_auc": auc.value,
            "pooled_auc": average_auc(Y_test.ravel(), scores.ravel()).value,
            **_decided(Y_test, scores, Y.mean(axis=0), tuned.thresholds, names),
            "auc_of_labels": list(auc.per_task),
            "labels_counted": len(auc.counted),
            "labels_skipped": [*unlearnt, *(each.task for each in auc.skipped)],
            "training_examples": X.shape[0],
            "features_given": X.shape[1],
            "setting": dict(tuned.setting),
            "tuning_auc": tuned.auc,
            "tuning_seconds": tuned.seconds,
            "tuning_fits": tuned.fits,
            "tuning_unconverged": tuned.unconverged,
            "fit_seconds": fit.seconds,
            "relative_gap": fit.gap if fit.gap is not None else math.nan,
            "n_iter": int(np.max(fit.estimator.n_iter_)),
            **({"best_on_test": _best_on_test(model, X, Y, X_test, Y_test, has_intercept)} if is_bounded else {}),
            **_structure(fit),
        },
        *_ending(fit),
    )


def _decided(Y: Mask, scores: Array, shares: Array, thresholds: Array, names: Sequence[str]) -> dict[str, float]:
    """Return F1 under every rule of decision, by the columns of `DECISIONS`."""
    rules = {
        "": scores,
        "_prevalence": np.where(by_prevalence(scores, shares), 1.0, -1.0),
        "_one_label": np.where(one_label(scores), 1.0, -1.0),
        "_thresholds": scores - thresholds,
    }
    kinds = (("macro", macro_f1), ("micro", micro_f1))
    return {f"{kind}_f1{rule}": of(Y, decided, names=names).value for rule, decided in rules.items() for kind, of in kinds}


def _best_on_test(model: Model, X: Matrix, Y: Mask, X_test: Matrix, Y_test: Mask, has_intercept: bool) -> float:
    """Return the highest average AUC on the held-out part of all settings, fitted to the whole training part as in tuning."""
    fits = fitted_grid(model, X, Y, has_intercept=has_intercept, tolerance=TUNING_TOLERANCE)
    return max(average_auc(Y_test, fit.scores(X_test)).value for _, fit in fits)


@dataclass(frozen=True)
class Tuned:
    """The best setting of a grid, by the mean over folds of the average AUC; of equal ones the first."""

    setting: Mapping[str, float]
    auc: float
    thresholds: Array  # for each label, of the scores of the examples of all folds the one with the highest F1
    seconds: float  # seconds of all fits; the first may load compiled code
    fits: int
    unconverged: int  # fits that did not reach their tolerance


def tune(model: Model, X: Matrix, Y: Mask, seed: int, *, has_intercept: bool = False) -> Tuned:
    """Choose a setting by `FOLDS`-fold cross-validation; a fold judges labels that it and the others have both kinds of examples of."""
    settings = list(model.settings())
    out_of_fold = np.full((len(settings), *Y.shape), np.nan)
    values = np.full((len(settings), FOLDS), np.nan)
    seconds, fits, unconverged = 0.0, 0, 0
    for f, (train, test) in enumerate(_folds(X.shape[0], seed)):
        usable = _two_sided(Y[train])
        found = fitted_grid(model, X[train], Y[train][:, usable], has_intercept=has_intercept, tolerance=TUNING_TOLERANCE)
        for s, (_, fit) in enumerate(found):
            out_of_fold[s][np.ix_(test, usable)] = scores = fit.scores(X[test])
            values[s, f] = average_auc(Y[test][:, usable], scores).value
            seconds, fits, unconverged = seconds + fit.seconds, fits + 1, unconverged + bool(fit.message)
    judged = ~np.isnan(values).all(axis=0)
    if not judged.any():
        raise BenchError(f"no fold of the {X.shape[0]} training examples has a label with both a positive and a negative example to judge")
    means = values[:, judged].mean(axis=1)
    best = int(np.argmax(means))
    thresholds = np.array([_best_threshold(Y[:, k], out_of_fold[best, :, k]) for k in range(Y.shape[1])])
    return Tuned(settings[best], float(means[best]), thresholds, seconds, fits, unconverged)


def _folds(count: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows for training and for judging, the same for every learner."""
    parts = np.array_split(np.random.default_rng(seed).permutation(count), FOLDS)
    for k, part in enumerate(parts):
        yield np.sort(np.concatenate([other for j, other in enumerate(parts) if j != k])), np.sort(part)


def _two_sided(Y: Mask) -> Mask:
    """Return labels with both a positive and a negative example."""
    return np.asarray(Y.any(axis=0) & ~Y.all(axis=0))


def _best_threshold(positive: Mask, scores: Array) -> float:
    """Return the threshold above which scores have the highest F1: half way between two scores that differ, or below the lowest one; 0
    where there is no positive example with a score."""
    known = ~np.isnan(scores)
    positive, scores = positive[known], scores[known]
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    if not len(hits) or not hits[-1]:
        return 0.0
    f1 = 2.0 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    descending = np.append(scores[order], -np.inf)
    at = int(np.argmax(np.where(descending[:-1] > descending[1:], f1, -1.0)))  # equal scores are on one side
    return float(np.nextafter(descending[at], -np.inf) if at + 1 == len(hits) else 0.5 * (descending[at] + descending[at + 1]))


def _features(model: Model, data: TaskData) -> tuple[Matrix, Matrix]:
    """Return what the learner is given of the training and held-out examples.

    Features that no training example has are left out: every learner has coefficients of 0 for them. All are divided by one number, so
    that training rows have a mean square length of 1: that is a matter of units, and grids then mean the same for all features.
    """
    most = model.most_features
    if most is not None and data.design.n_features > most:
        data = preprocess(data, [f"svd:{min(most, data.design.output_shape[0])}"])
    assert data.held_out is not None
    X, X_test = data.design.block(0), data.held_out.design.block(0)
    squares = np.asarray((X.multiply(X) if is_sparse(X) else X**2).sum(axis=0)).ravel()
    present = np.flatnonzero(squares)
    length = math.sqrt(float(squares.sum()) / X.shape[0]) or 1.0
    return X[:, present] / length, X_test[:, present] / length


def _structure(fit: Fit) -> dict[str, Any]:
    """Describe the parts of a learner that has them: the share of non-zeros in the sparse one, the rank of the low-rank one."""
    if not hasattr(fit.estimator, "sparse_coef_"):
        return {}
    values = np.linalg.svd(fit.estimator.low_rank_coef_, compute_uv=False)
    rank = int(np.sum(values > 1e-6 * max(values[0], 1e-300)))  # first-order methods leave dust
    return {"share_of_non_zeros": float(np.mean(fit.estimator.sparse_coef_ != 0.0)), "rank": rank}


def _ending(fit: Fit) -> tuple[Status, str]:
    if fit.gap is None:
        return Status.INACCURATE, f"no bound: {'ended by its own rule' if not fit.message else fit.message}"
    reached = f"relative gap {fit.gap:.1e} proven"
    if fit.gap <= TOLERANCE:
        return Status.VERIFIED, reached
    if fit.estimator.converged_:  # a relative gap says nothing of an optimum of 0
        return Status.VERIFIED, f"{reached}: the training examples are fitted exactly, to an objective of {fit.estimator.objective_:.1e}"
    return Status.INACCURATE, f"{reached}: {fit.message}"


def by_prevalence(scores: Array, shares: Array) -> Mask:
    """Return for each label the highest scores (examples x labels), as many as its share asks for, rounded; of equal ones the first."""
    order = np.argsort(-scores, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(scores))[:, None], axis=0)
    return np.asarray(ranks < np.round(shares * len(scores)))


def one_label(scores: Array) -> Mask:
    """Return for each example the label with its highest score alone, of equal ones the first."""
    chosen = np.zeros(scores.shape, dtype=bool)
    chosen[np.arange(len(scores)), np.argmax(scores, axis=1)] = True
    return chosen
