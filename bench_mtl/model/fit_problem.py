"""What all problems of a smooth loss of linear predictions share."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.checks import true_or_false
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import UNIT, Interval, up
from bench_mtl.core.types import Array
from bench_mtl.model.composite_problem import CompositeProblem
from bench_mtl.model.intercepts import Centres, can_centre, centred
from bench_mtl.model.linear_loss import OF_WEIGHTS, LinearFit
from bench_mtl.model.losses import Loss, Squared
from bench_mtl.model.norms import Norm
from bench_mtl.model.regularisers import Constraint, Regulariser, constraint_or_penalty
from bench_mtl.model.task_data import TaskData


class FitProblem(CompositeProblem):
    """min_W f(W) + R(W), f a `LinearFit`. A dual point is any r, shaped like the targets; at the optimum minus the derivative of f."""

    fit: LinearFit

    def __init__(self, data: TaskData, loss: Loss, weights: Array, *, intercept: bool = False, is_always_centred: bool = False) -> None:
        """Read the targets that the loss wants, of held-out examples too. (The regulariser is up to the class.)

        Parameters
        ----------
        weights : the same for all examples of a task where there is an intercept
        intercept : whether f is the least over numbers that are added to the predictions of every task, see `bench_mtl.model.intercepts`.
            With the squared loss the data are centred, unless they are sparse and would be very large.
        is_always_centred : whether with the squared loss they are centred whatever their size

        Raises
        ------
        InputError : targets of another kind than the loss wants, a loss that has no free intercept, `intercept` that is not true or false.
        """
        has_intercept = true_or_false("intercept", intercept)
        if has_intercept and loss.couples_tasks:
            raise InputError(f"intercept must be false with the loss '{loss.name}'")
        targets, self.notes = loss.targets(data)
        self._centres: Centres | None = None
        if has_intercept and isinstance(loss, Squared) and (is_always_centred or can_centre(data.design)):
            data, self._centres = centred(data)
            targets = data.targets
        self.design = data.design
        self.fit = LinearFit(data.design, targets, loss, weights, has_intercept and self._centres is None)
        self._held_out = None if data.held_out is None else (data.held_out.design, loss.targets(data.held_out)[0])

    def regularise(self, regulariser: Regulariser) -> None:
        """Add a regulariser, and say which cones the conic forms need."""
        self.regulariser = regulariser
        own = {form: cones | self.fit.loss.cones for form, cones in regulariser.models.items()}
        self.conic_forms = own  # type: ignore[misc] # those of the class are of the squared loss

    def constrain_or_penalise(
        self, norm: Norm, data: TaskData, radius: float | str | None, penalty: float | str | None
    ) -> tuple[float | None, float | None]:
        """`regularise` by a norm of at most `radius` or with the weight `penalty`, see `constraint_or_penalty`; return both as numbers."""
        chosen = constraint_or_penalty(norm, data, radius=radius, penalty=penalty, largest=lambda: norm.dual(-self.gradient_at_zero()))
        self.regularise(chosen)
        return (chosen.radius, None) if isinstance(chosen, Constraint) else (None, chosen.weight)

    @property
    def loss(self) -> Loss:
        return self.fit.loss

    @property
    def modelled_fit(self) -> LinearFit:
        return self.fit

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.fit.targets.shape

    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        fit = self.fit.enclose(Interval.around(predictions, error))
        return ((fit + self.regulariser.enclose(point)) * OF_WEIGHTS).positive_part()

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        return self.design.forward_with_error(point)

    def predictions(self, point: Array) -> Array:
        return self.design.forward(point)

    def intercepts(self, point: Array) -> Array:
        """Return the best intercepts to the coefficients of a point, m numbers; zeros where the problem has none."""
        if self._centres is not None:
            return self._centres.intercepts(self.coefficients(point))
        return self.fit.intercepts(self.predictions(point))

    def dual_of(self, predictions: Array) -> Array:
        """Return minus the derivative of the loss."""
        return -self.fit.derivatives(predictions)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        r = self.dual_at(point) if dual is None else dual
        return (self.fit.enclose_bound(r, self.regulariser) * OF_WEIGHTS).positive_part()

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        predictions = self.predictions(point)
        return self.fit.value(predictions), self.design.adjoint(self.fit.derivatives(predictions))

    def smooth_value(self, point: Array) -> float:
        return self.fit.value(self.predictions(point))

    def lipschitz(self) -> float:
        """max_k s_k sigma_max(X_k)^2 for tasks of weight s_k, times the largest second derivative of the loss."""
        return self.fit.lipschitz()

    def gradient_at_zero(self) -> Array:
        """Return the gradient of f at W = 0, d x m."""
        return self.design.adjoint(self.fit.derivatives(np.zeros(self.dual_shape)))

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


class StackedFitProblem(FitProblem):
    """The same for coefficients that are the sum of two matrices; a point is the stack of both, 2 x d x m."""

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (2, *super().point_shape)

    def predictions(self, point: Array) -> Array:
        return super().predictions(self.coefficients(point))

    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """The sum of both matrices is rounded, too: Knuth's two-sum says by how much."""
        total = self.coefficients(point)
        back = total - point[0]
        value, error = self.design.forward_with_error(total)
        more, of_more = self.design.forward_with_error((point[0] - (total - back)) + (point[1] - back))
        whole = value + more
        return whole, up(error + up(of_more + 2.0 * UNIT * np.abs(whole)))

    def coefficients(self, point: Array) -> Array:
        return np.asarray(point[0] + point[1])

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        value, block = super().value_and_gradient(point)
        return value, np.broadcast_to(block, self.point_shape)

    def lipschitz(self) -> float:
        """Twice that of one matrix, for both share one gradient block (Chen, Liu, Ye 2012, lemma 6.1)."""
        return 2.0 * super().lipschitz()
