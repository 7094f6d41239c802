"""Solvers that draw examples: orders and seeds; gradient steps on sparse vectors and dense matrices, as those of a loop by hand."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import LAYOUTS, pairwise_cases

from bench_mtl import InputError, IterativeSolver, Problem, TaskData
from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm
from bench_mtl.problems import L1BallGLM, L1InfHinge, RidgeHinge
from bench_mtl.projections.sparse_ball import STORAGES
from bench_mtl.solvers import DualCoordinateAscent, ExponentiatedGradient, Pegasos, SparseOnline, SparseRun, StochasticGradient
from bench_mtl.solvers.stochastic.examples import Examples, Order
from bench_mtl.solvers.stochastic_subgradient import StochasticSubgradient

RNG = np.random.default_rng(0)
DATA = TaskData.shared(RNG.standard_normal((12, 6)), np.where(RNG.random((12, 3)) < 0.5, 1.0, -1.0))
LASSO = L1BallGLM(DATA, radius=1.0, loss="logistic")
EXAMPLES = list(L1BallGLM.examples(np.random.default_rng(3)))


@pytest.mark.parametrize("order", ["shuffled", "given", "random"])
def test_order_does_not_depend_on_the_portions(order: str) -> None:
    whole = Order(10, order, 4).next(35)
    one = Order(10, order, 4)
    assert np.array_equal(np.concatenate([one.next(k) for k in (1, 0, 9, 10, 15)]), whole)
    if order != "random":
        assert sorted(whole[:10]) == sorted(whole[10:20]) == list(range(10))


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (SparseOnline, LASSO),
        (StochasticGradient, LASSO),
        (ExponentiatedGradient, LASSO),
        (StochasticSubgradient, L1InfHinge(DATA, radius=0.5)),
        (Pegasos, RidgeHinge(DATA, ridge=0.1)),
        (DualCoordinateAscent, RidgeHinge(DATA, ridge=0.1)),
    ],
)
def test_one_seed_one_run(solver: Any, problem: Any) -> None:
    options = {"batch": 2} if solver is ExponentiatedGradient else {}
    first, again, other = (list(islice(solver(seed=seed, **options).steps(problem), 6))[-1].primal for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def wide(loss: str = "logistic", **parameters: Any) -> L1BallGLM:
    """More features than examples, one in ten of them other than 0, none of some."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((40, 300)) * (rng.random((40, 300)) < 0.1)
    X[:, :5] = 0.0
    X[7] = X[3]
    Y = X @ rng.standard_normal((300, 2))
    targets = Y if loss == "squared" else np.where(Y > 0.0, 1.0, -1.0)
    if loss == "multiclass":
        targets = np.where(np.arange(2) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
    return L1BallGLM(TaskData.shared(sp.csr_array(X), targets), loss=loss, **parameters)


WIDE = [
    wide(radius=5.0), wide(radius=5.0, balls="all"), wide(radius=5.0, nonneg=True), wide(radius=0.0), wide(radius=1e6),
    wide(penalty=0.02), wide(penalty=0.0), wide(penalty=1e3),
    wide("squared", radius=1.0), wide("squared", penalty=1.0, nonneg=True),
    wide("multiclass", radius=5.0), wide("multiclass", radius=5.0, balls="all", nonneg=True), wide("multiclass", penalty=0.01),
]  # fmt: skip


def last(solver: IterativeSolver, problem: Problem, iterates: int = 60) -> Any:
    return list(islice(solver.steps(problem), iterates))[-1]


def by_hand(problem: Problem, order: str, step_size: float, steps: int, batch: int = 1) -> tuple[Array, Array, Array]:
    """W after some steps, the mean of all W, and the dual point of the visits, from the definitions."""
    form = problem.form(LinearForm)
    fit, W = form.fit, np.zeros(problem.point_shape)
    total, latest, weights = np.zeros_like(W), fit.derivatives(np.zeros(fit.targets.shape)) / fit.weights, np.array(fit.weights)
    now, before = np.zeros((2, 2, *latest.shape))
    count = fit.targets.shape[0] if fit.loss.couples_tasks else fit.targets.size
    for t, drawn in enumerate(Order(count, order, 0).next(steps * batch).reshape(steps, batch), start=1):
        if t & (t - 1) == 0:
            now, before = np.zeros_like(now), now
        eta, slopes = step_size / t**0.5, fit.derivatives(fit.design.forward(W))
        only = np.zeros_like(slopes)
        for i in drawn:
            place = i if fit.loss.couples_tasks or not fit.design.is_shared else np.unravel_index(i, slopes.shape)
            only[place] += slopes[place]
            latest[place] = (slopes / weights)[place]
            now[0][place] += eta
            now[1][place] += eta * latest[place]
        W = np.asarray(form.prox(W - eta * count / batch * fit.design.adjoint(only), eta))
        total += W
    visits, sums = now + before
    return W, total / steps, -weights * np.divide(sums, visits, out=latest, where=visits > 0.0)


@pytest.mark.parametrize("problem", [problem for problem in (*EXAMPLES, *WIDE) if SparseOnline().incompatibility(problem) is None])
@pytest.mark.parametrize("order", ["random", "shuffled"])
def test_sparse_and_dense_steps_are_those_of_a_loop_by_hand(problem: L1BallGLM, order: str) -> None:
    dense, form = last(StochasticGradient(averaging="last", order=order), problem), problem.form(LinearForm)
    close = {"rtol": 1e-9, "atol": 1e-11}
    balls = form.fit.design.n_tasks if form.radius is not None and form.norm.balls == "task" else 1
    eta0 = Examples.of(form.fit).default_step_size(form.fit, form.radius, form.penalty, balls)
    W, _, dual = by_hand(problem, order, eta0, dense.step)
    assert np.allclose(dense.primal, W, **close)
    assert np.allclose(dense.dual, dual, **close)
    for storage in STORAGES:
        sparse_run = SparseRun(form, SparseOnline(storage=storage, order=order), problem.zero())
        sparse_run.advance(dense.step)
        sparse = sparse_run.iterate
        assert np.allclose(sparse.primal, dense.primal, **close)
        assert np.allclose(sparse.dual, dense.dual, **close)
        assert sparse.work == dense.work


@pytest.mark.parametrize(("name", "batch", "form"), pairwise_cases(list(LAYOUTS), [1, 4], [{"radius": 0.5}, {"penalty": 0.05}]))
def test_subgradient_steps_are_those_of_a_loop_by_hand(name: str, batch: int, form: dict[str, float]) -> None:
    problem = L1InfHinge(LAYOUTS[name], **form)
    iterate = last(StochasticSubgradient(batch=batch, step_size=0.1, averaging="all"), problem, 40)
    _, average, dual = by_hand(problem, "random", 0.1, iterate.step, batch)
    assert np.allclose(iterate.primal, average, atol=1e-12)
    assert np.allclose(iterate.dual, problem.fit.targets * dual, rtol=1e-12, atol=0.0)
    assert iterate.work == pytest.approx(iterate.step * batch / problem.fit.targets.size)


def test_a_step_takes_a_batch() -> None:
    problem = WIDE[0]
    iterate = next(it for it in StochasticGradient(batch=7, averaging="last", step_size=0.1).steps(problem) if it.step == 3)
    assert np.allclose(iterate.primal, by_hand(problem, "shuffled", 0.1, 3, batch=7)[0], rtol=0.0, atol=1e-12)
    assert iterate.work == pytest.approx(21 / problem.fit.targets.size)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("problem", WIDE)
def test_steps_that_overflow_are_refused_and_huge_ones_are_not(problem: L1BallGLM, storage: str) -> None:
    if problem.radius is not None:
        huge = last(SparseOnline(storage=storage, step_size=1e200), problem, 20)
        assert np.isfinite(huge.primal).all()
        assert problem.infeasibility(huge.primal) <= 1e-12
    if problem.radius != 0.0:
        step_size = 1e308 if problem.loss.name != "squared" or problem.radius is None else 1e291
        with pytest.raises(InputError, match="is too large for this problem: its steps overflow"):
            last(SparseOnline(storage=storage, step_size=step_size), problem)
