"""The interior-point method: its Newton step against all equations, its two forms of a task, and hard instances."""

import os
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import pairwise_cases
from threadpoolctl import threadpool_info, threadpool_limits

from bench_mtl.core.designs import SharedDesign, frozen
from bench_mtl.data import TaskData
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.problems import DirtyModel, L1InfGLM, L1InfHinge
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.interior_point.dense import factor
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations
from bench_mtl.solvers.interior_point.step import CORRECTORS, RULE, advance
from bench_mtl.solvers.interior_point.system import NewtonSystem, _prefers_examples


def draw(rng: np.random.Generator, sizes: tuple[int, ...], d: int, kind: str, *, scale: float = 1.0) -> TaskData:
    """Random data: "dense", "sparse" (tasks of their own), "shared" or "shared sparse" (of sizes[0] examples)."""
    labels = [np.where(rng.random(n) < 0.5, 1.0, -1.0) for n in sizes]
    Xs = [scale * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7) for n in sizes]
    wrap: Any = sp.csr_array if "sparse" in kind else np.asarray
    if "shared" in kind:
        Y = np.where(rng.random((sizes[0], len(sizes))) < 0.5, 1.0, -1.0)
        return TaskData.shared(wrap(Xs[0]), Y)
    return TaskData.per_task([wrap(X) for X in Xs], labels)


def check_equations(eq: Equations, y: State, x: State) -> None:
    """Hold y, a step of length 1 from x, to all equations, of which only that of a loss bends: there it is the tangent at x."""
    X, at = eq.system.design.stacked().toarray(), eq.layout
    u, v = at.bounds(y.slack)
    p, q = at.bounds(y.dual)
    theta = eq.penalty if at.c is None else y.dual[at.c]
    wanted = [(u, y.mu - y.W), (v, y.mu + y.W), ((p + q).sum(axis=0), np.full(at.shape[1], theta))]
    if at.c is not None:
        wanted.append((y.slack[[at.c]], np.array([eq.radius - y.mu.sum()])))
    design, b = eq.system.design, np.zeros(at.shape[0]) if y.b is None else y.b

    def predicted(W: np.ndarray, shift: np.ndarray) -> np.ndarray:
        return X @ W.ravel() + np.repeat(shift, design.sizes)

    W, before_W = ((eq.point(at_point).sum(axis=0) if at.has_entries else eq.point(at_point)).T for at_point in (y, x))
    if isinstance(eq, HingeEquations):
        pull = eq.labels * y.dual[at.r]
        wanted.append((y.slack[at.r], eq.labels * predicted(W, b) + y.slack[at.xi] - 1.0))
        wanted.append((y.dual[at.r] + y.dual[at.xi], eq.weights))
    else:
        pull, before = y.free, np.zeros_like(b) if x.b is None else x.b
        slopes, bends = (design.stack(of(design.unstack(predicted(before_W, before)))) for of in (eq.fit.derivatives, eq.fit.curvatures))
        wanted.append((y.free, -slopes - bends * predicted(W - before_W, b - before)))
    G = (X.T @ pull).reshape(at.shape)
    if eq.entry_penalty is not None:
        wanted += zip(at.signed(y.dual), (eq.entry_penalty - G, eq.entry_penalty + G), strict=True)
    if y.b is not None:
        wanted.append((design.task_sums(design.unstack(pull)), 0.0 * b))
    for one, other in [*wanted, (p - q, G)]:
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "kind", "sizes", "bound", "intercept"),
    pairwise_cases(
        ["hinge", "squared", "logistic"], ["dense", "sparse", "shared", "shared sparse"], [(2, 1, 3), (9, 14, 7), (2, 12, 5)],
        [{"radius": 2.0}, {"penalty": 0.3}, {"row_penalty": 0.3, "entry_penalty": 0.2}], [False, True],
    ),
)  # fmt: skip
def test_the_direction_is_newtons(loss: str, kind: str, sizes: tuple[int, ...], bound: dict[str, float], intercept: bool) -> None:
    """Far from the central path, with residuals in every equation: it meets all of them, and the linearised products."""
    rng = np.random.default_rng(len(kind) + sum(sizes))
    data = draw(rng, sizes, 5, kind)
    if "entry_penalty" in bound:  # which hinges have not
        dirty = DirtyModel(data, loss="squared" if loss == "hinge" else loss, intercept=intercept, **bound)
        check_direction(FitEquations(dirty.form(LinearForm)), rng)
    elif loss == "hinge":
        check_direction(HingeEquations(L1InfHinge(data, intercept=intercept, **bound).form(Hinges)), rng)
    else:
        check_direction(FitEquations(L1InfGLM(data, loss=loss, intercept=intercept, **bound).form(LinearForm)), rng)


