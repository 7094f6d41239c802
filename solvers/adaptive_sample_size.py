"""First-order methods on ever more of the data, for examples in shards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import real_number, unless_none
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.solver_state import OwnState, Stepper, SteppingSolver, entries_of
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.dual_newton import DualNewton
from bench_mtl.solvers.dual_newton.shards import is_cheap
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: Every sample is solved to this relative gap at least, unless it takes more steps.
_LOOSEST_GAP, _MOST_STEPS = 1e-2, 1000
#: Steps on a sample between two looks at its gap where the method does not state it; the smoothed method looks as often.
_CHECK_EVERY = 10


@dataclass(frozen=True)
class AdaptiveSampleSize(SteppingSolver):
    """Solve the problem on a few shards, go on from there on more of them, and at last on all.

    The optimum of a sample of n of the N examples differs from that of all by a relative objective that is proportional to 1/n. So a sample
    is solved to N/n times the target, and the last steps alone take all examples. Samples are shards drawn at random: where neighbouring
    examples are alike, more shards have to be, too. A sample proves nothing; the iterates that are handed over are judged on all data.

    Steps are those of `DualNewton` where it takes the problem and its Gram matrices are small, of `AcceleratedGradient` with restarts for
    other smooth losses, and of `SmoothedGradient` for hinges.

    Parameters
    ----------
    first : share of the shards in the first sample, above 0 and at most 1; one shard at least
    growth : how many times as many shards the next sample has, above 1
    target : relative gap; None takes that of the run, or 1e-6 where a run has none

    Notes
    -----
    Work counts passes over all data: a step on a sample counts by its share. The note of the iterates says how large the sample was.

    References
    ----------
    Daneshmand, Lucchi, Hofmann, ICML 2016 (starting small); Mokhtari, Daneshmand, Lucchi, Hofmann, Ribeiro, NIPS 2016 (adaptive sample
    sizes for second-order methods).
    """

    first: float = 1.0 / 64.0
    growth: float = 4.0
    target: float | None = None

    name: ClassVar[str] = "adaptive_sample_size"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.PROX})
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real_number("first", self.first, strict=True, maximum=1.0)
        real_number("growth", self.growth, minimum=1.0, strict=True)
        unless_none(real_number, "target", self.target, strict=True)

    def objection(self, problem: Problem) -> str | None:
        if not problem.is_in_shards:
            return f"{self.label} takes samples of shards, and {problem.name} has all examples in one matrix"
        if not problem.offers & {Capability.SMOOTH, Capability.SMOOTHED} or problem.on_shards([0]) is None:
            return f"{self.label} needs a loss that is a sum over shards, which that of {problem.name} is not in this form"
        return None

    def aimed_at(self, relative_gap: float) -> AdaptiveSampleSize:
        return self if self.target is not None else replace(self, target=relative_gap)

    def stepper(self, problem: Problem) -> SampleStepper:
        return SampleStepper(self, problem)


class SampleStepper(Stepper):
    """Solves one sample a step; then steps are those of the method on all shards."""

    kept = ("_point", "_dual", "_step", "_work", "_samples", "_smoothing", "_before", "_inner")

    def __init__(self, solver: AdaptiveSampleSize, problem: Problem) -> None:
        self._solver, self._problem, self._count = solver, problem, problem.count_shards()
        self._order = np.random.default_rng(0).permutation(self._count)
        self._sizes: list[int] = []
        size = max(1, round(solver.first * self._count))
        while size < self._count:
            self._sizes.append(size)
            size = max(size + 1, round(size * solver.growth))

    def start(self, at: Iterate) -> SampleStepper:
        # A point that is given is nearer than what a sample tells.
        self._step, self._work, self._samples = 0, 0.0, len(self._sizes) if at.primal.any() else 0
        self._point: Any = at.primal
        self._dual: Any = at.dual
        self._inner: Any = None
        earlier = entries_of(at)
        if earlier is not None and "smoothing" in earlier:  # it was made on all shards
            self._begin(OwnState(earlier).number("smoothing"))
        return self

    def _begin(self, smoothing: float) -> None:
        """Begin on all shards."""
        self._smoothing, self._before = smoothing, (self._step, self._work)
        self._method = _method(self._problem, smoothing).stepper(self._problem)
        self._inner = self._method.start(Iterate(self._point, self._dual))
        self._point = self._dual = None

    def step(self, now: SampleStepper) -> SampleStepper | None:
        if self._samples < len(self._sizes):
            self._solve_sample(self._sizes[self._samples])
            self._samples += 1
            return self
        if self._inner is None:
            self._begin(_smoothing_of(self._problem, self._dual))
        self._inner = self._method.step(self._inner)
        return None if self._inner is None else self

    def iterate(self, now: SampleStepper) -> Iterate:
        name = self._solver.name
        if self._inner is None:
            sample = f"{self._sizes[self._samples - 1]} shards" if self._step else "start"
            return Iterate(self._point, self._dual, self._step, self._work, f"{name}: {sample}")
        inner, (step, work) = self._method.iterate(self._inner), self._before
        return inner._replace(step=step + inner.step, work=work + inner.work, note=f"{name}: all shards")

    def _solve_sample(self, size: int) -> None:
        """Go on to the last iterate on a sample of so many shards."""
        sample = self._problem.on_shards(np.sort(self._order[:size]).tolist())
        assert sample is not None
        share = size / self._count
        target = min(_LOOSEST_GAP, (self._solver.target or _DEFAULT_TARGET) / share)
        last, looks = Iterate(self._point, self._dual), 0
        for iterate in _method(sample, _smoothing_of(sample, self._dual)).resume(sample, last):
            last, gap = iterate, iterate.claim
            if gap is None and last.step and last.step % _CHECK_EVERY == 0:
                looks += 1
                gap = sample.certify(last).relative_gap
            if gap is not None and (gap <= target or last.step >= _MOST_STEPS):
                break
        self._point, self._dual, self._step = last.primal, last.dual, self._step + last.step
        self._work += share * (last.work + looks)


def _method(problem: Problem, smoothing: float) -> SteppingSolver:
    newton = DualNewton()
    if isinstance(problem, FitProblem) and newton.incompatibility(problem) is None and is_cheap(problem):
        return newton
    if Capability.SMOOTH in problem.offers:
        return AcceleratedGradient(restart="gradient", gram="never")
    return SmoothedGradient(smoothing=smoothing)


def _smoothing_of(problem: Problem, dual: Array | None) -> float:
    """Return the smoothing of which a dual point in shards is made, in the unit of the problem, so that none has to be found again; 1 where
    there is none."""
    if Capability.SMOOTHED not in problem.offers or dual is None or dual.shape != problem.dual_shape:
        return 1.0
    smoothing = float(dual[0, -1, 0]) / getattr(problem, "smoothing_unit", 1.0)
    return smoothing if smoothing > 0.0 else 1.0
