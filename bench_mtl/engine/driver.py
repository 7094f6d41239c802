"""Runs one solver on one problem in this process: owns the clock, samples, certifies, stops, judges.

Solver and driver share a process here, so a solver that means to can change the driver itself: its clock, its problem, its judgement. A
row of a suite therefore counts only what another process has certified again (`bench_mtl.runner.certifier`).
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from numbers import Real
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from bench_mtl.core.compilation import compiling_seconds
from bench_mtl.core.device_moves import Moved, moved
from bench_mtl.core.errors import IncompleteError, InputError, plural
from bench_mtl.core.text import encodable
from bench_mtl.core.types import Array, Certificate, Ending, Iterate, Limits, Place, Proof, Record, Rung, Sample, Status, Times, Tolerance
from bench_mtl.engine.arguments import a_problem, a_solver, a_tolerance, the_limits
from bench_mtl.engine.clock import Clock, Deadline, timed
from bench_mtl.engine.places import packages_of, places_of
from bench_mtl.engine.proofs import (
    RUNGS,
    certified,
    certify_proof,
    contradiction,
    explicit,
    format_gap,
    is_spoilt,
    passed,
    proven_gap,
    real_array,
    sharpened,
)
from bench_mtl.engine.rehearsal import rehearse, touch_memory
from bench_mtl.engine.stopping import BySteps, ByWork, StoppingRule
from bench_mtl.model.protocols import Answer, Capability, IterativeSolver, OneShotSolver, Problem, Solver

#: A claim of optimality is refuted by a feasible point that is better by more than this share of its objective ...
REFUTING_SHARE = 1e-2
#: ... and by more than this many tolerances of the problem's scale, so that what a loose tolerance allows is no lie.
REFUTING_TOLERANCES = 10.0
#: Or by a violation of the constraint beyond this share and beyond this many tolerances.
REFUTING_INFEASIBILITY, REFUTING_INFEASIBILITY_TOLERANCES = 1e-2, 100.0

#: A solver may look at the problem for this long before it says that it fits, seconds; what it takes more is on its clock.
FREE_LOOK_SECONDS = 0.05

#: How a run ends that only rounding keeps from its target.
ROUNDING_SENTENCE = "rounding allows no tighter proof on these data"

#: A gap that has become narrower by less than this share has hardly become so; nobody has stalled within so few steps.
_NARROWED, _FEW_STEPS = 0.01, 50

#: A one-shot solver that misses a target by at most the first factor is asked for a tolerance tighter by the second next, unless the next
#: one of its ladder is about as close: near a target its ladder has half decades, very near it quarters of one.
NEAR_MISSES = ((10.0**0.25, 10.0**0.25), (10.0, 10.0**0.5))
_ABOUT = 0.01

#: Characters of an exception's message that are kept.
_LONGEST_REASON = 1000

#: Of a point: how many measures, and characters of a name.
_MOST_MEASURES, _LONGEST_NAME = 50, 100

#: How a run ends that whoever is shown its samples has ended.
_ENOUGH = "the callback ended it"

#: What no solver yields.
_END: Any = object()

Measures: TypeAlias = tuple[tuple[str, float], ...]

OnSample = Callable[[Sample], object]
OnBegin = Callable[[str, float | None], None]
OnPhase = Callable[[str, float], None]
OnRung = Callable[[Rung], None]
OnProof = Callable[[Proof, bool], None]
OnIterate = Callable[[Iterate], None]


def run(
    problem: Problem,
    solver: Solver | str,
    *,
    tolerance: Tolerance | float | None = None,
    limits: Limits | float | None = None,
    start: Array | Iterate | None = None,
    on_sample: OnSample | None = None,
    on_begin: OnBegin | None = None,
    on_phase: OnPhase | None = None,
    on_rung: OnRung | None = None,
    on_proof: OnProof | None = None,
    on_iterate: OnIterate | None = None,
    known: Proof | None = None,
    targets: tuple[float, ...] = (),
    tolerances: tuple[float, ...] = (),
    traced: bool = False,
    deadline: Deadline | None = None,
    looked: float = 0.0,
    records_incomplete: bool = False,
) -> Record:
    """Run `solver` on `problem` until the gap is proven to `tolerance` or a limit is reached.

    The time of an iterative solver is what its user waits for: set-up, steps and stopping tests, the last of which is a rigorous
    certificate. A traced run makes a curve instead: it certifies many iterates, with the clock stopped.

    Parameters
    ----------
    solver : a solver, or the name or an alias of one with its default options (`bench-mtl list solvers`)
    tolerance : the relative gap to prove; 1e-6 by default
    limits : on the solver's own clock, a number is seconds; 60 s by default. For a one-shot solver the seconds hold for each of its
        tolerances; iterations and work are for iterative solvers.
    start : a point to start from, for iterative solvers, projected onto the feasible set; an `Iterate` is handed to the
        solver's `resume` with its dual point and its state, and steps and work go on from its own
    on_sample : called with every certified sample as it is made; where it returns True the run ends with what it has
    on_begin : called with "build", "compile" or "solve" when a one-shot solver begins with that, with the tolerance it is asked for then
    on_phase : called with "warm_up" and its seconds when the run proper begins, and with "build" or "compile" when that phase of a
        one-shot solver is over
    on_rung : called with what became of each tolerance of a one-shot solver
    on_proof : called before `on_sample` with what proves the enclosure of a sample that tightens it, and whether that is the first to
        prove a decade or a target, or an answer of a one-shot solver; once more at the end, with what the record keeps
    on_iterate : called with every iterate of an iterative solver, its state included, off its clock, once it is certified where that is
        due; not with one that proves the target
    known : what an earlier run has proven, of an iterative solver. It is certified anew, and is what is proven before the first iterate
    targets : relative gaps whose first proof matters besides the decades and the tolerance
    tolerances : what a one-shot solver is asked for; its own ladder by default
    traced : whether an iterative solver is run for its curve
    deadline : where to publish the time at which a watcher should kill this process
    looked : seconds that the solver has had the problem for already, to be charged
    records_incomplete : whether an `IncompleteError` is a record of status error like any other exception, as where a case has a row

    Returns
    -------
    Record
        A solver that raises, lies or does not fit gives a record with that status. That holds for whatever it raises but an
        `IncompleteError`, a KeyboardInterrupt of its own included; `places` of the record says where.

    Raises
    ------
    InputError : an argument of another type, a solver of no such name, `start` or `known` does not fit the problem. What a solver raises
        is never passed on, with one exception:
    IncompleteError : the problem or the solver cannot go on through no fault of theirs, as where the cluster that they compute on is
        gone; not with `records_incomplete`.
    KeyboardInterrupt : the user has interrupted, as the signal's handler has reported; not where a solver raises it.
    """
    problem, solver = a_problem(problem), a_solver(solver)
    tolerance, limits = a_tolerance(tolerance), the_limits(limits)
    passed_on = () if records_incomplete else IncompleteError
    with _telling_interrupts_apart():
        if start is not None:
            point, dual = problem.require_fitting(start if isinstance(start, Iterate) else Iterate(start))
            start = start._replace(primal=point, dual=dual) if isinstance(start, Iterate) else point
        if known is not None:
            for point in (known.point, known.point if known.bound_point is None else known.bound_point):
                problem.require_fitting(Iterate(point, known.dual))
        rungs = tuple(sorted({*RUNGS, *targets, tolerance.relative_gap}, reverse=True))
        tell = on_sample or _ignore, on_begin or _ignore, on_phase or _ignore, on_rung or _ignore, on_proof or _ignore
        session = _Session(problem, tolerance, limits, *tell, deadline, rungs, targets, tolerances, looked, traced, known, on_iterate)
        try:
            if (sentence := _misfit(session, solver)) is not None:
                return Record(Status.SKIPPED, sentence)
            return _run(session, solver, start)
        except passed_on:
            raise
        except MemoryError as error:
            return session.record(Status.MEMORY, f"out of memory: {error}")
        except BaseException as error:
            return session.record(Status.ERROR, describe(error), places_of(error, packages_of(type(problem), type(solver)), session.steps))


def _misfit(session: _Session, solver: Solver) -> str | None:
    """Return why the solver cannot take the problem, as it says itself; a long look at that is charged."""
    look, compiled = dict[str, float](), compiling_seconds()
    with timed(look, "look"):
        reason = solver.incompatibility(session.problem)
        sentence = None if reason is None else str(reason) or f"{solver.label} does not fit, and does not say why"
    # The runner has asked already; the longer of both is charged once.
    session.charged = max(0.0, max(session.charged, look["look"] - (compiling_seconds() - compiled)) - FREE_LOOK_SECONDS)
    return sentence


def _run(session: _Session, solver: Solver, start: Array | Iterate | None) -> Record:
    session.sent_before, session.moved_before = session.problem.traffic(), moved()
    warming: dict[str, float] = {}
    compiled = compiling_seconds()
    with timed(warming, "warm_up"):
        clock = Clock(session.limits.seconds, session.deadline)
        session.is_fork = rehearse(session.problem, solver, session.tolerance.relative_gap, clock)
        if session.is_fork:
            touch_memory()
    if isinstance(solver, IterativeSolver):
        session.seconds["compile"] = compiling_seconds() - compiled
        session.on_phase("compile", session.seconds["compile"])
    session.on_phase(*warming.popitem())
    if isinstance(solver, IterativeSolver):
        return _run_iterative(session, solver, start)
    if isinstance(solver, OneShotSolver):
        if start is not None:
            return Record(Status.SKIPPED, f"{solver.label} is a one-shot solver and cannot start from a given point")
        return _run_one_shot(session, solver)
    return Record(Status.ERROR, f"{type(solver).__name__} is neither an IterativeSolver nor a OneShotSolver")


@contextmanager
def _telling_interrupts_apart() -> Iterator[None]:
    """Pass on a KeyboardInterrupt of the user, even one that the body has caught; one that a solver raises itself is no interrupt.

    What tells them apart is that the first comes out of the handler of a signal, which Python runs in the main thread alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    kinds = (signal.SIGINT, signal.SIGTERM) if is_main else ()  # of both the command makes interrupts
    handlers: dict[int, Callable[[int, Any], Any]] = {kind: handler for kind in kinds if callable(handler := signal.getsignal(kind))}
    raised = False

    def heard(number: int, frame: Any) -> None:
        nonlocal raised
        try:
            handlers[number](number, frame)
        except KeyboardInterrupt:
            raised = True
            raise

    for number in handlers:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if raised:
            raise KeyboardInterrupt