def check_direction(eq: Equations, rng: np.random.Generator) -> None:
    at, design = eq.layout, eq.system.design
    x = State(
        rng.standard_normal(at.shape), rng.random(at.shape[1]),
        np.exp(rng.standard_normal(at.size)), np.exp(rng.standard_normal(at.size)),
        None if isinstance(eq, HingeEquations) else rng.standard_normal(design.n_examples),
        rng.standard_normal(design.n_tasks) if eq.system.intercept else None,
    )  # fmt: skip
    residuals, target = eq.residuals(x), rng.standard_normal(at.size)
    for careful in (False, True):
        eq.factor(x, careful=careful)
        by = eq.completed(x, residuals, eq.direction(x, residuals, target))
        np.testing.assert_allclose(x.dual * by.slack + x.slack * by.dual, target, rtol=1e-8, atol=1e-8)
        check_equations(eq, x.moved(by, 1.0, 1.0), x)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"radius": 0.8}, {"penalty": "0.1 max"}, {"penalty": 0.5, "reduction": "sum"},
        {"row_penalty": "0.1 max", "entry_penalty": "0.1 max"}, {"row_penalty": 2.0, "entry_penalty": 1e-3},
    ],
    ids=str,
)  # fmt: skip
def test_a_fit_starts_inside_and_misses_the_derivatives_only(loss: str, parameters: dict[str, Any]) -> None:
    """The dual point proves something from the start."""
    data = draw(np.random.default_rng(0), (30, 35, 40), 12, "dense")
    problem = (DirtyModel if "row_penalty" in parameters else L1InfGLM)(data, loss=loss, **parameters)
    form = problem.form(LinearForm)
    eq = FitEquations(form)
    x = eq.start(np.swapaxes(problem.start_point(), -1, -2))
    assert (x.slack > 0.0).all()
    assert (x.dual > 0.0).all()
    rest = eq.residuals(x)
    p, q = eq.layout.bounds(x.dual)
    np.testing.assert_allclose(form.adjoint(eq.dual_point(x)).T, p - q, rtol=1e-9, atol=1e-12)
    assert rest.entries is None or np.abs(rest.entries).max() <= 1e-12
    assert max(np.abs(rest.u).max(), np.abs(rest.v).max(), abs(rest.c), np.abs(rest.mu).max()) <= 1e-12 * (1.0 + float(x.slack.max()))
    dual = eq.dual_point(x)
    assert 0.0 < form.bound(dual, form.adjoint(dual)) <= eq.objective(x)


def test_weighted_hinges_with_intercepts_start_with_balanced_duals() -> None:
    rng = np.random.default_rng(0)
    data = draw(rng, (30, 35, 40), 12, "dense")
    data = replace(data, weights=frozen(np.where(data.targets > 0.0, 100.0, 1.0)))
    eq = HingeEquations(L1InfHinge(data, intercept=True, radius=0.8).form(Hinges))
    x, design = eq.start(np.zeros((3, 12))), data.design
    signed = eq.labels * x.dual[eq.layout.r]
    sums, sizes = (np.abs(design.task_sums(design.unstack(part))) for part in (signed, np.abs(signed)))
    assert (sums <= 1e-6 * sizes).all()


def test_many_free_coordinates_do_not_spoil_the_small_form() -> None:
    """P + Q tends to 0 on more coordinates than a task has examples: what is left is rounding of the terms of each equation."""
    rng = np.random.default_rng(0)
    assert _prefers_examples(3, 12)
    X = rng.standard_normal((3, 12))
    system = NewtonSystem(SharedDesign(X, 2))
    P, Q, E, t = np.full((2, 12), 1e-13), np.full((2, 12), 3e-13), np.array([1e9, 1e9, 1e-9] * 2), 1.0
    P[:, :4] = 1.0
    system.factor(E, P, Q, t)
    right = (1e-12 * rng.standard_normal((2, 12)), rng.standard_normal(6), 1e-12 * rng.standard_normal(12))
    x = system.solve(*right)
    W, mu, a, _ = (np.abs(part) for part in x[:4])
    terms = (
        a.reshape(2, 3) @ np.abs(X) + (P + Q) * (W + mu),
        a / E + (W @ np.abs(X.T)).ravel(),
        ((P + Q) * (W + mu)).sum(axis=0) + t * mu.sum(),
    )
    for rest, size in zip(system.residual(*right, x), terms, strict=True):
        assert (np.abs(rest) <= 1e-13 * size).all(), (rest, size)


