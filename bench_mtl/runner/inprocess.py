"""Runs a case in this process: in a worker, or in the user's own where there is no isolation."""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import pickle
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from time import monotonic, perf_counter
from types import FunctionType
from typing import Any

from bench_mtl.core.compilation import compiling_seconds
from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.core.forgetting import forget_cached
from bench_mtl.core.types import Array, Certificate, Iterate, Proof, Record, Status, Tolerance
from bench_mtl.engine.clock import Clock, Deadline
from bench_mtl.engine.driver import describe, run
from bench_mtl.engine.places import places_of
from bench_mtl.engine.registry import Registry
from bench_mtl.engine.rehearsal import rehearse_all
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.engine.suite import Case, Instance
from bench_mtl.model.patterns import PackedPattern, parts, patterns_of
from bench_mtl.model.protocols import IterativeSolver, Problem, Solver
from bench_mtl.runner import placing
from bench_mtl.runner.gathered import WARM_UP, Message
from bench_mtl.runner.identities import Identities
from bench_mtl.runner.memory import forget_peak

#: Proofs that no decade or target needs are sent for what a kill may cut off: this many bytes, and this many more a second.
_SPARE_BYTES, _SPARE_BYTES_PER_SECOND = 2.0**25, 2.0**24

#: A solver may rehearse for so long before its process is forked, without what is compiled then.
_REHEARSING_SECONDS = 1.0

#: Of what a problem or a solver says of itself: how many entries, and how many characters each.
_MOST_ENTRIES, _LONGEST_TEXT = 50, 2000
#: Of what a solver has replaced, how many names are shown.
_FEW = 3


@dataclass
class Ran:
    """A run that is over: its record, and the solution for as long as it takes to look at it."""

    record: Record
    problem: Problem | None = None
    solution: Array | None = None
    changed: tuple[str, ...] = ()
    """What the solver has changed of what a run depends on, in words: then nothing that it showed counts, and its process can be trusted
    no more."""

    def patterns(self) -> tuple[PackedPattern, ...]:
        """The patterns of the solution, which is let go; none where there is no solution, or whatever else is in the way of them.

        Nothing that goes wrong here may cost the run, so this is for when its record is safe, its clocks stand and its memory is measured.
        """
        problem, solution = self.problem, self.solution
        self.problem = self.solution = None
        if problem is None or solution is None:
            return ()
        try:
            return patterns_of(parts(solution, problem.parts))
        except (Exception, SystemExit):  # a plug-in may name its parts as it likes, and memory may be short
            return ()


