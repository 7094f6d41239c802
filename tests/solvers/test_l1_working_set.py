"""Working sets for l1 norms: the kernels against slow twins, optima against another solver's, warm starts, edges, options."""

from __future__ import annotations

import gc
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Record, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.engine.regularisation_path import regularisation_path
from bench_mtl.model.forms import L1Form
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.solvers.dual_newton import DualNewton
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.l1_working_set.classes import class_hessian, face_step, full_balls
from bench_mtl.solvers.l1_working_set.columns import columns_of
from bench_mtl.solvers.l1_working_set.face import face_minimiser
from bench_mtl.solvers.l1_working_set.kernels import SPAN, add_outer, affine_shares, descend
from bench_mtl.solvers.l1_working_set.solver import _Passed
from bench_mtl.solvers.l1_working_set.tasks import SquaredTask

RNG = np.random.default_rng(0)
N, D = 40, 90
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.5)
TRUTH = RNG.standard_normal((D, 3)) * (RNG.random((D, 3)) < 0.08)
Y = X @ TRUTH + 0.3 * RNG.standard_normal((N, 3))
DATA = TaskData.shared(X, Y)
LABELS = np.where(Y > 0.0, 1.0, -1.0)
CLASSES = np.where(np.arange(3) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
SMALL = L1WorkingSet(first=5, growth=1.5)


def solved(problem: L1BallGLM, solver: object = SMALL, target: float = 1e-11) -> Record:
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=20.0, iterations=500))  # type: ignore[arg-type]
    assert record.status is Status.VERIFIED, record.reason
    return record


def sweeps_by_hand(X: Array, penalty: float, h: Array, cone: Array, w: Array, g: Array, count: int) -> tuple[Array, Array]:
    """A sweep over all columns, and then over those whose entries were not 0 before and after it."""
    w, g = w.copy(), g.copy()
    order = list(range(X.shape[1]))
    for sweep in range(count):
        before = w.copy()
        for j in order:
            curvature = float((h * X[:, j] ** 2).sum())
            if curvature == 0.0:
                continue
            target = w[j] + X[:, j] @ g / curvature
            new = np.sign(target) * max(abs(target) - penalty / curvature, 0.0)
            if new * cone[j] < 0.0:
                new = 0.0
            g -= (new - w[j]) * h * X[:, j]
            w[j] = new
        if sweep == 0:
            order = [j for j in order if w[j] != 0.0 or before[j] != 0.0]
    return w, g


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("is_signed", [False, True])
def test_sweeps_are_those_by_hand(is_sparse: bool, is_weighted: bool, is_signed: bool) -> None:
    rng = np.random.default_rng(1)
    features = np.array([3, 7, 8, 40, 41, 89])
    h = rng.uniform(0.5, 2.0, N) if is_weighted else np.ones(N)
    cone = np.sign(rng.standard_normal(len(features))) if is_signed else np.zeros(len(features))
    columns = columns_of(sp.csr_array(X) if is_sparse else X)
    places, curvatures = columns.places(features), columns.squares(features, h if is_weighted else None)
    w, g = np.zeros(len(features)), h * Y[:, 0]
    expected = sweeps_by_hand(X[:, features], 0.4, h, cone, w, g, SPAN - 1)
    kept = h if is_weighted else None
    count, is_ended = descend(*columns.arrays, places, curvatures, cone, 0.4, kept, w, g, 0.0, 0.0, SPAN - 1, SPAN)
    assert (count, is_ended) == (SPAN - 1, False)
    assert np.allclose(w, expected[0], rtol=1e-12, atol=1e-13)
    assert np.allclose(g, expected[1], rtol=1e-12, atol=1e-13)
    assert np.count_nonzero(w)
    tolerance = 1e-9
    count, is_ended = descend(*columns.arrays, places, curvatures, cone, 0.4, kept, w, g, tolerance, 0.0, 10_000, 10_000)
    assert is_ended
    slopes = X[:, features].T @ g
    missed = np.abs(slopes - 0.4 * np.sign(w))[w != 0.0]
    heights = cone * slopes if is_signed else np.abs(slopes)
    assert missed.max() <= 2.0 * tolerance
    assert heights[w == 0.0].max(initial=0.0) <= 0.4 + 2.0 * tolerance


