"""Runs a case in this process: in a fork of a worker, or in the user's own where there is no isolation."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from bench_mtl.core.compilation import compiling_seconds
from bench_mtl.core.errors import BenchError, IncompleteError
from bench_mtl.core.forgetting import forget_cached
from bench_mtl.core.text import encodable
from bench_mtl.core.types import Array, Certificate, Iterate, Proof, Record, Status, Tolerance
from bench_mtl.data.catalogue import load
from bench_mtl.engine.clock import Clock, Deadline
from bench_mtl.engine.driver import describe, run
from bench_mtl.engine.places import places_of
from bench_mtl.engine.registry import Registry
from bench_mtl.engine.rehearsal import rehearse
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.engine.suite import Case, Instance, digest
from bench_mtl.model.patterns import parts
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.model.task_data import TaskData
from bench_mtl.runner.gathered import WARM_UP
from bench_mtl.runner.memory import forget_peak
from bench_mtl.runner.messages import AboutProblem, AboutSolver, Begins, Message, Phase, Proven, RungOver, Sampled

#: Proofs that no decade or target needs are sent for what a kill may cut off: this many bytes, and this many more a second.
_SPARE_BYTES, _SPARE_BYTES_PER_SECOND = 2.0**25, 2.0**24

#: Of what a problem or a solver says of itself: how many entries, and how many characters each.
_MOST_ENTRIES, _LONGEST_TEXT = 50, 2000


@dataclass
class Ran:
    """A run that is over: its record, and the solution for as long as it takes to look at it."""

    record: Record
    problem: Problem | None = None
    solution: Array | None = None

    def parts(self) -> dict[str, Array]:
        """Return the parts of the solution by their names; none where there is no solution, or whatever else is in the way of them.

        Nothing that goes wrong here may cost the run: this is for when its record is safe, its clocks are stopped and its memory measured.
        """
        if self.problem is not None and self.solution is not None:
            with suppress(Exception, SystemExit):  # a plug-in may name its parts as it likes
                return parts(self.solution, self.problem.parts)
        return {}


@dataclass(frozen=True)
class Built:
    """A problem that is reused from case to case."""

    key: str
    problem: Problem
    baseline: Certificate


class CaseRunner:
    """Runs cases one after the other, and keeps the last problem that it built, and its data."""

    def __init__(self, registry: Registry, data_dir: Path | None) -> None:
        self._registry = registry
        self._data_dir = data_dir
        self._built: Built | None = None
        self._data: tuple[str, TaskData] | None = None
        """With a hash of all that they are made from."""
        self._warm: dict[str, BaseException | None] = {}
        """What became of the warm-up of each solver that was made ready."""

    def make_ready(self, case: Case, deadline: Deadline | None) -> None:
        """Build the problem of a case, and load and compile what its solver calls, for whoever is forked from this process.

        What goes wrong is for the run to say.
        """
        with suppress(Exception, SystemExit):
            problem = self.problem(case.instance).problem
            solver = self._registry.solver(case.solver, case.options)
            source_digest(type(solver))
            name = _warm_name(case)
            if name not in self._warm:
                self._warm[name] = None
                try:
                    solver.warm_up()
                except BaseException as error:
                    self._warm[name] = error
            rehearse(problem, solver, case.target, Clock(case.limits.seconds, deadline))

    def run(self, case: Case, tell: Callable[[Message], None], deadline: Deadline | None = None) -> Ran:
        """Run `case`, reporting what happens as it happens; returns its record, whose samples have been sent already."""
        try:
            built = self.problem(case.instance)
        except (Exception, SystemExit) as error:
            return Ran(failed("the problem cannot be built", error, self._registry.packages))
        looked = 0.0
        problem = built.problem
        try:
            dimensions = {str(key): int(value) for key, value in problem.dimensions.items()}
            tell(AboutProblem(dimensions, tuple(_short(note) for note in problem.notes[:_MOST_ENTRIES]), built.baseline))
            solver = self._registry.solver(case.solver, case.options)
            started = perf_counter()
            version = str(solver.version)
            _require_same("solver", case.version, str(solver.version))  # which may change from call to call
            looked += perf_counter() - started
            _require_same("code of the solver", case.code, source_digest(type(solver)))
            before = compiling_seconds()
            started = perf_counter()
            fits = solver.incompatibility(problem) is None
            looked += perf_counter() - started - (compiling_seconds() - before)
            tell(AboutSolver(_short(version)))
            if fits and (name := _warm_name(case)) not in self._warm:
                solver.warm_up()
            elif fits and (failure := self._warm[name]) is not None:
                raise failure
            compiled = compiling_seconds() - before if isinstance(solver, IterativeSolver) else 0.0
        except BenchError as error:
            return Ran(failed("", error, self._registry.packages))
        except (Exception, SystemExit) as error:
            return Ran(failed("warm-up failed", error, self._registry.packages))

        def on_phase(phase: str, seconds: float) -> None:
            if phase == WARM_UP:
                forget_peak()  # what it took to build the problem and to compile is not the solver's
            tell(Phase(phase, seconds))

        forget_cached(problem)  # norms and the like of the data are for each run to compute
        spare = _Spare()
        record = run(
            problem,
            solver,
            tolerance=Tolerance(case.target),
            limits=case.limits,
            on_sample=lambda sample: tell(Sampled(sample)),
            on_begin=lambda phase, asked: tell(Begins(phase, asked)),
            on_phase=on_phase,
            on_rung=lambda rung: tell(RungOver(rung)),
            on_proof=lambda proof, is_rung: tell(Proven(proof)) if spare.takes(proof) or is_rung else None,
            targets=case.targets,
            tolerances=case.tolerances,
            traced=case.traced,
            deadline=deadline,
            looked=looked,
            records_incomplete=True,  # of which the row says enough: the suite goes on
        )
        times = replace(record.times, compile=record.times.compile + compiled)
        if problem.count_shards():  # norms and the like that it keeps take passes over the data, which every run has to pay for
            self._built = self._data = None
        # Solutions are not stored, only their patterns, and what a solver says of itself may be of any type and size.
        info = tuple((_short(key), _plain(value)) for key, value in record.info[:_MOST_ENTRIES])
        told = Record(record.status, _short(record.reason), (), times, None, info, counted=record.counted, places=record.places)
        return Ran(told, problem, record.solution)

    def find_mistake(self, instance: Instance) -> str | None:
        """Return what is wrong with the data or parameters of `instance`, if the mistake has a name.

        Other failures are for the run to show. The problem that was built to find out is reused for the run of its first case.
        """
        try:
            self.problem(instance)
        except (Exception, SystemExit) as error:
            if isinstance(error, BenchError) and not isinstance(error, IncompleteError):
                return f"{instance.label}: {error}"
        return None

    def problem(self, instance: Instance) -> Built:
        """Return the problem of `instance`, built anew unless it was the last one.

        Raises BenchError where its data or its code are not those that the instance was made for.
        """
        if self._built is None or self._built.key != instance.key:
            self._built = None  # let the old one go before the new one is built
            if instance.code and type(instance) is Instance:
                _require_same("code of the problem", instance.code, source_digest(self._registry.problem(instance.problem)))
            problem = self._made(instance)
            baseline = problem.certify(Iterate(problem.start_point()))
            with suppress(Exception, SystemExit):  # the run itself will show it
                problem.warm_up()  # loads what only problems of this size need
            self._built = Built(instance.key, problem, baseline)
        return self._built

    def _made(self, instance: Instance) -> Problem:
        """Make a problem, on the data of the last one where these are the same."""
        if type(instance) is not Instance or not instance.fingerprint or instance.has_workers:  # data that are for it alone
            if instance.fingerprint:
                _require_same("data", instance.fingerprint, instance.fingerprint_here(self._data_dir))
            return instance.build(self._registry, self._data_dir)
        prices = self._registry.problem(instance.problem).takes_prices
        key = digest([instance.data, instance.fingerprint, instance.seed, prices])
        if self._data is None or self._data[0] != key:
            self._data = None
            _require_same("data", instance.fingerprint, instance.fingerprint_here(self._data_dir))
            self._data = key, load(instance.data, data_dir=self._data_dir, seed=instance.seed, prices=prices)
        return instance.build_on(self._data[1], self._registry)


def _require_same(what: str, planned: str, here: str) -> None:
    """A case promises in its key what it runs; on another machine, or after a change under way, that may not hold."""
    if planned and planned != here:
        raise BenchError(f"the {what} is not the one that the run was planned with ({here}, not {planned})")


def _warm_name(case: Case) -> str:
    return json.dumps([case.solver, dict(case.options)], sort_keys=True, default=str)


class _Spare:
    """Of proofs that nothing depends on: whether another one is worth what it costs to send it."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._sent = 0.0

    def takes(self, proof: Proof) -> bool:
        size = float(sum(array.nbytes for array in (proof.point, proof.dual, proof.bound_point) if array is not None))
        if self._sent + size > _SPARE_BYTES + _SPARE_BYTES_PER_SECOND * (monotonic() - self._began):
            return False
        self._sent += size
        return True


def _short(value: object) -> str:
    """As text that a row can hold and a message can carry."""
    text = encodable(str(value))
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def failed(what: str, error: BaseException, packages: Collection[str] = ()) -> Record:
    """Return the record of a run that did not come as far as the driver; `packages` are those of `places_of`."""
    sentence = f"{what}: {describe(error)}" if what else describe(error)
    if isinstance(error, MemoryError):
        return Record(Status.MEMORY, sentence)
    return Record(Status.ERROR, sentence, places=places_of(error, packages))


def _plain(value: Any) -> bool | int | float | str:
    """A number as a Python number, anything else as text: what another process and a row can hold."""
    try:
        if isinstance(value, bool):
            return value
        if isinstance(value, Integral) and -(2**63) <= int(value) < 2**63:
            return int(value)
        return float(value) if isinstance(value, Real) and not isinstance(value, Integral) else _short(value)
    except Exception as error:  # whatever a solver hands over
        return f"{type(value).__name__}, which cannot be shown: {describe(error)}"
