"""Projections and proximal operators of norms, without sorting: Newton's method on a threshold, for all rows at once.

The formulas are those of `bench_mtl.projections`; tests hold these functions to that package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

#: Newton steps between two looks at whether there is more to do, which on a GPU wait for the host, and such looks at most.
_STEPS, _MOST_LOOKS = 3, 30
#: Changes below these shares, of the largest entry of a row and of the radius, are rounding.
_SETTLED, _SETTLED_SUM = 1e-14, 4e-15


class Thresholds(NamedTuple):
    """Where a search has ended, and the next may begin: anything will do, and what is near is quicker."""

    mass: Any
    """What is above the level of every row, under an l1,inf norm."""
    levels: Any
    """Of the rows, of the columns, or of all."""

    @classmethod
    def zero(cls, norm: str, shape: tuple[int, ...]) -> Thresholds:
        return cls(jnp.zeros(()), jnp.zeros(shape[-2] if norm == "l1inf" else shape[-1] if norm == "tasks" else 1))


def _tangents(A: Any, top: Any, mu: Any, mass: Any) -> tuple[Any, Any]:
    """Return a lower bound of the level of every row at this mass, and its slope, minus its derivative in the mass.

    The level is the largest (sum of A over S - mass) / |S| over all sets S of entries, and 0. Any S gives a bound: here those above `mu`.
    """
    above = mu[:, None] < A
    count = above.sum(axis=1)
    line = (jnp.where(above, A, 0.0).sum(axis=1) - mass) / jnp.maximum(count, 1)
    line = jnp.where(count > 0, line, top - mass)
    return jnp.maximum(line, 0.0), jnp.where(line > 0.0, 1.0 / jnp.maximum(count, 1), 0.0)


def _until_settled(step: Callable[[Any], tuple[Any, Any]], start: Any) -> Any:
    """Repeat a step, which also says whether it has moved, until it has not."""

    def steps(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        now, moved = carry[0], carry[1]
        for _ in range(_STEPS):
            now, moved = step(now)
        return now, moved, carry[2] + 1

    return jax.lax.while_loop(lambda carry: carry[1] & (carry[2] < _MOST_LOOKS), steps, (start, jnp.ones((), dtype=bool), 0))[0]


def levels(A: Any, mass: Any, start: Any) -> Any:
    """Return of every row of A >= 0 the level mu >= 0 with sum_k max(A_jk - mu_j, 0) = mass, or 0 where the row has no more than that.

    Michelot's fixed point: from a level that is too large the first step leads to one that is too small, and from there they rise.
    """
    top = A.max(axis=1)

    def step(mu: Any) -> tuple[Any, Any]:
        new = jnp.maximum(mu, _tangents(A, top, mu, mass)[0])
        return new, (new > mu).any()

    return _until_settled(step, _tangents(A, top, start, mass)[0])


def l1inf_levels(A: Any, radius: Any, start: Thresholds) -> Thresholds:
    """Return the levels mu_j of the rows of A >= 0 with sum_j mu_j = radius and one mass above all of them, and the mass.

    A has to be outside the ball. Newton's method for both at once: lower bounds of levels are linear in the mass, and so is their sum, so
    that the mass at which it is the radius is never too large.
    """
    top = A.max(axis=1)

    def step(now: Thresholds) -> tuple[Thresholds, Any]:
        mu, slopes = _tangents(A, top, now.levels, now.mass)
        slope, beyond = slopes.sum(), mu.sum() - radius
        root = now.mass + beyond / jnp.where(slope > 0.0, slope, 1.0)
        mass = jnp.maximum(jnp.where((slope == 0.0) & (beyond < 0.0), 0.0, root), 0.0)
        new = Thresholds(mass, jnp.maximum(mu - slopes * (mass - now.mass), 0.0))
        moved = jnp.abs(beyond) > _SETTLED_SUM * (radius + now.mass * slope)
        return new, moved | (jnp.abs(new.levels - now.levels) > _SETTLED * top).any()

    return _until_settled(step, start)


def project(norm: str, V: Any, radius: Any, start: Thresholds) -> tuple[Any, Thresholds]:
    """Return the projection of V on the ball of a norm, and its thresholds.

    The radius is a number; for "tasks", where every column has an l1 ball of its own, m numbers.
    """
    A = jnp.abs(V)
    if norm == "l1inf":
        inside = A.max(axis=1).sum() <= radius
        ends = l1inf_levels(A, radius, start)
        ends = Thresholds(*(jnp.where(inside, one, other) for one, other in zip(start, ends, strict=True)))
        return jnp.where(inside, V, jnp.sign(V) * jnp.minimum(A, ends.levels[:, None])), ends
    if norm == "l12":
        sizes = lengths(V)
        mu = levels(sizes[None, :], radius, start.levels)
        return V * (jnp.maximum(sizes - mu, 0.0) / jnp.where(sizes > 0.0, sizes, 1.0))[:, None], start._replace(levels=mu)
    if norm == "trace":
        values, vectors = squared_values(V)
        sizes = jnp.sqrt(values)
        mu = levels(sizes[None, :], radius, start.levels)
        kept = (vectors * (jnp.maximum(sizes - mu, 0.0) / jnp.where(sizes > 0.0, sizes, 1.0))) @ vectors.T
        return kept @ V if V.shape[0] < V.shape[1] else V @ kept, start._replace(levels=mu)
    mu = levels(A.reshape(1, -1) if norm == "l1" else A.T, radius, start.levels)
    return jnp.sign(V) * jnp.maximum(A - mu, 0.0), start._replace(levels=mu)


def prox(norm: str, V: Any, weight: Any, start: Thresholds) -> tuple[Any, Thresholds]:
    """Return argmin_W 1/2 ||W - V||^2 + weight ||W||, and its thresholds."""
    A = jnp.abs(V)
    if norm == "l1inf":
        mu = levels(A, weight, start.levels)
        return jnp.sign(V) * jnp.minimum(A, mu[:, None]), start._replace(levels=mu)
    if norm == "l12":
        sizes = lengths(V)
        return V * (jnp.maximum(sizes - weight, 0.0) / jnp.where(sizes > 0.0, sizes, 1.0))[:, None], start
    return jnp.sign(V) * jnp.maximum(A - weight, 0.0), start


def lengths(V: Any) -> Any:
    """Return the l2 norms of the rows; squares of tiny or huge entries do not leave the range of doubles."""
    top = jnp.abs(V).max(axis=1)
    scale = jnp.where(top > 0.0, top, 1.0)
    return scale * jnp.sqrt(((V / scale[:, None]) ** 2).sum(axis=1))


def squared_values(V: Any) -> tuple[Any, Any]:
    """Return the squares of the singular values, and the singular vectors of the smaller side: what the Gram matrix has of them."""
    values, vectors = jnp.linalg.eigh(V @ V.T if V.shape[0] < V.shape[1] else V.T @ V)
    return jnp.maximum(values, 0.0), vectors