def describe(error: BaseException) -> str:
    """An exception in one line, which is not endless."""
    try:
        text = encodable(" ".join(str(error).split()))
    except BaseException:  # an exception that cannot say what it is
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
    on_begin: OnBegin
    on_phase: OnPhase
    on_rung: OnRung
    on_proof: OnProof
    deadline: Deadline | None
    rungs: tuple[float, ...]
    """Relative gaps, loose to tight, for which the first proof is shown."""
    targets: tuple[float, ...]
    tolerances: tuple[float, ...]
    charged: float
    """Seconds that the solver has spent on the problem before its clock ran."""
    traced: bool
    known: Proof | None = None
    on_iterate: OnIterate | None = None
    is_fork: bool = False
    """Whether the process shares its memory with another one."""
    is_enough: bool = False
    """Whether whoever is shown the samples wants no more of them."""
    samples: list[Sample] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    scale: float = 0.0
    """The problem's own, in units of the objective."""
    clock: Clock | None = None
    """The clock of an iterative solver; the time it has counted is the solve time."""
    counted: float = 0.0
    """Seconds on clocks that have stopped for good, and of phases that are over."""
    asked: list[Rung] = field(default_factory=list)
    """What a one-shot solver was asked for."""
    enclosure: Certificate | None = None
    """The best of all certificates."""
    _best: Proof | None = None
    """The points that give it; a dual point without another point is of the iterate that gave the bound."""
    _passed: int = 0
    _spoilt: int = 0
    """How many samples missed the target by rounding alone."""
    _is_spoilt: bool = False
    """Whether it still does when products are compensated."""
    steps: Iterator[Iterate] | None = None
    """What the iterates of an iterative solver come from."""
    untested: Iterate | None = None
    """The last of them, unless it has been certified."""
    first: Iterate | None = None
    """The one that a run was asked to begin at: what it ends with is no worse."""
    sent_before: Mapping[str, int] = field(default_factory=dict)
    """What the operators had sent between processes before the run."""
    moved_before: Moved = field(default_factory=moved)
    """What had been moved to other devices before the run."""

    def certify(self, iterate: Iterate) -> tuple[Certificate, Array]:
        """The problem's verdict on an iterate, and its repaired point; keeps the best points.

        Raises InputError where the iterate cannot be certified, or the problem contradicts itself.
        """
        primal = np.array(iterate.primal)  # nobody else has it, so that it stays what it is
        dual = None if iterate.dual is None else np.array(iterate.dual)
        certificate, repaired = certified(self.problem, Iterate(primal, dual))
        before = self.enclosure
        enclosure = certificate if before is None else before.tightened(certificate)
        if (found := contradiction(self.problem, enclosure, self.scale)) is not None:
            raise InputError(f"{found} (step {iterate.step})")
        best = self._best or Proof(repaired, dual)
        if before is not None and certificate.primal < before.primal:
            best = Proof(repaired, best.dual, best.point if best.bound_point is None else best.bound_point)
        if before is not None and certificate.dual > before.dual:
            best = Proof(best.point, dual, None if best.point is repaired else repaired)
        self.enclosure, self._best = enclosure, best
        return certificate, repaired

    def measures(self, repaired: Array) -> Measures:
        """Return what the problem measures of a repaired point, as what a row can hold: on no clock, and after its certificate.

        Raises InputError for a measure that no row can hold.
        """
        with timed(self.seconds, "certify"):
            measures = self.problem.measures(repaired)
        if len(measures) > _MOST_MEASURES:
            raise InputError(f"measures: at most {_MOST_MEASURES} are stored, but the problem has {len(measures)}")
        for name, value in measures.items():
            if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.strip()) == len(name) <= _LONGEST_NAME:
                raise InputError(f"measures: a name must be a line of 1 to {_LONGEST_NAME} characters, not {str(name)[:_LONGEST_NAME]!r}")
            if not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(f"measures: '{name}' must be a finite number, not {str(value)[:_LONGEST_NAME]}")
        return tuple((str(name), float(value)) for name, value in measures.items())

    def test(self, iterate: Iterate, rule: StoppingRule) -> bool:
        """Certify an iterate of an iterative solver, and tell whether the target is proven: on its clock unless it is run for its curve.

        Where the time is spent the last iterate is certified all the same, to say how far the solver has come.
        """
        clock, enclosed, self.untested = self.clock, self.enclosure, None
        assert clock is not None
        with nullcontext() if self.traced else clock.running(to_deadline=not clock.is_spent):
            began = perf_counter() - compiling_seconds()
            certificate, repaired = self.certify(iterate)
            is_proven = self.proves_target(certificate)
            cost = perf_counter() - compiling_seconds() - began
        assert self.enclosure is not None
        self.seconds["certify" if self.traced else "test"] = self.seconds.get("certify" if self.traced else "test", 0.0) + cost
        rule.note(iterate, self.enclosure.relative_gap)
        measures = self.measures(repaired)
        if not math.isfinite(self.enclosure.gap):
            return False
        enclosure = self.enclosure._replace(infeasibility=certificate.infeasibility)
        if enclosed is None or enclosure[:2] != enclosed[:2]:
            self.show_proof()
        counted = clock.elapsed + clock.compiling
        self.add(Sample(clock.elapsed, iterate.step, iterate.work, enclosure, measures=measures, counted=counted))
        return is_proven

    def begin_with(self, known: Proof) -> Certificate:
        """Certify off the solver's clock what an earlier run has proven, and return its enclosure: nothing else in its record counts.

        Raises InputError as `certify` does.
        """
        with timed(self.seconds, "certify"):
            repair = self.problem.repair
            other = None if known.bound_point is None else repair(known.bound_point)
            proof = Proof(repair(known.point), known.dual, other)
            certificate = certify_proof(self.problem, proof)
            if (found := contradiction(self.problem, certificate, self.scale)) is not None:
                raise InputError(found)
            self.enclosure, self._best = certificate, proof
        self.show_proof()
        return certificate

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.is_enough = self.on_sample(sample) is True or self.is_enough

    def show_proof(self) -> None:
        """Show what proves the enclosure, which has become tighter."""
        assert self.enclosure is not None
        assert self._best is not None
        reached = passed(self.enclosure, self.rungs)
        self.on_proof(self._best, reached > self._passed)
        self._passed = max(self._passed, reached)

    def proves_target(self, last: Certificate) -> bool:
        """Whether the best bounds prove the target, so that a run is verified: they are certified anew unless the last iterate has both."""
        assert self.enclosure is not None
        assert self._best is not None
        if not math.isfinite(self.enclosure.gap):
            return False
        if self.enclosure[:2] == last[:2] and self._best.bound_point is None and self.tolerance.met_by(last, self.scale):
            return True
        if not self.tolerance.met_by(self.enclosure, self.scale):
            if not is_spoilt(self.enclosure, self.tolerance, self.scale):
                return False
            self._spoilt += 1
            if self._spoilt & (self._spoilt - 1):  # ever more rarely, for compensated products take long
                return False
        self._best = explicit(self.problem, self._best, self._accepts)
        return self._accepts(self._best)

    def sharpen(self, proof: Proof, certificate: Certificate) -> tuple[bool, Certificate]:
        """Whether a proof meets the target alone, and its certificate, sharper where that needs compensated products."""
        if not self.tolerance.met_by(certificate, self.scale) and not is_spoilt(certificate, self.tolerance, self.scale):
            return False, certificate
        with timed(self.seconds, "certify"):
            again, self._is_spoilt = sharpened(self.problem, proof, self.tolerance, self.scale)
        if not self.tolerance.met_by(again, self.scale):
            return False, certificate
        self._best = proof
        return True, certificate.tightened(again)._replace(infeasibility=certificate.infeasibility)

    def _accepts(self, proof: Proof) -> bool:
        certificate, self._is_spoilt = sharpened(self.problem, proof, self.tolerance, self.scale)
        assert self.enclosure is not None
        slack = certificate.rounding + self.enclosure.rounding
        is_weaker = certificate.dual < self.enclosure.dual - slack or certificate.primal > self.enclosure.primal + slack
        if is_weaker or not self.tolerance.met_by(certificate, self.scale):  # it has to prove all that the sample will say
            return False
        self.enclosure = self.enclosure.tightened(certificate._replace(infeasibility=self.enclosure.infeasibility))
        return True

    def note_compiling(self, clock: Clock) -> None:
        """Keep what was compiled while the run went on, which no clock has counted and a reader may want to know."""
        if clock.compiling > 0.0:
            self.seconds["compile"] = self.seconds.get("compile", 0.0) + clock.compiling
            self.info["compiled while the clock stood"] = f"{clock.compiling:.3g} s"

    def _tighten_by(self, iterate: Iterate) -> None:
        """Certify an iterate once more, off the clock, for the best enclosure of a run, which a last sample shows."""
        with suppress(Exception), timed(self.seconds, "certify"):
            before = self.enclosure
            self.certify(iterate)
            if self.samples and self.enclosure is not None and self.enclosure != before:
                last = self.samples[-1]
                self.show_proof()
                self.add(replace(last, certificate=self.enclosure._replace(infeasibility=last.certificate.infeasibility)))

    def record(self, status: Status, reason: str, places: tuple[Place, ...] = ()) -> Record:
        if status in (Status.ERROR, Status.MEMORY) and self.untested is not None:  # what a solver had before it failed
            with suppress(Exception):
                self.test(self.untested, BySteps())
        if status is not Status.VERIFIED and self.first is not None and self.enclosure is not None:
            self._tighten_by(self.first)
        if self.clock is not None:
            self.seconds["solve"] = self.clock.elapsed
            self.note_compiling(self.clock)
        if status in (Status.INACCURATE, Status.TIMEOUT):
            since = stalled_since(self.samples)
            reason += (
                f"; {ROUNDING_SENTENCE}" if self._is_spoilt else "" if since is None else f"; stalled: nothing tighter since step {since}"
            )
        if (words := moved().since(self.moved_before)) is not None:
            self.info["moved to the device"] = words
        if traffic := self.problem.traffic():  # what its operators have sent since the run began, certificates included
            self.info |= {name: value - self.sent_before.get(name, 0) for name, value in traffic.items()}
            self.info["shards"] = self.problem.count_shards()
        info, times = tuple(self.info.items()), Times(**self.seconds)
        counted = self.counted if self.clock is None else self.clock.elapsed + self.clock.compiling
        record = Record(status, reason, tuple(self.samples), times, info=info, counted=counted, rungs=tuple(self.asked), places=places)
        proof = self._best
        if proof is None:
            return record
        if status is not Status.VERIFIED and proof.bound_point is not None and proof.dual is None:
            with suppress(Exception):  # a problem at fault must not cost the record
                if (dual := self.problem.dual_at(proof.bound_point)) is not None:
                    proof = Proof(proof.point, np.array(dual, dtype=np.float64))
        self.on_proof(proof, True)
        return replace(record, solution=proof.point, dual=proof.dual, bound_point=proof.bound_point)


