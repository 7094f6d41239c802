"""What a problem, its forms and a solver are. A new one is a class below one of these, in one file.

A problem certifies, a solver yields points, and neither knows the other. A problem offers *capabilities*, operators that it can compute,
and has *forms*, the data that it is made of; a solver requires the first and takes one of the second. The methods that belong to a
capability are those of `Problem` that name it.
"""

from __future__ import annotations

import enum
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeGuard, TypeVar, final

import numpy as np

from bench_mtl.core.blocks import Blocks
from bench_mtl.core.checks import not_real, require_finite, require_shape, require_unmasked
from bench_mtl.core.errors import BenchError, InputError
from bench_mtl.core.rounding import Interval
from bench_mtl.core.types import Array, Certificate, Iterate
from bench_mtl.model.patterns import part_names
from bench_mtl.model.task_data import TaskData

#: Compiled loops over the blocks hand over one iterate in so many in the long run: the driver certifies one in twenty.
SHOWN_SHARE = 32


class Capability(enum.StrEnum):
    """Something a problem can compute and a solver can need."""

    SMOOTH = "smooth"
    """`value_and_gradient`, `smooth_value` of a differentiable part, and `lipschitz` where `gradient_is_lipschitz`."""
    SUBGRADIENT = "subgradient"
    """`value_and_subgradient` of a convex part."""
    PROX = "prox"
    """`prox` of the rest: a projection onto the constraint, a proximal operator of a penalty."""
    SMOOTHED = "smoothed"
    """`smoothed`, `smoothed_lipschitz`: a smooth approximation of a part that has only subgradients."""
    LMO = "lmo"
    """`lmo`, where the rest is a bounded constraint (`lmo` raises NotOfferedError where it is none)."""
    CONIC = "conic"
    """`conic_forms`, `to_cvxpy`."""


class NotOfferedError(BenchError):
    """A capability or a form was asked for that the problem does not have."""

    def __init__(self, problem: Problem, missing: Capability | AnyKind) -> None:
        if isinstance(missing, Capability):
            super().__init__(f"problem '{problem.name}' does not offer {missing}")
        else:
            super().__init__(f"problem '{problem.name}' has no {name_of(missing)}: it has {_form_names(problem)}")


#: Share by which two computations of the same number may differ.
_ROUNDING = 1e-12
#: Dual points that differ by this share of their largest entry prove as much.
_SAME = 1e-9
#: Relative excess over a constraint that rounding may leave.
_INFEASIBLE = 1e-9


class Form(ABC):
    """Data that a problem, or a part of it, is made of, for solvers that need more than operators.

    A form is a frozen dataclass with read-only arrays: below `ObjectiveForm` where it describes the whole problem, below `SetForm` where it
    describes its feasible set. Several problems may have the same form.
    """

    @property
    def label(self) -> str:
        """How messages call it."""
        return type(self).__name__

    @property
    def has_intercept(self) -> bool:
        """Whether it is one with a free intercept, which a solver must know of."""
        return False

    @abstractmethod
    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the form with a problem that has it, at random points; a form with more to say extends this.

        Raises AssertionError: the form says something that is not true of the problem.
        """


class ObjectiveForm(Form):
    """A form of the whole problem."""

    @abstractmethod
    def objective(self, point: Array) -> float:
        """Return F at a feasible point, from the data of the form alone."""

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        point = problem.repair(rng.standard_normal(problem.point_shape))
        value, stated = problem.objective(point), self.objective(point)
        assert np.isclose(value, stated, rtol=_ROUNDING), f"objective {value:g}, the form says {stated:g}"


class SetForm(Form):
    """A form of a bounded feasible set."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Return a random point of the set; `shape` is that of a point."""

    @abstractmethod
    def lowest(self, direction: Array) -> float:
        """Return min <direction, z> over the set."""

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        point, direction = self.sample(problem.point_shape, rng), rng.standard_normal(problem.point_shape)
        excess, lowest = problem.infeasibility(point), self.lowest(direction)
        assert excess <= _INFEASIBLE, f"a point of the form's set is infeasible by {excess:g}"
        reached = float((direction * problem.repair(-1e3 * direction)).sum())
        assert reached >= lowest - _INFEASIBLE * (1.0 + abs(lowest)), f"a feasible point has {reached:g}, below the form's {lowest:g}"
        if Capability.LMO in problem.offers:
            oracle = float((direction * problem.lmo(direction)).sum())
            assert np.isclose(oracle, lowest), f"the lowest product is {oracle:g}, the form says {lowest:g}"


