"""Stochastic gradient steps on sparse vectors and on dense matrices: the same iterates, and those of a loop written by hand."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.protocols import IterativeSolver
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.projections.sparse_ball import STORAGES
from bench_mtl.solvers.sparse_online import SparseOnline, SparseRun
from bench_mtl.solvers.stochastic.examples import Examples, Order
from bench_mtl.solvers.stochastic_gradient import StochasticGradient

EXAMPLES = list(L1BallGLM.examples(np.random.default_rng(3)))


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
    wide(radius=5.0),
    wide(radius=5.0, balls="all"),
    wide(radius=5.0, nonneg=True),
    wide(radius=0.0),
    wide(radius=1e6),
    wide(penalty=0.02),
    wide(penalty=0.0),
    wide(penalty=1e3),
    wide("squared", radius=1.0),
    wide("squared", penalty=1.0, nonneg=True),
    wide("multiclass", radius=5.0),
    wide("multiclass", radius=5.0, balls="all", nonneg=True),
    wide("multiclass", penalty=0.01),
]


def last(solver: IterativeSolver, problem: L1BallGLM, iterates: int = 60) -> Any:
    return list(islice(solver.steps(problem), iterates))[-1]


def default_step_size(form: LinearForm) -> float:
    balls = form.fit.design.n_tasks if form.radius is not None and form.norm.balls == "task" else 1
    return Examples.of(form.fit).default_step_size(form.fit, form.radius, form.penalty, balls)


def by_hand(problem: L1BallGLM, order: str, step_size: float, steps: int, batch: int = 1) -> Any:
    """W after some steps, from the definitions."""
    form = problem.form(LinearForm)
    fit, W = form.fit, np.zeros(problem.point_shape)
    count = fit.targets.shape[0] if fit.loss.couples_tasks else fit.targets.size
    for t, drawn in enumerate(Order(count, order, 0).next(steps * batch).reshape(steps, batch), start=1):
        slopes = fit.derivatives(fit.design.forward(W))
        only = np.zeros_like(slopes)
        for i in drawn:
            place = i if fit.loss.couples_tasks or not fit.design.is_shared else np.unravel_index(i, slopes.shape)
            only[place] += slopes[place]
        eta = step_size / t**0.5
        W = form.prox(W - eta * count / batch * fit.design.adjoint(only), eta)
    return W


@pytest.mark.parametrize("problem", [problem for problem in (*EXAMPLES, *WIDE) if SparseOnline().incompatibility(problem) is None])
@pytest.mark.parametrize("order", ["random", "shuffled"])
def test_sparse_and_dense_steps_are_those_of_a_loop_by_hand(problem: L1BallGLM, order: str) -> None:
    dense = last(StochasticGradient(averaging="last", order=order), problem)
    eta0 = default_step_size(problem.form(LinearForm))
    assert np.allclose(dense.primal, by_hand(problem, order, eta0, dense.step), rtol=1e-9, atol=1e-11)
    for storage in STORAGES:
        sparse_run = SparseRun(problem.form(LinearForm), SparseOnline(storage=storage, order=order), problem.zero())
        sparse_run.advance(dense.step)
        sparse = sparse_run.iterate
        assert np.allclose(sparse.primal, dense.primal, rtol=1e-9, atol=1e-11)
        assert np.allclose(sparse.dual, dense.dual, rtol=1e-9, atol=1e-11)
        assert sparse.work == dense.work


def test_a_step_takes_a_batch() -> None:
    problem = WIDE[0]
    iterate = next(it for it in StochasticGradient(batch=7, averaging="last", step_size=0.1).steps(problem) if it.step == 3)
    assert np.allclose(iterate.primal, by_hand(problem, "shuffled", 0.1, 3, batch=7), rtol=0.0, atol=1e-12)
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
