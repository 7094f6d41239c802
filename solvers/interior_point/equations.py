"""What the optimality conditions of all losses under an l1,inf norm share: iterates, residuals and Newton directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.solvers.interior_point.system import NewtonSystem, Solution

#: The share of the radius that is left at the start.
_SPARE = 0.1
#: theta at the start, relative to the smallest feasible one; the dual of a penalised form, relative to the largest feasible one.
_ABOVE, _BELOW = 1.2, 0.5
#: A penalised form may need a norm of this multiple of a step's, from zero.
_STEPS = 10.0


class Bounds(NamedTuple):
    """Where rows of W start: their bounds, and the slacks from u on and their duals by `Layout`."""

    mu: Array
    slack: Array
    dual: Array
    scale: float
    """p - q is this multiple of G, at most 1."""


class Layout:
    """The places of the slacks, and of their duals, in one vector: r, xi, u, v, where there are entries s+ and s-, and with a radius c."""

    def __init__(self, examples: int, d: int, m: int, *, constrained: bool, has_entries: bool = False) -> None:
        size = m * d
        self.examples, self.features = slice(0, 2 * examples), slice(2 * examples, 2 * examples + 2 * size)
        self.r, self.xi = slice(0, examples), slice(examples, 2 * examples)
        self.entries = slice(self.features.stop, self.features.stop + 2 * size * has_entries)
        self.has_entries = has_entries
        self.c = self.entries.stop if constrained else None
        self.size = self.entries.stop + int(constrained)
        self.shape = (m, d)

    def bounds(self, vector: Array) -> tuple[Array, Array]:
        """The parts u and v, m x d each."""
        u, v = vector[self.features].reshape(2, *self.shape)
        return u, v

    def signed(self, vector: Array) -> tuple[Array, Array]:
        """The parts s+ and s-, m x d each."""
        above, below = vector[self.entries].reshape(2, *self.shape)
        return above, below


@dataclass(frozen=True)
class State:
    """A primal-dual point. W is m x d here, without the entries s+ - s-, and examples are stacked task by task."""

    W: Array
    mu: Array
    slack: Array
    """r, xi, u, v, s+, s-, c by `Layout`, above 0: iterates of their own, because recomputing them from W cancels near the optimum."""
    dual: Array
    """a, b, p, q, z+, z-, theta by `Layout`, above 0."""
    free: Array | None = None
    """The dual point of a loss whose examples have no slacks: stacked, without bounds."""
    b: Array | None = None
    """Intercepts, m numbers, where there are any."""

    @property
    def gap(self) -> float:
        """The duality gap, if all equations hold."""
        return float(self.slack @ self.dual)

    def moved(self, direction: Direction, primal_step: float, dual_step: float) -> State:
        """Return the point after a step along a direction; of a direction its sum with multiples of another one."""
        return State(
            _moved(self.W, primal_step, direction.W),
            _moved(self.mu, primal_step, direction.mu),
            _moved(self.slack, primal_step, direction.slack),
            _moved(self.dual, dual_step, direction.dual),
            None if self.free is None or direction.free is None else _moved(self.free, dual_step, direction.free),
            None if self.b is None or direction.b is None else _moved(self.b, primal_step, direction.b),
        )


Direction: TypeAlias = State
"""A change of a `State`."""


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
    free: Array | None = None
    balance: Array | None = None
    """With intercepts what the signed duals of the examples of every task add up to, which should be 0."""
    entries: Array | None = None
    """Of z+ and of z-, 2 x m x d, where there are entries."""

    def cost(self, x: State, radius: float) -> float:
        """A bound on what the residuals can falsify in the gap of x, whose rows have maxima of sum at most `radius`."""
        rows = float(np.abs(self.W).sum(axis=0).max() + np.abs(self.mu).max())
        size = self.r.size
        unbalanced = 0.0 if self.balance is None or x.b is None else float(np.abs(self.balance) @ np.abs(x.b))
        if self.entries is not None:
            parts = x.slack[-self.entries.size :]  # there is no radius besides
            unbalanced += float(np.abs(self.entries).ravel() @ parts)
        return radius * rows + unbalanced + float(np.abs(self.r) @ x.dual[:size]) + float(np.abs(self.s) @ x.slack[size : 2 * size])


def _moved(x: Array, step: float, change: Array) -> Array:
    moved = step * change
    moved += x
    return moved


class _Stiffness(NamedTuple):
    """How rows resist a change of their bounds and of themselves, P = p / u and Q = q / v, and how much entries take up."""

    P: Array
    Q: Array
    compliance: Array | None
    """C = s+ / z+ + s- / z-: what S changes by a change of G. None without entries, and so below."""
    rigid: Array | None
    """The share of a change that is left to the rows: (I + (P + Q) C)^-1."""


class Equations(ABC):
    """The optimality conditions of a loss f of linear predictions under an l1,inf norm.

    With theta a variable where there is a radius, else the penalty::

        u = mu - W     v = mu + W     c = radius - sum_j mu_j
        p - q = G      sum_k (p + q)_k = theta
        u p = v q = c theta = 0

    with entries S = s+ - s- added to W, which have a penalty of their own in the place of a radius, ::

        z+ = entry_penalty - G     z- = entry_penalty + G     s+ z+ = s- z- = 0

    and what the loss adds: what G is, minus the gradient of f at the optimum, and where they are `slacked` slacks of examples with their
    duals. There is a radius or a penalty, and entries with a penalty alone; penalties are above 0.
    """

    together: ClassVar[bool] = False
    """Whether primal and dual steps have one length: where an equation has both W and a dual."""
    highest_norm: ClassVar[float] = 0.98
    """A row that joins has a dual norm of at most this share of the level; what is missing of its gradient is a residual."""
    is_linear = True
    """Whether all residuals are linear, so that a step removes its share of them."""

    def __init__(
        self, system: NewtonSystem, radius: float | None, penalty: float | None, *, slacked: bool, entry_penalty: float | None = None
    ) -> None:
        design = system.design
        self.system, self.radius, self.penalty, self.entry_penalty = system, radius, penalty, entry_penalty
        self.layout = Layout(
            design.n_examples if slacked else 0, design.n_features, design.n_tasks,
            constrained=radius is not None, has_entries=entry_penalty is not None,
        )  # fmt: skip

    @property
    @abstractmethod
    def scale(self) -> float:
        """f at W = 0."""

    @abstractmethod
    def start(self, W: Array) -> State | None:
        """Return a point near W, strictly inside all bounds; None where W = 0 is plainly optimal. W is m x d, or with entries 2 x m x d."""

    @abstractmethod
    def residuals(self, x: State) -> Residuals: ...

    def missing(self, x: State) -> tuple[float, float]:
        """Return the modulus of what is missing of the free dual point, summed, and about what it adds to the duality gap."""
        return 0.0, 0.0

    @abstractmethod
    def dual_point(self, x: State) -> Array:
        """Return the dual point of the problem at x, in the output shape of the design."""

    @abstractmethod
    def objective(self, x: State) -> float:
        """Return the objective at x, scaled into the radius."""

    @abstractmethod
    def _weights(self, x: State) -> Array:
        """Return the E of the Newton system at x, stacked."""

    @abstractmethod
    def _example_sides(self, x: State, residuals: Residuals | None, target: Array) -> Array:
        """Return the g of the Newton system, stacked."""

    def completed(self, x: State, residuals: Residuals, direction: Direction) -> Direction:
        """Return the direction with all of its free dual point, which no other part needs."""
        return direction

    def _example_changes(  # noqa: B027 (losses whose examples have no slacks need nothing)
        self, x: State, residuals: Residuals | None, target: Array, solution: Solution, dslack: Array, ddual: Array
    ) -> None:
        """Write the changes of the slacks of examples and of their duals, if they have any."""

    def after(self, x: State, *, correctors: int, rule: tuple[float, ...]) -> State | None:
        """Return the next iterate where that is cheaper by other means than by residuals and directions, up to rounding; else None."""
        return None

    def theta(self, x: State) -> float:
        if self.layout.c is not None:
            return float(x.dual[self.layout.c])
        assert self.penalty is not None
        return self.penalty

    def extent(self, x: State) -> float:
        """Return what the norm of W may be: the radius, or that of x."""
        return self.radius if self.radius is not None else float(x.mu.sum())

    def entries(self, x: State) -> Array:
        """Return S, m x d."""
        above, below = self.layout.signed(x.slack)
        return above - below

    def coefficients(self, x: State) -> Array:
        """Return W + S, m x d; of a direction its change of them."""
        return x.W + self.entries(x) if self.layout.has_entries else x.W

    def point(self, x: State) -> Array:
        """Return the point of the problem at x."""
        return np.ascontiguousarray(np.stack([x.W.T, self.entries(x).T]) if self.layout.has_entries else x.W.T)

    def sizes(self, x: State) -> Array:
        """Return what the entries of every row of the coefficients are at most, up to their signs, d numbers."""
        return x.mu + np.add(*self.layout.signed(x.slack)).max(axis=0) if self.layout.has_entries else x.mu

    def bounds_at(self, W: Array, extent: float, G: Array, full: Array, S: Array | None = None) -> Bounds:
        """Return bounds of W (m x d) for rows that may grow by `extent` in all, and duals of them for G, or for a multiple of it.

        `full` is G at W = 0, which gives theta its size where G itself is 0. Entries start near S, with the same products of slacks and
        duals as rows have.
        """
        mu = np.abs(W).max(axis=0) + (1.0 - _SPARE) * extent / W.shape[1]
        largest = float(np.abs(G).sum(axis=0).max())
        scale = 1.0
        if self.penalty is None:
            theta = _ABOVE * (largest if largest > 0.0 else float(np.abs(full).sum(axis=0).max()))
        else:
            theta = self.penalty
            scale = min(1.0, _BELOW * theta / largest) if largest > 0.0 else 1.0
            if self.entry_penalty is not None and largest > 0.0:
                scale = min(scale, _BELOW * self.entry_penalty / float(np.abs(G).max()))
            G = scale * G
        spare = (theta - np.abs(G).sum(axis=0)) / (2.0 * len(W))
        p, q = np.maximum(G, 0.0) + spare, np.maximum(-G, 0.0) + spare
        slack, dual = [(mu - W).ravel(), (mu + W).ravel()], [p.ravel(), q.ravel()]
        if self.entry_penalty is not None and S is not None:
            product = 0.5 * sum(float(np.mean(a * b)) for a, b in zip(slack, dual, strict=True))
            for side in (G.ravel(), -G.ravel()):
                dual.append(self.entry_penalty - side)
                slack.append(product / dual[-1])
            slack[-2], slack[-1] = slack[-2] + np.maximum(S.ravel(), 0.0), slack[-1] + np.maximum(-S.ravel(), 0.0)
        if self.radius is not None:
            slack.append(np.array([self.radius - mu.sum()]))
            dual.append(np.array([theta]))
        return Bounds(mu, np.concatenate(slack), np.concatenate(dual), scale)

    def radius_or(self, step: float) -> float:
        """Return the radius; for a penalised form a guess at the norm of the optimum by that of a step from zero, at most f(0) over it."""
        if self.radius is not None:
            return self.radius
        assert self.penalty is not None
        return min(self.scale / self.penalty, _STEPS * step)

    def into_radius(self, W: Array) -> float:
        """Return the factor of at most 1 by which W (m x d) is scaled into the radius."""
        if self.radius is None:
            return 1.0
        norm = float(np.abs(W).max(axis=0).sum())
        return self.radius / norm if norm > self.radius else 1.0

    def predictions(self, x: State) -> Array:
        """X_k w_k, with intercepts X_k w_k + b_k, stacked."""
        forward = self.system.forward(self.coefficients(x))
        return forward if x.b is None else forward + np.repeat(x.b, self.system.design.sizes)

    def norm_residuals(self, x: State, signed: Array, *, r: Array, s: Array, free: Array | None = None) -> Residuals:
        """Return the residuals of the equations of the norm, beside those of examples, whose duals are `signed`, stacked."""
        G = self.system.adjoint(signed)
        design = self.system.design
        u, v = self.layout.bounds(x.slack)
        p, q = self.layout.bounds(x.dual)
        c = 0.0 if self.radius is None or self.layout.c is None else float(self.radius - x.mu.sum() - x.slack[self.layout.c])
        balance = None if x.b is None else design.task_sums(design.unstack(signed))
        entries = None
        if self.entry_penalty is not None:
            above, below = self.layout.signed(x.dual)
            entries = self.entry_penalty - np.stack([above + G, below - G])
        return Residuals(r, s, x.mu - x.W - u, x.mu + x.W - v, c, G - p + q, self.theta(x) - (p + q).sum(axis=0), free, balance, entries)

    def factor(self, x: State, *, careful: bool = False) -> None:
        """Prepare `direction` at x; `careful` as in `NewtonSystem.factor`."""
        at = self.layout
        stiffness = x.dual[at.features.start :] / x.slack[at.features.start :]
        P, Q = stiffness[: 2 * at.shape[0] * at.shape[1]].reshape(2, *at.shape)
        t = 0.0 if at.c is None else float(stiffness[-1])
        self._stiffness = _Stiffness(P, Q, None, None)
        base = None
        if at.has_entries:
            C = np.add(*at.signed(x.slack / x.dual))
            rigid, base = 1.0 / (1.0 + (P + Q) * C), (4.0 * P * (Q / (P + Q))).sum(axis=0)
            self._stiffness = _Stiffness(P, Q, C, rigid)
            P, Q = rigid * P, rigid * Q
        self.system.factor(self._weights(x), P, Q, t, base, careful=careful)

    def direction(self, x: State, residuals: Residuals | None, target: Array) -> Direction:
        """The direction with slack * ddual + dual * dslack = target that removes the residuals (None: there are none)."""
        at, slack, dual, rho, system, (P, Q, C, rigid) = self.layout, x.slack, x.dual, residuals, self.system, self._stiffness
        by_slack = target[at.features.start :] / slack[at.features.start :]
        ku, kv = by_slack[: 2 * at.shape[0] * at.shape[1]].reshape(2, *at.shape)
        g = self._example_sides(x, rho, target)
        if rho is not None:
            ku, kv = ku - P * rho.u, kv - Q * rho.v
        f, h = kv - ku, (ku + kv).sum(axis=0)
        if at.c is not None:
            h -= by_slack[-1]
        if rho is not None:
            f += rho.W
            h += system.t * rho.c - rho.mu
        solve = partial(system.solve, whole=self.layout.r.stop > 0, rho=None if rho is None else rho.balance)
        dslack, ddual = np.empty(at.size), np.empty(at.size)
        if C is None or rigid is None:
            solution = solve(f, g, h)
            rows, pull = solution.W, None
        else:  # S changes by C times the change of G, the pull, and by `moves`
            moves = target[at.entries]
            if rho is not None and rho.entries is not None:
                moves = moves - slack[at.entries] * rho.entries.ravel()
            moves = np.subtract(*(moves / dual[at.entries]).reshape(2, *at.shape))
            T, D = P + Q, Q - P
            alone = rigid * (C * f - moves)
            solution = solve(f - T * alone, g, h - (D * alone).sum(axis=0))
            coupling = D * solution.mu
            rows = rigid * (solution.W - C * coupling) + alone
            pull = rigid * (T * (solution.W - moves) + coupling - f)
        self._example_changes(x, rho, target, solution, dslack, ddual)
        free = None if x.free is None else solution.a
        du, dv = at.bounds(dslack)
        np.subtract(solution.mu, rows, out=du)
        np.add(solution.mu, rows, out=dv)
        if rho is not None:
            du += rho.u
            dv += rho.v
        if at.c is not None:
            dslack[at.c] = (0.0 if rho is None else rho.c) - solution.mu.sum()
        dslack[at.entries] = 0.0
        rest = slice(at.features.start, None)
        ddual[rest] = by_slack - dual[rest] / slack[rest] * dslack[rest]
        if pull is not None:  # of z+ and z- first, which the others divide by
            changes = np.stack([-pull, pull])
            ddual[at.entries] = (changes if rho is None or rho.entries is None else changes + rho.entries).ravel()
            dslack[at.entries] = (target[at.entries] - slack[at.entries] * ddual[at.entries]) / dual[at.entries]
        return Direction(rows, solution.mu, dslack, ddual, free, solution.shift)
