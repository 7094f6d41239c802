"""The accelerated projected gradient method (AG) of the sparse + low-rank paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.model.solver_state import Stepper
from bench_mtl.solvers.projected_gradient import GradientSolver, GradientStepper, GramStepper
from bench_mtl.solvers.scaled_problem import ScaledProblem, scaling_objection


@dataclass(frozen=True)
class AcceleratedGradient(GradientSolver):
    """T_{i+1} <- prox(S_i - grad f(S_i) / L), S_i = T_i + (t_{i-2} - 1) / t_{i-1} (T_i - T_{i-1}).

    Parameters
    ----------
    step_rule, initial_lipschitz, objective_change, gram, projection : as in `ProjectedGradient` ("lipschitz" is algorithm 4 of the paper,
        "line_search" algorithm 2); with `objective_change` every step costs half a pass more
    features : "given", or "scaled": steps are taken in features of one size, centred where there are intercepts, under norms of rows and
        entries; that is a dense copy of the data, and worth hundreds of times the steps where features are of unlike size
    restart : "none" is the paper's method; "gradient" drops the momentum whenever it points uphill, that is when
        <S_i - T_{i+1}, T_{i+1} - T_i> > 0 (O'Donoghue, Candes, Foundations of Computational Mathematics 15, 2015)

    References
    ----------
    Chen, Liu, Ye, ACM TKDD 5(4), 2012, algorithms 2 and 4.
    """

    restart: str = "none"
    features: str = "given"
    fall: float = field(default=1.0, repr=False)
    """What L is multiplied by before every step. For solvers that begin with this one."""

    name: ClassVar[str] = "accelerated_gradient"
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"accelerated_gradient_restart": {"restart": "gradient"}}

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("restart", self.restart, ("none", "gradient"))
        one_of("features", self.features, ("given", "scaled"))
        if self.features == "scaled" and (self.projection is not None or self.gram == "always"):
            raise InputError("features 'scaled' have no projection by name and no Gram matrix: leave projection and gram out")

    @property
    def label(self) -> str:
        scaled = "scaled" if self.features == "scaled" else ""
        return "_".join(filter(None, (self.name, "restart" if self.restart == "gradient" else "", self.projection, scaled)))

    def rehearsed(self) -> tuple[IterativeSolver, ...]:
        return (self,) if self.features == "scaled" else super().rehearsed()

    def objection(self, problem: Problem) -> str | None:
        reason = super().objection(problem)
        return scaling_objection(self, problem) if reason is None and self.features == "scaled" else reason

    def stepper(self, problem: Problem) -> Stepper:
        if self.features == "scaled":
            assert isinstance(problem, FitProblem)
            scaled = ScaledProblem(problem)
            return GradientStepper(self, scaled, scaled.prox, restart=self.restart, fall=self.fall)
        if self.uses_gram(problem):
            return GramStepper(self, problem, accelerated=True, restarted=self.restart == "gradient")
        return GradientStepper(self, problem, self.prox_of(problem), restart=self.restart, fall=self.fall)
