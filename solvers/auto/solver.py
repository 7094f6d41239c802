"""One solver that picks another by the problem, or has some of them race."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from bench_mtl.core.checks import one_of, real_number, unless_none
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
from bench_mtl.model.losses import Huber
from bench_mtl.model.norms import L1, L12, L1Inf
from bench_mtl.model.protocols import AnyKind, Capability, IterativeSolver, Problem
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.model.task_balls import TaskBalls
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.accelerator import AcceleratorGradient, AcceleratorInteriorPoint, AcceleratorPDHG
from bench_mtl.solvers.accelerator.device import DEVICES
from bench_mtl.solvers.adaptive_sample_size import AdaptiveSampleSize
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.auto.prices import Prices, Systems
from bench_mtl.solvers.auto.race import Candidate, Race, by_power, by_steps, digits
from bench_mtl.solvers.cone_interior_point import ConeInteriorPoint
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent
from bench_mtl.solvers.dual_newton import DualNewton
from bench_mtl.solvers.dual_newton.shards import is_cheap
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

#: Features an example from which a shared design counts as wide: there `partial_minimisation` is up to ten times faster than `admm`.
_WIDE = 8
#: Hinges that working sets of rows take.
_L1INF_HINGES = hinges_under(L1Inf)
#: The target of a run without one; and below which a device makes steps of second order.
_DEFAULT_TARGET, _SMALL_ON_DEVICE = 1e-6, 1e-4
#: Multiplications in a step up to which methods of second order are taken: a tenth of a second; and where systems are solved task by task.
_NEWTON_PRODUCTS, _NEWTON_PRODUCTS_BY_TASKS = 4e8, 2e9
#: Norms of which they are.
_NORMS_OF_ROWS = (L1, L12, L1Inf)
#: Steps that methods need at least: interior points to a gap of 1, and one more for every digit; Newton's on the dual in all, and of huber
#: losses, which entries are at their ends is found step by step; accelerated gradients for every digit; and pdhg, the passes that prepare
#: it, and steps to a gap of 1, which then falls as their power.
_INTERIOR_STEPS, _NEWTON_STEPS, _HUBER_STEPS, _GRADIENT_STEPS = 3.0, 10.0, 40.0, 60.0
_PDHG_BEFORE, _PDHG_STEPS, _PDHG_POWER = 35.0, 10.0, 3.0
#: How many times as long working sets have before Newton's method on the dual joins.
_PATIENCE_WITH_SETS = 10.0
#: What an operation of a factorisation of working sets of rows costs: of squares all tasks have one X^T X.
_HINGE_OPERATION, _FIT_OPERATION = 0.04, 0.02
#: What a step of `l1_working_set` costs beside its passes.
_L1_STEP = 5e5


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """The solver of ours that the loss, the norm and the sizes of a problem are for, or some that race.

    - Hinges under an l1,inf norm: `WorkingSet` races `PDHG`; with intercepts, or in shards, `SmoothedGradient` goes on where it ends.
    - Smooth losses under an l1,inf norm, alone or with entries under an l1 norm: `WorkingSet` races `AcceleratedGradient`, and, where it
      ends early, as on data that a logistic loss can separate, `DualNewton`; under an l1 norm `L1WorkingSet`; under another norm
      `AcceleratedGradient`.
    - Hinges under an l1,2 norm: `GraphADMM`, which `ConeInteriorPoint` races on some hundreds of features, or `SmoothedGradient` where
      X^T X is too large for it.
    - Squares of a sparse plus a low-rank matrix: `ADMM`; with many more features than examples that all tasks share `PartialMinimisation`.
    - Boosting under norms of rows `MultiboostGroup`, under an l1 norm `ADMM`; relationships of tasks `SpectralGradient`, a curved loss on a
      simplex `SimplexNewton`, hinges with a ridge `DualCoordinateAscent`, in balls of tasks `PDHG`.

    Where none of these takes a problem, `AcceleratedGradient` does, or `SmoothedGradient`, or `ProjectedSubgradient`. Smooth losses with
    some hundreds of coefficients have one of these race `DualNewton`, but under l1,inf norms. Features of unlike size and weak penalties
    are no matter to it, nor to `ConeInteriorPoint`: where the features are so, these run alone, under l1,inf norms too.
    Examples in shards are for `AdaptiveSampleSize`, which needs no columns in memory, but for the squares of a sparse plus a low-rank
    matrix and for hinges under an l1,inf norm where examples x features^2 x tasks is small; of tasks with shards of their own they are for
    `DualNewton` where its Gram matrices are small.

    In a race the turn is that of the solver that can be first, by what it has spent and the least that it still needs: so a race of two
    costs at most twice as much as the better of both alone, and a step. Costs are operations, weighted by what they take in general.

    Parameters
    ----------
    target : relative gap; None takes that of the run, or 1e-6 where a run has none
    memory_gib : memory limit of the factors of interior points in GiB
    device : "gpu", or "cpu" for JAX's processor back end: there an accelerator's solver, and nothing else; None takes no device

    Notes
    -----
    Steps and work of a race are those of all added up. The note of the iterates says who had the turn.
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
        unless_none(real_number, "target", self.target, strict=True)
        real_number("memory_gib", self.memory_gib, strict=True)
        unless_none(one_of, "device", self.device, DEVICES)

    @property
    def label(self) -> str:
        return self.name if self.device is None else f"{self.name} device={self.device}"

    def objection(self, problem: Problem) -> str | None:
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
        target = self.target or _DEFAULT_TARGET
        first, *rivals = self.candidates(problem, target)
        if rivals:
            return Race(self, (first, *rivals), problem, start, target).iterates()
        # A generator would hold every iterate until the next, so that its state would be copied.
        return map(partial(_noted, note=first.solver.label), first.solver.resume(problem, start))

    def candidates(self, problem: Problem, target: float) -> tuple[Candidate, ...]:
        """Return who runs to a relative gap: one solver, or some that race."""
        one = self._one(problem)
        if problem.is_in_shards or self.device is not None:
            return Candidate(one.aimed_at(target), bound=by_steps), *(_AFTER_SETS if isinstance(one, WorkingSet) else ())
        is_set = isinstance(one, L1WorkingSet)  # quicker on many coefficients, on unlike features too
        newton = None if is_set and _products(problem) > _NEWTON_PRODUCTS else _newton(problem, target)
        if newton is not None and feature_units(problem.design) is not None:  # type: ignore[attr-defined] # which reads all data
            return (newton,)
        if isinstance(one, WorkingSet):
            late = () if newton is None else (replace(newton, least=_PATIENCE_WITH_SETS * newton.least),)
            return (*_beside_sets(problem, one, target), *late)
        if isinstance(one, GraphADMM):
            return _beside_admm(problem, one, ConeInteriorPoint(memory_gib=self.memory_gib), target)
        if newton is None:
            return (Candidate(one.aimed_at(target)),)
        is_second_order = is_set and not problem.fit.loss.couples_tasks  # type: ignore[attr-defined] # of classes its steps are of first
        prices = Prices(problem.design, step=_L1_STEP, coefficient=0.0) if is_second_order else Prices(problem.design)  # type: ignore[attr-defined]
        return Candidate(one.aimed_at(target), prices.of_passes, 0.0, by_steps if is_second_order else by_power, prices.a_test), newton

    def _one(self, problem: Problem) -> IterativeSolver:
        """Return the solver that a problem is for by its loss, norm and sizes, on any data, or that of the device."""
        if self.device is not None:
            ours = [one for one in self._on_device() if any(map(problem.has_form, one.takes))] or self._on_device()
            return next((one for one in ours if one.incompatibility(problem) is None), ours[-1])
        candidates: list[IterativeSolver] = []
        if problem.is_in_shards and not problem.has_form(SPARSE_PLUS_LOW_RANK):
            # Columns of a working set may not fit into memory; Gram matrices of few features do.
            newton = [DualNewton()] if isinstance(problem, FitProblem) and is_cheap(problem) else []
            candidates = [AdaptiveSampleSize(), *newton, SmoothedGradient()]
            if problem.has_form(_L1INF_HINGES) and _products(problem) <= _NEWTON_PRODUCTS:
                candidates.insert(0, WorkingSet(memory_gib=self.memory_gib))
        elif any(map(problem.has_form, _FOR_SETS)):
            candidates = [WorkingSet(memory_gib=self.memory_gib)]
        elif problem.has_form(loss_under("smooth", L1)):
            candidates = [self.l1_solver]
        elif problem.has_form(SPARSE_PLUS_LOW_RANK):
            design = problem.form(LinearForm).design
            candidates = [*([PartialMinimisation()] if design.is_shared and design.n_features > _WIDE * design.sizes[0] else []), ADMM()]
        elif problem.has_form(hinges_under(L12)):
            candidates = [GraphADMM(), SmoothedGradient()]
        else:
            candidates = [kind() for form, kinds in _BY_FORM.items() if problem.has_form(form) for kind in kinds]
        fitting = next((solver for solver in candidates if solver.incompatibility(problem) is None), None)
        return _by_operators(problem) if fitting is None else fitting  # which reads the features

    def _on_device(self) -> tuple[IterativeSolver, ...]:
        """Return the solvers of the device: interior points, to small gaps, come before the steps of first order."""
        assert self.device is not None
        first_order = AcceleratorGradient(device=self.device), AcceleratorPDHG(device=self.device)
        is_small = (self.target or _DEFAULT_TARGET) < _SMALL_ON_DEVICE
        return (AcceleratorInteriorPoint(device=self.device), *first_order) if is_small else first_order


