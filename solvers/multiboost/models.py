"""The loss of a boosting problem as a smooth function of scores, with its second derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.types import Array
from bench_mtl.model.margins import HingeFit, MulticlassFit, PairwiseFit
from bench_mtl.projections import project_simplex

#: Numbers of columns, class by class.
Columns = Sequence[NDArray[np.intp]]


class ScoreModel(ABC):
    """A smooth convex function of scores, n x K; here that of the fit itself."""

    kept: tuple[str, ...] = ()

    def __init__(self, fit: MulticlassFit) -> None:
        self.fit = fit

    def value(self, scores: Array) -> float:
        return self.fit.value(scores)

    def duals(self, scores: Array) -> Array:
        """The U whose residuals are minus the derivative."""
        return self.fit.duals(scores)

    def gain(self, dual: Array) -> float:
        """Minus the conjugate at minus the residuals of U."""
        return self.fit.gain(dual)

    @abstractmethod
    def hessian(self, scores: Array, X: Array, columns: Columns) -> Array:
        """Second derivatives of W -> f(X W) in the entries of W in these columns of X, class by class."""

    @abstractmethod
    def curvature(self, scores: Array) -> tuple[Callable[[Array], Array], Array]:
        """Second derivatives in the scores, as a product with directions n x K, and their diagonal, n x K."""


@final
class PairModel(ScoreModel):
    """1/(n K) sum_ir l(rho_ir). Of an example the Hessian in its scores is the Laplacian of a star around its label, with the weights
    a_ir = l''(rho_ir) / (n K)."""

    fit: PairwiseFit

    def __init__(self, fit: PairwiseFit) -> None:
        super().__init__(fit)
        self._labels = fit.classes[:, None] == np.arange(fit.design.n_tasks)
        self._members = [np.flatnonzero(members) for members in self._labels.T]

    def _weights(self, scores: Array) -> Array:
        """a, 0 at the labels."""
        a = self.fit.loss.second(self.fit.margins(scores)) / scores.size
        a[self._labels] = 0.0
        return a

    def hessian(self, scores: Array, X: Array, columns: Columns) -> Array:
        a = self._weights(scores)
        total = a.sum(axis=1)
        ends = np.cumsum([0, *map(len, columns)])
        M = np.zeros((ends[-1], ends[-1]))
        for r, (members, chosen) in enumerate(zip(self._members, columns, strict=True)):  # which couple their label with every other class
            if len(members) and len(chosen):
                rows = X[members]
                weighted = [rows[:, those] * a[members, other][:, None] for other, those in enumerate(columns)]
                M[ends[r] : ends[r + 1]] = -(rows[:, chosen].T @ np.concatenate(weighted, axis=1))
        M += M.T
        for r, chosen in enumerate(columns):
            own, H = slice(ends[r], ends[r + 1]), X[:, chosen]
            M[own, own] += H.T @ (H * (a[:, r] + total * self._labels[:, r])[:, None])
        return M

    def curvature(self, scores: Array) -> tuple[Callable[[Array], Array], Array]:
        a = self._weights(scores)
        return lambda S: self.fit.residuals(a * self.fit.margins(S)), np.where(self._labels, a.sum(axis=1)[:, None], a)


@final
class CentredHinge(ScoreModel):
    """1/n sum_i max_p <p, losses_i> - smoothing / 2 ||p - q_i||^2 over the simplex, with centres q: the augmented Lagrangian of the hinge.

    Of an example the Hessian in its scores is (diag(s) - s s^T / |s|) / (n smoothing), s the support of p.
    """

    kept = ("smoothing", "centres")
    fit: HingeFit

    def __init__(self, fit: HingeFit, smoothing: float, centres: Array) -> None:
        super().__init__(fit)
        self.smoothing = smoothing
        self.centres = centres
        self._rows = np.arange(len(centres))

    def probabilities(self, scores: Array) -> tuple[Array, Array]:
        """p and the losses."""
        losses = 1.0 - self.fit.margins(scores)
        losses[self._rows, self.fit.classes] = 0.0
        return project_simplex(losses / self.smoothing + self.centres, axis=1), losses

    def value(self, scores: Array) -> float:
        p, losses = self.probabilities(scores)
        away = p - self.centres
        return float((p * losses).sum() - 0.5 * self.smoothing * (away * away).sum()) / len(p)

    def duals(self, scores: Array) -> Array:
        p = self.probabilities(scores)[0] / len(scores)
        p[self._rows, self.fit.classes] = 0.0
        return p

    def gain(self, dual: Array) -> float:
        p = dual * len(dual)  # on the simplex, of which U has the off-label part by 1/n
        p[self._rows, self.fit.classes] = 1.0 - p.sum(axis=1)
        away = p - self.centres
        return self.fit.gain(dual) - 0.5 * self.smoothing * float((away * away).sum()) / len(dual)

    def hessian(self, scores: Array, X: Array, columns: Columns) -> Array:
        support = self.probabilities(scores)[0] > 0.0
        mixed = np.flatnonzero(support.sum(axis=1) > 1)
        ends = np.cumsum([0, *map(len, columns)])
        M: Any = np.zeros((ends[-1], ends[-1]))
        if not len(mixed):
            return M
        support, H = support[mixed].astype(np.float64), X[mixed]
        parts = [H[:, chosen] * support[:, r][:, None] for r, chosen in enumerate(columns)]
        for r, part in enumerate(parts):
            own = slice(ends[r], ends[r + 1])
            M[own, own] = part.T @ part
        joint = np.concatenate(parts, axis=1) / np.sqrt(support.sum(axis=1))[:, None]
        M -= joint.T @ joint
        return np.asarray(M / (self.smoothing * len(scores)))

    def curvature(self, scores: Array) -> tuple[Callable[[Array], Array], Array]:
        support = (self.probabilities(scores)[0] > 0.0).astype(np.float64)
        share = support / support.sum(axis=1, keepdims=True)
        scale = 1.0 / (self.smoothing * len(scores))

        def apply(S: Array) -> Array:
            return scale * (support * S - share * (support * S).sum(axis=1, keepdims=True))

        return apply, scale * (support - support * share)
