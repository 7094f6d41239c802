"""What all problems of a loss of linear predictions share, and those of weighted hinges, a loss that has only subgradients."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of, true_or_false
from bench_mtl.core.designs import Design, frozen, line_norms
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.types import Array, Matrix
from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.model.intercepts import Centres, can_centre, centred
from bench_mtl.model.linear_loss import OF_WEIGHTS, LinearFit, example_weights
from bench_mtl.model.losses import Hinge, Loss, Squared
from bench_mtl.model.normal_equations import NormalEquations, normal_equations
from bench_mtl.model.norms import Norm
from bench_mtl.model.protocols import Capability, ConicModel, Form, NotOfferedError, PredictingProblem, Problem
from bench_mtl.model.regularisers import NO_EXTRAS, Constraint, Extras, Regulariser, constraint_or_penalty
from bench_mtl.model.shard_blocks import has_own_judge, sum_with_error
from bench_mtl.model.sharded_fit import ShardedFit
from bench_mtl.model.squared_norms import PenaltyAndRidge
from bench_mtl.model.task_data import TaskData

#: How far the size of the data may be from 1 before the variables of a generic model get another unit.
_FAR = 1e3


class FitProblem(PredictingProblem):
    """min_W f(W) + R(W), f a `LinearFit` of predictions X_k w_k and R a regulariser. A dual point is any r, shaped like the targets; at the
    optimum minus the derivative of f.

    Of examples in shards a dual point may also be stored as coefficients, see `bench_mtl.model.sharded_fit`.
    """

    regulariser: Regulariser
    chooses_unit: ClassVar[bool] = True
    _normal: NormalEquations | None = None
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.CONIC})
    forms: ClassVar[tuple[type[Form], ...]] = (LinearForm,)

    def __init__(self, data: TaskData, loss: Loss, weights: Array, *, intercept: bool = False) -> None:
        """Read the targets that the loss wants, of held-out examples too. (The regulariser is up to the class.)

        Parameters
        ----------
        weights : above 0, in the output shape of the design, or a column for a loss that couples tasks; multiplied by those of the tasks
        intercept : whether f is the least over numbers that are added to the predictions of every task, see `bench_mtl.model.intercepts`.
            With the squared loss the data are centred, unless they are sparse and would be much larger.

        Raises
        ------
        InputError : targets of another kind than the loss wants, a loss that has no free intercept, `intercept` that is not true or false.
        """
        has_intercept = true_or_false("intercept", intercept)
        if data.design.is_in_shards and not (data.weights is None and data.task_weights is None):
            raise InputError("examples in shards have no weights: they are for data in memory")
        if data.task_weights is not None and loss.couples_tasks:
            raise InputError(f"the loss '{loss.name}' is of all tasks together, which have no weights")
        if has_intercept and loss.couples_tasks:
            raise InputError(f"intercept must be false with the loss '{loss.name}'")
        targets, self.notes = loss.targets(data)
        self._centres: Centres | None = None
        if has_intercept and isinstance(loss, Squared) and can_centre(data.design, weights):
            design, own = data.design, None if data.weights is None else weights
            data, self._centres = centred(data, lambda k: None if own is None else design.task_outputs(own, k))
            targets = data.targets
        if data.task_weights is not None:  # means are the same with them
            weights = frozen(weights * data.design.per_example(data.task_weights))
            if not np.all((weights >= np.finfo(float).tiny) & (weights < np.inf)):
                raise InputError("task_weights times the weights of examples leave the range of floating-point numbers")
        self.design = data.design
        self.fit = LinearFit(data.design, targets, loss, weights, has_intercept and self._centres is None)
        self.smoothing_unit = 1.0 if loss.is_of_labels or loss.is_smooth else float(np.abs(targets).mean()) or 1.0
        self.is_composite = not has_own_judge(self)
        """Whether it is no other problem than that of `fit` and `regulariser`."""
        self._sums = None if not self.is_composite else ShardedFit.of(self.fit, data.targets)
        self._held_out = None if data.held_out is None else (data.held_out.design, loss.targets(data.held_out)[0])

    def on_shards(self, chosen: Sequence[int]) -> Self | None:
        if self._sums is None or not isinstance(self.design, ShardedDesign):
            return None
        design, parts = self.design.on_shards(chosen), self.design.shards.sizes.slices
        reading = replace(self._sums.reading, weights=self._sums.reading.weights * (self.design.sizes[0] / design.sizes[0]))
        targets = frozen(np.concatenate([self.fit.targets[parts[k]] for k in chosen]))
        weights = np.broadcast_to(reading.weights, (len(targets), len(reading.weights)))
        other = copy.copy(self)
        other._sums, other.design = replace(self._sums, design=design, reading=reading), design
        other.fit = replace(self.fit, design=design, targets=targets, weights=weights)
        return other

    @property
    def sums(self) -> ShardedFit | None:
        """The loss as sums over shards, where it is such."""
        return self._sums

    def with_parts(self, fit: LinearFit, regulariser: Regulariser) -> Self:
        """Return the problem of a loss of data in memory and a regulariser, with points of as many matrices as here."""
        other = copy.copy(self)
        other.fit, other.design, other.regulariser = fit, fit.design, regulariser
        other._sums = other._normal = other._centres = other._held_out = None
        return other

    def regularise(self, regulariser: Regulariser) -> None:
        """Add a regulariser, and say which cones the conic forms need."""
        self.regulariser = regulariser
        own = {form: cones | self.fit.loss.cones for form, cones in regulariser.models.items()}
        self.conic_forms = own  # type: ignore[misc] # those of the class are of the squared loss

    def constrain_or_penalise(
        self, norm: Norm, data: TaskData, radius: float | str | None, penalty: float | str | None, extras: Extras = NO_EXTRAS
    ) -> tuple[float | None, float | None]:
        """`regularise` by a norm of at most `radius` or with the weight `penalty`, see `constraint_or_penalty`; return both as numbers."""
        norm = extras.put_on(norm, data.design.n_features, radius, penalty)
        chosen = constraint_or_penalty(norm, data, radius=radius, penalty=penalty, largest=lambda: self.largest_penalty(norm))
        if isinstance(chosen, Constraint):
            self.regularise(chosen)
            return chosen.radius, None
        self.regularise(PenaltyAndRidge(chosen, extras.ridge) if extras.ridge > 0.0 else chosen)
        return None, chosen.weight

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

        return ConicModel(cp.Problem(cp.Minimize(loss + part.penalty), [fit, *part.constraints]), recover, unit, part.point)

    def _own_dual(self, dual: Any) -> Array:
        """A dual point of this problem for one of the loss, minus the derivative in the predictions."""
        return np.asarray(dual)

    def make_forms(self) -> tuple[Form, ...]:
        return (LinearForm(self.fit, self.regulariser),)

    def scale(self) -> float:
        """With free intercepts the objective at 0 is almost 0 where all labels of a task are alike: then what it is without them."""
        scale = super().scale()
        if not (self.fit.intercept and self.fit.loss.is_of_labels):
            return scale
        return max(scale, self.fit.loss.total(np.zeros(self.fit.targets.shape), self.fit.targets, self.fit.weights))

    @property
    def loss(self) -> Loss:
        return self.fit.loss

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.fit.targets.shape if self._sums is None else self._sums.dual_shape

    @property
    def dual_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.dual_shape,) if self._sums is None else (self.dual_shape, self.fit.targets.shape)

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        return self._objective(point, self.fit.enclose(Interval.around(predictions, error)))

    def enclose_objective(self, point: Array) -> Interval:
        if self._sums is None:
            return super().enclose_objective(point)
        return self._objective(point, self._sums.enclose(self.coefficient_terms(point)))

    def _objective(self, point: Array, fit: Interval) -> Interval:
        return ((fit + self.regulariser.enclose(point)) * OF_WEIGHTS).positive_part()

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        if self._sums is None:
            return super()._judged(point, duals)
        given = [self.dual_at(point) if dual is None else dual for dual in duals]
        told = [dual for dual in given if self._is_told(dual)]
        fit, bounds = self._sums.judge(self.coefficient_terms(point), told, self.regulariser)
        proven = iter([(bound * OF_WEIGHTS).positive_part() for bound in bounds])
        return self._objective(point, fit), [next(proven) if self._is_told(dual) else self.enclose_dual(point, dual) for dual in given]

    def bounds(self, point: Array, duals: Sequence[Array]) -> tuple[float, list[float]]:
        if self._sums is None:
            return super().bounds(point, duals)
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is no fault
            objective, proven = self._judged(point, duals)
        return objective.ends[1], [bound.ends[0] for bound in proven]

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        return self.design.forward_with_error(point)

    def predictions(self, point: Array) -> Array:
        return self.design.forward(point)

    def intercepts(self, point: Array) -> Array:
        """Return the best intercepts to the coefficients of a point, m numbers; zeros where the problem has none."""
        if self._centres is not None:
            return self._centres.intercepts(self.coefficients(point))
        if not self.fit.intercept:
            return np.zeros(self.design.n_tasks)
        return self.fit.intercepts(self.predictions(point))

    def dual_of(self, predictions: Array) -> Array:
        """Return the dual point of minus the derivative of the loss, or of a subgradient."""
        return self._own_dual(-self.fit.derivatives(predictions))

    def dual_at(self, point: Array) -> Array:
        return super().dual_at(point) if self._sums is None else self._sums.told(self.coefficients(point))

    def _is_told(self, dual: Array) -> bool:
        """Whether a dual point is one of sums over shards, that coefficients tell."""
        return self._sums is not None and dual.ndim == len(self.dual_shape)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        given = self.dual_at(point) if dual is None else dual
        if self._sums is not None and self._is_told(given):
            bound = self._sums.enclose_bound(given, self.regulariser)
        else:
            bound = self._enclose_bound(given)
        return (bound * OF_WEIGHTS).positive_part()

    def _enclose_bound(self, dual: Array) -> Interval:
        """Return what any dual point proves, as far as the weights are exact."""
        return self.fit.enclose_bound(dual, self.regulariser)

    def by_normal_equations(self) -> FitProblem:
        if not isinstance(self.fit.loss, Squared) or self.fit.intercept or self.design.is_in_shards:
            return self
        other = copy.copy(self)
        other._normal = normal_equations(self.design, self.fit.targets, self.fit.weights)
        return other

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        if self._normal is not None:
            return self._normal.value_and_gradient(self.coefficients(point))
        if self._sums is not None:
            return self._sums.value_and_gradient(self.coefficients(point))
        value, derivatives = self.fit.value_and_derivatives(self.predictions(point))
        return value, self.design.adjoint(derivatives)

    def smooth_value(self, point: Array) -> float:
        if self._normal is not None:
            return self._normal.value_and_gradient(self.coefficients(point))[0]
        return self.fit.value(self.predictions(point)) if self._sums is None else self._sums.value(self.coefficients(point))

    def lipschitz(self) -> float:
        """max_k s_k sigma_max(X_k)^2 for tasks of weight s_k, times the largest second derivative of the loss."""
        return self.fit.lipschitz() if self._sums is None else self._sums.lipschitz(self.fit)

    def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
        return self.smoothed(point, 0.0)

    def smoothed(self, point: Array, smoothing: float) -> tuple[float, Array, Array]:
        """At most smoothing/2 sum s below a loss with kinks, see `Loss.smoothed`, with the smoothing in units of the mean modulus of real
        targets: residuals are of that order, and margins of labels of 1."""
        smoothing *= self.smoothing_unit
        if self._sums is not None:
            W = self.coefficients(point)
            return *self._sums.value_and_gradient(W, smoothing), self._sums.told(W, smoothing)
        value, derivatives = self.fit.smoothed(self.predictions(point), smoothing)
        return value, self.design.adjoint(derivatives), self._own_dual(-derivatives)

    def smoothed_lipschitz(self, smoothing: float) -> float:
        return self.fit.smoothed_lipschitz(smoothing * self.smoothing_unit)

    def gradient_at_zero(self) -> Array:
        """Return the gradient of f at W = 0, or a subgradient, d x m."""
        if self._sums is not None:
            return self._sums.value_and_gradient(np.zeros((self.design.n_features, self.design.n_tasks)))[1]
        return -self.design.adjoint(self.fit.dual_at_zero())

    def training_error(self, point: Array) -> float:
        """Return the error on the examples themselves, see `Loss.error`."""
        return self.fit.loss.error(self.fit.shifted(self.predictions(point)), self.fit.targets)

    def largest_penalty(self, norm: Norm) -> float:
        """Return the weight of a norm from which on W = 0 is optimal, as far as a subgradient at 0 tells; inf where that overflows."""
        G = self.gradient_at_zero()
        return norm.dual(-G) if np.isfinite(G).all() else np.inf

    def measures(self, point: Array) -> Mapping[str, float]:
        """The error on held-out examples."""
        return self.held_out_error(point)

    def held_out_error(self, point: Array) -> dict[str, float]:
        """Return the error on held-out examples, see `Loss.error`, by its name; nothing without such examples."""
        if self._held_out is None:
            return {}
        design, targets = self._held_out
        return {
            "held-out error": self.fit.loss.error(
                design.forward(self.coefficients(point)) + design.per_example(self.intercepts(point)), targets
            )
        }

    def coefficients(self, point: Array) -> Array:
        """Return the d x m coefficients that make the predictions of a point."""
        return point

    def coefficient_terms(self, point: Array) -> tuple[Array, ...]:
        """Return matrices whose sum in exact arithmetic is that of the coefficients, the rounded sum first."""
        return (point,)


class StackedFitProblem(FitProblem):
    """The same for coefficients that are the sum of two matrices; a point is the stack of both, 2 x d x m."""

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (2, *super().point_shape)

    def predictions(self, point: Array) -> Array:
        return super().predictions(self.coefficients(point))

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """The sum of both matrices is rounded, too: Knuth's two-sum says by how much."""
        return sum_with_error([self.design.forward_with_error(term) for term in self.coefficient_terms(point)])

    def coefficients(self, point: Array) -> Array:
        return np.asarray(point[0] + point[1])

    def coefficient_terms(self, point: Array) -> tuple[Array, ...]:
        total = self.coefficients(point)
        back = total - point[0]
        return total, (point[0] - (total - back)) + (point[1] - back)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        value, block = super().value_and_gradient(point)
        return value, np.broadcast_to(block, self.point_shape)

    def lipschitz(self) -> float:
        """Twice that of one matrix, for both share one gradient block (Chen, Liu, Ye 2012, lemma 6.1)."""
        return 2.0 * super().lipschitz()


