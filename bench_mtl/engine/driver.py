"""Runs one solver on one problem in this process: owns the clock, samples, certifies, stops, judges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.types import Array, Certificate, Iterate, Limits, Record, Sample, Status, Times, Tolerance
from bench_mtl.engine.clock import Clock, Deadline, timed
from bench_mtl.model.protocols import Capability, IterativeSolver, OneShotSolver, Problem, Solver

#: Iterates are certified at steps that grow by this factor: a curve of about 250 points over five decades.
SAMPLE_GROWTH = 1.05
#: They are also certified at every step that costs at least this many passes over the data; a certificate takes one or two.
_EXPENSIVE = 8.0

#: A claim of optimality is refuted by a feasible point that is better by more than this share of its objective ...
REFUTING_SHARE = 1e-2
#: ... and by more than this many tolerances of the problem's scale, so that what a loose tolerance allows is no lie.
REFUTING_TOLERANCES = 10.0
#: Or by a violation of the constraint beyond this share and beyond this many tolerances.
REFUTING_INFEASIBILITY, REFUTING_INFEASIBILITY_TOLERANCES = 1e-2, 100.0

#: A lower bound above the objective by more than this share is no rounding: the problem's bound is wrong.
CONTRADICTION = 1e-9

#: Characters of an exception's message that are kept.
_LONGEST_REASON = 1000

#: Of a point: how many measures, and characters of a name.
_MOST_MEASURES, _LONGEST_NAME = 50, 100

#: What no solver yields.
_END: Any = object()

Measures: TypeAlias = tuple[tuple[str, float], ...]

OnSample = Callable[[Sample], None]
OnPhase = Callable[[str, float], None]


def run(
    problem: Problem,
    solver: Solver,
    *,
    tolerance: Tolerance | None = None,
    limits: Limits | None = None,
    start: Array | Iterate | None = None,
    on_sample: OnSample | None = None,
    on_phase: OnPhase | None = None,
    deadline: Deadline | None = None,
    warmed: bool = False,
) -> Record:
    """Run `solver` on `problem` until the gap is proven to `tolerance` or a limit is reached.

    Parameters
    ----------
    tolerance : the relative gap to prove; 1e-6 by default
    limits : on the solver's own clock; 60 s by default. For a one-shot solver the seconds hold for each of its
        tolerances; iterations and work are for iterative solvers.
    start : a point to start from, for iterative solvers, projected onto the feasible set; an `Iterate` is handed to the
        solver's `resume` with its dual point
    on_sample : called with every certified sample as it is made
    on_phase : called with "warm_up" and its seconds when the run proper begins, and with "build" or "compile" when that phase of a
        one-shot solver is over
    deadline : where to publish the time at which a watcher should kill this process
    warmed : whether a problem of this class has been warmed up in this process already, which a large one need not be again

    Returns
    -------
    Record
        Always: a solver that raises, lies or does not fit gives a record with that status.

    Raises
    ------
    InputError : `start` does not fit the problem. What a solver raises is never passed on.
    """
    tolerance, limits = tolerance or Tolerance(), limits or Limits()
    try:
        reason = solver.incompatibility(problem)
    except (Exception, SystemExit) as error:
        return Record(Status.ERROR, describe(error))
    if reason is not None:
        return Record(Status.SKIPPED, str(reason) or f"{solver.label} does not fit, and does not say why")
    if start is not None:
        problem.certify(start if isinstance(start, Iterate) else Iterate(start))
    session = _Session(problem, tolerance, limits, on_sample or _ignore, on_phase or _ignore, deadline)
    try:
        warming: dict[str, float] = {}
        with timed(warming, "warm_up"):
            if not warmed:
                problem.warm_up()
        session.on_phase(*warming.popitem())
        if isinstance(solver, IterativeSolver):
            return _run_iterative(session, solver.aimed_at(tolerance.relative_gap), start)
        if isinstance(solver, OneShotSolver):
            if start is not None:
                return Record(Status.SKIPPED, f"{solver.label} is a one-shot solver and cannot start from a given point")
            return _run_one_shot(session, solver)
    except MemoryError as error:
        return session.record(Status.MEMORY, f"out of memory: {error}")
    except (Exception, SystemExit) as error:
        return session.record(Status.ERROR, describe(error))
    return Record(Status.ERROR, f"{type(solver).__name__} is neither an IterativeSolver nor a OneShotSolver")


def describe(error: BaseException) -> str:
    """An exception in one line, which is not endless."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception that cannot say what it is
        text = ""
    if len(text) > _LONGEST_REASON:
        text = f"{text[:_LONGEST_REASON]} ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _ignore(*_: Any) -> None:
    """For callbacks that nobody gave."""


