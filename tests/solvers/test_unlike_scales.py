"""Columns from 1e-6 to 1e6 and offset data: every solver that is made for them proves 1e-6, in a number of passes and not of seconds."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pairwise_cases import pairwise_cases
from unlike_scales import cases

from bench_mtl.core.types import Limits, Status
from bench_mtl.engine.driver import run
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.partial_minimisation import PartialMinimisation
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.units import LIKE, feature_units, in_units

#: Far above what any run here needs, so that passes are the limit that binds.
SECONDS = 60.0

HINGES = ("l1inf_hinge radius", "l1inf_hinge penalty", "l1inf_hinge small penalty", "l1inf_hinge radius, own", "l1inf_hinge penalty, own")
BALLS = ("ball_hinge l1", "ball_hinge l2")


def proves(problem, solver, work):
    record = run(problem, solver, limits=Limits(seconds=SECONDS, work=work))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("size", ["small", "tall", "wide"])
@pytest.mark.parametrize("name", HINGES + BALLS)
def test_pdhg_on_unlike_columns(name, size):
    proves(cases("columns", size)[name], PDHG(), 40_000)


@pytest.mark.parametrize("name", ["l1inf_hinge radius", "l1inf_hinge penalty", "l1inf_hinge penalty, own", *BALLS])
def test_pdhg_on_offset_data(name):
    proves(cases("offset", "small")[name], PDHG(), 300_000)


@pytest.mark.parametrize(("name", "size", "change"), pairwise_cases(HINGES, ["small", "tall", "wide"], ["columns", "offset"]))
def test_auto(name, size, change):
    proves(cases(change, size)[name], Auto(), 10_000)


@pytest.mark.parametrize("size", ["small", "tall", "wide"])
@pytest.mark.parametrize("name", ["l1_ball_glm radius", "l1_ball_glm penalty", "l1_ball_glm logistic"])
def test_working_sets_on_unlike_columns(name, size):
    proves(cases("columns", size)[name], L1WorkingSet(), 5_000)


@pytest.mark.parametrize("change", ["offset", "targets"])
@pytest.mark.parametrize("name", ["l1_ball_glm radius", "l1_ball_glm penalty", "l1_ball_glm logistic"])
def test_working_sets_on_offset_data_and_large_targets(name, change):
    proves(cases(change, "small")[name], L1WorkingSet(), 5_000)


@pytest.mark.parametrize("size", ["small", "tall", "wide"])
@pytest.mark.parametrize("name", ["sparse_low_rank", "sparse_low_rank, own"])
def test_admm_on_unlike_columns(name, size):
    proves(cases("columns", size)[name], ADMM(), 20_000)


@pytest.mark.parametrize("solver", [ADMM(), PartialMinimisation()])
@pytest.mark.parametrize("change", ["offset", "targets"])
def test_sparse_and_low_rank_on_offset_data_and_large_targets(change, solver):
    proves(cases(change, "small")["sparse_low_rank"], solver, 40_000)


def test_admm_with_a_sparse_part_on_unlike_columns():
    given = cases("columns", "tall")["sparse_low_rank"]
    slopes = np.abs(given.design.adjoint(given.fit.targets)).max(axis=1)
    data = TaskData.shared(given.design.block(0), given.fit.targets)
    problem = SparseLowRank(data, penalty=float(np.quantile(slopes, 0.2)), radius=given.radius)
    proves(problem, ADMM(), 200_000)


def test_admm_on_equal_columns_of_unlike_scale():
    given = cases("columns", "small")["sparse_low_rank"]
    X = np.asarray(given.design.block(0))
    data = TaskData.shared(np.hstack([X, X]), given.fit.targets)
    proves(SparseLowRank(data, penalty=given.penalty, radius=given.radius), ADMM(), 20_000)


# The projections in scaled features, against bisection.


def _root(f):
    if f(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while f(high) > 0.0:
        high *= 2.0
    for _ in range(2000):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if f(middle) > 0.0 else (low, middle)
    return high


def _level_by_bisection(row, mass):
    sizes = np.abs(row)
    return 0.0 if sizes.sum() <= mass else _root(lambda mu: np.maximum(sizes - mu, 0.0).sum() - mass)


@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.7, 2.0])
def test_weighted_projections(share, spread):
    import bench_mtl.solvers.kernels.weighted_norms as weighted

    rng = np.random.default_rng(3)
    V, t = rng.standard_normal((7, 4)), 10.0 ** rng.uniform(-spread, spread, 7)

    radius = share * float((t * np.abs(V).max(axis=1)).sum())
    levels = lambda theta: np.array([_level_by_bisection(row, theta * s) for row, s in zip(V, t, strict=True)])  # noqa: E731
    right = np.clip(V, *(sign * levels(_root(lambda theta: (t * levels(theta)).sum() - radius))[:, None] for sign in (-1.0, 1.0)))
    mine = V.copy()
    weighted.project_rows(mine, radius, False, 0.0, t)
    assert_allclose(mine, V if share > 1.0 else right, rtol=1e-9, atol=1e-9)

    mine = V.copy()
    weighted.project_rows(mine, 0.0, True, 0.3, t)
    assert_allclose(mine, np.clip(V, -levels(0.3)[:, None], levels(0.3)[:, None]), rtol=1e-9, atol=1e-9)

    v = V[:, 0]
    by_l1 = (partial(weighted.project_weighted_l1, theta=theta) for theta in (0.0, 0.1, 1e3))
    checks = (
        *((project, lambda th: np.sign(v) * np.maximum(np.abs(v) - th * t, 0.0), lambda w: (t * np.abs(w)).sum()) for project in by_l1),
        (weighted.project_weighted_l2, lambda th: v / (1.0 + th * t * t), lambda w: np.linalg.norm(t * w)),
    )
    for project, move, size in checks:
        mine = v.copy()
        assert project(mine, share * float(size(v)), t) >= 0.0
        assert_allclose(mine, _moved(v, share, move, size), rtol=1e-8, atol=1e-8)


def _moved(v, share, move, size):
    if share in (0.0, 2.0):
        return share / 2.0 * v
    return move(_root(lambda theta: size(move(theta)) - share * size(v)))


def test_units_make_columns_alike():
    design = cases("columns")["l1inf_hinge radius, own"].design
    units = feature_units(design)
    scaled = in_units(design, units)
    assert_allclose(sum((scaled.block(k) ** 2).sum(axis=0) for k in range(design.n_tasks)), np.ones(design.n_features))
    assert feature_units(scaled) is None
    ends = units.min() / units.max()
    assert ends < 1.0 / LIKE