class CaseRunner:
    """Runs cases one after the other, and keeps the last problem that it built."""

    def __init__(self, registry: Registry, data_dir: Path | None) -> None:
        self._registry = registry
        self._data_dir = data_dir
        self._built: Built | None = None
        self._identities = Identities()
        self._warm: dict[str, BaseException | None] = {}
        self.placed: int | None = None
        """The descriptor of the data of the instance that comes next, where `bench_mtl.runner.placing` has placed them."""
        self._mapped: weakref.ref[mmap.mmap] | None = None

    def remap(self) -> None:
        """In a fork of the process that built the problem: map what was mapped."""
        placing.populate(self._mapped)

    def place(self, instance: Instance) -> bool:
        """Write the data of an instance to `placed`; return whether that could be done."""
        return self.placed is not None and placing.write(instance, self._registry, self._data_dir, self.placed)

    def warm_up(self, name: str, options: Mapping[str, Any], problem: str, gap: float) -> None:
        """Let a solver import and compile what it needs before it can know a problem: only the kind of that is said here.

        What goes wrong is for its runs to say.
        """
        try:
            solver = self._registry.solver(name, options)
            solver.warm_up()
            source_digest(type(solver))
            rehearse_all(self._registry.problem(problem), solver, gap, Clock(_REHEARSING_SECONDS))
            self._warm[_named(name, options)] = None
        except BaseException as error:
            self._warm[_named(name, options)] = error

    def make_ready(self, instance: Instance) -> None:
        """Build a problem and compile what it calls, as far as that goes; what goes wrong is for its runs to say."""
        with suppress(Exception, SystemExit):
            self.problem(instance)

    def run(self, case: Case, tell: Callable[[Message], None], deadline: Deadline | None = None) -> Ran:
        """Run `case`, telling what happens as it happens; returns its record, whose samples have been told already."""
        self._identities.hold()
        ran = self._run(case, tell, deadline)
        replaced = self._identities.changes()
        if replaced and not ran.changed and ran.record.status is not Status.SKIPPED:
            return self._void(tell, _some(replaced), ran.record)
        return replace(ran, changed=(*ran.changed, *replaced[:_MOST_ENTRIES]))

    def _void(self, tell: Callable[[Message], None], changed: str, record: Record) -> Ran:
        """The outcome of a run that has changed what it is measured and judged by."""
        self._built = None
        tell(("void",))
        reason = f"the solver has changed {changed}, so that nothing it showed is proven"
        return Ran(Record(Status.ERROR, reason, (), record.times, counted=record.counted), changed=(changed,))

    def _run(self, case: Case, tell: Callable[[Message], None], deadline: Deadline | None) -> Ran:
        try:
            built = self.problem(case.instance)
        except (Exception, SystemExit) as error:
            return Ran(failed("the problem cannot be built", error, self._registry.packages))
        looked = 0.0
        problem = built.problem
        try:
            dimensions = {str(key): int(value) for key, value in problem.dimensions.items()}
            tell(("problem", dimensions, tuple(_short(note) for note in problem.notes[:_MOST_ENTRIES]), built.baseline))
            solver = self._registry.solver(case.solver, case.options)
            started = perf_counter()
            version = str(solver.version)
            self._require_same("solver", case.version, str(solver.version))  # which may change from call to call
            looked += perf_counter() - started
            self._require_same("code of the solver", case.code, source_digest(type(solver)))
            before = compiling_seconds()
            started = perf_counter()
            fits = solver.incompatibility(problem) is None
            looked += perf_counter() - started - (compiling_seconds() - before)
            tell(("solver", _short(version)))
            if fits:
                self._require_warm(case, solver)
            compiled = compiling_seconds() - before if isinstance(solver, IterativeSolver) else 0.0
        except BenchError as error:
            return Ran(failed("", error, self._registry.packages))
        except (Exception, SystemExit) as error:
            return Ran(failed("warm-up failed", error, self._registry.packages))

        def on_phase(phase: str, seconds: float) -> None:
            if phase == WARM_UP:
                self._identities.hold()
                forget_peak()  # what it took to build the problem and to compile is not the solver's
            tell(("phase", phase, seconds))

        forget_cached(problem)  # norms and the like of the data are for each run to compute
        spare = _Spare()
        record = run(
            problem,
            solver,
            tolerance=Tolerance(case.target),
            limits=case.limits,
            on_sample=lambda sample: tell(("sample", sample)),
            on_begin=lambda phase, asked: tell(("begins", phase, asked)),
            on_phase=on_phase,
            on_rung=lambda rung: tell(("rung", rung)),
            on_proof=lambda proof, is_rung: tell(("proof", proof)) if spare.takes(proof) or is_rung else None,
            targets=case.targets,
            tolerances=case.tolerances,
            traced=case.traced,
            deadline=deadline,
            looked=looked,
            records_incomplete=True,  # of which the row says enough: the suite goes on
        )
        record = replace(record, times=replace(record.times, compile=record.times.compile + compiled))
        if record.status is not Status.SKIPPED:
            if not built.is_untouched():
                return self._void(tell, "the problem", record)
            if problem.count_shards():  # norms and the like that it keeps take passes over the data, which every run has to pay for
                self._built = None
        # Solutions are not stored, only their patterns, and what a solver says of itself may be of any type and size.
        info = tuple((_short(key), _plain(value)) for key, value in record.info[:_MOST_ENTRIES])
        told = Record(record.status, _short(record.reason), (), record.times, None, info, counted=record.counted, places=record.places)
        return Ran(told, problem, record.solution)

    def find_mistake(self, instance: Instance) -> str | None:
        """Return what is wrong with the data or parameters of `instance`, if the mistake has a name.

        Other failures are for the run to show. The problem that was built to find out is kept for the run of its first case.
        """
        try:
            self.problem(instance)
        except InputError as error:
            return f"{instance.label}: {error}"
        except (Exception, SystemExit):
            return None
        return None

    def _require_warm(self, case: Case, solver: Solver) -> None:
        name = _named(case.solver, case.options)
        if name not in self._warm:
            solver.warm_up()
        elif (error := self._warm[name]) is not None:
            raise error

    def problem(self, instance: Instance) -> Built:
        """Return the problem of `instance`, built anew unless it was the last one.

        Raises
        ------
        BenchError : its data or its code are not those that the instance was made for.
        """
        if self._built is None or self._built.key != instance.key:
            self._built = None  # let the old one go before the new one is built
            if instance.fingerprint and self.placed is None:
                self._require_same("data", instance.fingerprint, instance.fingerprint_here(self._data_dir))
            if instance.code:
                self._require_same("code of the problem", instance.code, source_digest(self._registry.problem(instance.problem)))
            if self.placed is None:
                problem = instance.build(self._registry, self._data_dir)
            else:
                data, self._mapped = placing.read(self.placed)
                problem = instance.build_on(data, self._registry)
                del data
            baseline = problem.certify(Iterate(problem.start_point()))
            with suppress(Exception, SystemExit):  # the run itself will show it
                problem.warm_up()  # loads what only problems of this size need
            self._built = Built(instance.key, problem, baseline, _state(problem), _classes(problem), frozenset(vars(problem)))
        return self._built

    @staticmethod
    def _require_same(what: str, planned: str, here: str) -> None:
        """A case promises in its key what it runs; on another machine, or after a change under way, that may not hold."""
        if planned and planned != here:
            raise BenchError(f"the {what} is not the one that the run was planned with ({here}, not {planned})")


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")


