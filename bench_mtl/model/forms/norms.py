"""Forms of a loss of linear predictions under any norm, for solvers that need nothing of the norm but its operators."""

from __future__ import annotations

from dataclasses import dataclass

from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array
from bench_mtl.model.forms.hinges import Hinges
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


@dataclass(frozen=True)
class NormHingeForm(Hinges, ObjectiveForm):
    """Weighted hinges under a norm, f the function of `Hinges`; otherwise as `NormForm`."""

    regulariser: Constraint | Penalty

    @property
    def radius(self) -> float | None:
        return self.regulariser.radius if isinstance(self.regulariser, Constraint) else None

    @property
    def weight(self) -> float:
        """That of the norm; 0 where it has a radius."""
        return 0.0 if isinstance(self.regulariser, Constraint) else self.regulariser.weight

    def objective(self, point: Array) -> float:
        return self.loss(self.margins(point)) + self.regulariser.value(point)

    def relative_gap(self, point: Array, dual: Array) -> float:
        """Return the relative gap of a feasible point and any dual array, up to rounding."""
        value, a = self.objective(point), self.admissible(dual)
        support, limit = self.regulariser.enclose_support(Interval.exact(self.adjoint(a)))
        bound = max(0.0, float(a.sum()) - float(support.upper)) * min(limit, 1.0)
        return max(0.0, value - bound) / value if value > 0.0 else 0.0

    def enclose_bound(self, dual: Array) -> Interval:
        """Return what a dual point a in its box proves, between bounds that hold in exact arithmetic.

        With G its `adjoint` and ||.||' the dual norm that is max(0, sum a - radius ||G||'), or with a penalty the sum of a scaled until
        ||G||' is at most the weight.
        """
        support, limit = self.regulariser.enclose_support(self.design.enclose_adjoint(dual * self.labels))
        return ((Interval.of_sum(dual) - support) * min(limit, 1.0)).positive_part()