def _run_iterative(session: _Session, solver: IterativeSolver, start: Array | Iterate | None) -> Record:
    limits, problem = session.limits, session.problem
    clock = session.clock = Clock(limits.seconds, session.deadline, session.charged)
    shapes = problem.point_shape, problem.dual_shapes
    target = session.tolerance.relative_gap
    is_kept = session.on_iterate is not None or session.known is not None  # goes on to the same bits, wherever it is interrupted
    numbers = problem.dimensions.get("n", 1) * problem.dimensions.get("d", 1)  # that a pass over the data reads, about
    rule: StoppingRule = BySteps() if session.traced or is_kept else ByWork(target, numbers)
    earlier = start if isinstance(start, Iterate) else None
    with clock.running():
        session.scale = problem.scale()
    is_begun = False  # whether an earlier run has proven something, and not what this one is to prove
    if session.known is not None:
        enclosure = session.begin_with(session.known)
        is_begun = not session.tolerance.met_by(enclosure, session.scale)
    with clock.running():
        aimed = solver.aimed_at(target).limited_to(limits.seconds)
        again = earlier if earlier is None or earlier.state is not None else Iterate(earlier.primal, earlier.dual)  # `_gone_on` counts on
        steps = aimed.steps(problem, start) if again is None else aimed.resume(problem, again)  # type: ignore[arg-type]
    session.steps = steps
    before: Iterate | None = None
    while True:
        with clock.running():
            iterate = _plain(next(steps, _END), *shapes, holds_state=session.on_iterate is not None)
        if iterate is not None and earlier is not None:
            iterate = _gone_on(iterate, earlier, solver, is_first=before is None)
        if iterate is not None and iterate.note:
            session.info["note"] = iterate.note
        goes_on = before is None and earlier is not None and is_begun  # it has been certified where that was due
        if before is None and start is not None and not goes_on:
            session.first = iterate
        if iterate is None:
            if (last := session.untested) is not None and session.test(last, rule):
                return _proven(session, clock, last)
            if session.samples:
                return session.record(Status.INACCURATE, f"the solver ended by itself, {_gap_reached(session)}")
            nothing = "the solver yielded no iterate" if session.enclosure is None else "nothing is proven of any iterate: bounds overflow"
            return session.record(Status.ERROR, nothing)
        session.untested = before = iterate
        stop = _limit_reached(limits, clock, iterate)
        if (rule.is_due(iterate) and not goes_on) or stop is not None:
            if session.test(iterate, rule):
                return _proven(session, clock, iterate)
            stop = stop or ((Status.INACCURATE, _ENOUGH) if session.is_enough else _limit_reached(limits, clock, iterate))
        if session.on_iterate is not None:
            session.on_iterate(iterate)
        if stop is not None:
            status, reason = stop
            return session.record(status, f"{reason}, {_gap_reached(session)}")


