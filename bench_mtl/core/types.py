"""The few values that solvers, problems, driver and store exchange: small and frozen."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import plural
from bench_mtl.core.text import outward

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = NDArray[np.float64]
AnyArray: TypeAlias = NDArray[Any]
"""An array of float32 or float64, where a function keeps the type of its input."""
Matrix: TypeAlias = Any
"""A dense `Array` or a `scipy.sparse.csr_array` of float64; both have shape, T and @, which is what is used of them."""

#: A gap is measured relative to the objective; this only keeps a gap of zero at an objective of zero from 0/0. It is far
#: below any data, because a floor in objective units would make every gap of data in small units look closed.
SMALLEST_OBJECTIVE = 1e-300
#: Where the optimum is (almost) zero a relative gap means nothing; a gap then counts as closed relative to
#: this share of the problem's own scale (see `Tolerance.met_by`).
NEGLIGIBLE_SHARE = 1e-6
#: Of a problem that does not account for rounding: a lower bound above the objective by more than this share of it is no rounding.
UNEXPLAINED_SHARE = 1e-9
#: How the names of peers begin, solvers of other libraries that minimise one of our objectives themselves: reports tell their kind by it.
PEER_PREFIX = "peer_"
#: Solvers that have a generic one solve programme after programme: rivals too, though they yield iterates.
GENERIC_NAMES = frozenset({"generated_lp"})
#: How many of its certified points a record shows in a notebook.
_SHOWN_SAMPLES = 5
#: The distance from 1 to the next float.
EPSILON = 2.0**-52


def _if_finite(scale: float) -> float:
    """Return a scale; 0 where it overflows, which says nothing."""
    return scale if math.isfinite(scale) else 0.0


def gap_up_to_rounding(objective: float, bound: float, least: float = 0.0) -> float:
    """Return (objective - bound) / max(objective, least), at least 0; inf where one of both ends is no finite number."""
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    size = max(objective, least)
    return max(0.0, objective - bound) / size if size > 0.0 else 0.0


class Iterate(NamedTuple):
    """A solver's result so far: a point, whatever dual information it has, and what it has cost."""

    primal: Array
    """The point: W (d x m), or the stack (P, Q) of shape 2 x d x m."""
    dual: Array | None = None
    """A dual point in the form the problem documents, or None."""
    step: int = 0
    """Iterations so far."""
    work: float = 0.0
    """Passes over the data so far: one product with X and one with its transpose together are 1."""
    note: str = ""
    """A remark on the run, such as which method the solver picked and why; the last one is retained."""
    state: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None
    """All that the solver needs to go on from exactly here, as a mapping of names to arrays and numbers, or what makes one when it is
    asked for (`bench_mtl.model.solver_state`). None: a solver goes on from the primal and the dual point alone. It describes this iterate
    for as long as somebody holds it: what is in it is not changed when the solver goes on."""
    claim: float | None = None
    """The relative gap by the solver's own quantities, up to rounding, where it has that for next to nothing. It proves nothing: a run is
    certified once the claim meets its target. inf while the target is far; None: the driver has to find out."""


