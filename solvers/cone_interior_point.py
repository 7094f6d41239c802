"""Interior points on second-order cones: hinges under an l1,2 norm, on tables of some hundreds of features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, hinges_under
from bench_mtl.model.norms import L12
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.interior_point.system import NewtonSystem, Solution, bytes_needed
from bench_mtl.solvers.units import scaled_features

#: The part of the way to the boundary that a step goes, and a step below which only rounding is left.
_PART, _SHORTEST = 0.98, 1e-4
#: The least share of the complementarity that is aimed at.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class ConeInteriorPoint(SteppingSolver):
    """Mehrotra's predictor-corrector method with Nesterov-Todd scaling, from outside the feasible set, on ::

        min_{V, b, t}  f(X V + b) + weight sum_j u_j t_j   or   f(X V + b) subject to sum_j u_j t_j <= radius,   ||v_j|| <= t_j
        max_{a, G, tau}  sum a   subject to  X_k^T (y_k a_k) = g_k,  sum_i y_ki a_ki = 0,  0 <= a <= s,  ||G_j|| <= tau u_j

    with f the hinges of weights s, in features that are scaled to about norm 1 and, with intercepts b, centred: W_j = u_j v_j; tau is the
    weight, or the multiplier of the radius. It takes some twenty steps, whatever the size of the features and however weak the penalty.

    The rows' part of a Newton system is diag(1 / eta) - D diag(n)^-1 D^T with a column of D a row: one unknown mu_j a row more makes it
    that of `interior_point`, with a block a task and a d x d system that couples them.

    Parameters
    ----------
    memory_gib : refuse problems whose factors would need more

    Notes
    -----
    A run starts in the middle of the box of a, whatever its start. Work is counted as in `interior_point`.

    References
    ----------
    Nesterov, Todd, "Primal-dual interior-point methods for self-scaled cones", SIAM Journal on Optimization 8(2), 1998; Mehrotra, "On the
    implementation of a primal-dual interior point method", SIAM Journal on Optimization 2(4), 1992.
    """

    memory_gib: float = 4.0

    name: ClassVar[str] = "cone_interior_point"
    takes = (hinges_under(L12),)
    takes_intercept: ClassVar[bool] = True
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        real_number("memory_gib", self.memory_gib, strict=True)

    def objection(self, problem: Problem) -> str | None:
        form = problem.form(Hinges)
        if (form.radius or form.penalty or 0.0) <= 0.0:
            return f"{self.label} needs a radius or a weight above 0"
        design = form.design  # of which there is a dense copy
        copy = design.n_features * sum(design.sizes[: 1 if design.is_shared else None])
        needed = (bytes_needed(design) + 8.0 * copy) / 2**30
        if needed > self.memory_gib:
            return f"{self.label} would need {needed:.3g} GiB for its factors, above its memory_gib of {self.memory_gib:g}"
        return None

    def warm_up(self) -> None:
        InteriorPoint().warm_up()

    def stepper(self, problem: Problem) -> ConeStepper:
        return ConeStepper(problem)


@dataclass(frozen=True)
class State:
    """Points inside all cones, which need not meet the equations."""

    a: Array
    G: Array
    V: Array
    b: Array
    t: Array
    lower: Array
    """The multipliers of a >= 0."""
    upper: Array
    """The multipliers of a <= s."""
    tau: float
    slack: float
    """What the radius leaves: radius - sum_j u_j t_j; 0 under a penalty."""

    def moved(self, by: State, dual: float, primal: float) -> State:
        """Return the state after a step, of one length for a, G and tau and of another for all else."""
        lengths = {name: dual if name in ("a", "G", "tau") else primal for name in vars(self)}
        return replace(self, **{name: getattr(self, name) + length * getattr(by, name) for name, length in lengths.items()})


@dataclass(frozen=True)
class Progress:
    """A run with the point that it shows."""

    inner: State
    W: Array
    a: Array
    length: float = 1.0
    """That of the last step."""
    gap: float = math.inf
    step: int = 0
    work: float = 0.0


class _Scaling(NamedTuple):
    """The scaling of the rows' cones, Theta (tau u_j, -G_j) = (t_j, v_j) with Theta = eta (2 w w^T - diag(1, -1, ...))."""

    eta: Array
    w0: Array
    w1: Array
    determinant: Array
    """(tau u_j)^2 - ||G_j||^2."""

    @classmethod
    def of(cls, now: State, heights: Array) -> _Scaling:
        dual, primal = _determinant(heights, now.G), _determinant(now.t, now.V)
        x0, x1 = now.t / np.sqrt(primal), now.V / np.sqrt(primal)[:, None]
        z0, z1 = heights / np.sqrt(dual), now.G / np.sqrt(dual)[:, None]
        size = 2.0 * np.sqrt(0.5 * (1.0 + x0 * z0 - (x1 * z1).sum(axis=1)))
        return cls(np.sqrt(primal / dual), (x0 + z0) / size, (x1 + z1) / size[:, None], dual)

    @property
    def _share(self) -> Array:
        return np.asarray(1.0 / (1.0 + 2.0 * (self.w1**2).sum(axis=1)))

    @property
    def slopes(self) -> Array:
        """Theta_11^-1 Theta_10 of every row."""
        return np.asarray((2.0 * self.w0 * self._share)[:, None] * self.w1)

    @property
    def complements(self) -> Array:
        """Theta_00 - Theta_01 Theta_11^-1 Theta_10 of every row."""
        return np.asarray(self.eta * self._share)

    def inverse_times(self, rows: Array) -> Array:
        """Theta_11^-1 times every row, d x m."""
        along = 2.0 * self._share * (self.w1 * rows).sum(axis=1)
        return np.asarray((rows - along[:, None] * self.w1) / self.eta[:, None])

    def factor(self, system: NewtonSystem, weights: Array) -> None:
        """Factor the Newton system: Theta_11^-1 = T - D D^T / n with T = 1 / eta, D = w1 / eta, n = 1 / (2 eta) + ||D||^2 / T."""
        D = np.ascontiguousarray((self.w1 / self.eta[:, None]).T)
        T = np.broadcast_to(1.0 / self.eta, D.shape)
        system.factor(weights, 0.5 * (T - D), 0.5 * (T + D), 0.0, 0.5 / self.eta, careful=True)


