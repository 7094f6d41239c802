"""Totally corrective boosting by column generation, with any registered solver for the restricted problems."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.errors import plural
from bench_mtl.core.types import Array, Certificate, Iterate, Tolerance
from bench_mtl.estimators.boosting_fits import Boosted, GroupBoostingModel, Round
from bench_mtl.estimators.fitting import Budget, Solution, solve
from bench_mtl.model.forms import GroupForm
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


@final
class ColumnGeneration:
    """Solve over the learners found so far, ask the oracle for those that violate the dual constraint most, add them, and so on.

    A restricted problem starts from the solution of the one before, and is solved only as closely as the gap over all learners is worth.

    Parameters
    ----------
    X : the examples
    oracle : of the candidates, on X
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
        self._columns = _Columns(len(model.labels))
        self._learners: WeakLearners | None = None
        self._rounds: list[Round] = []

    def run(self, tol: float, budget: Budget) -> Boosted:
        """Fit until the gap over all learners is at most `tol`, or the budget is spent."""
        problem = self._model.problem(self._columns.outputs, self._penalty)
        zero = problem.start_point()
        present = Solution(zero, None, problem.certify(Iterate(zero)), False, "")
        best_bound, aim, tightenings = -np.inf, _LOOSEST, 0
        while True:
            answer = self._ask_oracle(problem, present)
            self._learners = answer.learners.take([]) if self._learners is None else self._learners
            best_bound = max(best_bound, answer.bound) if self._oracle.is_exact else answer.bound
            overall = Certificate(present.certificate.primal, best_bound, 0.0)
            self._rounds.append(Round(self._size, budget.steps, overall.primal, overall.dual, answer.violation))
            certificate = overall if self._oracle.is_exact else present.certificate
            if Tolerance(tol).met_by(overall, problem.scale()):
                return self._boosted(present, certificate, True, f"relative gap {overall.relative_gap:.1e} over all learners")
            tightest = _TIGHTEST_SHARE * tol
            is_full = self._size >= self._most
            message = budget.spent or (f"n_learners = {self._most}" if is_full and aim <= tightest else "")
            added = 0 if message or is_full else self._add(answer.learners)
            tightenings = 0 if added else tightenings + 1
            if not message and tightenings > _TIGHTENINGS:
                message = f"relative gap {overall.relative_gap:.1e} over all learners, but none to add"
                if not present.is_met:
                    message += f", and {self._solver.label} stopped at {present.certificate.relative_gap:.1e} over those there are"
            if message:
                return self._boosted(present, certificate, False, f"{message} after {plural(len(self._rounds), 'round')}")
            if is_full:
                aim = tightest
            elif added:
                aim = max(tightest, min(_LOOSEST, _SHARE * overall.relative_gap))
            else:
                aim = 0.1 * min(aim, overall.relative_gap)
            problem = self._model.problem(self._columns.outputs, self._penalty)
            padded = np.zeros(problem.point_shape)
            padded[: self._size - added] = present.point[: self._size - added]
            present = solve(problem, self._solver, aim, budget, Iterate(padded, present.dual))

    @property
    def _size(self) -> int:
        return self._columns.outputs.shape[1]

    def _ask_oracle(self, problem: Problem, present: Solution) -> _Answer:
        """Call the oracle for the better dual point: the one that the solver handed over, or the one of the point itself."""
        form = problem.form(GroupForm)
        dual = form.fit.duals(form.fit.design.forward(present.point))
        if present.dual is not None and form.bound(present.dual) > form.bound(dual):
            dual = present.dual
        question = _Question(self._oracle, self._model.norm, self._per_round)
        bound = form.bound(dual, question)
        # The bound asks about a multiple of the dual point.
        multiple = _size_of(form.fit.residuals(form.fit.admissible(dual))) / question.size
        worth = question.violations * multiple > self._penalty
        largest = float(question.violations.max(initial=0.0)) * multiple
        return _Answer(bound, question.learners.take(worth), largest / self._penalty if self._penalty else np.inf)

    def _add(self, found: WeakLearners) -> int:
        """Add the learners whose outputs are new, as far as there is room, and return their number."""
        if not len(found):
            return 0
        fresh = self._columns.add(found.outputs(self._X), self._most)
        if len(fresh):
            assert self._learners is not None
            self._learners = self._learners.joined(found.take(fresh))
        return len(fresh)

    def _boosted(self, present: Solution, certificate: Certificate, is_met: bool, message: str) -> Boosted:
        size = self._size
        assert self._learners is not None
        return Boosted(self._learners, present.point[:size], self._columns.outputs, certificate, is_met, message, tuple(self._rounds))


class _Answer(NamedTuple):
    """What the oracle found."""

    bound: float
    learners: WeakLearners
    """Those whose violation is above the penalty."""
    violation: float
    """The largest, over the penalty."""


class _Question:
    """The `others` of a bound: asks an oracle, once, and keeps what it finds."""

    def __init__(self, oracle: Oracle, norm: str, count: int) -> None:
        self._oracle, self._norm, self._count = oracle, norm, count

    def __call__(self, R: Array) -> float:
        self.size = _size_of(R) or 1.0
        self.learners, self.violations = self._oracle.most_violating(R, self._norm, self._count)
        return float(self.violations.max(initial=0.0))


class _Columns:
    """Outputs of the learners found, no two the same."""

    def __init__(self, n: int) -> None:
        self._held = np.empty((n, 64), order="F")
        self._size = 0
        self._known: set[bytes] = set()

    @property
    def outputs(self) -> Array:
        return self._held[:, : self._size]

    def add(self, H: Array, most: int) -> NDArray[np.intp]:
        """Append the columns of H that are new, as far as there are `most` in all; returns their numbers."""
        fresh = []
        for j, column in enumerate(H.T):
            key = np.packbits(column > 0.0).tobytes()
            if key in self._known or self._size == most:
                continue
            self._known.add(key)
            fresh.append(j)
            if self._size == self._held.shape[1]:
                self._held = np.concatenate([self._held, np.empty_like(self._held)], axis=1)
            self._held[:, self._size] = column
            self._size += 1
        return np.array(fresh, dtype=np.intp)


def _size_of(R: Array) -> float:
    return float(np.abs(R).max(initial=0.0))
