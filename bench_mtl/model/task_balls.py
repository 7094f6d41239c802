"""A norm ball for every task: the columns of a matrix, each within a radius of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bench_mtl.core.rounding import UNIT, Interval, up
from bench_mtl.core.types import Array
from bench_mtl.model.norms import enclose_lengths, lengths
from bench_mtl.model.regularisers import Regulariser, RegulariserModel
from bench_mtl.projections import project_l1_ball, project_l2_ball


@dataclass(frozen=True)
class TaskBalls(Regulariser):
    """The matrices W with ||w_k|| <= radii_k for every column k."""

    radii: Array
    """At least 0, one a task."""
    norm: ClassVar[str]

    @abstractmethod
    def norms(self, W: Array) -> Array:
        """Return ||w_k|| of every column, m numbers."""

    @abstractmethod
    def dual_norms(self, G: Array) -> Array:
        """Return max <g_k, w> over ||w|| <= 1 for every column, m numbers."""

    @abstractmethod
    def enclose_norms(self, W: Array) -> Interval:
        """Return `norms` between bounds that hold in exact arithmetic."""

    @abstractmethod
    def enclose_dual_norms(self, G: Interval) -> Interval:
        """Return `dual_norms` between bounds that hold in exact arithmetic, of a G that is known between bounds."""

    def value(self, point: Array) -> float:
        return 0.0

    def enclose(self, point: Array) -> Interval:
        return Interval(0.0, 0.0)

    @np.errstate(all="ignore")
    def repair(self, point: Array) -> Array:
        """Return the projection, with columns that rounding has left outside scaled down; a feasible point as it is."""
        if np.all(self.enclose_norms(point).upper <= self.radii):
            return point
        V = self.prox(point, 1.0)
        sizes = self.enclose_norms(V)
        within = sizes.upper <= self.radii
        # By twice what a norm is uncertain by, so that the point is left alone when it comes again.
        factors = np.where(within, 1.0, self.radii / up(sizes.upper + sizes.width) * (1.0 - 8.0 * UNIT))
        V = V * factors
        return V * (self.enclose_norms(V).upper <= self.radii)  # all of it, unless a projection is wrong

    def excess(self, point: Array) -> float:
        over = np.maximum(self.norms(point) - self.radii, 0.0)
        return float((over / np.where(self.radii > 0.0, self.radii, 1.0)).max(initial=0.0))

    def enclose_support(self, G: Interval) -> tuple[Interval, Interval]:
        return (self.enclose_dual_norms(G) * self.radii).sum(), Interval(np.inf, np.inf)


@final
@dataclass(frozen=True)
class L1TaskBalls(TaskBalls):
    """Balls of the l1 norm, whose dual norm is the largest entry."""

    norm: ClassVar[str] = "l1"

    def norms(self, W: Array) -> Array:
        return np.asarray(np.abs(W).sum(axis=0))

    def dual_norms(self, G: Array) -> Array:
        return np.asarray(np.abs(G).max(axis=0, initial=0.0))

    def enclose_norms(self, W: Array) -> Interval:
        return Interval.of_sum(np.abs(W), axis=0)

    def enclose_dual_norms(self, G: Interval) -> Interval:
        return G.magnitude().largest(axis=0)

    def prox(self, point: Array, step_size: float) -> Array:
        radii = np.unique(self.radii)
        if len(radii) == 1:
            return project_l1_ball(point, float(radii[0]), axis=0)
        V = np.empty(point.shape, order="F")
        for radius in radii:
            same = np.flatnonzero(self.radii == radius)
            V[:, same] = project_l1_ball(np.asfortranarray(point[:, same]), float(radius), axis=0)
        return np.ascontiguousarray(V)

    def vertex(self, direction: Array) -> Array:
        W = np.zeros(direction.shape)
        places = np.abs(direction).argmax(axis=0), np.arange(direction.shape[1])
        W[places] = -self.radii * np.sign(direction[places])
        return W

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        """Bounds M: -M <= W <= M, sum_j M_jk <= radii_k."""
        import cvxpy as cp

        W, M = cp.Variable(shape), cp.Variable(shape)
        constraints = [W <= M, -M <= W, cp.sum(M, axis=0) <= self.radii / unit]
        return RegulariserModel(unit * W, 0.0, constraints, lambda: unit * np.asarray(W.value))

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        return {"lp": frozenset({"linear"})}


@final
@dataclass(frozen=True)
class L2TaskBalls(TaskBalls):
    """Balls of the l2 norm, which is its own dual."""

    norm: ClassVar[str] = "l2"

    def norms(self, W: Array) -> Array:
        return lengths(W)

    def dual_norms(self, G: Array) -> Array:
        return lengths(G)

    def enclose_norms(self, W: Array) -> Interval:
        return enclose_lengths(Interval.exact(W), axis=0)

    def enclose_dual_norms(self, G: Interval) -> Interval:
        return enclose_lengths(G, axis=0)

    def prox(self, point: Array, step_size: float) -> Array:
        return project_l2_ball(point, self.radii, axis=0)

    def vertex(self, direction: Array) -> Array:
        top = np.abs(direction).max(axis=0, initial=0.0)
        unit = direction / np.where(top > 0.0, top, 1.0)
        sizes = lengths(unit)
        return np.asarray(-self.radii * (unit / np.where(sizes > 0.0, sizes, 1.0)))

    def model(self, form: str, shape: tuple[int, int], unit: float = 1.0) -> RegulariserModel:
        import cvxpy as cp

        W = cp.Variable(shape)
        within = cp.norm(W, 2, axis=0) <= self.radii / unit
        return RegulariserModel(unit * W, 0.0, [within], lambda: unit * np.asarray(W.value))

    @property
    def models(self) -> Mapping[str, frozenset[str]]:
        return {"socp": frozenset({"linear", "quadratic"})}


#: Balls by the norm of a column.
TASK_BALLS: dict[str, type[TaskBalls]] = {balls.norm: balls for balls in (L1TaskBalls, L2TaskBalls)}
