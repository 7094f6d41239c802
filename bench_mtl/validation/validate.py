"""Checks projections, certificates and every problem-solver pair against CVXPY on random small cases, projections on larger ones too.

The bounds of the problems that are shipped are held to exact arithmetic besides, on small nasty instances.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from bench_mtl import projections as fast
from bench_mtl.core.errors import InputError, unknown
from bench_mtl.core.types import Array
from bench_mtl.engine.driver import describe
from bench_mtl.engine.places import packages_of, place_text, places_of
from bench_mtl.engine.registry import Registry
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver
from bench_mtl.validation import conformance
from bench_mtl.validation import slow_projections as slow
from bench_mtl.validation.exact.judge import verdicts
from bench_mtl.validation.tiny_instances import all_instances, sharded_instances

C = TypeVar("C")

#: What is minimised for CVXPY, and under which constraints.
Model = tuple[Any, list[Any]]

#: Largest allowed distance to CVXPY's answer, relative to the largest entry: what Clarabel at 1e-12 resolves where a constraint
#: and its multiplier are both zero.
PROJECTION_TOLERANCE = 3e-5

#: The same to the slow reference in long double.
EXACT_TOLERANCE = 1e-12

#: The same where singular values are computed, which are exact to rounding of the largest.
SPECTRAL_TOLERANCE = 1e-9

#: Most entries of a case that is compared with the slow reference, and the same where singular values are computed.
LARGEST_CASE, LARGEST_SPECTRUM = 120_000, 10_000


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
    """The message of the first failure."""


@dataclass(frozen=True)
class Form:
    """One way to call an operator: the dimension of its input, and keywords that change what is computed."""

    ndim: int = 2
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Operator:
    """A projection or proximal operator: what is shipped, a slow reference, and the same thing written for CVXPY."""

    kernels: Mapping[str, Callable[..., Any]]
    """The ways to compute it, by name."""
    slow: Callable[..., Any]
    model: Callable[..., Model]
    """The same thing of (variable, input, parameter, **keywords)."""
    forms: tuple[Form, ...] = (Form(),)
    """They take turns."""
    tolerance: float = EXACT_TOLERANCE
    largest: int = LARGEST_CASE


def validate(registry: Registry, *, cases: int, seed: int = 0, only: Collection[str] = ()) -> Iterator[Check]:
    """Return an iterator over a `Check` for every projection, problem and pair that has one of the names `only`, or for all.

    What comes from another package and cannot be loaded is a check that fails; the others go on. Each projection and each problem has so
    many random small cases; larger ones for each projection are a twentieth of them. Raises InputError, before anything is checked, where
    `only` has a name of no problem, solver (or alias) and projection.
    """
    chosen = operators()
    known = {*registry.problems, *registry.solvers, *(name for operator in chosen for name in _functions(operator))}
    named = {name if name in known or not registry.knows_solver(name) else registry.meant(name)[0] for name in only}
    for name in sorted(named - known):
        raise unknown("problem, solver or projection", name, known)
    return _checks(registry, chosen, cases, seed, frozenset(named or known))


def _checks(registry: Registry, chosen: Sequence[Operator], cases: int, seed: int, only: frozenset[str]) -> Iterator[Check]:
    for operator in chosen:
        if only.isdisjoint(_functions(operator)):
            continue
        yield from _check_operator(operator, "agrees with CVXPY", list(_small_cases(operator, cases, seed)), PROJECTION_TOLERANCE)
        larger = list(_larger_cases(operator, max(len(operator.forms), cases // 20), seed))
        yield from _check_operator(operator, "agrees with long double", larger, operator.tolerance)
    solvers = set(registry.solvers) & only
    needed = registry.problems.keys() if solvers else registry.problems.keys() & only
    problems = {name: _with_examples(_loaded(registry.problems, name), seed) for name in registry.problems if name in needed}
    for name, problem in problems.items():
        if isinstance(problem, Check):
            yield problem
        elif name in only:
            yield from _check_problem(problem, cases, seed)
            if messages := _verdicts(registry, name, cases, seed):
                yield _gather(name, "exact arithmetic", messages)
    classes = {name: _loaded(registry.solvers, name) for name in registry.solvers if name in only or problems.keys() & only}
    yield from (solver for solver in classes.values() if isinstance(solver, Check))
    for name, problem in problems.items():
        for of_solver, solver in classes.items():
            if not isinstance(problem, Check) and not isinstance(solver, Check) and not only.isdisjoint((name, of_solver)):
                yield from _check_pairs(problem, solver, seed)


def _functions(operator: Operator) -> set[str]:
    """Return the names of the functions that compute an operator."""
    return {name.split()[0] for name in operator.kernels}


def _loaded(classes: Mapping[str, type[C]], name: str) -> type[C] | Check:
    """Return a class by its name, or the check that fails where it cannot be loaded."""
    try:
        return classes[name]
    except InputError as error:
        return _gather(name, "can be loaded", [str(error)])


def _with_examples(problem: type[Problem] | Check, seed: int) -> type[Problem] | Check:
    """Return a problem whose tiny instances can be made, or the check that fails where they cannot."""
    if isinstance(problem, Check):
        return problem
    try:
        all_instances(problem, seed)
    except Exception as error:
        return _gather(problem.name, "has examples", [_said(error, problem)])
    return problem


def _verdicts(registry: Registry, name: str, cases: int, seed: int) -> list[str]:
    return [fault[0].message if fault else "" for fault in verdicts(registry, name, cases, seed)]


def operators() -> tuple[Operator, ...]:
    """Return every projection and proximal operator of `bench_mtl.projections`, with each of its methods."""
    import cvxpy as cp

    def near(B: Any, A: Array) -> Any:
        return 0.5 * cp.sum_squares(B - A)

    # No absolute values where B >= 0: two constraints on the same zero cost the interior point half of its digits.
    def size(B: Any, nonneg: bool) -> Any:
        return B if nonneg else cp.abs(B)

    def total(B: Any, axis: int = -1) -> Any:
        return cp.sum(B, axis=B.ndim - 1 if axis == -1 else axis)

    def l1(B: Any, axis: int = -1, nonneg: bool = False) -> Any:
        return total(size(B, nonneg), axis)

    def l2(B: Any, axis: int | None = None) -> Any:
        return cp.norm(cp.vec(B, order="C")) if axis is None else cp.norm(B, 2, axis=axis)

    def l1inf(B: Any, nonneg: bool = False) -> Any:
        return cp.sum(cp.max(size(B, nonneg), axis=1))

    def simplex(w: Any, v: Array, mass: float, axis: int = -1) -> Model:
        return near(w, v), [w >= 0, total(w, axis) == mass]

    def boxed(w: Any, v: Array, share: float) -> Model:
        mass, lower, upper = _box(w, share)
        return near(w, v), [w >= lower, w <= upper, cp.sum(w) == mass]

    def ball(norm: Callable[..., Any]) -> Callable[..., Model]:
        return lambda B, A, radius, **keywords: (near(B, A), [norm(B, **keywords) <= radius, *([B >= 0] if "nonneg" in keywords else [])])

    def penalised(norm: Callable[..., Any]) -> Callable[..., Model]:
        return lambda B, A, weight, **keywords: (near(B, A) + weight * norm(B, **keywords), [B >= 0] if "nonneg" in keywords else [])

    def squared_trace(B: Any, A: Array, weight: float) -> Model:
        return near(B, A) + 0.5 * weight * cp.square(cp.normNuc(B)), []

    signs = (Form(), Form(keywords={"nonneg": True}))
    axes = (Form(1), Form(), Form(keywords={"axis": 0}))
    searches, spectra = ("newton", "sort", "pivot"), ("auto", "svd", "gram", "partial")
    spectral = partial(Operator, tolerance=SPECTRAL_TOLERANCE, largest=LARGEST_SPECTRUM)
    box = {"project_box_simplex": lambda v, share: fast.project_box_simplex(v, *_box(v, share))}
    l1inf_ball: dict[str, Callable[..., Any]] = {
        **_methods(fast.project_l1inf_ball, "newton", "merge"),
        "project_l1inf_ball CSR": partial(_sparse, fast.project_l1inf_ball),
    }
    prox_l1inf: dict[str, Callable[..., Any]] = {**_methods(fast.prox_l1inf), "prox_l1inf CSR": partial(_sparse, fast.prox_l1inf)}
    l1_axes = (*axes, Form(1, {"nonneg": True}), Form(keywords={"nonneg": True, "axis": 0}))
    return (
        Operator(_methods(fast.project_simplex, *searches), slow.simplex, simplex, axes),
        Operator(box, lambda v, share: slow.box_simplex(v, *_box(v, share)), boxed, (Form(1),)),
        Operator(_methods(fast.project_l1_ball, *searches), slow.l1_ball, ball(l1), l1_axes),
        Operator(_methods(fast.soft_threshold), slow.soft_threshold, penalised(lambda B: cp.sum(cp.abs(B)))),
        Operator(_methods(fast.project_l2_ball), slow.l2_ball, ball(l2), (Form(), *(Form(keywords={"axis": axis}) for axis in (0, 1)))),
        Operator(_methods(fast.project_l12_ball), slow.l12_ball, ball(lambda B: cp.sum(cp.norm(B, 2, axis=1)))),
        Operator(_methods(fast.prox_l12), slow.prox_l12, penalised(lambda B: cp.sum(cp.norm(B, 2, axis=1)))),
        Operator(l1inf_ball, slow.l1inf_ball, ball(l1inf), signs),
        Operator(prox_l1inf, slow.prox_l1inf, penalised(l1inf), signs),
        spectral(_methods(fast.project_trace_ball, *spectra), slow.trace_ball, ball(cp.normNuc)),
        spectral(_methods(fast.prox_trace, *spectra), slow.prox_trace, penalised(cp.normNuc)),
        spectral(_methods(fast.prox_squared_trace, *spectra), slow.prox_squared_trace, squared_trace),
    )


def _methods(function: Callable[..., Any], *names: str) -> dict[str, Callable[..., Any]]:
    """`function` by its own name, or once for each of its methods."""
    if not names:
        return {function.__name__: function}
    return {f"{function.__name__} {name}": partial(function, method=name) for name in names}


def _sparse(function: Callable[..., Any], A: Array, parameter: float, **keywords: Any) -> Array:
    return np.asarray(function(sp.csr_array(A), parameter, **keywords).toarray())


def _box(v: Any, share: float) -> tuple[float, Array, Array]:
    """A mass and bounds for it that depend on the length of `v` and on `share` alone, some of them equal."""
    lower = -np.abs(np.sin(np.arange(float(v.shape[0]))))
    upper = lower + np.round(1.0 + np.cos(np.arange(float(v.shape[0]))), 1)
    return float(lower.sum() + (upper - lower).sum() * share / (1.0 + share)), lower, upper


class Compared(NamedTuple):
    """A case with the answer that all kernels are held to."""

    A: Array
    parameter: float
    keywords: Mapping[str, Any]
    answer: Callable[[], Array]


def _small_cases(operator: Operator, cases: int, seed: int) -> Iterator[Compared]:
    rng = np.random.default_rng(seed)
    for case in range(cases):
        form = operator.forms[case % len(operator.forms)]
        A = _random_input(rng, tuple(int(n) for n in rng.integers(1, 7, size=form.ndim)))
        parameter = float(10 ** rng.uniform(-2, 1) * max(1e-3, np.abs(A).max()))
        yield Compared(A, parameter, form.keywords, partial(_solved, operator, A, parameter, form.keywords))


def _solved(operator: Operator, A: Array, parameter: float, keywords: Mapping[str, Any]) -> Array:
    import cvxpy as cp

    variable = cp.Variable(A.shape)
    objective, constraints = operator.model(variable, A, parameter, **keywords)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the solution may be inaccurate: the status says so too
        for tolerance in (1e-12, 1e-11, 1e-10, 1e-9):  # where it cannot reach the first, its last step is a poor one, or it fails
            try:
                problem.solve(solver=cp.CLARABEL, **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance))
            except cp.SolverError as error:
                failure: Exception | None = error
                continue
            failure = None
            if problem.status == cp.OPTIMAL:
                break
    if failure is not None:
        raise failure
    return np.asarray(variable.value)


def _larger_cases(operator: Operator, cases: int, seed: int) -> Iterator[Compared]:
    """From tall to wide, and large enough for threads, samples and blocks."""
    rng = np.random.default_rng([seed, 1])
    for case in range(cases):
        form = operator.forms[case % len(operator.forms)]
        entries = operator.largest ** rng.uniform(0.3, 1.0)
        rows = int(entries ** rng.uniform(0.3, 0.8))
        A = _random_input(rng, (int(entries),) if form.ndim == 1 else (rows, int(entries / rows)))
        parameter = float(10 ** rng.uniform(-2, 2) * max(1e-3, np.abs(A).max()))
        yield Compared(A, parameter, form.keywords, partial(operator.slow, A, parameter, **form.keywords))


def _check_operator(operator: Operator, what: str, cases: list[Compared], tolerance: float) -> Iterator[Check]:
    """One check for each kernel; all of them on one answer a case."""
    results: dict[str, list[float | str]] = {name: [] for name in operator.kernels}
    for compared in cases:
        try:
            answer: Array | str = compared.answer()
        except Exception as error:
            answer = describe(error)
        for name, kernel in operator.kernels.items():
            results[name].append(answer if isinstance(answer, str) else _distance(kernel, compared, answer))
    for name, errors in results.items():
        messages = []
        for off, case in zip(errors, cases, strict=True):
            options = "".join(f", {option}={value}" for option, value in case.keywords.items())
            shape = f"shape {case.A.shape}, parameter {case.parameter:g}{options}"
            messages.append(off if isinstance(off, str) else "" if off <= tolerance else f"{shape}: off by {off:.1e}")
        worst = max((np.inf if isinstance(off, str) else off for off in errors), default=0.0)
        yield replace(_gather(name, what, messages), worst=worst)


def _distance(kernel: Callable[..., Any], compared: Compared, answer: Array) -> float | str:
    """The largest difference, relative to the largest entry, or what went wrong."""
    try:
        result = kernel(compared.A, compared.parameter, **compared.keywords)
        return float(np.abs(result - answer).max()) / max(1.0, float(np.abs(compared.A).max()))
    except Exception as error:
        return describe(error)


def _random_input(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A random array: Gaussian, heavy-tailed, with ties, or with zero rows."""
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
    instances = [*_instances(problem, cases, seed), *sharded_instances(problem, seed)]
    if not instances:
        yield _gather(problem.name, "has examples", ["examples yields no instance"])
    for check in conformance.problem_checks(problem):
        fitting = [(i, tiny) for i, tiny in enumerate(instances) if check.applies_to(tiny)]
        results = [_attempt(check.check, tiny, np.random.default_rng([seed, i])) for i, tiny in fitting]
        yield _gather(problem.name, check.what, results)


