"""The restricted problem of column generation: prox-gradient steps that find the face, Newton steps on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bench_mtl.core.types import Array
from bench_mtl.model.forms import GroupForm
from bench_mtl.solvers.multiboost.models import ScoreModel
from bench_mtl.solvers.multiboost.quadratics import Applied, Quadratic, Stored

#: The smallest L as a share of max |G| max |X|: where f is flat, no column changes a score by more than about one over this.
_SMALLEST_CURVATURE = 1e-3
#: Entries up to this count as 0.
_NOTHING = 1e-100
#: Share of the mean diagonal that is added to a Hessian at least, so that it can be factorised where columns are dependent.
_LEAST_DAMPING = 1e-12
#: Armijo: a step must lower the objective by this share of its length times the slope.
_ARMIJO = 1e-4
#: The rounding error of the objective, relative to it.
_ROUNDING = 1e-14

_HALVINGS = 4
#: The largest number of entries whose second derivatives are stored; with the l1,inf norm they are stored for any number.
_MOST_STORED = 700
#: The number of dampings that a Newton step tries.
_ATTEMPTS = 4
#: Rounds of exchanges between the entries that a Newton step holds at 0 and the others.
_EXCHANGES = 4


class Restricted:
    """min f(X W) + penalty(W) over W >= 0, for columns X of the design that may become more.

    Counts its products with X and X^T in `products` (multiplications).
    """

    kept = ("model", "W", "scores", "products", "_L", "_damping", "objective", "duals", "G")

    def __init__(self, form: GroupForm, model: ScoreModel, X: Array, W: Array, scores: Array) -> None:
        self.form, self.model, self.X = form, model, X
        self.W, self.scores = W, scores
        self.products = 0.0
        self._L = 0.0
        self._damping = 1e-10
        self.refresh()

    def grow(self, X: Array) -> None:
        """Take more columns, the old ones first."""
        m, K = self.W.shape
        self.X = X
        self.W = np.concatenate([self.W, np.zeros((X.shape[1] - m, K))])
        self.refresh()

    def refresh(self) -> None:
        """Compute value and gradient at W from its scores."""
        self.objective = self._objective(self.W, self.scores)
        self.duals = self.model.duals(self.scores)
        self.G = self.X.T @ self.form.fit.residuals(self.duals)
        self._count()

    def true_objective(self) -> float:
        """Return the objective with the loss itself, not its model."""
        return self.model.fit.value(self.scores) + self.form.penalty(self.W)

    def gap(self) -> float:
        """Return the gap of the restricted problem, proven by the duals scaled down."""
        return self.true_objective() - self.model.fit.gain(self._scaled(self._largest))

    def model_gap(self) -> float:
        """Return the gap with the model in place of the loss."""
        return self.objective - self.model.gain(self._scaled(self._largest))

    def bound(self, largest: float) -> float:
        """Return the lower bound of the duals, where `largest` is the largest violation."""
        return self.model.fit.gain(self._scaled(largest))

    @property
    def _largest(self) -> float:
        return float(self.form.dual_norms(self.G).max(initial=0.0))

    def _scaled(self, largest: float) -> Array:
        return self.duals * min(1.0, self.form.nu / largest) if largest > 0.0 else self.duals

    def prox_step(self) -> None:
        """Take W <- prox(W + G / L) with a line search on L."""
        value = self.objective - self.form.penalty(self.W)
        if self._L == 0.0:
            self._L = self._first_curvature()
        self._L = max(self._L, _SMALLEST_CURVATURE * float(np.abs(self.G).max()) * float(np.abs(self.X).max()), 1e-200)
        for _ in range(60):
            new = self.form.prox(self.W + self.G / self._L, 1.0 / self._L)
            change = new - self.W
            scores = self.X @ new
            self._count()
            above = self.model.value(scores) - value + float((self.G * change).sum())
            if above <= 0.5 * self._L * float((change * change).sum()) + _ROUNDING * abs(value):
                self._L *= 0.7
                self._move(new, scores)
                return
            self._L *= 2.0

    def newton_step(self) -> None:
        """Step to about the minimiser of the quadratic model in the entries of W above 0, where that lowers the objective."""
        entries = Entries(self.form, self.W)
        if entries.size == 0:
            return
        M = self._curvature(entries)
        g = entries.penalty_gradient() - entries.gather(self.G)
        if not (M.mean > 0.0 and np.isfinite(M.mean)):
            return
        for _ in range(_ATTEMPTS):
            M.ridge = self._damping * M.mean
            target = entries.model_minimiser(M, g)
            if target is not None and self._search(entries, target, g):
                self._damping = max(_LEAST_DAMPING, 0.1 * self._damping)
                return
            self._damping = min(1.0, 100.0 * self._damping)

    def _curvature(self, entries: Entries) -> Quadratic:
        """Return the second derivatives of the objective: stored, or applied where they are many."""
        if entries.size <= _MOST_STORED or self.form.norm == "l1inf":
            self.products += self._hessian_price(entries)
            return Stored(self.model.hessian(self.scores, self.X, entries.columns) + entries.penalty_hessian())
        apply, weights = self.model.curvature(self.scores)
        X = np.ascontiguousarray(self.X)

        def product(v: Array) -> Array:
            self._count(2)
            return entries.gather(X.T @ apply(X @ entries.point(v))) + entries.penalty_product(v)

        blocks = []
        for r, chosen in enumerate(entries.columns):
            H = X[:, chosen]
            self.products += float(H.size * len(chosen))
            blocks.append(H.T @ (H * weights[:, r][:, None]))
        return Applied(product, entries.with_penalty(blocks))

    def _search(self, entries: Entries, target: Array, g: Array) -> bool:
        """Search on the way to the target for a decrease that meets the condition of Armijo; return whether there is one."""
        d = target - entries.values
        slope = float(g @ d) + entries.penalty_change(target)
        t, noise = 1.0, _ROUNDING * abs(self.objective)
        for _ in range(_HALVINGS if slope < noise else 0):
            new = entries.point(target if t == 1.0 else entries.values + t * d)
            scores = self.X @ new
            self._count()
            value = self._objective(new, scores)
            if value <= self.objective + _ARMIJO * t * slope or (-slope < 10.0 * noise and value <= self.objective + noise):
                self._move(new, scores)
                return True
            t *= 0.5
        return False

    def _move(self, W: Array, scores: Array) -> None:
        self.W, self.scores = W, scores
        self.refresh()

    def _objective(self, W: Array, scores: Array) -> float:
        return self.model.value(scores) + self.form.penalty(W)

    def _first_curvature(self) -> float:
        """Return the curvature of f along the gradient, by a step that changes scores a little, whatever the scale of X."""
        size = float(np.abs(self.G).max())
        if size == 0.0:
            return 1.0
        D = self.G / size
        self._count(2)
        ahead = self.X @ D
        step = 1e-3 / (float(np.abs(ahead).max()) or 1.0)
        U = self.model.duals(self.scores + step * ahead)
        change = self.X.T @ self.form.fit.residuals(U) - self.G
        return float(np.linalg.norm(change)) / (step * float(np.linalg.norm(D)))

    def _count(self, times: int = 1) -> None:
        self.products += times * float(self.X.size * self.W.shape[1])

    def _hessian_price(self, entries: Entries) -> float:
        sizes = np.array([len(chosen) for chosen in entries.columns], dtype=np.float64)
        return float(len(self.X)) * float((sizes**2).sum() + sizes.sum() ** 2 / len(sizes))


class Entries:
    """The entries of W above 0 (or so little that its square is 0), class by class, and the penalty as a function of them."""

    def __init__(self, form: GroupForm, W: Array) -> None:
        self._classes, self._rows = classes, rows = np.nonzero(W.T > _NOTHING)
        self._form, self._shape = form, W.shape
        self.columns = [rows[classes == r] for r in range(W.shape[1])]
        self.values = W[rows, classes]
        self.size = len(self.values)

    def gather(self, G: Array) -> Array:
        return G[self._rows, self._classes]

    def point(self, values: Array) -> Array:
        W = np.zeros(self._shape)
        W[self._rows, self._classes] = values
        return W

    def penalty_gradient(self) -> Array:
        """Return the gradient of the penalty; 0 for the l1,inf norm, whose kinks the model has."""
        nu = self._form.nu
        if self._form.norm == "l12":
            return nu * self.values / self._norms
        return np.full(self.size, nu if self._form.norm == "l1" else 0.0)

    def penalty_change(self, target: Array) -> float:
        """Return the change of the part of the penalty that `penalty_gradient` leaves out."""
        if self._form.norm != "l1inf":
            return 0.0
        tops = self.point(target).max(axis=1, initial=0.0) - self.point(self.values).max(axis=1, initial=0.0)
        return self._form.nu * float(tops.sum())

    def penalty_hessian(self) -> Any:
        if self._form.norm != "l12":
            return 0.0
        nu, norms = self._form.nu, self._norms
        unit = self.values / norms
        same = self._rows[:, None] == self._rows
        return nu * (np.diag(1.0 / norms) - np.where(same, unit[:, None] * (unit / norms), 0.0))

    def penalty_product(self, v: Array) -> Any:
        """The product of `penalty_hessian` with v."""
        if self._form.norm != "l12":
            return 0.0
        unit = self.values / self._norms
        along = np.bincount(self._rows, unit * v, self._shape[0])[self._rows]
        return self._form.nu * (v - unit * along) / self._norms

    def with_penalty(self, blocks: list[Array]) -> list[Array]:
        """The blocks of classes, to each of which that of `penalty_hessian` is added: a diagonal one."""
        if self._form.norm == "l12":
            diagonal = self._form.nu * (1.0 - (self.values / self._norms) ** 2) / self._norms
            starts = np.cumsum([0, *map(len, blocks)])
            for block, start in zip(blocks, starts, strict=False):
                block[np.diag_indices_from(block)] += diagonal[start : start + len(block)]
        return blocks

    @property
    def _norms(self) -> Array:
        """The norm of the row of every entry."""
        return np.sqrt(np.bincount(self._rows, self.values**2, self._shape[0]))[self._rows]

    def model_minimiser(self, M: Quadratic, g: Array) -> Array | None:
        """Return about argmin_v <g, v - w> + 1/2 (v - w)^T M (v - w) + kinks(v) over v >= 0, w the values, by block exchanges.

        Kinks are nu times the largest entries of rows (l1,inf), else none. In turn the model is minimised with some entries held at 0
        and some held equal, as the largest of their row; then all entries change place that violate a bound or would lower the model
        by leaving theirs. In the later rounds none leaves. None where M cannot be factorised.
        """
        h = g - M.times(self.values)
        kinks = self._form.norm == "l1inf"
        zero, top = np.zeros(self.size, dtype=bool), np.zeros(self.size, dtype=bool)
        if kinks:
            top = self.values >= self._row_tops(self.values)
        v = self.values
        for exchange in range(_EXCHANGES):
            found = self._held(M, h, zero, top, v)
            if found is None:
                return None
            v, leaving = found, exchange < _EXCHANGES // 2
            slopes = h + M.times(v) if leaving else np.zeros(self.size)
            new_zero = (zero | (v < 0.0)) & ~(zero & (slopes < 0.0))
            new_top = top
            if kinks:
                level = self._row_tops(np.where(top, v, -np.inf))
                new_top = (top & ~(slopes > 0.0)) | (~zero & (v > level))
                new_top &= ~new_zero
                missing = ~new_zero & ~np.isin(self._rows, self._rows[new_top])
                new_top |= missing & (v >= self._row_tops(np.where(missing, v, -np.inf)))
            if np.array_equal(new_zero, zero) and np.array_equal(new_top, top):
                break
            zero, top = new_zero, new_top
        return np.maximum(v, 0.0)

    def _row_tops(self, values: Array) -> Array:
        """The largest value of its row, for every entry."""
        tops = np.full(self._shape[0], -np.inf)
        np.maximum.at(tops, self._rows, values)
        return tops[self._rows]

    def _held(self, M: Quadratic, h: Array, zero: NDArray[np.bool_], top: NDArray[np.bool_], guess: Array) -> Array | None:
        """argmin_v <h, v> + 1/2 v^T M v + nu sum of tops, where v is 0 at some entries, and equal at those of a row that are on top."""
        v = np.zeros(self.size)
        free = np.flatnonzero(~zero)
        if not len(free):
            return v
        if not top.any():
            found = M.solve(free, -h[free], guess[free])
            if found is not None:
                v[free] = found
            return None if found is None else v
        assert isinstance(M, Stored)
        merge = self._merging(free, top[free])
        merged = M.solve_merged(merge, -(merge @ h) - self._form.nu * (merge @ top > 0.0))
        return None if merged is None else np.asarray(merge.T @ merged)

    def _merging(self, free: NDArray[np.intp], top: NDArray[np.bool_]) -> Any:
        """Return the free entries of every variable: those of a row that are on top share one, each other has its own."""
        _, variables = np.unique(np.where(top, self._rows[free], self._shape[0] + free), return_inverse=True)
        ones = np.ones(len(free))
        return sp.csr_array((ones, (variables, free)), shape=(int(variables.max()) + 1, self.size))
