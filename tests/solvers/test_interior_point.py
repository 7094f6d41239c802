"""The interior-point method: its Newton step against all equations, its two forms of a task, and hard instances."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise_cases import pairwise_cases
from threadpoolctl import threadpool_info, threadpool_limits

from bench_mtl.core.designs import Design, SharedDesign
from bench_mtl.data import TaskData
from bench_mtl.model.forms import HingeForm, L1InfForm
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.interior_point.dense import factor, invert
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.fits import FitEquations
from bench_mtl.solvers.interior_point.hinges import HingeEquations
from bench_mtl.solvers.interior_point.kernels import boundary_ratios, recentred
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
        assert eq.radius is not None
        wanted.append((y.slack[[at.c]], np.array([eq.radius - y.mu.sum()])))
    if isinstance(eq, HingeEquations):
        pull = eq.labels * y.dual[at.r]
        wanted.append((y.slack[at.r], eq.labels * (X @ y.W.ravel()) + y.slack[at.xi] - 1.0))
        wanted.append((y.dual[at.r] + y.dual[at.xi], eq.weights))
    else:
        assert isinstance(eq, FitEquations)
        assert y.free is not None
        design, pull = eq.system.design, y.free
        slopes, bends = (design.stack(of(design.forward(x.W.T))) for of in (eq.fit.derivatives, eq.fit.curvatures))
        wanted.append((y.free, -slopes - bends * (X @ (y.W - x.W).ravel())))
    for one, other in [*wanted, ((p - q).ravel(), X.T @ pull)]:
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("loss", "kind", "sizes", "penalised"),
    pairwise_cases(
        ["hinge", "squared", "logistic"],
        ["dense", "sparse", "shared", "shared sparse"],
        [(2, 1, 3), (9, 14, 7), (2, 12, 5)],
        [False, True],
    ),
)
def test_the_direction_is_newtons(loss: str, kind: str, sizes: tuple[int, ...], penalised: bool) -> None:
    """Far from the central path, with residuals in every equation: it meets all of them, and the linearised products."""
    rng = np.random.default_rng(len(kind) + sum(sizes))
    data, bound = draw(rng, sizes, 5, kind), {"penalty": 0.3} if penalised else {"radius": 2.0}
    if loss == "hinge":
        eq: Equations = HingeEquations(L1InfHinge(data, **bound).form(HingeForm), bound.get("penalty"))
    else:
        eq = FitEquations(L1InfGLM(data, loss=loss, **bound).form(L1InfForm), bound.get("penalty"))
    at = eq.layout
    x = State(
        rng.standard_normal(at.shape), rng.random(at.shape[1]),
        np.exp(rng.standard_normal(at.size)), np.exp(rng.standard_normal(at.size)),
        None if loss == "hinge" else rng.standard_normal(data.design.n_examples),
    )  # fmt: skip
    residuals, target = eq.residuals(x), rng.standard_normal(at.size)
    for careful in (False, True):
        eq.factor(x, careful=careful)
        by = eq.completed(x, residuals, eq.direction(x, residuals, target))
        np.testing.assert_allclose(x.dual * by.slack + x.slack * by.dual, target, rtol=1e-8, atol=1e-8)
        check_equations(eq, x.moved(by, 1.0, 1.0), x)


def solved(
    design: Design, scalings: tuple[Any, ...], right: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, by_examples: bool, rho: Any = None
) -> Any:
    monkeypatch.setattr("bench_mtl.solvers.interior_point.system._prefers_examples", lambda n, d: by_examples)
    system = NewtonSystem(design, intercept=rho is not None)
    found = []
    for careful in (False, True):
        system.factor(*scalings, careful=careful)
        solution = system.solve(*right, rho=rho)
        assert all(np.abs(part).max() <= 1e-9 for part in system.residual(*right, solution))
        if rho is not None:
            np.testing.assert_allclose(design.task_sums(design.unstack(solution.a)), -rho, atol=1e-9)
            forward = design.stack(design.forward(solution.W.T)) + np.repeat(solution.shift, design.sizes)
            np.testing.assert_allclose(solution.forward, forward, atol=1e-9)
            partial = system.solve(*right, whole=False, rho=rho)
            np.testing.assert_allclose(system.completed(right[1], partial.W, partial.a, partial.shift), solution.a, atol=1e-9)
        found.append([part for part in solution if part is not None])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    return found[0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [1, 4, 12])
def test_both_forms_of_a_task_agree(n: int, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.6)
    design = SharedDesign(sp.csr_array(X) if sparse else X, 2)
    scalings = (np.exp(rng.standard_normal(2 * n)), np.exp(rng.standard_normal((2, 6))), np.exp(rng.standard_normal((2, 6))), 0.5)
    right = (rng.standard_normal((2, 6)), rng.standard_normal(2 * n), rng.standard_normal(6))
    for rho in (None, rng.standard_normal(2)):
        one = solved(design, scalings, right, monkeypatch, True, rho)
        other = solved(design, scalings, right, monkeypatch, False, rho)
        for a, b in zip(one, other, strict=True):
            assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


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


@pytest.mark.parametrize("d", [1, 2, 64, 65, 200])
def test_inverses_by_halves(d: int) -> None:
    rng = np.random.default_rng(d)
    F = rng.standard_normal((d + 3, d))
    wanted = F.T @ F + np.eye(d)
    A = wanted.copy()
    factor(A, lambda: pytest.fail("it is positive definite"))
    assert np.allclose(np.tril(A.T), np.linalg.cholesky(wanted))
    invert(A)
    assert np.allclose(np.triu(A), np.triu(np.linalg.inv(wanted)), rtol=1e-9, atol=1e-12)
    A[:] = -wanted
    with pytest.raises(FloatingPointError, match="not positive definite"):
        factor(A, lambda: np.copyto(A, -wanted))


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
def test_threads_of_a_run_change_no_bit_where_linear_algebra_has_one() -> None:
    problem = many_rows()
    assert NewtonSystem(problem.form(HingeForm).design, 2).threads == 2
    objectives = []
    with threadpool_limits(1):
        for threads in (1, 2):
            *_, last = islice(InteriorPoint(threads=threads).steps(problem), 6)
            objectives.append(problem.objective(last.primal))
    assert objectives[0] == objectives[1]


@needs_two
def test_between_two_steps_linear_algebra_is_as_it_was() -> None:
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        steps = InteriorPoint(threads=2).steps(many_rows())
        for _ in islice(steps, 3):
            assert [library["num_threads"] for library in threadpool_info()] == before


@needs_two
def test_other_threads_are_as_silent_about_rounding() -> None:
    design = many_rows().form(HingeForm).design
    extreme = 1e307 * np.linspace(0.9, 1.0, design.n_examples), np.ones((10, 40)), np.ones((10, 40)), 1.0
    for threads in (1, 2):
        system = NewtonSystem(design, threads)
        with np.errstate(all="ignore"), suppress(FloatingPointError):
            system.factor(*extreme)
        assert not np.isfinite(system._middles).all()


@pytest.mark.parametrize("n", [1, 1024, 2500])
def test_passes_over_a_point(n: int) -> None:
    rng = np.random.default_rng(n)
    slack, dual = np.exp(rng.standard_normal((2, n)))
    ds, dy = rng.standard_normal((2, n))
    weights = np.array([0.0, 0.4, 1.0])
    wanted = [max(0.0, float((-(ds + w * dy) / slack).max())) for w in weights]
    assert np.allclose(boundary_ratios(slack, ds, dy, weights), wanted, rtol=1e-12)
    out, products = np.empty(n), (slack + 0.3 * ds) * (dual + 0.6 * dy)
    recentred(slack, dual, ds, dy, (0.3, 0.6), 0.5, 2.0, out)
    assert np.allclose(out, np.maximum(np.clip(products, 0.5, 2.0) - products, -2.0), atol=1e-12)


def test_one_gram_matrix_serves_all_tasks_of_equal_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    design = SharedDesign(rng.standard_normal((12, 4)), 3)
    P, Q = np.exp(rng.standard_normal((2, 3, 4)))
    scalings = (np.tile(np.exp(rng.standard_normal(12)), 3), P, Q, 0.5)
    right = (rng.standard_normal((3, 4)), rng.standard_normal(36), rng.standard_normal(4))
    assert NewtonSystem(design)._common_gram(np.sqrt(scalings[0])) is not None
    one = solved(design, scalings, right, monkeypatch, False)
    monkeypatch.setattr(NewtonSystem, "_common_gram", lambda self, roots: None)
    for a, b in zip(one, solved(design, scalings, right, monkeypatch, False), strict=True):
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_ends_by_itself_where_rounding_ends_the_progress() -> None:
    problem = L1InfHinge(draw(np.random.default_rng(9), (12, 30, 25), 8, "dense"), radius=0.5)
    iterates = list(islice(InteriorPoint().steps(problem), 300))
    assert 5 < len(iterates) < 100
    assert all(np.isfinite(iterate.primal).all() for iterate in iterates)
    best = [problem.certify(iterate) for iterate in iterates]
    assert min(c.primal for c in best) - max(c.dual for c in best) <= 1e-12 * best[-1].primal
    assert all(iterate.dual is not None and (iterate.dual <= problem.weights).all() for iterate in iterates[1:])
