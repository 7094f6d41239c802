"""First-order methods on ever more of the data, for examples in shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem
from bench_mtl.model.solver_state import MAKER, OwnState, entries_of, state_of
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: Every sample is solved to this relative gap at least, unless it takes more steps.
_LOOSEST_GAP, _MOST_STEPS = 1e-2, 1000
#: How entries of a state begin that are those of the method's.
_INNER = "method_"
#: What states have that were made on all shards.
_STEPS_BEFORE = "steps_before"
#: Steps on a sample between two looks at its gap; the smoothed method looks as often.
_CHECK_EVERY = 10


@dataclass(frozen=True)
class AdaptiveSampleSize(IterativeSolver):
    """Solve the problem on a few shards, go on from there on more of them, and at last on all.

    The optimum of a sample of n of the N examples differs from that of all by a relative objective that is proportional to 1/n. So a sample
    is solved to N/n times the target, and the last steps alone take all examples. Samples are shards drawn at random: where neighbouring
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
        own = OwnState.of(self, start)
        last = Iterate(problem.repair(start.primal), start.dual) if own is None else start
        if own is None or _STEPS_BEFORE not in own.entries:
            yield last
        count = problem.count_shards()
        order = np.random.default_rng(0).permutation(count)
        sizes = self._sample_sizes(count)
        done = 0 if own is None else int(own.number("samples"))
        for stage in range(done, len(sizes)):
            last = self._on_sample(problem, np.sort(order[: sizes[stage]]), sizes[stage] / count, last)
            yield last._replace(state=state_of(self, samples=stage + 1))
        yield from self._on_all(problem, last, None if own is None or done < len(sizes) else own)

    def _on_all(self, problem: Problem, last: Iterate, own: OwnState | None) -> Iterator[Iterate]:
        """Yield the iterates on all shards, from the last one on samples, or from the state of an earlier run."""
        before, start = last, Iterate(last.primal, last.dual)
        smoothing = _smoothing_of(problem, last.dual)
        if own is not None and _STEPS_BEFORE in own.entries:
            before = last._replace(step=int(own.number(_STEPS_BEFORE)), work=own.number("work_before"))
            smoothing = own.number("first_smoothing")
            inner = {name.removeprefix(_INNER): value for name, value in own.entries.items() if name.startswith(_INNER)}
            state = state_of(_method(problem, smoothing), **inner)
            start = last._replace(step=last.step - before.step, work=last.work - before.work, state=state)

        def kept(iterate: Iterate) -> Mapping[str, Any]:
            entries = {f"{_INNER}{name}": value for name, value in (entries_of(iterate) or {}).items() if name != MAKER}
            counts = {"samples": len(self._sample_sizes(problem.count_shards())), _STEPS_BEFORE: before.step, "work_before": before.work}
            return state_of(self, **counts, first_smoothing=smoothing, **entries)

        for iterate in _method(problem, smoothing).resume(problem, start):
            if iterate.step == 0:
                continue  # the last iterate again
            step, work = before.step + iterate.step, before.work + iterate.work
            yield iterate._replace(step=step, work=work, note=f"{self.name}: all shards", state=partial(kept, iterate))

    def _sample_sizes(self, count: int) -> list[int]:
        """Return the numbers of shards of the samples, all below `count`."""
        sizes: list[int] = []
        size = max(1, round(self.first * count))
        while size < count:
            sizes.append(size)
            size = max(size + 1, round(size * self.growth))
        return sizes

    def _on_sample(self, problem: Problem, chosen: NDArray[np.intp], share: float, start: Iterate) -> Iterate:
        """Return the last iterate on a sample, with steps and work of all so far."""
        sample = problem.on_shards(chosen.tolist())
        assert sample is not None
        target = min(_LOOSEST_GAP, (self.target or _DEFAULT_TARGET) / share)
        last, looks = Iterate(start.primal, start.dual), 0
        for iterate in _method(sample, _smoothing_of(sample, start.dual)).resume(sample, last):
            last = iterate
            if last.step % _CHECK_EVERY == 0 and last.step:
                looks += 1
                if sample.certify(last).relative_gap <= target or last.step >= _MOST_STEPS:
                    break
        work = start.work + share * (last.work + looks)
        return Iterate(last.primal, last.dual, start.step + last.step, work, f"{self.name}: {len(chosen)} shards")


def _method(problem: Problem, smoothing: float) -> IterativeSolver:
    if Capability.SMOOTH in problem.offers:
        return AcceleratedGradient(restart="gradient", gram="never")
    return SmoothedGradient(smoothing=smoothing)


def _smoothing_of(problem: Problem, dual: Array | None) -> float:
    """Return the smoothing of which a dual point in shards is made, so that none has to be found again; 1 where there is none."""
    if Capability.SMOOTHED not in problem.offers or dual is None or dual.shape != problem.dual_shape:
        return 1.0
    smoothing = float(dual[0, -1, 0])
    return smoothing if smoothing > 0.0 else 1.0
