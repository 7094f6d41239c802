"""What a cell of `chen-table4` computes: one run of PG or AG to the paper's stopping rule, or the race of its figure 6."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench_mtl import BenchError, Iterate, Problem, Status, TaskData, load, make_problem
from bench_mtl.runner import Found
from papers.chen.sparse_low_rank import PROBLEM
from papers.solve_to_gap import Enclosed, registry, solve_to_gap

SOLVERS = ("projected_gradient", "accelerated_gradient")
#: Proves the optimum that all others are measured against, to this relative gap.
REFERENCE, REFERENCE_GAP = "admm", 1e-10

#: Of a run that does not stop by itself; the paper's longest has 73134.
MOST_ITERATIONS = 100_000

#: PG stops at this change of the objective in figure 6, AG where it is as good.
RACE_CHANGE = 1e-5

#: The values of the stopping criterion in table IV.
CHANGES = tuple(float(f"1e-{power}") for power in range(1, 11))

#: Points of a course, at iterations that grow by this factor.
_GROWTH = 1.1

#: What `settings["solver"]` is of a cell that is the race.
RACE = "figure 6"

NORMALISATIONS = {
    "standardise, unit_rows": ["standardise", "unit_rows"],
    "standardise": ["standardise"],
    "unit_rows": ["unit_rows"],
    "none": [],
}


def data_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Scene, as `bench_mtl.data.load` takes it."""
    return {"name": "scene", "preprocess": NORMALISATIONS[settings["normalisation"]]}


class Variant(NamedTuple):
    """One reading of the paper; the features of Scene are taken as the file has them."""

    loss: str  # "sum" over the examples, or their "mean"; with 1/2 before the squares
    labels: str  # how a label that is absent and one that is present are coded
    mean: str  # "raw", or "centred": every feature and every task's labels have mean 0 over the examples

    @property
    def words(self) -> str:
        """Return it in short."""
        return ", ".join(self)

    @classmethod
    def of(cls, settings: Mapping[Any, Any]) -> Variant | None:
        """Return the reading of a cell, or of its row; None where it is one of the normalisations."""
        found = tuple(settings.get(name) for name in cls._fields)
        return cls(*map(str, found)) if all(isinstance(value, str) for value in found) else None

    def read(self, data: TaskData) -> TaskData:
        """Return data, of one design for all tasks and labels -1/+1, whose sum of squared errors is the loss of this reading.

        The mean of squares over n examples is their sum where features and labels are divided by the square root of n.
        """
        X, Y = np.asarray(data.design.block(0), dtype=np.float64), np.asarray(data.targets)
        Y = 0.5 * (Y + 1.0) if self.labels == "0/1" else Y
        if self.mean == "centred":
            X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        scale = 1.0 / np.sqrt(len(X)) if self.loss == "mean" else 1.0
        return TaskData.shared(scale * X, scale * Y, name=f"{data.name}, {self.words}")


VARIANTS = tuple(Variant(*each) for each in itertools.product(("sum", "mean"), ("-1/+1", "0/1"), ("raw", "centred")))


class _Run(NamedTuple):
    """A run until it stopped."""

    last: Iterate
    seconds: float
    by_rule: bool  # whether the rule stopped it, and not the limit
    course: list[Iterate]


def compute(settings: Mapping[str, Any], data_dir: Path | None) -> Found:
    """Iterations, seconds, and how far from the optimum the run stopped."""
    data = load(data_of(settings), data_dir=data_dir)
    variant = Variant.of(settings)
    data = data if variant is None else variant.read(data)
    problem = make_problem(registry().problem(PROBLEM), data, {"penalty": settings["gamma"], "radius": settings["tau"]})
    if variant is not None:
        return _counted(settings["solver"], problem)
    optimum = _optimum(problem)
    return _race(problem, optimum) if settings["solver"] == RACE else _stop(settings["solver"], settings["change"], problem, optimum)


def _stop(solver: str, change: float, problem: Problem, optimum: Enclosed) -> Found:
    """Return a run until one step changes the objective by less than `change`."""
    ran = _ran(solver, change, problem)
    certificate = problem.certify(ran.last)
    values = {
        "iterations": ran.last.step if ran.by_rule else None,
        "run_seconds": ran.seconds,
        "objective": certificate.primal,
        "proven_gap": certificate.relative_gap,
        "excess": _excess(certificate.primal, optimum),
        "optimum": optimum.objective,
    }
    reason = "stopped by the rule" if ran.by_rule else f"not stopped by the rule within {MOST_ITERATIONS} iterations"
    return Found(values, Status.INACCURATE, f"{reason}, relative gap {certificate.relative_gap:.1e} proven")


