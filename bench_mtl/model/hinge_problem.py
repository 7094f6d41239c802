"""What all problems of weighted hinges share: operators that follow from the data, whatever the constraint or penalty."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.rounding import Interval
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.composite_problem import CompositeProblem
from bench_mtl.model.forms import BallForm, HingeForm, Hinges, NormHingeForm
from bench_mtl.model.linear_loss import OF_WEIGHTS, LinearFit, example_weights
from bench_mtl.model.losses import Hinge
from bench_mtl.model.norms import Norm
from bench_mtl.model.protocols import Capability, Form
from bench_mtl.model.regularisers import Constraint, constraint_or_penalty
from bench_mtl.model.shard_blocks import has_own
from bench_mtl.model.sharded_hinges import ShardedHinges
from bench_mtl.model.task_data import TaskData, binary_labels

#: Methods that say what a problem is, and what proves it.
_JUDGING = (
    "objective", "dual_bound", "enclose_objective", "enclose_objective_at", "enclose_dual", "predictions_with_error", "dual_of", "dual_at",
    "value_and_subgradient", "smoothed",
)  # fmt: skip


class HingeProblem(CompositeProblem):
    """A problem with hinges, W its points and a its dual points: everything but the constraint or penalty.

    Of examples in shards a dual point may also be told by coefficients and a smoothing, see `bench_mtl.model.sharded_hinges`.
    """

    hinges: HingeForm | BallForm | NormHingeForm
    offers: ClassVar[frozenset[Capability]] = frozenset(set(Capability) - {Capability.SMOOTH})
    _sums: ShardedHinges | None = None

    def constrain_or_penalise(
        self, norm: Norm, hinges: Hinges, data: TaskData, radius: float | str | None, penalty: float | str | None
    ) -> tuple[float | None, float | None]:
        """Add a norm of at most `radius` or with the weight `penalty`, see `constraint_or_penalty`; return both as numbers.

        Shares of a penalty are of the dual norm at `Hinges.dual_at_zero`: a weight with which W = 0 is optimal.
        """

        sums = None if has_own(self, _JUDGING, HingeProblem) else ShardedHinges.of(hinges, data.targets)

        def largest() -> float:
            if sums is not None:
                return norm.dual(-sums.smoothed(np.zeros(self.point_shape), 0.0)[1])
            return norm.dual(hinges.adjoint(hinges.dual_at_zero()))

        self._sums, self.design = sums, hinges.design
        self.regulariser = chosen = constraint_or_penalty(norm, data, radius=radius, penalty=penalty, largest=largest)
        return (chosen.radius, None) if isinstance(chosen, Constraint) else (None, chosen.weight)

    def on_shards(self, chosen: Sequence[int]) -> Self | None:
        if self._sums is None or not isinstance(self.design, ShardedDesign):
            return None
        sums, parts = self._sums.on_shards(chosen), self.design.shards.sizes.slices
        labels, weights = sums.reading.rows(self.hinges.labels, [parts[k] for k in chosen])
        other = copy.copy(self)
        other._sums, other.design = sums, sums.design
        other.hinges = replace(self.hinges, design=sums.design, labels=labels, weights=weights)
        other.make_forms = tuple  # type: ignore[method-assign] # none: those of the class are of all shards
        return other

    def take(self, hinges: HingeForm | BallForm | NormHingeForm) -> None:
        """Have these hinges, and offer no saddle operators where their dual points are no box."""
        self.hinges, self.design = hinges, hinges.design
        self.labels, self.weights = hinges.labels, hinges.weights
        if hinges.intercept:
            self.offers = self.offers - {Capability.SADDLE}  # type: ignore[misc]

    def make_forms(self) -> tuple[Form, ...]:
        return (self.hinges,)

    @property
    def modelled_fit(self) -> LinearFit:
        return LinearFit(self.hinges.design, self.hinges.labels, Hinge(), self.hinges.weights, self.hinges.intercept)

    def _own_dual(self, dual: Any) -> Array:
        return np.asarray(self.hinges.labels * dual)

    def intercepts(self, point: Array) -> Array:
        """Return the best intercepts to a point, m numbers; zeros where the problem has none."""
        if not self.hinges.intercept:
            return np.zeros(self.design.n_tasks)
        return self.hinges.intercepts(self.hinges.design.forward(point))

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.hinges.labels.shape if self._sums is None else self._sums.dual_shape

    @property
    def dual_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.dual_shape,) if self._sums is None else (self.dual_shape, self.hinges.labels.shape)

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        return self.hinges.design.forward_with_error(point)

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        return self._objective(point, self.hinges.enclose_loss(predictions, error))

    def enclose_objective(self, point: Array) -> Interval:
        return super().enclose_objective(point) if self._sums is None else self._objective(point, self._sums.enclose(point))

    def _objective(self, point: Array, loss: Interval) -> Interval:
        return ((loss + self.regulariser.enclose(point)) * OF_WEIGHTS).positive_part()

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        if self._sums is None:
            return super()._judged(point, duals)
        told = [self.dual_at(point) if dual is None else dual for dual in duals]
        are_told = [dual.ndim == len(self.dual_shape) for dual in told]
        loss, bounds = self._sums.judge(point, [dual for dual, is_told in zip(told, are_told, strict=True) if is_told], self.regulariser)
        proven = iter([(bound * OF_WEIGHTS).positive_part() for bound in bounds])
        own = [next(proven) if is_told else self.enclose_dual(point, dual) for dual, is_told in zip(told, are_told, strict=True)]
        return self._objective(point, loss), own

    def bounds(self, point: Array, duals: Sequence[Array]) -> tuple[float, list[float]]:
        if self._sums is None:
            return super().bounds(point, duals)
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is no fault
            objective, proven = self._judged(point, duals)
        return objective.ends[1], [bound.ends[0] for bound in proven]

    def dual_at(self, point: Array) -> Array:
        return super().dual_at(point) if self._sums is None else self._sums.told(point, 0.0)

    def dual_of(self, predictions: Array) -> Array:
        """Return the dual point that gives the subgradient."""
        return self.hinges.duals(self.hinges.labels * self.hinges.shifted(predictions))

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        if self._sums is not None and (dual is None or dual.ndim == len(self.dual_shape)):
            told = self.dual_at(point) if dual is None else dual
            return (self._sums.enclose_bound(told, self.regulariser) * OF_WEIGHTS).positive_part()
        a = self.dual_at(point) if dual is None else dual
        return (self.hinges.enclose_bound(self.hinges.admissible(a)) * OF_WEIGHTS).positive_part()

    def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
        if self._sums is not None:
            return self._sums.smoothed(point, 0.0)
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
        if self._sums is not None:
            return self._sums.smoothed(point, smoothing)
        value, a = self.hinges.smoothed(self.hinges.margins(point), smoothing)
        return value, -self.hinges.adjoint(a), a

    def smoothed_lipschitz(self, smoothing: float) -> float:
        return self.hinges.smoothed_lipschitz(smoothing)


def hinges_of(data: TaskData, reduction: str, intercept: bool = False) -> tuple[Hinges, tuple[str, ...]]:
    """Return the hinges of labelled tasks, with weights 1/n_k ("mean") or 1 ("sum") and perhaps free intercepts, and the notes on the data.

    Raises
    ------
    InputError : labels other than -1/+1 or 0/1, `intercept` that is not true or false.
    """
    labels, notes = binary_labels(data)
    weights = example_weights(data.design, reduction)
    return Hinges(data.design, labels, weights, intercept=true_or_false("intercept", intercept)), notes
