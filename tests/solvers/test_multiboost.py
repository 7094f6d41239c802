"""Column generation for boosting: against a slow twin of the published rounds, which columns join, its models, and the edges."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from solver_data import proven

from bench_mtl import IterativeSolver, TaskData, run
from bench_mtl.core.types import Array, Limits
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.losses import Logistic, MarginLoss
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.solvers.multiboost import MultiboostGroup, MultiboostL1
from bench_mtl.solvers.multiboost.models import CentredHinge
from bench_mtl.solvers.multiboost.restricted import Restricted


def data(n: int = 60, J: int = 25, K: int = 4, seed: int = 0, *, classes: int | None = None) -> TaskData:
    """Random stumps of classes that are shifted, so that no two weak learners are equal."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes or K, size=n)
    X = 0.8 * rng.standard_normal((K, 5))[y] + rng.standard_normal((n, 5))
    H = np.where(X[:, rng.integers(5, size=J)] > rng.standard_normal(J), 1.0, -1.0)
    return TaskData.shared(H, np.where(np.arange(K) == y[:, None], 1.0, -1.0))


def solver_for(norm: str, **options: object) -> IterativeSolver:
    return MultiboostL1(**options) if norm == "l1" else MultiboostGroup(**options)


def optimum(problem: GroupBoosting, target: float = 1e-9) -> Any:
    return proven(problem, solver_for(problem.norm), target, iterations=2000).best


def twin(problem: GroupBoosting, rounds: int) -> list[int]:
    """The published algorithm: one column a round, and all weights fitted anew, here by a general optimiser of W and rows' norms t."""
    form, H = problem.form(GroupForm), problem.design.block(0)
    K, chosen = problem.design.n_tasks, list[int]()
    W = np.zeros(problem.point_shape)
    for _ in range(rounds):
        dual = form.fit.duals(H @ W)
        violations = form.violations(dual)
        violations[chosen] = 0.0
        if violations.max() <= form.nu:
            break
        chosen.append(int(violations.argmax()))

        def objective(w: Array) -> tuple[float, Array]:
            W = w.reshape(-1, K)
            scores = H[:, chosen] @ W
            norms = np.sqrt((W**2).sum(axis=1) + 1e-18)[:, None]
            value = form.fit.value(scores) + form.nu * (norms.sum() if problem.norm == "l12" else W.sum())
            slope = W / norms if problem.norm == "l12" else 1.0
            return value, (H[:, chosen].T @ form.fit.derivatives(scores) + form.nu * slope).ravel()

        best = minimize(
            objective,
            np.maximum(W[chosen], 1e-3).ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * (K * len(chosen)),
            options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10000, "maxfun": 100000},
        )
        W = np.zeros(problem.point_shape)
        W[chosen] = best.x.reshape(-1, K)
    return chosen


@pytest.mark.parametrize("norm", ["l12", "l1"])
@pytest.mark.parametrize("seed", range(2))
def test_one_column_a_round_is_the_published_algorithm(norm: str, seed: int) -> None:
    problem = GroupBoosting(data(seed=seed), penalty="0.15 max", norm=norm)
    expected = twin(problem, 6)
    joined: list[int] = []
    for iterate in islice(solver_for(norm, columns=1, accuracy=1e-9).steps(problem), 200):
        joined += [j for j in np.flatnonzero(iterate.primal.any(axis=1)) if j not in joined]
    assert joined[: len(expected)] == expected


@pytest.mark.parametrize("norm", ["l12", "l1inf", "l1"])
def test_the_objective_never_rises_and_points_are_feasible(norm: str) -> None:
    problem = GroupBoosting(data(), penalty="0.03 max", norm=norm)
    iterates = list(solver_for(norm).steps(problem))
    values = [problem.objective(iterate.primal) for iterate in iterates]
    assert np.all(np.diff(values) <= 1e-14)
    assert all(iterate.primal.min() >= 0.0 for iterate in iterates)
    assert problem.certify(iterates[-1]).relative_gap <= 1e-12  # it ends by itself, and there


@pytest.mark.parametrize("norm", ["l12", "l1inf", "l1"])
@pytest.mark.parametrize(
    ("n", "J", "K", "classes"), [(40, 1, 2, 2), (40, 20, 2, 2), (3, 20, 5, 5), (50, 20, 4, 3), (1, 5, 3, 1), (400, 30, 12, 12)]
)
def test_odd_sizes(norm: str, n: int, J: int, K: int, classes: int) -> None:
    for penalty in ("0.1 max", "0.5 max"):
        optimum(GroupBoosting(data(n, J, K, classes=classes), penalty=penalty, norm=norm), 1e-8)


@pytest.mark.parametrize("norm", ["l12", "l1inf", "l1"])
def test_no_penalty(norm: str) -> None:
    """Where G must be 0 or less exactly, nothing but the constant is proven; the objective still falls to the optimum."""
    problem = GroupBoosting(data(n=200, J=6), penalty=0.0, norm=norm)
    record = run(problem, solver_for(norm), tolerance=1e-9, limits=Limits(seconds=10.0, iterations=200))
    value = float(problem.to_cvxpy().problem.solve(solver="CLARABEL"))
    assert record.best.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e150])
@pytest.mark.parametrize("norm", ["l12", "l1inf", "l1"])
@pytest.mark.parametrize("loss", ["exponential", "squared_hinge"])
def test_units_of_the_learners_do_not_matter(loss: str, norm: str, scale: float) -> None:
    tasks = data()
    large = TaskData.shared(scale * tasks.design.block(0), tasks.targets, name="large")
    optimum(GroupBoosting(large, penalty="0.3 max", norm=norm, loss=loss), 1e-6)


def test_losses_of_ones_own_need_no_second_derivatives() -> None:
    methods = {name: getattr(Logistic, name) for name in ("value", "dual", "gain", "gain_derivative")}
    own: Any = type("Own", (MarginLoss,), {"name": "own", "curvature": 0.25, "upper": 1.0, **methods})()
    one, other = (optimum(GroupBoosting(data(), penalty="0.1 max", loss=loss)).primal for loss in (own, "logistic"))
    assert one == pytest.approx(other, rel=1e-8)


def test_the_model_of_the_hinge_is_below_it_and_proves_as_much() -> None:
    problem = GroupBoosting(data(), penalty="0.1 max", loss="hinge")
    fit, rng = problem.form(GroupForm).fit, np.random.default_rng(0)
    model = CentredHinge(fit, 0.3, rng.dirichlet(np.ones(4), size=60))  # type: ignore[arg-type]
    scores = rng.standard_normal((60, 4))
    dual = model.duals(scores)
    assert fit.value(scores) - 0.3 <= model.value(scores) <= fit.value(scores)
    assert model.gain(dual) - float((fit.residuals(dual) * scores).sum()) == pytest.approx(model.value(scores), rel=1e-12)


@pytest.mark.parametrize("norm", ["l12", "l1"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_newton_steps_by_conjugate_gradients(norm: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where entries are many: the same optimum, as precisely."""
    problem = GroupBoosting(data(), penalty="0.05 max", norm=norm, loss=loss)
    expected = optimum(problem, 1e-7).primal
    monkeypatch.setattr("bench_mtl.solvers.multiboost.restricted._MOST_STORED", 0)
    monkeypatch.setattr(Restricted, "_hessian_price", None)  # nothing is stored
    assert optimum(problem, 1e-7 if loss == "hinge" else 1e-10).primal == pytest.approx(expected, rel=1e-7)
