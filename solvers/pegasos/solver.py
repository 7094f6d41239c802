"""Pegasos: stochastic subgradient steps on support vector machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import RIDGE_HINGES, LinearForm
from bench_mtl.solvers.stochastic.averages import Epochs, LazySum, begins_epoch, left_of_epoch
from bench_mtl.solvers.stochastic.examples import TaskRows
from bench_mtl.solvers.stochastic.runs import DrawingSolver

#: The largest number of examples drawn at once.
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class Pegasos(DrawingSolver):
    """For min_w lambda/2 ||w||^2 + 1/n sum_i max(0, 1 - y_i x_i.w), lambda = 2 sigma, with B examples drawn uniformly with replacement::

        w_{t+1/2} = (1 - eta_t lambda) w_t + eta_t / B sum_b y_b x_b [y_b x_b.w_t < 1],     eta_t = 1 / (lambda t)
        w_{t+1}   = min(1, 1 / (sqrt(lambda) ||w_{t+1/2}||)) w_{t+1/2}

    Every task is a problem of its own, and a step draws B examples of each, however many it has. Weights other than 1/n weigh the
    subgradients, and the ball then has the radius sqrt(sum of weights / lambda). A step costs the non-zeros of its examples. The first
    step forgets the start, which is only yielded.

    The dual point is a_i = 1/n times the share of visits to example i at which its margin was below 1; examples not seen so far take
    the share of their task. It and the point are averages over the same steps. Work is the number of examples seen over that of
    all. The first 32 steps, then one in about 32, yield an iterate.

    Parameters
    ----------
    batch : B, the number of examples per step and task
    seed : seed of the draws
    projection : whether to project onto the ball (the second line)
    averaging : "suffix" averages w_t over the steps since the last power of two but one, "all" over every step; "last" yields w_{t+1}
        itself (as in the paper's figure 1), with the dual point of "suffix"

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, ICML 2007, figure 1; Shalev-Shwartz, Singer, Srebro, Cotter, Mathematical Programming 127(1), 2011,
    section 4 (sparse features); Rakhlin, Shamir, Sridharan, ICML 2012 (suffix averages).
    """

    batch: int = 1
    seed: int = 0
    projection: bool = True
    averaging: str = "suffix"

    name: ClassVar[str] = "pegasos"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pegasos_unprojected": {"projection": False}}
    takes = (RIDGE_HINGES,)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"averaging": ("suffix", "all", "last")}

    def __post_init__(self) -> None:
        super().__post_init__()
        true_or_false("projection", self.projection)

    @property
    def label(self) -> str:
        return self.name if self.projection else f"{self.name}_unprojected"

    def run(self, form: LinearForm, start: Array) -> _Run:
        return _Run(form, self, start)

    def portion(self, run: _Run) -> int:
        count = min(super().portion(run), max(1, _MOST_DRAWS // (self.batch * run.n_tasks)))
        return count if self.averaging == "all" else min(count, left_of_epoch(run.t))


class _Run:
    """The point of every task as scale times v, and the sums of its averages."""

    kept = ("t", "_rng", "_V", "_scales", "_sum", "_visits")

    def __init__(self, form: LinearForm, options: Pegasos, start: Array) -> None:
        import bench_mtl.solvers.pegasos.kernels as kernels

        self._kernels, self._fit, self._options = kernels, form.fit, options
        self._rows, self._sizes = TaskRows.of(form), np.asarray(form.fit.design.sizes, dtype=np.int64)
        self._tasks = self._rows.places_of(self._sizes)
        self._rng, self.t = np.random.default_rng(options.seed), 0
        factors = form.fit.design.per_example(self._sizes.astype(np.float64)) * form.fit.weights
        totals = np.array([factors.ravel()[task].sum() / len(task) for task in self._tasks])
        ridge, _ = form.squared_norms.strengths
        radii = np.sqrt(totals / ridge) if options.projection else np.zeros(len(totals))
        self._rule = kernels.Rule(ridge, factors.ravel(), radii)
        self._V = np.array(start.T, order="C")
        self._scales = np.ones(len(self._V))
        self._sum = LazySum(self._V.shape, (len(self._V), 1))
        self._visits = Epochs((2, len(self._rows.labels)))
        self._margins = np.empty(options.batch)

    @property
    def n_tasks(self) -> int:
        return len(self._sizes)

    def advance(self, count: int = 1) -> None:
        """Take steps, which all are of one epoch."""
        if self._options.averaging != "all" and begins_epoch(self.t + 1):
            self._sum.turn(self._V)
            self._visits.turn()
        draws = self._rng.integers(self._sizes[None, :, None], size=(count, self.n_tasks, self._options.batch))
        squares = np.einsum("ij,ij->i", self._V, self._V)  # followed step by step, it would drift
        (visited, hit), late, totals = self._visits.now[0], self._sum.late, self._sum.totals.reshape(-1)
        state = self._kernels.State(self._V, self._scales, squares, late, totals, self._sum.past, visited, hit, self._margins)
        steps: Any = self._kernels.steps
        steps(self._rows, draws, self.t, self._rule, state)
        self.t += count
        self._sum.weigh(count)

    @property
    def iterate(self) -> Iterate:
        """Its dual point is made of the share of visits to every example at which its margin was below 1."""
        ((visited, hit),) = self._visits.sums
        shares = np.empty(len(visited))
        for task in self._tasks:
            shares[task] = hit[task].sum() / visited[task].sum()
        np.divide(hit, visited, out=shares, where=visited > 0.0)
        point = self._scales[:, None] * self._V if self._options.averaging == "last" else self._sum.average(self._V)
        dual = self._fit.targets * (shares.reshape(self._fit.weights.shape) * self._fit.weights)
        work = self.t * self._options.batch * self.n_tasks / len(self._rows.labels)
        return Iterate(np.ascontiguousarray(point.T), dual, self.t, work)
