"""Projections and proximal operators of norms, without sorting: Newton's method on a threshold, for all rows at once.

The formulas are those of `bench_mtl.projections`; tests hold these functions to that package.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

#: Newton steps on the threshold of all rows at most, and the relative change that ends them. Few are needed: the function is convex and
#: piecewise linear, and a threshold that is too large is too small after one step.
_MOST_STEPS, _SETTLED = 60, 4e-16


def levels(A: Any, mass: Any) -> tuple[Any, Any]:
    """Return of every row of A >= 0 the level mu >= 0 with sum_k max(A_jk - mu_j, 0) = mass, or 0 where the row has no more than that, and
    how many entries are above it, at least 1.

    Michelot's fixed point from a lower bound: entries that are once below the level stay there, so that it ends.
    """

    def raised(mu: Any) -> tuple[Any, Any]:
        above = mu[:, None] < A
        count = jnp.maximum(above.sum(axis=1), 1)
        return jnp.maximum(mu, (jnp.where(above, A, 0.0).sum(axis=1) - mass) / count), count

    def rises(carry: tuple[Any, ...]) -> Any:
        mu, _, before = carry
        return (mu > before).any()

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        mu = carry[0]
        return *raised(mu), mu

    lower = jnp.maximum(jnp.maximum(A.max(axis=1) - mass, (A.sum(axis=1) - mass) / A.shape[1]), 0.0)
    mu, count, _ = jax.lax.while_loop(rises, step, (*raised(lower), jnp.full_like(lower, -1.0)))
    return mu, count


def l1inf_levels(A: Any, radius: Any, theta: Any) -> tuple[Any, Any]:
    """Return the levels mu_j of the rows of A >= 0 with sum_j mu_j = radius and one mass theta above all of them, and theta.

    `theta` is where the search begins, at least 0. A has to be outside the ball.
    """
    sums = A.sum(axis=1)

    def at(theta: Any) -> tuple[Any, Any]:
        """Return the levels, and the root of the tangent."""
        mu, count = levels(A, theta)
        slope = jnp.where(sums > theta, 1.0 / count, 0.0).sum()
        beyond = mu.sum() - radius
        root = theta + beyond / jnp.where(slope > 0.0, slope, 1.0)
        return mu, jnp.where((slope == 0.0) & (beyond < 0.0), 0.0, jnp.maximum(root, 0.0))

    def moves(carry: tuple[Any, ...]) -> Any:
        theta, _, root, steps = carry
        return (jnp.abs(root - theta) > _SETTLED * root) & (steps < _MOST_STEPS)

    def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        _, _, root, steps = carry
        return root, *at(root), steps + 1

    theta, mu, _, _ = jax.lax.while_loop(moves, step, (theta, *at(theta), 0))
    return mu, theta


def project(norm: str, V: Any, radius: Any, theta: Any) -> tuple[Any, Any]:
    """Return the projection of V on the ball of a norm, and the threshold where the next search may begin.

    The radius is a number; for "tasks", where every column has an l1 ball of its own, m numbers.
    """
    A = jnp.abs(V)
    if norm == "l1inf":
        mu, found = l1inf_levels(A, radius, theta)
        inside = A.max(axis=1).sum() <= radius
        return jnp.where(inside, V, jnp.sign(V) * jnp.minimum(A, mu[:, None])), jnp.where(inside, theta, found)
    if norm == "l12":
        sizes = lengths(V)
        left = jnp.maximum(sizes - levels(sizes[None, :], radius)[0], 0.0)
        return V * (left / jnp.where(sizes > 0.0, sizes, 1.0))[:, None], theta
    mu = levels(A.reshape(1, -1), radius)[0] if norm == "l1" else levels(A.T, radius)[0]
    return jnp.sign(V) * jnp.maximum(A - mu, 0.0), theta


def prox(norm: str, V: Any, weight: Any) -> Any:
    """Return argmin_W 1/2 ||W - V||^2 + weight ||W||."""
    A = jnp.abs(V)
    if norm == "l1inf":
        return jnp.sign(V) * jnp.minimum(A, levels(A, weight)[0][:, None])
    if norm == "l12":
        sizes = lengths(V)
        return V * (jnp.maximum(sizes - weight, 0.0) / jnp.where(sizes > 0.0, sizes, 1.0))[:, None]
    return jnp.sign(V) * jnp.maximum(A - weight, 0.0)


def lengths(V: Any) -> Any:
    """Return the l2 norms of the rows; squares of tiny or huge entries do not leave the range of doubles."""
    top = jnp.abs(V).max(axis=1)
    scale = jnp.where(top > 0.0, top, 1.0)
    return scale * jnp.sqrt(((V / scale[:, None]) ** 2).sum(axis=1))
