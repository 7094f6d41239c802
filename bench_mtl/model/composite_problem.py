"""What all problems of a loss and a regulariser share: the operators that belong to the regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.designs import Design, line_norms
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.protocols import Capability, ConicModel, NotOfferedError, PredictingProblem
from bench_mtl.model.regularisers import Regulariser

#: How far the size of the data may be from 1 before the variables of a generic model get another unit.
_FAR = 1e3


class CompositeProblem(PredictingProblem):
    """min_W f(W) + R(W), f a loss of linear predictions X_k w_k and R a regulariser."""

    design: Design
    fit: LinearFit
    regulariser: Regulariser
    chooses_unit: ClassVar[bool] = True

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.design.n_features, self.design.n_tasks)

    @property
    def dimensions(self) -> Mapping[str, int]:
        return {"n": self.design.n_examples, "d": self.design.n_features, "m": self.design.n_tasks}

    def repair(self, point: Array) -> Array:
        return self.regulariser.repair(point)

    def infeasibility(self, point: Array) -> float:
        return self.regulariser.excess(point) if np.isfinite(point).all() else np.inf

    def prox(self, point: Array, step_size: float) -> Array:
        return self.regulariser.prox(point, step_size)

    def prox_value(self, point: Array) -> float:
        return self.regulariser.value(point)

    def lmo(self, direction: Array) -> Array:
        vertex = self.regulariser.vertex(direction)
        if vertex is None:
            raise NotOfferedError(self, Capability.LMO)
        return vertex

    def to_cvxpy(self, form: str | None = None, *, unit: float | None = None) -> ConicModel:
        """The problem with residuals, margins, predictions or slacks as variables, so that their constraint's multiplier is a dual point.

        See `Loss.model` of the loss and `model` of the norm. Where the data are far from size 1, variables are in another unit
        (`model_unit`) unless one is asked for: generic solvers have tolerances in the units of what they are given.
        """
        import cvxpy as cp

        form = one_of("form", form or next(iter(self.conic_forms)), tuple(self.conic_forms))
        unit = model_unit(self.design) if unit is None else unit
        part = self.regulariser.model(form, (self.design.n_features, self.design.n_tasks), unit)
        loss, fit, as_dual = self.fit.model(cp.vec(part.coefficients, order="F"))

        def recover() -> tuple[Array, Array | None]:
            return part.point(), None if fit.dual_value is None else self._own_dual(as_dual(np.asarray(fit.dual_value)))

        return ConicModel(cp.Problem(cp.Minimize(loss + part.penalty), [fit, *part.constraints]), recover, unit)

    def _own_dual(self, dual: Any) -> Array:
        """A dual point of this problem for one of the loss, minus the derivative in the predictions."""
        return np.asarray(dual)


def model_unit(design: Design) -> float:
    """Return the unit of the variables of a generic model, a power of two: 1, unless the data are in units far from that of a usual size.

    Then it is one over the middle root mean square of a column, over its entries that are not 0: a column of a few words is not in small
    units. (Units of each feature would help some models, and spoil others: a row that bounds a norm would have coefficients of all these
    sizes.)
    """
    blocks = [design.block(k) for k in range(1 if design.is_shared else design.n_tasks)]
    sizes = np.sort(np.concatenate([_entry_sizes(X) for X in blocks]))
    middle = float(sizes[len(sizes) // 2]) if len(sizes) else 1.0
    return 1.0 if 1.0 / _FAR <= middle <= _FAR else float(np.ldexp(1.0, -int(np.frexp(middle)[1])))


def _entry_sizes(X: Matrix) -> Array:
    """Return the root mean square of the entries that are not 0, for every column that has one."""
    counts = np.asarray((X != 0).sum(axis=0)).ravel()
    norms = line_norms(X, axis=0)  # bounds, above 0 for empty columns too
    return np.asarray(norms[counts > 0] / np.sqrt(counts[counts > 0]))