class Certificate(NamedTuple):
    """A proven enclosure of the optimum, computed by the problem from its own data."""

    primal: float
    """Objective at the repaired, exactly feasible point: an upper bound on the optimum."""
    dual: float
    """A proven lower bound on the optimum."""
    infeasibility: float
    """The relative excess of the point as returned, before repair, over the constraint."""
    rounding: float = 0.0
    """What both bounds allow for rounding: the part of the gap that exact arithmetic would not show. 0 where the problem does not say."""

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Gap over |primal|; rounding below zero counts as zero, and a side of which nothing is proven makes it infinite."""
        gap = self.gap
        return max(0.0, gap) / max(SMALLEST_OBJECTIVE, abs(self.primal)) if math.isfinite(gap) else math.inf

    def contradicts_itself(self, scale: float) -> bool:
        """Whether the lower bound is above the upper one by more than rounding explains, so that one of them is false.

        Where the problem accounts for rounding nothing else is allowed. Where it does not, a share of 1e-9 of the bounds and sixteen
        roundings of the problem's scale are: sums that cancel leave as much.
        """
        allowed = self.rounding or UNEXPLAINED_SHARE * max(abs(self.primal), abs(self.dual)) + 16.0 * EPSILON * _if_finite(abs(scale))
        return self.dual > self.primal + allowed

    def tightened(self, other: Certificate) -> Certificate:
        """The better of both bounds of two certificates of one problem, with the infeasibility of `other`."""
        primal, dual = min(self.primal, other.primal), max(self.dual, other.dual)
        kept = self.rounding if self.primal == primal or self.dual == dual else 0.0
        new = other.rounding if primal < self.primal or dual > self.dual else 0.0
        return Certificate(primal, dual, other.infeasibility, max(kept, new))


@dataclass(frozen=True)
class Tolerance:
    """The proven relative gap at which a run is `verified`."""

    relative_gap: float = 1e-6
    negligible_share: float = NEGLIGIBLE_SHARE

    def allowed_gap(self, primal: float, scale: float) -> float:
        """Return relative_gap * max(|primal|, negligible_share * scale).

        `scale` is the problem's (mostly the objective at the zero point). It matters only where the optimum is below that share of it
        (separable data with a large radius have optimum 0, where no gap is small relative to the objective).
        """
        return self.relative_gap * max(abs(primal), self.negligible_share * _if_finite(abs(scale)))

    def met_by(self, certificate: Certificate, scale: float) -> bool:
        """Whether the gap is at most `allowed_gap`, with room for the rounding of whoever computes the certificate again.

        A certificate that contradicts itself meets nothing, and neither does one with a side of which nothing is proven.
        """
        if not math.isfinite(certificate.gap) or certificate.contradicts_itself(scale):
            return False
        return certificate.gap + certificate.rounding <= self.allowed_gap(certificate.primal, scale)


#: How far past its limit of time, in seconds, a run may hand in its answer: one of a one-shot solver that comes later is not verified.
GRACE_SECONDS = 0.3
#: A library with a limit of its own may begin to count after its set-up: it may take so many times the limit more to hand in its answer.
OVERRUN = 0.5


@dataclass(frozen=True)
class Limits:
    """Bounds of one run, the first three on the solver's own clock and counters; None means no bound."""

    seconds: float | None = 60.0
    iterations: int | None = None
    work: float | None = None
    memory_gib: float | None = None
    """Resident memory of the worker and all that it starts; watched by the runner, not in-process."""
    wall_seconds: float | None = None
    """Seconds of a whole job, such as a cell of an experiment. A case of a suite has no such limit: each tolerance that a solver is asked
    for has all of `seconds`, and nothing else takes any of them. The runner watches it."""
    off_clock_seconds: float | None = None
    """How long a pause of the clock may be, as while a model is built or an answer is certified; ten times `seconds` and a minute by
    default. The runner watches it."""

    def is_late(self, seconds: float) -> bool:
        """Whether what came after so many seconds came too late."""
        return self.seconds is not None and seconds > self.seconds + GRACE_SECONDS

    @property
    def patience(self) -> float:
        """`off_clock_seconds`, or its default."""
        if self.off_clock_seconds is not None:
            return self.off_clock_seconds
        return math.inf if self.seconds is None else 10.0 * self.seconds + 60.0


class Status(enum.StrEnum):
    """How a run ended. Every run ends as one of these; none is dropped."""

    VERIFIED = "verified"
    INACCURATE = "inaccurate"
    WRONG = "wrong"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASHED = "crashed"
    ERROR = "error"
    SKIPPED = "skipped"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def is_failure(self) -> bool:
        """Whether the solver (not its accuracy or its limits) is at fault."""
        return self in (Status.WRONG, Status.CRASHED, Status.ERROR)


_SENTENCES = {
    Status.VERIFIED: "the target gap is proven",
    Status.INACCURATE: "ended by itself or at an iteration limit, above the target gap",
    Status.WRONG: "claims what a better feasible point, a violated constraint or a second certificate refutes",
    Status.TIMEOUT: "reached the time limit first",
    Status.MEMORY: "reached the memory limit first",
    Status.CRASHED: "its process died",
    Status.ERROR: "raised an exception or returned something unusable",
    Status.SKIPPED: "does not fit this problem",
}


@dataclass(frozen=True)
class Times:
    """Seconds by purpose: `setup` and `solve` count for time to a gap."""

    build: float = 0.0
    """Writing the model down (CVXPY expressions)."""
    compile: float = 0.0
    """Canonicalisation of the model; what Numba compiled, or loaded, for a run, before it and under way."""
    setup: float = 0.0
    """The set-up of a one-shot solver at its last tolerance, as it reports it."""
    solve: float = 0.0
    """Seconds on the solver's clock: everything an iterative solver does, its stopping tests included; the rest of a one-shot solver's
    last tolerance."""
    certify: float = 0.0
    """Seconds that the problem spends on certificates with the solver's clock stopped: of traced runs and of one-shot solvers."""
    test: float = 0.0
    """The part of `solve` that stopping tests took."""


