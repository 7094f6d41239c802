"""Fit a problem with a registered solver, by name, to a proven gap: what the estimators share."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.designs import Design, line_norms
from bench_mtl.core.errors import BenchError, InputError, plural
from bench_mtl.core.types import Array, Certificate, Iterate, Limits, Record, Sample, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.proofs import format_gap
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.regularisation_path import regularisation_path
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver

#: Losses of labels count as this share of those of the zero point at least, where the gap to prove is relative to them.
SEPARATED_SHARE = 1e-3

Preferred = Sequence[tuple[str, Mapping[str, Any]]]
"""Names and options of solvers, the best first."""

#: Columns of X that differ in size by more than this factor are told of where a fit does not come to its end.
_UNLIKE = 100.0
#: Columns of at most this share of the largest norm have no entries: bounds on norms of sparse ones are above 0.
_EMPTY = 1e-100
#: Classes of problems and solvers that have been warmed up.
_warm: set[type] = set()


@functools.cache
def installed() -> Registry:
    """Return all installed problems and solvers."""
    return load_registry()


class Solution(NamedTuple):
    """What a solver found."""

    point: Array
    dual: Array | None
    """The best dual point that the solver handed over, if any."""
    certificate: Certificate
    """The proven enclosure of the optimum."""
    is_met: bool
    """Whether that is within the tolerance."""
    message: str
    steps: int = 0
    """Iterations of the solver."""


class Progress(NamedTuple):
    """What a callback receives after a certificate."""

    iteration: int
    """Of the solver, over all solves of the fit."""
    seconds: float
    """On the solver's clock."""
    objective: float
    bound: float
    """A proven lower bound on the smallest objective."""
    gap: float
    """(objective - bound) / objective."""


Callback = Callable[[Progress], object]


@dataclass
class Budget:
    """What a fit may cost, over all of its solves."""

    iterations: int
    """Of the solver, at least one."""
    seconds: float | None
    """From now on, None for no limit: a solve may take, on the solver's own clock, what wall time has left of them when it begins."""
    steps: int = 0
    """Iterations so far."""
    _end: float = field(default=math.inf, init=False)

    def __post_init__(self) -> None:
        whole_number("max_iter", self.iterations, minimum=1)
        if self.seconds is not None:
            self._end = time.perf_counter() + real_number("max_seconds", self.seconds, strict=True)

    def limits(self) -> Limits:
        """Return what is left. (A solver always gets some time, so that it has an answer.)"""
        seconds = None if self.seconds is None else max(1e-3, self._end - time.perf_counter())
        return Limits(seconds=seconds, iterations=max(1, self.iterations - self.steps))

    @property
    def spent(self) -> str:
        """The limit that is reached, or nothing."""
        if self.steps >= self.iterations:
            return f"max_iter = {plural(self.iterations, 'solver iteration')}"
        return f"max_seconds = {self.seconds:g}" if time.perf_counter() >= self._end else ""


def solve(
    problem: Problem, solver: Solver, tolerance: float, budget: Budget, start: Iterate | None = None, callback: Callback | None = None
) -> Solution:
    """Run the solver until the relative gap is proven to be at most `tolerance`, or the budget is spent.

    An iterative solver begins at `start`; a one-shot solver does without. The callback is called with the progress after each certificate,
    and ends the solve where it returns True; what it raises is raised. Raises InputError: the solver does not fit the problem; BenchError:
    the solver fails.
    """
    raised = list[Exception]()

    def show(sample: Sample) -> bool:
        at = sample.certificate
        try:
            progress = Progress(budget.steps + sample.step, sample.seconds, at.primal, at.dual, at.relative_gap)
            is_enough = callback is not None and callback(progress)
        except Exception as error:  # which is no failure of the solver
            raised.append(error)
        return bool(raised) or (isinstance(is_enough, (bool, np.bool_)) and bool(is_enough))

    options: dict[str, Any] = {"tolerance": tolerance_of(problem, tolerance), "limits": budget.limits(), "on_sample": show}
    record = run(problem, solver, start=start if isinstance(solver, IterativeSolver) else None, **options)
    if raised:
        raise raised[0]
    solution = _solution(record, solver)
    budget.steps += solution.steps
    return solution


