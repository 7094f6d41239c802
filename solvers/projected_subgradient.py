"""The projected subgradient method of the l1,inf papers, with its search for the step size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import positive_numbers, unless_none, whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.stochastic.averages import RecentMean, begins_epoch


@dataclass(frozen=True)
class ProjectedSubgradient(SteppingSolver):
    """W <- prox(W - eta_t G_t) with eta_t = eta0 / sqrt(t), the best iterate retained.

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
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_sizes", positive_numbers("step_sizes", self.step_sizes))
        whole_number("search_iterations", self.search_iterations, minimum=1)
        unless_none(whole_number, "iterations", self.iterations, minimum=1)

    def objection(self, problem: Problem) -> str | None:
        if not problem.is_in_shards or len(problem.dual_shapes) == 1:
            return None
        return (
            f"{self.label} averages dual points with a number for each example and task; {problem.name} has examples in shards, and "
            "dual points that are stored as coefficients"
        )

    def stepper(self, problem: Problem) -> SubgradientStepper:
        length = self.search_iterations if self.iterations is None else min(self.search_iterations, self.iterations)
        return SubgradientStepper(problem, self.step_sizes, length, self.iterations)


class Trial(NamedTuple):
    """A run with one step size, of `t` steps."""

    point: Array
    best: Array
    duals: RecentMean
    lowest: float = math.inf
    size: float = 0.0
    t: int = 0


class Search(NamedTuple):
    """Where the search is, and its best point so far."""

    best: Array
    lowest: float
    first: Trial
    """One without steps."""
    trial: Trial
    chosen: Trial
    """The best of those that are over."""
    number: int = 0
    """That of the trial, or how many there are once the chosen one goes on."""
    step: int = 0


class SubgradientStepper(Stepper):
    """Takes the steps of one trial after the other, `length` each, and those of the best, `most` in all or without end."""

    def __init__(self, problem: Problem, sizes: tuple[float, ...], length: int, most: int | None) -> None:
        self._problem, self._sizes, self._length, self._most = problem, sizes, length, most

    def start(self, at: Iterate) -> Search:
        zeros = np.zeros(self._problem.dual_shape)
        first = Trial(at.primal, at.primal, RecentMean(zeros, zeros))
        now = self.step(Search(first.best, math.inf, first, first._replace(size=self._sizes[0]), first))
        assert now is not None
        return now

    def step(self, now: Search) -> Search | None:
        best, lowest, first, trial, chosen, number, step = now
        if number < len(self._sizes) and trial.t == self._length:
            chosen = trial if number == 0 or trial.lowest < chosen.lowest else chosen
            number += 1
            trial = first._replace(size=self._sizes[number]) if number < len(self._sizes) else chosen
        if number == len(self._sizes) and trial.t == self._most:
            return None
        trial = self._after(trial)
        if trial.lowest < lowest:
            best, lowest = trial.best, trial.lowest
        return Search(best, lowest, first, trial, chosen, number, step + 1)

    def _after(self, trial: Trial) -> Trial:
        """Judge the current point, then take one step from it: one pass over the data."""
        point, best, duals, lowest, size, t = trial
        value, subgradient, dual = self._problem.value_and_subgradient(point)
        value += self._problem.prox_value(point)
        if value < lowest:
            lowest, best = value, point
        t, eta = t + 1, size / (t + 1) ** 0.5
        point = self._problem.prox(point - eta * subgradient, eta)
        return Trial(point, best, duals.plus(dual, eta, anew=begins_epoch(t)), lowest, size, t)

    def iterate(self, now: Search) -> Iterate:
        return Iterate(now.best, now.trial.duals.value, now.step, float(now.step))
