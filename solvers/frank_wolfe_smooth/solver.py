"""Frank-Wolfe for smooth losses over sets with a linear oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench_mtl.core.checks import one_of
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.protocols import Capability, IterativeSolver, NotOfferedError, Problem
from bench_mtl.solvers.frank_wolfe_smooth.losses import Backtracking, exact_steps, loss_of
from bench_mtl.solvers.frank_wolfe_smooth.sets import Corners, Hull, Vertices

VARIANTS = ("pairwise", "away", "plain")

STEP_RULES = ("exact", "backtracking")

#: Steps after which the predictions, which are updated in every step, are recomputed.
_REFRESH = 100


@dataclass(frozen=True)
class FrankWolfeSmooth(IterativeSolver):
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

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS)
        one_of("step_rule", self.step_rule, STEP_RULES)

    @property
    def label(self) -> str:
        rule = "" if self.step_rule == "exact" else f"_{self.step_rule}"
        return (self.name if self.variant == "pairwise" else f"{self.name}_{self.variant}") + rule

    def incompatibility(self, problem: Problem) -> str | None:
        reason = super().incompatibility(problem)
        if reason is not None:
            return reason
        try:
            problem.lmo(problem.start_point())
        except NotOfferedError:
            return f"{self.label} needs a bounded set, and a penalty bounds none: give {problem.name} a radius"
        return None

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        loss = loss_of(problem)
        formed = loss.design is not None
        hull = _hull(problem, problem.repair(problem.start_point() if start is None else start))
        exact = formed and self.step_rule == "exact" and not (loss.coupled and hull.blocks > 1)
        backtracking = Backtracking()
        column = 0.5 / hull.point.shape[0] if isinstance(hull, Corners) else 0.5
        step, work = 0, 0.0
        while True:
            if step % _REFRESH == 0:
                predictions = loss.predict(hull.point)
                work += 0.5 if formed else 0.0
            slopes = loss.derivatives(predictions)
            gradient = loss.adjoint(slopes)
            work += 0.5 if formed else 1.0
            yield Iterate(hull.point, -slopes if formed else None, step, work)
            line = hull.line(gradient, predictions, self.variant)
            work += column * (2.0 if self.variant == "pairwise" and column < 0.5 else 1.0) if formed else 0.0
            if exact:
                gamma = exact_steps(loss, predictions, line.predictions, line.longest)
            else:
                gamma, trials = backtracking.steps(loss, predictions, line.predictions, loss.value(predictions), line.gains, line.longest)
                work += 0.0 if formed else 0.5 * (trials + 1)
            hull.move(gamma, line.longest)
            predictions = hull.point if not formed else predictions + loss.per_block(gamma) * line.predictions
            step += 1


def _hull(problem: Problem, start: Array) -> Hull:
    loss = loss_of(problem)
    if problem.has_form(SimplexForm) and loss.design is not None:
        form = problem.form(SimplexForm)
        if form.mass > 0.0:
            return Corners(form, loss.design, start)
    return Vertices(problem, loss, start)
