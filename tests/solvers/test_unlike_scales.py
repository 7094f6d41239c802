"""Columns from 1e-6 to 1e6, offset data, large targets: every solver that is made for them proves 1e-6 in a number of passes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from solver_data import proven

from bench_mtl import Problem, TaskData
from bench_mtl.core.types import Array
from bench_mtl.problems import BallHinge, L1BallGLM, L1InfHinge, SparseLowRank
from bench_mtl.solvers import ADMM, PDHG, Auto, L1WorkingSet, PartialMinimisation
from bench_mtl.solvers.units import LIKE, feature_units, in_units

#: Examples, features and tasks.
SIZES = {"small": (24, 9, 4), "tall": (60, 12, 5), "wide": (30, 40, 4)}

#: What is done to standard normal data. Labels are taken from the targets before it, so that an offset leaves both.
CHANGES: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "columns": lambda X, Y: (X * 10.0 ** np.linspace(-6.0, 6.0, X.shape[1]), Y),
    "offset": lambda X, Y: (X + 100.0, Y + 100.0),
    "targets": lambda X, Y: (X, 1e8 * Y),
}


def data_of(change: str, size: str, *, labelled: bool, per_task: bool = False) -> tuple[TaskData, Array]:
    """Return data and a least-squares fit of them, whose norms are in the units of a solution."""
    n, d, m = SIZES[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.6)
    Y = X @ W + 0.3 * np.linalg.norm(W) / np.sqrt(m) * rng.standard_normal((n, m))
    signs = np.where(Y > 0.0, 1.0, -1.0)
    X, Y = CHANGES[change](X, Y)
    Y = signs if labelled else Y
    fit = np.linalg.lstsq(X, Y, rcond=1e-13)[0]
    if not per_task:
        return TaskData.shared(X, Y), fit
    halves = [slice(k % 3, None) for k in range(m)]
    return TaskData.per_task([X[rows] for rows in halves], [Y[rows, k] for k, rows in enumerate(halves)]), fit


def problem_of(name: str, change: str, size: str) -> Problem:
    """Return a problem whose solution is neither 0 nor free of its constraint or penalty.

    Sizes are by the median over features, so that of unlike columns about half are held back by the constraint and half are free: a radius
    in the units of the smallest column leaves multipliers that no dual point in double precision can resolve for the largest.
    """
    family, _, what = name.partition(" ")
    labelled = "hinge" in family or what == "logistic"
    data, W = data_of(change, size, labelled=labelled, per_task="own" in what or name == "l1_ball_glm penalty")
    radius, rows = 0.3 * len(W) * float(np.median(np.abs(W).mean(axis=1))), np.linalg.norm(W, axis=1)
    if family == "l1inf_hinge":
        largest = 0.3 * len(W) * float(np.median(np.abs(W).max(axis=1)))
        bound: dict[str, Any] = {"penalty": "0.0001 max" if "small" in what else "0.1 max"} if "penalty" in what else {"radius": largest}
        return L1InfHinge(data, **bound)
    if family == "ball_hinge":
        round_one = 0.3 * float(np.sqrt(len(W)) * np.median(np.sqrt((W**2).mean(axis=1))))
        return BallHinge(data, radius=round_one if what == "l2" else radius, norm=what)
    if family == "l1_ball_glm":
        loss = "logistic" if what == "logistic" else "squared"
        return L1BallGLM(data, loss=loss, **({"penalty": "0.1 max"} if what == "penalty" else {"radius": radius}))
    slope = float(np.abs(data.design.adjoint(data.targets)).max())
    trace = float(np.median(rows) / np.linalg.norm(rows) * np.sqrt(len(W)) * np.linalg.norm(W, "nuc"))
    return SparseLowRank(data, penalty=0.1 * slope, radius=0.1 * trace)


HINGES = ("l1inf_hinge radius", "l1inf_hinge penalty", "l1inf_hinge small penalty", "l1inf_hinge radius, own", "l1inf_hinge penalty, own")
BALLS = ("ball_hinge l1", "ball_hinge l2")
#: On which PDHG takes seconds to make up for an offset.
OFFSET_SLOWLY = HINGES[:2]
LASSOS = ("l1_ball_glm radius", "l1_ball_glm penalty", "l1_ball_glm logistic")

#: Solvers, their problems, changes and sizes of the data, and the most passes.
CASES: list[tuple[Any, tuple[str, ...], tuple[str, ...], tuple[str, ...], int]] = [
    (PDHG(), HINGES + BALLS, ("columns",), ("small", "tall", "wide"), 40_000),
    (PDHG(), (*OFFSET_SLOWLY, HINGES[4], *BALLS), ("offset",), ("small",), 300_000),
    (Auto(), HINGES, ("columns", "offset"), ("small", "tall", "wide"), 10_000),
    (L1WorkingSet(), LASSOS, ("columns",), ("small", "tall", "wide"), 5_000),
    (L1WorkingSet(), LASSOS, ("offset", "targets"), ("small",), 5_000),
    (ADMM(), ("sparse_low_rank", "sparse_low_rank own"), ("columns",), ("small", "tall", "wide"), 20_000),
    (ADMM(), ("sparse_low_rank",), ("offset", "targets"), ("small",), 40_000),
    (PartialMinimisation(), ("sparse_low_rank",), ("offset", "targets"), ("small",), 40_000),
]


@pytest.mark.parametrize(
    ("solver", "name", "change", "size", "passes"),
    [
        pytest.param(
            solver, name, change, size, passes, id=f"{solver.label}-{name}-{change}-{size}",
            marks=pytest.mark.slow if passes == 300_000 and name in OFFSET_SLOWLY else [],
        )
        for solver, names, changes, sizes, passes in CASES
        for name in names
        for change in changes
        for size in sizes
    ],
)  # fmt: skip
def test_unlike_scales(solver: Any, name: str, change: str, size: str, passes: int) -> None:
    proven(problem_of(name, change, size), solver, 1e-6, iterations=None, work=passes)


@pytest.mark.parametrize("is_twice", [False, True], ids=["a sparse part", "equal columns"])
def test_admm_on_unlike_columns(is_twice: bool) -> None:
    problem: Any = problem_of("sparse_low_rank", "columns", "small" if is_twice else "tall")
    X, Y = np.asarray(problem.design.block(0)), problem.fit.targets
    weight = problem.penalty if is_twice else float(np.quantile(np.abs(problem.design.adjoint(Y)).max(axis=1), 0.2))
    data = TaskData.shared(np.hstack([X, X]) if is_twice else X, Y)
    proven(SparseLowRank(data, penalty=weight, radius=problem.radius), ADMM(), 1e-6, iterations=None, work=20_000 if is_twice else 200_000)


def test_units_make_columns_alike() -> None:
    problem: Any = problem_of("l1inf_hinge radius, own", "columns", "tall")
    units = feature_units(problem.design)
    scaled: Any = in_units(problem.design, units)
    assert_allclose(sum((scaled.block(k) ** 2).sum(axis=0) for k in range(scaled.n_tasks)), np.ones(scaled.n_features))
    assert feature_units(scaled) is None
    assert units.min() / units.max() < 1.0 / LIKE
