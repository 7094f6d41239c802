"""One solver that picks between others by the problem, the target and what they have shown so far, and notes why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import HingeForm, L1Form, L1InfForm, NormForm, NormHingeForm, SplitForm
from bench_mtl.model.protocols import Form, IterativeSolver, Problem
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.adaptive_sample_size import AdaptiveSampleSize
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.auto.fits import fit_iterates
from bench_mtl.solvers.auto.hinges import hinge_iterates
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.partial_minimisation import PartialMinimisation
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient
from bench_mtl.solvers.working_set import WorkingSet

#: Features an example from which a shared design counts as wide: there `partial_minimisation` is up to ten times faster than `admm`.
_WIDE = 8
#: The target of a run without one.
_DEFAULT_TARGET = 1e-6


@dataclass(frozen=True)
class Auto(IterativeSolver):
    """Whichever of our solvers is predicted to be quickest to the target.

    - Hinges under an l1,inf norm: `PDHG` on trial for targets of 2e-3 and above, `WorkingSet`.
    - Smooth losses under an l1,inf norm: `WorkingSet`, and `AcceleratedGradient` on trial where its sets become large.
    - Smooth losses under an l1 norm: `L1WorkingSet`.
    - Under another norm of which only operators are known, such as l1,2: hinges `SmoothedGradient`, smooth losses `AcceleratedGradient`.
    - Squares of a sparse plus a low-rank matrix: `ADMM`; with many more features than examples that all tasks share `PartialMinimisation`.

    Where none of these takes a problem, `AcceleratedGradient` does. Examples in shards are for `AdaptiveSampleSize`, but for
    those squares: it needs no columns in memory. A solver has no clock: prices are operations, weighted by what they take in general.

    Parameters
    ----------
    target : relative gap; None takes that of the run, or 1e-6 where a run has none
    memory_gib : memory limit of the factors of the working sets in GiB

    Notes
    -----
    Steps and work are those of all methods added up. The note of the iterates says which method was picked, when, and why.
    """

    target: float | None = None
    memory_gib: float = 4.0

    name: ClassVar[str] = "auto"
    takes: ClassVar[tuple[type[Form], ...]] = (HingeForm, L1InfForm, L1Form, SplitForm, NormForm, NormHingeForm)
    takes_intercept: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.target is not None:
            real_number("target", self.target, strict=True)
        real_number("memory_gib", self.memory_gib, strict=True)

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        has_two = problem.has_form(HingeForm) and not problem.is_in_shards  # of which one always fits
        return reason if reason is not None or has_two else self._one(problem).incompatibility(problem)

    def aimed_at(self, relative_gap: float) -> Auto:
        return self if self.target is not None else replace(self, target=relative_gap)

    def along_path(self) -> Auto:
        """Return a solver that takes l1 norms by `L1WorkingSet.along_path`."""
        return _AlongPath(self.target, self.memory_gib)

    def warm_up(self) -> None:
        for solver in (PDHG(), WorkingSet(), L1WorkingSet(), ADMM(), PartialMinimisation(), AcceleratedGradient(), SmoothedGradient()):
            solver.warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        target, sets = self.target or _DEFAULT_TARGET, WorkingSet(memory_gib=self.memory_gib)
        if problem.has_form(HingeForm) and not problem.is_in_shards:
            return hinge_iterates(problem, start, target, sets)
        one = self._one(problem)
        if isinstance(one, WorkingSet):
            return fit_iterates(problem, start, target, one)
        one = one.aimed_at(target)
        return (iterate._replace(note=iterate.note or one.label) for iterate in one.resume(problem, start))

    def _one(self, problem: Problem) -> IterativeSolver:
        """Return the solver that a problem without hinges is for, or begins with."""
        candidates: list[IterativeSolver] = []
        if problem.is_in_shards and not problem.has_form(SplitForm):
            candidates = [AdaptiveSampleSize(), SmoothedGradient()]  # columns of a working set may not fit into memory
        elif problem.has_form(L1InfForm):
            candidates = [WorkingSet(memory_gib=self.memory_gib)]
        elif problem.has_form(L1Form):
            candidates = [self._l1_solver()]
        elif problem.has_form(SplitForm):
            candidates = _for_split(problem.form(SplitForm).design)
        elif problem.has_form(NormHingeForm):
            candidates = [SmoothedGradient()]
        fitting = (solver for solver in candidates if solver.incompatibility(problem) is None)
        return next(fitting, AcceleratedGradient(restart="gradient"))

    def _l1_solver(self) -> IterativeSolver:
        return L1WorkingSet()


@dataclass(frozen=True)
class _AlongPath(Auto):
    """The same with what `L1WorkingSet` keeps from run to run."""

    l1_solver: IterativeSolver = field(default_factory=lambda: L1WorkingSet().along_path(), repr=False, compare=False)

    def along_path(self) -> Auto:
        return Auto(self.target, self.memory_gib).along_path()

    def _l1_solver(self) -> IterativeSolver:
        return self.l1_solver if self.target is None else self.l1_solver.aimed_at(self.target)


def _for_split(design: Design) -> list[IterativeSolver]:
    """Return the solvers for a sparse plus a low-rank matrix, the best first."""
    if design.is_shared and design.n_features > _WIDE * design.sizes[0]:
        return [PartialMinimisation(), ADMM()]
    return [ADMM()]
