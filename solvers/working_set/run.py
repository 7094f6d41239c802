"""A run of `working_set` on one problem under an l1,inf norm: an interior-point method whose rows come and go."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import Design
from bench_mtl.core.types import NEGLIGIBLE_SHARE, Array, gap_up_to_rounding
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.regularisers import Penalty
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.solver import PATIENCE, SMALLEST_GAP, equations_of, with_interior
from bench_mtl.solvers.interior_point.step import next_state
from bench_mtl.solvers.interior_point.system import bytes_needed
from bench_mtl.solvers.working_sets import Places, joining

#: The root of a row's equation is found to this relative accuracy, within so many Newton steps, which converge from the right.
_ACCURACY, _STEPS = 1e-10, 40
#: Rows join whose dual norm is within this share of the level, or less where the relative gap is below the second number: by its root,
#: for dual points move less and less.
_WIDTH, _WIDE_GAP = 0.25, 0.1
#: Rows leave from beyond this multiple of that share, if their bound is below this share of the average, and the set is made anew for it
#: only if this share of it leaves.
_FARTHER, _SMALL_BOUND, _FEWER = 2.0, 0.01, 0.05
#: A set becomes no more than twice as large at once, or larger by this number of rows.
_GROWTH = 250
#: A set that becomes at least so many times as large above this relative gap is solved from zero: few iterations are lost, and a point
#: that is central on a few of its rows is far from the central path on all.
_ANEW_GROWTH, _ANEW_GAP = 2.0, 0.7
#: Residuals are those of rows that have joined above this relative gap, and of rounding below it.
_ROUNDED_GAP = 1e-5
#: A run that rounding ends above this relative gap starts again, on the same rows and then on all of them.
_SMALL_GAP, _FRESH_STARTS = 1e-10, 2
#: Centrality correctors at most, by what a factorisation costs in solves: at least the first number with the second. The costs are in
#: operations, of which a product of matrices does so many in the time of one elsewhere; an example costs a solve so many, and a pair of
#: entries in a row of a sparse design a factorisation.
_CORRECTORS = ((2.5, 4), (1.0, 3), (0.0, 2))
_QUICKER, _EXAMPLE_COST, _PAIR_COST = 8.0, 40.0, 2.0


class Run:
    """The state of a run. `point` is d x m, or with entries 2 x d x m; `dual` has the output shape of the design.

    The rows of the feasible point W, where it starts, are in the first set. It ends where the factors of a set would need more `bytes`.
    """

    kept = (
        "point", "dual", "work", "relative_gap", "is_done", "_has_left", "_rows", "_x", "_careful", "_best", "_waited", "_fresh_starts",
        "_is_known", "_uncounted",
    )  # fmt: skip

    def __init__(self, form: LinearForm, W: Array, first: int, bytes: float, threads: int | None) -> None:
        self._form, self._bytes, self._threads = form, bytes, threads
        self._shape, self._first = W.shape, first
        self._raised = with_interior(form)
        self.dual = form.dual_at_zero()
        self._has_left = np.zeros(form.design.n_features, dtype=bool)
        scores = self._scores(form.adjoint(self.dual))
        is_zero = form.radius == 0.0 or not scores.any()  # which the dual point proves to be optimal
        self.point, self.work, self.note, self.relative_gap = np.zeros(W.shape) if is_zero else W, 0.5, "", 0.0 if is_zero else 1.0
        top = np.sort(np.argsort(-scores, kind="stable")[:first])
        rows = np.union1d(np.flatnonzero(rows_in_use(W)), top)
        self._fresh_starts, self._uncounted = _FRESH_STARTS, 0.0
        # Where the rows of the start are too many, those are left that a start at zero would have.
        self.is_done = is_zero or not (self._use(rows) or self._use(top))
        if not self.is_done:
            self.note = ""
            self._start(W)

    def _start(self, W: Array) -> None:
        start = self._equations.start(np.swapaxes(W[..., self._rows, :], -1, -2))
        assert start is not None  # the row of the highest score is in every set
        self._x, self._careful = start, False
        self._best, self._waited = math.inf, 0

    def _start_again(self) -> bool:
        """Start from zero, on all rows the second time; returns whether that is possible, and may help."""
        if self.relative_gap <= _SMALL_GAP or self._fresh_starts == 0:
            return False
        self._fresh_starts -= 1
        rows = self._rows if self._fresh_starts else np.arange(self._form.design.n_features)
        if not self._use(rows):
            return False
        self._has_left[rows] = True
        self._start(np.zeros(self._shape))
        return True

    def _use(self, rows: Places) -> bool:
        """Have these rows from now on; returns whether memory allows."""
        form = self._raised.restricted(rows)
        needed = bytes_needed(form.design)
        if needed > self._bytes:
            self.note = f"ended: the factors of {len(rows)} rows would need {needed / 2**30:.3g} GiB"
            return False
        self._rows, self._equations = rows, equations_of(form, self._threads)
        self._correctors = next(number for least, number in _CORRECTORS if _solves_a_factor(form.design) >= least)
        self._share, self._is_known, self._used = form.design.n_stored / max(1, self._form.design.n_stored), False, rows
        return True

    def advance(self) -> bool:
        """Take one step of the interior-point method, and choose the rows of the next; returns False where none can be taken."""
        if self._used is not self._rows:  # of an earlier run
            is_known = self._is_known
            self._use(self._rows)
            if is_known:
                self._equations.objective(self._x)
            self._equations.system.work = self._uncounted
        rounded = self.relative_gap < _ROUNDED_GAP or self._fresh_starts < _FRESH_STARTS
        x, self._careful = next_state(self._equations, self._x, self._careful, correctors=self._correctors, rounded=rounded)
        self.work += self._share * self._equations.system.work  # on the rows, in passes over all data
        self._equations.system.work = 0.0
        if x is None:
            self.is_done = not self._start_again()
            return not self.is_done and self.advance()
        self._x = x
        equations = self._equations
        self.dual = equations.dual_point(x)
        self.point = np.zeros(self._shape)
        self.point[..., self._rows, :] = equations.point(x)
        G = self._form.adjoint(self.dual)
        self.work += 0.5
        self.relative_gap, self._is_known = self._gap(G), True
        joined = self._choose(G)
        self._best, self._waited = (x.gap, 0) if joined or x.gap < 0.5 * self._best else (self._best, self._waited + 1)
        if self._waited >= PATIENCE or x.gap <= SMALLEST_GAP * equations.scale:
            self.is_done = not self._start_again()
        self._uncounted = self._equations.system.work
        return True

    def _gap(self, G: Array) -> float:
        """Return the gap of the whole problem relative to the objective, or to a share of what it is at 0."""
        upper = self._equations.objective(self._x)
        gap = gap_up_to_rounding(upper, self._form.bound(self.dual, G), NEGLIGIBLE_SHARE * self._equations.scale)
        return min(1.0, gap) if math.isfinite(gap) else gap

    def _scores(self, G: Array) -> Array:
        """Return the dual norms of all rows of G, those of entries in units in which their penalty is that of rows."""
        scores = np.abs(G).sum(axis=1)
        of_entries = self._raised.parts[1:] if G.any() else ()  # where all are 0, penalties may be 0 too
        for part in of_entries:
            assert isinstance(part, Penalty)
            assert self._raised.penalty is not None
            scores = np.maximum(scores, self._raised.penalty / part.weight * np.abs(G).max(axis=1))
        return scores

    def _choose(self, G: Array) -> bool:
        """Let rows join and leave; returns whether any has joined."""
        x, rows = self._x, self._rows
        if len(rows) == self._form.design.n_features <= self._first:  # where a set can be no larger, it need not be smaller
            return False
        scores, sizes = self._scores(G), self._equations.sizes(x)
        new, may_leave = changes(scores, rows, sizes, self._equations.theta(x), self.relative_gap)
        leaves = may_leave & ~self._has_left[rows]  # once, so that no set comes back for ever
        if not len(new) and leaves.sum() <= _FEWER * len(rows):
            return False
        before, chosen = self._equations, np.union1d(rows[~leaves], new)
        self._has_left[rows[leaves]] = True
        if not self._use(chosen):
            self.is_done = True
        elif begins_anew(self.relative_gap, len(rows), len(chosen)):
            self._start(np.zeros(self._shape))
        else:
            self._x = moved(x, before, rows, self._equations, chosen, G)
        return len(new) > 0


def changes(scores: Array, rows: Places, sizes: Array, theta: float, gap: float) -> tuple[Places, NDArray[np.bool_]]:
    """Return the rows that join a set, and which of it may leave.

    Scores are the norms of the dual rows of all rows of W, sizes those of the rows of the set, and theta the dual of the radius, or the
    penalty.
    """
    level = max(theta, float(scores[rows].max()))
    width = _WIDTH * min(1.0, math.sqrt(gap / _WIDE_GAP))
    new = joining(scores, (1.0 - width) * level, rows, max(_GROWTH, len(rows)))
    return new, (scores[rows] < (1.0 - _FARTHER * width) * level) & (sizes < _SMALL_BOUND * sizes.mean())


def begins_anew(gap: float, before: int, after: int) -> bool:
    """Return whether a set that has so many rows instead is solved from zero."""
    return gap > _ANEW_GAP and after >= _ANEW_GROWTH * before


def rows_in_use(point: Array) -> NDArray[np.bool_]:
    """Return of a point, or of a stack of them, in which rows it has anything but 0."""
    return np.asarray(point.reshape(-1, *point.shape[-2:]).any(axis=(0, 2)))


def _solves_a_factor(design: Design) -> float:
    """Return about what a factorisation of the Newton system costs, in solves with it."""
    m, d, n = design.n_tasks, design.n_features, design.n_examples
    stored = design.n_stored * (m if design.is_shared else 1)
    products = _PAIR_COST * stored**2 / n if design.is_sparse else n * d * d / _QUICKER
    return (products + m * d**3 / _QUICKER) / (_EXAMPLE_COST * n + 4.0 * stored + 2.0 * m * d * d)


def moved(x: State, old: Equations, rows: Places, new: Equations, chosen: Places, G: Array) -> State:
    """Return x, a point on `rows`, as one on `chosen`.

    A row that stays keeps its numbers, one that leaves takes them along, and one that joins begins on the central path, where its dual
    row is `G` (d x m, of the whole problem) and its products of slacks and duals are the average of x. All that this leaves amiss are
    residuals, which an infeasible interior-point method removes.
    """
    stays = np.isin(chosen, rows, assume_unique=True)
    places = np.searchsorted(rows, chosen[stays])
    m, size = len(x.W), len(chosen)
    W, mu = np.empty((m, size)), np.empty(size)
    slack, dual = np.empty(new.layout.size), np.empty(new.layout.size)
    fresh_G, product = G[chosen[~stays]].T, x.gap / x.slack.size
    joining = central_rows(fresh_G, old.theta(x), product, old.highest_norm)
    W[:, stays], mu[stays] = x.W[:, places], x.mu[places]
    W[:, ~stays], mu[~stays] = joining.W, joining.mu
    bounds = [*new.layout.bounds(slack), *new.layout.bounds(dual)]
    before = [*old.layout.bounds(x.slack), *old.layout.bounds(x.dual)]
    begun = [*joining.slack, *joining.dual]
    if old.entry_penalty is not None:
        within = np.clip(fresh_G, -old.highest_norm * old.entry_penalty, old.highest_norm * old.entry_penalty)
        duals = old.entry_penalty - within, old.entry_penalty + within
        bounds += (*new.layout.signed(slack), *new.layout.signed(dual))
        before += (*old.layout.signed(x.slack), *old.layout.signed(x.dual))
        begun += (product / duals[0], product / duals[1], *duals)
    for part, kept, fresh in zip(bounds, before, begun, strict=True):
        part[:, stays], part[:, ~stays] = kept[:, places], fresh
    for vector, source in ((slack, x.slack), (dual, x.dual)):
        vector[new.layout.examples] = source[old.layout.examples]
        vector[new.layout.entries.stop :] = source[old.layout.entries.stop :]
    return State(W, mu, slack, dual, x.free, x.b)


def central_rows(G: Array, level: float, product: float, highest: float) -> State:
    """Return rows of W on the central path at their dual rows: u p = v q = `product`, p - q = G, sum_k (p + q)_k = `level`.

    G is m x r, a column a row of W. One whose sum of moduli is above the share `highest` of the level is scaled down to it. With
    p + q = s + sqrt(s^2 + G^2) the last equation gives s > 0, and mu = product / s. `slack` and `dual` of the
    state are (u, v) and (p, q), 2 x m x r.
    """
    magnitudes = np.abs(G)
    norms = magnitudes.sum(axis=0)
    highest *= level
    factors = np.where(norms > highest, highest / np.where(norms > 0.0, norms, 1.0), 1.0)
    magnitudes = magnitudes * factors
    # Convex and increasing in s, and not below 0 here.
    s = (level - factors * norms) / len(G)
    for _ in range(_STEPS):
        roots = np.hypot(s, magnitudes)
        slopes = (1.0 + s / np.where(roots > 0.0, roots, 1.0)).sum(axis=0)
        change = ((s + roots).sum(axis=0) - level) / slopes
        s = np.maximum(s - change, 1e-3 * s)
        if np.all(np.abs(change) <= _ACCURACY * s):
            break
    roots = np.hypot(s, magnitudes)
    large = 0.5 * (s + roots + magnitudes)
    small = 0.5 * s * (1.0 + s / (roots + magnitudes))  # (s + roots - magnitudes) / 2 without cancellation
    dual = np.where(G >= 0.0, np.stack([large, small]), np.stack([small, large]))
    slack = product / dual
    return State(0.5 * (slack[1] - slack[0]), product / s, slack, dual)
