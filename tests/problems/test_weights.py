"""Weights of examples, and targets that are unknown: a whole number counts as so many copies, and NaN as no example."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Iterate, TaskData, load_registry, run

REGISTRY = load_registry()
RNG = np.random.default_rng(0)
N, D, M = 14, 5, 3
X = RNG.standard_normal((N, D))
REAL = X @ RNG.standard_normal((D, M)) + 0.5 * RNG.standard_normal((N, M))
COUNTS = RNG.integers(1, 4, (N, M)).astype(float)

#: Every problem that takes weights, with each of its losses.
PROBLEMS: list[tuple[str, dict[str, Any]]] = [
    ("l1inf_hinge", {"radius": 1.0}),
    ("l1inf_hinge", {"penalty": "0.2 max", "reduction": "sum"}),
    ("l12_hinge", {"penalty": "0.2 max"}),
    ("ball_hinge", {"radius": 0.7}),
    ("ridge_hinge", {"ridge": 0.2}),
    ("l1inf_glm", {"penalty": "0.1 max"}),
    ("l1inf_glm", {"radius": 1.0, "loss": "logistic"}),
    ("l12_glm", {"penalty": "0.1 max", "loss": "logistic", "reduction": "sum"}),
    ("l1inf_glm", {"radius": 1.0, "nonnegative": True}),
    ("l12_glm", {"penalty": 0.1, "feature_factors": [0.0, 1.0, 2.0, 0.5, 1.0], "nonnegative": True, "ridge": 0.1}),
    ("l1_ball_glm", {"penalty": "0.1 max"}),
    ("l1_ball_glm", {"radius": 1.0, "loss": "logistic"}),
    ("trace_norm_glm", {"penalty": "0.1 max"}),
    ("dirty_model", {"row_penalty": "0.2 max", "entry_penalty": "0.2 max", "loss": "logistic"}),
    ("sparse_low_rank", {"penalty": 1.0, "radius": 1.0}),
    ("task_relationships", {"ridge": 0.1, "coupling": 0.1}),
]
IDS = [f"{name}-{'-'.join(map(str, parameters.values()))}" for name, parameters in PROBLEMS]


def targets_of(name: str, parameters: dict[str, Any]) -> np.ndarray:
    return np.where(REAL > 0.0, 1.0, -1.0) if "hinge" in name or parameters.get("loss") == "logistic" else REAL


def every_problem() -> Iterator[Any]:
    """Yield each problem with and without intercepts, and its gap; subgradients solve hinges with a ridge and intercepts."""
    for intercept in (False, True):
        for (name, parameters), title in zip(PROBLEMS, IDS, strict=True):
            is_rough = (name, intercept) == ("ridge_hinge", True)
            for gap in (1e-3, 1e-5) if is_rough else (1e-8,):
                marks = pytest.mark.slow if is_rough and gap < 1e-3 else []
                yield pytest.param(name, parameters, intercept, gap, id=f"{title}-{intercept}-{gap:g}", marks=marks)


def copied(Y: np.ndarray) -> TaskData:
    rows = [np.repeat(np.arange(N), COUNTS[:, k].astype(int)) for k in range(M)]
    return TaskData.per_task([X[each] for each in rows], [Y[each, k] for k, each in enumerate(rows)])


@pytest.mark.parametrize(("name", "parameters", "intercept", "gap"), list(every_problem()))
def test_whole_numbers_count_as_copies(name: str, parameters: dict[str, Any], intercept: bool, gap: float) -> None:
    family, Y = REGISTRY.problem(name), targets_of(name, parameters)
    both = [family(data, **parameters, intercept=intercept) for data in (TaskData.shared(X, Y, weights=COUNTS), copied(Y))]
    draw = np.random.default_rng(1)
    for _ in range(3):
        W = 0.3 * draw.standard_normal(both[0].point_shape)
        ours, theirs = (problem.certify(Iterate(W)) for problem in both)
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-12)
        assert ours.dual == pytest.approx(theirs.dual, rel=1e-8, abs=1e-10)
    ours, theirs = (run(problem, "auto", tolerance=gap, limits=60.0).best for problem in both)
    assert ours.relative_gap <= gap
    assert ours.primal == pytest.approx(theirs.primal, rel=2.0 * gap)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("name", "parameters"), PROBLEMS, ids=IDS)
def test_an_unknown_target_is_no_example(name: str, parameters: dict[str, Any], sparse: bool) -> None:
    Y, wrap = targets_of(name, parameters).copy(), sp.csr_array if sparse else np.asarray
    Y[[0, 3, 3, 7], [0, 0, 2, 1]] = np.nan
    known = ~np.isnan(Y)
    dropped = TaskData.per_task([wrap(X[known[:, k]]) for k in range(M)], [Y[known[:, k], k] for k in range(M)])
    masked = TaskData.shared(wrap(X), Y, weights=COUNTS)
    assert masked.notes == ("4 targets were unknown: their tasks do without these examples.",)
    assert np.array_equal(masked.weights, np.concatenate([COUNTS[known[:, k], k] for k in range(M)]))
    family = REGISTRY.problem(name)
    ours, theirs = (family(data, **parameters) for data in (TaskData.shared(wrap(X), Y), dropped))
    W = 0.3 * np.random.default_rng(1).standard_normal(ours.point_shape)
    assert ours.certify(Iterate(W)) == theirs.certify(Iterate(W))


def test_weights_and_unknown_targets_that_cannot_be_used_are_refused() -> None:
    for weights, words in (
        (np.ones(N - 1), "weights must have shape"),
        (np.zeros(N), "must be above 0, but one is 0"),
        (np.full(N, np.nan), "weights has NaN"),
        (np.ones((N, M + 1)), "weights must have shape"),
    ):
        with pytest.raises(InputError, match=words):
            TaskData.shared(X, REAL, weights=weights)
    with pytest.raises(InputError, match="there are 1 vectors of weights but 2 target vectors"):
        TaskData.per_task([X, X], [REAL[:, 0], REAL[:, 1]], weights=[np.ones(N)])
    with pytest.raises(InputError, match="task 1 has no known target"):
        TaskData.shared(X, np.where(np.arange(M) == 1, np.nan, REAL))
    classes = np.where(np.arange(M) == np.arange(N)[:, None] % M, 1.0, -1.0)
    with pytest.raises(InputError, match="takes no weights of examples"):
        REGISTRY.problem("group_boosting")(TaskData.shared(np.abs(X), classes, weights=np.ones(N)), nu=0.1)
    with pytest.raises(InputError, match="the same for all classes"):
        REGISTRY.problem("l1_ball_glm")(TaskData.shared(X, classes, weights=COUNTS), loss="multiclass", penalty=0.1)
    classes[0, 0] = np.nan
    with pytest.raises(InputError, match="one design for all of them"):
        REGISTRY.problem("l1_ball_glm")(TaskData.shared(X, classes), loss="multiclass", penalty=0.1)


def test_classes_with_weights_are_copies_too() -> None:
    classes, counts = np.where(np.arange(M) == np.arange(N)[:, None] % M, 1.0, -1.0), COUNTS[:, 0]
    rows = np.repeat(np.arange(N), counts.astype(int))
    family = REGISTRY.problem("l1_ball_glm")
    both = [
        family(data, loss="multiclass", penalty=0.05)
        for data in (TaskData.shared(X, classes, weights=counts), TaskData.shared(X[rows], classes[rows]))
    ]
    ours, theirs = (run(problem, "auto", tolerance=1e-9).best for problem in both)
    assert ours.primal == pytest.approx(theirs.primal, rel=2e-8)
