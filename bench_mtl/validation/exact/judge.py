"""Holds the bounds of problems to exact arithmetic: no objective below the true one, no lower bound above a feasible value, ever."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from bench_mtl.core.rounding import compensated
from bench_mtl.core.types import Array, Iterate
from bench_mtl.engine.registry import Registry
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.validation.conformance import fitting
from bench_mtl.validation.exact.arithmetic import Enclosure, Exact, exact
from bench_mtl.validation.exact.instances import FAR, Instance, instances
from bench_mtl.validation.exact.references import Reference, Regularised, Wealth, from_columns, interpolated

#: Iterations after which a solver's point is taken.
_STEPS = (3, 40)

#: Of how many kinds of point an instance is judged by, of how many corners a search for a better one starts, and how many it returns to.
_POINTS, _CORNERS, _RETURNS = 3, 8, 3

#: Solvers that take turns where they fit and the registry has them: plain ones, that hand over dual points or leave them to the residuals.
_SOLVERS = ("pdhg", "smoothed_gradient", "accelerated_gradient", "projected_subgradient", "projected_gradient", "frank_wolfe_smooth")


@dataclass(frozen=True)
class Fault:
    """Something about an instance that is false in exact arithmetic."""

    kind: str
    """"bound" (a lower bound above a feasible value), "objective" (below the true one), "infeasible" (a repaired point is),
    "moved" (a feasible point was, by repair) or "raised"."""
    message: str


def verdicts(registry: Registry, problem: str, count: int, seed: int) -> Iterator[list[Fault]]:
    """Yield what is false about each of `count` nasty instances of a problem; nothing of a problem without exact reference.

    Each is also judged by the answers of one of `_SOLVERS`, by turns.
    """
    for number, instance in enumerate(instances(registry.problems, problem, count, seed)):
        solvers = fitting(registry, _SOLVERS, instance.problem)
        yield faults(instance, np.random.default_rng([seed, number]), solvers[number % len(solvers)] if solvers else None)


def faults(instance: Instance, rng: np.random.Generator, solver: IterativeSolver | None = None) -> list[Fault]:
    """Return what is false about the bounds of an instance, for points and dual points of many kinds, and the answers of a solver."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of overflow, which bounds must survive
        return _Hearing(instance).faults(rng, solver)


