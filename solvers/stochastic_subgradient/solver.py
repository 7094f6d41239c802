"""Stochastic and online projected subgradient steps: one or a few examples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm
from bench_mtl.model.protocols import Capability, Form, IterativeSolver, Problem
from bench_mtl.model.regret import OnlineRun
from bench_mtl.projections import l1inf_projection, norm_l1inf, prox_l1inf

AVERAGES = ("suffix", "all")

#: Between iterates handed over: a twentieth of the steps so far, at most these.
_MOST_STEPS = 200


@dataclass(frozen=True)
class StochasticSubgradient(IterativeSolver):
    """W <- prox(W - eta_t g_t), eta_t = eta0 / sqrt(t), with a subgradient of `batch` examples drawn uniformly with replacement::

        g_t = - N / batch sum_b s_i y_i x_i e_k^T [y_i x_i.w_k < 1]

    where N counts the examples of all tasks, so that the expectation of g_t is a subgradient of the loss. The averaged iterate is
    handed over. A penalty enters through its proximal operator. Work counts examples seen, N of them as 1.

    The dual point is a_i = s_i times the share of visits to example i at which its margin was below 1, weighted by eta_t: what the
    average of the unbiased estimates N / batch s_i [y_i x_i.w_k < 1] comes to once divided by how often i was drawn. Examples not
    seen so far take the share of all.

    Parameters
    ----------
    batch : examples a step
    seed : of the draws
    step_size : eta0; by default R / G, R the size of W in the Frobenius norm (at most C sqrt m; for a penalty a tenth of the bound
        F(0) sqrt m / lambda, which no optimum comes near; sqrt m / max ||x|| for none) and G = N max_i s_i ||x_i|| / sqrt(batch)
    averaging : "suffix" averages the steps since the last power of two but one, "all" every step

    References
    ----------
    Zinkevich, ICML 2003, algorithm 1 (online); Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, section 6 (stochastic, projected);
    Rakhlin, Shamir, Sridharan, ICML 2012 (suffix averages).
    """

    batch: int = 10
    seed: int = 0
    step_size: float | None = None
    averaging: str = "suffix"

    name: ClassVar[str] = "stochastic_subgradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.PROX})
    takes: ClassVar[tuple[type[Form], ...]] = (HingeForm,)

    def __post_init__(self) -> None:
        whole_number("batch", self.batch, minimum=1)
        whole_number("seed", self.seed)
        if self.step_size is not None:
            real_number("step_size", self.step_size, strict=True)
        one_of("averaging", self.averaging, AVERAGES)

    def warm_up(self) -> None:
        for X in (np.ones((1, 1)), sp.csr_array(np.ones((1, 1)))):
            examples = _Examples(X, np.zeros((2, 1), dtype=np.int64), np.ones(1), np.ones(1))
            total, hits = np.zeros(1), np.zeros(1)
            examples.step(np.zeros(1, dtype=np.int64), 1.0, np.zeros((1, 1)), hits)
            _vectors().add_multiple(1.0, total.copy(), total)
            _kernels().count_hits(total, total.copy(), np.zeros(1, dtype=np.int64), hits, 1.0)
        far = np.full((3, 2), 10.0)
        prox_l1inf(l1inf_projection(far, 1.0, theta0=1.0, threads=1).matrix, 0.1, threads=1)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        run = _Run(problem.form(HingeForm), self, problem.repair(problem.start_point() if start is None else start))
        yield Iterate(run.point.copy())
        while True:
            for _ in range(min(max(1, run.t // 20), _MOST_STEPS)):
                run.advance()
            yield run.average

    def play(self, problem: Problem, rounds: int, start: Array | None = None) -> OnlineRun:
        """The first `rounds` steps as an online game: what was drawn, and what the iterate before each step lost on it."""
        run = _Run(problem.form(HingeForm), self, problem.repair(problem.start_point() if start is None else start))
        played = [run.advance() for _ in range(whole_number("rounds", rounds, minimum=1))]
        return OnlineRun(np.stack([chosen for chosen, _ in played]), np.array([loss for _, loss in played]))


def _vectors() -> Any:
    import bench_mtl.core.kernels.vectors as vectors

    return vectors


def _kernels() -> Any:
    import bench_mtl.solvers.stochastic_subgradient.kernels as kernels

    return kernels


class _Examples:
    """All examples of all tasks in the order of the flattened labels: rows, tasks, labels and their N-fold weights."""

    def __init__(self, X: Any, places: Any, labels: Array, scales: Array) -> None:
        self._labels, self._scales, self._places = labels, scales, places
        self._sparse = sp.issparse(X)
        self._data: tuple[Any, ...] = (X.data, X.indices, X.indptr) if self._sparse else (X,)
        squares = X.multiply(X).sum(axis=1) if self._sparse else np.einsum("ij,ij->i", X, X)
        self.lengths = np.sqrt(np.asarray(squares))[places[0]]

    @classmethod
    def of(cls, form: HingeForm) -> _Examples:
        design, n = form.design, form.labels.size
        X = stacked_rows(design).copy()  # writable, as what `warm_up` compiles for
        if design.is_shared:
            places = np.stack(np.divmod(np.arange(n), design.n_tasks))
        else:
            places = np.stack([np.arange(n), np.repeat(np.arange(design.n_tasks), design.sizes)])
        return cls(X, places, np.array(form.labels).ravel(), n * np.array(form.weights).ravel())

    def step(self, chosen: Any, step_size: float, W: Array, hits: Array) -> float:
        kernel = _kernels().sparse_hinge_step if self._sparse else _kernels().dense_hinge_step
        return float(kernel(*self._data, self._places, chosen, self._labels, self._scales, step_size, W, hits))

    @property
    def largest_subgradient(self) -> float:
        return float((self._scales * self.lengths).max())


class _Run:
    """One run: its point, and the sums of what it averages."""

    def __init__(self, form: HingeForm, options: StochasticSubgradient, start: Array) -> None:
        self._form, self._options = form, options
        self._examples = _Examples.of(form)
        self._rng = np.random.default_rng(options.seed)
        self.point = np.array(start)
        self.t = 0
        self._theta: float | None = None
        self._hits = np.zeros(options.batch)
        self._eta0 = _default_step_size(form, self._examples, options.batch) if options.step_size is None else options.step_size
        self._sums, self._sums_before = _Sums.empty(form), _Sums.empty(form)

    def advance(self) -> tuple[Any, float]:
        """Draw examples, pay for them, and take a step: what was drawn and the loss."""
        form, options = self._form, self._options
        self.t += 1
        if options.averaging == "suffix" and self.t & (self.t - 1) == 0:
            self._sums_before, self._sums = self._sums, _Sums.empty(form)
        eta = self._eta0 / self.t**0.5
        _vectors().add_multiple(1.0, self.point.ravel(), self._sums.point.ravel())
        price = 0.0 if form.penalty is None else form.penalty * norm_l1inf(self.point)
        chosen = self._rng.integers(form.labels.size, size=options.batch)
        loss = self._examples.step(chosen, eta / options.batch, self.point, self._hits) / options.batch
        _kernels().count_hits(self._sums.visited, self._sums.hit, chosen, self._hits, eta)
        self._sums.steps += 1
        if form.radius is not None:
            projection = l1inf_projection(self.point, form.radius, theta0=self._theta, threads=1, out=self.point)
            self._theta = projection.theta
        elif form.penalty:
            prox_l1inf(self.point, eta * form.penalty, threads=1, out=self.point)
        return chosen, loss + price

    @property
    def average(self) -> Iterate:
        before, now, form = self._sums_before, self._sums, self._form
        visited, hit = before.visited + now.visited, before.hit + now.hit
        share = np.full(visited.shape, hit.sum() / visited.sum())
        np.divide(hit, visited, out=share, where=visited > 0.0)
        point = (before.point + now.point) / (before.steps + now.steps)
        return Iterate(point, share.reshape(form.labels.shape) * form.weights, self.t, self.t * self._options.batch / form.labels.size)


@dataclass
class _Sums:
    """Over some steps: of the points, and of the step sizes by example, at all visits and at those with a margin below 1."""

    point: Array
    visited: Array
    hit: Array
    steps: int = 0

    @classmethod
    def empty(cls, form: HingeForm) -> _Sums:
        shape = (form.design.n_features, form.design.n_tasks)
        return cls(np.zeros(shape), np.zeros(form.labels.size), np.zeros(form.labels.size))


def _default_step_size(form: HingeForm, examples: _Examples, batch: int) -> float:
    """R / G: the best of Zinkevich's bound, up to its constant."""
    G = examples.largest_subgradient / batch**0.5
    if G == 0.0:
        return 1.0
    size = form.radius
    if size is None:
        size = 0.1 * float(form.weights.sum()) / form.penalty if form.penalty else 1.0 / float(examples.lengths.max())
    return (size or 1.0) * form.design.n_tasks**0.5 / G