def test_a_diagonal_is_raised_where_rounding_has_left_nothing() -> None:
    x = np.random.default_rng(0).standard_normal(5)
    singular = np.outer(x, x) - 1e-13 * np.eye(5)
    A = singular.copy()
    factor(A, lambda: np.copyto(A, singular))
    U = np.triu(A)
    np.testing.assert_allclose(U.T @ U, singular, atol=1e-9)


def many_rows() -> L1InfHinge:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 40))
    return L1InfHinge(TaskData.shared(X, np.sign(rng.standard_normal((2000, 10)) + X[:, :1])), radius=2.0)


needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")


@needs_two
def test_threads_of_a_run_change_no_bit_and_between_two_steps_linear_algebra_is_as_it_was() -> None:
    problem = many_rows()
    assert NewtonSystem(problem.form(Hinges).design, 2).threads == 2
    with threadpool_limits(1):
        one, other = (list(islice(InteriorPoint(threads=threads).steps(problem), 6))[-1] for threads in (1, 2))
    assert problem.objective(one.primal) == problem.objective(other.primal)
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        for _ in islice(InteriorPoint(threads=2).steps(problem), 3):
            assert [library["num_threads"] for library in threadpool_info()] == before


@needs_two
def test_other_threads_are_as_silent_about_rounding() -> None:
    design = many_rows().form(Hinges).design
    extreme = 1e307 * np.linspace(0.9, 1.0, design.n_examples), np.ones((10, 40)), np.ones((10, 40)), 1.0
    for threads in (1, 2):
        system = NewtonSystem(design, threads)
        with np.errstate(all="ignore"), suppress(FloatingPointError):
            system.factor(*extreme)
        assert not np.isfinite(system._middles).all()


@pytest.mark.parametrize("kind", ["dense", "shared", "sparse"])
@pytest.mark.parametrize("has_entries", [False, True])
def test_a_compiled_step_is_that_of_all_equations(kind: str, has_entries: bool) -> None:
    """Up to what is missing of the free dual point, which Gram matrices have none of."""
    data = draw(np.random.default_rng(3), (9, 14, 30), 8, kind)
    problem = DirtyModel(data, row_penalty=0.1, entry_penalty=0.06) if has_entries else L1InfGLM(data, penalty=0.1)
    eq = FitEquations(problem.form(LinearForm))
    x = eq.start(np.swapaxes(problem.start_point(), -1, -2))
    for _ in range(6):
        predictions = eq.system.design.unstack(eq.predictions(x))
        x = replace(x, free=eq.system.design.stack(-eq.fit.derivatives(predictions)))
        slow = advance(eq, x, eq.residuals(x), careful=False)
        x = eq.after(x, correctors=CORRECTORS, rule=RULE)
        for one, other in ((x.W, slow.W), (x.mu, slow.mu), (x.slack, slow.slack), (x.dual, slow.dual), (x.free, slow.free)):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def few_examples() -> TaskData:
    return draw(np.random.default_rng(9), (12, 30, 25), 8, "dense")


@pytest.mark.parametrize(
    "problem",
    [
        L1InfHinge(few_examples(), radius=0.5),
        DirtyModel(few_examples(), row_penalty="0.3 max", entry_penalty="0.3 max"),
        DirtyModel(few_examples(), row_penalty="0.1 max", entry_penalty="0.2 max", loss="logistic"),
    ],
    ids=lambda problem: f"{problem.name}: {problem.loss.name}",
)
def test_ends_by_itself_where_rounding_ends_the_progress(problem: FitProblem) -> None:
    iterates = list(islice(InteriorPoint().steps(problem), 300))
    assert 5 < len(iterates) < 100
    assert all(np.isfinite(iterate.primal).all() for iterate in iterates)
    best = [problem.certify(iterate) for iterate in iterates]
    largest = np.inf if problem.loss.name == "squared" else problem.fit.weights
    assert min(c.primal for c in best) - max(c.dual for c in best) <= 1e-12 * best[-1].primal
    assert all(iterate.dual is not None and (np.abs(iterate.dual) <= largest).all() for iterate in iterates[1:])
