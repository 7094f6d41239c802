"""Exponentiated gradient, that is mirror descent with the entropy: weights are multiplied by exponentials of gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import positive_numbers, unless_none, whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, SimplexForm
from bench_mtl.model.protocols import Capability, Problem, Solver
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.exponentiated_gradient.weights import LARGEST_ETA, LONGEST_STEP, Weights, first_step, normalised, size_of
from bench_mtl.solvers.stochastic.averages import LazySum
from bench_mtl.solvers.stochastic.examples import Examples, Order
from bench_mtl.solvers.stochastic.runs import DrawnRun

#: Between two yielded averages lie a tenth of the steps so far, at most these.
_MOST_STEPS = 200


@dataclass(frozen=True)
class ExponentiatedGradient(SteppingSolver):
    """p_j <- p_j exp(-eta_t nabla_j) / Z_t on the weights p of a `SimplexForm`, W = mass (U - V), one simplex a column or one in all.

    p holds the positive weights U, the negative ones V (EG+-, where the form is signed), and the slack, whose gradient is 0. p is stored as
    logarithms, so that no weight gets lost by underflow, and one step serves all columns. It starts with all weights alike.

    Parameters
    ----------
    batch : None takes full gradients, halves eta until f(p') <= f(p) + <nabla, p' - p> + KL(p' || p) / eta, and doubles it before the next
        step if half of the last term was enough (f is smooth relative to the entropy, with an unknown constant); a number that many
        examples a step of a `LinearForm`, drawn uniformly with replacement (stochastic or online EG), with
        eta_t = rate sqrt(log N) / (G sqrt(t)), N the weights of a column, G the range of the first (full) gradient: each rate is run for
        `search_iterations`, and that with the lowest objective goes on. The average of the iterates, with eta_t as weights, since the
        last power of two but one is yielded. A step costs in proportion to the features of its examples, and every average a pass over
        all weights.
    rates : to choose from on drawn examples; short trials are too kind to large ones
    search_iterations : length of each trial
    seed : seed of the draws

    Raises
    ------
    InputError : bad options.

    References
    ----------
    Kivinen, Warmuth, Information and Computation 132, 1997 (EG, EG+-); Beck, Teboulle, Operations Research Letters 31, 2003 (mirror
    descent, step size); Lu, Freund, Nesterov, SIAM J. Optimization 28, 2018, algorithm 1 (relative smoothness); Singer's slides, MMDS 2008.
    """

    batch: int | None = None
    rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    search_iterations: int = 50
    seed: int = 0

    name: ClassVar[str] = "exponentiated_gradient"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"exponentiated_gradient_stochastic": {"batch": 1}}
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    takes_shards: ClassVar[bool] = True
    takes = (SimplexForm,)

    def __post_init__(self) -> None:
        unless_none(whole_number, "batch", self.batch, minimum=1)
        object.__setattr__(self, "rates", positive_numbers("rates", self.rates))
        whole_number("search_iterations", self.search_iterations, minimum=1)
        whole_number("seed", self.seed)

    @property
    def label(self) -> str:
        return self.name if self.batch is None else f"{self.name}_stochastic"

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(), cls(batch=5)]

    def objection(self, problem: Problem) -> str | None:
        if self.batch is not None and not problem.has_form(LinearForm):
            return f"{self.label} draws examples of a loss of linear predictions, which {problem.name} does not have"
        if self.batch is not None and problem.is_in_shards:
            return f"{self.label} draws examples from one matrix; {problem.name} has them in shards"
        if self.batch is not None and problem.form(LinearForm).fit.loss.code is None:
            return f"{self.label} has compiled steps, of losses but {problem.form(LinearForm).fit.loss.name}"
        return None

    def stepper(self, problem: Problem) -> Stepper:
        return _LineSearchStepper(problem) if self.batch is None else _DrawnStepper(self, problem)

    def online(self, problem: Problem, eta0: float) -> WeightsRun:
        """Return a run from weights that are all alike, whose point is 0 where they are signed, that receives the next example.

        See `SparseOnline.online`; its steps are those of the weights, whose gradient is that of the point times the mass of the simplex.
        """
        weights = Weights(problem.form(SimplexForm), problem.point_shape)
        examples = Examples.of(problem.form(LinearForm).fit, by_rows=True)
        return WeightsRun(examples, weights, weights.alike(), eta0, batch=1, seed=self.seed)


def _started(problem: Problem, weights: Weights, point: Array) -> Array:
    """Return the logarithms of the first weights: all alike, unless another start is given than the problem's own."""
    return weights.alike() if np.array_equal(point, problem.start_point()) else weights.mixed(point)


class _Searched(NamedTuple):
    """A step by backtracking on the Bregman model: weights, their logarithms and their point, with value and gradient there."""

    logs: Array
    p: Array
    point: Array
    value: float
    prices: Array
    eta: float
    step: int = 0
    work: float = 1.0


class _LineSearchStepper(Stepper):
    def __init__(self, problem: Problem) -> None:
        self._problem, self._weights = problem, Weights(problem.form(SimplexForm), problem.point_shape)

    def start(self, at: Iterate) -> _Searched:
        logs = _started(self._problem, self._weights, at.primal)
        p = np.exp(logs)
        point = self._weights.point(p)
        value, gradient = self._problem.value_and_gradient(point)
        prices = self._weights.prices(gradient)
        size = size_of(prices)
        return _Searched(logs, p, point, value, prices, min(1.0 / size, LARGEST_ETA) if size > 0.0 else 1.0)

    def step(self, now: _Searched) -> _Searched | None:
        logs, prices, size, eta, work = now.logs, now.prices, size_of(now.prices), now.eta, now.work
        if not np.isfinite(size):  # a gradient that overflows has no direction
            return None
        while True:
            eta = min(eta, LONGEST_STEP / size, LARGEST_ETA) if size > 0.0 else 1.0
            new_logs = normalised(logs - eta * prices)
            new = np.exp(new_logs)
            divergence = float((new * (new_logs - logs)).sum())
            point = self._weights.point(new)
            value, gradient = self._problem.value_and_gradient(point)
            work += 1.0
            # f(p') - f(p) - <nabla, p' - p>: the curvature along the step. A few ulp keep rounding from halving eta for ever.
            bent = value - now.value - float((prices * (new - now.p)).sum()) - 1e-14 * abs(now.value)
            if not (bent > divergence / eta and eta * size > 1e-12):  # nor is anything more than what overflows
                break
            eta *= 0.5
        if bent <= 0.5 * divergence / eta:
            eta *= 2.0
        return _Searched(new_logs, new, point, value, self._weights.prices(gradient), eta, now.step + 1, work)

    def iterate(self, now: _Searched) -> Iterate:
        return Iterate(now.point, None, now.step, now.work)


class WeightsRun(DrawnRun):
    """Steps on drawn examples with one eta0, at the cost of the features that these have; its average is weighted by the step sizes."""

    kept = ("t", "_order", "_eta0", "_weights", "_sums", "_sum")

    def __init__(self, examples: Examples, weights: Weights, logs: Array, eta0: float, *, batch: int, seed: int) -> None:
        import bench_mtl.solvers.exponentiated_gradient.kernels as kernels

        super().__init__(Order(examples.count, "random", seed), batch)
        self._examples, self._map, self._eta0, self._kernels = examples, weights, eta0, kernels
        self._factors = weights.factors
        self._weights, self._sums = np.exp(logs), np.ones(logs.shape[1])
        self._sum = LazySum(logs.shape, self._sums.shape)
        d, m = weights.shape
        predictions, derivatives = np.empty((2, batch, examples.targets.shape[1]))
        touched, is_touched = np.empty(d, dtype=np.int64), np.zeros(d, dtype=np.bool_)
        ends = np.empty((2, len(self._sums)))
        self._scratch = kernels.Scratch(predictions, derivatives, np.zeros((d, m)), touched, is_touched, ends)

    @property
    def iterate(self) -> Iterate:
        """The average."""
        return Iterate(self._map.point(self._sum.average(self._weights)), None, self.t, self.work)

    @property
    def work(self) -> float:
        return self.t * self._batch / self._examples.count

    @property
    def point(self) -> Array:
        """The point now, without averaging."""
        return self._map.point(self._weights / self._sums)

    @property
    def predictions(self) -> Array:
        """Those of the last examples, before their step: one an example, or one an example and task of a shared design."""
        return np.asarray(self._scratch.predictions).ravel()

    def _turn(self) -> None:
        self._sum.turn(self._weights)

    def _take(self, chosen: Any) -> None:
        drawn_steps: Any = self._kernels.drawn_steps
        weights, late = self._weights.ravel(), self._sum.late.ravel()
        held = self._kernels.Held(weights, late, self._sums, self._sum.totals, self._factors, self._map.signed)
        while len(chosen):
            made = drawn_steps(self._examples.for_kernels, chosen, self.t, self._eta0, held, self._scratch)
            steps = np.arange(self.t + 1, self.t + abs(made) + 1)
            self._sum.weigh(float((self._eta0 / np.sqrt(steps)).sum()))
            self.t += len(steps)
            chosen = chosen[len(steps) :]
            if made < 0:
                self._sum.settle(self._weights)
                self._weights /= self._weights.sum(axis=0)
                self._sums[:] = 1.0


class _DrawnStepper(Stepper):
    """A few examples a step, averaged, by the best of several rates."""

    kept = ("_logs", "_etas", "_chosen", "_number", "_lowest", "_shown", "_step", "_work")
    varying = ("order_left",)

    def __init__(self, solver: ExponentiatedGradient, problem: Problem) -> None:
        self._solver, self._problem, self._weights = solver, problem, Weights(problem.form(SimplexForm), problem.point_shape)
        self._examples = Examples.of(problem.form(LinearForm).fit, by_rows=True)

    def _trial(self, eta0: float) -> WeightsRun:
        assert self._solver.batch is not None
        return WeightsRun(self._examples, self._weights, self._logs, eta0, batch=self._solver.batch, seed=self._solver.seed)

    def start(self, at: Iterate) -> _DrawnStepper:
        self._logs = _started(self._problem, self._weights, at.primal)
        everything = self._weights.prices(self._problem.value_and_gradient(self._weights.point(np.exp(self._logs)))[1])
        self._etas = np.array([first_step(rate, everything) for rate in self._solver.rates])
        self._chosen, self._number, self._lowest = self._trial(1.0), 0, np.inf
        self._shown, self._step, self._work = at.primal, 0, 1.0
        return self

    def step(self, now: _DrawnStepper) -> _DrawnStepper:
        run, is_over = self._chosen, self._number == len(self._etas)
        if is_over:
            self._step, self._work = self._step - run.t, self._work - run.work
            run.advance(min(max(1, run.t // 10), _MOST_STEPS))
        else:
            run = self._trial(float(self._etas[self._number]))
            run.advance(self._solver.search_iterations)
            self._number, self._work = self._number + 1, self._work + 0.5
        self._shown, self._step, self._work = run.iterate.primal, self._step + run.t, self._work + run.work
        if not is_over and ((value := self._problem.smooth_value(self._shown)) < self._lowest or self._number == 1):
            self._chosen, self._lowest = run, value
        return self

    def iterate(self, now: _DrawnStepper) -> Iterate:
        return Iterate(self._shown, None, self._step, self._work)