def _proven(session: _Session, clock: Clock, iterate: Iterate) -> Record:
    """Return the record of a run whose iterate is proven to be as good as was asked for, perhaps too late."""
    reached, late = _gap_reached(session, is_met=True), session.limits.is_late(clock.elapsed)
    if late and (limit := _limit_reached(session.limits, clock, iterate)) is not None:
        return session.record(Status.TIMEOUT, f"{limit[1]}, {reached}")
    return session.record(Status.VERIFIED, reached)


def _gone_on(iterate: Iterate, start: Iterate, solver: Solver, *, is_first: bool) -> Iterate:
    """Return an iterate of a run from `start` with the steps and work of all: a solver that has a state has gone on counting itself.

    Raises InputError where it has not, so that it knows no states.
    """
    if start.state is None:
        return iterate._replace(step=iterate.step + start.step, work=iterate.work + start.work) if start.step or start.work else iterate
    if is_first and iterate.step != start.step:
        raise InputError(f"{solver.label} was to go on from its state at step {start.step}, and begins at step {iterate.step}")
    return iterate


def _plain(
    found: Any, point_shape: tuple[int, ...], dual_shapes: tuple[tuple[int, ...], ...], *, holds_state: bool = False
) -> Iterate | None:
    """Return what a solver yields as arrays and numbers that do nothing when they are looked at; None at its end.

    This runs on the solver's clock: whatever its objects compute when they are read is the solver's work. A state may be anything: it goes
    unless somebody asks for it with `holds_state`, who looks at it where it is written (`bench_mtl.engine.checkpoint`). Raises InputError
    for no `Iterate`, arrays of complex numbers or objects, or of the wrong shape, and steps or work that no row can hold.
    """
    if found is _END:
        return None
    if not isinstance(found, Iterate):
        raise InputError(f"a solver must yield Iterate, not {type(found).__name__}")
    primal, dual, step, work, note, state, claim = found
    try:
        step, work = int(step), float(work)
        is_countable = 0 <= step < 2**63 and 0.0 <= work < math.inf
    except (OverflowError, ValueError):
        is_countable = False
    if not is_countable:
        raise InputError(f"steps and work of an iterate must be finite and at least 0, not {step} and {work}")
    return Iterate(
        real_array("primal point", primal, point_shape),
        None if dual is None else real_array("dual point", dual, *dual_shapes),
        step,
        work,
        str(note)[:_LONGEST_REASON] if note else "",
        state if holds_state else None,
        None if claim is None else float(claim),
    )