#: What working sets of rows are for.
_FOR_SETS: tuple[AnyKind, ...] = (loss_under("smooth", L1Inf), under_rows_and_entries("smooth"), _L1INF_HINGES)
#: The solvers of forms that need no choice: the first that takes a problem.
_BY_FORM: dict[AnyKind, tuple[type[IterativeSolver], ...]] = {
    GroupForm: (MultiboostGroup, ADMM), loss_under("squared", SquaredNorms): (SpectralGradient,),
    CurvedForm: (SimplexNewton,), RIDGE_HINGES: (DualCoordinateAscent,), hinges_under(TaskBalls): (PDHG,),
}  # fmt: skip
#: Who goes on where working sets of hinges end; nothing hangs on its gap, so that is not tested.
_AFTER_SETS = (Candidate(SmoothedGradient(), test=math.inf),)
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


def _beside_sets(problem: Problem, sets: WorkingSet, target: float) -> tuple[Candidate, ...]:
    """Return working sets of rows, and the method of first order that races them."""
    has_kinks = problem.has_form(_L1INF_HINGES)
    prices = Prices(problem.design, operation=_HINGE_OPERATION if has_kinks else _FIT_OPERATION)  # type: ignore[attr-defined]
    an_iteration = prices.an_iteration(max(sets.first, prices.expected_rows))
    first = Candidate(sets, prices.of_sets, (_INTERIOR_STEPS + digits(target)) * an_iteration, by_steps)
    if not has_kinks:
        gradient = AcceleratedGradient(restart="gradient")
        return first, Candidate(gradient, prices.of_passes, _GRADIENT_STEPS * digits(target) * prices.a_step, by_power, prices.a_test)
    if problem.form(LinearForm).has_intercept:
        return first, *_AFTER_SETS
    prices = replace(prices, coefficient=0.0)  # most rows are left out
    least = _PDHG_BEFORE + _PDHG_STEPS * target ** (-1.0 / _PDHG_POWER)
    return first, Candidate(PDHG(), prices.of_passes, least * prices.a_step, by_power, prices.a_test)


