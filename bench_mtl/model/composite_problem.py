"""What all problems of a loss and a regulariser share: the operators that belong to the regulariser."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.predicting_problem import PredictingProblem
from bench_mtl.model.protocols import Capability, ConicModel, NotOfferedError
from bench_mtl.model.regularisers import Regulariser


class CompositeProblem(PredictingProblem):
    """min_W f(W) + R(W), f a loss of linear predictions X_k w_k and R a regulariser."""

    design: Design
    regulariser: Regulariser

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.design.n_features, self.design.n_tasks)

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": self.design.n_examples, "d": self.design.n_features, "m": self.design.n_tasks}

    def repair(self, point: Array) -> Array:
        return self.regulariser.repair(point)

    def infeasibility(self, point: Array) -> float:
        return self.regulariser.excess(point)

    def prox(self, point: Array, step_size: float) -> Array:
        return self.regulariser.prox(point, step_size)

    def prox_value(self, point: Array) -> float:
        return self.regulariser.value(point)

    def lmo(self, direction: Array) -> Array:
        vertex = self.regulariser.vertex(direction)
        if vertex is None:
            raise NotOfferedError(self, Capability.LMO)
        return vertex

    @property
    @abstractmethod
    def modelled_fit(self) -> LinearFit:
        """The loss as `to_cvxpy` writes it."""

    def to_cvxpy(self, form: str | None = None) -> ConicModel:
        """The problem with residuals, margins, predictions or slacks as variables, so that their constraint's multiplier is a dual point.

        See `Loss.model` of the loss and `model` of the norm.
        """
        import cvxpy as cp

        form = one_of("form", form or next(iter(self.conic_forms)), tuple(self.conic_forms))
        part = self.regulariser.model(form, (self.design.n_features, self.design.n_tasks))
        loss, fit, as_dual = self.modelled_fit.model(cp.vec(part.coefficients, order="F"))

        def recover() -> tuple[Array, Array | None]:
            return part.point(), None if fit.dual_value is None else self._own_dual(as_dual(np.asarray(fit.dual_value)))

        return ConicModel(cp.Problem(cp.Minimize(loss + part.penalty), [fit, *part.constraints]), recover)

    def _own_dual(self, dual: Any) -> Array:
        """A dual point of this problem for one of the loss, minus the derivative in the predictions."""
        return np.asarray(dual)