def stalled_since(samples: Sequence[Sample]) -> int | None:
    """Return the step since which an iterative solver has hardly narrowed its enclosure, if that is for more than half of its steps."""
    if not samples or samples[-1].asked is not None:
        return None
    last = samples[-1]
    since = next(sample.step for sample in samples if sample.certificate.gap <= (1.0 + _NARROWED) * last.certificate.gap)
    return since if last.step > 2 * since + _FEW_STEPS else None


def _limit_reached(limits: Limits, clock: Clock, iterate: Iterate) -> tuple[Status, str] | None:
    """What the first limit that is reached makes of the run, time first."""
    if limits.seconds is not None and clock.is_spent:
        return Status.TIMEOUT, f"time limit of {round(limits.seconds, 3) or limits.seconds:g} s"
    if limits.iterations is not None and iterate.step >= limits.iterations:
        return Status.INACCURATE, f"limit of {plural(limits.iterations, 'iteration')}"
    if limits.work is not None and iterate.work >= limits.work:
        return Status.INACCURATE, f"limit of {limits.work:g} passes over the data"
    return None


def _gap_reached(session: _Session, *, is_met: bool = False) -> str:
    if not session.samples:
        return "nothing proven but the zero point"
    gap = min(sample.certificate.relative_gap for sample in session.samples)
    return proven_gap(gap, session.tolerance.relative_gap, is_met=is_met)


