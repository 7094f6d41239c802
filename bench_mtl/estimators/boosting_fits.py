"""The problem `group_boosting` as the classifier fits it: over learners that are known beforehand, or by column generation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from bench_mtl.core.errors import plural
from bench_mtl.core.types import Array, Certificate, Iterate
from bench_mtl.data import TaskData
from bench_mtl.engine.proofs import format_gap
from bench_mtl.estimators.fitting import Budget, Solution, installed, solve, tolerance_of
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.weak_learners import Oracle, WeakLearners

#: The gap to which a restricted problem is solved: this share of the gap over all learners, ...
_SHARE = 0.8
#: ... at most this gap, ...
_LOOSEST = 0.1
#: ... at least this share of the tolerance.
_TIGHTEST_SHARE = 0.5
#: Where the oracle finds only learners that the restricted problem has already, the rest of the gap is the restricted problem's: it is
#: solved again to a tenth of its gap, at most this number of times in a row.
_TIGHTENINGS = 3


class Round(NamedTuple):
    """The state of column generation after a restricted problem and a call of the oracle."""

    learners: int
    """Number of learners in the restricted problem."""
    iterations: int
    """Iterations of the solver up to then."""
    objective: float
    dual_bound: float
    """Over all learners, as far as the oracle is exact."""
    violation: float
    """The largest that the oracle found, over the penalty."""


@dataclass(frozen=True)
class Boosted:
    """What a fit found."""

    learners: WeakLearners
    weights: Array
    """J x K."""
    outputs: Array
    """H, n x J."""
    certificate: Certificate
    """Over all learners that there are to choose from; where the oracle is not exact over those found."""
    is_met: bool
    """Whether the gap is within the tolerance, over all learners that an oracle can find."""
    message: str
    rounds: tuple[Round, ...] = ()

    def select(self, numbers: Any) -> Boosted:
        """Return the fit with these of its learners, in this order."""
        return replace(self, learners=self.learners.take(numbers), weights=self.weights[numbers], outputs=self.outputs[:, numbers])


@final
@dataclass(frozen=True)
class GroupBoostingModel:
    """The problem `group_boosting` for examples with these labels (n x K, -1 or +1), over any weak learners."""

    labels: Array
    norm: str
    loss: Any

    def problem(self, H: Array | None, penalty: float | str, others: Callable[[Array], float] | None = None) -> Any:
        """Make the problem over the learners with these outputs, n x J. Without one it has a learner whose output is always 0."""
        columns = H if H is not None and H.shape[1] else np.zeros((len(self.labels), 1))
        parameters: dict[str, Any] = {"penalty": penalty, "norm": self.norm, "loss": self.loss, "others": others}
        return installed().problem("group_boosting").from_data(TaskData.shared(columns, self.labels), **parameters)


def fit_dictionary(
    model: GroupBoostingModel, learners: WeakLearners, H: Array, penalty: float, solver: Solver, tol: float, budget: Budget
) -> Boosted:
    """Fit given learners with outputs H; the result has them in descending order of the norm of their weights."""
    solution = solve(model.problem(H, penalty), solver, tol, budget)
    found = Boosted(learners, solution.point, H, solution.certificate, solution.is_met, solution.message)
    return found.select(np.argsort(-np.linalg.norm(solution.point, axis=1), kind="stable"))


def drop_negligible_weights(model: GroupBoostingModel, penalty: float, found: Boosted, tol: float) -> Boosted:
    """Drop learners of weight 0, and the negligible weights that solvers leave in place of zeros, if the proven gap stays as good."""
    weights = found.weights
    rounded = np.where(weights > NEGLIGIBLE_ENTRY * weights.max(initial=0.0), weights, 0.0)
    objective = model.problem(found.outputs, penalty).objective(rounded) if rounded.size else found.certificate.primal
    certificate = found.certificate._replace(primal=objective)
    if certificate.relative_gap <= max(tol, found.certificate.relative_gap):
        found = replace(found, weights=rounded, certificate=certificate)
    return found.select(np.flatnonzero(found.weights.any(axis=1)))


@final
class ColumnGeneration:
    """Solve over the learners so far, ask the oracle for those that violate the dual constraint most, add them, and so on.

    A restricted problem starts from the solution of the one before, and is solved only as closely as the gap over all learners is worth.

    Parameters
    ----------
    oracle : of the candidates, on the examples X
    penalty : the weight of the norms, as a number
    per_round : learners to add in a round, at most
    most : learners in all, at most

    References
    ----------
    Paisitkriangkrai, Shen, van den Hengel, "Sharing features in multi-class boosting via group sparsity", CVPR 2012, MultiBoost-group.
    """

    def __init__(
        self, model: GroupBoostingModel, X: Any, oracle: Oracle, penalty: float, solver: Solver, *, per_round: int, most: int
    ) -> None:
        self._model, self._X, self._oracle, self._penalty, self._solver = model, X, oracle, penalty, solver
        self._per_round, self._most = per_round, most
        self._outputs: Array = np.empty((len(model.labels), 0), order="F")
        """Of the learners so far, no two the same."""
        self._seen: set[bytes] = set()

    def run(self, tol: float, budget: Budget) -> Boosted:
        """Fit until the gap over all learners is at most `tol`, or the budget is spent."""
        problem, rounds = self._model.problem(None, self._penalty), list[Round]()
        zero = problem.start_point()
        present = Solution(zero, None, problem.certify(Iterate(zero)), False, "")
        best_bound, aim, tightenings, tightest = -np.inf, _LOOSEST, 0, _TIGHTEST_SHARE * tol
        bound, learners, violation = self._ask_oracle(problem, present)
        chosen = learners.take([])
        while True:
            size = self._outputs.shape[1]
            best_bound = max(best_bound, bound) if self._oracle.is_exact else bound
            overall = Certificate(present.certificate.primal, best_bound, 0.0)
            rounds.append(Round(size, budget.steps, overall.primal, overall.dual, violation))
            gap, is_full, added = f"relative gap {format_gap(overall.relative_gap)} over all learners", size >= self._most, 0
            is_met = tolerance_of(problem, tol).met_by(overall, problem.scale())
            message = gap if is_met else budget.spent or (f"n_learners = {self._most}" if is_full and aim <= tightest else "")
            if not message and not is_full:
                fresh = self._add(learners)
                chosen, added = chosen.joined(learners.take(fresh)), len(fresh)
            tightenings = 0 if added else tightenings + 1
            if not message and tightenings > _TIGHTENINGS:
                message = f"{gap}, but none to add"
                if not present.is_met:
                    message += f", and {self._solver.label} stopped at {format_gap(present.certificate.relative_gap)} over those there are"
            if message:
                message += "" if is_met else f" after {plural(len(rounds), 'round')}"
                certificate = overall if self._oracle.is_exact else present.certificate
                return Boosted(chosen, present.point[:size], self._outputs, certificate, is_met, message, tuple(rounds))
            if is_full:
                aim = tightest
            elif added:
                aim = max(tightest, min(_LOOSEST, _SHARE * overall.relative_gap))
            else:
                aim = 0.1 * min(aim, overall.relative_gap)
            problem = self._model.problem(self._outputs, self._penalty)
            padded = np.zeros(problem.point_shape)
            padded[:size] = present.point[:size]
            present = solve(problem, self._solver, aim, budget, Iterate(padded, present.dual))
            bound, learners, violation = self._ask_oracle(problem, present)

    def _ask_oracle(self, problem: Problem, present: Solution) -> tuple[float, WeakLearners, float]:
        """Call the oracle for the better dual point: the one that the solver handed over, or the one of the point itself.

        Return the bound, the learners whose violation is above the penalty, and the largest violation over the penalty.
        """
        form = problem.form(GroupForm)
        dual = form.fit.duals(form.fit.design.forward(present.point))
        if present.dual is not None and form.bound(present.dual) > form.bound(dual):
            dual = present.dual
        found: list[tuple[float, WeakLearners, Array]] = []

        def others(R: Array) -> float:  # what a bound asks of learners outside the problem, once
            found.append((_size_of(R) or 1.0, *self._oracle.most_violating(R, self._model.norm, self._per_round)))
            return float(found[-1][2].max(initial=0.0))

        bound = form.bound(dual, others)
        size, learners, violations = found[-1]
        # The bound asks about a multiple of the dual point.
        violations = violations * (_size_of(form.fit.residuals(form.fit.admissible(dual))) / size)
        largest = float(violations.max(initial=0.0)) / self._penalty if self._penalty else np.inf
        return bound, learners.take(violations > self._penalty), largest

    def _add(self, learners: WeakLearners) -> list[int]:
        """Append the outputs of learners that are new, as far as there is room, and return the numbers of these learners."""
        if not len(learners):
            return []
        fresh, H = list[int](), learners.outputs(self._X)
        for j, column in enumerate(H.T):
            key = np.packbits(column > 0.0).tobytes()
            if key not in self._seen and self._outputs.shape[1] + len(fresh) < self._most:
                self._seen.add(key)
                fresh.append(j)
        self._outputs = np.asfortranarray(np.concatenate([self._outputs, H[:, fresh]], axis=1))
        return fresh


def _size_of(R: Array) -> float:
    return float(np.abs(R).max(initial=0.0))
