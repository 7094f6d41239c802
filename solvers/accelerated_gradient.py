"""The accelerated projected gradient method (AG) of the sparse + low-rank paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

from bench_mtl.core.checks import one_of
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem
from bench_mtl.model.solver_state import OwnState, state_of
from bench_mtl.solvers.projected_gradient import (
    GramRule,
    Prox,
    Smooth,
    check_gradient_options,
    gram_incompatibility,
    gram_steps,
    projection_incompatibility,
    prox_of,
    prox_step,
    small_change,
    step_incompatibility,
    uses_gram,
)
from bench_mtl.solvers.scaled_problem import ScaledProblem, scaling_incompatibility


class Composite(Smooth, Protocol):
    """The operators of a smooth part with a proximal rest: of a problem, or of one in scaled features."""

    @property
    def point_shape(self) -> tuple[int, ...]: ...

    def repair(self, point: Array, /) -> Array: ...

    def lipschitz(self) -> float: ...

    def objective(self, point: Array, /) -> float: ...

    def value_and_gradient(self, point: Array, /) -> tuple[float, Array]: ...


@dataclass(frozen=True)
class AcceleratedGradient(IterativeSolver):
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

    step_rule: str = "lipschitz"
    initial_lipschitz: float = 1.0
    objective_change: float | None = None
    restart: str = "none"
    gram: str = "auto"
    projection: str | None = None
    features: str = "given"
    fall: float = field(default=1.0, repr=False)
    """What L is multiplied by before every step. For solvers that begin with this one."""

    name: ClassVar[str] = "accelerated_gradient"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    takes_shards: ClassVar[bool] = True
    aliases: ClassVar[Mapping[str, Mapping[str, Any]]] = {"accelerated_gradient_restart": {"restart": "gradient"}}

    def __post_init__(self) -> None:
        check_gradient_options(self.step_rule, self.initial_lipschitz, self.objective_change, self.gram, self.projection)
        one_of("restart", self.restart, ("none", "gradient"))
        one_of("features", self.features, ("given", "scaled"))
        if self.features == "scaled" and (self.projection is not None or self.gram == "always"):
            raise InputError("features 'scaled' have no projection by name and no Gram matrix: leave projection and gram out")

    @property
    def label(self) -> str:
        scaled = "scaled" if self.features == "scaled" else ""
        return "_".join(filter(None, (self.name, "restart" if self.restart == "gradient" else "", self.projection, scaled)))

    def incompatibility(self, problem: Problem) -> str | None:
        own = super().incompatibility(problem) or step_incompatibility(self, self.step_rule, problem)
        if own is None and self.features == "scaled":
            return scaling_incompatibility(self, problem)
        return own or gram_incompatibility(self, self.gram, problem) or projection_incompatibility(self, self.projection, problem)

    def warm_up(self) -> None:
        from bench_mtl.solvers.kernels.split import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        if self.features == "scaled":
            assert isinstance(problem, FitProblem)
            scaled = ScaledProblem(problem)
            inner = self._iterates(scaled, scaled.prox, start._replace(primal=scaled.scaled(start.primal)))
            yield from (iterate._replace(primal=scaled.unscaled(iterate.primal)) for iterate in inner)
            return
        if uses_gram(self.gram, problem):
            restarted, searched = self.restart == "gradient", self.step_rule == "line_search"
            rule = GramRule(self, True, restarted, searched, self.initial_lipschitz, self.objective_change)
            yield from gram_steps(problem, start, rule)
            return
        yield from self._iterates(problem, prox_of(problem, self.projection), start)

    def _iterates(self, problem: Composite, prox: Prox, start: Iterate) -> Iterator[Iterate]:
        own, change = OwnState.of(self, start), self.objective_change
        if own is None:
            point = previous = problem.repair(start.primal)
            L = problem.lipschitz() if self.step_rule == "lipschitz" else self.initial_lipschitz
            objective = None if change is None else problem.objective(point)
            t_before, t = 0.0, 1.0  # t_{-1} and t_0 of the paper: the first step has no momentum
            step, work = 0, 0.0
        else:
            point, previous = start.primal, own.array("previous", problem.point_shape)
            L, objective = own.number("lipschitz"), own.optional_number("objective")
            t_before, t = own.number("momentum_before"), own.number("momentum")
            step, work = start.step, start.work
        while True:
            kept = {"previous": previous, "lipschitz": L, "momentum_before": t_before, "momentum": t, "objective": objective}
            yield Iterate(point, None, step, work, state=partial(state_of, self, **kept))
            if change is not None and step > 0:
                last, objective = objective, problem.objective(point)
                work += 0.5
                if small_change(last, objective, change):
                    return
            search_point = point + (t_before - 1.0) / t * (point - previous)
            value, gradient = problem.value_and_gradient(search_point)
            L *= self.fall
            new, L, trials = prox_step(problem, prox, search_point, value, gradient, L, search=self.step_rule == "line_search")
            work += 1.0 + 0.5 * trials
            step += 1
            t_before, t = t, 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
            uphill = self.restart == "gradient" and float(((search_point - new) * (new - point)).sum()) > 0.0
            if uphill:
                t_before, t = 0.0, 1.0
            previous, point = (new if uphill else point), new