def _named(solver: str, options: Mapping[str, Any]) -> str:
    return json.dumps([solver, dict(options)], sort_keys=True, default=str)


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


@dataclass(frozen=True)
class Built:
    """A problem that is kept from case to case, as long as it is as it was."""

    key: str
    problem: Problem
    baseline: Certificate
    state: Mapping[str, str]
    classes: tuple[tuple[type, Mapping[str, Any]], ...]
    """The classes that it is made of, and what each of them had."""
    attributes: frozenset[str]
    """Those of the problem itself."""

    def is_untouched(self) -> bool:
        """Whether every attribute and every method is what it was; new attributes, where a problem remembers what it has computed, change
        nothing, unless they hide a method. A solver that means to can deceive this; it cannot deceive `bench_mtl.runner.certifier`.
        """
        now, classes = _state(self.problem), _classes(self.problem)
        if [kind for kind, _ in classes] != [kind for kind, _ in self.classes]:
            return False
        if not all(_same(mine, theirs) for (_, mine), (_, theirs) in zip(self.classes, classes, strict=True)):
            return False
        methods = {name for _, members in classes for name, member in members.items() if isinstance(member, FunctionType | property)}
        if methods & (vars(self.problem).keys() - self.attributes):
            return False
        return all(now.get(name) == digest for name, digest in self.state.items())


def _classes(problem: Problem) -> tuple[tuple[type, Mapping[str, Any]], ...]:
    return tuple((kind, dict(vars(kind))) for kind in type(problem).__mro__[:-1])


def _same(members: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two classes have the same members; caches that Python keeps in a class come and go."""
    return all(others.get(name, member) is member for name, member in members.items()) and all(
        name in members or not isinstance(member, FunctionType | property) for name, member in others.items()
    )


def _state(problem: Problem) -> dict[str, str]:
    """A hash of each attribute of a problem, arrays and all that is below them included; of none that cannot be pickled.

    What parts of it compute at its first use and keep comes from the rest, and is not in it.
    """
    return {name: digest for name, value in vars(problem).items() if (digest := _digest(value))}


def _digest(value: object) -> str:
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    try:
        _WithoutCached(stream, protocol=5, buffer_callback=buffers.append).dump(value)
        content = hashlib.sha256(stream.getbuffer())
        for buffer in buffers:  # arrays, where they lie
            content.update(buffer.raw())
    except Exception:  # a plug-in may hold anything
        return ""
    return content.hexdigest()


class _WithoutCached(pickle.Pickler):
    """Leaves out the values of cached properties."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        cached = [name for name in getattr(value, "__dict__", ()) if isinstance(getattr(kind, name, None), cached_property)]
        if not cached:
            return NotImplemented
        make, given, *rest = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if rest and isinstance(rest[0], dict):
            rest[0] = {name: held for name, held in rest[0].items() if name not in cached}
        return (make, given, *rest)


def _short(value: object) -> str:
    """As text that a row can hold and a message can carry."""
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def failed(what: str, error: BaseException, packages: Collection[str] = ()) -> Record:
    """The record of a run that did not come as far as the driver.

    Parameters
    ----------
    packages : that problems and solvers come from, as of `bench_mtl.engine.places.places_of`
    """
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
