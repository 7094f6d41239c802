"""The projected subgradient method of the l1,inf papers, with its search for the step size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem


@dataclass(frozen=True)
class ProjectedSubgradient(IterativeSolver):
    """W <- prox(W - eta_t G_t) with eta_t = eta0 / sqrt(t), the best iterate kept.

    Every eta0 of `step_sizes` is run for `search_iterations` from the start, and the one with the lowest objective goes
    on; the search counts in steps, work and time. A penalty enters through its proximal operator (forward-backward).

    The dual point is the average of the subgradients' dual points of the current run with the step sizes as weights, over
    the steps since the last power of two but one: an average over all steps carries the first ones for ever and proves
    gaps about ten times larger.

    Parameters
    ----------
    step_sizes : the eta0 to try
    search_iterations : length of each trial
    iterations : length of the chosen run, the trial included; None goes on for as long as it is asked. The papers use
        200 (equal to `search_iterations`), so that the search is all there is.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, ICML 2009, sections 3 and 5.
    """

    step_sizes: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    search_iterations: int = 200
    iterations: int | None = None

    name: ClassVar[str] = "projected_subgradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SUBGRADIENT, Capability.PROX})
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.step_sizes, (tuple, list)) or not self.step_sizes:
            raise InputError(f"step_sizes must be a non-empty list of numbers, not {self.step_sizes!r}")
        object.__setattr__(self, "step_sizes", tuple(real_number("step_sizes", eta, strict=True) for eta in self.step_sizes))
        whole_number("search_iterations", self.search_iterations, minimum=1)
        if self.iterations is not None:
            whole_number("iterations", self.iterations, minimum=1)

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is None and problem.is_in_shards and len(problem.dual_shapes) > 1:
            return (
                f"{self.label} averages dual points with a number for each example and task; {problem.name} has examples in shards, and "
                "dual points that are told by coefficients"
            )
        return reason

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        first = problem.repair(problem.start_point() if start is None else start)
        trials = [_Run(problem, first, eta0) for eta0 in self.step_sizes]
        done, incumbent = 0, first
        lowest = np.inf
        length = self.search_iterations if self.iterations is None else min(self.search_iterations, self.iterations)
        for trial in trials:
            for _ in range(length):
                trial.advance()
                done += 1
                if trial.lowest < lowest:
                    lowest, incumbent = trial.lowest, trial.best
                yield Iterate(incumbent, trial.average_dual, done, float(done))
        chosen = min(trials, key=lambda trial: trial.lowest)
        while self.iterations is None or chosen.t < self.iterations:
            chosen.advance()
            done += 1
            yield Iterate(chosen.best, chosen.average_dual, done, float(done))


class _Run:
    """The state of a run with one eta0: point, best point and the weighted average of the dual points."""

    def __init__(self, problem: Problem, start: Array, eta0: float) -> None:
        self.problem, self.eta0 = problem, eta0
        self.point = self.best = start
        self.lowest = np.inf
        self.t = 0
        self._epoch = self._epoch_before = (0.0, np.zeros(problem.dual_shape))  # (sum of weights, weighted sum of duals)

    def advance(self) -> None:
        """Judge the current point, then take one step from it: one pass over the data."""
        self.t += 1
        eta = self.eta0 / self.t**0.5
        value, subgradient, dual = self.problem.value_and_subgradient(self.point)
        value += self.problem.prox_value(self.point)
        if value < self.lowest:
            self.lowest, self.best = value, self.point
        if self.t & (self.t - 1) == 0:
            self._epoch_before, self._epoch = self._epoch, (0.0, np.zeros_like(dual))
        self._epoch = (self._epoch[0] + eta, self._epoch[1] + eta * dual)
        self.point = self.problem.prox(self.point - eta * subgradient, eta)

    @property
    def average_dual(self) -> Array:
        return (self._epoch_before[1] + self._epoch[1]) / (self._epoch_before[0] + self._epoch[0])
