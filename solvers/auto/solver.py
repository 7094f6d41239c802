"""One solver that picks between others by the problem, the target and what they have shown so far, and notes why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import ClassVar

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.forms import (
    RIDGE_HINGES,
    SPARSE_PLUS_LOW_RANK,
    CurvedForm,
    GroupForm,
    LinearForm,
    hinges_under,
    loss_under,
    under_rows_and_entries,
)
from bench_mtl.model.losses import Squared
from bench_mtl.model.norms import L1, L12, L1Inf
from bench_mtl.model.protocols import AnyKind, Capability, IterativeSolver, Problem
from bench_mtl.model.solver_state import MAKER, entries_of
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.accelerator import AcceleratorGradient, AcceleratorPDHG
from bench_mtl.solvers.accelerator.device import DEVICES
from bench_mtl.solvers.adaptive_sample_size import AdaptiveSampleSize
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.auto.races import fit_iterates, hinge_iterates
from bench_mtl.solvers.cone_interior_point import ConeInteriorPoint
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent
from bench_mtl.solvers.dual_newton import DualNewton
from bench_mtl.solvers.graph_admm import GraphADMM
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.multiboost import MultiboostGroup
from bench_mtl.solvers.partial_minimisation import PartialMinimisation
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient
from bench_mtl.solvers.relationships import SpectralGradient
from bench_mtl.solvers.simplex_newton import SimplexNewton
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.solvers.units import feature_units
from bench_mtl.solvers.working_set import WorkingSet

#: The step at which a method is looked at first, and how many times the passes that it has it must be predicted to need to be left.
_FIRST_LOOK, _FAR_MORE = 64, 3.0
#: Features an example from which a shared design counts as wide: there `partial_minimisation` is up to ten times faster than `admm`.
_WIDE = 8
#: What has a rule of its own.
_L1INF_HINGES = hinges_under(L1Inf)
#: The target of a run without one.
_DEFAULT_TARGET = 1e-6
#: Multiplications in a step up to which methods of second order are taken: a tenth of a second.
_NEWTON_PRODUCTS = 4e8
#: Steps of it in a run, fewer where passes find intercepts and are as dear, and what a step, and a pass of a first-order method, cost
#: beside their products, in multiplications.
_NEWTON_STEPS, _NEWTON_STEPS_WITH_INTERCEPTS, _NEWTON_STEP, _PASS, _PASS_WITH_INTERCEPTS = 30.0, 10.0, 1e7, 3e6, 1e7
#: The same where Newton's systems are solved task by task: a step takes less, and nothing else proves a gap on features of unlike size.
_NEWTON_PRODUCTS_BY_TASKS = 2e9
_NORMS_OF_ROWS = (L1, L12, L1Inf)
#: What a multiplication of a step costs, in those of a pass: task by task they are fast, and of the rows that are not 0 alone.
_PRODUCT, _PRODUCT_BY_TASKS = 2.0, 0.1
#: Steps of it that passes of the other method may cost before, and passes at least.
_STEPS_BEFORE, _LEAST_PASSES = 3.0, 100.0
#: How many times as many passes working sets have, which are of second order themselves.
_PATIENCE_WITH_SETS = 5.0
#: Multiplications of these passes at most, and passes at least even so.
_PRODUCTS_BEFORE, _FEWEST_PASSES = 1e8, 30.0


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """Whichever of our solvers is predicted to be quickest to the target.

    - Hinges under an l1,inf norm: `PDHG` on trial for targets of 2e-3 and above, `WorkingSet`.
    - Smooth losses under an l1,inf norm, alone or with entries under an l1 norm: `WorkingSet`, and `AcceleratedGradient` on trial where its
      sets become large.
    - Smooth losses under an l1 norm: `L1WorkingSet`.
    - Hinges under an l1,2 norm: `ConeInteriorPoint` on some hundreds of features, `GraphADMM`, or `SmoothedGradient` where X^T X is
      too large for it.
    - Smooth losses under another norm, such as l1,2: `AcceleratedGradient`.
    - Squares of a sparse plus a low-rank matrix: `ADMM`; with many more features than examples that all tasks share `PartialMinimisation`.
    - Boosting under norms of rows `MultiboostGroup`, or `ADMM` where that does not take the loss; relationships of tasks
      `SpectralGradient`, a curved loss on a simplex `SimplexNewton`, hinges with a ridge `DualCoordinateAscent`, in balls of tasks `PDHG`.

    Where none of these takes a problem, `AcceleratedGradient` does, or `SmoothedGradient`, or `ProjectedSubgradient`. Smooth losses with
    some hundreds of coefficients are for `DualNewton`, to which features of unlike size and weak penalties are no matter: at once where
    the features are so, and else where the method that comes first has not ended after passes of the price of three of its steps.
    Examples in shards are for `AdaptiveSampleSize`, but for the squares of a sparse plus a low-rank matrix: it needs no columns in memory.
    A solver has no clock: prices are operations, weighted by what they take in general.

    Parameters
    ----------
    target : relative gap; None takes that of the run, or 1e-6 where a run has none
    memory_gib : memory limit of the factors of the working sets in GiB
    device : "gpu", or "cpu" for JAX's processor back end: there `AcceleratorPDHG` or `AcceleratorGradient`, and nothing else; None takes
        no device

    Notes
    -----
    Steps and work are those of all methods added up. The note of the iterates says which method was picked, when, and why.
    """

    target: float | None = None
    memory_gib: float = 4.0
    device: str | None = None
    l1_solver: IterativeSolver = field(default_factory=L1WorkingSet, repr=False, compare=False)

    name: ClassVar[str] = "auto"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.PROX})
    takes_intercept: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.target is not None:
            real_number("target", self.target, strict=True)
        real_number("memory_gib", self.memory_gib, strict=True)
        if self.device is not None:
            one_of("device", self.device, DEVICES)

    @property
    def label(self) -> str:
        return self.name if self.device is None else f"{self.name} device={self.device}"

    def objection(self, problem: Problem) -> str | None:
        if problem.has_form(_L1INF_HINGES) and not problem.is_in_shards and self.device is None:  # of two one always fits
            return None
        reason = self._one(problem).incompatibility(problem)
        return None if reason is None else f"{self.label} knows no solver for {problem.name}: {reason}"

    def aimed_at(self, relative_gap: float) -> Auto:
        return self if self.target is not None else replace(self, target=relative_gap)

    def along_path(self) -> Auto:
        """Return a solver that takes l1 norms by `L1WorkingSet.along_path`."""
        return replace(self, l1_solver=L1WorkingSet().along_path())

    def warm_up(self) -> None:
        for solver in self.rehearsed()[1:] or self._on_device():
            solver.warm_up()

    def rehearsed(self) -> tuple[IterativeSolver, ...]:
        if self.device is not None:
            return ()
        return (self, *(kind() for kind in dict.fromkeys(sum(_BY_FORM.values(), _OTHERS))))

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        target, sets = self.target or _DEFAULT_TARGET, WorkingSet(memory_gib=self.memory_gib)
        if self.device is not None:
            return self._iterates(problem, start, target, self._one(problem))
        if problem.has_form(_L1INF_HINGES) and not problem.is_in_shards:
            return hinge_iterates(problem, start, target, sets)
        one = self._one(problem)
        passes = _passes_before_newton(problem, one)
        if passes < math.inf:
            newton = DualNewton().aimed_at(target)
            if not passes or _is_made_by(newton, start):
                return (iterate._replace(note=newton.label) for iterate in newton.resume(problem, start))
            return _then(
                newton,
                self._iterates(problem, start, target, one),
                problem,
                start,
                passes,
                target if isinstance(one, AcceleratedGradient) else math.inf,
            )
        return self._iterates(problem, start, target, one)

    def _iterates(self, problem: Problem, start: Iterate, target: float, one: IterativeSolver) -> Iterator[Iterate]:
        if isinstance(one, WorkingSet) and not problem.is_in_shards:
            return fit_iterates(problem, start, target, one)
        one = one.aimed_at(target)
        # A generator would hold every iterate until the next, so that its state would be copied.
        return map(partial(_noted, note=one.label), one.resume(problem, start))

    def _one(self, problem: Problem) -> IterativeSolver:
        """Return the solver that a problem without hinges is for, or begins with, or that of the device."""
        candidates: list[IterativeSolver] = []
        if self.device is not None:
            return next((one for one in self._on_device() if any(map(problem.has_form, one.takes))), self._on_device()[0])
        if problem.is_in_shards and not problem.has_form(SPARSE_PLUS_LOW_RANK):
            candidates = [AdaptiveSampleSize(), SmoothedGradient()]  # columns of a working set may not fit into memory
            if problem.has_form(_L1INF_HINGES) and _products(problem) <= _NEWTON_PRODUCTS:
                candidates.insert(0, WorkingSet(memory_gib=self.memory_gib))
        elif problem.has_form(loss_under("smooth", L1Inf)) or problem.has_form(under_rows_and_entries("smooth")):
            candidates = [WorkingSet(memory_gib=self.memory_gib)]
        elif problem.has_form(loss_under("smooth", L1)):
            candidates = [self.l1_solver]
        elif problem.has_form(SPARSE_PLUS_LOW_RANK):
            design = problem.form(LinearForm).design
            candidates = [*([PartialMinimisation()] if design.is_shared and design.n_features > _WIDE * design.sizes[0] else []), ADMM()]
        elif problem.has_form(hinges_under(L12)):
            design = problem.form(LinearForm).design
            is_small = _products(problem) <= _NEWTON_PRODUCTS or (
                _products(problem, 1) <= _NEWTON_PRODUCTS_BY_TASKS and feature_units(design) is not None
            )
            candidates = [*([ConeInteriorPoint()] if is_small else []), GraphADMM(), SmoothedGradient()]
        else:
            candidates = [kind() for form, kinds in _BY_FORM.items() if problem.has_form(form) for kind in kinds]
        fitting = next((solver for solver in candidates if solver.incompatibility(problem) is None), None)
        return _by_operators(problem) if fitting is None else fitting  # which looks at the features

    def _on_device(self) -> tuple[IterativeSolver, ...]:
        assert self.device is not None
        return AcceleratorPDHG(device=self.device), AcceleratorGradient(device=self.device)


#: The solvers of forms that need no choice: the first that takes a problem.
_BY_FORM: dict[AnyKind, tuple[type[IterativeSolver], ...]] = {
    GroupForm: (MultiboostGroup, ADMM), loss_under("squared", SquaredNorms): (SpectralGradient,), CurvedForm: (SimplexNewton,),
    RIDGE_HINGES: (DualCoordinateAscent,), hinges_under(TaskBalls): (PDHG,),
}  # fmt: skip
#: What else it may pick.
_OTHERS: tuple[type[IterativeSolver], ...] = (
    PDHG, WorkingSet, L1WorkingSet, ADMM, PartialMinimisation, AcceleratedGradient, SmoothedGradient,
)  # fmt: skip


def _by_operators(problem: Problem) -> IterativeSolver:
    """Return the first method that the operators of a problem are enough for."""
    step_rule = "lipschitz" if problem.gradient_is_lipschitz else "line_search"
    plain = AcceleratedGradient(restart="gradient", step_rule=step_rule)
    scaled = replace(plain, features="scaled")
    methods = (plain, SmoothedGradient(), ProjectedSubgradient())
    if scaled.incompatibility(problem) is None and feature_units(problem.design) is not None:  # type: ignore[attr-defined]
        return scaled
    return next((method for method in methods if method.incompatibility(problem) is None), plain)


def _passes_before_newton(problem: Problem, one: IterativeSolver) -> float:
    """Return after how many passes `dual_newton` takes over from `one`; inf where it does not take the problem, or is slow."""
    if not isinstance(problem, FitProblem) or problem.is_in_shards or DualNewton().incompatibility(problem) is not None:
        return math.inf
    # Working sets are of second order themselves, and cheaper on larger data; those of rows hardly prove a gap on unlike features.
    is_set, terms = isinstance(one, (WorkingSet, L1WorkingSet)), problem.regulariser.terms
    is_by_tasks = not problem.fit.loss.couples_tasks and all(issubclass(term, _NORMS_OF_ROWS) for term in terms)
    is_by_tasks &= not isinstance(one, L1WorkingSet)
    products = _products(problem, len(terms) if is_by_tasks else 0)
    if products > (_NEWTON_PRODUCTS_BY_TASKS if is_by_tasks else _NEWTON_PRODUCTS):
        return math.inf
    if feature_units(problem.design) is not None:  # which reads all data
        return 0.0
    if is_set and is_by_tasks:
        is_by_tasks, products = False, _products(problem)
        if products > _NEWTON_PRODUCTS:
            return math.inf
    design, is_first_order = problem.design, isinstance(one, AcceleratedGradient)
    d, m, of_pass = design.n_features, design.n_tasks, 2.0 * design.n_stored * (design.n_tasks if design.is_shared else 1)
    finds_intercepts = problem.fit.intercept and not isinstance(problem.fit.loss, Squared)  # anew in every pass
    a_pass = (_PASS_WITH_INTERCEPTS if finds_intercepts else _PASS) + of_pass
    newton_steps = _NEWTON_STEPS_WITH_INTERCEPTS if finds_intercepts else _NEWTON_STEPS
    a_step = _NEWTON_STEP + (_PRODUCT_BY_TASKS if is_by_tasks else _PRODUCT) * products
    race = newton_steps * max(1.0, a_step / a_pass)  # each has what the other is expected to cost
    if is_first_order:
        return race
    # For n = d: in small data copies of examples change nothing.
    price = max(_LEAST_PASSES, _STEPS_BEFORE * d * (0.5 + m * m / 6.0))
    price = min(price, max(_FEWEST_PASSES, _PRODUCTS_BEFORE / max(1.0, of_pass)))
    return min(price, race) * _PATIENCE_WITH_SETS if is_set else price


def _products(problem: Problem, by_tasks: int = 0) -> float:
    """Return the multiplications of X^T D X of every task and of a dense system in all coefficients; or in those of one task at a time, of
    so many matrices."""
    design: Design = problem.design  # type: ignore[attr-defined]
    d, m = design.n_features, design.n_tasks
    return float(max(design.sizes) * d**2 * m + (4.0 * m * (by_tasks * d) ** 3 if by_tasks else math.prod(problem.point_shape) ** 3) / 3.0)


def _is_made_by(solver: IterativeSolver, start: Iterate) -> bool:
    """Whether an iterate has a state that this solver has made."""
    entries = entries_of(start)
    return entries is not None and str(entries.get(MAKER)).startswith(f"{solver.name}(")


def _noted(iterate: Iterate, note: str) -> Iterate:
    return iterate._replace(note=iterate.note or note)


def _then(
    solver: IterativeSolver, iterates: Iterator[Iterate], problem: Problem, start: Iterate, passes: float, target: float
) -> Iterator[Iterate]:
    """Iterate as another method does for so many passes, or until it is predicted to need many more to a gap of `target`, and then by a
    solver from where that has come to."""
    last = start
    for last in iterates:
        if last.step > start.step and (last.work > passes or _is_hopeless(problem, last, passes, target)):
            break
        yield last
    for iterate in islice(solver.resume(problem, Iterate(last.primal, last.dual, last.step, last.work)), 1, None):
        yield iterate._replace(note=solver.label)


def _is_hopeless(problem: Problem, iterate: Iterate, passes: float, target: float) -> bool:
    """Return whether a method would need far more than so many passes, if its gap falls with the third power of its steps.

    It is asked at steps 64, 128, ..., and sees one iterate alone, so that a run that was resumed goes the same way.
    """
    step = iterate.step
    if target == math.inf or step < _FIRST_LOOK or step & (step - 1):
        return False
    upper, lower = problem.objective(iterate.primal), problem.dual_bound(iterate.primal, iterate.dual)
    gap = (upper - lower) / upper if upper > 0.0 else 0.0
    return step * (gap / target) ** (1.0 / 3.0) > _FAR_MORE * passes
