"""Working sets of rows for losses under an l1,inf norm, with or without entries, and for hinges in l1 balls, by interior points."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import real_number, unless_none, whole_number
from bench_mtl.core.types import Iterate
from bench_mtl.model.forms import Hinges, LinearForm, hinges_under
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.model.task_balls import L1TaskBalls
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.working_set.run import Run


@dataclass(frozen=True)
class WorkingSet(SteppingSolver):
    """`InteriorPoint` on the rows of W that can be non-zero, a set that changes while it runs.

    At the optimum few rows of W are non-zero, and the dual norms n_j = sum_k |G_jk| of these attain the level: theta, the dual of the
    radius, or the penalty. After every step G is computed for all rows, one product with the data. Rows whose n_j is within a share of
    the level join, a share that falls with the root of the gap, and those far below it with small bounds leave. A row that joins begins on
    the central path: its part of the Newton system is decoupled, and has a solution in closed form but for one number. So the iterates
    are almost those of the method on all rows, at the cost of a few, and the number of iterations hardly grows.

    Proofs are of the whole problem: the dual point is feasible for it as it is (a radius), or scaled (a penalty).

    Where entries under an l1 penalty are added, the n_j of a row is the larger of that and of its largest |G_jk| by its own penalty.

    Every task in an l1 ball of its own is such a problem with one task, a step one of each of them.

    Work counts the products with all data as half a pass, and that on the rows by their share of the data.

    Parameters
    ----------
    first : rows of the first set, those with the highest n_j at the dual point of W = 0, where all hinges are active
    memory_gib : end where the factors would need more
    threads : largest number of threads for the products of a factorisation of large data; None for the processors

    References
    ----------
    Tits, Absil, Woessner, SIAM J. Optim. 17(1), 2006 (constraint reduction); Gondzio, Gonzalez-Brevis, Munari, Eur. J. Oper. Res. 224(1),
    2013 (column generation by an interior-point method); Massias, Gramfort, Salmon, ICML 2018 (working sets).
    """

    first: int = 60
    memory_gib: float = 4.0
    threads: int | None = None

    name: ClassVar[str] = "working_set"
    takes = (*InteriorPoint.takes, hinges_under(L1TaskBalls))
    takes_intercept: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole_number("first", self.first, minimum=1)
        real_number("memory_gib", self.memory_gib, strict=True)
        unless_none(whole_number, "threads", self.threads, minimum=1)

    def warm_up(self) -> None:
        InteriorPoint().warm_up()

    def stepper(self, problem: Problem) -> SetsStepper:
        return SetsStepper(self, problem)


class SetsStepper(Stepper):
    """Advances the runs of all problems that are not done once a step."""

    kept = ("_runs", "_step")
    varying = ("rows", "x_W", "x_mu", "x_slack", "x_dual")

    def __init__(self, solver: WorkingSet, problem: Problem) -> None:
        self._form = problem.form(LinearForm)
        self._ball = problem.form(Hinges) if isinstance(self._form.regulariser, L1TaskBalls) else None
        self._open = functools.partial(Run, first=solver.first, bytes=solver.memory_gib * 2**30, threads=solver.threads)

    def start(self, at: Iterate) -> SetsStepper:
        W = at.primal
        forms = [self._form] if self._ball is None else self._ball.of_tasks()
        self._runs = tuple(self._open(form, W if self._ball is None else W[:, [k]]) for k, form in enumerate(forms))
        self._step = 0
        return self

    def step(self, now: SetsStepper) -> SetsStepper | None:
        """Return None where no run can go on; but where W = 0 is proven at the start, that is shown once."""
        self._step += 1
        moved = [run.advance() for run in self._runs if not run.is_done]
        return self if any(moved) or (self._step == 1 and all(run.relative_gap == 0.0 for run in self._runs)) else None

    def iterate(self, now: SetsStepper) -> Iterate:
        runs, one = self._runs, self._runs[0]
        point = np.concatenate([run.point for run in runs], axis=-1)
        dual = one.dual if self._ball is None else self._ball.design.unstack(np.concatenate([run.dual for run in runs]).ravel())
        note = "; ".join(run.note for run in runs if run.note)
        work = sum(run.work for run in runs) / len(runs)
        return Iterate(point, dual, self._step, work, note, claim=one.relative_gap if len(runs) == 1 else None)
