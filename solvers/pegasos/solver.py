"""Pegasos: stochastic subgradient steps on support vector machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, true_or_false, whole_number
from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import RidgeForm
from bench_mtl.model.losses import Hinge
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem

AVERAGES = ("suffix", "all", "last")

#: The largest number of examples drawn at once.
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class Pegasos(IterativeSolver):
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
    takes: ClassVar[tuple[type[Form], ...]] = (RidgeForm,)

    def __post_init__(self) -> None:
        whole_number("batch", self.batch, minimum=1)
        whole_number("seed", self.seed)
        true_or_false("projection", self.projection)
        one_of("averaging", self.averaging, AVERAGES)

    @property
    def label(self) -> str:
        return self.name if self.projection else f"{self.name}_unprojected"

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is None and not isinstance(problem.form(RidgeForm).fit.loss, Hinge):
            return f"{self.label} is for the hinge loss, and the loss of this {problem.name} is {problem.form(RidgeForm).fit.loss.name}"
        return reason

    def warm_up(self) -> None:
        for X in (np.ones((1, 1)), sp.csr_array(np.ones((1, 1)))):
            _State(
                _Examples(X, np.ones(1, dtype=np.int64), np.zeros((2, 1), dtype=np.int64), 1, np.ones(1), np.ones(1)), np.zeros((1, 1))
            ).run(np.zeros((1, 1, 1), dtype=np.int64), 1.0, np.ones(1))

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first)
        form = problem.form(RidgeForm)
        examples = _Examples.of(form)
        state, rng = _State(examples, first), np.random.default_rng(self.seed)
        regularisation = 2.0 * form.ridge
        radii = np.sqrt(examples.totals / regularisation) if self.projection else np.zeros(len(examples.sizes))
        share = self.batch * len(examples.sizes) / len(examples.labels)
        while True:
            count = min(1 + state.t // SHOWN_SHARE, max(1, _MOST_DRAWS // (self.batch * len(examples.sizes))))
            following = state.t + 1
            if self.averaging != "all":
                if following & (following - 1) == 0:
                    state.next_epoch()
                count = min(count, (1 << following.bit_length()) - following)
            state.run(rng.integers(examples.sizes[None, :, None], size=(count, len(examples.sizes), self.batch)), regularisation, radii)
            point = state.point if self.averaging == "last" else state.average
            yield Iterate(
                point, form.fit.targets * (state.shares.reshape(form.fit.weights.shape) * form.fit.weights), state.t, state.t * share
            )


class _Examples:
    """Rows, labels and weights times n of all examples, in the order of the flattened labels, and the places of those of each task."""

    def __init__(self, X: Any, sizes: Any, places: Any, stride: int, labels: Array, factors: Array) -> None:
        self.sizes, self.places, self.stride, self.labels, self.factors = sizes, places, stride, labels, factors
        self.sparse = sp.issparse(X)
        self.data: tuple[Any, ...] = (X.data, X.indices, X.indptr) if self.sparse else (X,)
        tasks = (places[1, k] + stride * np.arange(size) for k, size in enumerate(sizes))
        self.tasks = [np.asarray(task) for task in tasks]
        self.totals = np.array([factors[task].sum() / len(task) for task in self.tasks])

    @classmethod
    def of(cls, form: RidgeForm) -> _Examples:
        design, m = form.fit.design, form.fit.design.n_tasks
        X = stacked_rows(design).copy()  # writable, as what `warm_up` compiles for
        sizes = np.asarray(design.sizes, dtype=np.int64)
        firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        places = np.stack([np.zeros(m, dtype=np.int64), np.arange(m)] if design.is_shared else [firsts, firsts])
        factors = np.broadcast_to(design.per_example(sizes.astype(np.float64)), form.fit.weights.shape) * form.fit.weights
        return cls(X, sizes, places, m if design.is_shared else 1, np.array(form.fit.targets).ravel(), factors.ravel())


class _State:
    """The point of every task as scale times v, the sums of its averages, and the number of steps so far."""

    def __init__(self, examples: _Examples, start: Array) -> None:
        self._examples, self.t = examples, 0
        self._V = np.array(start.T, order="C")
        m, d = self._V.shape
        self._scales, self._squares = np.ones(m), (self._V**2).sum(axis=1)
        self._late, self._past, self._totals = np.zeros((m, d)), np.zeros((m, d)), np.zeros(m)
        self._visits, self._visits_before = np.zeros((2, 2, len(examples.labels)))
        self._sum_before, self._steps, self._steps_before = np.zeros((m, d)), 0, 0

    def next_epoch(self) -> None:
        """Begin a new average; the last one still counts until the next call."""
        self._sum_before = self._sum
        for array in (self._late, self._past, self._totals):
            array[:] = 0.0
        self._visits_before, self._visits = self._visits, np.zeros_like(self._visits)
        self._steps_before, self._steps = self._steps, 0

    def run(self, draws: Any, regularisation: float, radii: Array) -> None:
        """Take a step for each of the draws."""
        import bench_mtl.solvers.pegasos.kernels as kernels

        examples = self._examples
        kernel: Any = kernels.sparse_steps if examples.sparse else kernels.dense_steps
        where: tuple[Any, ...] = (examples.places[0], examples.places[1], examples.stride, examples.labels, examples.factors)
        parts: tuple[Any, ...] = (
            self._V,
            self._late,
            self._past,
            self._scales,
            self._totals,
            self._squares,
            *self._visits,
            np.empty(draws.shape[2]),
        )
        kernel(*examples.data, draws, *where, self.t, regularisation, radii, *parts)
        self._squares = np.einsum("ij,ij->i", self._V, self._V)  # followed step by step, it would drift
        self.t += len(draws)
        self._steps += len(draws)

    @property
    def _sum(self) -> Array:
        return self._past + (self._totals[:, None] * self._V - self._late)

    @property
    def point(self) -> Array:
        return np.ascontiguousarray((self._scales[:, None] * self._V).T)

    @property
    def average(self) -> Array:
        return np.ascontiguousarray(((self._sum_before + self._sum) / (self._steps_before + self._steps)).T)

    @property
    def shares(self) -> Array:
        """The share of visits to every example at which its margin was below 1."""
        visited, hit = self._visits_before + self._visits
        shares = np.empty(len(visited))
        for task in self._examples.tasks:
            shares[task] = hit[task].sum() / visited[task].sum()
        np.divide(hit, visited, out=shares, where=visited > 0.0)
        return shares