class _Hearing:
    """One instance while it is judged: what is known to be feasible, and all bounds claimed."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.found: list[Fault] = []
        self.bounds: list[tuple[float, str]] = []
        self.best: tuple[Fraction, Exact, str] | None = None

    def faults(self, rng: np.random.Generator, solver: IterativeSolver | None) -> list[Fault]:
        problem = self.instance.problem
        duals = list(_duals(problem, rng))
        for number, (where, point) in enumerate(_points(problem, rng)):
            self.hear(where, point, duals if number == 1 else duals[number % len(duals) :][:1])
        if solver is not None:
            for step, iterate in _answers(problem, solver):
                duals = [] if iterate.dual is None or not np.isfinite(iterate.dual).all() else [("the solver's dual", iterate.dual)]
                self.hear(f"{solver.name} after {step} steps", iterate.primal, duals)
        self.search(rng)
        assert self.best is not None, f"{self.instance.name}: no feasible point is known"
        value, _, place = self.best
        worst = max(self.bounds, default=(-np.inf, ""))
        if worst[0] == np.inf or (worst[0] > -np.inf and Fraction(worst[0]) > value):
            above = float(Fraction(worst[0]) - value) if worst[0] < np.inf else np.inf
            told = f"{worst[1]} gives {worst[0]!r}, which is {above:.1e} above F at {place}"
            self.found.append(Fault("bound", f"{self.instance.name}: {told}"))
        return self.found

    def hear(self, where: str, point: Array, duals: list[tuple[str, Array]]) -> None:
        """Take what the problem says of a point, and of dual points at it."""
        problem, name = self.instance.problem, self.instance.name
        if not (isinstance(point, np.ndarray) and point.shape == problem.point_shape and np.isfinite(point).all()):
            return
        try:
            repaired = problem.repair(point)
            again = problem.repair(repaired)
            claimed = float(problem.objective(repaired))
            self.claim(problem.dual_bound(repaired, None), f"the residuals at {where}")
            for what, dual in duals:
                self.claim(problem.dual_bound(repaired, dual), f"{what} at {where}")
                for products in (nullcontext(), compensated()):
                    with products:
                        certificate = problem.certify(Iterate(point, dual))
                    self.claim(certificate.dual, f"the certificate of {what} at {where}")
                    claimed = min(claimed, certificate.primal) if certificate.primal == certificate.primal else np.nan
        except Exception as error:
            self.found.append(Fault("raised", f"{name}: {type(error).__name__} at {where}: {error}"))
            return
        if not np.isfinite(repaired).all():
            self.found.append(Fault("infeasible", f"{name}: the repaired point at {where} is not finite"))
            return
        if not np.array_equal(repaired, again):
            self.found.append(Fault("moved", f"{name}: repairing the repaired point moves it at {where}"))
        place = exact(repaired)
        feasible = self.instance.reference.is_feasible(place)
        if feasible is False:
            self.found.append(Fault("infeasible", f"{name}: the repaired point at {where} is infeasible"))
        value = self.take(place, where) if feasible else self.instance.reference.at(place)
        if np.isnan(claimed) or (claimed < np.inf and (claimed == -np.inf or Fraction(claimed) < value.low)):
            short = float(value.low - Fraction(claimed)) if abs(claimed) < np.inf and value.low < Fraction(2) ** 1000 else np.inf
            self.found.append(Fault("objective", f"{name}: F is claimed to be {claimed!r}, which is {short:.1e} too little, at {where}"))

    def claim(self, bound: Any, where: str) -> None:
        value = float(bound)
        if np.isnan(value):
            self.found.append(Fault("bound", f"{self.instance.name}: {where} gives NaN"))
        else:
            self.bounds.append((value, where))

    def take(self, point: Exact, where: str) -> Enclosure:
        """Note a feasible point."""
        value = self.instance.reference.at(point)
        if self.best is None or value.high < self.best[0]:
            self.best = value.high, point, where
        return value

    def search(self, rng: np.random.Generator) -> None:
        """Look for a better feasible point: at corners, at exact solutions of equations, and between these and the best."""
        reference = self.instance.reference
        corners = reference.boundary
        some = [corners[i] for i in rng.permutation(len(corners))[:_CORNERS]]
        for point in (*some, *_solutions(reference, rng)):
            if reference.is_feasible(point):
                self.take(point, "a point found by exact search")
        for point in (*_solutions(reference, rng), *some[:_RETURNS]):
            assert self.best is not None
            for share in (Fraction(1, 8), Fraction(1, 2)):
                middle = self.best[1] + (point - self.best[1]) * share
                if reference.is_feasible(middle):
                    self.take(middle, "a point found by exact search")


def _solutions(reference: Reference, rng: np.random.Generator) -> Iterator[Exact]:
    """Yield points that fit some examples exactly, taken into the feasible set."""
    if isinstance(reference, Wealth):
        for _ in range(3):
            yield reference.shrunk(exact(rng.random(reference.shape)))
    if isinstance(reference, Regularised):
        tasks = reference.tasks
        yield reference.shrunk(reference.stacked(tasks.solved()))
        d = tasks.shape[0]
        for _ in range(3):
            chosen = [rng.permutation(len(y))[: int(rng.integers(1, d + 1))] for y in tasks.targets]
            rows = zip(tasks.designs, tasks.targets, chosen, strict=True)
            W = from_columns([interpolated(X[some], y[some]) or [Fraction(0)] * d for X, y, some in rows])
            yield reference.shrunk(reference.stacked(W))


def _points(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Yield the start and some of the other kinds of point."""
    shape = problem.point_shape
    yield "the start", problem.start_point()
    far = float(rng.choice(FAR))
    yield f"a random point of scale {far:.0e}", far * rng.standard_normal(shape)
    scales = (1.0, float(10.0 ** rng.uniform(-9, 9)), 1e17, 1e150)
    points = [(f"a random point of scale {scale:.0e}", scale * rng.standard_normal(shape)) for scale in scales]
    points += [("a point of whole numbers", rng.integers(-2, 3, size=shape).astype(float)), ("a subnormal point", np.full(shape, 5e-324))]
    yield from (points[i] for i in rng.permutation(len(points))[:_POINTS])


def _duals(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    shape = problem.dual_shape
    for scale in (1.0, float(10.0 ** rng.uniform(-9, 9)), float(rng.choice(FAR))):
        yield f"a random dual of scale {scale:.0e}", scale * rng.standard_normal(shape)
    signs = rng.choice([-1.0, 1.0], size=shape)
    yield "a huge dual", 1e300 * signs
    yield "a subnormal dual", 5e-324 * np.abs(signs)
    yield "ones", np.ones(shape)
    yield "a dual of whole numbers", rng.integers(-3, 4, size=shape).astype(float)
    yield "zeros", np.zeros(shape)


def _answers(problem: Problem, solver: IterativeSolver) -> Iterator[tuple[int, Iterate]]:
    """Yield iterates of a solver; none where it gives up on such data, which is not judged here."""
    try:
        for number, iterate in enumerate(islice(solver.steps(problem), _STEPS[-1]), start=1):
            if number in _STEPS:
                yield number, iterate
    except Exception:
        return
