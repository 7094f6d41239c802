"""Newton's method for smooth losses of linear predictions on a simplex, or on its part in a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import whole_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import CurvedForm
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.projections import project_box_simplex
from bench_mtl.solvers.second_order import solved

#: The ridge, relative to each diagonal entry: columns may be equal, or more than rows.
_RIDGE = 1e-10
#: Armijo's share of the promised decrease.
_DECREASE = 1e-4

_HALVINGS = 40
#: Gains of a pair of variables below this share of the largest gradient entry count as 0.
_ROUNDING = 1e-15
#: Multiples of the identity that are added to a matrix whose diagonal is 1, until it can be factorised: one that the last does not help has
#: an entry that is no number.
_SHIFTS = (0.0, *10.0 ** np.arange(-12.0, 7.0, 2.0))


@dataclass(frozen=True)
class SimplexNewton(SteppingSolver):
    """w <- w + t p, with p minimising the quadratic model of f(X w) at w over the feasible set, in some of the variables.

    ::

        min_p  <g, p> + 1/2 p^T X^T diag(f'') X p    subject to  sum p = 0,  lower <= w + p <= upper,  p = 0 outside the working set

    The working set holds the variables between their bounds, and as many more (at least 8) of those at a bound whose gradient would gain
    most by leaving it. The model is solved by a primal active-set method: from p = 0 to the minimiser on a face, projected onto the set
    where that lowers the model and else cut off at the first bound; bounds that are met are retained; at the minimiser of a face the pair
    of variables that gains most is freed. t halves until f falls by a share of what the gradient promises.

    Unless a start is given, it sets out from the corner of the feasible set that the gradient at the problem's own start point favours: few
    variables between their bounds make small systems (up to 60 times less time than from the centre of 500 assets).

    It ends where no pair gains, or where the gain is lost in rounding. Work counts products with X by their columns.

    Parameters
    ----------
    largest : largest number of variables in the working set

    References
    ----------
    Nocedal, Wright, Numerical Optimization, 2006, algorithms 16.3 (active sets) and 18.1 (SQP).
    """

    largest: int = 500

    name: ClassVar[str] = "simplex_newton"
    takes = (CurvedForm,)

    def __post_init__(self) -> None:
        whole_number("largest", self.largest, minimum=2)

    def stepper(self, problem: Problem) -> _Newton:
        return _Newton(problem, self.largest)


class State(NamedTuple):
    w: Array
    u: Array
    """X w."""
    step: int
    work: float


class _Newton(Stepper):
    def __init__(self, problem: Problem, largest: int) -> None:
        self._form, self._largest, self._usual = problem.form(CurvedForm), largest, problem.start_point()
        self._X: Any = self._form.design.block(0)

    def start(self, at: Iterate) -> State:
        w = at.primal[:, 0].copy()
        return State(w, self._X @ w, 0, 0.5)

    def step(self, now: State) -> State | None:
        form, X, w, u = self._form, self._X, now.w, now.u
        if now.step == 0 and np.array_equal(w, self._usual[:, 0]):
            w = form.vertex(X.T @ form.derivatives(u[:, None])[1][:, 0])
            return State(w, X @ w, 1, now.work + 1.0)
        value, slopes, curvatures = form.derivatives(u[:, None])
        g = X.T @ slopes[:, 0]
        S = working_set(g, w, form, self._largest)
        if S.size < 2:
            return None
        columns = X[:, S]
        p = model_step(g[S], columns, curvatures[:, 0], w[S], form.lower[S], form.upper[S])
        change, slope = columns @ p, float(g[S] @ p)
        t = _length(form, u, change, value, slope)
        if t == 0.0:
            return None
        w = w.copy()
        w[S] = np.clip(w[S] + t * p, form.lower[S], form.upper[S])
        # X w anew, so that rounding does not add up
        return State(w, X @ w, now.step + 1, now.work + 1.0 + 0.5 * S.size * (S.size + 1) / X.shape[1])

    def iterate(self, now: State) -> Iterate:
        return Iterate(now.w[:, None].copy(), None, now.step, now.work)


def working_set(g: Array, w: Array, form: CurvedForm, largest: int) -> Any:
    """Indices of the variables to move, in order: those between their bounds, and those that gain most by leaving theirs.

    Empty where no pair of variables gains.
    """
    up, down = w < form.upper, w > form.lower
    if not up.any() or not down.any():
        return np.zeros(0, dtype=np.int64)
    lowest, highest = float(g[up].min()), float(g[down].max())
    if highest - lowest <= _ROUNDING * float(np.abs(g).max()):
        return np.zeros(0, dtype=np.int64)
    inside = up & down
    more = min(max(8, int(inside.sum())), max(1, largest // 2))
    gain_up = np.flatnonzero(up & ~down & (g < highest))
    gain_down = np.flatnonzero(down & ~up & (g > lowest))
    chosen = inside.copy()
    if inside.sum() + 2 * more > largest:  # those that gain most of all
        chosen[:] = False
        gain_up, gain_down = np.flatnonzero(up & (g < highest)), np.flatnonzero(down & (g > lowest))
        more = max(1, largest // 2)
    chosen[gain_up[np.argsort(g[gain_up], kind="stable")[:more]]] = True
    chosen[gain_down[np.argsort(-g[gain_down], kind="stable")[:more]]] = True
    return np.flatnonzero(chosen)


def model_step(g: Array, X: Array, curvatures: Array, w: Array, lower: Array, upper: Array) -> Array:
    """argmin_p <g, p> + 1/2 p^T X^T diag(curvatures) X p  subject to  sum p = 0,  lower <= w + p <= upper (and a tiny ridge)."""
    # Where sum p = 0, centred columns change nothing, but the direction (1, ..., 1) would drown the others; a share of it is put back
    # below, so that H is not singular.
    centred = X - X.mean(axis=1)[:, None]
    g = g - g.mean()
    scaled = np.sqrt(curvatures)[:, None] * centred
    H = scaled.T @ scaled
    diagonal = np.diag(H)
    largest = float(diagonal.max())
    H[np.diag_indices_from(H)] += _RIDGE * np.where(diagonal > 0.0, diagonal, largest if largest > 0.0 else 1.0)
    H += largest
    low, high = lower - w, upper - w
    p, r = np.zeros(g.shape), g.copy()
    free = np.ones(g.shape, dtype=bool)
    # Rounding of r; a pair that gains less is none.
    noise = 1e-14 * float(np.abs(g).max())
    for _ in range(5 * len(g) + 20):
        F = np.flatnonzero(free)
        delta = _face_step(H, r, F) if len(F) > 1 else np.zeros(len(F))
        new, complete = _move(H, g, p, F, delta, low, high)
        p = new
        r = g + H @ p
        free &= (p > low) & (p < high)
        if not complete:
            continue
        up, down = p < high, p > low
        i = int(np.where(up, r, np.inf).argmin())
        j = int(np.where(down, r, -np.inf).argmax())
        if not (up[i] and down[j]) or r[j] - r[i] <= noise or (free[i] and free[j]):
            break
        free[i] = free[j] = True
    return p


def _face_step(H: Array, r: Array, F: Any) -> Array:
    """Return the argmin over steps of the free variables that add up to 0."""
    block = H[np.ix_(F, F)]
    scale = 1.0 / np.sqrt(np.diag(block))
    block = block * scale * scale[:, None]
    sides = scale[:, None] * np.stack([r[F] - r[F].mean(), np.ones(len(F))], axis=1)
    tried = (solved(block.copy(), sides, shift) for shift in _SHIFTS)
    found = next((each for each in tried if each is not None), None)
    if found is None:
        return np.zeros(len(F))
    found = scale[:, None] * found
    delta = found[:, 1] * (found[:, 0].sum() / found[:, 1].sum()) - found[:, 0]
    return np.asarray(delta - delta.mean())


def _move(H: Array, g: Array, p: Array, F: Any, delta: Array, low: Array, high: Array) -> tuple[Array, bool]:
    """Return p moved on the free variables by delta as far as the bounds allow, and whether they allow all of it."""
    target = p[F] + delta
    new = p.copy()
    if np.all(target >= low[F]) and np.all(target <= high[F]):
        new[F] = target
        return new, True
    new[F] = project_box_simplex(target, float(p[F].sum()), low[F], high[F])
    change = new - p
    if float((g + H @ (p + 0.5 * change)) @ change) < 0.0 and np.any((new[F] <= low[F]) | (new[F] >= high[F])):
        return new, False
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(delta < 0.0, (low[F] - p[F]) / delta, np.where(delta > 0.0, (high[F] - p[F]) / delta, np.inf))
    t = float(room.min())
    new[F] = np.where(room <= t, np.where(delta < 0.0, low[F], high[F]), np.clip(p[F] + t * delta, low[F], high[F]))
    return new, False


def _length(form: CurvedForm, u: Array, change: Array, value: float, slope: float) -> float:
    """Return the first t of 1, 1/2, 1/4, ... that meets the condition of Armijo; 0 where none does.

    Where the fall is lost in the rounding of f, its slope tells (the approximate Wolfe conditions of Hager, Zhang, SIAM J. Optimization
    16, 2005).
    """
    if not slope < 0.0:
        return 0.0
    t, rounding = 1.0, 1e-13 * abs(value)
    for _ in range(_HALVINGS):
        new, slopes, _ = form.derivatives((u + t * change)[:, None])
        flat = new <= value + rounding and float(slopes[:, 0] @ change) <= (2.0 * _DECREASE - 1.0) * slope
        if flat or new <= value + _DECREASE * t * slope:
            return t
        t *= 0.5
    return 0.0
