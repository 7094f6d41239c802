"""What a run tells while it goes on, gathered by whoever watches it, so that nothing of it is lost with its process."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench_mtl.core.types import Certificate, Ending, Proof, Record, Rung, Sample, Status, Times
from bench_mtl.engine.proofs import RUNGS, format_gap, passed
from bench_mtl.results import Outcome
from bench_mtl.runner import messages
from bench_mtl.runner.disturbances import Surroundings

#: The phase after which all is loaded and compiled, and the run proper begins.
WARM_UP = "warm_up"

#: The phases that a run may time beside that, and the one in which a one-shot solver answers.
_PHASES, SOLVE = ("build", "compile"), "solve"

#: More samples than any run makes.
_MOST_SAMPLES = 10**6


def _is_step(phase: str, asked: float | None) -> bool:
    """Return whether a one-shot solver may begin with this: a tolerance, or a phase that asks for none."""
    return phase in _PHASES if asked is None else phase == SOLVE and 0.0 < asked < math.inf


@dataclasses.dataclass(frozen=True)
class Mark:
    """What the clock of a run reports to have counted, and what its watcher saw when it heard so; seconds since the run began."""

    counted: float
    samples: int
    wall: float
    cpu: float
    """Processor time of the process and all that it has started."""


@dataclasses.dataclass(frozen=True, eq=False)
class Kept:
    """A proof, and the place of its sample."""

    place: int
    proof: Proof


@dataclasses.dataclass
class Gathered:
    """What has been received about one run."""

    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    samples: list[Sample] = dataclasses.field(default_factory=list)
    dimensions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline: Certificate | None = None
    version: str = ""
    phases: dict[str, float] = dataclasses.field(default_factory=dict)
    asked: list[Rung] = dataclasses.field(default_factory=list)
    """What a one-shot solver was asked for, as far as it is over."""
    heard_at: float = 0.0
    """When it sent something last (`time.monotonic`)."""
    current: messages.Begins | None = None
    """What a one-shot solver does now."""
    current_since: float = 0.0
    """When it began with that (`time.monotonic`)."""
    is_taken: bool = False
    """Whether a worker has taken it up."""
    is_alone: bool = False
    """Whether the worker runs it itself."""
    began: float | None = None
    """When the run proper did (`time.monotonic`)."""
    ended_at: float | None = None
    """When there was a record, or a limit was found broken."""
    record: Record | None = None
    parts: tuple[str, ...] = ()
    """What the parts of the solution are called."""
    found: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What a job has found."""
    peak_mib: float | None = None
    rungs: tuple[float, ...] = RUNGS
    """Relative gaps, loose to tight, each of which needs a proof."""
    usage: Callable[[], float] = float
    """Asks for the processor time that the process has used, seconds."""
    surroundings: Surroundings | None = None
    """The machine around the run, where somebody examines it."""
    disturbances: tuple[str, ...] = ()
    """What it has disturbed the run by, in words."""
    clock: Mark | None = None
    """What its clock last reported to have counted."""
    kept: list[Kept] = dataclasses.field(default_factory=list)
    """The first proof of each decade and target, and those of the answers of a one-shot solver."""
    latest: Kept | None = None
    """The last proof of all."""
    unproven: Sample | None = None
    """One that claims a decade or target and shows no proof."""
    _pending: Proof | None = None
    _used: float = 0.0
    _passed: int = 0

    def end(self) -> None:
        """Note that the run is over, or is about to be ended."""
        self.ended_at = time.monotonic()
        if self.surroundings is not None and self.began is not None:
            self.disturbances += self.surroundings.disturbances()

    def mark(self, counted: float) -> None:
        """Note what the clock of the run says."""
        if self.began is not None:
            self.clock = Mark(counted, len(self.samples), time.monotonic() - self.began, self.usage() - self._used)

    @property
    def proofs(self) -> list[Kept]:
        """All that is retained, in order."""
        return self.kept if self.latest is None or self.latest in self.kept else [*self.kept, self.latest]

    def take(self, message: messages.Message) -> None:
        """Take in a message; after the record only the names of parts count. Raises UnreadableError for what no run sends."""
        self.heard_at = time.monotonic()
        match message:
            case messages.Parts(names):
                self.parts = names
            case _ if self.record is not None:
                pass
            case messages.Taken():
                self.is_taken = True
            case messages.Alone():
                self.is_alone = True
            case messages.AboutProblem():
                self.dimensions, self.notes, self.baseline = message.dimensions, message.notes, message.baseline
            case messages.AboutSolver():
                self.version = message.version
            case messages.JobFound():
                self.found = message.values
            case messages.Begins(phase, asked) if self.began is not None and _is_step(phase, asked):
                self.current, self.current_since = message, self.heard_at
            case messages.RungOver(rung) if self._ends_current(rung):
                _require_storable(rung.asked, rung.seconds)
                self.asked.append(rung)
                self.current = None
            case messages.Phase():
                self._take_phase(message.name, message.seconds)
            case messages.Proven():
                self._pending = message.proof
            case messages.Sampled():
                self._take_sample(message.sample)
            case messages.Ended():
                _require_storable(*dataclasses.astuple(message.record.times), *(place.line for place in message.record.places))
                self.record = message.record
                self.note_memory(message.peak_mib)
                self.end()
                self.mark(message.record.counted)
                if self._pending is not None and self.samples:
                    self.latest, self._pending = Kept(len(self.samples) - 1, self._pending), None
            case _:
                raise messages.UnreadableError(f"'{type(message).__name__}' in the middle of a run")

    def _take_sample(self, sample: Sample) -> None:
        """Keep the sample, and its proof where it is the first of a rung; a proof that is none of these only until there is a later one."""
        if len(self.samples) >= _MOST_SAMPLES:
            raise messages.UnreadableError(f"more than {_MOST_SAMPLES} samples")
        if self.began is None:  # its clock could not be held against anything
            raise messages.UnreadableError("a sample before the run began")
        if self.samples and (sample.asked is None) != (self.samples[0].asked is None):
            raise messages.UnreadableError("samples of an iterative solver and of a one-shot solver")
        ends = sample.certificate[:3]  # no row has the rounding
        _require_storable(sample.seconds, sample.step, sample.work, *ends, *(value for _, value in sample.measures))
        self.samples.append(sample)
        reached, proof = passed(sample.certificate, self.rungs), self._pending
        is_new, self._pending = reached > self._passed or sample.asked is not None, None
        if is_new and proof is None and self.unproven is None:
            self.unproven = sample
        if proof is not None:
            self.latest = Kept(len(self.samples) - 1, proof)
            if is_new:
                self.kept.append(self.latest)
        if is_new or len(self.samples) == 1:
            self.mark(sample.counted)
        self._passed = max(self._passed, reached)

    def _ends_current(self, rung: Rung) -> bool:
        """Return whether this is how a tolerance may have ended that the solver has begun with."""
        return self.current is not None and self.current.asked == rung.asked and rung.ending is not Ending.KILLED

    def _take_phase(self, name: str, seconds: float) -> None:
        if name == WARM_UP and self.began is None:
            self.began = time.monotonic()
            self._used = self.usage()
            self.peak_mib = None  # of building and compiling
            if self.surroundings is not None:
                self.surroundings.begin()
        elif name in _PHASES and seconds >= 0.0:
            self.phases[name] = seconds
            self.current = None
        else:  # a run that begins again would have another clock, and other limits
            raise messages.UnreadableError(f"a phase of {seconds:g} s that no run has")

    def note_memory(self, mib: float | None) -> None:
        if mib:
            self.peak_mib = max(self.peak_mib or 0.0, mib)

    @property
    def is_one_shot(self) -> bool:
        """Whether a one-shot solver runs: only these have a model to build."""
        return "build" in self.phases or self.current is not None

    @property
    def proven(self) -> str:
        """What the samples prove, in words."""
        gaps = [sample.certificate.relative_gap for sample in self.samples]
        if gaps:
            return f"relative gap {format_gap(min(gaps))} proven before"
        return "nothing proven" if self.baseline is None else "nothing proven but the zero point"

    def ended(self, status: Status, reason: str, solve: float | None = None, output: str = "") -> Outcome:
        """Return the outcome of a run that did not come to a record of its own.

        `solve` is what its clock had counted, if that is known, and `output` the end of what it has printed.
        """
        seconds = solve if solve is not None else self.samples[-1].seconds if self.samples else 0.0
        if (now := self.current) is not None and now.asked is None:
            self.phases[now.phase], seconds = self._spent, 0.0
        elif now is not None and now.asked is not None:
            seconds = self._spent if solve is None else solve
            self.asked.append(Rung(now.asked, max(0.0, seconds), Ending.KILLED))
        seconds = max(0.0, seconds)  # its clock may be false
        info = (("output", output),) if output else ()
        self.record = Record(status, reason, times=Times(**self.phases, solve=seconds), info=info)
        return self.outcome()

    @property
    def doing(self) -> str:
        """What a one-shot solver was doing when it was stopped, in words; empty for others."""
        now = self.current
        if now is None:
            return ""
        if now.asked is None:
            return {"build": " while the model was built", "compile": " while the model was compiled"}[now.phase]
        return f" {self._spent:.3g} s into tolerance {now.asked:g}"

    @property
    def _spent(self) -> float:
        """Seconds since that."""
        return max(0.0, (self.ended_at or time.monotonic()) - self.current_since)

    def outcome(self) -> Outcome:
        """The record with all that was received."""
        assert self.record is not None
        ran = self.record.status is not Status.SKIPPED
        peak = self.peak_mib if ran else None
        places = self.record.places if self.record.status is Status.ERROR else ()
        whole = dataclasses.replace(self.record, samples=tuple(self.samples), peak_memory_mib=peak, rungs=tuple(self.asked), places=places)
        ended = self.ended_at if self.ended_at is not None else time.monotonic()
        # A run that is killed as it begins may be heard to begin when it is over.
        wall = max(0.0, ended - self.began) if self.began is not None and ran else None
        baseline = self.baseline if ran else None
        return Outcome(
            whole, self.dimensions, self.notes, self.version, baseline, wall, self.environment,
            disturbances=self.disturbances, found=self.found,
        )  # fmt: skip


def _require_storable(*values: float) -> None:
    """Raise UnreadableError for what no row can hold: NaN, and whole numbers of more than 64 bits."""
    for value in values:
        if value != value or (isinstance(value, int) and not -(2**63) <= value < 2**63):
            raise messages.UnreadableError(f"{value} in the place of a number")
