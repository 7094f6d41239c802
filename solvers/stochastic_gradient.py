"""Stochastic projected gradient steps on a dense matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.examples import ORDERS, Examples, Order, Visits
from bench_mtl.model.forms import L1Form
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Squared
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem
from bench_mtl.model.regret import OnlineRun
from bench_mtl.projections import METHODS, project_l1_ball

AVERAGES = ("suffix", "all", "last")


@dataclass(frozen=True)
class StochasticGradient(IterativeSolver):
    """W <- prox(W - eta_t g_t), eta_t = eta0 / sqrt(t), g_t = N / batch sum_b s_b grad loss(x_b.W) over `batch` of the N examples.

    The whole of W is projected onto its l1 balls (or soft-thresholded) after every step: with a batch of 1 and the last iterate the
    method is that of `sparse_online`, with the same iterates, at a cost in proportion to the number of features. Averages cost as
    much again. The dual point is minus the average slope of the loss at the visits to each example, see `Visits`. Work counts examples
    seen, N of them as 1; of a multiclass loss an example is a row.

    Parameters
    ----------
    batch : examples a step
    averaging : "suffix" hands over the average of the iterates since the last power of two but one, "all" that of all, "last" none
    projection : method of the projection, see `project_l1_ball`
    order : of the examples: "shuffled" takes each once an epoch, in a new order; "random" draws with replacement; "given" as they are
    seed : of the order
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
        fit = LinearFit(SharedDesign(sp.csr_array(np.ones((1, 2))), 1), np.ones((1, 1)), Squared(), np.ones((1, 1)))
        run = DenseRun(L1Form(fit, 0.5, None), self, np.ones((2, 1)))
        run.advance()
        assert run.iterate.primal.size == 2

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first)
        run = DenseRun(problem.form(L1Form), self, first)
        while True:
            for _ in range(1 + run.t // SHOWN_SHARE):
                run.advance()
            yield run.iterate

    def play(self, problem: Problem, rounds: int, start: Array | None = None) -> OnlineRun:
        """The first `rounds` steps as an online game: which examples came, and what the iterate before the step lost, penalty included."""
        run = DenseRun(problem.form(L1Form), self, problem.repair(problem.start_point() if start is None else start))
        played = [run.advance() for _ in range(whole_number("rounds", rounds, minimum=1))]
        return OnlineRun(np.stack([chosen for chosen, _ in played]), np.array([loss for _, loss in played]))


class DenseRun:
    """One run: its point, the sums of what it averages, and what visits said."""

    def __init__(self, form: L1Form, options: StochasticGradient, start: Array) -> None:
        self._form, self._options = form, options
        self._examples = Examples.of(form.fit)
        self._data = self._examples.for_kernels
        self._order = Order(self._examples.count, options.order, options.seed)
        self._visits = Visits(form.fit)
        self._eta0 = self._examples.default_step_size(form, options.batch) if options.step_size is None else options.step_size
        self._scratch = (
            np.empty((options.batch, self._examples.targets.shape[1])),
            np.empty((options.batch, self._examples.targets.shape[1])),
        )
        self._point = np.array(start, order="C")
        self._sum, self._sum_before = np.zeros_like(self._point), np.zeros_like(self._point)
        self._steps = self._steps_before = 0
        self.t = 0

    def advance(self) -> tuple[Any, float]:
        """One step: which examples came, and what was lost on them before, on average."""
        import bench_mtl.solvers.kernels.online as kernel
        from bench_mtl.core.kernels.vectors import add_multiple

        self.t += 1
        if self.t & (self.t - 1) == 0:
            self._next_epoch()
        eta = self._eta0 / self.t**0.5
        chosen = self._order.next(self._options.batch)
        dense_step: Any = kernel.dense_step
        price = self._form.penalty * float(np.abs(self._point).sum()) if self._form.penalty else 0.0
        loss = float(dense_step(*self._data, chosen, eta, self._point, *self._visits.for_kernels, *self._scratch))
        self._project(eta)
        if self._options.averaging != "last":
            add_multiple(1.0, self._point.ravel(), self._sum.ravel())
            self._steps += 1
        return chosen, loss + price

    def _next_epoch(self) -> None:
        self._visits.next_epoch()
        if self._options.averaging == "suffix":
            self._sum_before, self._sum = self._sum, np.zeros_like(self._sum)
            self._steps_before, self._steps = self._steps, 0

    def _project(self, eta: float) -> None:
        form, method = self._form, self._options.projection
        if form.radius is not None and not form.nonneg and (form.balls == "all" or self._point.shape[1] == 1):
            flat = self._point.ravel()  # a view: nothing is copied
            project_l1_ball(flat, form.radius, method=method, out=flat)
        else:
            self._point = np.ascontiguousarray(form.prox(self._point, eta, method=method))

    @property
    def iterate(self) -> Iterate:
        if self._options.averaging == "last":
            point = self._point.copy()
        else:
            point = (self._sum + self._sum_before) / (self._steps + self._steps_before)
        return Iterate(point, self._visits.dual(self._form.fit), self.t, self.t * self._options.batch / self._examples.count)
