"""What is added to a loss: a norm as a constraint or a penalty, and one for each matrix of a stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from bench_mtl.core.checks import number_or_share, real_array, real_number, true_or_false
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval, quotient
from bench_mtl.core.types import Array
from bench_mtl.model.norms import FeatureNorm, Norm
from bench_mtl.model.task_data import TaskData, number_or_truth

#: Factors of features are 0 or between these: nothing that is divided by one leaves the range of doubles early.
_LEAST_FACTOR, _LARGEST_FACTOR = 1e-9, 1e9


class RegulariserModel(NamedTuple):
    """A regulariser in CVXPY."""

    coefficients: Any
    """The d x m expression that predictions are made of."""
    penalty: Any
    constraints: list[Any]
    point: Callable[[], Array]
    """Reads a point from the solved variables."""


class Regulariser(ABC):
    """A convex function R of points that is added to a loss: a penalty, or 0 on a convex set and +inf elsewhere."""

    is_homogeneous: ClassVar[bool] = True
    """Whether `enclose_support` of a multiple of G is as good as that of G; else multiples of a dual point are not to be taken before."""

    @abstractmethod
    def value(self, point: Array) -> float:
        """Return R at a feasible point: 0 for a constraint."""

    @abstractmethod
    def enclose(self, point: Array) -> Interval:
        """Return `value` between bounds that hold in exact arithmetic."""

    @abstractmethod
    def prox(self, point: Array, step_size: float) -> Array:
        """Return argmin_z 1/2 ||z - point||^2 + step_size R(z): a projection for a constraint."""

    def repair(self, point: Array) -> Array:
        """Return the nearest feasible point, or one next to it that is feasible in exact arithmetic; a feasible one as it is."""
        return point

    def excess(self, point: Array) -> float:
        """Return how far the point is outside the constraint, relative to the bound where that is not 0; 0 inside."""
        return 0.0

    def vertex(self, direction: Array) -> Array | None:
        """Return argmin <direction, z> over the feasible points; None where they are unbounded."""
        return None

    @property
    def terms(self) -> tuple[type, ...]:
        """The classes of the norms that it is made of, one for each matrix of a point; its own where it is made of none."""
        return (type(self),)

    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        """Return what G, d x m, costs a dual point and how much of it is allowed: for every c from 0 to the limit, ::

            min_z <-c G, z> + R(z) >= -c support

        where z of a stack of matrices represents their sum. G is known between bounds; the support and the limit are returned between
        bounds that hold in exact arithmetic.
        """
        raise NotImplementedError

    def enclose_support_around(self, G: Array, error: Array) -> tuple[Interval, Interval]:
        """Return `enclose_support` of all that is within `error` of G, entry by entry."""
        return self.enclose_support(Interval.around(G, error))

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        """Return this part of the problem in CVXPY, for d x m coefficients that are `unit` times variables."""
        raise NotImplementedError

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        """Forms that `model` writes, each with the cones it needs, as in `Problem.conic_forms`."""
        return {}


@dataclass(frozen=True)
class OfNorm(Regulariser):
    """A norm as a constraint or a penalty."""

    norm: Norm

    @abstractmethod
    def supported(self, dual: Interval) -> tuple[Interval, Interval]:
        """Return `enclose_support` of a G whose dual norm is between these bounds."""

    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        return self.supported(self.norm.enclose_dual(G))

    def enclose_support_around(self, G: Array, error: Array) -> tuple[Interval, Interval]:
        return self.supported(self.norm.enclose_dual_around(G, error))

    @property
    def terms(self) -> tuple[type, ...]:
        return (type(self.norm),)

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        return self.norm.models


@final
@dataclass(frozen=True)
class Constraint(OfNorm):
    """||W|| <= radius."""

    radius: float

    def value(self, point: Array) -> float:
        return 0.0

    def enclose(self, point: Array) -> Interval:
        return Interval(0.0, 0.0)

    def prox(self, point: Array, step_size: float) -> Array:
        return self.norm.project(point, self.radius)

    def repair(self, point: Array) -> Array:
        return self.norm.repair(point, self.radius)

    def excess(self, point: Array) -> float:
        beyond = self.norm.value(point) - self.radius
        return max(self.norm.outside_cone(point), beyond if beyond == beyond else np.inf, 0.0) / (self.radius or 1.0)

    def vertex(self, direction: Array) -> Array | None:
        return self.norm.vertex(direction, self.radius)

    def supported(self, dual: Interval) -> tuple[Interval, Interval]:
        support = dual * self.radius if self.radius > 0.0 else Interval(0.0, 0.0)  # of an infinite dual norm too
        return support, Interval(np.inf, np.inf)

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        matrix, value, constraints = self.norm.model(form, shape)
        return RegulariserModel(unit * matrix, 0.0, [*constraints, value <= self.radius / unit], lambda: unit * np.asarray(matrix.value))


@final
@dataclass(frozen=True)
class Penalty(OfNorm):
    """weight ||W||."""

    weight: float

    def value(self, point: Array) -> float:
        return self.weight * self.norm.value(point)

    def prox(self, point: Array, step_size: float) -> Array:
        return self.norm.prox(point, step_size * self.weight)

    def enclose(self, point: Array) -> Interval:
        return self.norm.enclose(point) * self.weight

    def repair(self, point: Array) -> Array:
        return self.norm.to_cone(point)

    def excess(self, point: Array) -> float:
        return self.norm.outside_cone(point)

    def supported(self, dual: Interval) -> tuple[Interval, Interval]:
        return Interval(0.0, 0.0), quotient(self.weight, dual)

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        matrix, value, constraints = self.norm.model(form, shape)
        return RegulariserModel(unit * matrix, unit * self.weight * value, constraints, lambda: unit * np.asarray(matrix.value))


@final
@dataclass(frozen=True)
class Stacked(Regulariser):
    """A regulariser for each matrix of a stack whose sum makes predictions: R_1(P) + R_2(Q) + ..."""

    parts: tuple[Regulariser, ...]

    @property
    def terms(self) -> tuple[type, ...]:
        return tuple(term for part in self.parts for term in part.terms)

    def value(self, point: Array) -> float:
        return sum(part.value(matrix) for part, matrix in zip(self.parts, point, strict=True))

    def prox(self, point: Array, step_size: float) -> Array:
        return np.stack([part.prox(matrix, step_size) for part, matrix in zip(self.parts, point, strict=True)])

    def enclose(self, point: Array) -> Interval:
        return sum((part.enclose(matrix) for part, matrix in zip(self.parts, point, strict=True)), Interval(0.0, 0.0))

    def repair(self, point: Array) -> Array:
        if all(isinstance(part, Penalty) for part in self.parts):
            return point
        return np.stack([part.repair(matrix) for part, matrix in zip(self.parts, point, strict=True)])

    def excess(self, point: Array) -> float:
        return max(part.excess(matrix) for part, matrix in zip(self.parts, point, strict=True))

    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        found = [part.enclose_support(G) for part in self.parts]
        limits = [limit.ends for _, limit in found]
        limit = Interval(min(low for low, _ in limits), min(high for _, high in limits))
        return sum((support for support, _ in found), Interval(0.0, 0.0)), limit

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        models = [part.model(form, shape, unit) for part in self.parts]
        return RegulariserModel(
            sum(model.coefficients for model in models),
            sum(model.penalty for model in models),
            [constraint for model in models for constraint in model.constraints],
            lambda: np.stack([model.point() for model in models]),
        )

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        """Those of the part with a form of its own; the other parts are written in their only one."""
        longest = max((part.models for part in self.parts), key=lambda models: (len(models), "epigraph" not in models))
        return {form: cones.union(*(next(iter(part.models.values())) for part in self.parts)) for form, cones in longest.items()}


class Extras(NamedTuple):
    """Options of problems under a norm of rows or entries."""

    feature_factors: Any = None
    """d numbers by which the norm of each row is multiplied; None: all 1."""
    nonnegative: bool = False
    """Whether W >= 0."""
    ridge: float = 0.0
    """What is added to a penalty is ridge/2 ||W||_F^2."""

    @classmethod
    def of(cls, feature_factors: Any, nonnegative: Any, ridge: Any) -> Extras:
        """Return the options as checked; raises InputError where one is of another kind."""
        factors = None if feature_factors is None else real_array("feature_factors", feature_factors, ndim=1)
        return cls(factors, true_or_false("nonnegative", nonnegative), real_number("ridge", ridge))

    def put_on(self, norm: Norm, n_features: int, radius: float | str | None, penalty: float | str | None) -> Norm:
        """Return a norm with its factors and cone, itself where there are none.

        Raises InputError: factors of another number or size; what only a penalty has, with a radius; a factor of 0 without a ridge, for
        then no dual point proves anything but by chance.
        """
        factors = self.feature_factors
        if radius is not None and (factors is not None or self.ridge > 0.0):
            raise InputError("feature_factors and ridge are for a penalty: give penalty in place of radius, or leave them out")
        if factors is None:
            return FeatureNorm(norm, frozen(np.ones((n_features, 1))), True) if self.nonnegative else norm
        if len(factors) != n_features:
            raise InputError("feature_factors", len(factors), f"have a number for each feature, {n_features}")
        positive = factors[factors != 0.0]
        if np.any((positive < _LEAST_FACTOR) | (positive > _LARGEST_FACTOR)):
            raise InputError(f"feature_factors must be 0 or from {_LEAST_FACTOR:g} to {_LARGEST_FACTOR:g}")
        if len(positive) < n_features and self.ridge == 0.0:
            raise InputError("a feature factor of 0 needs a ridge above 0, for bounds: give one, such as 1e-6, or a factor such as 1e-3")
        if len(positive) < n_features and isinstance(penalty, str):
            raise InputError("penalty must be a number with a feature factor of 0: no share of a largest one makes all coefficients 0")
        return FeatureNorm(norm, frozen(factors[:, None].copy()), self.nonnegative)


#: Those that are left out.
NO_EXTRAS = Extras()


def constraint_or_penalty(
    norm: Norm, data: TaskData, *, radius: float | str | None, penalty: float | str | None, largest: Callable[[], float]
) -> Constraint | Penalty:
    """Return a norm of at most `radius` (at least 0, or "truth", that of the true W of the data), or with the weight `penalty` (at least 0,
    or as "0.1 max" a share of `largest()`, the weight from which on W = 0 is optimal).

    Raises InputError: none or both are given, a negative one, "truth" of data that do not know it.
    """
    if (radius is None) == (penalty is None):
        raise InputError("give exactly one of radius (constrained) and penalty (penalised)")
    if penalty is not None:
        return Penalty(norm, number_or_share("penalty", penalty, largest))
    return Constraint(norm, number_or_truth("radius", radius, data, "W", norm.value))
