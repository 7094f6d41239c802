"""What all problems share whose objective and residuals come from the same predictions: a certificate makes them once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.protocols import RigorousProblem

#: Dual points that differ by this share of their largest entry prove as much.
_SAME = 1e-9


class PredictingProblem(RigorousProblem):
    """A problem whose point is seen through predictions, linear functions of it on the data."""

    @abstractmethod
    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """Return the predictions of a point, and how far they are from those of exact arithmetic at most."""

    @abstractmethod
    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        """Return F at a feasible point whose predictions are known, between bounds that hold in exact arithmetic."""

    @abstractmethod
    def dual_of(self, predictions: Array) -> Array:
        """Return the dual point that these predictions give: minus the derivative of the loss, or what the problem makes of it."""

    def enclose_objective(self, point: Array) -> Interval:
        return self.enclose_objective_at(point, *self.predictions_with_error(point))

    def dual_at(self, point: Array) -> Array:
        return self.dual_of(self.predictions_with_error(point)[0])

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        cls = type(self)
        if cls.objective is not RigorousProblem.objective or cls.dual_bound is not RigorousProblem.dual_bound:
            return super()._judged(point, duals)
        predictions, error = self.predictions_with_error(point)  # once for all
        objective = self.enclose_objective_at(point, predictions, error)
        return objective, [
            self.enclose_dual(point, dual) for dual in _different([self.dual_of(predictions) if dual is None else dual for dual in duals])
        ]


def _different(duals: list[Array]) -> list[Array]:
    """Return the last of two dual points that are the same but for rounding, as where a solver hands over that of its own residuals."""
    if len(duals) < 2 or duals[0].shape != duals[1].shape:
        return duals
    distance, size = np.abs(duals[0] - duals[1]).max(initial=0.0), np.abs(duals[1]).max(initial=0.0)
    return duals[1:] if distance <= _SAME * size else duals
