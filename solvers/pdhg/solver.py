"""The primal-dual hybrid gradient method for hinges under an l1,inf norm or with a ball for every task, with restarts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import one_of, real_number, whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import BallForm, HingeForm
from bench_mtl.model.protocols import Form, IterativeSolver, Problem, Solver
from bench_mtl.solvers.pdhg.run import Restarts, Run


@dataclass(frozen=True)
class PDHG(IterativeSolver):
    """One step T of (W, a), where G_jk = sum_i a_ki y_ki x_ki,j::

        W+ = proj(W + tau G)      a+ = clip(a + sigma_k (1 - y X (2 W+ - W)), 0, s)

    for min_{||W||_{1,inf} <= C} max_{0 <= a <= s} sum a - <G, W>, with tau sigma_k sigma_max(X_k)^2 = 1; or the proximal operator of
    lambda ||.||_{1,inf} instead of the projection, or the projections of every w_k onto an l1 or l2 ball.

    Parameters
    ----------
    variant : "halpern" is the reflected Halpern iteration z <- (k + 1)/(k + 2) (2 T(z) - z) + 1/(k + 2) z0, restarted from T(z) when the
        fixed-point residual ||z - T(z)|| has fallen far enough, falls no longer, or after a share of all steps; "average" takes plain steps
        and restarts from their average or the last point, whichever has the smaller gap, when that gap has fallen
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

    variant: str = "halpern"
    step_rule: str = "preconditioned"
    primal_weight: float | None = None
    threads: int | None = None

    name: ClassVar[str] = "pdhg"
    takes: ClassVar[tuple[type[Form], ...]] = (HingeForm, BallForm)

    def __post_init__(self) -> None:
        one_of("variant", self.variant, ("halpern", "average"))
        one_of("step_rule", self.step_rule, ("preconditioned", "norm"))
        if self.threads is not None:
            whole_number("threads", self.threads, minimum=1)
        if self.primal_weight is not None:
            real_number("primal_weight", self.primal_weight, strict=True)

    @property
    def label(self) -> str:
        return self.name if self.variant == "halpern" else f"{self.name}_{self.variant}"

    @classmethod
    def variants(cls) -> list[Solver]:
        return [cls(), cls(variant="average")]

    def warm_up(self) -> None:
        from bench_mtl.solvers.pdhg.run import compile_kernels

        compile_kernels()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        """`steps` from the primal point of `start`, and from its dual point where it has one."""
        W = np.array(problem.repair(start.primal))
        form = problem.form(HingeForm) if problem.has_form(HingeForm) else problem.form(BallForm)
        run = Run(form, W, start.dual, self.step_rule == "preconditioned", self.primal_weight, self.threads)
        yield run.iterate()
        while True:
            if self.variant == "halpern":
                run.halpern(Restarts())
            else:
                run.average(Restarts())
            yield run.iterate()
