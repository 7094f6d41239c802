"""Predictor-corrector steps of an interior-point method on some rows of W, see `bench_mtl.solvers.interior_point`.

Rows are padded to D, so that programs are compiled for few sizes: columns of the data of padded rows are 0, their slacks and duals are 1,
and stay so. Names and equations are those of `Equations` and `NewtonSystem`; W is D x m here, and outputs are as in `parts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bench_mtl.solvers.accelerator.kernels import parts
from bench_mtl.solvers.accelerator.kernels.parts import Data, Kind

#: As in `interior_point`: what a start is made with, see `equations`, `hinges` and `fits`, and how long steps are, see `step`.
_SPARE, _ABOVE, _BELOW, _STEPS, _RETREAT, _LEAST_BELOW = 0.1, 1.2, 0.5, 10.0, 0.1, 0.1
_LEAST_CURVATURE = 1e-20
_LONGER, _WEIGHTS, _NEIGHBOURHOOD, _LONG_ENOUGH = 0.5, (1.0, 0.7, 0.4), 5.0, 0.95
_LEAST_SHARE, _LARGEST_SHARE, _LEAST_FALL, _HALVINGS = 0.97, 0.999, 0.1, 8
#: Steps from one look at the gap to the next.
STEPS = 1
#: Centrality correctors of a step. Directions are refined once: a step has so many products with the data of its rows, and one with all.
_CORRECTORS = 2
PRODUCTS = 4 * (2 + _CORRECTORS) + 3
#: Added to a diagonal, relative to it, where a factorisation fails; every further try adds a hundred times more.
_FIRST_SHIFT, _LAST_SHIFT = 1e-15, 1e-3


class Slacks(NamedTuple):
    """Slacks r, xi, u, v, c, or their duals a, b, p, q, theta, all above 0; None where a problem has none."""

    r: Any
    xi: Any
    u: Any
    v: Any
    c: Any


class Variables(NamedTuple):
    """A primal-dual point on some rows, or a change of one."""

    W: Any
    mu: Any
    slack: Slacks
    dual: Slacks
    free: Any
    """The dual point of a smooth loss, None of hinges."""


class Rows(NamedTuple):
    """The data of some rows."""

    data: Data
    """Dense, with D features."""
    mask: Any
    """D x 1, 1 for rows and 0 for what they are padded with."""
    gram: Any
    """X^T diag(w) X of every task, or of all, for the squared loss, whose curvatures do not change; None of others."""


class State(NamedTuple):
    """Where a run is."""

    x: Variables
    places: Any
    """Which rows x is on, those of W by number; padded."""
    count: Any
    """How many rows these are."""
    theta: Any
    """The penalty, or the dual of the radius."""
    average: Any
    """The mean product of a slack and its dual."""
    point: Any
    """W, d x m, in the radius."""
    dual: Any
    """r, admissible."""
    G: Any
    """X^T r, d x m."""
    scores: Any
    """The sums of the moduli of its rows."""
    steps: Any
    gap: Any


class _System(NamedTuple):
    """The factors of a Newton system."""

    E: Any
    P: Any
    Q: Any
    t: Any
    columns: Any
    inverse: Any
    """(I + F^T F)^-1 of every task, m x D x D."""
    lower: Any
    """The Cholesky factor of the scaled Schur complement."""
    scale: Any


class _Residuals(NamedTuple):
    r: Any
    s: Any
    u: Any
    v: Any
    c: Any
    W: Any
    mu: Any
    free: Any


def slopes_at_zero(kind: Kind, data: Data, W: Any) -> Any:
    """Return X^T r of the dual point of W = 0, d x m; of W the shape alone matters."""
    return parts.adjoint(kind, data, _dual_at_zero(kind, data), W.shape[0])


def rows_of(kind: Kind, data: Data, places: Any, count: Any, W: Any) -> Rows:
    """Return the data of the first `count` of the rows `places`; of W, d x m, the shape alone matters."""
    size, d = len(places), len(W)
    mask = jnp.arange(size) < count
    if kind.layout == "sparse":
        values, lines, columns, *_ = data.X
        at = jnp.full(d, size).at[jnp.where(mask, places, d)].set(jnp.arange(size), mode="drop")
        X = jnp.zeros((data.y.shape[0], size)).at[lines, at[columns]].add(values, mode="drop")
    else:
        X = data.X[0][..., places] * mask
    dense = data._replace(X=(X,))
    return Rows(dense, mask[:, None] * 1.0, _grams(kind, dense, data.w) if kind.loss == "squared" else None)


def begin(kind: Kind, rows: Rows, places: Any, count: Any, W: Any, penalty: Any) -> State:
    """Return a state near W (d x m) on these rows, strictly inside all bounds; the penalty is that of the problem, or a little above it."""
    data, mask, inner = rows.data, rows.mask, _dense(kind)
    point, (size, m) = W, (len(places), W.shape[1])
    retreat = jnp.where((W != 0.0).any(), _RETREAT, 1.0)
    W = (1.0 - retreat) * W[places] * mask
    full = parts.adjoint(inner, data, _dual_at_zero(kind, data), size)
    predicted = parts.forward(inner, data, W)
    if kind.loss == "hinge":
        short = 1.0 - data.y * predicted
        root = jnp.hypot(short, 2.0 * retreat)
        xi = jnp.where(short > 0.0, 0.5 * (short + root), 2.0 * retreat**2 / (root - short))
        r = retreat**2 / xi
        free = data.y * data.w * (xi / (xi + r))
    else:
        r, xi, free = None, None, -parts.slopes(kind, data, predicted)
    extent = data.size
    if kind.is_penalty:
        extent = jnp.minimum(parts.loss_value(kind, data, jnp.zeros(data.y.shape)) / penalty, _STEPS * _step_norm(kind, rows, full))
    spread = retreat * extent
    mu = jnp.abs(W).max(axis=1) + (1.0 - _SPARE) * spread / count
    G = parts.adjoint(inner, data, free, size)
    largest, scale = parts.dual_norm("l1inf", G), jnp.ones(())
    if kind.is_penalty:
        theta = penalty
        scale = jnp.where(largest > 0.0, jnp.minimum(1.0, _BELOW * theta / jnp.where(largest > 0.0, largest, 1.0)), 1.0)
    else:
        theta = _ABOVE * jnp.where(largest > 0.0, largest, parts.dual_norm("l1inf", full))
    G = scale * G
    spare = ((theta - jnp.abs(G).sum(axis=1)) / (2.0 * m))[:, None]
    c = None if kind.is_penalty else data.size - (mask[:, 0] * mu).sum()
    slack = Slacks(r, xi, mu[:, None] - W, mu[:, None] + W, c)
    dual = Slacks(None, None, jnp.maximum(G, 0.0) + spare, jnp.maximum(-G, 0.0) + spare, None if kind.is_penalty else theta)
    if kind.loss == "hinge":
        a = data.y * free * jnp.where(scale < 1.0, jnp.maximum(scale, _LEAST_BELOW), 1.0)
        dual, free = dual._replace(r=a, xi=data.w - a), None
    else:
        free = scale * free
    slack, dual = (part._replace(u=jnp.where(mask > 0.0, part.u, 1.0), v=jnp.where(mask > 0.0, part.v, 1.0)) for part in (slack, dual))
    x = Variables(W, jnp.where(mask[:, 0] > 0.0, mu, 1.0), slack, dual, free)
    output, zero = jnp.zeros(data.y.shape), jnp.zeros(())
    return State(x, places, count, theta, zero, point, output, jnp.zeros(point.shape), jnp.zeros(len(point)), zero, jnp.full((), jnp.inf))


def step(kind: Kind, data: Data, rows: Rows, state: State) -> State:
    """Take one step on the rows of a state, and look at its gap in the problem of all rows; inf where the step fails.

    Mehrotra's predictor-corrector, then centrality correctors (Gondzio, 1996), as `interior_point.step.advance`.
    """
    x, inner, mask = state.x, _dense(kind), rows.mask
    predicted = parts.forward(inner, rows.data, x.W)
    rho = _residuals(kind, rows, x, state.theta, predicted)
    E = _weights(kind, rows.data, x, predicted)
    system = _factored_system(kind, rows, x, E)
    together = kind.loss != "hinge"

    def direction(target: Slacks, residuals: _Residuals | None) -> Variables:
        return _direction(kind, rows, (x, system), _masked(target, mask), residuals)

    products = jax.tree.map(jnp.multiply, x.slack, x.dual)
    average = _mean(products, rows)
    predictor = direction(jax.tree.map(jnp.negative, products), rho)
    goal = average * jnp.clip(_mean(_products(x, predictor, _lengths(x, predictor, together)), rows) / average, 0.0, 1.0) ** 3
    second = jax.tree.map(lambda product, ds, dd: goal - product - ds * dd, products, predictor.slack, predictor.dual)
    way = direction(second, rho)

    def corrected(_: Any, carry: tuple[Variables, tuple[Any, Any]]) -> tuple[Variables, tuple[Any, Any]]:
        way, lengths = carry
        corrector = direction(_recentring(x, way, lengths, goal), None)
        weights = jnp.array(_WEIGHTS)
        trials = jax.lax.map(lambda weight: _lengths(x, _moved(way, corrector, weight, weight), together), weights)
        best = jnp.argmax(trials[0] + trials[1])
        longer = trials[0][best], trials[1][best]
        is_better = (sum(longer) > sum(lengths)) & (jnp.minimum(*lengths) <= _LONG_ENOUGH)
        weight = jnp.where(is_better, weights[best], 0.0)
        primal, dual = (jnp.where(is_better, new, old) for new, old in zip(longer, lengths, strict=True))
        return _moved(way, corrector, weight, weight), (primal, dual)

    way, _ = jax.lax.fori_loop(0, _CORRECTORS, corrected, (way, _lengths(x, way, together)))
    # Where the goal is far below the average the method converges faster than linearly, unless steps stop at a fixed share.
    share = jnp.clip(1.0 - goal / average, _LEAST_SHARE, _LARGEST_SHARE)
    primal, dual = _lengths(x, way, together, share)
    if kind.loss == "logistic":
        primal = dual = _damped(rows, kind, (x, way), predicted, primal)
    return _looked_at(kind, data, rows, state._replace(x=_moved(x, way, primal, dual), steps=state.steps + 1.0))


def _looked_at(kind: Kind, data: Data, rows: Rows, state: State) -> State:
    """Return a state with W, r and the gap of its point."""
    x, d = state.x, state.point.shape[0]
    sides = jnp.stack([jnp.stack([part.min(), part.max()]) for part in jax.tree.leaves((x.slack, x.dual))])
    inside = (sides[:, 0] > 0.0).all() & jnp.isfinite(sides).all() & jnp.isfinite(x.W).all()
    norm = parts.norm_value("l1inf", x.W)
    factor = 1.0 if kind.is_penalty else jnp.where(norm > data.size, data.size / norm, 1.0)
    at = jnp.where(rows.mask[:, 0] > 0.0, state.places, d)
    W, predicted = factor * x.W, factor * parts.forward(_dense(kind), rows.data, x.W)
    point = jnp.zeros(state.point.shape).at[at].set(W, mode="drop")
    r = x.free
    if kind.loss != "squared":
        r = data.y * jnp.clip(x.dual.r if r is None else data.y * r, 0.0, data.w)
    G = parts.adjoint(kind, data, r, d)
    gap = jnp.where(inside, parts.relative_gap(kind, data, (point, predicted), (r, G)), jnp.inf)
    theta = state.theta if kind.is_penalty else x.dual.c
    average = _mean(jax.tree.map(jnp.multiply, x.slack, x.dual), rows)
    return state._replace(theta=theta, average=average, point=point, dual=r, G=G, scores=jnp.abs(G).sum(axis=1), gap=gap)


def _dense(kind: Kind) -> Kind:
    """Return the kind of the data of some rows."""
    return kind._replace(layout="cube" if kind.layout == "cube" else "shared")


def _masked(slacks: Slacks, mask: Any) -> Slacks:
    return slacks._replace(u=slacks.u * mask, v=slacks.v * mask)


def _mean(products: Slacks, rows: Rows) -> Any:
    """Return the mean of products of slacks and duals, without those of padded rows."""
    total = sum(part.sum() for part in jax.tree.leaves(_masked(products, rows.mask)))
    sizes = [part.size for part in (products.r, products.xi, products.c) if part is not None]
    return total / (sum(sizes) + 2.0 * rows.mask.sum() * products.u.shape[1])


def _dual_at_zero(kind: Kind, data: Data) -> Any:
    zero = jnp.zeros(data.y.shape)
    return data.y * data.w + zero if kind.loss == "hinge" else -parts.slopes(kind, data, zero)


def _step_norm(kind: Kind, rows: Rows, full: Any) -> Any:
    """Return the norm of a step from zero along minus the gradient there, `full`: Polyak's, or that to the minimum of a quadratic model."""
    data, largest = rows.data, jnp.abs(full).max()
    scaled = full / largest
    if kind.loss == "hinge":
        length = parts.loss_value(kind, data, jnp.zeros(data.y.shape)) / largest / (scaled**2).sum()
    else:
        bent = (_curvatures(kind, data, jnp.zeros(data.y.shape)) * parts.forward(_dense(kind), data, scaled) ** 2).sum()
        length = jnp.where(bent > 0.0, (full * scaled).sum() / jnp.where(bent > 0.0, bent, 1.0), 0.0)
    return length * parts.norm_value("l1inf", scaled)


