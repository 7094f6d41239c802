"""Frank-Wolfe for smooth losses over sets with a linear oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.protocols import Capability, NotOfferedError, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.frank_wolfe_smooth.losses import Backtracking, exact_steps, loss_of
from bench_mtl.solvers.frank_wolfe_smooth.sets import Corners, Hull, Vertices

VARIANTS = ("pairwise", "away", "plain")

STEP_RULES = ("exact", "backtracking")
#: Steps after which the predictions, which are updated in every step, are recomputed.
_REFRESH = 100


@dataclass(frozen=True)
class FrankWolfeSmooth(SteppingSolver):
    """W <- W + gamma D along a direction D between corners of the feasible set, minimising a smooth f.

    With G = grad f(W), S = argmin <G, S> over the set, and U the corner with weight in W that has the largest <G, U>, D is S - W ("plain"),
    S - U ("pairwise"), or the better of S - W and W - U ("away"). gamma is at most what keeps U's weight at 0 or more.

    Where the set is a simplex or an l1 ball (`SimplexForm`) corners are signed unit vectors, and their weights are read off W itself; 0
    counts as a corner where it is feasible. Balls of every task are blocks: each takes a step along a direction of its own, with a length
    of its own. (Corners of the product would move all tasks by one length, which the smallest weight bounds.) Other sets keep the
    answers of the problem's oracle. f is followed by its predictions where the problem has a form of them: then a step costs one
    gradient, half a pass, and a column or two (or half a pass more in the other sets). The Frank-Wolfe gap <G, W - S> is at
    least what the certificate of W proves, with the dual point that gives G.

    Parameters
    ----------
    variant : "pairwise", "away" or "plain"
    step_rule : "exact" minimises f along D, block by block, where losses of the blocks do not share predictions (as the multiclass loss
        with a ball for every class does) and the problem has a form; elsewhere, and with "backtracking", gamma is
        min(longest, -<G, D> / (M ||D||^2)), M nine tenths of the last one or doubled until the quadratic model lies above f. ||D|| is
        measured in the predictions, where the problem has a form.

    References
    ----------
    Jaggi, ICML 2013, algorithm 1; Lacoste-Julien, Jaggi, NeurIPS 2015, algorithms 1 and 2 (away and pairwise steps); Pedregosa, Negiar,
    Askari, Jaggi, AISTATS 2020, algorithm 2 (backtracking); Lacoste-Julien, Jaggi, Schmidt, Pletscher, ICML 2013 (blocks).
    """

    variant: str = "pairwise"
    step_rule: str = "exact"

    name: ClassVar[str] = "frank_wolfe_smooth"
    requires: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.LMO})
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS)
        one_of("step_rule", self.step_rule, STEP_RULES)

    @property
    def label(self) -> str:
        rule = "" if self.step_rule == "exact" else f"_{self.step_rule}"
        return (self.name if self.variant == "pairwise" else f"{self.name}_{self.variant}") + rule

    def objection(self, problem: Problem) -> str | None:
        try:
            problem.lmo(problem.start_point())
        except NotOfferedError:
            return f"{self.label} needs a bounded set, and a penalty bounds none: give {problem.name} a radius"
        return None

    def stepper(self, problem: Problem) -> LineSteps:
        return LineSteps(self, problem)


class LineSteps(Stepper):
    kept = ("_hull", "_backtracking", "_predictions", "_slopes", "_gradient", "_step", "_work")
    varying = ("hull_corners", "hull_weights")

    def __init__(self, solver: FrankWolfeSmooth, problem: Problem) -> None:
        self._solver, self._problem, self._loss = solver, problem, loss_of(problem)
        self._formed = self._loss.design is not None

    def start(self, at: Iterate) -> LineSteps:
        self._hull, self._backtracking = _hull(self._problem, at.primal), Backtracking()
        self._exact = self._formed and self._solver.step_rule == "exact" and not (self._loss.coupled and self._hull.blocks > 1)
        self._column = 0.5 / len(at.primal) if isinstance(self._hull, Corners) else 0.5
        self._step, self._work = 0, 0.0
        self._judge()
        return self

    def _judge(self) -> None:
        """Compute the gradient at the point."""
        if self._step % _REFRESH == 0:
            self._predictions = self._loss.predict(self._hull.point)
            self._work += 0.5 if self._formed else 0.0
        self._slopes = self._loss.derivatives(self._predictions)
        self._gradient = self._loss.adjoint(self._slopes)
        self._work += 0.5 if self._formed else 1.0

    def step(self, now: LineSteps) -> LineSteps:
        loss, hull, predictions, variant = self._loss, self._hull, self._predictions, self._solver.variant
        line = hull.line(self._gradient, predictions, variant)
        if self._formed:
            self._work += self._column * (2.0 if variant == "pairwise" and self._column < 0.5 else 1.0)
        if self._exact:
            gamma = exact_steps(loss, predictions, line.predictions, line.longest)
        else:
            value = loss.value(predictions)
            gamma, trials = self._backtracking.steps(loss, predictions, line.predictions, value, line.gains, line.longest)
            self._work += 0.0 if self._formed else 0.5 * (trials + 1)
        hull.move(gamma, line.longest)
        self._predictions = predictions + loss.per_block(gamma) * line.predictions if self._formed else hull.point
        self._step += 1
        self._judge()
        return self

    def iterate(self, now: LineSteps) -> Iterate:
        return Iterate(self._hull.point, -self._slopes if self._formed else None, self._step, self._work)


def _hull(problem: Problem, start: Array) -> Hull:
    loss = loss_of(problem)
    if problem.has_form(SimplexForm) and loss.design is not None:
        form = problem.form(SimplexForm)
        if form.mass > 0.0:
            return Corners(form, loss.design, start)
    return Vertices(problem, loss, start)
