"""Stochastic projected subgradient steps for hinges under an l1,inf norm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, hinges_under
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.projections import l1inf_projection, prox_l1inf
from bench_mtl.solvers.stochastic.runs import DenseRun, DrawingSolver

#: Between two yielded iterates lie a twentieth of the steps so far, at most these.
_MOST_STEPS = 200


@dataclass(frozen=True)
class StochasticSubgradient(DrawingSolver):
    """W <- prox(W - eta_t g_t), eta_t = eta0 / sqrt(t), with a subgradient of `batch` examples drawn uniformly with replacement::

        g_t = - N / batch sum_b s_i y_i x_i e_k^T [y_i x_i.w_k < 1]

    where N counts the examples of all tasks, so that the expectation of g_t is a subgradient of the loss. These are the steps of
    `StochasticGradient` under an l1,inf norm: prox is the projection onto its ball, or its proximal operator where it is a penalty. The
    iterates are averages. Work is the number of examples seen over N.

    The dual point is a_i = s_i times the share of visits to example i at which its margin was below 1, weighted by eta_t: what the
    average of the unbiased estimates N / batch s_i [y_i x_i.w_k < 1] comes to once divided by how often i was drawn (see `VisitedDuals`).

    Parameters
    ----------
    batch : examples per step
    seed : seed of the draws
    step_size : eta0; by default R / G, see `Examples.default_step_size`. R is at most C sqrt m for a radius C, and for a penalty a tenth of
        the bound F(0) sqrt m / lambda, which no optimum comes near
    averaging : "suffix" averages the iterates since the last power of two but one, "all" every iterate

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
    takes = (hinges_under(L1Inf),)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"averaging": ("suffix", "all")}

    def portion(self, run: DenseRun) -> int:
        return min(max(1, run.t // 20), _MOST_STEPS)

    def shown(self, iterate: Iterate, form: Hinges) -> Iterate:
        assert iterate.dual is not None
        return iterate._replace(dual=form.labels * iterate.dual)  # a_i y_i is the dual point of the predictions

    def online(self, problem: Problem, eta0: float) -> DenseRun:
        """Return a run from 0 that receives the next example, see `SparseOnline`."""
        return replace(self, batch=1, step_size=eta0).run(problem.form(Hinges), np.zeros(problem.point_shape))

    def run(self, form: Hinges, start: Array) -> DenseRun:
        return DenseRun(form, _Prox(form), "random", form.design.n_tasks, self, start)


class _Prox:
    """The proximal map; projections search from where the last one has ended."""

    kept = ("theta",)

    def __init__(self, form: Hinges) -> None:
        self._form, self.theta = form, math.nan

    def __call__(self, W: Array, eta: float) -> Array:
        if self._form.radius is not None:
            projection = l1inf_projection(W, self._form.radius, theta0=None if math.isnan(self.theta) else self.theta, out=W)
            self.theta = projection.theta
        elif self._form.penalty:
            prox_l1inf(W, eta * self._form.penalty, out=W)
        return W