def test_shares_of_an_extrapolation_are_the_least_combined_step() -> None:
    points = np.random.default_rng(2).standard_normal((SPAN + 1, 12))
    shares, curvatures = np.empty(SPAN), np.linspace(0.0, 3.0, 12)
    assert affine_shares(points, curvatures, shares)
    steps = np.diff(points, axis=0) * np.sqrt(curvatures)
    system = np.block([[steps @ steps.T, np.ones((SPAN, 1))], [np.ones((1, SPAN)), np.zeros((1, 1))]])
    assert np.allclose(shares, np.linalg.solve(system, np.eye(SPAN + 1)[-1])[:-1], rtol=1e-8)
    assert not affine_shares(np.zeros((SPAN + 1, 12)), curvatures, shares)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_second_derivatives_of_sparse_and_dense_columns_agree(is_weighted: bool) -> None:
    h = np.random.default_rng(3).uniform(0.5, 2.0, N) if is_weighted else None
    for features in (np.array([2, 5, 60]), np.array([5, 60, 61, 62, 2])):
        Z = X[:, features]
        expected = Z.T @ (Z if h is None else h[:, None] * Z)
        for block in (X, sp.csr_array(X)):
            columns = columns_of(block)
            columns.places(np.array([60, 1]))
            assert np.allclose(columns.gram(features, h), expected, rtol=1e-13, atol=1e-13)
    out = np.zeros((2, 2))
    rows = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    add_outer(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data, None, out)
    assert out.tolist() == [[1.0, 2.0], [2.0, 13.0]]


def test_a_face_is_minimised_and_left_where_a_sign_would_change() -> None:
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((30, 8))
    H, w, penalty = Z.T @ Z, rng.standard_normal(8), 3.0
    slopes = 20.0 * rng.standard_normal(8)
    new, is_lowest = face_minimiser(H, slopes, w, penalty, 20)
    assert new is not None
    assert is_lowest

    def height(v: Array) -> float:
        return float(0.5 * (v - w) @ H @ (v - w) - slopes @ (v - w)) + penalty * float(np.abs(v).sum())

    assert np.all(new * w >= 0.0)
    assert height(new) < height(w)
    free = new != 0.0
    assert 0 < free.sum() < 8
    gradient = H @ (new - w) - slopes + penalty * np.sign(w)
    assert np.allclose(gradient[free], 0.0, atol=1e-8)
    assert face_minimiser(-H, slopes, w, penalty, 20)[0] is None


