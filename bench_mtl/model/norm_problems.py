"""Problems under one norm, as a constraint or a penalty: all that a class of a smooth loss, or of hinges, does not say itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem, HingeProblem
from bench_mtl.model.linear_loss import REDUCTIONS, example_weights
from bench_mtl.model.losses import SMOOTH_LOSSES, loss_named
from bench_mtl.model.norms import Norm
from bench_mtl.model.optimal_duals import least_dual_norm
from bench_mtl.model.patterns import features_used
from bench_mtl.model.protocols import Capability
from bench_mtl.model.regularisers import Constraint, Extras, Penalty
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import TASKS, row_sparse_data, weighted

_LOSSES = (*SMOOTH_LOSSES, "quantile")
#: What only losses with kinks need.
_OF_KINKS = frozenset({Capability.SUBGRADIENT, Capability.SMOOTHED})


class NormGLM(FitProblem):
    """A loss of single predictions under a norm of rows; that of quantiles has subgradients in place of gradients."""

    takes_weights = True
    norm_type: ClassVar[type[Norm]]
    offers: ClassVar[frozenset[Capability]] = frozenset(Capability)

    def __init__(
        self,
        data: TaskData,
        *,
        loss: str = "squared",
        radius: float | str | None = None,
        penalty: float | str | None = None,
        reduction: str = "mean",
        intercept: bool = False,
        feature_factors: Sequence[float] | Array | None = None,
        nonnegative: bool = False,
        ridge: float = 0.0,
    ) -> None:
        self.reduction, chosen = one_of("reduction", reduction, REDUCTIONS), loss_named(loss, _LOSSES)
        super().__init__(data, chosen, example_weights(data.design, reduction, data.weights), intercept=intercept)
        self.offers = NormGLM.offers - (_OF_KINKS if chosen.is_smooth else {Capability.SMOOTH})  # type: ignore[misc]
        extras = Extras.of(feature_factors, nonnegative, ridge)
        self.feature_factors, self.nonnegative, self.ridge = extras
        self.radius, self.penalty = self.constrain_or_penalise(self.norm_type(), data, radius, penalty, extras)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = row_sparse_data(rng)
        labelled = data.labelled()
        yield cls(data.shared, radius=1.0)
        yield cls(data.per_task, penalty="0.3 max")
        yield cls(data.shared_csr, penalty=2.0, reduction="sum")
        yield cls(data.per_task_csr, radius=0.5, reduction="sum")
        yield cls(labelled.shared, loss="logistic", radius=1.5)
        yield cls(weighted(labelled.per_task), loss="logistic", penalty="0.2 max")
        yield cls(labelled.shared_csr, loss="logistic", penalty=1.0, reduction="sum")
        yield cls(labelled.per_task_csr, loss="logistic", radius=0.7, reduction="sum")
        yield cls(weighted(data.per_task), penalty="0.3 max", intercept=True)
        yield cls(weighted(labelled.shared), loss="logistic", radius=1.2, intercept=True)
        yield cls(weighted(data.shared), loss="huber:0.5", penalty="0.1 max", intercept=True)
        factors = np.linspace(0.5, 3.0, data.shared.design.n_features)
        yield cls(data.per_task, radius=1.0, nonnegative=True, intercept=True)
        yield cls(labelled.shared, loss="logistic", penalty=0.05, feature_factors=factors, nonnegative=True)
        yield cls(data.shared, penalty=0.1, feature_factors=np.where(factors < 1.0, 0.0, factors), nonnegative=True, ridge=0.1)
        yield cls(labelled.per_task_csr, loss="logistic", penalty="0.2 max", ridge=0.3, reduction="sum")
        yield cls(data.shared_csr, loss="quantile:0.3", radius=1.0)
        yield cls(weighted(data.per_task), loss="quantile", penalty="0.2 max", feature_factors=factors, intercept=True)

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest, and the rows (features) that have one; on held-out examples the share of errors
        (squared loss: of squares not explained)."""
        return features_used(point) | self.held_out_error(point)


class NormHinge(HingeProblem):
    """Hinges under a norm of rows."""

    norm_type: ClassVar[type[Norm]]
    regulariser: Constraint | Penalty

    def measures(self, point: Array) -> Mapping[str, float]:
        """Entries above a millionth of the largest, and the rows (features) that have one; the share of errors on held-out examples."""
        return features_used(point) | self.held_out_error(point)

    def largest_penalty(self, norm: Norm) -> float:
        return least_dual_norm(self.fit, norm) if self.fit.intercept else super().largest_penalty(norm)

    def __init__(
        self,
        data: TaskData,
        *,
        radius: float | str | None = None,
        penalty: float | str | None = None,
        reduction: str = "mean",
        intercept: bool = False,
    ) -> None:
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        super().__init__(data, reduction=reduction, intercept=intercept)
        self.radius, self.penalty = self.constrain_or_penalise(self.norm_type(), data, radius, penalty)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = row_sparse_data(rng).labelled()
        yield cls(data.per_task, radius=1.5)
        yield cls(data.shared, radius=1.0, reduction="sum")
        yield cls(data.shared_csr, penalty=0.1)
        yield cls(data.per_task_csr, penalty="0.5 max", reduction="sum")
        few = [(X[:4], y[:4]) for X, y in (data.per_task.task(k) for k in range(TASKS))]
        yield cls(TaskData.per_task([X for X, _ in few], [y for _, y in few], name="tiny equal sizes"), radius=0.7)
        yield cls(weighted(data.per_task), radius=1.2, intercept=True)
        yield cls(data.shared_csr, penalty=0.2, reduction="sum", intercept=True)