def _beside_admm(problem: Problem, one: GraphADMM, cones: ConeInteriorPoint, target: float) -> tuple[Candidate, ...]:
    """Return `graph_admm`, and the interior points on cones that race it where their steps are not too slow."""
    if _products(problem, 1) > _NEWTON_PRODUCTS_BY_TASKS or cones.incompatibility(problem) is not None:
        return (Candidate(one.aimed_at(target)),)
    prices = Prices(problem.design, systems=Systems.BY_TASKS)  # type: ignore[attr-defined]
    second = Candidate(cones, prices.of_all, (_INTERIOR_STEPS + digits(target)) * prices.a_dense_step, by_steps)
    if feature_units(problem.design) is not None:  # type: ignore[attr-defined]
        return (second,)
    return Candidate(one, prices.of_passes, 0.0, by_power, prices.a_test), second


def _newton(problem: Problem, target: float) -> Candidate | None:
    """Return `dual_newton` as a candidate; None where it does not take the problem, or a step of it is slow."""
    if not isinstance(problem, FitProblem) or DualNewton().incompatibility(problem) is not None:
        return None
    terms = problem.regulariser.terms
    of_rows = all(issubclass(term, _NORMS_OF_ROWS) for term in terms)
    is_by_tasks = of_rows and not problem.fit.loss.couples_tasks
    if _products(problem, len(terms) if is_by_tasks else 0) > (_NEWTON_PRODUCTS_BY_TASKS if is_by_tasks else _NEWTON_PRODUCTS):
        return None
    systems = Systems.BY_TASKS if is_by_tasks else Systems.DENSE if of_rows else Systems.SPECTRAL
    prices, least = Prices(problem.design, systems=systems), _HUBER_STEPS if isinstance(problem.fit.loss, Huber) else _NEWTON_STEPS
    return Candidate(DualNewton().aimed_at(target), prices.of_newton, least * prices.a_newton_step, by_steps)


def _products(problem: Problem, by_tasks: int = 0) -> float:
    """Return the multiplications of X^T D X of every task and of a dense system in all coefficients; or in those of one task at a time, of
    so many matrices."""
    design = problem.design  # type: ignore[attr-defined]
    d, m = design.n_features, design.n_tasks
    return float(max(design.sizes) * d**2 * m + (4.0 * m * (by_tasks * d) ** 3 if by_tasks else math.prod(problem.point_shape) ** 3) / 3.0)


def _noted(iterate: Iterate, note: str) -> Iterate:
    if iterate.note.split("; ")[0] == note:  # of an earlier run
        return iterate
    return iterate._replace(note=f"{note}; {iterate.note}" if iterate.note else note)