F = TypeVar("F", bound=Form)


@dataclass(frozen=True)
class Kind(Generic[F]):
    """Forms of a class of which something holds: what solvers say that they take."""

    name: str
    """How messages call them."""
    form: type[F]
    holds: Callable[[F], bool]


AnyKind = type[Form] | Kind[Any]
"""All forms of a class, or those of which something holds."""


def name_of(kind: AnyKind) -> str:
    """Return how messages call a kind of form."""
    return kind.name if isinstance(kind, Kind) else kind.__name__


def is_of(form: Form, kind: type[F] | Kind[F]) -> TypeGuard[F]:
    """Return whether a form is of a kind."""
    return isinstance(form, kind.form) and kind.holds(form) if isinstance(kind, Kind) else isinstance(form, kind)


def _form_names(problem: Problem) -> str:
    return ", ".join(form.label for form in problem.make_forms()) or "no form"


class ConicModel(NamedTuple):
    """A problem written for CVXPY."""

    problem: Any
    """A `cvxpy.Problem`."""
    recover: Callable[[], tuple[Array, Array | None]]
    """Reads (primal, dual) in the problem's own form from the solved variables."""
    unit: float = 1.0
    """Of the coefficients: the model's are those of the problem divided by it."""
    point: Callable[[], Array] | None = None
    """Reads the primal alone: what makes the dual point of the multipliers is no work of the solver's."""