@dataclass
class _Session:
    """What one run gathers on its way to a record."""

    problem: Problem
    tolerance: Tolerance
    limits: Limits
    on_sample: OnSample
    on_phase: OnPhase
    deadline: Deadline | None
    samples: list[Sample] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    best_point: Array | None = None
    best_primal: float = math.inf
    best_dual_point: Array | None = None
    best_dual: float = -math.inf
    scale: float = 0.0
    """The problem's own, in units of the objective."""
    clock: Clock | None = None
    """The clock of an iterative solver; the time it has counted is the solve time."""

    def __post_init__(self) -> None:
        self.scale = self.problem.scale()

    def certify(self, iterate: Iterate) -> tuple[Certificate, Measures]:
        """The problem's verdict on an iterate and its measures of the repaired point, off the solver's clock; keeps the best points."""
        with timed(self.seconds, "certify"):
            verdict, repaired = self.problem.certify_repaired(iterate)
            certificate = Certificate(*map(float, verdict))
            if not all(math.isfinite(value) for value in certificate[:3]):
                raise InputError(f"the certificate at step {iterate.step} is not finite: {certificate}")
            if -certificate.gap > CONTRADICTION * max(abs(certificate.primal), self.scale):
                raise InputError(
                    f"the certificate at step {iterate.step} contradicts itself, which the problem is at fault for: {certificate}"
                )
            if certificate.primal < self.best_primal:
                self.best_primal = certificate.primal
                self.best_point = np.array(iterate.primal)
            if iterate.dual is not None and certificate.dual > self.best_dual:
                self.best_dual = certificate.dual
                self.best_dual_point = np.array(iterate.dual)
            # Last, for what a problem does with the point is its own affair.
            return certificate, _measured(self.problem.measures(repaired))

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.on_sample(sample)

    def record(self, status: Status, reason: str) -> Record:
        if self.clock is not None:
            self.seconds["solve"] = self.clock.elapsed
        solution = None if self.best_point is None else self.problem.repair(self.best_point)
        info = tuple(self.info.items())
        return Record(status, reason, tuple(self.samples), Times(**self.seconds), solution, info, dual=self.best_dual_point)