def _run_one_shot(session: _Session, solver: OneShotSolver) -> Record:
    """Climb the ladder of tolerances, loose to tight, until one is proven or out of time."""
    shapes = session.problem.point_shape, session.problem.dual_shapes
    session.scale = session.problem.scale()
    session.seconds["build"] = session.charged
    session.on_begin("build", None)
    with timed(session.seconds, "build"):
        model = solver.build(session.problem)
        tolerances = session.tolerances or tuple(solver.tolerances)
    session.on_phase("build", session.seconds["build"])
    session.on_begin("compile", None)
    with timed(session.seconds, "compile"):
        program = solver.compile(model)
        if session.is_fork:
            touch_memory()  # as the model has taken what there was
    session.on_phase("compile", session.seconds["compile"])
    session.counted = session.seconds["build"] + session.seconds["compile"]
    failure = refutation = None
    goals = sorted({*session.targets, session.tolerance.relative_gap}, reverse=True)
    waiting = list(tolerances)
    while waiting:
        tolerance = waiting.pop(0)
        clock = Clock(session.limits.seconds, session.deadline, may_overrun=solver.has_own_limit)
        session.on_begin("solve", tolerance)
        with clock.running():
            answer = _plain_answer(solver.solve(program, tolerance, session.limits.seconds), *shapes)
        seconds = clock.elapsed
        session.counted += seconds + clock.compiling
        session.note_compiling(clock)
        stated = answer.setup_seconds if math.isfinite(answer.setup_seconds) else 0.0  # 0 where it does not know
        setup = min(max(0.0, stated), seconds)
        # The row keeps the times of the last tolerance tried; each rung has its own.
        session.seconds |= {"setup": setup, "solve": seconds - setup}
        session.info |= answer.info
        is_late = answer.out_of_time or clock.is_spent
        ending = Ending.TIME_LIMIT if is_late else Ending.NO_ANSWER if answer.iterate is None else Ending.ANSWERED
        session.asked.append(Rung(tolerance, seconds, ending, setup))
        session.on_rung(session.asked[-1])
        if answer.iterate is None:
            failure = f"at tolerance {tolerance:g}: {answer.message}"
            if is_late:
                return session.record(Status.TIMEOUT, f"{failure}, {_gap_reached(session)}")
            refutation = None  # what it claimed before was loose
            continue
        known = math.inf if session.enclosure is None else session.enclosure.primal
        with timed(session.seconds, "certify"):
            iterate = answer.iterate if answer.finish is None else _plain(answer.finish(), *shapes) or answer.iterate
            certificate, repaired = session.certify(iterate)
        measures = session.measures(repaired)
        if math.isfinite(certificate.gap):
            own = Proof(repaired, iterate.dual)
            is_proven, certificate = session.sharpen(own, certificate)
            session.on_proof(own, True)
            counts, counted = (iterate.step, iterate.work), session.counted
            session.add(Sample(seconds, *counts, certificate, tolerance, measures, counted))
            if is_proven and not session.limits.is_late(seconds):
                return session.record(Status.VERIFIED, f"{_gap_reached(session, is_met=True)} at tolerance {tolerance:g}")
            if session.is_enough:
                return session.record(Status.INACCURATE, f"{_ENOUGH}, {_gap_reached(session)}")
            waiting = _after(tolerance, certificate.relative_gap, goals, waiting)
        else:
            unproven = ", and no lower bound is proven" if math.isfinite(certificate.primal) else ""
            failure = f"at tolerance {tolerance:g}: the objective at its point is {certificate.primal:g}{unproven}"
        # A claim that a tighter tolerance makes good was only loose; the last one has to stand.
        has_claim = answer.claims_optimal and math.isfinite(certificate.primal)
        refutation = _refute(session, iterate, certificate, tolerance, known) if has_claim else None
        if is_late:
            return session.record(Status.TIMEOUT, f"time limit at tolerance {tolerance:g}, {_gap_reached(session)}")
    if refutation is not None:
        return session.record(Status.WRONG, refutation)
    if not session.samples and (session.enclosure is None or not math.isfinite(session.enclosure.primal)):
        return session.record(Status.ERROR, failure or "the solver has no tolerance to try")
    also = f"; {failure}" if failure else ""
    return session.record(Status.INACCURATE, f"all tolerances tried, {_gap_reached(session)}{also}")