def _curvatures(kind: Kind, data: Data, predicted: Any) -> Any:
    if kind.loss == "squared":
        return data.w
    share = jax.nn.sigmoid(-data.y * predicted)
    return data.w * share * (1.0 - share)


def _weights(kind: Kind, data: Data, x: Variables, predicted: Any) -> Any:
    """Return the E of the Newton system."""
    if kind.loss == "hinge":
        return 1.0 / (x.slack.r / x.dual.r + x.slack.xi / x.dual.xi)
    curvatures = _curvatures(kind, data, predicted)
    return jnp.maximum(curvatures, _LEAST_CURVATURE * curvatures.max())


def _residuals(kind: Kind, rows: Rows, x: Variables, theta: Any, predicted: Any) -> _Residuals:
    data, slack, dual = rows.data, x.slack, x.dual
    signed = data.y * dual.r if kind.loss == "hinge" else x.free
    G, mu, mask = parts.adjoint(_dense(kind), data, signed, len(x.mu)), x.mu[:, None], rows.mask
    r = s = free = c = None
    if kind.loss == "hinge":
        r, s = data.y * predicted + slack.xi - 1.0 - slack.r, data.w - dual.r - dual.xi
    else:
        free = -parts.slopes(kind, data, predicted) - x.free
    if not kind.is_penalty:
        c = data.size - (mask[:, 0] * x.mu).sum() - slack.c
    of_mu = mask[:, 0] * (theta - (dual.u + dual.v).sum(axis=1))
    return _Residuals(r, s, (mu - x.W - slack.u) * mask, (mu + x.W - slack.v) * mask, c, (G - dual.u + dual.v) * mask, of_mu, free)


