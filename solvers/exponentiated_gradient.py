"""Exponentiated gradient, that is mirror descent with the entropy: weights are multiplied by exponentials of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.checks import one_of, real_number, whole_number
from bench_mtl.errors import InputError
from bench_mtl.forms import LinearFit, SimplexForm
from bench_mtl.protocols import Capability, IterativeSolver, NotOfferedError, Problem, Solver
from bench_mtl.types import Array, Iterate

STEP_RULES = ("auto", "line_search", "sqrt")

#: No weight changes by more than this in its logarithm in one step, so that nothing overflows.
_LONGEST_STEP = 700.0

#: A given start, which may have weights of 0, is mixed with this much of all weights alike: products never lift a weight from 0.
_MIXED = 1e-3

#: Between averages handed over: a twentieth of the steps so far, at most these.
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
        `search_iterations`, that with the lowest objective goes on, and the best iterate is handed over, to which the bound on the average
        holds too; "auto" is "line_search" for full gradients, and "sqrt" otherwise
    batch : None takes full gradients; a number that many examples a step, drawn uniformly with replacement from an `L1Form` (stochastic
        or online EG, "sqrt" only). The average of the iterates, with eta_t as weights, since the last power of two but one is handed over.
        Weights are dense: a step costs O(d m) whatever the examples.
    rates : to choose from for "sqrt"
    search_iterations : length of each trial
    seed : of the draws

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
    rates: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    search_iterations: int = 50
    seed: int = 0

    name: ClassVar[str] = "exponentiated_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SIMPLEX, Capability.SMOOTH})

    def __post_init__(self) -> None:
        one_of("step_rule", self.step_rule, STEP_RULES)
        if self.batch is not None:
            whole_number("batch", self.batch, minimum=1)
            if self.step_rule == "line_search":
                raise InputError("step_rule 'line_search' needs full gradients: leave batch out, or take 'sqrt'")
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

    def misfit(self, problem: Problem) -> str | None:
        reason = super().misfit(problem)
        if reason is not None:
            return reason
        try:
            problem.simplex_form()
        except NotOfferedError:
            return f"{self.label} needs a set that is made of simplices, which this form of {problem.name} has not"
        if self.batch is not None and Capability.L1 not in problem.offers:
            return f"{self.label} needs {Capability.L1} to draw examples from; {problem.name} does not offer it"
        return None

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        weights = _Weights(problem.simplex_form(), problem.point_shape)
        first = problem.repair(problem.start_point() if start is None else start)
        logs = weights.alike() if start is None else weights.mixed(first)
        yield Iterate(first)
        if self.batch is not None:
            yield from self._stochastic(problem, weights, logs)
        elif self.step_rule == "sqrt":
            yield from self._scheduled(problem, weights, logs, first)
        else:
            yield from _searched(problem, weights, logs)

    def _scheduled(self, problem: Problem, weights: _Weights, logs: Array, first: Array) -> Iterator[Iterate]:
        """Full gradients with steps that fall as 1 / sqrt(t), the best of several rates."""
        incumbent, lowest = first, problem.smooth_value(first)
        done, trials = 0, [_Descent(problem, weights, logs, rate) for rate in self.rates]
        while True:
            for trial in trials:
                for _ in range(self.search_iterations):
                    trial.advance()
                    done += 1
                    if trial.lowest < lowest:
                        lowest, incumbent = trial.lowest, trial.best
                    yield Iterate(incumbent, None, done, done + 0.5)
            trials = [min(trials, key=lambda trial: trial.lowest)]

    def _stochastic(self, problem: Problem, weights: _Weights, logs: Array) -> Iterator[Iterate]:
        """A few examples a step, with steps that fall as 1 / sqrt(t), the best of several rates, averaged."""
        assert self.batch is not None
        examples = _Examples(problem.l1_form().fit)
        everything = weights.prices(problem.value_and_gradient(weights.point(np.exp(logs)))[1])
        etas = [first_step(rate, everything) for rate in self.rates]
        trials = [_Drawn(examples, weights, logs, eta0, self.batch, np.random.default_rng(self.seed)) for eta0 in etas]
        values, done, judging = [], 0, 1.0
        for trial in trials:
            for _ in range(self.search_iterations):
                trial.advance()
            done += self.search_iterations
            values.append(problem.smooth_value(trial.average))
            judging += 0.5
            yield Iterate(trial.average, None, done, judging + done * self.batch / examples.count)
        chosen = trials[int(np.argmin(values))]
        while True:
            for _ in range(min(max(1, chosen.t // 20), _MOST_STEPS)):
                chosen.advance()
                done += 1
            yield Iterate(chosen.average, None, done, judging + done * self.batch / examples.count)


def _searched(problem: Problem, weights: _Weights, logs: Array) -> Iterator[Iterate]:
    """Full gradients, the step size by backtracking on the Bregman model."""
    p = np.exp(logs)
    value, gradient = problem.value_and_gradient(weights.point(p))
    prices = weights.prices(gradient)
    size = _size(prices)
    eta = 1.0 / size if size > 0.0 else 1.0
    step, work = 0, 1.0
    while True:
        eta = min(eta, _LONGEST_STEP / size) if size > 0.0 else 1.0
        new_logs = normalised(logs - eta * prices)
        new = np.exp(new_logs)
        divergence = float((new * (new_logs - logs)).sum())
        point = weights.point(new)
        new_value, gradient = problem.value_and_gradient(point)
        work += 1.0
        # f(p') - f(p) - <nabla, p' - p>: the curvature that the step has met. A few ulp keep rounding from halving eta for ever.
        bent = new_value - value - float((prices * (new - p)).sum()) - 1e-14 * abs(value)
        if bent > divergence / eta and eta * size > 1e-12:
            eta *= 0.5
            continue
        if bent <= 0.5 * divergence / eta:
            eta *= 2.0
        logs, p, value, prices = new_logs, new, new_value, weights.prices(gradient)
        size = _size(prices)
        step += 1
        yield Iterate(point, None, step, work)


class _Descent:
    """One run with full gradients and one rate."""

    def __init__(self, problem: Problem, weights: _Weights, logs: Array, rate: float) -> None:
        self._problem, self._weights, self._logs, self._rate = problem, weights, logs, rate
        self._eta0 = 0.0
        self._t = 0
        self.best, self.lowest = np.zeros(0), np.inf

    def advance(self) -> None:
        """Judge the current point, then take one step from it."""
        self._t += 1
        point = self._weights.point(np.exp(self._logs))
        value, gradient = self._problem.value_and_gradient(point)
        prices = self._weights.prices(gradient)
        if value < self.lowest:
            self.lowest, self.best = value, point
        if self._t == 1:
            self._eta0 = first_step(self._rate, prices)
        self._logs = scheduled_step(self._logs, prices, self._eta0 / self._t**0.5)


class _Drawn:
    """One run on drawn examples with one first step size, and the sums of what it averages."""

    def __init__(self, examples: _Examples, weights: _Weights, logs: Array, eta0: float, batch: int, rng: np.random.Generator) -> None:
        self._examples, self._weights, self._logs, self._batch, self._rng = examples, weights, logs, batch, rng
        self._eta0 = eta0
        self.t = 0
        self._sum = self._sum_before = np.zeros(())
        self._total = self._total_before = 0.0

    def advance(self) -> None:
        self.t += 1
        if self.t & (self.t - 1) == 0:
            self._sum_before, self._total_before = self._sum, self._total
            self._sum, self._total = np.zeros(()), 0.0
        eta = self._eta0 / self.t**0.5
        point = self._weights.point(np.exp(self._logs))
        self._sum, self._total = self._sum + eta * point, self._total + eta
        chosen = self._rng.integers(self._examples.count, size=self._batch)
        prices = self._weights.prices(self._examples.gradient(chosen, point))
        self._logs = scheduled_step(self._logs, prices, eta)

    @property
    def average(self) -> Array:
        total = self._total + self._total_before
        if total == 0.0:
            return self._weights.point(np.exp(self._logs))
        return np.asarray((self._sum + self._sum_before) / total)


class _Weights:
    """How logarithms of weights, one column a simplex (U, then V, then the slack), make a point."""

    def __init__(self, form: SimplexForm, shape: tuple[int, ...]) -> None:
        self._form, self._shape = form, shape
        self._columns = shape[1] if form.balls == "task" else 1
        self._entries = shape[0] * shape[1] // self._columns

    @property
    def count(self) -> int:
        """Weights of a column."""
        return self._entries * (1 + self._form.signed) + self._form.slack

    def alike(self) -> Array:
        return np.full((self.count, self._columns), -np.log(self.count))

    def mixed(self, point: Array) -> Array:
        """Weights that make this point, almost."""
        form, n = self._form, self._entries
        p = np.zeros((self.count, self._columns))
        V = self._oriented(point).reshape(n, self._columns) / (form.mass or 1.0)
        p[:n] = np.maximum(V, 0.0)
        if form.signed:
            p[n : 2 * n] = np.maximum(-V, 0.0)
        left = np.maximum(1.0 - p.sum(axis=0), 0.0)
        if form.signed:
            p += left / self.count  # U and V cancel
        elif form.slack:
            p[-1] += left
        return np.log((1.0 - _MIXED) * p / p.sum(axis=0) + _MIXED / self.count)

    def point(self, p: Array) -> Array:
        n = self._entries
        W = p[:n] - p[n : 2 * n] if self._form.signed else p[:n]
        return self._oriented(self._form.mass * W.reshape(self._shape))

    def prices(self, gradient: Array) -> Array:
        """The gradient in the weights."""
        g = self._form.mass * self._oriented(gradient).reshape(self._entries, self._columns)
        parts = [g, -g] if self._form.signed else [g]
        return np.concatenate([*parts, np.zeros((1, self._columns))] if self._form.slack else parts)

    def _oriented(self, W: Array) -> Array:
        return W if self._form.orientation is None else W * self._form.orientation


class _Examples:
    """The examples of a loss of linear predictions, to draw from: rows of a shared design, or those of all tasks, one after the other."""

    def __init__(self, fit: LinearFit) -> None:
        design = fit.design
        self._fit, self._tasks = fit, None
        if design.is_shared:
            self._X: Any = design.block(0)
        else:
            blocks = [design.block(k) for k in range(design.n_tasks)]
            self._X = sp.csr_array(sp.vstack(blocks)) if design.is_sparse else np.concatenate(blocks)
            self._tasks = np.repeat(np.arange(design.n_tasks), design.sizes)
        self.count = int(self._X.shape[0])

    def gradient(self, chosen: Any, W: Array) -> Array:
        """Of the chosen examples' losses, times the number of all over that of the chosen."""
        rows = self._X[chosen]
        part = replace(self._fit, targets=self._fit.targets[chosen], weights=self._fit.weights[chosen])
        predictions = np.asarray(rows @ W)
        if self._tasks is None:
            slopes = part.slopes(predictions)
        else:
            places = np.arange(len(chosen)), self._tasks[chosen]
            slopes = np.zeros(predictions.shape)
            slopes[places] = part.slopes(predictions[places])
        return np.asarray(rows.T @ slopes) * (self.count / len(chosen))


def normalised(logs: Array) -> Array:
    """Logarithms of weights that add up to 1 in every column."""
    logs = logs - logs.max(axis=0)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=0)))


def scheduled_step(logs: Array, prices: Array, eta: float) -> Array:
    """One step, no longer than what cannot overflow."""
    size = _size(prices)
    return normalised(logs - min(eta, _LONGEST_STEP / size) * prices) if size > 0.0 else logs


def first_step(rate: float, prices: Array) -> float:
    """rate sqrt(log N) / G."""
    size = _size(prices)
    return rate * float(np.sqrt(np.log(max(2, len(prices))))) / size if size > 0.0 else 1.0


def _size(prices: Array) -> float:
    """The largest range of a column."""
    return float((prices.max(axis=0) - prices.min(axis=0)).max())
