"""Newton's method on faces of the l1 ball: its parts against slow twins, and problems at the edges."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from unlike_scales import _data

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Limits, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import L1Form
from bench_mtl.model.norms import L1
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.solvers.face_newton import FaceNewton, _Features, _project_weighted, constrained_newton, face_hessian, full_balls
from bench_mtl.solvers.units import feature_units

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 8))
SCORES = X @ RNG.standard_normal((8, 3)) + RNG.standard_normal((40, 3))
TARGETS = {
    "squared": SCORES,
    "logistic": np.where(SCORES > 0.0, 1.0, -1.0),
    "multiclass": np.where(np.arange(3) == SCORES.argmax(axis=1)[:, None], 1.0, -1.0),
}


def solved(problem: L1BallGLM, *, target: float = 1e-9, **options: object) -> Array:
    record = run(problem, FaceNewton(**options), tolerance=Tolerance(target), limits=Limits(seconds=20.0))  # type: ignore[arg-type]
    assert record.status is Status.VERIFIED, record.reason
    assert record.solution is not None
    return record.solution


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("sparse", [False, True])
def test_hessian_on_a_face_is_that_of_finite_differences(loss: str, sparse: bool) -> None:
    problem = L1BallGLM(TaskData.shared(sp.csr_array(X) if sparse else X, TARGETS[loss]), loss=loss, radius=1.0)
    W = RNG.standard_normal((8, 3)) * (RNG.random((8, 3)) < 0.6)
    rows, columns = np.nonzero(W)
    form = problem.form(L1Form)
    H = face_hessian(form, form.fit.design.forward(W), rows, columns)
    for i, (j, k) in enumerate(zip(rows, columns, strict=True)):
        step = np.zeros_like(W)
        step[j, k] = 1e-5
        change = problem.value_and_gradient(W + step)[1] - problem.value_and_gradient(W - step)[1]
        assert np.allclose(H[i], change[rows, columns] / 2e-5, rtol=1e-5, atol=1e-6)


def test_step_solves_the_equality_constrained_quadratic() -> None:
    A = RNG.standard_normal((6, 6))
    H, g = A @ A.T + np.eye(6), RNG.standard_normal(6)
    signs = np.where(RNG.random(6) < 0.5, 1.0, -1.0)
    full = np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    normals = full * signs
    kkt = np.block([[H, normals.T], [normals, np.zeros((2, 2))]])
    expected = np.linalg.solve(kkt, np.concatenate([-g, np.zeros(2)]))[:6]
    step = constrained_newton(H.copy(), g, signs, full)
    assert step is not None
    assert np.allclose(step, expected, atol=1e-8)


@pytest.mark.parametrize("full", [np.zeros((0, 2)), np.ones((1, 2))])
def test_no_step_where_nothing_is_curved(full: Array) -> None:
    assert constrained_newton(np.zeros((2, 2)), np.array([1.0, 2.0]), np.ones(2), full) is None


def test_work_counts_the_products_of_hessians() -> None:
    problem = L1BallGLM(TaskData.shared(X[:, :7], TARGETS["logistic"][:, 0]), loss="logistic", radius=1.0)
    seen = [(iterate.work, np.count_nonzero(iterate.primal)) for iterate in islice(FaceNewton().steps(problem), 60)]
    spent = [(after - before, held) for (before, held), (after, _) in pairwise(seen)]
    # Passes and half passes, and of Newton steps 40 held^2 products, of 2 x 40 x 7 a pass.
    newton = [(passes, held) for passes, held in spent if abs(2.0 * passes - round(2.0 * passes)) > 1e-9]
    assert newton
    for passes, held in newton:
        rest = 2.0 * (passes - held**2 / 14.0)
        assert rest == pytest.approx(round(rest), abs=1e-9)


def test_only_full_balls_bind() -> None:
    W = np.array([[0.5, 0.1], [-0.5, 0.2]])
    rows, columns = np.nonzero(W)
    form = L1BallGLM(TaskData.shared(X[:, :2], SCORES[:, :2]), radius=1.0).form(L1Form)
    assert np.array_equal(full_balls(form, W, rows, columns), [[1.0, 0.0, 1.0, 0.0]])


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.5, 30.0])
def test_any_radius(loss: str, radius: float) -> None:
    W = solved(L1BallGLM(TaskData.shared(X, TARGETS[loss]), loss=loss, radius=radius), target=1e-6)
    assert np.abs(W).sum(axis=0).max() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(scale: float) -> None:
    problem = L1BallGLM(TaskData.shared(X, scale * TARGETS["squared"]), radius=0.5 * scale)
    assert np.allclose(solved(problem) / scale, solved(L1BallGLM(TaskData.shared(X, TARGETS["squared"]), radius=0.5)), atol=1e-6)


def test_dependent_columns_and_empty_features() -> None:
    doubled = np.hstack([X, X, np.zeros((40, 2))])
    for penalty in (0.01, 0.1):
        W = solved(L1BallGLM(TaskData.shared(doubled, TARGETS["logistic"]), loss="logistic", penalty=penalty), target=1e-7)
        assert not W[-2:].any()


def test_more_features_than_examples() -> None:
    wide = RNG.standard_normal((15, 60))
    solved(L1BallGLM(TaskData.shared(wide, np.sign(wide[:, 0])), loss="logistic", radius=3.0), target=1e-8)


def test_fewer_steps_than_gradients_take() -> None:
    problem = L1BallGLM(TaskData.shared(X, TARGETS["logistic"]), loss="logistic", radius=2.0)
    first = next(i.step for i in FaceNewton().steps(problem) if problem.certify(i).relative_gap < 1e-10)
    without = islice((i.step for i in FaceNewton(most_active=0).steps(problem) if problem.certify(i).relative_gap < 1e-10), 1)
    assert first < next(without)


@pytest.mark.parametrize("options", [{"most_active": -1}, {"most_active": 2.5}])
def test_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        FaceNewton(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("balls", ["task", "all"])
@pytest.mark.parametrize("radius", [0.0, 0.7, 2.5, 100.0])
def test_projection_with_equal_weights_is_that_on_a_smaller_ball(balls: str, radius: float) -> None:
    V = RNG.standard_normal((8, 3))
    assert np.allclose(_project_weighted(V, radius, balls, np.full(8, 4.0)), L1(balls).project(V, radius / 4.0), atol=1e-12)


@pytest.mark.parametrize("balls", ["task", "all"])
@pytest.mark.parametrize("options", [{"radius": 1e-3}, {"radius": 1e-3, "nonneg": True}, {"penalty": 1.0}])
def test_scaled_features_have_the_same_values_and_operators(options: dict[str, float], balls: str) -> None:
    """The prox in V is the minimiser of its model: no feasible point near has a lower value."""
    unlike = 10.0 ** np.linspace(-3.0, 3.0, 8)
    problem = L1BallGLM(TaskData.shared(X * unlike, SCORES), balls=balls, **options)  # type: ignore[arg-type]
    form = problem.form(L1Form)
    features = _Features(problem, form)
    V, W = RNG.standard_normal((8, 3)), problem.repair(RNG.standard_normal((8, 3)) / unlike[:, None])
    assert np.allclose(features.unscaled(features.scaled(W)), W, rtol=1e-12, atol=0.0)
    value, gradient = features.value_and_gradient(features.scaled(W))
    assert value == pytest.approx(problem.smooth_value(W))
    assert features.smooth_value(features.scaled(W)) == pytest.approx(value)
    ahead = features.smooth_value(features.scaled(W) + 1e-6 * V) - features.smooth_value(features.scaled(W) - 1e-6 * V)
    assert ahead / 2e-6 == pytest.approx(float((gradient * V).sum()), rel=1e-5)
    near = features.prox(V, 0.5)
    moved = features.scaled(problem.repair(features.unscaled(near)))
    assert np.allclose(moved, near, rtol=1e-9, atol=1e-9)
    model = lambda U: 0.5 * ((U - V) ** 2).sum() + 0.5 * (form.penalty or 0.0) * np.abs(features.unscaled(U)).sum()  # noqa: E731
    for size in (1e-6, 1e-3, 1.0):
        other = features.prox(near + size * RNG.standard_normal(V.shape), 0.0 if form.penalty else 0.5)
        assert model(other) >= model(near) * (1.0 - 1e-9)


def test_newton_step_in_scaled_features_is_that_of_the_unlike_hessian() -> None:
    unlike = 10.0 ** np.linspace(-2.0, 2.0, 6)
    features = _Features(*_squared(X[:, :6] * unlike))
    A = RNG.standard_normal((6, 6))
    H, g = (A @ A.T + np.eye(6)) * unlike * unlike[:, None], RNG.standard_normal(6) * unlike
    signs = np.where(RNG.random(6) < 0.5, 1.0, -1.0)
    kkt = np.block([[H, signs[:, None]], [signs, np.zeros((1, 1))]])
    expected = np.linalg.solve(kkt, np.append(-g, 0.0))[:6]
    step = features.newton_step(H.copy(), g, signs, np.ones((1, 6)), np.arange(6))
    assert step is not None
    assert np.allclose(step * unlike, expected * unlike, rtol=1e-7, atol=1e-9)
    plain = constrained_newton(H.copy(), g, signs, np.ones((1, 6)))  # its ridge hides the smallest columns
    assert plain is not None
    assert not np.allclose(plain * unlike, expected * unlike, rtol=1e-7, atol=1e-9)


def _squared(data: Array) -> tuple[L1BallGLM, L1Form]:
    problem = L1BallGLM(TaskData.shared(data, SCORES), radius=1.0)
    return problem, problem.form(L1Form)


def _classes(change: str, seed: int, size: str, **sizes: float) -> L1BallGLM:
    labelled, fit = _data(change, size, True, seed, False)
    choices = np.asarray(_data(change, size, False, seed, False)[0].targets).argmax(axis=1)
    data = TaskData.shared(labelled.design.block(0), 2.0 * np.eye(fit.shape[1])[choices] - 1.0)
    if "share" in sizes:  # of 4 times the norm of a fit, by the median feature
        return L1BallGLM(data, loss="multiclass", radius=4.0 * sizes["share"] * float(len(fit) * np.median(np.abs(fit).mean(axis=1))))
    return L1BallGLM(data, loss="multiclass", penalty=f"{sizes['penalty']} max")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", ["small", "tall"])
@pytest.mark.parametrize("share", [0.03, 0.3, 1.0])
def test_classes_of_columns_of_unlike_scale_take_few_steps(seed: int, size: str, share: float) -> None:
    record = run(_classes("columns", seed, size, share=share), FaceNewton(), limits=Limits(seconds=20.0, iterations=200))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("radius", [0.0, 1e-12, 1e-6, 1e12])
@pytest.mark.parametrize("balls", ["task", "all"])
def test_classes_of_columns_of_unlike_scale_at_any_radius(radius: float, balls: str) -> None:
    data = TaskData.shared(X * 10.0 ** np.linspace(-6.0, 6.0, 8), TARGETS["multiclass"])
    problem = L1BallGLM(data, loss="multiclass", radius=radius, balls=balls)
    before = np.inf
    for iterate in islice(FaceNewton().steps(problem), 60):
        certificate = problem.certify(iterate)
        assert certificate.infeasibility == 0.0
        assert certificate.primal <= max(before, np.log(3.0)) * (1.0 + 1e-9)
        before = min(before, certificate.primal)


@pytest.mark.parametrize("options", [{"share": 1.0}, {"penalty": 0.001}])
def test_classes_of_offset_data_take_few_steps(options: dict[str, float]) -> None:
    record = run(_classes("offset", 1, "small", **options), FaceNewton(), limits=Limits(seconds=20.0, iterations=400))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize(
    "options", [{"radius": 1e-3}, {"radius": 1e-3, "balls": "all"}, {"radius": 1e-3, "nonneg": True}, {"penalty": 1.0}]
)
def test_model_step_is_feasible_and_the_least_of_its_model(options: dict[str, object]) -> None:
    unlike = 10.0 ** np.linspace(-3.0, 3.0, 8)
    problem = L1BallGLM(TaskData.shared(X * unlike, TARGETS["multiclass"]), loss="multiclass", **options)  # type: ignore[arg-type]
    form = problem.form(L1Form)
    features, units = _Features(problem, form), feature_units(form.fit.design)
    assert units is not None
    W = problem.repair(1e-3 * RNG.standard_normal((8, 3)) / unlike[:, None])
    rows, columns = (axis.ravel() for axis in np.indices(W.shape))
    H = face_hessian(form, form.fit.design.forward(W), rows, columns)
    gradient = problem.value_and_gradient(W)[1]
    scaled = H * np.outer(units[rows], units[rows])
    damping = 1e-4 * float(np.trace(scaled)) / len(H)

    def model(new: Array) -> float:
        d = (new - W).ravel()
        damped = 0.5 * damping * float(((d / units[rows]) ** 2).sum())
        return float(gradient.ravel() @ d + 0.5 * d @ H @ d) + damped + (form.penalty or 0.0) * float(np.abs(new).sum())

    least = features.model_step(H.copy(), gradient, W, 1e-4)
    assert np.allclose(problem.repair(least), least, rtol=1e-12, atol=0.0)
    low = model(least)
    assert low < model(W)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            other = features.repair(least + size * RNG.standard_normal(W.shape) * units[:, None])
            assert model(other) >= low - 1e-9 * abs(low)
