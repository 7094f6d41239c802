"""What all problems of weighted hinges share: operators that follow from the data, whatever the constraint or penalty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.types import Array
from bench_mtl.model.forms import Hinges
from bench_mtl.model.linear_loss import example_weights
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData, binary_labels


class HingeProblem(Problem):
    """A problem with hinges, W its points and a its dual points: everything but the constraint or penalty."""

    hinges: Hinges

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.hinges.design.n_features, self.hinges.design.n_tasks)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.hinges.labels.shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        design = self.hinges.design
        return {"n": design.n_examples, "d": design.n_features, "m": design.n_tasks}

    def objective(self, point: Array) -> float:
        return self.hinges.loss(self.hinges.margins(point)) + self.prox_value(point)

    def box_dual(self, point: Array, dual: Array | None) -> Array:
        """The dual point clipped to its box, or the one that gives the subgradient at `point`."""
        return self.hinges.duals(self.hinges.margins(point)) if dual is None else np.clip(dual, 0.0, self.hinges.weights)

    def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
        margins = self.hinges.margins(point)
        a = self.hinges.duals(margins)
        return self.hinges.loss(margins), -self.hinges.adjoint(a), a

    def apply_coupling(self, point: Array) -> Array:
        return self.hinges.margins(point)

    def apply_coupling_adjoint(self, dual: Array) -> Array:
        return self.hinges.adjoint(dual)

    def coupling_norm(self) -> float:
        return self.hinges.design.norm()

    def dual_prox(self, dual: Array, step_size: float) -> Array:
        return np.clip(dual + step_size, 0.0, self.hinges.weights)

    def smoothed(self, point: Array, smoothing: float) -> tuple[float, Array, Array]:
        """At most smoothing/2 sum s below the hinges, see `Hinges.smoothed`."""
        value, a = self.hinges.smoothed(self.hinges.margins(point), smoothing)
        return value, -self.hinges.adjoint(a), a

    def smoothed_lipschitz(self, smoothing: float) -> float:
        return self.hinges.smoothed_lipschitz(smoothing)


def hinges_of(data: TaskData, loss: str) -> tuple[Hinges, tuple[str, ...]]:
    """The hinges of labelled tasks, with weights 1/n_k ("mean") or 1 ("sum"), and the notes on the data.

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1.
    """
    labels, notes = binary_labels(data)
    return Hinges(data.design, labels, example_weights(data.design, loss)), notes


class HingeModel(NamedTuple):
    """Hinges written for CVXPY."""

    loss: Any
    margin: Any
    """The constraint whose multiplier is a dual point."""
    recover: Callable[[], tuple[Array, Array | None]]
    """As of `ConicModel`."""


def hinge_model(hinges: Hinges, W: Any) -> HingeModel:
    """Weighted hinges of a d x m variable W with explicit slacks: s.xi subject to xi >= 1 - y x.w, xi >= 0.

    The slacks are variables of their own because CVXPY 1.9 can take ``pos(1 - multiply(y, X @ w))`` to a wrong answer.
    """
    import cvxpy as cp

    design = hinges.design
    signed = sp.csr_array(design.stacked() * design.stack(hinges.labels)[:, None])
    weights = design.stack(hinges.weights)
    xi = cp.Variable(len(weights), nonneg=True)
    margin = xi >= 1.0 - signed @ cp.vec(W, order="F")

    def recover() -> tuple[Array, Array | None]:
        dual = None if margin.dual_value is None else design.unstack(np.asarray(margin.dual_value))
        return np.asarray(W.value), dual

    return HingeModel(weights @ xi, margin, recover)