def _grams(kind: Kind, data: Data, E: Any) -> Any:
    """Return X_k^T diag(E_k) X_k of every task, or one for all where E is of all."""

    def square(X: Any, root: Any) -> Any:
        half = X * root[:, None]
        return half.T @ half

    if kind.layout == "cube":
        return jax.lax.map(lambda task: square(*task), (data.X[0], jnp.broadcast_to(jnp.sqrt(E), data.y.shape)))
    return jax.lax.map(lambda root: square(data.X[0], root), jnp.sqrt(E).T)


def _cholesky(A: Any) -> Any:
    """Return the lower factors of symmetric matrices, with a raised diagonal where one fails."""
    diagonal = A * jnp.eye(A.shape[-1])

    def fails(carry: tuple[Any, Any]) -> Any:
        return ~jnp.isfinite(carry[1]).all() & (carry[0] < _LAST_SHIFT)

    def again(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        shift = jnp.maximum(_FIRST_SHIFT, 100.0 * carry[0])
        return shift, jnp.linalg.cholesky(A + shift * diagonal)

    return jax.lax.while_loop(fails, again, (jnp.zeros(()), jnp.linalg.cholesky(A)))[1]


def _factored_system(kind: Kind, rows: Rows, x: Variables, E: Any) -> _System:
    """Return the factors of the Newton system with the weights E."""
    P, Q = x.dual.u / x.slack.u, x.dual.v / x.slack.v
    t = jnp.zeros(()) if kind.is_penalty else x.dual.c / x.slack.c
    T, eye, mask = P + Q, jnp.eye(len(x.mu)), rows.mask
    columns = 1.0 / jnp.sqrt(T)
    ends, sides = columns.T, ((Q - P) * columns).T
    gram = _grams(kind, rows.data, E) if rows.gram is None else rows.gram
    lower = _cholesky(ends[:, :, None] * gram * ends[:, None, :] + eye)
    half = jax.scipy.linalg.solve_triangular(lower, jnp.broadcast_to(eye, lower.shape), lower=True)
    inverse = jnp.swapaxes(half, 1, 2) @ half
    S = (sides[:, :, None] * (eye - inverse) * sides[:, None, :]).sum(axis=0)
    S = S + t * (mask @ mask.T) + jnp.diag((4.0 * P * (Q / T)).sum(axis=1))
    scale = 1.0 / jnp.sqrt(jnp.diagonal(S))
    return _System(E, P, Q, t, columns, inverse, _cholesky(scale[:, None] * S * scale), scale)


def _solved(kind: Kind, rows: Rows, system: _System, f: Any, g: Any, h: Any) -> tuple[Any, Any, Any]:
    """Return dW, dmu and da of the Newton system, refined once."""
    inner, data = _dense(kind), rows.data
    E, P, Q = system.E, system.P, system.Q

    def by_tasks(V: Any) -> Any:
        return system.columns * jnp.einsum("kde,ek->dk", system.inverse, system.columns * V)

    def once(f: Any, g: Any, h: Any) -> tuple[Any, Any, Any]:
        right = f if g is None else f + parts.adjoint(inner, data, E * g, len(h))
        rest = h - ((Q - P) * by_tasks(right)).sum(axis=1)
        mu = system.scale * jax.scipy.linalg.cho_solve((system.lower, True), system.scale * rest)
        W = by_tasks(right - (Q - P) * mu[:, None])
        return W, mu, -E * parts.forward(inner, data, W) if g is None else E * (g - parts.forward(inner, data, W))

    W, mu, a = once(f, g, h)
    upper, lower = P * (mu[:, None] - W), Q * (mu[:, None] + W)
    left = h - (upper + lower).sum(axis=1) - system.t * rows.mask[:, 0] * mu.sum()
    change = once(f + parts.adjoint(inner, data, a, len(h)) + upper - lower, None, left)
    return W + change[0], mu + change[1], a + change[2]


def _direction(kind: Kind, rows: Rows, at: tuple[Variables, _System], target: Slacks, rho: _Residuals | None) -> Variables:
    """Return the direction with slack * ddual + dual * dslack = target that removes the residuals (None: there are none)."""
    (x, system), y = at, rows.data.y
    slack, dual, P, Q = x.slack, x.dual, system.P, system.Q
    of_u, of_v, of_c = target.u / slack.u, target.v / slack.v, None if target.c is None else target.c / slack.c
    ku, kv, g = of_u, of_v, None
    if kind.loss == "hinge":
        g = target.r / dual.r - target.xi / dual.xi
        g = y * (g if rho is None else g + slack.xi / dual.xi * rho.s - rho.r)
    elif rho is not None:
        g = rho.free / system.E
    if rho is not None:
        ku, kv = ku - P * rho.u, kv - Q * rho.v
    f, h = kv - ku, (ku + kv).sum(axis=1)
    if of_c is not None:
        h = h - rows.mask[:, 0] * (of_c if rho is None else of_c - system.t * rho.c)
    if rho is not None:
        f, h = f + rho.W, h - rho.mu
    W, mu, a = _solved(kind, rows, system, f, g, h)
    r = xi = c = da = db = dtheta = free = None
    if kind.loss == "hinge":
        da = y * a
        db = -da if rho is None else rho.s - da
        r, xi = (target.r - slack.r * da) / dual.r, (target.xi - slack.xi * db) / dual.xi
    else:
        free = a
    u, v = mu[:, None] - W, mu[:, None] + W
    if rho is not None:
        u, v = u + rho.u, v + rho.v
    if of_c is not None:
        c = -mu.sum() if rho is None else rho.c - mu.sum()
        dtheta = of_c - system.t * c
    return Variables(W, mu, Slacks(r, xi, u, v, c), Slacks(da, db, of_u - P * u, of_v - Q * v, dtheta), free)


def _moved(x: Variables, way: Variables, primal: Any, dual: Any) -> Variables:
    """Return a point after a step, or a direction with a multiple of another one."""

    def by(length: Any) -> Callable[[Any, Any], Any]:
        return lambda one, other: one + length * other

    first = jax.tree.map(by(primal), x[:3], way[:3])
    return Variables(*first, *jax.tree.map(by(dual), x[3:], way[3:]))


def _lengths(x: Variables, way: Variables, together: bool, share: Any = 1.0) -> tuple[Any, Any]:
    """Return the primal and the dual step: `share` of the way to the boundary, at most 1."""

    def length(values: Slacks, changes: Slacks) -> Any:
        ratios = [(-change / value).max() for value, change in zip(*map(jax.tree.leaves, (values, changes)), strict=True)]
        return share / jnp.maximum(jnp.stack(ratios).max(), share)

    primal, dual = length(x.slack, way.slack), length(x.dual, way.dual)
    return (jnp.minimum(primal, dual),) * 2 if together else (primal, dual)


def _products(x: Variables, way: Variables, lengths: tuple[Any, Any]) -> Slacks:
    """Return the products of slacks and duals after a step."""
    there = _moved(x, way, *lengths)
    return jax.tree.map(jnp.multiply, there.slack, there.dual)


def _recentring(x: Variables, way: Variables, lengths: tuple[Any, Any], goal: Any) -> Slacks:
    """Return the right-hand sides that bring the products after a longer step back into the neighbourhood of the goal."""
    products = _products(x, way, tuple(jnp.minimum(1.0, length + _LONGER) for length in lengths))
    highest = goal * _NEIGHBOURHOOD

    def missing(product: Any) -> Any:
        return jnp.maximum(jnp.clip(product, goal / _NEIGHBOURHOOD, highest) - product, -highest)

    return jax.tree.map(missing, products)


def _damped(rows: Rows, kind: Kind, line: tuple[Variables, Variables], predicted: Any, length: Any) -> Any:
    """Return the length of a step after which what is missing of the dual point, which is not linear in W, falls or is small."""
    (x, way), data = line, rows.data
    rise = parts.forward(_dense(kind), data, way.W)

    def missing(length: Any) -> Any:
        return -parts.slopes(kind, data, predicted + length * rise) - (x.free + length * way.free)

    before = jnp.abs(missing(0.0)).sum()

    def is_long(carry: tuple[Any, Any]) -> Any:
        length, halvings = carry
        left = missing(length)
        cost = 0.5 * (left**2 / _weights(kind, data, x, predicted + length * rise)).sum()
        products = _masked(_products(x, way, (length, length)), rows.mask)
        gap = sum(part.sum() for part in jax.tree.leaves(products))
        return (halvings < _HALVINGS) & (jnp.abs(left).sum() > (1.0 - _LEAST_FALL * length) * before) & (cost > gap)

    return jax.lax.while_loop(is_long, lambda carry: (0.5 * carry[0], carry[1] + 1), (length, 0))[0]
