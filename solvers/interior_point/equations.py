"""The optimality conditions behind `interior_point`: its iterates, their residuals and Newton directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.model.forms import HingeForm
from bench_mtl.solvers.interior_point.system import NewtonSystem


class Layout:
    """The places of the slacks, and of their duals, in one vector: r, xi, u, v and, where there is a radius, c."""

    def __init__(self, examples: int, d: int, m: int, constrained: bool) -> None:
        size = m * d
        self.examples, self.features = slice(0, 2 * examples), slice(2 * examples, 2 * examples + 2 * size)
        self.r, self.xi = slice(0, examples), slice(examples, 2 * examples)
        self.c = self.features.stop if constrained else None
        self.size = self.features.stop + int(constrained)
        self.shape = (m, d)

    def bounds(self, vector: Array) -> tuple[Array, Array]:
        """The parts u and v, m x d each."""
        u, v = vector[self.features].reshape(2, *self.shape)
        return u, v


@dataclass(frozen=True)
class State:
    """A primal-dual point. W is m x d here, and examples are stacked task by task."""

    W: Array
    mu: Array
    slack: Array
    """r, xi, u, v, c by `Layout`, above 0: iterates of their own, because recomputing them from W cancels near the optimum."""
    dual: Array
    """a, b, p, q, theta by `Layout`, above 0."""

    @property
    def gap(self) -> float:
        """The duality gap, if all equations hold."""
        return float(self.slack @ self.dual)

    def moved(self, direction: Direction, primal_step: float, dual_step: float) -> State:
        return State(
            self.W + primal_step * direction.W,
            self.mu + primal_step * direction.mu,
            self.slack + primal_step * direction.slack,
            self.dual + dual_step * direction.dual,
        )


@dataclass(frozen=True)
class Direction:
    """A change of a `State`."""

    W: Array
    mu: Array
    slack: Array
    dual: Array

    def plus(self, other: Direction, weight: float) -> Direction:
        return Direction(
            self.W + weight * other.W,
            self.mu + weight * other.mu,
            self.slack + weight * other.slack,
            self.dual + weight * other.dual,
        )


@dataclass(frozen=True)
class Residuals:
    """The residuals of the equations at a `State`, named by the variables that would have to grow to meet them."""

    r: Array
    s: Array
    u: Array
    v: Array
    c: float
    W: Array
    mu: Array

    def cost(self, x: State, radius: float) -> float:
        """A bound on what the residuals can falsify in the gap of x, whose rows have maxima of sum at most `radius`."""
        rows = float(np.abs(self.W).sum(axis=0).max() + np.abs(self.mu).max())
        size = self.r.size
        return radius * rows + float(np.abs(self.r) @ x.dual[:size]) + float(np.abs(self.s) @ x.slack[size : 2 * size])


class Equations:
    """A linear programme's optimality conditions, for a `HingeForm`.

    With margins = y X w, G = X^T (a y), and theta a variable where there is a radius, else the penalty::

        r = margins + xi - 1     u = mu - W     v = mu + W     c = radius - sum_j mu_j
        a + b = s                p - q = G      sum_k (p + q)_k = theta
        r a = xi b = u p = v q = c theta = 0

    Parameters
    ----------
    penalty : above 0, in place of that of the form; None with a radius
    threads : as in `NewtonSystem`
    """

    def __init__(self, form: HingeForm, penalty: float | None, threads: int | None = 1) -> None:
        design = form.design
        self.labels, self.weights = design.stack(form.labels), design.stack(form.weights)
        self.radius, self.penalty = form.radius, penalty
        self.layout = Layout(design.n_examples, design.n_features, design.n_tasks, form.radius is not None)
        self.system = NewtonSystem(design, threads)

    def theta(self, x: State) -> float:
        if self.layout.c is not None:
            return float(x.dual[self.layout.c])
        assert self.penalty is not None
        return self.penalty

    def residuals(self, x: State) -> Residuals:
        at, slack, dual = self.layout, x.slack, x.dual
        u, v = at.bounds(slack)
        p, q = at.bounds(dual)
        return Residuals(
            r=self.labels * self.system.forward(x.W) + slack[at.xi] - 1.0 - slack[at.r],
            s=self.weights - dual[at.r] - dual[at.xi],
            u=x.mu - x.W - u,
            v=x.mu + x.W - v,
            c=0.0 if self.radius is None or at.c is None else float(self.radius - x.mu.sum() - slack[at.c]),
            W=self.system.adjoint(self.labels * dual[at.r]) - p + q,
            mu=self.theta(x) - (p + q).sum(axis=0),
        )

    def factor(self, x: State, *, careful: bool = False) -> None:
        """Prepare `direction` at x; `careful` as in `NewtonSystem.factor`."""
        at = self.layout
        spread = x.slack[at.examples] / x.dual[at.examples]
        stiffness = x.dual[at.features.start :] / x.slack[at.features.start :]
        P, Q = stiffness[: 2 * at.shape[0] * at.shape[1]].reshape(2, *at.shape)
        t = 0.0 if at.c is None else float(stiffness[-1])
        self.system.factor(1.0 / (spread[at.r] + spread[at.xi]), P, Q, t, careful=careful)

    def direction(self, x: State, residuals: Residuals | None, target: Array) -> Direction:
        """The direction with slack * ddual + dual * dslack = target that removes the residuals (None: there are none)."""
        from bench_mtl.solvers.interior_point.kernels import example_changes, example_sides

        at, slack, dual, rho, system = self.layout, x.slack, x.dual, residuals, self.system
        by_slack = target[at.features.start :] / slack[at.features.start :]
        ku, kv = by_slack[: 2 * at.shape[0] * at.shape[1]].reshape(2, *at.shape)
        g = np.empty_like(self.labels)
        example_sides(dual, target, self.labels, g)
        if rho is not None:
            ku, kv = ku - system.P * rho.u, kv - system.Q * rho.v
            g += self.labels * (slack[at.xi] / dual[at.xi] * rho.s - rho.r)
        f, h = kv - ku, (ku + kv).sum(axis=0)
        if at.c is not None:
            h -= by_slack[-1]
        if rho is not None:
            f += rho.W
            h += system.t * rho.c - rho.mu
        solution = system.solve(f, g, h)
        dslack, ddual = np.empty(at.size), np.empty(at.size)
        missing = np.zeros_like(g) if rho is None else rho.s
        example_changes(slack, dual, target, self.labels, solution.a, missing, dslack, ddual)
        du, dv = at.bounds(dslack)
        np.subtract(solution.mu, solution.W, out=du)
        np.add(solution.mu, solution.W, out=dv)
        if rho is not None:
            du += rho.u
            dv += rho.v
        if at.c is not None:
            dslack[at.c] = (0.0 if rho is None else rho.c) - solution.mu.sum()
        rest = slice(at.features.start, None)
        ddual[rest] = by_slack - dual[rest] / slack[rest] * dslack[rest]
        return Direction(solution.W, solution.mu, dslack, ddual)