def solve_path(
    make_problem: Callable[[float], Problem], values: Sequence[float], solver: Solver, tolerance: float, limits: Limits
) -> dict[float, Solution]:
    """Solve `make_problem(value)` for every value, each from its neighbour's solution, and certify each, see `regularisation_path`.

    The tolerance and the limits are those of every single solve; errors are those of `solve`.
    """
    points = regularisation_path(make_problem, values, solver, tolerance=tolerance_of(make_problem(values[0]), tolerance), limits=limits)
    return {point.value: _solution(point.record, solver) for point in points}


def tolerance_of(problem: Problem, relative_gap: float) -> Tolerance:
    """Return the gap to prove. Losses of labels that are as good as 0 need not be known as well as others."""
    is_of_labels = getattr(getattr(problem, "loss", None), "is_of_labels", False)
    return Tolerance(relative_gap, SEPARATED_SHARE) if is_of_labels else Tolerance(relative_gap)


def _solution(record: Record, solver: Solver) -> Solution:
    if record.status is Status.SKIPPED:
        raise InputError(f"solver: {record.reason}")
    if record.solution is None or (record.status.is_failure and record.status is not Status.WRONG):
        raise BenchError(f"solver '{solver.label}' failed: {record.status}, {record.reason}")
    assert record.best is not None
    steps = record.samples[-1].step if isinstance(solver, IterativeSolver) else 1
    return Solution(record.solution, record.dual, record.best, record.status is Status.VERIFIED, record.reason, steps)


def solver_for(problem: Problem, name: str | None, options: Mapping[str, Any] | None, preferred: Preferred) -> Solver:
    """Return the solver that the user has named, or else the first of the preferred ones that can take the problem.

    Raises InputError: an unknown solver or option, options without a name or that are no mapping, no solver for the problem.
    """
    if name is not None:
        return _registered(name, options)
    if options is not None:
        raise InputError("solver_options are those of a solver, but solver is None")
    solvers = (_registered(each, its) for each, its in preferred if each in installed().solvers)
    fitting = next((solver for solver in solvers if solver.incompatibility(problem) is None), None)
    if fitting is None:
        raise InputError(f"none of the solvers {', '.join(each for each, _ in preferred)} takes this problem: name one as solver")
    return fitting


def _registered(name: str, options: Mapping[str, Any] | None) -> Solver:
    if not isinstance(name, str):
        raise InputError("solver", name, "the name of a registered solver")
    if options is not None and not isinstance(options, Mapping):
        raise InputError("solver_options", options, "a mapping of names to values")
    return installed().solver(name, options)


def warm_up(*parts: Any) -> None:
    """Compile, or load, what a fit with these is to run: `warm_up` of each, unless another of its class has been warmed up before."""
    for part in parts:
        kind = part if isinstance(part, type) else type(part)
        if kind not in _warm:
            part.warm_up()
            _warm.add(kind)


def scaling_advice(design: Design) -> str:
    """Return what to tell of a fit that did not come to its end where columns of X are of unlike size; nothing elsewhere."""
    if design.is_in_shards:
        return ""
    norms = np.max([line_norms(design.block(k), 0) for k in range(1 if design.is_shared else design.n_tasks)], axis=0)
    sizes = norms[norms > _EMPTY * norms.max(initial=0.0)]
    if len(sizes) == 0 or not np.isfinite(sizes).all() or sizes.max() <= _UNLIKE * sizes.min():
        return ""
    ratio, scaler = sizes.max() / sizes.min(), "MaxAbsScaler" if design.is_sparse else "StandardScaler"
    return f"; columns of X differ in size by a factor of {ratio:.0e}, and scikit-learn's {scaler} before the fit helps"


@contextmanager
def whole_or_as_before(model: Any) -> Iterator[None]:
    """Give a model the attributes back that it has now where the body, a fit, raises: half of them would be of another fit."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def warn_unproven(gap: float, tol: float, message: str) -> None:
    """Warn who called the fit (`ConvergenceWarning`) that it ended before its gap was proven, with the gap where the message lacks it."""
    if f"(target {tol:g})" not in message:
        reached = f"proven relative gap {format_gap(gap)}, {f'above tol = {tol:g}' if gap > tol else 'but it covers too little'}"
        message = f"{reached}: {message}"
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
