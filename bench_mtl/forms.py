"""What a problem is made of, for solvers that need more than its operators: the data themselves, frozen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_mtl.linops import Design
from bench_mtl.losses import hinge
from bench_mtl.projections import norm_l1inf, norm_linf1
from bench_mtl.types import Array


@dataclass(frozen=True)
class HingeForm:
    """Weighted hinges under an l1,inf norm.

    With f(W) = sum_k sum_i weights_ki max(0, 1 - labels_ki x_ki.w_k)::

        radius given:   min_W  f(W)  subject to  sum_j max_k |W_jk| <= radius
        penalty given:  min_W  f(W) + penalty * sum_j max_k |W_jk|
    """

    design: Design
    labels: Array
    """-1 or +1, in the output shape of the design."""
    weights: Array
    """At least 0, shaped like the labels; the same for all examples of a task."""
    radius: float | None
    penalty: float | None

    def objective(self, W: Array, predictions: Array) -> float:
        """At a feasible W with these predictions X_k w_k."""
        value = float(np.vdot(self.weights, hinge(self.labels * predictions)))
        return value if self.penalty is None else value + self.penalty * norm_l1inf(W)

    def bound(self, total: float, G: Array) -> float:
        """What a dual point a proves, by its sum and by G_jk = sum_i a_ki labels_ki x_ki,j, with the norm max_j sum_k |G_jk|.

        With a radius total - radius * norm, or 0, which a = 0 proves; with a penalty the sum of a scaled until its norm is at most that.
        """
        norm = norm_linf1(G)
        if self.radius is not None:
            return max(0.0, total - self.radius * norm)
        assert self.penalty is not None
        return total * min(1.0, self.penalty / norm) if norm > 0.0 else total


@dataclass(frozen=True)
class SplitForm:
    """A loss of one linear prediction by a sparse plus a low-rank matrix.

    ::

        min_{P,Q}  sum_k sum_i loss(x_ki.(p_k + q_k), targets_ki) + gamma sum |P|   subject to  ||Q||_* <= tau
    """

    design: Design
    targets: Array
    """In the output shape of the design: real for the squared loss, -1 or +1 for the logistic one."""
    loss: str
    """"squared" (half the square of the residual) or "logistic"."""
    gamma: float
    tau: float
