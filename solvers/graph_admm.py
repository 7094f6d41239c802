"""ADMM in graph form: hinges under a norm, on tables of some hundreds of features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import Hinges, hinges_under
from bench_mtl.model.norms import L12
from bench_mtl.model.protocols import SHOWN_SHARE, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.solvers.dual_newton.terms import terms_of
from bench_mtl.solvers.units import scaled_features

#: Iterations between two iterates, or one in `SHOWN_SHARE` of all so far.
_FEWEST = 10
#: The first balancing of the penalties, and how much later every other one is.
_FIRST_BALANCE, _BALANCE_GROWTH = 10, 1.5
#: The most that a balancing changes a penalty, and changes that are left alone.
_LARGEST_CHANGE, _SMALL_CHANGE = 5.0, 1.4
#: The first penalty of the coefficients, as a share of that of the predictions.
_FIRST_SHARE = 0.1
#: Entries of the matrices that are factorised, and of the scaled features, at most: 128 MiB and 512 MiB.
_MOST_ENTRIES, _MOST_SCALED = 2**24, 2**26
#: Below this a residual is rounding.
_REST = 1e-16


@dataclass(frozen=True)
class GraphADMM(SteppingSolver):
    """ADMM on  min f(S) + R(Z)  subject to  S = X V + b, Z = V,  in features that are scaled to about norm 1 and, with intercepts, centred.

    ::

        V, b  <- argmin  rho/2 ||X V + b - S + Q||^2 + sigma/2 ||V - Z + U||^2
        S     <- prox of f / rho at the predictions of V, b, over-relaxed, plus Q;   Q <- Q + predictions - S
        Z     <- prox of R / sigma at V, over-relaxed, plus U;                       U <- U + V - Z

    The first step is one system a task, solved by the eigenvectors of X_k^T X_k, so that both penalties can be balanced at no cost: in the
    metric of X^T X features of any size and correlation are no matter. Dual points are a = -rho y Q.

    Parameters
    ----------
    relaxation : over-relaxation, from 1 to below 2

    References
    ----------
    Parikh, Boyd, "Block splitting for distributed optimization", Mathematical Programming Computation 6, 2014; Boyd, Parikh, Chu, Peleato,
    Eckstein, Foundations and Trends in Machine Learning 3(1), 2011, sections 3.4.1 and 3.4.3.
    """

    relaxation: float = 1.6

    name: ClassVar[str] = "graph_admm"
    takes = (hinges_under(L12),)
    takes_intercept: ClassVar[bool] = True
    shows_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        real_number("relaxation", self.relaxation, minimum=1.0, below=2.0)

    def objection(self, problem: Problem) -> str | None:
        form = problem.form(Hinges)
        d, matrices = form.design.n_features, 1 if form.design.is_shared else form.design.n_tasks
        if d * d * matrices > _MOST_ENTRIES or d * sum(form.design.sizes[:matrices]) > _MOST_SCALED:
            more = "" if d * d * matrices > _MOST_ENTRIES else f", for {max(form.design.sizes)} examples"
            return f"{self.label} factorises X^T X of dense features, which are too many in {problem.name}: {d}{more}"
        return None

    def stepper(self, problem: Problem) -> GraphStepper:
        return GraphStepper(problem, self.relaxation)


@dataclass(frozen=True)
class State:
    """Where a run is: predictions S and coefficients Z with their scaled multipliers Q and U, and both penalties."""

    S: Array
    Q: Array
    Z: Array
    U: Array
    rho: float
    sigma: float
    step: int
    next_balance: int
    V: Array
    """The coefficients of the last step, of which Z is the shrunk copy."""
    t: Array
    """Their predictions."""
    gap: float = math.inf
    """The relative gap, as far as it is known."""


class GraphStepper(Stepper):
    def __init__(self, problem: Problem, relaxation: float) -> None:
        self.form = form = problem.form(Hinges)
        self.relaxation = relaxation
        self.design, units = scaled_features(form.design, centre=form.has_intercept)
        terms = terms_of(form.regulariser, units)
        assert terms is not None
        (self.term,) = terms
        blocks = [self.design.block(k) for k in range(1 if self.design.is_shared else self.design.n_tasks)]
        self.eigen = [np.linalg.eigh(X.T @ X) for X in blocks]

    def start(self, at: Iterate) -> State:
        form, point, dual = self.form, at.primal, at.dual
        rho = float(np.mean(form.weights))
        t = form.fit.shifted(form.design.forward(point))
        if dual is None:  # at 0 that of all examples alike, which does not depend on their order
            dual = form.duals(form.labels * t) if point.any() else form.dual_at_zero()
        a = np.clip(dual, 0.0, form.weights)
        Z, sigma = self.term.point_of(point), _FIRST_SHARE * rho
        # At an optimum sigma U is minus the derivative of the loss in the coefficients, and rho Q that in the predictions.
        return State(t, -form.labels * a / rho, Z, self.design.adjoint(form.labels * a) / sigma, rho, sigma, 0, _FIRST_BALANCE, Z, t)

    def step(self, now: State) -> State:
        """Return the state after some iterations, up to a balancing at most."""
        count = max(_FEWEST, now.step // SHOWN_SHARE)
        for _ in range(min(count, now.next_balance - now.step)):
            before, now = now, self.after(now)
        if now.step == now.next_balance:
            now = self.balanced(before, now)
        return replace(now, gap=self.form.relative_gap(self.term.coefficients(now.Z), self.dual(now)))

    def iterate(self, now: State) -> Iterate:
        return Iterate(self.term.coefficients(now.Z), self.dual(now), now.step, now.step + 1.0, claim=now.gap)

    def dual(self, now: State) -> Array:
        return np.asarray(np.clip(-now.rho * self.form.labels * now.Q, 0.0, self.form.weights))

    def _solved(self, rhs: Array, rho: float, sigma: float) -> Array:
        """Return (rho X_k^T X_k + sigma I)^-1 rhs_k, column by column."""
        if self.design.is_shared:
            ((values, vectors),) = self.eigen
            return np.asarray(vectors @ ((vectors.T @ rhs) / (rho * values + sigma)[:, None]))
        columns = [vectors @ ((vectors.T @ rhs[:, k]) / (rho * values + sigma)) for k, (values, vectors) in enumerate(self.eigen)]
        return np.stack(columns, axis=1)

    def after(self, now: State) -> State:
        design, form, rho, sigma, over = self.design, self.form, now.rho, now.sigma, self.relaxation
        wanted = now.S - now.Q
        V = self._solved(rho * design.adjoint(wanted) + sigma * (now.Z - now.U), rho, sigma)
        t = design.forward(V)
        if form.has_intercept:  # features are centred: intercepts are the means by themselves
            t = t + design.per_example(design.task_sums(wanted) / np.asarray(design.sizes))
        Q = now.Q + over * t + (1.0 - over) * now.S
        margins = form.labels * Q
        S = form.labels * np.maximum(margins, np.minimum(margins + form.weights / rho, 1.0))
        U = now.U + over * V + (1.0 - over) * now.Z
        Z = self.term.shrink(U, 1.0 / sigma).point
        return replace(now, S=S, Q=Q - S, Z=Z, U=U - Z, V=V, t=t, step=now.step + 1)

    def balanced(self, before: State, now: State) -> State:
        """Return the state with penalties that bring the residuals of both constraints nearer to those of their multipliers."""
        f = _factor(now.t - now.S, (now.t, now.S), now.S - before.S, now.Q)
        g = _factor(now.V - now.Z, (now.V, now.Z), now.Z - before.Z, now.U)
        following = int(_BALANCE_GROWTH * now.next_balance) + 1
        return replace(now, rho=now.rho * f, Q=now.Q / f, sigma=now.sigma * g, U=now.U / g, next_balance=following)


def _factor(rest: Array, sizes: tuple[Array, Array], change: Array, multipliers: Array) -> float:
    """Return the root of the ratio of the relative residuals, primal to dual; 1 where it is near that or one of them is not known."""
    size, pull = max(map(np.linalg.norm, sizes)), np.linalg.norm(multipliers)
    if not size > 0.0 or not pull > 0.0:
        return 1.0
    primal, dual = np.linalg.norm(rest) / size + _REST, np.linalg.norm(change) / pull + _REST
    factor = min(max(math.sqrt(primal / dual), 1.0 / _LARGEST_CHANGE), _LARGEST_CHANGE)
    return 1.0 if 1.0 / _SMALL_CHANGE < factor < _SMALL_CHANGE else factor
