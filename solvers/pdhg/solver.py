"""The primal-dual hybrid gradient method for hinges under an l1,inf norm or with a ball for every task, with restarts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import one_of, real_number, unless_none, whole_number
from bench_mtl.core.designs import PerTaskDesign, SharedDesign
from bench_mtl.core.types import Iterate
from bench_mtl.model.forms import Hinges, hinges_under
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Hinge
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import Problem
from bench_mtl.model.regularisers import Constraint
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.model.task_balls import L1TaskBalls, TaskBalls
from bench_mtl.solvers.pdhg.run import Run, State, columns
from bench_mtl.solvers.units import LIKE


@dataclass(frozen=True)
class PDHG(SteppingSolver):
    """One step T of (W, a), where G_jk = sum_i a_ki y_ki x_ki,j::

        W+ = proj(W + tau G)      a+ = clip(a + sigma_k (1 - y X (2 W+ - W)), 0, s)

    for min_{||W||_{1,inf} <= C} max_{0 <= a <= s} sum a - <G, W>, with tau sigma_k sigma_max(X_k)^2 = 1; or the proximal operator of
    lambda ||.||_{1,inf} instead of the projection, or the projections of every w_k onto an l1 or l2 ball.

    Steps are reflected Halpern steps z <- (k + 1)/(k + 2) (2 T(z) - z) + 1/(k + 2) z0 of z = (W, a), which restart from T(z) when the
    fixed-point residual ||z - T(z)|| has fallen far enough, falls no longer, or after a share of all steps.

    Parameters
    ----------
    step_rule : "preconditioned" has one dual step size for every task; "norm" has one for all tasks, by the largest norm
    primal_weight : first omega in tau = 1 / (omega L), sigma = omega / L; None for a guess from the data. It is adapted at
        every restart, so that primal and dual points move equally far
    threads : largest number of threads for a pass over tasks with data of their own, one for every 150,000 entries; None for the
        processors of this process, or OMP_NUM_THREADS where that is set and smaller. The number changes no bit

    Notes
    -----
    The iterates are the points T(z), which are feasible. `step` counts steps T, `work` their passes over the data.

    References
    ----------
    Chambolle, Pock, JMIV 40, 2011, algorithm 1. Applegate et al., NeurIPS 2021 (restarts, primal weight). Lu, Yang, arXiv:2407.16144,
    algorithm 2, and Lu, Peng, Yang, arXiv:2507.14051 (restarted reflected Halpern).
    """

    step_rule: str = "preconditioned"
    primal_weight: float | None = None
    threads: int | None = None

    name: ClassVar[str] = "pdhg"
    takes = (hinges_under(L1Inf), hinges_under(TaskBalls))
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of("step_rule", self.step_rule, ("preconditioned", "norm"))
        unless_none(whole_number, "threads", self.threads, minimum=1)
        unless_none(real_number, "primal_weight", self.primal_weight, strict=True)

    def warm_up(self) -> None:
        """Compile every kernel, by a few steps on the smallest designs."""
        X = np.ones((2, 2))
        sparse, unlike = sp.csr_array(X), X * np.array([1.0, 10.0 * LIKE])
        own = PerTaskDesign([X])
        for design in (own, PerTaskDesign([sparse]), SharedDesign(sparse, 1), SharedDesign(unlike, 1)):
            ones = np.ones(design.output_shape)
            fit = LinearFit(design, ones, Hinge(), ones)
            for form in (Hinges(fit, Constraint(L1Inf(), 1.0)), Hinges(fit, L1TaskBalls(np.ones(1)))):
                run = Run(form)
                run.start(np.zeros((2, 1)), None, per_task=True, primal_weight=None)
                for single in (False, True) if design is own else (False,):
                    run.data = columns(design, single=single)
                    run.estimated_norms()
                    run.restart()
                    run.halpern()

    def stepper(self, problem: Problem) -> PDHGStepper:
        return PDHGStepper(self, problem.form(Hinges))


class PDHGStepper(Stepper):
    def __init__(self, solver: PDHG, form: Hinges) -> None:
        self._solver = solver
        self._open: Callable[..., Run] = partial(Run, form, solver.threads)
        self._run = self._open()

    def start(self, at: Iterate) -> State:
        per_task = self._solver.step_rule == "preconditioned"
        self._run.start(np.array(at.primal), at.dual, per_task=per_task, primal_weight=self._solver.primal_weight)
        return self._run.state

    def step(self, now: State) -> State:
        if now.planes is not self._run.planes:  # of an earlier run
            self._run = self._open(state=now)
        self._run.halpern()
        return now

    def iterate(self, now: State) -> Iterate:
        return Iterate(*self._run.answer(), now.steps, now.work)