class _System(NamedTuple):
    """What the predictor and the corrector of one step share."""

    scaling: _Scaling
    border: Array
    """How the equations of V depend on tau, m x d."""
    by_tau: Solution | None
    """The solution for the border; None where tau is the weight."""
    curvature: float
    """That of tau; inf where it is the weight."""


class ConeStepper(Stepper):
    def __init__(self, problem: Problem) -> None:
        self._problem, self.form = problem, problem.form(Hinges)
        form = self.form
        self.design, self.units = scaled_features(form.design, centre=form.has_intercept)
        self.y, self.weights = form.labels, np.broadcast_to(form.weights, form.labels.shape)
        self.newton = NewtonSystem(self.design, intercept=form.has_intercept)
        self.pairs = 2 * form.labels.size + self.design.n_features + (form.radius is not None)

    def start(self, at: Iterate) -> Progress:
        d, m = self.design.n_features, self.design.n_tasks
        a = 0.5 * self.weights
        mu, ones, tau, slack = float(a.mean()), np.ones(self.y.shape), self.form.penalty or 0.0, 0.0
        if self.form.radius is not None:  # of which every row has a share, and one is left
            tau, slack = (d + 1) * mu / self.form.radius, self.form.radius / (d + 1)
        inner = State(a, np.zeros((d, m)), np.zeros((d, m)), np.zeros(m), mu / (tau * self.units), ones, ones, tau, slack)
        return Progress(inner, at.primal, a if at.dual is None else at.dual)

    def step(self, now: Progress) -> Progress | None:
        if now.length <= _SHORTEST:
            return None
        self.newton.work = 0.0
        inner, length = self.after(now.inner)
        if inner is None:
            return None
        W = self._problem.repair(self.units[:, None] * inner.V)
        work = now.work + self.newton.work + 6.0
        return Progress(inner, W, inner.a, length, self.form.relative_gap(W, inner.a), now.step + 1, work)

    def iterate(self, now: Progress) -> Iterate:
        return Iterate(now.W, now.a, now.step, now.work, claim=now.gap)

    def after(self, now: State) -> tuple[State | None, float]:
        """Return the state after a step and its length; None where rounding leaves none."""
        with np.errstate(all="ignore"):
            system = self._system(now)
            if system is None:
                return None, 0.0
            aimed = self._direction(now, system, 0.0, None)
            lengths = self._lengths(now, aimed)
            left, mu = self._complementarity(now.moved(aimed, *lengths)), self._complementarity(now)
            aimed = State(*(math.sqrt(lengths[0] * lengths[1]) * change for change in vars(aimed).values()))
            step = self._direction(now, system, mu * min(1.0, max(_LEAST_SHARE, (left / mu) ** 3)), aimed)
            dual, primal = (length if length == 1.0 else _PART * length for length in self._lengths(now, step))
            following = now.moved(step, dual, primal)
        is_inside = all(np.isfinite(value).all() for value in vars(following).values()) and self._complementarity(following) > 0.0
        return (following if is_inside else None), max(dual, primal)

    def _complementarity(self, now: State) -> float:
        box = np.vdot(now.a, now.lower) + np.vdot(self.weights - now.a, now.upper)
        return float(box + now.tau * self.units @ now.t - np.vdot(now.V, now.G) + now.slack * now.tau) / self.pairs

    def _system(self, now: State) -> _System | None:
        scaling = _Scaling.of(now, now.tau * self.units)
        shares = 1.0 / (now.lower / now.a + now.upper / (self.weights - now.a))
        border = np.ascontiguousarray((self.units[:, None] * scaling.slopes).T)
        try:
            scaling.factor(self.newton, self.design.stack(shares))
        except FloatingPointError:
            return None
        if self.form.radius is None:
            return _System(scaling, border, None, math.inf)
        by_tau = self.newton.solve(border, np.zeros(self.design.n_examples), np.zeros(self.design.n_features))
        curvature = now.slack / now.tau + float(scaling.complements @ self.units**2)
        return _System(scaling, border, by_tau, curvature)

    def _direction(self, now: State, system: _System, mu: float, aimed: State | None) -> State:
        """Return the step to complementarity mu, without the products of changes that a step `aimed` leaves."""
        design, y, scaling = self.design, self.y, system.scaling
        of_lower, of_upper, of_slack = (mu, mu, mu) if aimed is None else (
            mu - aimed.a * aimed.lower, mu + aimed.a * aimed.upper, mu - aimed.tau * aimed.slack)  # fmt: skip
        room = self.weights - now.a
        pull = 1.0 - y * (design.forward(now.V) + design.per_example(now.b)) + of_lower / now.a - of_upper / room
        r_v, r_t = mu * now.G / scaling.determinant[:, None] - now.V, mu * now.tau * self.units / scaling.determinant - now.t
        f = np.ascontiguousarray((design.adjoint(y * now.a) - now.G + scaling.inverse_times(r_v)).T)
        balance = design.task_sums(y * now.a) if self.form.has_intercept else None
        x = self.newton.solve(f, design.stack(y * pull), np.zeros(design.n_features), rho=balance)
        dV, changes, d_tau = x.W, x.a, 0.0
        db = np.zeros(design.n_tasks) if x.shift is None else x.shift
        left = r_t - (scaling.slopes * r_v).sum(axis=1)
        if self.form.radius is not None and system.by_tau is not None:
            unmet, by_tau = self.form.radius - float(self.units @ now.t) - now.slack, system.by_tau
            missing = float(self.units @ left) - unmet + of_slack / now.tau - now.slack
            stiffness = system.curvature + float(np.vdot(system.border, by_tau.W))
            d_tau = (float(np.vdot(system.border, dV)) + missing) / stiffness
            dV, changes = dV - d_tau * by_tau.W, changes - d_tau * by_tau.a
            db = db if by_tau.shift is None else db - d_tau * by_tau.shift
        dV, da = dV.T, y * design.unstack(changes)
        dt = left + (scaling.slopes * dV).sum(axis=1) - scaling.complements * self.units * d_tau
        dG = scaling.inverse_times(dV - r_v) + scaling.slopes * (self.units * d_tau)[:, None]
        d_lower, d_upper = (of_lower - now.lower * da) / now.a - now.lower, (of_upper + now.upper * da) / room - now.upper
        d_slack = 0.0 if self.form.radius is None else (of_slack - now.slack * d_tau) / now.tau - now.slack
        return State(da, dG, dV, db, dt, d_lower, d_upper, d_tau, d_slack)

    def _lengths(self, now: State, by: State) -> tuple[float, float]:
        """Return how long a step may be for a, G and tau, and for all else, at most 1."""
        heights, rise = now.tau * self.units, by.tau * self.units
        dual = min(_longest(now.a, by.a), _longest(self.weights - now.a, -by.a), _longest_in_cones(heights, now.G, rise, by.G))
        primal = min(_longest(now.lower, by.lower), _longest(now.upper, by.upper), _longest_in_cones(now.t, now.V, by.t, by.V))
        if self.form.radius is not None:
            primal = min(primal, _longest(np.array(now.slack), np.array(by.slack)))
        return dual, primal


def _determinant(heights: Array, rows: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1)
    return np.asarray((heights - norms) * (heights + norms))


def _longest(x: Array, by: Array) -> float:
    """Return the largest share of a step, at most 1, at which positive numbers stay so."""
    return 1.0 / max(1.0, float((-by / x).max()))


def _longest_in_cones(heights: Array, rows: Array, rise: Array, turn: Array) -> float:
    """Return the largest share of a step, at most 1, at which all ||row|| <= height: the least root of a quadratic function."""
    a = rise**2 - (turn**2).sum(axis=1)
    b = rise * heights - (turn * rows).sum(axis=1)
    c = _determinant(heights, rows)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    q = -(b + np.where(b >= 0.0, root, -root))
    ends = np.stack([q / a, c / q, np.where(rise < 0.0, -heights / rise, np.inf)])
    ends[:2, b * b < a * c] = np.inf
    return float(np.where(ends > 0.0, ends, np.inf).min(initial=1.0))
