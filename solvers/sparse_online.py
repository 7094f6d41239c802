"""Online and stochastic projected gradient steps on a sparse vector, at the cost of the non-zeros of an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import SHOWN_SHARE, Problem, Solver
from bench_mtl.projections import STORAGES, SparseParts
from bench_mtl.solvers.stochastic.averages import VisitedDuals
from bench_mtl.solvers.stochastic.examples import ORDERS, Examples, Order
from bench_mtl.solvers.stochastic.runs import DrawingSolver, DrawnRun


@dataclass(frozen=True)
class SparseOnline(DrawingSolver):
    """W <- P(W - eta_t N s_i grad loss(x_i.W)) for one example i after the other, eta_t = eta0 / sqrt(t), P the projection onto l1 balls.

    Only the entries of W that are not zero are stored, without the sum of all thresholds subtracted so far (see `SparseBall`). A step
    reads, changes and puts back as many entries as the example has non-zeros, and finds the threshold of the exact projection: its
    cost, and the memory, do not depend on the number of features. All steps between two iterates are one compiled loop. With a penalty
    P is the soft threshold at eta_t penalty, which is a change of one number.

    An iterate is W itself (an average has all entries that have ever been other than 0). It is a dense array, as every point here, so
    iterates are the rarer the more features there are. The dual point is minus the averaged derivatives of the loss at the visits to
    each example, see `VisitedDuals`. Work is the number of examples seen over N; an example of a multiclass loss is a row.

    Parameters
    ----------
    storage : structure that finds thresholds: "array" (passes over the stored entries) or "tree" (a balanced tree), see `SparseBall`
    order : order of the examples: "shuffled" takes each once an epoch, in a new order; "random" draws with replacement; "given" as stored
    seed : seed of the order
    step_size : eta0; by default R / G, see `Examples.default_step_size`

    Raises
    ------
    InputError : an unknown storage or order, a negative seed, a step size that is not above 0, or so large that a step overflows.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra, ICML 2008, sections 5 and 7; Singer's slides on the same work, MMDS 2008; Zinkevich, ICML 2003;
    Langford, Li, Zhang, JMLR 10, 2009 (truncated gradient: steps with a penalty).
    """

    storage: str = "array"
    order: str = "shuffled"
    seed: int = 0
    step_size: float | None = None

    name: ClassVar[str] = "sparse_online"
    takes = (loss_under("smooth", L1),)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"storage": STORAGES, "order": ORDERS}

    @property
    def label(self) -> str:
        return self.name if self.storage == "array" else f"{self.name}_{self.storage}"

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(), cls(storage="tree")]

    def warm_up(self) -> None:
        SparseParts(1, tree=self.storage == "tree").grow(1)  # which tiny instances never need

    def run(self, form: LinearForm, start: Array) -> SparseRun:
        return SparseRun(form, self, start)

    def portion(self, run: SparseRun) -> int:
        return 1 + max(run.t // SHOWN_SHARE, run.steps_per_point)

    def online(self, problem: Problem, eta0: float) -> SparseRun:
        """Return a run from 0 that receives the next examples (`take`): eta_t = eta0 / sqrt(t), gradients as of N s_i loss."""
        return SparseRun(problem.form(LinearForm), replace(self, step_size=eta0), np.zeros(problem.point_shape))


class SparseRun(DrawnRun):
    """One run: its sparse vectors (one in all, or one for every task) and the dual point of its visits."""

    kept = ("t", "_order", "_duals", "parts")

    def __init__(self, form: LinearForm, options: SparseOnline, start: Array) -> None:
        import bench_mtl.solvers.stochastic.kernels as kernels

        self._form, self._kernels = form, kernels
        self._examples = Examples.of(form.fit)
        super().__init__(Order(self._examples.count, options.order, options.seed))
        self._duals = VisitedDuals(form.fit)
        self._shape = start.shape
        self._apart = form.radius is not None and form.norm.balls == "task"
        m, outputs = self._examples.n_tasks, self._examples.targets.shape[1]
        eta0 = options.step_size or self._examples.default_step_size(form.fit, form.radius, form.penalty, m if self._apart else 1)
        signs = np.empty(0) if form.norm.orientation is None or not form.norm.nonneg else np.array(form.norm.orientation, order="C").ravel()
        radius = np.inf if form.radius is None else form.radius
        self._rule = kernels.Rule(eta0, radius, form.penalty or 0.0, form.norm.nonneg, signs, m)
        places = np.empty((outputs, self._examples.longest), dtype=np.int64)
        self._scratch = kernels.Scratch(places, np.empty(outputs), np.empty(outputs))
        #: The number of steps that cost about as much as one dense point: iterates are yielded no more often.
        self.steps_per_point = int(start.size / (2.0 * outputs * max(1.0, self._examples.X.nnz / self._examples.X.shape[0])))
        self.parts = SparseParts(self._shape[1] if self._apart else 1, tree=options.storage == "tree")
        self._load(form.norm.oriented(start) if form.norm.nonneg else start)

    def _load(self, W: Array) -> None:
        import bench_mtl.projections.kernels.sparse_ball as kernel

        add: Any = kernel.add
        for b, column in enumerate(W.T if self._apart else [W.ravel()]):
            places = np.flatnonzero(column)
            while add(tuple(self.parts.ball(b)), places, np.ascontiguousarray(column[places]), np.inf, False) == kernel.SHORT:
                self.parts.grow(places.size)

    def _turn(self) -> None:
        self._duals.turn()

    def _take(self, chosen: Any) -> None:
        sparse_steps: Any = self._kernels.sparse_steps
        chosen = chosen.ravel()
        while chosen.size:
            arrays = self.parts.arrays
            made = sparse_steps(self._examples.for_kernels, chosen, self.t, self._rule, arrays, self._duals.for_kernels, self._scratch)
            if made == self._kernels.OVERFLOW:
                raise InputError(f"step_size = {self._rule.eta0:g} is too large for this problem: its steps overflow")
            self.t += made
            chosen = chosen[made:]
            if chosen.size:
                self.parts.grow(self._scratch.places.shape[1] if self._apart else self._scratch.places.size)

    @property
    def predictions(self) -> Array:
        """Those of the last example, before its step: one, or one of every task where the loss couples tasks."""
        return np.asarray(self._scratch.predictions)

    @property
    def point(self) -> Array:
        W = np.zeros(self._shape)
        flat = W.reshape(-1)
        for b in range(len(self.parts.state)):
            features, values = self.parts.items(b)
            flat[features * self._shape[1] + b if self._apart else features] = values
        return self._form.norm.oriented(W) if self._form.norm.nonneg else W

    @property
    def iterate(self) -> Iterate:
        return Iterate(self.point, self._duals.dual(self._form.fit), self.t, self.t / self._examples.count)