def _after(tolerance: float, gap: float, goals: Sequence[float], waiting: list[float]) -> list[float]:
    """Return the tolerances to try after one that has proven `gap`.

    After a near miss of a goal the next one is close by: a whole decade may take several times as long as what was missing.
    """
    misses = [gap / goal for goal in goals if gap > goal]
    step = next((step for miss, step in NEAR_MISSES if misses and min(misses) <= miss), None)
    if step is None or not waiting or waiting[0] >= tolerance / step * (1.0 - _ABOUT):
        return waiting
    return [tolerance / step, *waiting]


def _plain_answer(answer: Any, point_shape: tuple[int, ...], dual_shapes: tuple[tuple[int, ...], ...]) -> Answer:
    """Return an answer whose parts do nothing when they are looked at, as `_plain` does it for an iterate."""
    if not isinstance(answer, Answer):
        raise InputError(f"a one-shot solver must return Answer, not {type(answer).__name__}")
    iterate = None if answer.iterate is None else _plain(answer.iterate, point_shape, dual_shapes)
    words = bool(answer.claims_optimal), str(answer.message), bool(answer.out_of_time)
    return Answer(iterate, *words, float(answer.setup_seconds), dict(answer.info), answer.finish)


def _refute(session: _Session, iterate: Iterate, certificate: Certificate, tolerance: float, known: float) -> str | None:
    """Evidence against a claim of optimality, or None.

    A large gap alone is no evidence, for the dual point may be at fault. A better feasible point is: one found at an
    earlier tolerance (objective `known`), or one gradient step with a line search away.
    """
    allowed = max(REFUTING_INFEASIBILITY, REFUTING_INFEASIBILITY_TOLERANCES * tolerance)
    if certificate.infeasibility > allowed:
        return (
            f"claims optimal at tolerance {tolerance:g}, but its point violates the constraint by {format_gap(certificate.infeasibility)}"
        )
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
