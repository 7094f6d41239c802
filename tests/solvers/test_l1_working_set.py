"""Working sets for l1 norms: the kernels against slow twins, where runs end, and warm starts."""

import gc
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import pairwise_cases, proven

from bench_mtl import Status, TaskData, Tolerance, regularisation_path
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.l1_working_set.columns import columns_of
from bench_mtl.solvers.l1_working_set.face import face_minimiser
from bench_mtl.solvers.l1_working_set.kernels import SPAN, affine_shares

RNG = np.random.default_rng(0)
N, D = 40, 90
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.5)
Y = X @ (RNG.standard_normal((D, 3)) * (RNG.random((D, 3)) < 0.08)) + 0.3 * RNG.standard_normal((N, 3))
DATA = TaskData.shared(X, Y)
LABELS = np.where(Y > 0.0, 1.0, -1.0)
CLASSES = np.where(np.arange(3) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
SMALL = L1WorkingSet(first=5, growth=1.5)


def solved(problem: L1BallGLM, solver: Any = SMALL) -> Any:
    return proven(problem, solver, 1e-11, iterations=500).solution


def test_shares_of_an_extrapolation_are_the_least_combined_step() -> None:
    points = np.random.default_rng(2).standard_normal((SPAN + 1, 12))
    shares, curvatures = np.empty(SPAN), np.linspace(0.0, 3.0, 12)
    assert affine_shares(points, curvatures, shares)
    steps = np.diff(points, axis=0) * np.sqrt(curvatures)
    system = np.block([[steps @ steps.T, np.ones((SPAN, 1))], [np.ones((1, SPAN)), np.zeros((1, 1))]])
    assert np.allclose(shares, np.linalg.solve(system, np.eye(SPAN + 1)[-1])[:-1], rtol=1e-8)
    assert not affine_shares(np.zeros((SPAN + 1, 12)), curvatures, shares)


def test_a_face_is_minimised_and_left_where_a_sign_would_change() -> None:
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((30, 8))
    H, w, penalty = Z.T @ Z, rng.standard_normal(8), 3.0
    slopes = 20.0 * rng.standard_normal(8)
    new, is_lowest = face_minimiser(H, slopes, w, penalty, 20)
    assert is_lowest
    assert np.all(new * w >= 0.0)
    assert float(0.5 * (new - w) @ H @ (new - w) - slopes @ (new - w)) < penalty * float((np.abs(w) - np.abs(new)).sum())
    free = new != 0.0
    assert 0 < free.sum() < 8
    assert np.allclose((H @ (new - w) - slopes + penalty * np.sign(w))[free], 0.0, atol=1e-8)
    assert face_minimiser(-H, slopes, w, penalty, 20)[0] is None


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_it_ends_where_rounding_does(loss: str) -> None:
    problem = L1BallGLM(TaskData.shared(X, Y if loss == "squared" else LABELS), loss=loss, penalty="0.1 max")
    iterates = list(islice(SMALL.steps(problem), 200))
    assert len(iterates) < 200
    assert problem.certify(iterates[-1]).relative_gap < 1e-12
    assert all(one.step + 1 == other.step and one.work < other.work for one, other in pairwise(iterates))


def test_along_a_path_it_is_told_so_and_takes_fewer_steps_than_from_zero() -> None:
    told, steps = [], []

    class Told(L1WorkingSet):
        def along_path(self) -> L1WorkingSet:
            told.append(len(steps))
            return super().along_path()

    for warm_start in (False, True):
        values, solver = 10.0 * 0.9 ** np.arange(20), Told(first=5, growth=1.5)
        path = regularisation_path(
            lambda value: L1BallGLM(DATA, penalty=value), values, solver, tolerance=Tolerance(1e-8), warm_start=warm_start
        )
        assert all(point.record.status is Status.VERIFIED for point in path)
        steps.append(sum(point.record.samples[-1].step for point in path))
    assert steps[1] < 0.7 * steps[0]
    assert told == [1]


@pytest.mark.parametrize("block", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_along_a_path_columns_are_kept_as_long_as_their_data(block: object) -> None:
    along: Any = SMALL.along_path()
    assert along == along.along_path()
    data = TaskData.shared(block, Y)
    for value in (10.0, 8.0, 6.0):
        problem = L1BallGLM(data, penalty=value)
        assert np.allclose(solved(problem), solved(problem, along), atol=1e-9)
    columns = along.memory.columns
    kept, others = columns[data.design][False], len(columns) - 1  # of the driver's rehearsal
    assert kept[0] is kept[2]
    del data, problem
    gc.collect()
    assert len(columns) == others


def centred_block(kind: str) -> Any:
    """Return X with an offset, a column of ones and one of zeros, which a sparse one has of its own."""
    block = np.hstack([np.ones((N, 1)), X + (X != 0.0), np.zeros((N, 1))])
    return sp.csr_array(block) if kind == "sparse" else block


@pytest.mark.parametrize(
    ("loss", "kind", "restriction", "is_weighted"),
    pairwise_cases(
        ["squared", "logistic"],
        ["dense", "sparse", "own"],
        [{"penalty": "0.1 max"}, {"penalty": "0.01 max", "nonneg": True}, {"radius": 5.0}, {"radius": 5.0, "balls": "all"}],
        [False, True],
    ),
)
def test_an_intercept_is_free(
    loss: str, kind: str, restriction: dict[str, Any], is_weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the bounds, which know nothing of columns without means. One task has one label alone."""
    monkeypatch.setattr("bench_mtl.model.fit_problem.can_centre", lambda *_: False)
    targets = 3.0 + Y if loss == "squared" else np.where((Y > 0.5) | (np.arange(3) == 2), 1.0, -1.0)
    block = centred_block(kind)
    blocks = [sp.csr_array(block), block[::-1], block[:30]]
    if kind == "own":
        data = TaskData.per_task(blocks, [targets[:, 0], targets[::-1, 1], targets[:30, 2]])
    else:
        data = TaskData.shared(block, targets)
    if is_weighted:
        data = replace(data, weights=np.random.default_rng(3).uniform(0.1, 2.0, data.design.output_shape))
    problem = L1BallGLM(data, loss=loss, intercept=True, **restriction)
    assert problem.fit.intercept
    found = solved(problem)
    assert not found[0].any()
    assert problem.intercepts(found).all()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_along_a_path_intercepts_are_free_too(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.model.fit_problem.can_centre", lambda *_: False)
    along: Any = SMALL.along_path()
    data = TaskData.shared(sp.csr_array(X + (X != 0.0)), 1.0 + Y if loss == "squared" else LABELS)
    for value in ("0.5 max", "0.3 max", "0.2 max"):
        problem = L1BallGLM(data, loss=loss, penalty=value, intercept=True)
        assert problem.fit.intercept
        assert np.allclose(solved(problem), solved(problem, along), atol=1e-7)


def test_columns_without_their_means_are_those_of_a_row_more() -> None:
    rng = np.random.default_rng(5)
    h, features, r = rng.uniform(0.1, 2.0, N), np.array([3, 60, 2, 17]), rng.standard_normal(N)
    r -= r.mean()
    for block in (X, sp.csr_array(X)):
        columns = columns_of(block, True)
        row: Any = columns.centre(features, h)
        Z = X[:, features] - np.average(X[:, features], axis=0, weights=h)
        assert np.allclose(columns.gram(features, row), Z.T @ (h[:, None] * Z))
        assert np.allclose(columns.squares(features, row), (h[:, None] * Z**2).sum(axis=0))
        assert np.allclose(columns.products_with(features, r), Z.T @ r)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sparse_columns_without_zeros_may_have_large_means(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.model.fit_problem.can_centre", lambda *_: False)
    block = X.copy()
    block[:, 0] = 1e7 + np.random.default_rng(6).standard_normal(N)
    targets = np.where(block[:, :1] > 1e7, 1.0, -1.0)
    found = proven(L1BallGLM(TaskData.shared(sp.csr_array(block), targets), loss=loss, penalty="0.1 max", intercept=True), SMALL, 1e-6)
    assert found.solution[0, 0] > 0.0


@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_starts_may_be_far(intercept: bool) -> None:
    problem = L1BallGLM(TaskData.shared(X, LABELS), loss="logistic", penalty="0.1 max", intercept=intercept)
    proven(problem, SMALL, 1e-8, start=1e3 * np.random.default_rng(7).standard_normal((D, 3)), iterations=500)
