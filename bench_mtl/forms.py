"""What a problem is made of, for solvers that need more than its operators: the data themselves, small and frozen."""

from __future__ import annotations

from dataclasses import dataclass

from bench_mtl.linops import Design
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
