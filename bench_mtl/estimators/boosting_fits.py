"""The problem `group_boosting` as the classifier fits it, and fits over learners that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from bench_mtl.core.types import Array, Certificate
from bench_mtl.data import TaskData
from bench_mtl.estimators.fitting import Budget, installed, solve
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.weak_learners import WeakLearners


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
    """The problem `group_boosting` for some examples, over any weak learners.

    Parameters
    ----------
    labels : n x K, -1 or +1
    """

    labels: Array
    norm: str
    loss: Any

    def problem(self, H: Array, penalty: float | str, others: Callable[[Array], float] | None = None) -> Problem:
        """Make the problem over the learners with these outputs, n x J. Where J = 0 it has one learner, whose output is always 0."""
        columns = H if H.shape[1] else np.zeros((len(H), 1))
        parameters: Mapping[str, Any] = {"penalty": penalty, "norm": self.norm, "loss": self.loss, "others": others}
        return installed().problem("group_boosting").from_data(TaskData.shared(columns, self.labels), **parameters)

    def without_learners(self) -> Problem:
        """Make the problem without learners."""
        return self.problem(np.empty((len(self.labels), 0)), 0.0)

    def penalty(self, H: Array, penalty: float | str, others: Callable[[Array], float] | None = None) -> float:
        """Return `penalty` as a number."""
        return float(self.problem(H, penalty, others).penalty)  # type: ignore[attr-defined]


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
