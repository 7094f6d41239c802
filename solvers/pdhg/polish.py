"""The optimum of hinges under an l1,inf norm from a point near it: guess the active set, then correct it by exchanges.

With mu_j = max_k |W_jk| the problem is a linear programme, and at a vertex the active set leaves two small linear systems with one
matrix A. Its rows are the examples on their margin (and the radius where it binds), its columns the entries strictly inside
-mu_j < W_jk < mu_j and the bounds mu_j of the rows that are not zero:

    A (W_inside, mu) = b       margins are 1, and mu adds up to the radius
    A^T (a, -theta) = c        G_jk = 0 inside, and sum_k |G_jk| = theta in the rows that are not zero

Where the guess is wrong, what least squares leave of the one system is a way on which the other improves without leaving its face: the
first constraint met there joins the active set. Where nothing is left, the largest violation of the primal, then of the dual, leaves it.
These are the exchanges of a simplex method, but from any guess, with any number of equations and unknowns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import dense
from bench_mtl.core.types import Array
from bench_mtl.model.forms import HingeForm
from bench_mtl.projections import project_l1inf_ball, prox_l1inf
from bench_mtl.solvers.pdhg.polish_system import Block, Factor, System
from bench_mtl.solvers.units import feature_units, in_units

#: Larger systems are not solved: their factors take longer than the steps that they save.
MOST_UNKNOWNS = 2000

#: Residuals and violations below this share of the size of the data count as 0.
_NONE = 1e-10

#: The overhead of the calls for one task, and for one step of the method, in operations.
_CALLS, _STEP_CALLS = 5e5, 3e5

#: Exchanges are given up when the gap has grown by this factor.
_LOST = 30.0

#: Attempts begin at relative gaps between these two, each at this share of the gap, or this multiple of the work, of the one before; the
#: gap is looked at after so much work, and when that has grown by this much; all of it together may take this share of all work.
_SMALLEST, _LARGEST, _FALL, _GROWTH, _FIRST_CHECK, _CHECK, _SHARE = 1e-14, 8e-5, 0.3, 1.3, 100.0, 1.2, 0.5

#: After so much work attempts begin at any gap: data on which steps are slow, for scale or for dependent columns, are left to exchanges.
_LATE = 3000.0

#: No attempt follows one that has reached this relative gap.
_SOLVED = 1e-12


@dataclass(frozen=True)
class Polished:
    """A point, its gap, and its work in passes over the data; the gap is infinite where nothing was tried."""

    primal: Array
    dual: Array
    gap: float
    work: float


def polish(form: HingeForm, W: Array, dual: Array) -> tuple[Array, Array] | None:
    """Return the optimum next to (W, dual), or at least a point with a smaller gap; None where none is found.

    Parameters
    ----------
    form : the data
    W, dual : a point of PDHG: feasible, and a dual point in its box

    Notes
    -----
    The answer is feasible and its gap is computed from the data, whatever the guess.
    """
    objective, bound = enclosure(form, W, dual)
    result = exchange(form, W, dual, objective - bound)
    return (result.primal, result.dual) if result.gap < objective - bound else None


def enclosure(form: HingeForm, W: Array, dual: Array) -> tuple[float, float]:
    """Return objective and bound at feasible points, by one pass over the data."""
    G = form.design.adjoint(dual * form.labels)
    return form.objective(W), form.bound(dual, G)


def exchange(form: HingeForm, W: Array, dual: Array, gap: float, budget: float = math.inf, most_rounds: int = 1000) -> Polished:
    """Exchange until the optimum, `budget` passes, or a gap far above the first `gap`; return the point with the smallest gap."""
    state = ActiveSet(form, W, dual)
    best = Polished(state.W, state.a, math.inf, 0.0)
    for _ in range(most_rounds):
        if not state.solve(budget - state.work):
            break
        point = state.candidate()
        objective, bound = enclosure(form, *point)
        state.work += 1.0
        if objective - bound < best.gap:
            best = Polished(*point, objective - bound, 0.0)
        is_lost = bound > 0.0 and gap <= _LARGEST * objective and objective - bound > _LOST * gap
        if is_lost or not state.improve():
            break
    return replace(best, work=state.work)


@dataclass
class Schedule:
    """Decides when to attempt a polish, and keeps the best polished point.

    An attempt is made when the gap has fallen by `_FALL`, or the work grown by `_GROWTH`, since the last one; all attempts together may
    take `_SHARE` of all work.
    """

    form: HingeForm
    next_gap: float = math.inf
    next_work: float = math.inf
    next_check: float = _FIRST_CHECK
    needed: float = 0.0
    """The smallest budget for an attempt: twice that of an attempt that was cut short."""
    work: float = 0.0
    """The work of all checks and attempts, in passes over the data."""
    better: Polished | None = None

    def best(self, W: Array, dual: Array, work: float, current: Callable[[], tuple[float, float]]) -> Polished | None:
        """Return the best polished point while it is known to be better than (W, dual), else None.

        Parameters
        ----------
        W, dual : the current point of the method
        work : all work so far, in passes over the data
        current : computes objective and bound of this point by a pass over the data, which may be in single precision
        """
        if work < self.next_check:
            return self.better
        self.next_check = _CHECK * work
        objective, bound = current() if self.better is None else enclosure(self.form, W, dual)
        self.work += 1.0
        gap = objective - bound
        if self.better is not None and gap <= self.better.gap:
            self.better = None
        budget = _SHARE * work - self.work
        is_time = gap <= self.next_gap or work >= self.next_work
        if not is_time or budget < self.needed or not _SMALLEST * objective < gap <= (_LARGEST if work < _LATE else 1.0) * objective:
            return self.better
        result = exchange(self.form, W, dual, gap, budget)
        self.work += result.work
        self.needed = 2.0 * budget if result.work > 0.8 * budget else 0.0
        if math.isinf(result.gap):  # nothing could be tried
            return self.better
        solved = result.gap <= _SOLVED * objective
        self.next_gap, self.next_work = _FALL * (max(0.0, result.gap) if solved else gap), math.inf if solved else _GROWTH * work
        if result.gap < (gap if self.better is None else self.better.gap):
            self.better = result
        return self.better


def compile_kernels() -> None:
    """Compile the projections, for shapes that take each of their branches."""
    for shape in ((2, 1), (300, 10), (10, 300)):
        point = np.random.default_rng(0).standard_normal(shape)
        project_l1inf_ball(point, 1.0)
        prox_l1inf(point, 0.5)


class ActiveSet:
    """The constraints that hold with equality, and the points that they define."""

    def __init__(self, form: HingeForm, W: Array, dual: Array) -> None:
        self.form, self.work = form, 0.0
        units = feature_units(form.design)
        self.t: Array = np.ones(form.design.n_features) if units is None else units
        self.design = design = form.design if units is None else in_units(form.design, units)
        self.a, self.W = np.array(dual, dtype=float), np.array(W / self.t[:, None], dtype=float)
        self.mu = np.abs(self.W).max(axis=1)
        self.G = design.adjoint(self.a * form.labels)
        norms = np.abs(self.G).sum(axis=1) / self.t
        self.theta = float(form.penalty) if form.penalty is not None else float(norms.max())
        self.radius_binds = form.radius is not None and bool((self.t * self.mu).sum() >= (1.0 - 1e-6) * form.radius)
        if form.radius is not None and not self.radius_binds:
            self.theta = 0.0
        self.margins = form.labels * design.forward(self.W)
        self.largest = float(form.weights.max(initial=0.0))
        self.slope = max(self.theta * float(self.t.min()), float(np.abs(self.G).max(initial=0.0)))
        self.unit = form.radius or 1.0
        self.factors: dict[int, tuple[bytes, Factor | None]] = {}
        self._guess()
        self.entries = max(1, design.n_stored * (design.n_tasks if design.is_shared else 1))
        self.work += 1.0

    def _guess(self) -> None:
        """The active set of one primal-dual step, of a size at which primal and dual points move equally far in units of their own."""
        size, slope = float(np.abs(self.W).max(initial=0.0)), float(np.abs(self.G).max(initial=0.0))
        tau = size / slope if slope > 0.0 else 0.0
        V = self.W + tau * self.G
        P = prox_l1inf(V / self.t[:, None], tau * self.theta) * self.t[:, None] if tau * self.theta > 0.0 else V
        self.mu = np.abs(P).max(axis=1)
        self.active = self.mu > 0.0
        self.inside = (np.abs(V) < self.mu[:, None]) & self.active[:, None]
        self.sign = np.where(self.active[:, None] & ~self.inside, np.sign(V), 0.0)
        target = self.a + self.largest * (1.0 - self.margins)
        self.upper = target >= self.form.weights
        self.on = (target > 0.0) & ~self.upper

    # the two systems

    def solve(self, budget: float) -> bool:
        """Move both points to the solutions of the active set, by least squares; false where that costs more than the budget.

        Factors and what they eliminate count their operations, and every task the calls it takes, in passes of 4 operations an entry of
        the data and the calls of a step. Besides there are two passes.
        """
        self.rows = np.flatnonzero(self.active)
        self.n_inside = int(self.inside.sum())
        design, n_rows = self.design, len(self.rows)
        marks = self.on.astype(float)
        on: Array = np.array([np.count_nonzero(design.task_outputs(marks, k)) for k in range(design.n_tasks)]).astype(float)
        own = self.inside.sum(axis=0).astype(float)
        left = float(np.maximum(on - own, 0.0).sum()) + 1.0
        if max(on.max(), own.max(), left, n_rows) > MOST_UNKNOWNS:
            return False
        operations = float((3.0 * np.maximum(on, own) * on * own + 2.0 * on * on * n_rows + _CALLS).sum())
        operations += 3.0 * max(left, n_rows) * min(left, n_rows) ** 2
        cost = 2.0 + operations / (4.0 * self.entries + _STEP_CALLS)
        if cost > budget:
            return False
        self.work += cost
        self.system = self._assemble()
        self._solve_primal()
        self._solve_dual()
        return True

    def _assemble(self) -> System:
        design, blocks = self.design, []
        on_margin = self.on.astype(float)
        for k in range(design.n_tasks):
            on, inside = np.flatnonzero(design.task_outputs(on_margin, k)), np.flatnonzero(self.inside[:, k])
            X = design.examples(k, on)
            X = dense(X) * design.task_outputs(self.form.labels, k)[on][:, None]
            own, border = X[:, inside], X[:, self.rows] * self.sign[self.rows, k]
            key = on.tobytes() + b"|" + inside.tobytes()
            if k not in self.factors or self.factors[k][0] != key:  # one task in each exchange
                self.factors[k] = key, Factor(own, complement=True) if min(own.shape) else None
            blocks.append(Block(own, border, self.factors[k][1]))
        last = self.t[self.rows] / self.unit if self.radius_binds else None
        return System(blocks, last, len(self.rows))

    def _stacked_on(self) -> NDArray[np.bool_]:
        """Return the mask of examples on their margin, task after task."""
        return self.design.stack(self.on.astype(float)) > 0.0

    def _stacked(self, R: Array) -> Array:
        """R, shaped like the labels, task after task: values of the examples on their margin."""
        return np.asarray(self.design.stack(R)[self._stacked_on()])

    def _spread(self, values: Array) -> Array:
        """The inverse of `_stacked`, with zeros elsewhere."""
        mask = self._stacked_on()
        out = np.zeros(len(mask))
        out[mask] = values
        return self.design.unstack(out)

    def _point(self, z: Array) -> tuple[Array, Array]:
        mu = np.zeros(len(self.mu))
        mu[self.rows] = z[self.n_inside :]
        W = self.sign * mu[:, None]
        W.T[self.inside.T] = z[: self.n_inside]
        return W, mu

    def _unknowns(self, W: Array, mu: Array) -> Array:
        return np.concatenate([W.T[self.inside.T], mu[self.rows]])

    def _solve_primal(self) -> None:
        z = self._unknowns(self.W, self.mu)
        b = np.ones(int(self.on.sum()) + int(self.radius_binds))
        if self.radius_binds:
            b[-1] = (self.form.radius or 0.0) / self.unit
        z = z + self.system.solve(b - self.system.apply(z))
        self.primal_rest = b - self.system.apply(z)
        self.W, self.mu = self._point(z)
        self.margins = self.form.labels * self.design.forward(self.W)

    def _solve_dual(self) -> None:
        form = self.form
        a = np.where(self.upper, form.weights, 0.0)
        G = self.design.adjoint(a * form.labels)
        at_bounds = (self.sign * G).sum(axis=1)[self.rows]
        c = np.concatenate([-G.T[self.inside.T], (0.0 if self.radius_binds else self.theta) * self.t[self.rows] - at_bounds])
        x = self._stacked(self.a)
        if self.radius_binds:
            x = np.append(x, -self.theta * self.unit)
        x = x + self.system.solve_transposed(c - self.system.apply_transposed(x))
        self.dual_rest = c - self.system.apply_transposed(x)
        if self.radius_binds:
            self.theta = -float(x[-1]) / self.unit
            x = x[:-1]
        self.a = a + self._spread(x)
        self.G = self.design.adjoint(self.a * form.labels)

    def candidate(self) -> tuple[Array, Array]:
        """Return both points, projected onto the admissible ones."""
        W = self.W * self.t[:, None]
        if self.form.radius is not None:
            W = project_l1inf_ball(W, self.form.radius)
        return np.array(W), np.clip(self.a, 0.0, self.form.weights)

    # exchanges

    def improve(self) -> bool:
        """Exchange one constraint of the active set; false where it is optimal."""
        if np.abs(self.primal_rest).max(initial=0.0) > _NONE:
            return self._dual_step()
        if np.abs(self.dual_rest).max(initial=0.0) > _NONE * self.slope:
            return self._primal_step()
        return self._drop_primal_violation() or self._drop_dual_violation()

    def _dual_step(self) -> bool:
        """Along the rest of the primal system, A^T rest = 0, the bound rises: to the first constraint met."""
        form, rest = self.form, self.primal_rest
        d_theta = 0.0
        if self.radius_binds:
            d_theta, rest = -float(rest[-1]) / self.unit, rest[:-1]
        da = self._spread(rest)
        dG = self.design.adjoint(da * form.labels)
        self.work += 0.5
        tiny = 1e-13 * float(np.abs(da).max(initial=0.0))
        room = np.where(da > tiny, form.weights - self.a, np.where(da < -tiny, self.a, math.inf))
        times = np.maximum(room, 0.0) / np.where(np.abs(da) > tiny, np.abs(da), 1.0)
        times[~self.on] = math.inf
        example = int(times.argmin())
        # entries on their bound, whose multiplier must not change its sign
        signed, rate = self.sign * self.G, self.sign * dG
        small = 1e-13 * float(np.abs(dG).max(initial=0.0))
        entries = np.where(rate < -small, np.maximum(signed, 0.0) / np.where(rate < -small, -rate, 1.0), math.inf)
        entry = int(entries.argmin())
        binding = self.theta / -d_theta if self.radius_binds and d_theta < 0.0 else math.inf
        time = min(float(times.flat[example]), float(entries.flat[entry]), binding)
        row, time_of_row = self._first_row(dG, d_theta, time)
        if row is None and math.isinf(time):
            return False
        if row is not None:
            time = time_of_row
        self.a = self.a + time * da
        self.G = self.G + time * dG
        self.theta += time * d_theta
        if row is not None:
            self._enter_row(row)
        elif time == times.flat[example]:
            self.on.flat[example] = False
            self.upper.flat[example] = bool(da.flat[example] > 0.0)
        elif time == entries.flat[entry]:
            self.inside.flat[entry], self.sign.flat[entry] = True, 0.0
        else:
            self.radius_binds, self.theta = False, 0.0
        return True

    def _enter_row(self, row: int) -> None:
        self.active[row], self.inside[row], self.sign[row] = True, False, np.sign(self.G[row])

    def _first_row(self, dG: Array, d_theta: float, time: float) -> tuple[int | None, float]:
        """The zero row whose sum_k |G_jk + t dG_jk| reaches theta + t d_theta first, before `time`; by Newton's method from the right."""
        zero = np.flatnonzero(~self.active)
        if len(zero) == 0:
            return None, time
        G, D, t = self.G[zero], dG[zero], self.t[zero]
        if math.isinf(time):  # a time at which some row is beyond theta, if there is any
            rates = np.abs(D).sum(axis=1) - d_theta * t
            if rates.max() <= 1e-13 * max(1.0, abs(d_theta)):
                return None, time
            steepest = int(rates.argmax())
            time = float((np.abs(G[steepest]).sum() + abs(self.theta) * t[steepest]) * 2.0 / rates[steepest])
        chosen: int | None = None
        for _ in range(60):
            H = G + time * D
            excess = np.abs(H).sum(axis=1) - (self.theta + time * d_theta) * t
            worst = int(excess.argmax())
            if excess[worst] <= 1e-14 * max(1e-300, abs(self.theta) * t[worst]):
                break
            rate = float((np.sign(H[worst]) * D[worst]).sum()) - d_theta * float(t[worst])
            chosen = int(zero[worst])
            if rate <= 0.0:  # beyond theta before the step: at once
                return chosen, 0.0
            time = max(0.0, time - float(excess[worst]) / rate)
            if time == 0.0:
                break
        return chosen, time

    def _primal_step(self) -> bool:
        """Against the rest of the dual system, A rest = 0, the objective falls: to the first constraint met."""
        dW, dmu = self._point(-self.system.null_direction(self.dual_rest))
        dm = self.form.labels * self.design.forward(dW)
        self.work += 0.5
        small = 1e-13 * float(np.abs(dm).max(initial=0.0))
        off = ~self.on & (np.where(self.upper, dm, -dm) > small)
        times = np.where(off, np.maximum(np.where(self.upper, 1.0 - self.margins, self.margins - 1.0), 0.0), math.inf)
        times /= np.where(off, np.abs(dm), 1.0)
        example = int(times.argmin())
        side = np.where(dW > 0.0, 1.0, -1.0)
        closing = side * dW - dmu[:, None]
        tiny = 1e-13 * float(np.abs(dW).max(initial=0.0))
        met = self.inside & (closing > tiny)
        entries = np.where(met, np.maximum(self.mu[:, None] - side * self.W, 0.0), math.inf) / np.where(met, closing, 1.0)
        # the other side closes as well where mu falls faster than W moves
        closing = -side * dW - dmu[:, None]
        met = self.inside & (closing > tiny)
        others = np.where(met, np.maximum(self.mu[:, None] + side * self.W, 0.0), math.inf) / np.where(met, closing, 1.0)
        side = np.where(others < entries, -side, side)
        entries = np.minimum(entries, others)
        entry = int(entries.argmin())
        falls = self.active & (dmu < -tiny)
        rows = np.where(falls, np.maximum(self.mu, 0.0), math.inf) / np.where(falls, -dmu, 1.0)
        row = int(rows.argmin())
        time = min(float(times.flat[example]), float(entries.flat[entry]), float(rows[row]))
        total = float((self.t * dmu).sum())
        excess = math.inf
        if self.form.radius is not None and not self.radius_binds and total > 0.0:
            excess = max(0.0, self.form.radius - float((self.t * self.mu).sum())) / total
        if math.isinf(min(time, excess)):
            return False
        time = min(time, excess)
        self.W, self.mu = self.W + time * dW, self.mu + time * dmu
        self.margins = self.margins + time * dm
        if time == excess:
            self.radius_binds = True
        elif time == times.flat[example]:
            self.on.flat[example], self.upper.flat[example] = True, False
        elif time == entries.flat[entry]:
            self.inside.flat[entry], self.sign.flat[entry] = False, side.flat[entry]
        else:
            self._leave_row(row)
        return True

    def _leave_row(self, row: int) -> None:
        self.active[row], self.inside[row], self.sign[row] = False, False, 0.0

    def _drop_primal_violation(self) -> bool:
        """The largest: an entry beyond mu_j, a negative mu_j, an example on the wrong side of its margin, too large a norm."""
        size = max(float(np.abs(self.W).max(initial=0.0)), np.finfo(float).tiny)
        wrong = np.where(self.on, 0.0, np.where(self.upper, self.margins - 1.0, 1.0 - self.margins))
        beyond = np.where(self.inside, np.abs(self.W) - self.mu[:, None], 0.0) / size
        negative = np.where(self.active, -self.mu, 0.0) / size
        excess = 0.0
        if self.form.radius is not None and not self.radius_binds:
            excess = (float((self.t * self.mu).sum()) - self.form.radius) / max(self.form.radius, np.finfo(float).tiny)
        example, entry, row = int(wrong.argmax()), int(beyond.argmax()), int(negative.argmax())
        largest = max(float(wrong.flat[example]), float(beyond.flat[entry]), float(negative[row]), excess)
        if largest <= _NONE:
            return False
        if largest == excess:
            self.radius_binds = True
        elif largest == negative[row]:
            self._leave_row(row)
        elif largest == wrong.flat[example]:
            self.on.flat[example], self.upper.flat[example] = True, False
        else:
            self.inside.flat[entry], self.sign.flat[entry] = False, np.sign(self.W.flat[entry])
        return True

    def _drop_dual_violation(self) -> bool:
        """The largest: a outside its box, a multiplier of the wrong sign, a zero row beyond theta, a negative theta."""
        slope = max(self.slope, np.finfo(float).tiny)
        box = np.maximum(-self.a, self.a - self.form.weights) / max(self.largest, np.finfo(float).tiny)
        signs = -self.sign * self.G / slope
        rows = np.where(self.active, 0.0, np.abs(self.G).sum(axis=1) - self.theta * self.t) / slope
        example, entry, row = int(box.argmax()), int(signs.argmax()), int(rows.argmax())
        negative = -self.theta / slope if self.radius_binds else 0.0
        largest = max(float(box.flat[example]), float(signs.flat[entry]), float(rows[row]), negative)
        if largest <= _NONE:
            return False
        if largest == negative:
            self.radius_binds, self.theta = False, 0.0
        elif largest == rows[row]:
            self._enter_row(row)
        elif largest == box.flat[example]:
            self.on.flat[example] = False
            self.upper.flat[example] = bool(self.a.flat[example] > 0.0)
        else:
            self.inside.flat[entry], self.sign.flat[entry] = True, 0.0
        return True