@dataclass(frozen=True)
class Sample:
    """One certified point of a run."""

    seconds: float
    step: int
    work: float
    certificate: Certificate
    asked: float | None = None
    """The tolerance asked of a one-shot solver; its seconds, set-up included, then count from zero at this tolerance."""
    measures: tuple[tuple[str, float], ...] = ()
    """Measures of this sample's own point, repaired (`Problem.measures`), as pairs of name and finite value. The certificate may belong to
    a better point before; a measure never does, since a curve of non-zeros or held-out errors shows the points that the solver visits."""
    counted: float = 0.0
    """Seconds that all clocks of the run have counted so far, modelling, compiling and set-up included: a runner holds them against its
    own clock."""


class Ending(enum.StrEnum):
    """What became of a tolerance that was asked of a one-shot solver."""

    ANSWERED = "answered"
    NO_ANSWER = "no answer"
    TIME_LIMIT = "time limit"
    KILLED = "killed"


@dataclass(frozen=True)
class Rung:
    """A tolerance asked of a one-shot solver, and what became of it."""

    asked: float
    seconds: float
    """Set-up and solve."""
    ending: Ending
    setup: float | None = None
    """The part of the seconds that the solver reports as set-up; None where it was killed before it could."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Arrays from which anybody can compute an enclosure of the optimum again, with the problem alone."""

    point: Array
    """A feasible point, whose objective is the upper bound."""
    dual: Array | None = None
    """A dual point that gives the lower bound, unless the residuals at `point` or at `bound_point` give a better one."""
    bound_point: Array | None = None
    """Another feasible point whose residuals give the lower bound; None where it is `point`."""


class Place(NamedTuple):
    """A line of code that an exception passed, named without a path of this machine."""

    file: str
    """From the plug-in folder, or from the folder of its package: ``solvers/mine.py``."""
    line: int
    """Its number, from 1; 0 where nobody knows."""
    function: str
    """With the class that it belongs to: ``Mine.steps``."""
    source: str
    """The line itself, without its indentation; empty where it could not be read."""


@dataclass(frozen=True, repr=False)
class Record:
    """The outcome of one solver on one problem."""

    status: Status
    reason: str
    samples: tuple[Sample, ...] = ()
    times: Times = Times()
    solution: Array | None = None
    """The best point found, repaired: the very point that was certified."""
    info: tuple[tuple[str, Any], ...] = ()
    """Facts that the solver reports (version, its own status), as pairs."""
    dual: Array | None = None
    """The dual point with the best bound: the solver's, or the one that the residuals at some iterate give. With `solution` it proves the
    target again wherever the run is verified. None where the residuals at `solution` do, or a problem cannot tell its dual points."""
    bound_point: Array | None = None
    """Where a problem cannot tell its dual points: the feasible point whose residuals give the best bound."""
    peak_memory_mib: float | None = None
    counted: float = 0.0
    """Seconds that all clocks of the run have counted, as in `Sample`."""
    rungs: tuple[Rung, ...] = ()
    """What was asked of a one-shot solver, in order."""
    places: tuple[Place, ...] = ()
    """Where status `error` was raised: the last lines of the author's own code that the exception passed, in their order. Empty
    where nothing was raised, or outside that code."""

    @property
    def best(self) -> Certificate | None:
        """The tightest enclosure over all samples; its infeasibility is the last sample's."""
        if not self.samples:
            return None
        certificate = self.samples[0].certificate
        for sample in self.samples[1:]:
            certificate = certificate.tightened(sample.certificate)
        return certificate

    def frame(self) -> pd.DataFrame:
        """Return the samples as a pandas frame: seconds, step, work, primal, dual, relative_gap and infeasibility, a row a sample."""
        import pandas as pd

        columns = ["seconds", "step", "work", "primal", "dual", "relative_gap", "infeasibility"]
        rows = [(s.seconds, s.step, s.work, *(getattr(s.certificate, name) for name in columns[3:])) for s in self.samples]
        return pd.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        best, seconds = self.best, self.times.setup + self.times.solve
        proven = ""
        if best is not None:
            proven = f", {outward(best.dual, 6, is_upper=False):.6g} <= optimum <= {outward(best.primal, 6, is_upper=True):.6g}"
        return f"<Record {self.status}: {self.reason}\n  {plural(len(self.samples), 'sample')}, {seconds:.3g} s{proven}>"

    def _repr_html_(self) -> str:
        """Return the sentence of the record and its last certified points, for notebooks."""
        from html import escape

        shown = self.frame().tail(_SHOWN_SAMPLES)
        for name, is_upper in (("primal", True), ("dual", False)):
            shown[name] = [outward(value, 6, is_upper=is_upper) for value in shown[name]]
        table = shown.to_html(index=False, border=0, float_format="{:.6g}".format)
        return f"<p>{escape(f'{self.status}: {self.reason}')}</p>{table}"
