"""The form of a loss of linear predictions and a regulariser, and the kinds of it that solvers take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Loss
from bench_mtl.model.norms import L1, FeatureNorm, L1Inf, Trace
from bench_mtl.model.protocols import Kind, ObjectiveForm, Problem
from bench_mtl.model.regularisers import Constraint, OfNorm, Penalty, Regulariser, Stacked
from bench_mtl.model.squared_norms import PenaltyAndRidge, SquaredNorms

#: What messages say of a norm that has more than its weight.
_ADDITIONS: dict[type, str] = {PenaltyAndRidge: "with a ridge", FeatureNorm: "with factors or W >= 0"}


@dataclass(frozen=True)
class LinearForm(ObjectiveForm):
    """min_W f(W) + R(W), f the function of a `LinearFit`; where R is of a stack of matrices, f is of their sum."""

    fit: LinearFit
    regulariser: Regulariser

    @property
    def label(self) -> str:
        return name_under(f"{self.fit.loss.name} loss", self.regulariser.terms)

    @property
    def has_intercept(self) -> bool:
        return self.fit.intercept

    @property
    def design(self) -> Design:
        return self.fit.design

    @cached_property
    def radius(self) -> float | None:
        """Of the norm that is constrained, if there is one."""
        return next((part.radius for part in self.parts if isinstance(part, Constraint)), None)

    @cached_property
    def penalty(self) -> float | None:
        """The weight of the norm that is penalised, of the first if there are more; None without one."""
        return next((part.weight for part in self.parts if isinstance(part, Penalty)), None)

    @property
    def penalty_and_radius(self) -> tuple[float, float]:
        """Both, of a form that has both."""
        assert self.penalty is not None
        assert self.radius is not None
        return self.penalty, self.radius

    @property
    def norm(self) -> Any:
        """That of a constraint or a penalty, of the class that a solver says it takes; None where there is none."""
        return self.regulariser.norm if isinstance(self.regulariser, OfNorm) else None

    @property
    def squared_norms(self) -> SquaredNorms:
        """The regulariser where it is one of `SquaredNorms`."""
        assert isinstance(self.regulariser, SquaredNorms)
        return self.regulariser

    def objective(self, point: Array, predictions: Array | None = None) -> float:
        """Return F at a feasible point; its `predictions` save half a pass over the data where they are known."""
        if predictions is None:
            predictions = self.design.forward(point if point.ndim == 2 else point.sum(axis=0))
        return self.fit.value(predictions) + self.regulariser.value(point)

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives, and the derivatives of a smooth loss with its values."""
        super().check(problem, rng)
        if self.fit.loss.is_smooth:
            self.fit.check_derivatives(rng)

    def prox(self, W: Array, step_size: float, **how: Any) -> Array:
        """Return argmin_V 1/2 ||V - W||^2 + step_size R(V); `how` is for the projection of the norm, where there is a radius."""
        return self.regulariser.prox(W, step_size) if self.radius is None else self.norm.project(W, self.radius, **how)

    def dual_at_zero(self) -> Array:
        """Return minus the derivatives of the loss at W = 0, a dual point."""
        return self.fit.dual_at_zero()

    def adjoint(self, dual: Array) -> Array:
        """Return X^T r, d x m."""
        return self.design.adjoint(dual)

    def bound(self, dual: Array, G: Array) -> float:
        """Return about what an admissible dual point proves, scaled into all penalties, with G its `adjoint`: to steer by, and no proof."""
        if isinstance(self.regulariser, Constraint):
            return max(0.0, self.fit.conjugate_gain(dual) - self.regulariser.radius * self.norm.dual(G))
        penalties = [(part.weight, part.norm.dual(G)) for part in self.parts if isinstance(part, Penalty)]
        share = min((weight / norm for weight, norm in penalties if norm > weight), default=1.0)
        return max(0.0, self.fit.conjugate_gain(dual if share == 1.0 else share * dual))

    def restricted(self, features: NDArray[np.intp]) -> Self:
        """Return the form of the problem in which all rows of W but these are zero."""
        return replace(self, fit=replace(self.fit, design=self.design.restricted(features)))

    @property
    def parts(self) -> tuple[Regulariser, ...]:
        """The regularisers of the matrices of a point."""
        return self.regulariser.parts if isinstance(self.regulariser, Stacked) else (self.regulariser,)


def loss_under(loss: str, *terms: type) -> Kind[LinearForm]:
    """Return the kind of a loss by its name, or any "smooth" one that compiled loops know, under this norm or regulariser; of a sum of
    matrices, one for each."""
    return Kind(name_under(f"{loss} loss", terms), LinearForm, lambda form: _is(form.fit.loss, loss) and are_of(form.regulariser, terms))


def under_rows_and_entries(loss: str) -> Kind[LinearForm]:
    """Return the kind of a loss by its name, or any "smooth" one, of a sum of two matrices: the first with an l1,inf penalty, the second
    with an l1 penalty."""

    def is_one(form: LinearForm) -> bool:
        match form.regulariser:
            case Stacked((Penalty(L1Inf()), Penalty(L1(balls="all", nonneg=False)))):
                return _is(form.fit.loss, loss)
        return False

    return Kind(name_under(f"{loss} loss", (L1Inf, L1)), LinearForm, is_one)


def under_ridge(loss: str) -> Kind[LinearForm]:
    """Return the kind of a loss by its name, or any "smooth" one, under nothing but a ridge."""

    def is_one(form: LinearForm) -> bool:
        return _is(form.fit.loss, loss) and isinstance(form.regulariser, SquaredNorms) and form.regulariser.coupling == 0.0

    return Kind(f"{loss} loss under a ridge", LinearForm, is_one)


def _is(loss: Loss, name: str) -> bool:
    return loss.is_smooth and loss.code is not None if name == "smooth" else loss.name == name


def are_of(regulariser: Regulariser, terms: tuple[type, ...]) -> bool:
    """Return whether a regulariser is made of these norms, one for each matrix."""
    return len(regulariser.terms) == len(terms) and all(map(issubclass, regulariser.terms, terms))


def name_under(loss: str, terms: tuple[type, ...]) -> str:
    """Return what messages call a loss under these norms."""
    if len(terms) == 1 and terms[0] in _ADDITIONS:
        return f"{loss} {_ADDITIONS[terms[0]]}"
    return f"{loss} under {' + '.join(term.__name__ for term in terms)}"


def _is_split(form: LinearForm) -> bool:
    weights = form.fit.weights[:1] if form.fit.weights.strides[0] == 0 else form.fit.weights
    match form.regulariser:
        case Stacked((Penalty(L1(nonneg=False)), Constraint(Trace()))):
            return form.fit.loss.name == "squared" and bool(np.all(weights == 1.0))
    return False


#: Squares of predictions by P + Q, plus penalty sum |P|, subject to ||Q||_* <= radius.
SPARSE_PLUS_LOW_RANK = Kind(name_under("squared loss", (L1, Trace)), LinearForm, _is_split)
#: Support vector machines: hinges plus ridge/2 ||W||_F^2.
RIDGE_HINGES = under_ridge("hinge")
