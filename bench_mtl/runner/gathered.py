"""What a run tells while it goes on, gathered by whoever watches it, so that nothing of it is lost with its process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from bench_mtl.core.types import Certificate, Record, Sample, Status, Times
from bench_mtl.model.patterns import PackedPattern
from bench_mtl.results import Outcome

#: ("problem", dimensions, notes, certificate of the zero point), ("solver", version), ("phase", name, seconds),
#: ("sample", Sample), perhaps ("void",) when no sample may count after all, for a job that is no case ("found", values by name), then
#: ("record", Record, peak memory in MiB or None), with which the run is over, and at last
#: ("patterns", those of the solution, whether the process is worn), in this order.
Message: TypeAlias = tuple[Any, ...]

#: Comes before all others from a worker.
TAKEN: Message = ("taken",)

#: The phase after which all is loaded and compiled, and the run proper begins.
WARM_UP = "warm_up"


@dataclasses.dataclass
class Gathered:
    """What has been told about one run."""

    environment: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    samples: list[Sample] = dataclasses.field(default_factory=list)
    dimensions: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline: Certificate | None = None
    version: str = ""
    phases: dict[str, float] = dataclasses.field(default_factory=dict)
    is_taken: bool = False
    """Whether a worker has taken it up."""
    began: float | None = None
    """When the run proper did (`time.monotonic`)."""
    ended_at: float | None = None
    """When there was a record, or a limit was found broken."""
    record: Record | None = None
    patterns: tuple[PackedPattern, ...] = ()
    """The patterns of the solution, as far as there are any."""
    found: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What a job has found."""
    has_leftovers: bool | None = None
    """Whether the run has left something behind in its process; None until that has told all there is."""
    peak_mib: float | None = None

    def take(self, message: Message) -> None:
        kind, *content = message
        if message == TAKEN:
            self.is_taken = True
        elif kind == "sample":
            self.samples.append(content[0])
        elif kind == "problem":
            self.dimensions, self.notes, self.baseline = content
        elif kind == "solver":
            self.version = content[0]
        elif kind == "found":
            self.found = content[0]
        elif kind == "void":
            self.samples.clear()
        elif kind == "phase":
            name, seconds = content
            if name == WARM_UP:
                self.began = time.monotonic()
                self.peak_mib = None  # of building and compiling
            else:
                self.phases[name] = seconds
        elif kind == "patterns":
            self.patterns, self.has_leftovers = content
        else:
            self.record, peak = content
            self.note_memory(peak)
            self.ended_at = time.monotonic()

    def note_memory(self, mib: float | None) -> None:
        if mib:
            self.peak_mib = max(self.peak_mib or 0.0, mib)

    @property
    def proven(self) -> str:
        """What the samples prove, in words."""
        gaps = [sample.certificate.relative_gap for sample in self.samples]
        if gaps:
            return f"relative gap {min(gaps):.1e} proven before"
        return "nothing proven" if self.baseline is None else "nothing proven but the zero point"

    def ended(self, status: Status, reason: str, solve: float | None = None, info: tuple[tuple[str, Any], ...] = ()) -> Outcome:
        """The outcome of a run that did not come to a record of its own; `solve` is what its clock had counted, if that is known."""
        seconds = solve if solve is not None else self.samples[-1].seconds if self.samples else 0.0
        self.record = Record(status, reason, times=Times(**self.phases, solve=seconds), info=info)
        return self.outcome()

    def outcome(self) -> Outcome:
        """The record with all that was told."""
        assert self.record is not None
        ran = self.record.status is not Status.SKIPPED
        reason = self.record.reason.encode("utf-8", "backslashreplace").decode()  # halves of characters can be neither shown nor stored
        peak = self.peak_mib if ran else None
        whole = dataclasses.replace(self.record, reason=reason, samples=tuple(self.samples), peak_memory_mib=peak)
        ended = self.ended_at if self.ended_at is not None else time.monotonic()
        wall = ended - self.began if self.began is not None and ran else None
        baseline = self.baseline if ran else None
        return Outcome(whole, self.dimensions, self.notes, self.version, baseline, wall, self.environment, self.patterns, self.found)
