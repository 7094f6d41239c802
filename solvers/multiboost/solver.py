"""Totally corrective boosting: columns of H join one round after another, and all their weights are refitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, final

import numpy as np

from bench_mtl.core.checks import is_sparse, real_number, unless_none, whole_number
from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array, Iterate, Matrix
from bench_mtl.model.forms import GroupForm
from bench_mtl.model.margins import HingeFit, MulticlassFit, PairwiseFit
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.multiboost.models import CentredHinge, PairModel, ScoreModel
from bench_mtl.solvers.multiboost.restricted import Restricted
from bench_mtl.solvers.working_sets import Places, joining

#: The smallest number of columns that join in a round, where the solver chooses their number.
_FEWEST = 10
#: The largest number of steps in a round; then columns may join again.
_LONGEST_ROUND = 100
#: Steps in a row that gain nothing but rounding end a round; of a hinge, steps that do not halve the gap.
_PATIENCE = 2
_HINGE_PATIENCE = 60
#: The smoothing of the hinge at first and at last, its factor at every new centre, and the share of the gap below which the gap of the
#: model has to fall before.
_SMOOTHING, _LEAST_SMOOTHING, _SHRINKAGE, _MODEL_SHARE = 0.3, 1e-3, 0.3, 0.3
#: The rounding error of the objective, relative to it.
_ROUNDING = 1e-15
#: A column joins where its violation exceeds nu by this share of nu: less is rounding.
_ABOVE = 1e-13


@dataclass(frozen=True)
class _ColumnGeneration(SteppingSolver):
    """The common part of both solvers."""

    columns: int | None = None
    accuracy: float = 0.1
    aim: float = field(default=0.0, repr=False)
    """The relative gap of the run, near which the gap of the whole problem is computed every step. Set by `aimed_at`."""

    takes = (GroupForm,)
    shows_start: ClassVar[bool] = False
    norms: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        unless_none(whole_number, "columns", self.columns, minimum=1)
        real_number("accuracy", self.accuracy, strict=True)

    @property
    def label(self) -> str:
        return self.name if self.columns is None else f"{self.name}_columns{self.columns}"

    def objection(self, problem: Problem) -> str | None:
        form = problem.form(GroupForm)
        if form.norm not in self.norms:
            return f"{self.label} is for the norms {' and '.join(self.norms)} of rows, and {problem.name} has {form.norm} here"
        return None

    def aimed_at(self, relative_gap: float) -> Self:
        return replace(self, aim=relative_gap)

    def stepper(self, problem: Problem) -> GenerationStepper:
        return GenerationStepper(problem.form(GroupForm), self)


@final
@dataclass(frozen=True)
class MultiboostGroup(_ColumnGeneration):
    """Column generation for f(H W) + nu sum_j ||W_j||, W >= 0 (MultiBoost-group)::

        working set A = {},  W = 0
        repeat  U = the duals at H_A W_A
                add to A the columns j outside with the largest ||max(H_j^T R(U), 0)||_* above nu
                W_A = about argmin f(H_A W_A) + nu sum_{j in A} ||W_j||

    until no column exceeds nu and the restricted problem is solved up to rounding. Only columns that have joined take part in the work
    of the restricted problem; a round ends with half a pass over all of them.

    The restricted problem is solved by steps of two parts: W <- prox(W + G / L) with a line search, which finds the face (the zeros of W,
    and for l1inf which entries are the largest of their rows), and a Newton step on what is above 0, damped where that is needed, with a
    line search: of many entries by conjugate gradients, which products with the columns and the blocks of classes as a preconditioner make
    cheap. The hinge is replaced by its augmented Lagrangian in the margins, max_p <p, losses> - smoothing/2 ||p - q||^2 over the
    simplex of every example: once that is solved well enough, q becomes the p found, and the smoothing less.

    Parameters
    ----------
    columns : largest number of columns that join in a round: 1 is the published algorithm. None for half as many as there are weak learners
        in use, and at least 10: rounds then are few.
    accuracy : a round ends when the proven gap of the restricted problem is below this share of that of the whole

    References
    ----------
    Paisitkriangkrai, Shen, van den Hengel, CVPR 2012, and its appendix, sections 1.1 to 1.3. Steps of the two kinds in turn: Bareilles,
    Iutzeler, Malick, Mathematical Programming 200, 2023. Growing working sets: Massias, Gramfort, Salmon, ICML 2018.
    Semismooth Newton steps on augmented Lagrangians: Li, Sun, Toh, SIAM Journal on Optimization 28, 2018.
    """

    name: ClassVar[str] = "multiboost_group"
    norms: ClassVar[tuple[str, ...]] = ("l12", "l1inf")


@final
@dataclass(frozen=True)
class MultiboostL1(_ColumnGeneration):
    """`MultiboostGroup` for the l1 norm: every class chooses its weak learners for itself (MultiBoost-l1)::

        min_W  f(H W) + nu sum_jr W_jr   subject to  W >= 0

    A column joins whose largest entry of H_j^T R(U) exceeds nu.

    Parameters
    ----------
    columns, accuracy : as in `MultiboostGroup`

    References
    ----------
    Shen, Hao, "A direct formulation for totally-corrective multi-class boosting", CVPR 2011.
    """

    name: ClassVar[str] = "multiboost_l1"
    norms: ClassVar[tuple[str, ...]] = ("l1",)


class WorkingSet:
    """The columns of H that have joined, in the order in which they did: their numbers, and the columns, dense and contiguous."""

    kept = ("numbers",)

    def __init__(self, X: Matrix, first: Places) -> None:
        self._source: Matrix = X.tocsc() if is_sparse(X) else X
        self.numbers = self._copied = first
        self._columns = np.asfortranarray(dense(self._source[:, first]))

    @property
    def columns(self) -> Array:
        if self._copied is not self.numbers:  # those of an earlier run
            self._columns, self._copied = np.asfortranarray(dense(self._source[:, self.numbers])), self.numbers
        return self._columns

    def join(self, new: Places) -> None:
        size = len(self.numbers)
        wider = np.empty((len(self._columns), size + len(new)), order="F")  # each column contiguous
        wider[:, :size], wider[:, size:] = self.columns, dense(self._source[:, new])
        self._columns = wider
        self.numbers = self._copied = np.concatenate([self.numbers, new])

    def point(self, W: Array) -> Array:
        """Return W with zero rows for all other columns."""
        whole = np.zeros((self._source.shape[1], W.shape[1]))
        whole[self.numbers] = W
        return whole


class GenerationStepper(Stepper):
    """Rounds, of which each lets columns join and then solves the restricted problem to some accuracy."""

    kept = (
        "_set", "_inner", "_step", "_passes", "_lowest", "_highest", "_target", "_in_round", "_objective_before", "_least_gap", "_idle",
        "_has_joined", "_has_stalled",
    )  # fmt: skip
    varying = ("set_numbers", "inner_W", "inner_G")

    def __init__(self, form: GroupForm, options: _ColumnGeneration) -> None:
        self._form, self._options, self._X = form, options, form.fit.design.block(0)
        self._hinge = isinstance(form.fit, HingeFit)

    def start(self, at: Iterate) -> GenerationStepper:
        rows = np.flatnonzero(at.primal.any(axis=1))
        self._set = WorkingSet(self._X, rows)
        W = np.ascontiguousarray(at.primal[rows])
        self._inner = Restricted(self._form, _first_model(self._form.fit), self._set.columns, W, self._set.columns @ W)
        self._entries = 2.0 * max(1, self._X.nnz if self._form.fit.design.is_sparse else self._X.size) * at.primal.shape[1]
        self._step = self._passes = self._in_round = self._idle = 0
        self._lowest, self._highest, self._target = np.inf, -np.inf, 0.0
        self._objective_before, self._least_gap = np.inf, np.inf
        self._has_joined = self._has_stalled = False
        return self

    def iterate(self, now: GenerationStepper) -> Iterate:
        inner = self._inner
        claim = self._claim()
        work = inner.products / self._entries + 0.5 * self._passes
        return Iterate(self._set.point(inner.W), inner.duals, self._step, work, claim=claim)

    def _claim(self) -> float | None:
        """Return the relative gap, up to rounding: that of the columns that have joined, which is no larger, while it misses the aim.

        None of a hinge, whose best objective and best bound are of different steps.
        """
        inner = self._inner
        if isinstance(inner.model, CentredHinge):
            return None
        value = inner.true_objective()
        gap = inner.gap()
        if gap <= self._options.aim * value:
            self._passes += 1
            gap = value - inner.bound(float(self._form.violations(inner.duals).max()))
        return gap / value if value > 0.0 else 0.0

    def step(self, now: GenerationStepper) -> GenerationStepper | None:
        """Take a step on the restricted problem, in a new round where the last one is over."""
        inner = self._inner
        inner.X = self._set.columns
        if not self._in_round or self._ends_round():
            if self._in_round and self._has_stalled and not self._has_joined:
                return None
            if not self._begin_round():
                return None
        self._objective_before = inner.objective
        inner.prox_step()
        inner.newton_step()
        self._step, self._in_round = self._step + 1, self._in_round + 1
        return self

    def _begin_round(self) -> bool:
        """Let columns join; return whether there are any."""
        inner = self._inner
        violations = self._form.violations(inner.duals)
        self._passes += 1
        self._lowest = min(self._lowest, inner.true_objective())
        self._highest = max(self._highest, inner.bound(float(violations.max())))
        used = int(inner.W.any(axis=1).sum())
        most = self._options.columns or max(_FEWEST, used // 2)
        new = joining(violations, self._form.nu * (1.0 + _ABOVE), self._set.numbers, most)
        self._set.join(new)
        if not len(self._set.numbers):
            return False
        inner.grow(self._set.columns)
        self._target, self._has_joined = self._options.accuracy * (self._lowest - self._highest), bool(len(new))
        self._in_round, self._idle, self._least_gap, self._has_stalled = 0, 0, np.inf, False
        return True

    def _ends_round(self) -> bool:
        """Return whether the last step has ended the round: its gap is below the target, or rounding allows no more; else go on."""
        inner = self._inner
        gap, noise = inner.gap(), _ROUNDING * abs(inner.objective)
        halved = gap <= 0.5 * self._least_gap
        self._least_gap = gap if halved else self._least_gap
        self._idle = 0 if halved or (not self._hinge and inner.objective <= self._objective_before - noise) else self._idle + 1
        self._has_stalled = self._idle == (_HINGE_PATIENCE if self._hinge else _PATIENCE) or gap <= noise
        if self._has_stalled or gap <= self._target:
            return True
        self._recentre(gap)
        return self._in_round == _LONGEST_ROUND

    def _recentre(self, gap: float) -> None:
        """Once the model of a hinge is solved well enough, centre it at the probabilities found, and smooth it less."""
        inner, model = self._inner, self._inner.model
        if isinstance(model, CentredHinge) and inner.model_gap() <= _MODEL_SHARE * gap:
            smoothing = max(_LEAST_SMOOTHING, _SHRINKAGE * model.smoothing)
            inner.model = CentredHinge(model.fit, smoothing, model.probabilities(inner.scores)[0])
            inner.refresh()


def _first_model(fit: MulticlassFit) -> ScoreModel:
    if isinstance(fit, PairwiseFit):
        return PairModel(fit)
    assert isinstance(fit, HingeFit)
    return CentredHinge(fit, _SMOOTHING, np.full(fit.design.output_shape, 1.0 / fit.design.n_tasks))
