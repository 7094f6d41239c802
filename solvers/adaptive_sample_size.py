"""First-order methods on ever more of the data, for examples in shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: No sample is solved to less than this relative gap, and none takes more steps.
_LOOSEST_GAP, _MOST_STEPS = 1e-2, 1000
#: Steps on a sample between two looks at its gap.
_CHECK_EVERY = 16


@dataclass(frozen=True)
class AdaptiveSampleSize(IterativeSolver):
    """Solve the problem on a few shards, go on from there on more of them, and at last on all.

    The optimum of a sample of n of the N examples is about as far from that of all, in relative objective, as 1/n falls. So a sample is
    solved to N/n times the target, and all examples take the last steps alone. Samples are shards drawn at random: where neighbouring
    examples are alike, more shards have to be, too. A sample proves nothing; the iterates that are handed over are judged on all data.

    Steps are those of `AcceleratedGradient` with restarts for smooth losses, and of `SmoothedGradient` for hinges.

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
        if real_number("first", self.first, strict=True) > 1.0:
            raise InputError(f"first must be at most 1, not {self.first:g}")
        real_number("growth", self.growth, minimum=1.0, strict=True)
        if self.target is not None:
            real_number("target", self.target, strict=True)

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        if not problem.is_in_shards:
            return f"{self.label} takes samples of shards, and {problem.name} has all examples in one matrix"
        if not problem.offers & {Capability.SMOOTH, Capability.SMOOTHED} or problem.on_shards([0]) is None:
            return f"{self.label} needs a loss that is a sum over shards, which that of {problem.name} is not in this form"
        return None

    def aimed_at(self, relative_gap: float) -> AdaptiveSampleSize:
        return self if self.target is not None else replace(self, target=relative_gap)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        last = Iterate(problem.repair(start.primal), start.dual)
        yield last
        count = problem.count_shards()
        order = np.random.default_rng(0).permutation(count)
        for size in self._sample_sizes(count):
            share = size / count
            for last in self._on_sample(problem, np.sort(order[:size]), share, last):
                yield last
        method, before = _method(problem), last
        for iterate in method.resume(problem, Iterate(last.primal, last.dual)):
            yield iterate._replace(step=before.step + iterate.step, work=before.work + iterate.work, note="all shards")

    def _sample_sizes(self, count: int) -> list[int]:
        """Return the numbers of shards of the samples, all below `count`."""
        sizes, size = [], max(1.0, self.first * count)
        while round(size) < count:
            sizes.append(round(size))
            size *= self.growth
        return sizes

    def _on_sample(self, problem: Problem, chosen: NDArray[np.intp], share: float, start: Iterate) -> Iterator[Iterate]:
        """Yield the last iterate on a sample, with steps and work of all so far."""
        sample = problem.on_shards(chosen.tolist())
        assert sample is not None
        target = min(_LOOSEST_GAP, (self.target or _DEFAULT_TARGET) / share)
        note = f"{len(chosen)} shards"
        last, extra = start, 0.0
        for iterate in _method(sample).resume(sample, Iterate(start.primal, start.dual)):
            last = Iterate(iterate.primal, iterate.dual, start.step + iterate.step, start.work + share * (iterate.work + extra), note)
            if iterate.step % _CHECK_EVERY == 0 and iterate.step:
                extra += 1.0
                if sample.certify(iterate).relative_gap <= target or iterate.step >= _MOST_STEPS:
                    break
        yield last


def _method(problem: Problem) -> IterativeSolver:
    return AcceleratedGradient(restart="gradient", gram="never") if Capability.SMOOTH in problem.offers else SmoothedGradient()
