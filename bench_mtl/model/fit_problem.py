"""What all problems of a loss of linear predictions share: operators that follow from the data, whatever the constraint or penalty."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.protocols import Problem


class FitProblem(Problem):
    """A problem with a `LinearFit`, W its points: everything but the constraint or penalty."""

    fit: LinearFit

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.fit.design.n_features, self.fit.design.n_tasks)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.fit.targets.shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        design = self.fit.design
        return {"n": design.n_examples, "d": design.n_features, "m": design.n_tasks}

    def objective(self, point: Array) -> float:
        return self.smooth_value(point) + self.prox_value(point)

    def predictions(self, point: Array) -> Array:
        return self.fit.design.forward(point)

    def dual_at(self, point: Array, dual: Array | None) -> Array:
        """The dual point, or where there is none minus the slopes of the loss at `point`."""
        return -self.fit.derivatives(self.predictions(point)) if dual is None else dual

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        predictions = self.predictions(point)
        return self.fit.value(predictions), self.fit.design.adjoint(self.fit.derivatives(predictions))

    def smooth_value(self, point: Array) -> float:
        return self.fit.value(self.predictions(point))

    def lipschitz(self) -> float:
        """max_k s_k sigma_max(X_k)^2 for tasks of weight s_k, times the largest second derivative of the loss."""
        return self.fit.lipschitz()


class StackedFitProblem(FitProblem):
    """The same for coefficients that are the sum of two matrices; a point is the stack of both, 2 x d x m."""

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (2, *super().point_shape)

    def predictions(self, point: Array) -> Array:
        return super().predictions(point[0] + point[1])

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        value, block = super().value_and_gradient(point)
        return value, np.broadcast_to(block, self.point_shape)

    def lipschitz(self) -> float:
        """Twice that of one matrix, for both share one gradient block (Chen, Liu, Ye 2012, lemma 6.1)."""
        return 2.0 * super().lipschitz()
