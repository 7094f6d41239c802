"""Exponentiated gradient, that is mirror descent with the entropy: weights are multiplied by exponentials of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, SimplexForm
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Squared
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem, Solver
from bench_mtl.solvers.exponentiated_gradient.drawn import WeightsRun
from bench_mtl.solvers.exponentiated_gradient.weights import LONGEST_STEP, Weights, first_step, normalised, scheduled_step, size_of
from bench_mtl.solvers.stochastic.examples import Examples

STEP_RULES = ("auto", "line_search", "sqrt")

_RATES = (0.1, 1.0, 10.0, 100.0)
_RATES_OF_DRAWS = (0.1, 0.3, 1.0, 3.0)

#: Between two yielded averages lie a tenth of the steps so far, at most these.
_MOST_STEPS = 200


@dataclass(frozen=True)
class ExponentiatedGradient(IterativeSolver):
    """p_j <- p_j exp(-eta_t nabla_j) / Z_t on the weights p of a `SimplexForm`, W = mass (U - V), one simplex a column or one in all.

    p holds the positive weights U, the negative ones V (EG+-, where the form is signed), and the slack, whose gradient is 0. It is kept as
    logarithms, so that no weight gets lost by underflow, and one step serves all columns. It starts with all weights alike.

    Parameters
    ----------
    step_rule : "line_search" halves eta until f(p') <= f(p) + <nabla, p' - p> + KL(p' || p) / eta, and doubles it before the next step
        if half of the last term was enough (f is smooth relative to the entropy, with an unknown constant); "sqrt" is
        eta_t = rate sqrt(log N) / (G sqrt(t)), N the weights of a column, G the range of the first (full) gradient: each rate is run for
        `search_iterations`, that with the lowest objective goes on, and the best iterate is yielded, to which the bound on the average
        holds too; "auto" is "line_search" for full gradients, and "sqrt" otherwise
    batch : None takes full gradients; a number that many examples a step of a `LinearForm`, drawn uniformly with replacement (stochastic
        or online EG, "sqrt" only). The average of the iterates, with eta_t as weights, since the last power of two but one is yielded.
        A step costs in proportion to the features of its examples, and every average a pass over all weights.
    rates : rates for "sqrt" to choose from; by default 0.1, 1, 10, 100, and 0.1, 0.3, 1, 3 on drawn examples, where short trials are too
        kind to large ones
    search_iterations : length of each trial
    seed : seed of the draws

    Raises
    ------
    InputError : bad options; a line search on drawn examples.

    References
    ----------
    Kivinen, Warmuth, Information and Computation 132, 1997 (EG, EG+-); Beck, Teboulle, Operations Research Letters 31, 2003 (mirror
    descent, step size); Lu, Freund, Nesterov, SIAM J. Optimization 28, 2018, algorithm 1 (relative smoothness); Singer's slides, MMDS 2008.
    """

    step_rule: str = "auto"
    batch: int | None = None
    rates: tuple[float, ...] | None = None
    search_iterations: int = 50
    seed: int = 0

    name: ClassVar[str] = "exponentiated_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    takes_shards: ClassVar[bool] = True
    takes = (SimplexForm,)

    def __post_init__(self) -> None:
        one_of("step_rule", self.step_rule, STEP_RULES)
        if self.batch is not None:
            whole_number("batch", self.batch, minimum=1)
            if self.step_rule == "line_search":
                raise InputError("step_rule 'line_search' needs full gradients: leave batch out, or take 'sqrt'")
        if self.rates is not None:
            if not isinstance(self.rates, (tuple, list)) or not self.rates:
                raise InputError(f"rates must be a non-empty list of numbers, not {self.rates!r}")
            object.__setattr__(self, "rates", tuple(real_number("rates", rate, strict=True) for rate in self.rates))
        whole_number("search_iterations", self.search_iterations, minimum=1)
        whole_number("seed", self.seed)

    @property
    def label(self) -> str:
        if self.batch is not None:
            return f"{self.name}_stochastic"
        return f"{self.name}_sqrt" if self.step_rule == "sqrt" else self.name

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(), cls(step_rule="sqrt"), cls(batch=5)]

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        if self.batch is not None and not problem.has_form(LinearForm):
            return f"{self.label} draws examples of a loss of linear predictions, which {problem.name} does not have"
        if self.batch is not None and problem.is_in_shards:
            return f"{self.label} draws examples from one matrix; {problem.name} has them in shards"
        return None

    def warm_up(self) -> None:
        fit = LinearFit(SharedDesign(np.ones((1, 1)), 1), np.ones((1, 1)), Squared(), np.ones((1, 1)))
        weights = Weights(SimplexForm(1.0, True, True), (1, 1))
        WeightsRun(Examples.of(fit, by_rows=True), weights, weights.alike(), 1.0, batch=1, seed=0).advance()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        weights = Weights(problem.form(SimplexForm), problem.point_shape)
        first = problem.repair(problem.start_point() if start is None else start)
        logs = weights.alike() if start is None else weights.mixed(first)
        yield Iterate(first)
        if self.batch is not None:
            yield from self._stochastic(problem, weights, logs)
        elif self.step_rule == "sqrt":
            yield from self._scheduled(problem, weights, logs, first)
        else:
            yield from _searched(problem, weights, logs)

    def online(self, problem: Problem, eta0: float) -> WeightsRun:
        """Return a run from weights that are all alike, whose point is 0 where they are signed, that is told which example comes next.

        See `SparseOnline.online`; its steps are those of the weights, whose gradient is that of the point times the mass of the simplex.
        """
        weights = Weights(problem.form(SimplexForm), problem.point_shape)
        examples = Examples.of(problem.form(LinearForm).fit, by_rows=True)
        return WeightsRun(examples, weights, weights.alike(), eta0, batch=1, seed=self.seed)

    def _scheduled(self, problem: Problem, weights: Weights, logs: Array, first: Array) -> Iterator[Iterate]:
        """Full gradients with steps that fall as 1 / sqrt(t), the best of several rates."""
        incumbent, lowest, done = first, problem.smooth_value(first), 0
        trials: list[Any] = [[np.inf, _descent(problem, weights, logs, rate)] for rate in self.rates or _RATES]
        while True:
            for trial in trials:
                for value, point in islice(trial[1], self.search_iterations):
                    done, trial[0] = done + 1, min(trial[0], value)
                    if value < lowest:
                        lowest, incumbent = value, point
                    yield Iterate(incumbent, None, done, done + 0.5)
            trials = [min(trials, key=lambda trial: trial[0])]

    def _stochastic(self, problem: Problem, weights: Weights, logs: Array) -> Iterator[Iterate]:
        """A few examples a step, with steps that fall as 1 / sqrt(t), the best of several rates, averaged."""
        assert self.batch is not None
        everything = weights.prices(problem.value_and_gradient(weights.point(np.exp(logs)))[1])
        examples = Examples.of(problem.form(LinearForm).fit, by_rows=True)
        done, work, lowest, chosen = 0, 1.0, np.inf, None
        for rate in self.rates or _RATES_OF_DRAWS:
            trial = WeightsRun(examples, weights, logs, first_step(rate, everything), batch=self.batch, seed=self.seed)
            trial.advance(self.search_iterations)
            average = trial.iterate
            value = problem.smooth_value(average.primal)
            if chosen is None or value < lowest:
                lowest, chosen = value, trial
            done, work = done + trial.t, work + average.work + 0.5
            yield Iterate(average.primal, None, done, work)
        assert chosen is not None
        done, work = done - chosen.t, work - average.work
        while True:
            chosen.advance(min(max(1, chosen.t // 10), _MOST_STEPS))
            average = chosen.iterate
            yield Iterate(average.primal, None, done + chosen.t, work + average.work)


def _searched(problem: Problem, weights: Weights, logs: Array) -> Iterator[Iterate]:
    """Full gradients, the step size by backtracking on the Bregman model."""
    p = np.exp(logs)
    value, gradient = problem.value_and_gradient(weights.point(p))
    prices = weights.prices(gradient)
    size = size_of(prices)
    eta = 1.0 / size if size > 0.0 else 1.0
    step, work = 0, 1.0
    while True:
        eta = min(eta, LONGEST_STEP / size) if size > 0.0 else 1.0
        new_logs = normalised(logs - eta * prices)
        new = np.exp(new_logs)
        divergence = float((new * (new_logs - logs)).sum())
        point = weights.point(new)
        new_value, gradient = problem.value_and_gradient(point)
        work += 1.0
        # f(p') - f(p) - <nabla, p' - p>: the curvature along the step. A few ulp keep rounding from halving eta for ever.
        bent = new_value - value - float((prices * (new - p)).sum()) - 1e-14 * abs(value)
        if bent > divergence / eta and eta * size > 1e-12:
            eta *= 0.5
            continue
        if bent <= 0.5 * divergence / eta:
            eta *= 2.0
        logs, p, value, prices = new_logs, new, new_value, weights.prices(gradient)
        size = size_of(prices)
        step += 1
        yield Iterate(point, None, step, work)


def _descent(problem: Problem, weights: Weights, logs: Array, rate: float) -> Iterator[tuple[float, Array]]:
    """Yield points with their values, by full gradients and one rate."""
    eta0 = 0.0
    for t in count(1):
        point = weights.point(np.exp(logs))
        value, gradient = problem.value_and_gradient(point)
        prices = weights.prices(gradient)
        yield value, point
        eta0 = first_step(rate, prices) if t == 1 else eta0
        logs = scheduled_step(logs, prices, eta0 / t**0.5)