def _run_iterative(session: _Session, solver: IterativeSolver, start: Array | Iterate | None) -> Record:
    limits, problem = session.limits, session.problem
    clock = session.clock = Clock(limits.seconds, session.deadline)
    enclosure: Certificate | None = None
    unsampled: Iterate | None = None
    next_step, before = 0, None
    with clock.running():
        steps = solver.resume(problem, start) if isinstance(start, Iterate) else solver.steps(problem, start)

    def sample(iterate: Iterate) -> bool:
        """Certify, tighten the proven enclosure, and tell whether the target is met."""
        nonlocal enclosure
        certificate, measures = session.certify(iterate)
        enclosure = certificate if enclosure is None else enclosure.tightened(certificate)
        session.add(Sample(clock.elapsed, *_counts(iterate), enclosure, measures=measures))
        return session.tolerance.met_by(enclosure, session.scale)

    while True:
        with clock.running():
            iterate: Any = next(steps, _END)
        if iterate is not _END and not isinstance(iterate, Iterate):
            raise InputError(f"a solver must yield Iterate, not {type(iterate).__name__}")
        if iterate is not _END and iterate.note:
            session.info["note"] = str(iterate.note)[:_LONGEST_REASON]
        if iterate is _END:
            reached = unsampled is not None and sample(unsampled)
            return _iterative_record(session, reached, "the solver ended by itself")
        stop = _limit_reached(limits, clock, iterate)
        unsampled, expensive, before = iterate, is_expensive(iterate, before), iterate
        if stop is None and iterate.step < next_step and not expensive:
            continue
        unsampled = None
        next_step = max(iterate.step + 1, math.ceil(iterate.step * SAMPLE_GROWTH))
        if sample(iterate):
            return _iterative_record(session, True, "")
        if stop is not None:
            return session.record(Status.TIMEOUT if clock.is_spent else Status.INACCURATE, f"{stop}, {_gap_reached(session)}")


def is_expensive(iterate: Iterate, before: Iterate | None) -> bool:
    """Whether the steps since the iterate before cost so much each that looking at every one hardly adds to it."""
    return before is not None and iterate.work - before.work >= _EXPENSIVE * max(1, iterate.step - before.step)


def _measured(measures: Mapping[str, float]) -> Measures:
    """What a problem measures, as what a row can hold."""
    if len(measures) > _MOST_MEASURES:
        raise InputError(f"measures: at most {_MOST_MEASURES} are kept, but the problem has {len(measures)}")
    return tuple((_name(name), _value(name, value)) for name, value in measures.items())


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.strip()) == len(name) <= _LONGEST_NAME:
        raise InputError(f"measures: a name must be a line of 1 to {_LONGEST_NAME} characters, not {str(name)[:_LONGEST_NAME]!r}")
    return str(name)


def _value(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"measures: '{name}' must be a finite number, not {str(value)[:_LONGEST_NAME]}")
    return float(value)


def _counts(iterate: Iterate) -> tuple[int, float]:
    """Steps and work as numbers that a row can hold."""
    step, work = int(iterate.step), float(iterate.work)
    if not 0 <= step < 2**63 or not (math.isfinite(work) and work >= 0.0):
        raise InputError(f"steps and work of an iterate must be finite and at least 0, not {iterate.step} and {iterate.work}")
    return step, work


def _finite(seconds: float) -> float:
    """Return the seconds of set-up that a solver states; 0 where it does not know them."""
    return float(seconds) if math.isfinite(seconds) else 0.0


def _limit_reached(limits: Limits, clock: Clock, iterate: Iterate) -> str | None:
    """The sentence of the first limit that is reached, time first."""
    if clock.is_spent:
        return f"time limit of {limits.seconds:g} s"
    if limits.iterations is not None and iterate.step >= limits.iterations:
        return f"limit of {plural(limits.iterations, 'iteration')}"
    if limits.work is not None and iterate.work >= limits.work:
        return f"limit of {limits.work:g} passes over the data"
    return None


def _iterative_record(session: _Session, reached: bool, otherwise: str) -> Record:
    if reached:
        return session.record(Status.VERIFIED, _gap_reached(session))
    if not session.samples:
        return session.record(Status.ERROR, "the solver yielded no iterate")
    return session.record(Status.INACCURATE, f"{otherwise}, {_gap_reached(session)}")


def _gap_reached(session: _Session) -> str:
    if not session.samples:
        return "nothing proven but the zero point"
    gap = min(sample.certificate.relative_gap for sample in session.samples)
    return f"relative gap {gap:.1e} proven (target {session.tolerance.relative_gap:g})"


