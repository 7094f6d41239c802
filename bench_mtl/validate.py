"""Checks projections, certificates and every problem-solver pair against CVXPY on random small cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_mtl import conformance, projections
from bench_mtl.driver import describe
from bench_mtl.protocols import IterativeSolver, Problem, Solver
from bench_mtl.registry import Registry
from bench_mtl.types import Array

#: Largest allowed distance to CVXPY's answer, relative to the largest entry: what Clarabel at 1e-12 resolves.
PROJECTION_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Check:
    """The outcome of one kind of check over many cases."""

    subject: str
    what: str
    cases: int
    failures: int
    worst: float | None
    """Largest relative error seen, where the check measures one."""
    message: str = ""
    """Of the first failure."""


@dataclass(frozen=True)
class Reference:
    """A projection or proximal operator and the same thing written for CVXPY."""

    name: str
    kernel: Callable[[Array, float], Array]
    objective: Callable[[Any, Array, float], Any]
    """(variable, input, parameter) -> expression to minimise."""
    constraints: Callable[[Any, float], list[Any]]
    ndim: int = 2


def validate(registry: Registry, *, cases: int, seed: int = 0) -> Iterator[Check]:
    """Yield a `Check` for every projection, problem and pair; `cases` random cases for each of the first two."""
    for reference in _references():
        yield _check_projection(reference, cases, seed)
    for problem in registry.problems.values():
        yield from _check_problem(problem, cases, seed)
    for problem in registry.problems.values():
        for solver in registry.solvers.values():
            yield from _check_pairs(problem, solver, seed)


def _references() -> tuple[Reference, ...]:
    import cvxpy as cp

    def distance(B: Any, A: Array, _: float) -> Any:
        return 0.5 * cp.sum_squares(B - A)

    def rows(B: Any) -> Any:
        return cp.max(cp.abs(B), axis=1)

    return (
        Reference("project_simplex", projections.project_simplex, distance, lambda w, z: [w >= 0, cp.sum(w) == z], 1),
        Reference("project_l1_ball", projections.project_l1_ball, distance, lambda w, z: [cp.norm1(w) <= z], 1),
        Reference("soft_threshold", projections.soft_threshold, lambda B, A, t: distance(B, A, t) + t * cp.sum(cp.abs(B)), lambda B, t: []),
        Reference("project_l1inf_ball", projections.project_l1inf_ball, distance, lambda B, C: [cp.sum(rows(B)) <= C]),
        Reference("prox_l1inf", projections.prox_l1inf, lambda B, A, t: distance(B, A, t) + t * cp.sum(rows(B)), lambda B, t: []),
        Reference("project_trace_ball", projections.project_trace_ball, distance, lambda B, t: [cp.normNuc(B) <= t]),
    )


def _check_projection(reference: Reference, cases: int, seed: int) -> Check:
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    failures, worst, message = 0, 0.0, ""
    for case in range(cases):
        A = _random_input(rng, reference.ndim)
        parameter = float(10 ** rng.uniform(-2, 1) * max(1e-3, np.abs(A).max()))
        variable = cp.Variable(A.shape)
        problem = cp.Problem(cp.Minimize(reference.objective(variable, A, parameter)), reference.constraints(variable, parameter))
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12)
        try:
            problem.solve(solver=cp.CLARABEL, **tight)
            error = float(np.abs(reference.kernel(A, parameter) - variable.value).max()) / max(1.0, float(np.abs(A).max()))
        except Exception as problem_error:
            error, message = np.inf, message or f"case {case}: {describe(problem_error)}"
        worst = max(worst, error)
        if error > PROJECTION_TOLERANCE:
            failures += 1
            message = message or f"case {case} of shape {A.shape}, parameter {parameter:g}: off by {error:.1e}"
    return Check(reference.name, "agrees with CVXPY", cases, failures, worst, message)


def _random_input(rng: np.random.Generator, ndim: int) -> Array:
    """A small random array: Gaussian, heavy-tailed, with ties, or with zero rows."""
    shape = tuple(int(n) for n in rng.integers(1, 7, size=ndim))
    A = rng.standard_normal(shape)
    kind = rng.integers(4)
    if kind == 1:
        A = np.clip(A**3, -30.0, 30.0)
    elif kind == 2:
        A = np.round(A)
    elif kind == 3:
        A[rng.random(shape[0]) < 0.5] = 0.0
    return A


def _check_problem(problem: type[Problem], cases: int, seed: int) -> Iterator[Check]:
    instances = _instances(problem, cases, seed)
    if not instances:
        yield _gather(problem.name, "has examples", ["examples yields no instance"])
    for check in conformance.PROBLEM_CHECKS:
        if check.applies_to(problem):
            results = [_attempt(check.check, tiny, np.random.default_rng([seed, i])) for i, tiny in enumerate(instances)]
            yield _gather(problem.name, check.what, results)


def _check_pairs(problem: type[Problem], solver_class: type[Solver], seed: int) -> Iterator[Check]:
    try:
        variants = solver_class.variants()
    except Exception as error:  # an option without default, say
        yield _gather(f"{problem.name} / {solver_class.name}", "has variants", [describe(error)])
        return
    for solver in variants:
        fitting = [tiny for tiny in problem.examples(np.random.default_rng(seed)) if solver.misfit(tiny) is None]
        if not fitting:
            continue
        results = [_attempt(conformance.check_pair, tiny, solver) for tiny in fitting]
        yield _gather(f"{problem.name} / {solver.label}", f"proves a gap of {conformance.PAIR_TARGET:g}", results)
        if isinstance(solver, IterativeSolver):
            results = [_attempt(conformance.check_deterministic, tiny, solver) for tiny in fitting]
            yield _gather(f"{problem.name} / {solver.label}", "is deterministic", results)


def _instances(problem: type[Problem], cases: int, seed: int) -> list[Problem]:
    """At least `cases` tiny instances, whole families at a time; none where the problem has no example."""
    instances: list[Problem] = []
    while len(instances) < cases:
        family = list(problem.examples(np.random.default_rng([seed, len(instances)])))
        if not family:
            break
        instances.extend(family)
    return instances


def _attempt(check: Callable[..., Any], *arguments: Any) -> str:
    """Empty when the check passes, else what it said."""
    try:
        check(*arguments)
    except Exception as error:
        return str(error) if isinstance(error, AssertionError) and str(error) else describe(error)
    return ""


def _gather(subject: str, what: str, results: list[str]) -> Check:
    failed = [(i, text) for i, text in enumerate(results) if text]
    message = f"case {failed[0][0]}: {failed[0][1]}" if failed else ""
    return Check(subject, what, len(results), len(failed), None, message)