def _as_callers_say(init: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor of a problem that takes aliases of parameters too, and says what data are where it is given others."""
    parameters = list(inspect.signature(init).parameters.values())
    wants_tasks = len(parameters) > 1 and getattr(parameters[1].annotation, "__name__", parameters[1].annotation) == "TaskData"

    @functools.wraps(init)
    def constructor(self: Problem, *values: Any, **named: Any) -> None:
        named = self.without_aliases(named)
        data = values[0] if values else named.get(parameters[1].name) if wants_tasks else None
        if wants_tasks and data is not None and not hasattr(data, "design"):
            how = "TaskData.shared(X, Y), .per_task(Xs, ys) and .from_frame make it"
            raise InputError(f"{parameters[1].name} must be a TaskData, which {how}, not an object of class {type(data).__name__}")
        for name, what in (("weights", "examples"), ("task_weights", "tasks")):
            if getattr(data, name, None) is not None and not self.takes_weights:
                raise InputError(f"problem '{self.name}' takes no weights of {what}")
        init(self, *values, **named)

    return constructor


class Problem(ABC):
    """min F(point) over a convex set, with a proven lower bound for every point.

    F = part handled by gradients or subgradients + part handled by `prox`. Immutable: its arrays are read-only.
    A point is one float64 array of shape `point_shape`.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = _as_callers_say(cls.__init__)  # type: ignore[method-assign]

    name: ClassVar[str]
    offers: ClassVar[frozenset[Capability]]
    """What instances of the class can offer; an instance that does not offer all of it has an attribute of its own."""
    forms: ClassVar[tuple[type[Form], ...]] = ()
    """Kinds of form that instances of the class can have; `make_forms` returns those of one instance."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of parameters, such as a paper's letters, each with the name that it represents."""
    takes_weights: ClassVar[bool] = False
    """Whether its loss counts examples, and tasks, by the weights of its data."""
    takes_prices: ClassVar[bool] = False
    """Whether its data are price relatives, so that a table of prices can be read for it."""
    notes: tuple[str, ...] = ()
    """What a reader of results should know about the data."""

    @classmethod
    def from_data(cls, data: TaskData, **parameters: Any) -> Self:
        """Return the problem on `data`. A suite can set the keyword-only parameters of the class, or of its own `from_data`."""
        return cls(data, **parameters)  # type: ignore[call-arg] # the constructor of the class itself

    @final
    @classmethod
    def without_aliases(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters by their names, where `aliases` may have been given.

        Raises InputError: a parameter is given by two names.
        """
        found: dict[str, Any] = {}
        for given, value in parameters.items():
            name = cls.aliases.get(given, given)
            if name in found:
                both = " and ".join(key for key in parameters if cls.aliases.get(key, key) == name)
                raise InputError(f"{both} are the same parameter of problem '{cls.name}': give one of them")
            found[name] = value
        return found

    @classmethod
    @abstractmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        """Tiny random instances, one of each form, for conformance tests and `bench-mtl validate`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} = {size}' for name, size in self.dimensions.items())}>"

    @property
    @abstractmethod
    def point_shape(self) -> tuple[int, ...]: ...

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the matrices that a point is made of, in their order: W; P and Q of a stack of two. Their patterns are stored."""
        return part_names(self.point_shape)

    @property
    def _blocks(self) -> Blocks | None:
        """Of its examples, where they are in shards."""
        blocks: Blocks | None = getattr(getattr(getattr(self, "design", None), "shards", None), "blocks", None)
        return blocks

    @property
    def is_in_shards(self) -> bool:
        """Whether its examples are in shards, of which no one matrix is made; solvers say with `takes_shards` that they need none."""
        return self._blocks is not None

    def traffic(self) -> Mapping[str, int]:
        """Return what its operators have sent between processes so far, by name, see `bench_mtl.core.dask_blocks.Workers`."""
        return {} if self._blocks is None else self._blocks.counts()

    def count_shards(self) -> int:
        """Return in how many shards its examples are; 0 where they are in one matrix."""
        return 0 if self._blocks is None else self._blocks.count

    def on_shards(self, chosen: Sequence[int]) -> Problem | None:
        """Return the problem on some of its shards, with weights that make them represent all; None where it cannot be had.

        It has the points and the operators of this one, and dual points that mean the same to both.
        """
        return None

    @property
    @abstractmethod
    def dual_shape(self) -> tuple[int, ...]:
        """Shape of a dual point."""

    @property
    def dual_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes in which a dual point may be given, the usual one first."""
        return (self.dual_shape,)

    @property
    @abstractmethod
    def dimensions(self) -> Mapping[str, int]:
        """Sizes to print: at least ``n`` (examples over all tasks), ``d`` (features), ``m`` (tasks)."""

    @abstractmethod
    def objective(self, point: Array) -> float:
        """F at a feasible point, from the data: of a `RigorousProblem` an upper bound on it in exact arithmetic."""

    @abstractmethod
    def repair(self, point: Array) -> Array:
        """The nearest feasible point."""

    @abstractmethod
    def infeasibility(self, point: Array) -> float:
        """Relative excess over the constraint (absolute where the bound is 0); 0 for a penalised problem."""

    @abstractmethod
    def dual_bound(self, point: Array, dual: Array | None) -> float:
        """A proven lower bound on the optimum, from any `dual` at all, or from the residuals at `point`.

        Of a `RigorousProblem` it holds in exact arithmetic on the data as stored.
        """

    def bounds(self, point: Array, duals: Sequence[Array]) -> tuple[float, list[float]]:
        """Return `objective` at a feasible point and `dual_bound` of some dual points, in one pass over the data where that can be had."""
        return self.objective(point), [self.dual_bound(point, dual) for dual in duals]

    def dual_at(self, point: Array) -> Array | None:
        """Return the dual point that `dual_bound` makes of the residuals at `point`, to be retained; None where there is none."""
        return None

    def enclose_objective(self, point: Array) -> Interval:
        """Return F at a feasible point between two bounds, `objective` the upper one; equal ones where rounding is not accounted for."""
        value = _number("objective", self.objective(point))
        return Interval(value, value)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        """Return what a dual point proves between two bounds, `dual_bound` the lower one; equal ones as for `enclose_objective`."""
        value = _number("lower bound", self.dual_bound(point, dual))
        return Interval(value, value)

    def measures(self, point: Array) -> Mapping[str, float]:
        """What a reader may want to know of a feasible point besides its objective, by name: non-zeros, errors on held-out examples.

        Finite numbers, the same names at every point. The driver asks at every certified sample, with the solver's clock stopped.
        """
        return {}

    @final
    def zero(self) -> Array:
        """The zero point, feasible wherever `start_point` is not overridden."""
        return np.zeros(self.point_shape)

    def start_point(self) -> Array:
        """Where solvers start by default: the zero point, or a feasible point of a set that is without it."""
        return self.zero()

    def scale(self) -> float:
        """What objectives of this problem are measured in where the optimum is almost 0, see `Tolerance.met_by`: |F| at the start point."""
        return abs(self.objective(self.start_point()))

    @final
    def certify(self, iterate: Iterate) -> Certificate:
        """The proven enclosure of the optimum that `iterate` gives: the only judge of any solver.

        Raises InputError: the point or the dual has NaN, inf or the wrong shape.
        """
        return self.certify_repaired(iterate)[0]

    @final
    def certify_repaired(self, iterate: Iterate) -> tuple[Certificate, Array]:
        """`certify`, and the feasible point that it is of: the iterate's, repaired."""
        point, dual_point = self.require_fitting(iterate)
        duals: list[Array | None] = [None] if dual_point is None else [None, dual_point]
        repaired = self.repair(point)
        with np.errstate(all="ignore"):  # what overflows proves nothing, and is no fault
            objective, proven = self._judged(repaired, duals)
        (lowest, primal), (dual, highest) = objective.ends, max(bound.ends for bound in proven)
        # In exact arithmetic what the dual proves is no more than F, so rounding cannot have taken away more than the gap.
        rounding = max(0.0, primal - max(lowest, dual)) + max(0.0, min(highest, primal) - dual)
        return Certificate(primal, dual, self.infeasibility(point), rounding if rounding < np.inf else np.inf), repaired

    @final
    def require_fitting(self, iterate: Iterate) -> tuple[Array, Array | None]:
        """Return the point and the dual point of an iterate as arrays of float64.

        Raises InputError: the point or the dual has NaN, inf or the wrong shape.
        """
        point = _checked("primal point", iterate.primal, self.point_shape)
        return point, None if iterate.dual is None else _checked("dual point", iterate.dual, *self.dual_shapes)

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        """Return F at a feasible point, and what each of the dual points proves, between bounds."""
        return self.enclose_objective(point), [self.enclose_dual(point, dual) for dual in duals]

    @final
    def warm_up(self) -> None:
        """Run the operators at a point far outside, so that no solver is charged for loading or compiling what they call."""
        point = np.full(self.point_shape, 1e3)
        self.certify(Iterate(point))
        if Capability.PROX in self.offers:
            self.prox(point, 1.0)
        if Capability.SMOOTHED in self.offers:
            self.smoothed(point, 1.0)

    def make_forms(self) -> tuple[Form, ...]:
        """Return the forms of this instance, each of one of the kinds in `forms`."""
        return ()

    @final
    def form(self, kind: type[F] | Kind[F]) -> F:
        """Return the form of this kind.

        Raises NotOfferedError: this instance has none.
        """
        for form in self.make_forms():
            if is_of(form, kind):
                return form
        raise NotOfferedError(self, kind)

    @final
    def has_form(self, kind: AnyKind) -> bool:
        """Return whether `form` has one of this kind."""
        return any(is_of(form, kind) for form in self.make_forms())

    # SMOOTH

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """The differentiable part and its gradient; one pass over the data."""
        raise NotOfferedError(self, Capability.SMOOTH)

    def smooth_value(self, point: Array) -> float:
        """The differentiable part alone; half a pass over the data."""
        raise NotOfferedError(self, Capability.SMOOTH)

    @property
    def gradient_is_lipschitz(self) -> bool:
        """Whether there is a `lipschitz`; where there is none, steps need a line search."""
        return Capability.SMOOTH in self.offers

    def lipschitz(self) -> float:
        """A Lipschitz constant of the gradient."""
        raise NotOfferedError(self, Capability.SMOOTH)

    # SUBGRADIENT

    def value_and_subgradient(self, point: Array) -> tuple[float, Array, Array]:
        """The part that `prox` leaves out, a subgradient of it, and the dual point that gives this subgradient."""
        raise NotOfferedError(self, Capability.SUBGRADIENT)

    def by_normal_equations(self) -> Problem:
        """Return this problem for a solver that takes many steps: one whose `value_and_gradient` and `smooth_value` are made of X^T X and
        X^T Y where that is cheaper, up to rounding; itself elsewhere. It is to steer by, and proves what this one does."""
        return self

    # PROX

    def prox(self, point: Array, step_size: float) -> Array:
        """argmin_z 1/2 ||z - point||^2 + step_size * (the rest of F); a projection where the rest is a constraint."""
        raise NotOfferedError(self, Capability.PROX)

    def prox_value(self, point: Array) -> float:
        """The rest of F at a feasible point: the penalty, or 0 for a constraint."""
        raise NotOfferedError(self, Capability.PROX)

    # SMOOTHED

    def smoothed(self, point: Array, smoothing: float) -> tuple[float, Array, Array]:
        """Nesterov's smoothing of what `value_and_subgradient` gives: its value, gradient, and the dual point that gives the gradient.

        The value is below the unsmoothed one, by at most a share of `smoothing` that the problem states. One pass over the data.
        """
        raise NotOfferedError(self, Capability.SMOOTHED)

    def smoothed_lipschitz(self, smoothing: float) -> float:
        """A Lipschitz constant of the gradient of `smoothed`."""
        raise NotOfferedError(self, Capability.SMOOTHED)

    # LMO

    def lmo(self, direction: Array) -> Array:
        """argmin_z <direction, z> over the feasible set: an extreme point of it. A form whose set is unbounded raises NotOfferedError."""
        raise NotOfferedError(self, Capability.LMO)

    # CONIC

    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {}
    """Forms that `to_cvxpy` writes, each with what it needs: subset of {"linear", "quadratic", "psd", "exponential", "power"}, cones, and
    "squares", which is a sum of squares in the objective alone: solvers of quadratic programmes take it, "quadratic" they do not."""
    chooses_unit: ClassVar[bool] = False
    """Whether `to_cvxpy` has a keyword `unit` as well, that of the coefficients, and by default chooses one that suits the data."""

    def to_cvxpy(self, form: str) -> ConicModel:
        """The problem in one of its `conic_forms`."""
        raise NotOfferedError(self, Capability.CONIC)


class RigorousProblem(Problem):
    """A problem whose bounds hold in exact arithmetic on the data as stored: `objective` from above, `dual_bound` from below."""

    @abstractmethod
    def enclose_objective(self, point: Array) -> Interval:
        """Return F at a feasible point between bounds that hold in exact arithmetic."""

    @abstractmethod
    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        """Return what a dual point, or the residuals at `point`, prove between bounds that hold in exact arithmetic."""

    def objective(self, point: Array) -> float:
        """Return an upper bound on F at a feasible point; inf where it overflows."""
        with np.errstate(all="ignore"):
            return self.enclose_objective(point).ends[1]

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        """Return a lower bound on the optimum, from any `dual` at all, or from the residuals at `point`; -inf where it overflows."""
        with np.errstate(all="ignore"):
            return self.enclose_dual(point, dual).ends[0]

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        # A class below may have an `objective` or a `dual_bound` of its own, which then is what counts.
        cls = type(self)
        value = Problem.enclose_objective if cls.objective is not RigorousProblem.objective else cls.enclose_objective
        bound = Problem.enclose_dual if cls.dual_bound is not RigorousProblem.dual_bound else cls.enclose_dual
        return value(self, point), [bound(self, point, dual) for dual in duals]


class PredictingProblem(RigorousProblem):
    """One whose objective and residuals come from the same predictions, linear in a point: a certificate makes them once."""

    enough: ClassVar[float] = np.inf
    """Where a dual point that is handed over proves more than this share of the objective, that of the residuals is left out."""

    @abstractmethod
    def predictions_with_error(self, point: Array) -> tuple[Array, Array]:
        """Return the predictions of a point, and how far they are from those of exact arithmetic at most."""

    @abstractmethod
    def enclose_objective_at(self, point: Array, predictions: Array, error: Array) -> Interval:
        """Return F at a feasible point whose predictions are known, between bounds that hold in exact arithmetic."""

    @abstractmethod
    def dual_of(self, predictions: Array) -> Array:
        """Return the dual point that these predictions give: minus the derivative of the loss, or what the problem makes of it."""

    def enclose_objective(self, point: Array) -> Interval:
        return self.enclose_objective_at(point, *self.predictions_with_error(point))

    def dual_at(self, point: Array) -> Array:
        return self.dual_of(self.predictions_with_error(point)[0])

    def _judged(self, point: Array, duals: Sequence[Array | None]) -> tuple[Interval, list[Interval]]:
        cls = type(self)
        if cls.objective is not RigorousProblem.objective or cls.dual_bound is not RigorousProblem.dual_bound:
            return super()._judged(point, duals)
        predictions, error = self.predictions_with_error(point)  # once for all
        objective = self.enclose_objective_at(point, predictions, error)
        handed = [(dual, self.enclose_dual(point, dual)) for dual in duals if dual is not None]
        bounds = [bound for _, bound in handed]
        if len(handed) == len(duals) or any(bound.ends[0] > self.enough * objective.ends[1] for bound in bounds):
            return objective, bounds
        residuals = self.dual_of(predictions)
        if any(_is_same(residuals, dual) for dual, _ in handed):
            return objective, bounds
        return objective, [self.enclose_dual(point, residuals), *bounds]


def _is_same(one: Array, other: Array) -> bool:
    """Return whether two dual points are the same but for rounding, as where a solver hands over that of its own residuals."""
    if one.shape != other.shape:
        return False
    return bool(np.abs(one - other).max(initial=0.0) <= _SAME * np.abs(other).max(initial=0.0))


def _number(name: str, value: float) -> float:
    """Return a value of which an infinite one proves nothing, while NaN is a fault of the problem."""
    if value != value:
        raise InputError(f"the problem is at fault: its {name} at a feasible point is not a number")
    return value


def _checked(name: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    try:
        if np.iscomplexobj(value):
            raise not_real(name, value, "not complex ones")
        require_unmasked(name, value)
        array = np.asarray(value, dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise not_real(name, value, error) from None
    require_shape(name, array, *shapes)
    require_finite(name, array)
    return array


class Solver(ABC):
    """An algorithm with its options, a frozen dataclass whose fields are the options a suite can set."""

    name: ClassVar[str]
    requires: ClassVar[frozenset[Capability]] = frozenset()
    """All of these the problem must offer."""
    takes: ClassVar[tuple[AnyKind, ...]] = ()
    """Kinds of form, one of which the problem must have; empty for a solver that needs operators only."""
    takes_intercept: ClassVar[bool] = False
    """Whether it takes such forms with a free intercept too."""
    takes_shards: ClassVar[bool] = False
    """Whether it needs of the data what a design in shards gives: products with X, norms, Gram matrices, some rows or columns."""
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Other names by which users may call the solver, in lower case, each with the options that it represents."""
    placement: ClassVar[frozenset[str]] = frozenset()
    """Options that say where it computes, and change no bit: a run may go on elsewhere."""

    @property
    def label(self) -> str:
        """How reports call this solver with these options."""
        return self.name

    @property
    def version(self) -> str:
        """Of the code that does the work."""
        from bench_mtl.core.version import __version__

        return __version__

    def warm_up(self) -> None:  # noqa: B027 - most solvers have nothing to warm
        """Import and compile what the first run would otherwise be charged for. The runner calls it off the clock."""

    @classmethod
    def variants(cls) -> list[Solver]:
        """The solvers that `bench-mtl validate` checks: the defaults, or one of each kind that the options select."""
        return [cls()]

    @final
    def settings(self) -> dict[str, Any]:
        """Its options by name, defaults included, but for those of `placement`; none of a solver that is no dataclass."""
        options: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        names = (option.name for option in options if option.init and option.repr)
        return {name: getattr(self, name) for name in names if name not in self.placement}

    def incompatibility(self, problem: Problem) -> str | None:
        """Why this solver cannot take `problem`, as a sentence; None when it can.

        Raises InputError: it could, but not with these options, as with more blocks than there are examples: a mistake, and no run to skip.
        """
        needs, found = [], []
        if missing := sorted(self.requires - problem.offers):
            needs.append(f"needs {', '.join(missing)}")
            found.append(f"offers {', '.join(sorted(problem.offers)) or 'none of the capabilities'}")
        forms = [form for form in problem.make_forms() if any(is_of(form, kind) for kind in self.takes)]
        if forms and not self.takes_intercept and all(form.has_intercept for form in forms):
            needs.append("takes no free intercept")
            found.append("has one")
        elif self.takes and not forms:
            needs.append(f"takes {' or '.join(map(name_of, self.takes))}")
            found.append(f"has {_form_names(problem)}")
        if problem.is_in_shards and not self.takes_shards:
            needs.append("needs all examples in one matrix")
            found.append("has them in shards")
        if needs:
            return f"{self.label} {' and '.join(needs)}; {problem.name} {' and '.join(found)}"
        return self.objection(problem)

    def objection(self, problem: Problem) -> str | None:
        """Why this solver cannot take a problem that has all that `requires` and `takes` ask for, as a sentence; None when it can."""
        return None


class IterativeSolver(Solver):
    """A solver that yields its iterates: no clock, no printing, no stopping test of its own unless it is an option."""

    @abstractmethod
    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        """Iterates from `start` (the problem's `start_point` by default), for as long as somebody asks.

        `start` must be feasible or is made so; it is not changed. A yielded array is not changed afterwards.
        """

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        """`steps` from the point of `start`; a solver that can use its dual point as well, or that makes states, overrides this.

        From an iterate with a state the solver goes on bit for bit as the run that it is of: the first iterate is `start` itself, and steps
        and work go on from there. It is not changed. Raises InputError: `start` has a state that this solver, with these options, has not
        made.
        """
        self.refuse_state(start)
        return self.steps(problem, start.primal)

    @final
    def refuse_state(self, start: Iterate) -> None:
        """Raise InputError where an iterate has a state: for a solver that makes none."""
        if start.state is not None:
            raise InputError(f"{self.label} makes no states, and cannot go on from one")

    def aimed_at(self, relative_gap: float) -> IterativeSolver:
        """This solver for a run that ends at this proven relative gap; itself, unless it would go about it in another way."""
        return self

    def limited_to(self, seconds: float | None) -> IterativeSolver:
        """This solver for a run of at most so many seconds; itself, unless it calls a library with a limit of its own for long."""
        return self

    def along_path(self) -> IterativeSolver:
        """This solver for runs in one thread, one after the other, on problems of the same data; itself, unless it keeps what it has made
        of the data."""
        return self

    def rehearsed(self) -> tuple[IterativeSolver, ...]:
        """The solvers to try on tiny instances before the clock runs, so that all is compiled that the run may call; itself, unless large
        instances need what tiny ones do not."""
        return (self,)


@dataclass(frozen=True)
class Answer:
    """What a one-shot solver returns for one tolerance."""

    iterate: Iterate | None
    """None when it has no point to show."""
    claims_optimal: bool
    """Its own word, to be checked."""
    message: str
    """Its own status in its own words."""
    out_of_time: bool = False
    setup_seconds: float = 0.0
    """The part of the solve that it reports as set-up."""
    info: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[], Iterate] | None = None
    """Makes `iterate` whole when the clock has stopped, such as by a dual point that the solver's library does not offer."""


class OneShotSolver(Solver):
    """A solver that is asked for a tolerance and answers once; run over `tolerances`, each timed from zero."""

    @property
    @abstractmethod
    def tolerances(self) -> tuple[float, ...]:
        """The ladder of tolerances, loose to tight."""

    @property
    def has_own_limit(self) -> bool:
        """Whether its library ends by itself at a limit of time, which may begin after its set-up: it is waited for half as long again.

        What it hands in then is in the row, with the seconds that it has taken, but reaches no target, and the run is a `timeout`.
        """
        return False

    def build(self, problem: Problem) -> Any:
        """Write the model down; timed as `build`."""
        return problem

    def compile(self, model: Any) -> Any:
        """Translate the model for the solver, once for all tolerances; timed as `compile`."""
        return model

    @abstractmethod
    def solve(self, program: Any, tolerance: float, seconds: float | None) -> Answer:
        """Solve the compiled program to `tolerance`, within `seconds` where the solver has such a limit."""
