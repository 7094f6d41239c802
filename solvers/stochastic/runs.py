"""Solvers that draw examples, their runs, and the run on a dense matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number, unless_none, whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.protocols import SHOWN_SHARE, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.stochastic.averages import Epochs, VisitedDuals, begins_epoch, left_of_epoch
from bench_mtl.solvers.stochastic.examples import Examples, Order

#: So many steps are drawn at once at most.
_MOST_STEPS = 1_000_000


class DrawnRun(ABC):
    """Steps on `batch` examples at a time; averages begin anew at steps whose numbers are powers of two."""

    def __init__(self, order: Order, batch: int = 1) -> None:
        self._order, self._batch = order, batch
        self.t = 0

    def advance(self, steps: int = 1) -> None:
        """Take `steps` steps, on examples in the run's own order."""
        while steps > 0:
            portion = min(steps, _MOST_STEPS)
            self.take(self._order.next(portion * self._batch))
            steps -= portion

    def take(self, chosen: Any) -> None:
        """Take the steps of the chosen examples, `batch` a step, in turn."""
        chosen = chosen.reshape(-1, self._batch)
        while len(chosen):
            portion = left_of_epoch(self.t)
            if begins_epoch(self.t + 1):
                self._turn()
            self._take(chosen[:portion])
            chosen = chosen[portion:]

    @abstractmethod
    def _turn(self) -> None:
        """Begin new averages."""

    @abstractmethod
    def _take(self, chosen: Any) -> None:
        """Take the steps of a part of an epoch, a line each."""


class DrawingStepper(Stepper):
    """Has a run take its steps: the run is the state."""

    varying = ("order_left", "parts_features", "parts_stored", "parts_slots", "parts_nodes")

    def __init__(self, solver: DrawingSolver, form: Any) -> None:
        self._solver, self._form = solver, form

    def start(self, at: Iterate) -> Any:
        return self._solver.run(self._form, at.primal)

    def step(self, now: Any) -> Any:
        now.advance(self._solver.portion(now))
        return now

    def iterate(self, now: Any) -> Iterate:
        return self._solver.shown(now.iterate, self._form)


class DrawingSolver(SteppingSolver):
    """A solver that takes steps on drawn examples: what its options may be, and its iterates."""

    seed: int
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The words that options may be."""

    def __post_init__(self) -> None:
        for name, words in self.choices.items():
            one_of(name, getattr(self, name), words)
        whole_number("batch", getattr(self, "batch", 1), minimum=1)
        whole_number("seed", self.seed)
        unless_none(real_number, "step_size", getattr(self, "step_size", None), strict=True)

    @abstractmethod
    def run(self, form: Any, start: Array) -> Any:
        """Return what takes steps from a feasible point: `advance`, `t`, `iterate`."""

    def portion(self, run: Any) -> int:
        """Return the number of steps to the next iterate."""
        return 1 + int(run.t) // SHOWN_SHARE

    def shown(self, iterate: Iterate, form: Any) -> Iterate:
        """Return an iterate of a run as one of the problem."""
        return iterate

    def stepper(self, problem: Problem) -> DrawingStepper:
        return DrawingStepper(self, problem.form(self.takes[0]))


class DenseRun(DrawnRun):
    """W <- prox(W - eta_t g_t, eta_t) on a dense matrix, with averages of W ("suffix", "all" or, none, "last") and a dual point.

    The prox of W and eta is argmin_V 1/2 ||V - W||^2 + eta * (the rest of the objective), and may overwrite W; of the options it takes
    `batch`, `averaging`, `seed` and `step_size`, and the number of balls is that of `Examples.default_step_size`.
    """

    kept = ("t", "_order", "_duals", "_averages", "_point", "_prox")

    def __init__(self, form: LinearForm, prox: Callable[[Array, float], Array], order: str, balls: int, options: Any, start: Array) -> None:
        self._fit, self._prox, self._averaging = form.fit, prox, options.averaging
        self._examples = Examples.of(form.fit)
        super().__init__(Order(self._examples.count, order, options.seed), options.batch)
        self._eta0 = options.step_size or self._examples.default_step_size(form.fit, form.radius, form.penalty, balls, options.batch)
        self._duals, self._averages = VisitedDuals(form.fit), Epochs(start.shape, ())
        self._scratch = np.empty((2, self._batch, self._examples.targets.shape[1]))
        self._point = np.array(start, order="C")

    def _turn(self) -> None:
        self._duals.turn()
        if self._averaging == "suffix":
            self._averages.turn()

    def _take(self, chosen: Any) -> None:
        import bench_mtl.solvers.stochastic.kernels as kernels
        from bench_mtl.core.kernels.vectors import add_multiple

        dense_step: Any = kernels.dense_step
        visits, (total, count) = self._duals.for_kernels, self._averages.now
        for batch in chosen:
            self.t += 1
            eta = self._eta0 / self.t**0.5
            dense_step(self._examples.for_kernels, batch, eta, self._point, visits, *self._scratch)
            self._point = self._prox(self._point, eta)
            if self._averaging != "last":
                add_multiple(1.0, self._point.ravel(), total.ravel())
                count += 1.0

    @property
    def predictions(self) -> Array:
        """Those of the last examples, before their step, example by example."""
        return np.asarray(self._scratch[0]).ravel()

    @property
    def point(self) -> Array:
        """The last point, without averaging; a view that the next step changes."""
        return self._point

    @property
    def iterate(self) -> Iterate:
        """The average, or the last point, with its dual point."""
        if self._averaging == "last":
            point = self._point.copy()
        else:
            total, count = self._averages.sums
            point = total / count
        return Iterate(point, self._duals.dual(self._fit), self.t, self.t * self._batch / self._examples.count)
