"""What a cell of `singer-online` computes: one pass over a stream for every eta0, or the best fixed points of its beginnings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_mtl import NEGLIGIBLE_ENTRY, Problem, Status, load, make_problem
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.runner import Found
from papers import Array
from papers.singer.passes import Look, as_values, best_fixed, checkpoints, looked_at, order_of
from papers.solve_to_gap import registry

#: Streams of one label by name, as `load` takes them: the most frequent label of each set, rows of length 1.
STREAMS: Mapping[str, Mapping[str, Any]] = {
    "rcv1sub1": {"name": "rcv1sub1", "labels": 1},
    "rcv1sub2": {"name": "rcv1sub2", "labels": 1},
    "ng20": {"name": "ng20", "labels": 1, "preprocess": "unit_rows"},
    "ohsumed": {"name": "ohsumed", "labels": 1, "preprocess": "unit_rows"},
    "stream": {"name": "synthetic_stream", "features": 100_000},
}
#: Streams of many tasks.
TASK_STREAMS = ("tasks", "landmine")
LANDMINE: Mapping[str, Any] = {"name": "landmine", "preprocess": "standardise"}

#: eta0 of eta_t = eta0 / sqrt(t): the same grid for every method.
ETAS = tuple(2.0**k for k in range(-6, 11))
#: Of the synthetic tasks, as in figure 1 of Quattoni et al.
TASKS, FEATURES = 60, 200

PROJECTED, EG, FIXED = "projected", "eg", "fixed"
_PROJECTED, _EG, _JOINT = "sparse_online", "exponentiated_gradient", "stochastic_subgradient"
#: The solver that proves the best fixed point, its relative gap, and seconds on its clock.
_PROVES = {"l1_ball_glm": ("l1_working_set", 1e-6, 120.0), "l1inf_hinge": ("pdhg", 1e-4, 120.0)}


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Make one pass over a stream for every eta0, or find the best fixed point of each of its beginnings."""
    name, radius, seed, rounds = settings["stream"], settings["radius"], settings["seed"], settings["rounds"]
    data = _tasks(name, seed, rounds, data_dir) if name in TASK_STREAMS else _one_label(name, seed, rounds, data_dir)
    kind, count = "l1inf_hinge" if name in TASK_STREAMS else "l1_ball_glm", data.design.n_examples
    if settings["method"] == FIXED:
        places = checkpoints(count)
        parts = [_problem(kind, beginning(data, place), radius) for place in places]
        factors = [float(place) if kind == "l1_ball_glm" else 1.0 for place in places]  # that loss is a mean
        return best_fixed(places, parts, factors, _features, _PROVES[kind])
    problem = _problem(kind, data, radius)
    blocks = [data.design.block(k) for k in range(1 if data.design.is_shared else data.design.n_tasks)]
    values = as_values([_pass(problem, data, settings["method"], eta0) for eta0 in ETAS], ETAS, count) | {
        # The longest example bounds the gradients of both losses; the rows of an l1,inf ball have one entry a task.
        "longest": max(float(np.sqrt(np.asarray((X * X).sum(axis=1)).max())) for X in blocks),
        "diameter": 2.0 * radius * float(np.sqrt(data.design.n_tasks)),
        "has_bound": settings["method"] == PROJECTED,
        "density": float(np.mean([(X != 0).sum() / (X.shape[0] * X.shape[1]) for X in blocks])),
    }
    return Found(values, Status.INACCURATE, f"{len(ETAS)} passes over {count} examples; a pass has nothing to prove")


# Streams.


def _one_label(name: str, seed: int, rounds: int, data_dir: Path | None) -> TaskData:
    """Return a stream of one label, its rows in the order in which they come."""
    spec = STREAMS[name]
    if spec["name"] == "synthetic_stream":
        return load({**spec, "examples": rounds}, seed=seed)
    data = load(spec, data_dir=data_dir)
    order = order_of(data.design.n_examples, rounds, seed)
    return TaskData.shared(data.design.block(0)[order], data.targets[order], name=name)


def _tasks(name: str, seed: int, rounds: int, data_dir: Path | None) -> TaskData:
    """Return tasks with as many examples each, in the order in which they come: one of every task, then the next of every task."""
    if name == "tasks":
        return synthetic_l1inf(tasks=TASKS, features=FEATURES, examples=max(1, rounds // TASKS), seed=seed)
    data = load(LANDMINE, data_dir=data_dir)
    m = data.design.n_tasks
    each = min(min(data.design.sizes), max(1, rounds // m))
    orders = [order_of(data.design.sizes[k], each, seed) for k in range(m)]
    pairs = [data.task(k) for k in range(m)]
    parts = [(X[order], y[order]) for (X, y), order in zip(pairs, orders, strict=True)]
    return TaskData.per_task([X for X, _ in parts], [y for _, y in parts], name=name)


def beginning(data: TaskData, rounds: int) -> TaskData:
    """Return the first examples of a stream; of tasks those whose turn has come."""
    if data.design.is_shared:
        return TaskData.shared(data.design.block(0)[:rounds], data.targets[:rounds], name=data.name)
    m = data.design.n_tasks
    counts = [rounds // m + (k < rounds % m) for k in range(min(m, rounds))]
    parts = [(X[:count], y[:count]) for count, (X, y) in zip(counts, map(data.task, range(m)), strict=False)]
    return TaskData.per_task([X for X, _ in parts], [y for _, y in parts], name=data.name)


def _problem(kind: str, data: TaskData, radius: float) -> Problem:
    parameters = {"loss": "logistic", "radius": radius} if kind == "l1_ball_glm" else {"reduction": "sum", "radius": radius}
    return make_problem(registry().problem(kind), data, parameters)


# Passes: the loss of a round is that of its example alone, and the steps are those of this loss.


def _pass(problem: Problem, data: TaskData, method: str, eta0: float) -> list[Look]:
    """Return the looks at one pass over the stream."""
    many = not data.design.is_shared
    N, m = data.design.n_examples, data.design.n_tasks
    solver = registry().solver({PROJECTED: _JOINT if many else _PROJECTED, EG: _EG}[method])
    run = solver.online(problem, eta0 / N if many else eta0)  # type: ignore[attr-defined] # the weights of a mean have 1 / N
    labels = data.targets.ravel()
    # Tasks are stacked one after the other, and come in turn.
    order = np.arange(N).reshape(m, -1).T.ravel() if many else np.arange(N)

    def step(t: int) -> float:
        run.take(order[t : t + 1])
        margin = float(labels[order[t]] * run.predictions[0])
        return max(0.0, 1.0 - margin) if many else float(np.logaddexp(0.0, -margin))

    return looked_at(step, lambda total: Look(total, int(np.count_nonzero(run.point.any(axis=1))), _features(run.point)), N)


def _features(point: Array) -> int:
    """Return how many features have a weight that is not negligible, in any task."""
    size = np.abs(point).max(axis=1)
    return int(np.count_nonzero(size > NEGLIGIBLE_ENTRY * size.max()))