FORMS = [
    {"penalty": "0.3 max"}, {"penalty": "0.02 max"}, {"radius": 2.0}, {"radius": 3.0, "balls": "all"},
    {"penalty": "0.05 max", "nonneg": True}, {"radius": 1.5, "nonneg": True}, {"radius": 0.0},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("loss", ["squared", "logistic", "multiclass"])
def test_all_designs_reach_the_optimum_of_another_solver(loss: str, form: dict[str, object]) -> None:
    T = {"squared": Y, "logistic": LABELS, "multiclass": CLASSES}[loss]
    problem = L1BallGLM(TaskData.shared(X, T), loss=loss, **form)  # type: ignore[arg-type]
    expected = solved(problem, DualNewton(), 1e-7)
    assert expected.solution is not None
    designs = [TaskData.shared(X, T), TaskData.shared(sp.csr_array(X), T)]
    if loss != "multiclass":
        designs.append(TaskData.per_task([X, sp.csr_array(X), X], list(T.T)))
    for data in designs:
        same = L1BallGLM(data, loss=loss, **form)  # type: ignore[arg-type]
        record = solved(same, target=1e-9 if loss == "multiclass" else 1e-11)
        assert record.solution is not None
        assert same.objective(record.solution) == pytest.approx(problem.objective(expected.solution), rel=2e-7)


def test_second_derivatives_of_classes_are_those_of_finite_differences() -> None:
    form = L1BallGLM(TaskData.shared(X, CLASSES), loss="multiclass", radius=1.0).form(L1Form)
    W = np.random.default_rng(8).standard_normal((D, 3)) * 0.1
    classes, rows = np.array([0, 0, 2, 2, 2]), np.array([4, 9, 4, 5, 60])
    gradient = lambda point: form.fit.design.adjoint(form.fit.derivatives(form.fit.design.forward(point)))[rows, classes]  # noqa: E731
    expected = []
    for row, one in zip(rows, classes, strict=True):
        step = np.zeros_like(W)
        step[row, one] = 1e-5
        expected.append((gradient(W + step) - gradient(W - step)) / 2e-5)
    assert np.allclose(class_hessian(form, form.fit.design.forward(W), rows, classes), expected, atol=1e-8)


def test_a_step_on_a_face_solves_its_equations_and_none_is_taken_where_nothing_is_curved() -> None:
    rng = np.random.default_rng(9)
    A = rng.standard_normal((6, 6))
    H, g = A @ A.T + np.eye(6), rng.standard_normal(6)
    normals = np.array([[1.0, -1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0, -1.0]])
    kkt = np.block([[H, normals.T], [normals, np.zeros((2, 2))]])
    assert np.allclose(face_step(H.copy(), g, normals), np.linalg.solve(kkt, np.concatenate([-g, np.zeros(2)]))[:6])
    assert face_step(np.zeros((2, 2)), np.array([1.0, 2.0]), np.zeros((0, 2))) is None
    form = L1BallGLM(TaskData.shared(X, Y), radius=1.0).form(L1Form)
    W = np.zeros((D, 3))
    W[[0, 1, 2], [0, 0, 1]] = [0.5, -0.5, 0.1]
    assert full_balls(form, W, np.array([0, 0, 1])).tolist() == [[1.0, 1.0, 0.0]]  # the second ball is not full


def test_weights_and_signs_of_entries_are_those_of_the_form() -> None:
    """A squared loss with a weight for every example is one of scaled examples; flipped columns flip signs."""
    rng = np.random.default_rng(5)
    weights, signs = rng.uniform(0.5, 2.0, N), np.sign(rng.standard_normal((D, 1)))
    task = SquaredTask(columns_of(X), Y[:, 0], weights, signs[:, 0])
    for _ in range(4):
        task.solve(np.arange(D), 2.0, 1e-12)
    roots = np.sqrt(weights)[:, None]
    same = L1BallGLM(TaskData.shared(roots * X * signs[:, 0], roots * Y[:, :1]), penalty=2.0, nonneg=True)
    expected = solved(same).solution
    assert expected is not None
    assert np.allclose(task.w, (expected * signs)[:, 0], atol=1e-9)
    assert np.count_nonzero(task.w)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_it_ends_where_rounding_does(loss: str) -> None:
    problem = L1BallGLM(TaskData.shared(X, Y if loss == "squared" else LABELS), loss=loss, penalty="0.1 max")
    iterates = list(islice(SMALL.steps(problem), 200))
    assert len(iterates) < 200
    assert problem.certify(iterates[-1]).relative_gap < 1e-12
    assert all(one.step + 1 == other.step and one.work < other.work for one, other in pairwise(iterates))


def test_columns_of_zeros_and_copies_do_no_harm() -> None:
    odd = np.column_stack([X[:, :20], np.zeros((N, 2)), X[:, :20], 1e-9 * X[:, :3]])
    for form in ({"penalty": "0.01 max"}, {"radius": 3.0}):
        for block in (odd, sp.csr_array(odd)):
            solved(L1BallGLM(TaskData.shared(block, Y), **form), target=1e-9)  # type: ignore[arg-type]


def test_a_start_is_taken_up() -> None:
    """From the optimum one step proves it; along a path it takes fewer steps than from zero."""
    for form in ({"penalty": 0.5}, {"radius": 2.5}):
        problem = L1BallGLM(TaskData.shared(X, Y), **form)  # type: ignore[arg-type]
        optimum = solved(problem).solution
        assert optimum is not None
        kept = optimum.copy()
        _, first = islice(SMALL.resume(problem, Iterate(optimum)), 2)
        assert problem.certify(first).relative_gap < 1e-8
        assert np.array_equal(optimum, kept)

    def steps(warm_start: bool) -> int:
        values = 10.0 * 0.9 ** np.arange(20)
        path = regularisation_path(
            lambda penalty: L1BallGLM(TaskData.shared(X, Y), penalty=penalty),
            values,
            SMALL,
            tolerance=Tolerance(1e-8),
            warm_start=warm_start,
        )
        assert all(point.record.status is Status.VERIFIED for point in path)
        return sum(point.record.samples[-1].step for point in path)

    assert steps(warm_start=True) < 0.7 * steps(warm_start=False)


@pytest.mark.parametrize("block", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_along_a_path_columns_are_kept_as_long_as_their_data(block: object) -> None:
    along = SMALL.along_path()
    assert along == along.along_path()
    data = TaskData.shared(block, Y)
    values = (10.0, 8.0, 6.0)
    expected = [solved(L1BallGLM(data, penalty=value)).solution for value in values]
    found = [solved(L1BallGLM(data, penalty=value), along).solution for value in values]
    assert np.allclose(expected, found, atol=1e-9)  # type: ignore[arg-type]
    kept = along.kept[data.design]  # type: ignore[attr-defined]
    others = len(along.kept) - 1  # type: ignore[attr-defined] # of the driver's rehearsal
    assert kept[0] is kept[2]
    assert np.count_nonzero(kept[0].places(np.flatnonzero(found[-1][:, 0])) >= 0)  # type: ignore[index]
    del data, found, expected
    gc.collect()
    assert len(along.kept) == others  # type: ignore[attr-defined]


def test_a_path_starts_where_the_line_through_the_last_two_solutions_ends() -> None:
    before, solution = np.array([[1.0], [2.0], [0.0], [3.0]]), np.array([[2.0], [1.0], [1.0], [0.0]])
    passed = _Passed(8.0, 10.0, before)
    assert np.array_equal(passed.extended(solution, 7.0), [[2.5], [0.5], [1.5], [0.0]])
    assert np.array_equal(passed.extended(solution, 5.0), [[3.5], [0.0], [2.5], [0.0]])  # the second one would change its sign
    for value in (8.0, 9.0, 2.0):  # the same, back again, and too far away
        assert passed.extended(solution, value) is solution
    assert _Passed(8.0, None, before).extended(solution, 7.0) is solution


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="first"):
        L1WorkingSet(first=0)
    with pytest.raises(InputError, match="growth must be above 1, not 1"):
        L1WorkingSet(growth=1.0)


def test_a_path_tells_the_solver_its_aim_and_whether_starts_are_warm() -> None:
    told = []

    class Told(L1WorkingSet):
        def along_path(self) -> L1WorkingSet:
            told.append(self)
            return super().along_path()

    for warm_start in (False, True):
        options = {"tolerance": Tolerance(1e-4), "warm_start": warm_start}
        points = regularisation_path(lambda value: L1BallGLM(DATA, penalty=value), (10.0, 9.0, 1.0), Told(), **options)  # type: ignore[arg-type]
        assert all(point.record.status is Status.VERIFIED for point in points)
        assert all(point.record.samples[-1].certificate.relative_gap <= 1e-4 for point in points)
        assert len(told) == int(warm_start)