def _counted(solver: str, problem: Problem) -> Found:
    """Return the iterations until the rule stops, for one criterion after the other, up to the first that does not within the limit."""
    counts: list[int | None] = []
    for change in CHANGES:
        ran = _ran(solver, change, problem)
        if not ran.by_rule:
            break
        counts.append(ran.last.step)
    reason = f"stopped by the rule for {len(counts)} of {len(CHANGES)} criteria within {MOST_ITERATIONS} iterations"
    return Found({"counts": [*counts, *[None] * (len(CHANGES) - len(counts))]}, Status.INACCURATE, reason)


def _race(problem: Problem, optimum: Enclosed) -> Found:
    """PG until its rule stops it, then AG until it has an objective as low; both courses."""
    slow = _ran(SOLVERS[0], RACE_CHANGE, problem)
    goal = problem.objective(slow.last.primal)
    # Every step is handed over where products with X^T X are not taken, so that the first one as good is found.
    fast = registry().solver(SOLVERS[1], {"step_rule": "line_search", "gram": "never"})
    course, reached = [], None
    for iterate in fast.steps(problem):  # type: ignore[attr-defined] # an iterative solver
        objective = problem.objective(iterate.primal)
        course.append((iterate.step, objective))
        if objective <= goal:
            reached = iterate.step
        if objective <= goal or iterate.step >= MOST_ITERATIONS:
            break
    square = float((optimum.point**2).sum())
    values = {
        "pg_iterations": slow.last.step if slow.by_rule else None,
        "ag_iterations": reached,
        "goal": goal,
        "excess": _excess(goal, optimum),
        "optimum": optimum.objective,
        # The theorems bound F - F* by L ||T_0 - T*||^2 / (2 k), and by four times that over k (k + 2) or less.
        "rate": max(1.0, 2.0 * problem.lipschitz()) * square,
        "pg_steps": [iterate.step for iterate in slow.course],
        "pg_excess": [_excess(problem.objective(iterate.primal), optimum) for iterate in slow.course],
        "ag_steps": [course[place][0] for place in _places(len(course))],
        "ag_excess": [_excess(course[place][1], optimum) for place in _places(len(course))],
    }
    ended = slow.by_rule and reached is not None
    return Found(values, Status.INACCURATE, "both have ended by their rules" if ended else f"not ended within {MOST_ITERATIONS} iterations")


def _ran(name: str, change: float, problem: Problem) -> _Run:
    """Run algorithm 1 or 2 of the paper from zero, on a clock that nothing else counts on."""
    solver = registry().solver(name, {"step_rule": "line_search", "objective_change": change})
    problem.warm_up()
    next(itertools.islice(solver.steps(problem), 1, None), None)  # type: ignore[attr-defined] # which compiles what the steps call
    course: list[Iterate] = []
    started = time.perf_counter()
    for iterate in solver.steps(problem):  # type: ignore[attr-defined] # an iterative solver
        last = iterate
        if not course or iterate.step >= _GROWTH * course[-1].step:
            course.append(iterate)
        if iterate.step >= MOST_ITERATIONS:
            break
    seconds = time.perf_counter() - started
    return _Run(last, seconds, last.step < MOST_ITERATIONS, course if course[-1] is last else [*course, last])


def _optimum(problem: Problem) -> Enclosed:
    """Raises BenchError where it is not proven."""
    found = solve_to_gap(problem, REFERENCE, REFERENCE_GAP, 120.0)
    if found.status is not Status.VERIFIED:
        raise BenchError(f"{REFERENCE} has not proven the optimum: {found.reason}")
    return found


def _excess(objective: float, optimum: Enclosed) -> float:
    """Over the optimum, relative to it: proven, for the lower bound is taken."""
    return max(0.0, objective - optimum.bound) / abs(optimum.objective)


def _places(count: int) -> Iterator[int]:
    """0, 1, 2, ... up to count - 1, ever further apart."""
    place = 0
    while place < count - 1:
        yield place
        place = max(place + 1, int(place * _GROWTH))
    yield count - 1
