"""The hinge problems as linear programmes whose rows of W and hinges are generated: what an expert would have HiGHS do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import real_number, unless_none, whole_number
from bench_mtl.core.rounding import TINIEST
from bench_mtl.core.threads import pinned_thread_count
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, hinges_under
from bench_mtl.model.norms import L1Inf
from bench_mtl.model.protocols import Capability, IterativeSolver, Problem
from bench_mtl.model.task_balls import L1TaskBalls
from bench_mtl.projections import norm_l1inf
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

#: A margin or a dual norm that is beyond its bound by no more than this share violates nothing.
_SLACK = 1e-9
#: Rows join first whose dual norm is within this share of the largest; a round adds no more than this share of those that are in, or the
#: number of the first.
_CLOSE, _GROWTH = 0.05, 0.5
#: Steps of the first-order method between two looks at its gap, and in all.
_LOOK_EVERY, _MOST_STEPS = 10, 2000
#: HiGHS's names for where a variable or a row is.
_LOWER, _BASIC, _UPPER = 0, 1, 2
#: HiGHS's numbers of its simplex methods.
_DUAL, _PRIMAL = 1, 4
#: Above this relative gap interior points begin anew: a basis of a programme that lacks much is of little use.
_ANEW_GAP = 0.03


@dataclass(frozen=True)
class GeneratedLP(IterativeSolver):
    """HiGHS on linear programmes of few rows of W and few hinges, sets that grow until nothing outside is violated.

    In the programme w_jk = p_jk - n_jk, for features j of a set J and hinges (k, i) of a set I::

        min  sum_I s_k x_ki + sum_S s_k (1 - y_ki x_ki.w_k) + lambda sum_j t_j
        p_jk + n_jk <= t_j,   x_ki >= 1 - y_ki x_ki.w_k on I,   sum_j t_j <= C,   p, n, t, x >= 0

    A hinge outside of I is what it is at the start: linear in S, or 0. It joins I where its margin is on the other side of 1, and
    a feature joins J where its dual norm sum_k |G_jk| is above the dual of sum_j t_j, the largest first. With a penalty C is
    what the start proves of the norm. The start is a point of `SmoothedGradient`, of which J are the rows of high dual norms and I the
    hinges near 1. IPX with crossover solves the first programme, and others while the gap is wide; then the simplex method goes on from the
    last basis, in which what joins is where its cost or its dual is right. The run ends when nothing is violated: the optimum of the
    last programme is that of the problem. With a ball for every task each of them has programmes of its own.

    A step is one of the first-order method or a round of programmes; work counts products with the data, and nothing of what HiGHS does.

    Parameters
    ----------
    start_gap : relative gap at which the first-order method has done its part
    first : most rows of W of the first programme
    width : margins at most so far from 1 are of hinges of the first programme
    seconds : limit of the time of HiGHS and of the start, which has half of it at most; None takes that of the run

    References
    ----------
    Dedieu, Mazumder, Wang, JMLR 23, 2022 (first-order start, columns and constraints generated for l1, l1,inf and Slope norms).
    """

    start_gap: float = 0.005
    first: int = 150
    width: float = 0.1
    seconds: float | None = None

    name: ClassVar[str] = "generated_lp"
    requires: ClassVar[frozenset[Capability]] = SmoothedGradient.requires
    takes = (hinges_under(L1Inf), hinges_under(L1TaskBalls))
    takes_intercept: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real_number("start_gap", self.start_gap, strict=True)
        whole_number("first", self.first, minimum=1)
        real_number("width", self.width)
        unless_none(real_number, "seconds", self.seconds)

    @property
    def version(self) -> str:
        return f"{super().version} (highspy {metadata.version('highspy')})"

    def limited_to(self, seconds: float | None) -> GeneratedLP:
        return self if self.seconds is not None else replace(self, seconds=seconds)

    def warm_up(self) -> None:
        _new_highs().run()
        norm_l1inf(np.zeros((2, 2)))  # which follows the first-order method: a rehearsal may end before

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        return self.resume(problem, Iterate(problem.start_point() if start is None else start))

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
        """`steps` from the point of `start`, and from its dual point where it has one."""
        self.refuse_state(start)
        spent = began = 0.0
        limit = math.inf if self.seconds is None else self.seconds
        iterates = self._iterates(problem, start, lambda: max(0.0, limit - spent - (time.perf_counter() - began)))
        while True:
            began = time.perf_counter()
            iterate = next(iterates, None)
            spent += time.perf_counter() - began
            if iterate is None:
                return
            yield iterate

    def _iterates(self, problem: Problem, start: Iterate, seconds_left: Callable[[], float]) -> Iterator[Iterate]:
        last = start
        for last in SmoothedGradient().resume(problem, Iterate(start.primal, start.dual)):
            gap = _gap(problem, last) if last.step % _LOOK_EVERY == 0 and last.dual is not None else math.inf
            yield last._replace(state=None, claim=gap)
            is_late = self.seconds is not None and last.dual is not None and seconds_left() <= 0.5 * self.seconds
            if gap <= self.start_gap or last.step >= _MOST_STEPS or is_late:
                break
        assert last.dual is not None
        form = problem.form(Hinges)
        forms = form.of_tasks() if isinstance(form.regulariser, L1TaskBalls) else [form]
        points = np.split(last.primal, len(forms), axis=1)
        duals = np.split(form.design.stack(last.dual), np.cumsum([each.design.n_examples for each in forms])[:-1])
        runs = [_Run(each, W, each.design.unstack(a), self) for each, W, a in zip(forms, points, duals, strict=True)]
        step, work, gap = last.step, last.work, math.inf
        while unfinished := [run for run in runs if not run.is_done]:
            for run in unfinished:
                run.advance(seconds_left(), anew=gap > _ANEW_GAP)
            step, work = step + 1, work + 2.0
            dual = form.design.unstack(np.concatenate([run.dual for run in runs]))
            iterate = Iterate(np.concatenate([run.point for run in runs], axis=1), dual, step, work)
            gap = _gap(problem, iterate)
            features, hinges = sum(run.in_J.sum() for run in runs), sum(run.in_I.sum() for run in runs)
            ending = next((run.ending for run in runs if run.ending), None)
            yield iterate._replace(note=ending or f"{features} rows of W and {hinges} hinges; gap {gap:.1e}", claim=gap)


def _gap(problem: Problem, iterate: Iterate) -> float:
    """Return the relative gap of an iterate by plain bounds."""
    assert iterate.dual is not None
    objective, (bound,) = problem.bounds(iterate.primal, [iterate.dual])
    return max(0.0, objective - bound) / max(abs(objective), TINIEST)


class _Run:
    """The programmes of one problem under an l1,inf norm; `point` and `dual`, stacked, are what the last one has proven.

    Its variables are (p, n, t, x, b), with the intercepts b if there are any, and its rows (hinges, norms, the sum of all t), tasks before
    features and examples. `_columns` and `_rows` have for those of all features and hinges where they are in the basis.
    """

    def __init__(self, form: Hinges, W: Array, dual: Array, options: GeneratedLP) -> None:
        design, (d, m), n = form.design, W.shape, form.design.n_examples
        self._form, self._first = form, options.first
        self.point, self.dual, self.is_done, self.ending = W, design.stack(dual), False, ""
        self._labels, self._weights = design.stack(form.labels), design.stack(form.weights)
        self._unit = float(self._weights.max()) or 1.0  # HiGHS's tolerances are absolute: dual variables are in [0, 1]
        self._radius = form.radius if form.radius is not None else form.objective(W) / form.penalty if form.penalty else math.inf
        margins = design.stack(form.margins(W))
        self.in_I = (np.abs(margins - 1.0) <= options.width) | (self._radius == math.inf)  # or the programme might be unbounded
        self._in_S = (margins < 1.0) & ~self.in_I
        scores = np.abs(form.adjoint(dual)).sum(axis=1)
        likely = W.any(axis=1) | (scores >= (1.0 - _CLOSE) * scores.max())
        self.in_J = np.zeros(d, dtype=bool)
        self.in_J[np.argsort(np.where(likely, -scores, 1.0), kind="stable")[: min(self._first, likely.sum())]] = True
        self._columns = np.zeros(2 * m * d + d + n + m * form.has_intercept, dtype=np.int64)
        self._rows = np.zeros(n + m * d + 1, dtype=np.int64)
        self._highs, self._has_new_features = _new_highs(), False

    def advance(self, seconds: float, *, anew: bool) -> None:
        """Solve a programme, within some seconds, from the last basis or anew, and let in what its solution violates."""
        import highspy

        form, (d, m), highs = self._form, self.point.shape, self._highs
        entries = np.tile(self.in_J, m)
        columns = np.flatnonzero(np.concatenate([entries, entries, self.in_J, self.in_I, np.ones(m * form.has_intercept, dtype=bool)]))
        rows = np.flatnonzero(np.concatenate([self.in_I, entries, [True]]))
        highs.passModel(self._programme())
        if not anew:
            basis, numbers = highspy.HighsBasis(), (self._columns[columns].tolist(), self._rows[rows].tolist())
            basis.col_status, basis.row_status = (list(map(highspy.HighsBasisStatus, each)) for each in numbers)
            basis.valid = True
            highs.setBasis(basis)
        highs.setOptionValue("solver", "ipx" if anew else "simplex")
        highs.setOptionValue("simplex_strategy", _PRIMAL if self._has_new_features else _DUAL)
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)  # its clock runs on from one run to the next
        highs.run()
        status = highs.modelStatusToString(highs.getModelStatus())
        if status != "Optimal":
            self.is_done, self.ending = True, f"HiGHS ends with '{status}'"
            return
        solution, basis = highs.getSolution(), highs.getBasis()
        self._columns[columns], self._rows[rows] = list(map(int, basis.col_status)), list(map(int, basis.row_status))
        values, duals = np.zeros(len(self._columns)), np.zeros(len(self._rows))
        values[columns], duals[rows] = solution.col_value, solution.row_dual
        p, n = values[: 2 * m * d].reshape(2, m, d)
        W = np.ascontiguousarray((p - n).T)
        self.point = W * min(1.0, self._radius / max(norm_l1inf(W), TINIEST))
        a = np.where(self.in_I, self._unit * duals[: len(self.in_I)], self._weights * self._in_S)
        self.dual = form.design.stack(form.admissible(form.design.unstack(a)))
        level = (form.penalty or 0.0) - self._unit * float(duals[-1])
        self._let_in(values[len(values) - m :] if form.has_intercept else np.zeros(m), level)

    def _let_in(self, intercepts: Array, level: float) -> None:
        """Let in hinges whose margins are on the other side of 1, and features whose dual norms are above the level."""
        form, design, (d, m) = self._form, self._form.design, self.point.shape
        margins = self._labels * design.stack(design.forward(self.point) + design.per_example(intercepts))
        joins = ~self.in_I & (np.where(self._in_S, margins - 1.0, 1.0 - margins) > _SLACK)
        G = form.adjoint(design.unstack(self.dual))
        scores = np.where(self.in_J, 0.0, np.abs(G).sum(axis=1))
        most = max(self._first, int(_GROWTH * self.in_J.sum()))
        features = np.argsort(-scores, kind="stable")[: min(most, int((scores > (1.0 + _SLACK) * level).sum()))]
        self._has_new_features = len(features) > 0
        self.is_done = not joins.any() and not self._has_new_features
        # A hinge of S is the basic variable of its row at the cost that it had, any other has no cost; of a feature p or n is basic at 0,
        # so that p, n and their rows have the right duals, and t alone a wrong one.
        hinges = np.flatnonzero(joins)
        self._columns[2 * m * d + d + hinges] = np.where(self._in_S[hinges], _BASIC, _LOWER)
        self._rows[hinges] = np.where(self._in_S[hinges], _LOWER, _BASIC)
        p_and_n, links = self._columns[: 2 * m * d].reshape(2, m, d), self._rows[len(joins) : -1].reshape(m, d)
        is_positive = G[features].T > 0.0
        p_and_n[:, :, features] = np.where([is_positive, ~is_positive], _BASIC, _LOWER)
        links[:, features] = _UPPER
        self.in_J[features] = True
        self.in_I, self._in_S = self.in_I | joins, self._in_S & ~joins

    def _programme(self) -> Any:
        """Return the programme of the features and hinges that are in."""
        import highspy

        form, design, m = self._form, self._form.design, self.point.shape[1]
        features = np.flatnonzero(self.in_J)
        J, few, signed, labels = len(features), design.restricted(features), [], []
        for k, within in enumerate(np.split(self.in_I, np.cumsum(design.sizes)[:-1])):
            chosen = np.flatnonzero(within)
            y = design.task_outputs(form.labels, k)[chosen]
            labels.append(y[:, None])
            signed.append(sp.diags_array(y) @ sp.csr_array(few.block(k))[chosen])
        H, entries = sp.block_diag(signed, format="csr"), sp.eye_array(m * J)
        n = H.shape[0]
        blocks = [
            [H, -H, None, sp.eye_array(n), sp.block_diag(labels)],
            [entries, entries, -sp.kron(np.ones((m, 1)), sp.eye_array(J)), None, None],
            [None, None, np.ones((1, J)), None, None],
        ]
        A = sp.block_array([row[: 4 + form.has_intercept] for row in blocks], format="csr")
        linear = design.unstack(self._weights * self._in_S)
        c = form.adjoint(linear)[features].T.ravel()
        balance = design.task_sums(form.labels * linear)[: m * form.has_intercept]
        counts, reach = (2 * m * J + J + n, len(balance)), 0.0
        if form.has_intercept:  # best ones have a hinge at its bend
            reach = 1.0 + self._radius * max(float(abs(design.block(k)).max()) for k in range(1 if design.is_shared else m))
        programme = highspy.HighsLp()
        programme.num_row_, programme.num_col_ = A.shape
        programme.col_cost_ = np.concatenate([-c, c, np.full(J, form.penalty or 0.0), self._weights[self.in_I], -balance]) / self._unit
        programme.col_lower_, programme.col_upper_ = np.repeat([0.0, -reach], counts), np.repeat([math.inf, reach], counts)
        programme.row_lower_ = np.repeat([1.0, -math.inf], (n, m * J + 1))
        programme.row_upper_ = np.repeat([math.inf, 0.0, self._radius], (n, m * J, 1))
        matrix = programme.a_matrix_
        matrix.format_, matrix.start_, matrix.index_, matrix.value_ = highspy.MatrixFormat.kRowwise, A.indptr, A.indices, A.data
        return programme


def _new_highs() -> Any:
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", pinned_thread_count())
    return highs
