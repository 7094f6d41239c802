"""The form of a loss of linear predictions under any norm, for solvers that need nothing of the norm but its operators."""

from __future__ import annotations

from dataclasses import dataclass

from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.protocols import ObjectiveForm
from bench_mtl.model.regularisers import Constraint, Penalty


@dataclass(frozen=True)
class NormForm(ObjectiveForm):
    """A loss of linear predictions under a norm, f the function of a `LinearFit`::

    Constraint:  min_W  f(W)  subject to  ||W|| <= radius
    Penalty:     min_W  f(W) + weight ||W||
    """

    fit: LinearFit
    regulariser: Constraint | Penalty

    @property
    def has_intercept(self) -> bool:
        return self.fit.intercept

    def objective(self, point: Array) -> float:
        return self.fit.smooth_value(point) + self.regulariser.value(point)