class HingeProblem(FitProblem):
    """A problem with hinges, W its points and a its dual points: everything but the constraint or penalty.

    Of examples in shards a dual point may also be stored as coefficients and a smoothing, see `bench_mtl.model.sharded_fit`.
    """

    forms = (Hinges,)
    takes_weights = True
    offers: ClassVar[frozenset[Capability]] = frozenset(set(Capability) - {Capability.SMOOTH})

    def __init__(self, data: TaskData, *, reduction: str, intercept: bool = False) -> None:
        """Read the labels. (The regulariser is up to the class.)

        Raises InputError: labels other than -1/+1 or 0/1, `intercept` that is not true or false.
        """
        super().__init__(data, Hinge(), example_weights(data.design, reduction, data.weights), intercept=intercept)

    def regularise(self, regulariser: Regulariser) -> None:
        """Add a regulariser. (The conic forms are those of the class.)"""
        self.regulariser = regulariser

    @property
    def hinges(self) -> Hinges:
        return Hinges(self.fit, self.regulariser)

    def make_forms(self) -> tuple[Form, ...]:
        return (self.hinges,)

    def _own_dual(self, dual: Any) -> Array:
        return np.asarray(self.fit.targets * dual)

    def _enclose_bound(self, dual: Array) -> Interval:
        return self.hinges.enclose_bound(dual)

    value_and_gradient, smooth_value, lipschitz = Problem.value_and_gradient, Problem.smooth_value, Problem.lipschitz


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
