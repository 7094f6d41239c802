"""`DualNewton`: proximal maps and their derivatives by slow twins."""

import math
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from solver_data import proven

from bench_mtl import Problem, TaskData
from bench_mtl.core.types import Array, Iterate, gap_up_to_rounding
from bench_mtl.model.norms import L1, L12, L1Inf, Norm, Trace
from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
from bench_mtl.model.sharded_fit import ShardedFit
from bench_mtl.problems import L12GLM, L1BallGLM, L1InfGLM, TraceNormGLM
from bench_mtl.solvers import AcceleratedGradient, DualNewton
from bench_mtl.solvers.dual_newton.solver import NewtonStepper
from bench_mtl.solvers.dual_newton.subproblem import Subproblem
from bench_mtl.solvers.dual_newton.task_systems import TaskGram, solved_by_tasks
from bench_mtl.solvers.dual_newton.terms import Term, terms_of
from bench_mtl.validation.tiny_instances import in_shards

pytestmark = pytest.mark.numerics

SHAPE = (6, 4)
ORIENTATION = np.where(np.random.default_rng(9).standard_normal(SHAPE) > 0.0, 1.0, -1.0)
NORMS: dict[str, Norm] = {
    "l1": L1(), "l1 a task": L1("task"), "l1 in a cone": L1(nonneg=True, orientation=ORIENTATION),
    "l1,2": L12(), "l1,inf": L1Inf(), "trace": Trace(),
}  # fmt: skip
UNITS = {"alike": np.ones(SHAPE[0]), "unlike": 10.0 ** np.linspace(-2.0, 2.0, SHAPE[0])}


def term_of(name: str, units: str, *, radius: float | None = None) -> Term:
    part = Penalty(NORMS[name], 0.4) if radius is None else Constraint(NORMS[name], radius)
    return terms_of(part, UNITS[units])[0]


def derivative(term: Term, U: Array, change: Array) -> Array:
    """Return what the face says of a change of the point, both in the term's own units."""
    face, normals = term.shrink(U, 0.7).derivative()
    G = change / term.units[:, None] if term.own_units else change
    y = face.scaled(term.units**2 if term.own_units else np.ones(len(U))).products(G)
    V = face.combined(y - normals @ (normals.T @ y))
    return V * term.units[:, None] if term.own_units else V


def test_a_row_of_equal_sizes_has_no_other_level() -> None:
    """Their mean may be rounded up, above all of them."""
    U = np.full(SHAPE, 0.1)
    assert np.array_equal(term_of("l1,inf", "alike", radius=1e3).shrink(U, 0.7).point, U)


@pytest.mark.parametrize("radius", [None, 1.5, 1e4])
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", NORMS)
def test_the_derivative_is_that_of_differences(name: str, units: str, radius: float | None) -> None:
    if name == "l1 a task" and radius is None:
        pytest.skip("a penalty is over all tasks")
    rng, term = np.random.default_rng(2), term_of(name, units, radius=radius)
    size = np.ones(SHAPE) if term.own_units else UNITS[units][:, None]
    for _ in range(5):
        U, change = size * rng.standard_normal(SHAPE), size * rng.standard_normal(SHAPE)
        h = 1e-7
        differences = (term.shrink(U + h * change, 0.7).point - term.shrink(U - h * change, 0.7).point) / (2.0 * h)
        assert np.allclose(derivative(term, U, change) / size, differences / size, atol=2e-6)


def raw_data(examples: int, features: int, *, labels: bool) -> TaskData:
    """Return data of three tasks whose columns have sizes from a hundredth to a hundred."""
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((examples, features))
    Y = Z @ (rng.standard_normal((features, 3)) * (rng.random((features, 1)) < 0.6)) + 0.5 * rng.standard_normal((examples, 3))
    return TaskData.shared(Z * 10.0 ** np.linspace(-2.0, 2.0, features), np.where(Y > 0.0, 1.0, -1.0) if labels else Y)


