"""Small instances on which scale is the difficulty: columns from 1e-6 to 1e6, offset data, targets and data in other units."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.ball_hinge import BallHinge
from bench_mtl.problems.dirty_model import DirtyModel
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.problems.task_relationships import TaskRelationships
from bench_mtl.problems.trace_norm_glm import TraceNormGLM

#: Examples, features and tasks.
SIZES = {"small": (24, 9, 4), "tall": (60, 12, 5), "wide": (30, 40, 4)}


def _columns(X: Array, Y: Array) -> tuple[Array, Array]:
    return X * 10.0 ** np.linspace(-6.0, 6.0, X.shape[1]), Y


#: What is done to standard normal data. Labels are taken from the targets before it, so that an offset leaves both.
CHANGES: Mapping[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "plain": lambda X, Y: (X, Y),
    "columns": _columns,
    "offset": lambda X, Y: (X + 100.0, Y + 100.0),
    "targets": lambda X, Y: (X, 1e8 * Y),
    "tiny": lambda X, Y: (1e-8 * X, Y),
    "large": lambda X, Y: (1e8 * X, Y),
}


def _data(change: str, size: str, labelled: bool, seed: int, per_task: bool) -> tuple[TaskData, Array]:
    """Return the data and a least-squares fit of them, whose norms are in the units of a solution."""
    n, d, m = SIZES[size]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.6)
    Y = X @ W + 0.3 * np.linalg.norm(W) / np.sqrt(m) * rng.standard_normal((n, m))
    if labelled:
        signs = np.where(Y > 0.0, 1.0, -1.0)
        X, Y = CHANGES[change](X, Y)[0], signs
    else:
        X, Y = CHANGES[change](X, Y)
    fit = np.linalg.lstsq(X, Y, rcond=1e-13)[0]
    if not per_task:
        return TaskData.shared(X, Y), fit
    halves = [slice(k % 3, None) for k in range(m)]
    return TaskData.per_task([X[rows] for rows in halves], [Y[rows, k] for k, rows in enumerate(halves)]), fit


def cases(change: str, size: str = "tall", seed: int = 0) -> Mapping[str, Problem]:
    """Return an instance of every problem whose solution is neither 0 nor free of its constraint or penalty."""
    labelled, fit = _data(change, size, True, seed, False)
    own, own_fit = _data(change, size, True, seed, True)
    real, real_fit = _data(change, size, False, seed, False)
    real_own, real_own_fit = _data(change, size, False, seed, True)

    # Sizes by the median over features, so that of unlike columns about half are held back by the constraint and half are free: a radius in
    # the units of the smallest column leaves multipliers that no dual point in double precision can resolve for the largest.
    def l1inf(W: Array) -> float:
        return float(len(W) * np.median(np.abs(W).max(axis=1)))

    def l1(W: Array) -> float:
        return float(len(W) * np.median(np.abs(W).mean(axis=1)))

    def l2(W: Array) -> float:
        return float(np.sqrt(len(W)) * np.median(np.sqrt((W**2).mean(axis=1))))

    def trace(W: Array) -> float:
        rows = np.linalg.norm(W, axis=1)
        return float(np.median(rows) / np.linalg.norm(rows) * np.sqrt(len(W)) * np.linalg.norm(W, "nuc"))

    def curvature(data: TaskData) -> float:
        X = np.asarray(data.design.block(0))
        return float((X**2).sum(axis=0).mean()) / len(X)

    def largest_slope(data: TaskData) -> float:
        return float(np.abs(data.design.adjoint(data.targets)).max())

    choices = np.asarray(real.targets).argmax(axis=1)
    classes = TaskData.shared(labelled.design.block(0), 2.0 * np.eye(fit.shape[1])[choices] - 1.0)
    weight, radius = 0.1 * largest_slope(real), 0.1 * trace(real_fit)
    logistic = {"penalty": 0.05 * largest_slope(labelled), "radius": 0.1 * trace(fit), "loss": "logistic"}
    return {
        "l1inf_hinge radius": L1InfHinge(labelled, radius=0.3 * l1inf(fit)),
        "l1inf_hinge penalty": L1InfHinge(labelled, penalty="0.1 max"),
        "l1inf_hinge radius, own": L1InfHinge(own, radius=0.3 * l1inf(own_fit)),
        "l1inf_hinge small penalty": L1InfHinge(labelled, penalty="0.0001 max"),
        "l1inf_hinge penalty, own": L1InfHinge(own, penalty="0.1 max"),
        "l1inf_glm radius": L1InfGLM(real, radius=0.3 * l1inf(real_fit)),
        "l1inf_glm penalty": L1InfGLM(real, penalty="0.1 max"),
        "ball_hinge l1": BallHinge(labelled, radius=0.3 * l1(fit)),
        "ball_hinge l2": BallHinge(labelled, radius=0.3 * l2(fit), norm="l2"),
        "l1_ball_glm radius": L1BallGLM(real, radius=0.3 * l1(real_fit)),
        "l1_ball_glm penalty": L1BallGLM(real_own, penalty="0.1 max"),
        "l1_ball_glm logistic": L1BallGLM(labelled, loss="logistic", radius=0.3 * l1(fit)),
        "trace_norm_glm radius": TraceNormGLM(real, radius=0.3 * trace(real_fit)),
        "trace_norm_glm penalty": TraceNormGLM(real_own, penalty="0.1 max"),
        "dirty_model": DirtyModel(real, row_penalty="0.1 max", entry_penalty="0.1 max"),
        "sparse_low_rank": SparseLowRank(real, penalty=weight, radius=radius),
        "sparse_low_rank, own": SparseLowRank(real_own, penalty=0.1 * largest_slope(real_own), radius=0.1 * trace(real_own_fit)),
        "sparse_low_rank logistic": SparseLowRank(labelled, **logistic),  # type: ignore[arg-type]
        "ridge_hinge": RidgeHinge(labelled, ridge=0.1 * curvature(labelled)),
        "task_relationships": TaskRelationships(real, ridge=0.1 * curvature(real), coupling=0.1 * curvature(real)),
        "group_boosting logistic": GroupBoosting(classes, penalty="0.1 max"),
        "group_boosting hinge": GroupBoosting(classes, penalty="0.1 max", loss="hinge"),
    }
