"""Stochastic projected gradient steps on a dense matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.examples import ORDERS, Examples, Order, VisitedDuals
from bench_mtl.model.forms import L1Form
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Squared
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem
from bench_mtl.projections import METHODS, project_l1_ball

AVERAGES = ("suffix", "all", "last")


@dataclass(frozen=True)
class StochasticGradient(IterativeSolver):
    """W <- prox(W - eta_t g_t), eta_t = eta0 / sqrt(t), g_t = N / batch sum_b s_b grad loss(x_b.W) over `batch` of the N examples.

    The whole of W is projected onto its l1 balls (or soft-thresholded) after every step: with a batch of 1 and the last iterate this is
    the method of `sparse_online`, with the same iterates, at a cost in proportion to the number of features. An average doubles that
    cost. The dual point is minus the averaged derivatives of the loss at the visits to each example, see `VisitedDuals`. Work is the number
    of examples seen over N; an example of a multiclass loss is a row.

    Parameters
    ----------
    batch : examples per step
    averaging : "suffix" returns the average of the iterates since the last power of two but one, "all" the average of all iterates, "last"
        the last iterate
    projection : method of the projection, see `project_l1_ball`
    order : order of the examples: "shuffled" takes each once an epoch, in a new order; "random" draws with replacement; "given" as stored
    seed : seed of the order
    step_size : eta0; by default R / G, see `Examples.default_step_size`

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, sections 6 and 7; Zinkevich, ICML 2003; Rakhlin, Shamir, Sridharan, ICML 2012
    (suffix averages).
    """

    batch: int = 1
    averaging: str = "suffix"
    projection: str = "newton"
    order: str = "shuffled"
    seed: int = 0
    step_size: float | None = None

    name: ClassVar[str] = "stochastic_gradient"
    takes: ClassVar[tuple[type[Form], ...]] = (L1Form,)

    def __post_init__(self) -> None:
        whole_number("batch", self.batch, minimum=1)
        one_of("averaging", self.averaging, AVERAGES)
        one_of("projection", self.projection, METHODS)
        one_of("order", self.order, ORDERS)
        whole_number("seed", self.seed)
        if self.step_size is not None:
            real_number("step_size", self.step_size, strict=True)

    @property
    def label(self) -> str:
        return self.name if self.projection == "newton" else f"{self.name}_{self.projection}"

    def warm_up(self) -> None:
        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first)
        run = self.run(problem.form(L1Form), first)
        while True:
            for _ in range(1 + run.t // SHOWN_SHARE):
                run.advance()
            yield run.iterate

    def run(self, form: L1Form, start: Array) -> DenseRun:
        """Return a run from a feasible point."""
        examples = Examples.of(form.fit)
        balls = examples.n_tasks if form.radius is not None and form.balls == "task" else 1
        eta0 = self.step_size or examples.default_step_size(form.fit, form.radius, form.penalty, balls, self.batch)

        def prox(W: Array, eta: float) -> Array:
            if form.radius is None or form.nonneg or (form.balls == "task" and W.shape[1] > 1):
                return np.ascontiguousarray(form.prox(W, eta, method=self.projection))
            flat = W.ravel()  # a view: nothing is copied
            project_l1_ball(flat, form.radius, method=self.projection, out=flat)
            return W

        return DenseRun(form.fit, examples, prox, Order(examples.count, self.order, self.seed), eta0, self.batch, self.averaging, start)


class DenseRun:
    """One run of W <- prox(W - eta_t g_t, eta_t) on a dense matrix, with the sums for averages of W and the dual point of the visits.

    Parameters
    ----------
    prox : W, eta -> argmin_V 1/2 ||V - W||^2 + eta * (the rest of the objective); may overwrite W
    order : the examples to come
    """

    def __init__(
        self, fit: LinearFit, examples: Examples, prox: Callable[[Array, float], Array], order: Order, eta0: float, batch: int,
        averaging: str, start: Array,
    ) -> None:  # fmt: skip
        self._fit, self._examples, self._prox, self._order = fit, examples, prox, order
        self._eta0, self._batch, self._averaging = eta0, batch, averaging
        self._data, self._duals = examples.for_kernels, VisitedDuals(fit)
        self._scratch = np.empty((2, batch, examples.targets.shape[1]))
        self._point = np.array(start, order="C")
        self._sum, self._sum_before = np.zeros_like(self._point), np.zeros_like(self._point)
        self._steps = self._steps_before = 0
        self.t = 0

    def advance(self) -> None:
        """Take one step, on examples in the run's own order."""
        self.take(self._order.next(self._batch))

    def take(self, chosen: Any) -> None:
        """Take one step, on `batch` chosen examples."""
        import bench_mtl.solvers.kernels.online as kernel
        from bench_mtl.core.kernels.vectors import add_multiple

        self.t += 1
        if self.t & (self.t - 1) == 0:
            self._next_epoch()
        eta = self._eta0 / self.t**0.5
        dense_step: Any = kernel.dense_step
        dense_step(*self._data, chosen, eta, self._point, *self._duals.for_kernels, *self._scratch)
        self._point = self._prox(self._point, eta)
        if self._averaging != "last":
            add_multiple(1.0, self._point.ravel(), self._sum.ravel())
            self._steps += 1

    def _next_epoch(self) -> None:
        self._duals.next_epoch()
        if self._averaging == "suffix":
            self._sum_before, self._sum = self._sum, np.zeros_like(self._sum)
            self._steps_before, self._steps = self._steps, 0

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
        is_last = self._averaging == "last"
        point = self._point.copy() if is_last else (self._sum + self._sum_before) / (self._steps + self._steps_before)
        return Iterate(point, self._duals.dual(self._fit), self.t, self.t * self._batch / self._examples.count)


def warm_up() -> None:
    """Compile what a `DenseRun` under an l1 ball runs, or load it."""
    fit = LinearFit(SharedDesign(sp.csr_array(np.ones((1, 2))), 1), np.ones((1, 1)), Squared(), np.ones((1, 1)))
    run = StochasticGradient().run(L1Form(fit, 0.5, None), np.ones((2, 1)))
    run.advance()
    assert run.iterate.primal.size == 2