@pytest.mark.parametrize(
    ("kind", "bound"), [*((kind, {"penalty": "1e-2 max"}) for kind in (L1BallGLM, L1InfGLM, L12GLM)), (L12GLM, {"radius": 10.0})]
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_features_of_any_size_are_no_matter_to_first_order_steps_in_scaled_ones(kind: type[Problem], bound: Any, loss: str) -> None:
    data = raw_data(60, 7, labels=loss == "logistic")
    solver = AcceleratedGradient(restart="gradient", features="scaled")
    proven(kind.from_data(data, loss=loss, intercept=True, **bound), solver, 1e-6)
    assert "under norms of rows and entries" in str(solver.incompatibility(TraceNormGLM(data, penalty=1.0)))


def test_a_good_start_is_worth_something() -> None:
    problem = L12GLM(raw_data(60, 7, labels=True), penalty="1e-3 max", loss="logistic")
    cold = next(iterate for iterate in DualNewton().steps(problem) if iterate.claim is not None and iterate.claim < 1e-8)
    warm = next(iterate for iterate in DualNewton().resume(problem, cold._replace(state=None, step=0)) if (iterate.claim or 1.0) < 1e-8)
    assert warm.step < cold.step / 2


def test_a_step_that_is_taken_back_states_the_gap_of_its_own_point() -> None:
    """Where only rounding is left, some steps make the gap larger, and the next may fail from there."""
    problem = TraceNormGLM(raw_data(60, 7, labels=False), radius=1.0)
    stepper = NewtonStepper(problem, growth=30.0, aim=1e-6)
    now, points = stepper.start(Iterate(np.zeros(problem.point_shape))), []
    while len(points) < 60 and (following := stepper.step(now)) is not None:
        now = following
        points.append(stepper.point(now))
        assert now.gap == stepper.relative_gap(now)
    assert any(np.array_equal(*pair) for pair in pairwise(points))  # which is so where a step was taken back


@pytest.mark.parametrize("bound", [{"radius": 0.8}, {"penalty": "0.05 max"}], ids=["ball", "penalty"])
@pytest.mark.parametrize("family", [L1InfGLM, L12GLM, L1BallGLM, TraceNormGLM])
def test_huber_losses_of_features_of_unlike_size_are_fitted(family: type[Problem], bound: dict[str, Any]) -> None:
    draw, units = np.random.default_rng(3), 10.0 ** np.linspace(-2.0, 2.0, 5)
    X = draw.standard_normal((40, 5))
    Y = X @ draw.standard_normal((5, 3)) + draw.standard_t(1.5, (40, 3))
    proven(family.from_data(TaskData.shared(X * units, Y), loss="huber:0.3", **bound), DualNewton(), 1e-8)


def test_many_features_are_taken_in_few_rows_until_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """12,000 coefficients would make a dense system of more than 1 GiB."""
    draw = np.random.default_rng(2)
    X = draw.standard_normal((30, 6000))
    problem = L12GLM(TaskData.shared(X, X[:, :2] @ draw.standard_normal((2, 2))), penalty="0.5 max")
    assert DualNewton().incompatibility(problem) is None
    proven(problem, DualNewton(), 1e-8)
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.solver._MOST_ENTRIES", 100)
    assert len(list(DualNewton().steps(problem))) == 1


def test_a_norm_that_nobody_knows_is_not_taken() -> None:
    class Other(L12):  # type: ignore[misc]
        pass

    assert terms_of(Stacked((Penalty(L1(), 1.0), Penalty(Other(), 1.0))), np.ones(2)) is None


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_shards_take_some_ten_passes_and_few_columns(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.shards._FIRST", 3)
    asked: list[int] = []
    once = ShardedFit.expansion
    monkeypatch.setattr(ShardedFit, "expansion", lambda fit, W, V, S: asked.append(len(S)) or once(fit, W, V, S))
    data = raw_data(300, 40, labels=loss == "logistic")
    plain, sharded = (L12GLM(each, penalty="0.3 max", loss=loss) for each in (data, in_shards(data)))
    last = list(DualNewton().steps(sharded))[-1]
    best = proven(plain, DualNewton(), 1e-10).best
    assert sharded.certify(last).relative_gap < 1e-9
    assert sharded.objective(last.primal) == pytest.approx(best.primal)
    assert last.work <= len(asked) < 25
    assert np.count_nonzero(last.primal.any(axis=1)) <= max(asked) < 30


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["l1 a task", "l1,2", "l1,inf"])
def test_systems_task_by_task_have_the_solution_of_the_dense_one(name: str, intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """min 1/2 y^T K y - rhs^T y subject to N^T y = 0, with the K of all columns and intercepts at once."""
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.terms._MANY", 0)
    draw = np.random.default_rng(3)
    shrunk = term_of(name, "unlike", radius=0.8).shrink(2.0 * draw.standard_normal(SHAPE), 1.0)
    face, normals = shrunk.derivative()
    X, shares = draw.standard_normal((9, SHAPE[0])), draw.random((9, SHAPE[1]))
    L = np.stack([face.combined(e) for e in np.eye(face.size)], axis=2)  # d x m x r
    columns = np.concatenate([np.einsum("nd,dr->nr", X, L[:, k]) * np.sqrt(shares[:, k, None]) for k in range(SHAPE[1])])
    if intercept:
        ones = [np.repeat(np.eye(SHAPE[1])[:, k], 9) * np.sqrt(shares.T.ravel()) for k in range(SHAPE[1])]
        columns = np.column_stack([columns, *ones])
    diagonal, rhs = 0.1 + draw.random(columns.shape[1]), draw.standard_normal(columns.shape[1])
    parts = [TaskGram(X.T @ (s[:, None] * X), X.T @ s if intercept else None, float(s.sum())) for s in shares.T]
    y = solved_by_tasks([face], parts, diagonal, rhs, [normals])
    K, N = columns.T @ columns + np.diag(diagonal), np.zeros((len(rhs), normals.shape[1]))
    N[: face.size] = normals
    saddle = np.block([[K, N], [N.T, np.zeros((N.shape[1], N.shape[1]))]])
    assert N.shape[1] > 0
    np.testing.assert_allclose(y, np.linalg.solve(saddle, np.append(rhs, np.zeros(N.shape[1])))[: len(rhs)], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("bound", [{"penalty": "1e-3 max"}, {"radius": 1.0}], ids=str)
def test_large_faces_of_row_lengths_come_to_the_same_optimum(bound: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    X = draw.standard_normal((40, 30)) * 10.0 ** np.linspace(-2.0, 2.0, 30)
    problem = L12GLM(TaskData.shared(X, draw.standard_normal((40, 5))), intercept=True, **bound)
    by_tasks = problem.objective(proven(problem, DualNewton(), 1e-8).solution)
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.subproblem.is_mostly_apart", lambda faces: False)
    assert problem.objective(proven(problem, DualNewton(), 1e-8).solution) == pytest.approx(by_tasks, rel=2e-8)


@pytest.mark.parametrize("kind", [L1BallGLM, L12GLM, L1InfGLM])
def test_sets_of_rows_come_to_the_optimum_of_all(kind: type[Problem], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets begin with three rows of sixty, and outside the last one the conditions of the optimum hold."""
    draw = np.random.default_rng(7)
    X, labels = draw.standard_normal((30, 60)) * 10.0 ** np.linspace(-2.0, 2.0, 60), np.sign(draw.standard_normal((30, 3)))
    problem: Any = kind(TaskData.shared(X, labels), penalty="3e-2 max", loss="logistic", intercept=True)
    on_all = proven(problem, DualNewton(), 1e-9)
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.solver._FIRST", 3)
    sizes: list[int] = []
    usual = Subproblem.restricted
    monkeypatch.setattr(Subproblem, "restricted", lambda self, rows: sizes.append(len(rows)) or usual(self, rows))
    on_sets = proven(problem, DualNewton(), 1e-9)
    assert sizes[0] <= 3
    assert problem.objective(on_sets.solution) == pytest.approx(problem.objective(on_all.solution), rel=2e-9)


@pytest.mark.parametrize("penalty", ["1.5 max", 0.0])
def test_sets_of_no_rows_and_penalties_of_nothing(penalty: Any) -> None:
    """Where tasks have their own examples, and more features than a first set."""
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((30, 410)), draw.standard_normal(30)
    problem = L1InfGLM(TaskData.per_task([X[:10], X[10:]], [y[:10], y[10:]]), penalty=penalty)
    with np.errstate(divide="raise", invalid="raise"):
        last = list(islice(DualNewton().steps(problem), 4))[-1]
    assert problem.certify(last).relative_gap < 1e-9 or problem.objective(last.primal) < 1e-9


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (1.0, math.nan), (math.inf, 0.0), (1.0, -math.inf)])
def test_what_is_no_number_proves_nothing(ends: tuple[float, float]) -> None:
    assert gap_up_to_rounding(*ends) == math.inf


def sharded_logistic() -> tuple[L1InfGLM, Array]:
    """Return a problem in shards, and a point from which steps of Newton's method are too long."""
    draw = np.random.default_rng(1)
    X = draw.standard_normal((60, 4))
    labels = np.sign(X @ draw.standard_normal((4, 1)) + 0.3 * draw.standard_normal((60, 1)))
    problem = L1InfGLM(in_shards(TaskData.shared(X, labels)), penalty=1e-4, loss="logistic")
    return problem, problem.repair(np.array([[6.0], [-6.0], [5.0], [8.0]]))


def test_shorter_steps_on_shards_are_so_in_dual_points_too_and_make_one_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Array, Array]] = []
    once = ShardedFit.expansion
    monkeypatch.setattr(ShardedFit, "expansion", lambda fit, W, V, S: asked.append((W, V[0])) or once(fit, W, V, S))
    problem, start = sharded_logistic()
    stepper = DualNewton().stepper(problem)
    shares, now = [], stepper.start(Iterate(start))
    while True:
        asked.clear()
        before, now = now, stepper.step(now)
        if now is None:
            break
        trials = [(W, V) for W, V in asked if W is not before.point]
        assert len(trials) <= 2
        assert now.work - before.work >= len(asked)
        if len(trials) == 2:
            (W, V), (shorter, dual) = trials
            shares.append(np.linalg.norm(shorter - before.point) / np.linalg.norm(W - before.point))
            assert np.allclose(dual, before.dual[0] + shares[-1] * (V - before.dual[0]))
    assert min(shares) < 0.3


def test_models_on_shards_have_no_more_features_than_memory_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.solvers.dual_newton.shards.MOST_ENTRIES_IN_SHARDS", 9)
    problem, start = sharded_logistic()
    iterates = list(DualNewton().resume(problem, Iterate(start)))
    assert "at most" in iterates[-1].note
    assert "3 features" in iterates[-1].note


def test_weights_that_differ_within_a_task_are_refused_by_name() -> None:
    draw = np.random.default_rng(2)
    data = TaskData.shared(draw.standard_normal((20, 3)), draw.standard_normal((20, 2)))
    problem = L1InfGLM(in_shards(data), penalty=1.0)
    object.__setattr__(problem, "_sums", None)
    assert "one weight for all examples of a task" in str(DualNewton().incompatibility(problem))
