"""Stochastic projected gradient steps on a dense matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.norms import L1
from bench_mtl.projections import project_l1_ball
from bench_mtl.solvers.stochastic.examples import ORDERS
from bench_mtl.solvers.stochastic.runs import DenseRun, DrawingSolver


@dataclass(frozen=True)
class StochasticGradient(DrawingSolver):
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
    order: str = "shuffled"
    seed: int = 0
    step_size: float | None = None

    name: ClassVar[str] = "stochastic_gradient"
    takes = (loss_under("smooth", L1),)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"averaging": ("suffix", "all", "last"), "order": ORDERS}

    def run(self, form: LinearForm, start: Array) -> DenseRun:
        balls = start.shape[1] if form.radius is not None and form.norm.balls == "task" else 1

        def prox(W: Array, eta: float) -> Array:
            if form.radius is None or form.norm.nonneg or (form.norm.balls == "task" and W.shape[1] > 1):
                return np.ascontiguousarray(form.prox(W, eta))
            flat = W.ravel()  # a view: nothing is copied
            project_l1_ball(flat, form.radius, out=flat)
            return W

        return DenseRun(form, prox, self.order, balls, self, start)