def _check_pairs(problem: type[Problem], solver_class: type[Solver], seed: int) -> Iterator[Check]:
    try:
        variants = solver_class.variants()
    except Exception as error:  # an option without default, say
        yield _gather(f"{problem.name} / {solver_class.name}", "has variants", [_said(error, problem, solver_class)])
        return
    for solver in variants:
        try:
            fitting = [tiny for tiny in all_instances(problem, seed) if solver.incompatibility(tiny) is None]
        except Exception as error:
            yield _gather(f"{problem.name} / {solver_class.name}", "tells what it fits", [_said(error, problem, solver_class)])
            continue
        if not fitting:
            continue
        results = [_attempt(conformance.check_pair, tiny, solver) for tiny in fitting]
        yield _gather(f"{problem.name} / {solver.label}", f"proves a gap of {conformance.PAIR_TARGET:g}", results)
        if isinstance(solver, IterativeSolver):
            results = [_attempt(conformance.check_iterates, tiny, solver) for tiny in fitting]
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
    """Empty when the check passes, else what it said, and where its author's code raised it."""
    try:
        check(*arguments)
    except Exception as error:
        if isinstance(error, AssertionError) and str(error):
            return str(error)
        return _said(error, *(type(each) for each in arguments if isinstance(each, (Problem, Solver))))
    return ""


def _said(error: Exception, *kinds: type) -> str:
    """Return what was raised, and where the code of the author of these problems and solvers did."""
    places = places_of(error, packages_of(*kinds))
    return f"{describe(error)} ({place_text(places)})" if places else describe(error)


def _gather(subject: str, what: str, results: list[str]) -> Check:
    failed = [(i, text) for i, text in enumerate(results) if text]
    message = f"case {failed[0][0]}: {failed[0][1]}" if failed else ""
    return Check(subject, what, len(results), len(failed), None, message)
