"""What linear models have in common whose norm is one of rows, a feature's coefficients in all tasks."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from bench_mtl.core.checks import one_of
from bench_mtl.estimators.linear import linear_model
from bench_mtl.estimators.solved import SolvedTasks


@linear_model
class RowNormTasks(SolvedTasks):
    """The parameters of regressors and classifiers under a norm of rows."""

    radius: float | None = None
    _: KW_ONLY
    penalty: float | str | None = None
    reduction: str = "mean"

    def _checked_parameters(self) -> dict[str, Any]:
        """Return the parameters as those of the problem; the radius is 1 where there is neither radius nor penalty."""
        radius = 1.0 if self.radius is None and self.penalty is None else self.radius
        return {"radius": radius, "penalty": self.penalty, "reduction": one_of("reduction", self.reduction, ("mean", "sum"))}