def _run_one_shot(session: _Session, solver: OneShotSolver) -> Record:
    """Climb the ladder of tolerances, loose to tight, until one is proven or out of time."""
    with timed(session.seconds, "build"):
        model = solver.build(session.problem)
    session.on_phase("build", session.seconds["build"])
    with timed(session.seconds, "compile"):
        program = solver.compile(model)
    session.on_phase("compile", session.seconds["compile"])
    failure = refutation = None
    for tolerance in solver.tolerances:
        clock = Clock(session.limits.seconds, session.deadline)
        with clock.running():
            answer = solver.solve(program, tolerance, session.limits.seconds)
        setup = min(max(0.0, _finite(answer.setup_seconds)), clock.elapsed)
        # The row keeps the times of the last tolerance tried; each sample has its own.
        session.seconds |= {"setup": setup, "solve": clock.elapsed - setup}
        session.info |= dict(answer.info)
        if answer.iterate is None:
            failure = f"at tolerance {tolerance:g}: {answer.message}"
            if answer.out_of_time or clock.is_spent:
                return session.record(Status.TIMEOUT, f"{failure}, {_gap_reached(session)}")
            continue
        earlier_best = session.best_primal
        certificate, measures = session.certify(answer.iterate)
        session.add(Sample(clock.elapsed - setup, *_counts(answer.iterate), certificate, tolerance, measures))
        if session.tolerance.met_by(certificate, session.scale):
            return session.record(Status.VERIFIED, f"{_gap_reached(session)} at tolerance {tolerance:g}")
        # A claim that a tighter tolerance makes good was only loose; the last one has to stand.
        refutation = _refute(session, answer.iterate, certificate, tolerance, earlier_best) if answer.claims_optimal else None
        if answer.out_of_time or clock.is_spent:
            return session.record(Status.TIMEOUT, f"time limit at tolerance {tolerance:g}, {_gap_reached(session)}")
    if not session.samples:
        return session.record(Status.ERROR, failure or "the solver has no tolerance to try")
    if refutation is not None:
        return session.record(Status.WRONG, refutation)
    ending = f"; {failure}" if failure else ""
    return session.record(Status.INACCURATE, f"all tolerances tried, {_gap_reached(session)}{ending}")


def _refute(session: _Session, iterate: Iterate, certificate: Certificate, tolerance: float, known: float) -> str | None:
    """Evidence against a claim of optimality, or None.

    A large gap alone is no evidence, for the dual point may be at fault. A better feasible point is: one found at an
    earlier tolerance (objective `known`), or one gradient step with a line search away.
    """
    allowed = max(REFUTING_INFEASIBILITY, REFUTING_INFEASIBILITY_TOLERANCES * tolerance)
    if certificate.infeasibility > allowed:
        return f"claims optimal at tolerance {tolerance:g}, but its point violates the constraint by {certificate.infeasibility:.1e}"
    better = min(known, _descend(session.problem, session.problem.repair(np.array(iterate.primal))))
    lead = certificate.primal - better
    if lead > REFUTING_SHARE * abs(better) and lead > REFUTING_TOLERANCES * tolerance * session.scale:
        values = f"its objective is {certificate.primal:.6g} and a feasible point has {better:.6g}"
        return f"claims optimal at tolerance {tolerance:g}, but {values}"
    return None


def _descend(problem: Problem, point: Array) -> float:
    """The lowest objective along one proximal (sub)gradient step from a feasible point, over sizes of 20 decades."""
    if Capability.PROX not in problem.offers:
        return math.inf
    if Capability.SMOOTH in problem.offers:
        gradient = problem.value_and_gradient(point)[1]
    elif Capability.SUBGRADIENT in problem.offers:
        gradient = problem.value_and_subgradient(point)[1]
    else:
        return math.inf
    size = float(np.abs(gradient).max(initial=0.0))
    if size == 0.0:
        return math.inf
    sizes = (10.0**exponent / size for exponent in range(-10, 11))
    return min(problem.objective(problem.repair(problem.prox(point - step * gradient, step))) for step in sizes)
