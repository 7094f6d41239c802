"""Forms on simplices: a set that is made of them, and smooth losses over one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array
from bench_mtl.model.protocols import Capability, ObjectiveForm, Problem, SetForm


@dataclass(frozen=True)
class SimplexForm(SetForm):
    """A feasible set as the image of simplices: W = mass orientation (U - V), U >= 0, V >= 0, V = 0 unless `signed`.

    The entries of U and V add up to 1, or with `slack` to at most 1: those of every column (`balls` "task") or all (`balls` "all").
    """

    mass: float
    signed: bool
    slack: bool
    balls: str = "task"
    orientation: Array | None = None
    """Signs, shaped like W; None: all +1."""

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        weights = rng.exponential(size=shape) + (rng.exponential(size=1) if self.slack else 0.0)
        weights /= weights.sum(axis=self._axis, keepdims=True)
        flips = np.where(rng.random(shape) < 0.5, 1.0, -1.0) if self.signed else 1.0
        return np.asarray(self.mass * flips * weights * (1.0 if self.orientation is None else self.orientation))

    def lowest(self, direction: Array) -> float:
        inward = -direction if self.orientation is None else -self.orientation * direction
        highest = (np.abs(direction) if self.signed else inward).max(axis=self._axis)
        return -self.mass * float(np.sum(np.maximum(highest, 0.0) if self.slack else highest))

    @property
    def _axis(self) -> int | None:
        return 0 if self.balls == "task" else None


@dataclass(frozen=True)
class CurvedForm(ObjectiveForm):
    """Smooth convex losses of linear predictions over a simplex, or over its part in a box::

    min_w  f(X w)   subject to  sum_j w_j = mass,  lower <= w <= upper,      f(t) = sum_i loss_i(t_i)
    """

    design: Design
    """Of one task."""
    derivatives: Callable[[Array], tuple[float, Array, Array]]
    """f, and the first and second derivatives of every loss_i, at predictions of a feasible point (in the output shape of the design)."""
    mass: float
    lower: Array
    """d bounds; some w within all of them has the mass."""
    upper: Array

    def objective(self, point: Array) -> float:
        return self.derivatives(self.design.forward(point))[0]

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Compare the objectives, the derivatives with differences, and the corner in a direction with the problem's own."""
        super().check(problem, rng)
        predictions = self.design.forward(problem.repair(rng.exponential(size=problem.point_shape)))
        _, slopes, curvatures = self.derivatives(predictions)
        step = 1e-6 * np.abs(predictions).min()
        ahead, behind = self.derivatives(predictions + step), self.derivatives(predictions - step)
        assert np.isclose((ahead[0] - behind[0]) / (2 * step), slopes.sum(), rtol=1e-4), "the first derivatives are not those of the losses"
        assert np.allclose((ahead[1] - behind[1]) / (2 * step), curvatures, rtol=1e-4), "the second derivatives are not those of the first"
        gradient = self.design.adjoint(slopes)
        corner = self.vertex(gradient[:, 0])[:, None]
        assert problem.infeasibility(corner) <= 1e-9, "the corner of the form is infeasible"
        if Capability.LMO in problem.offers:
            lowest, oracle = float((gradient * corner).sum()), float((gradient * problem.lmo(gradient)).sum())
            assert np.isclose(lowest, oracle), f"the lowest product is {oracle:g}, the form says {lowest:g}"

    def vertex(self, direction: Array) -> Array:
        """argmin <direction, w> over the feasible set, all of length d: of least price first, up to the bound, until the mass is spent."""
        order = np.argsort(direction, kind="stable")
        room = (self.upper - self.lower)[order]
        w = np.empty(direction.shape)
        w[order] = np.clip(self.mass - self.lower.sum() - (np.cumsum(room) - room), 0.0, room)
        return np.asarray(np.clip(self.lower + w, self.lower, self.upper))
