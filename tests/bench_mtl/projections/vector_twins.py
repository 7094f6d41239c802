"""Slow twins of the projections of vectors, in long double, by bisection from the definitions; and the cases they are compared on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

U = 2.0**-53
METHODS = ("newton", "filter", "pivot", "sort")


def bisect(function: Callable[[np.longdouble], np.longdouble], low: np.longdouble, high: np.longdouble) -> np.longdouble:
    """The root of a decreasing function."""
    for _ in range(400):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high


def twin_simplex(v: np.ndarray, mass: float) -> np.ndarray:
    """max(v - theta, 0) with the theta that gives the mass, relative to the largest entry."""
    shifted = v.astype(np.longdouble) - v.max()
    theta = bisect(lambda t: np.maximum(shifted - t, 0).sum() - np.longdouble(mass), -np.longdouble(mass), np.longdouble(0))
    return np.maximum(shifted - theta, 0)


def twin_l1_ball(v: np.ndarray, radius: float, nonneg: bool = False) -> np.ndarray:
    given = np.maximum(v, 0) if nonneg else v
    if exact_sum(np.abs(given)) <= radius:
        return given.astype(np.longdouble)
    return np.copysign(twin_simplex(np.abs(given), radius), given.astype(np.longdouble))


def twin_box_simplex(v: np.ndarray, mass: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    wide = v.astype(np.longdouble)
    bounds = np.concatenate([np.atleast_1d(lower), np.atleast_1d(upper)])
    reach = 1 + 2 * np.abs(wide).max() + abs(mass) + np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)
    theta = bisect(lambda t: np.clip(wide - t, lower, upper).sum() - np.longdouble(mass), -v.size * reach, v.size * reach)
    return np.clip(wide - theta, lower, upper)


def norms(A: np.ndarray, axis: int | None) -> np.ndarray:
    """Euclidean norms in long double, whose range the squares of doubles do not leave."""
    return np.sqrt((A.astype(np.longdouble) ** 2).sum(axis=axis, keepdims=True))


def rescaled(A: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return A.astype(np.longdouble) * np.where(old > 0, new / np.where(old > 0, old, 1), 0)


def twin_l2_ball(A: np.ndarray, radius: float, axis: int | None = None) -> np.ndarray:
    size = norms(A, axis)
    return rescaled(A, size, np.minimum(size, radius))


def twin_l12_ball(A: np.ndarray, radius: float) -> np.ndarray:
    size = norms(A, 1)
    if size.sum() <= radius:
        return A.astype(np.longdouble)
    theta = bisect(lambda t: np.maximum(size - t, 0).sum() - np.longdouble(radius), np.longdouble(0), size.max())
    return rescaled(A, size, np.maximum(size - theta, 0))


def exact_sum(w: np.ndarray) -> np.longdouble:
    """The sum, to 2^-60 or so, of any scale."""
    return np.sort(w.astype(np.longdouble), axis=None).sum()


def cases() -> Iterator[tuple[str, np.ndarray]]:
    """Vectors of every kind that has broken a projection: ties, heavy tails, all scales, subnormals, lengths around the block sizes."""
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 10, 63, 2049, 5000):
        yield f"normal {n}", rng.standard_normal(n)
        yield f"ties {n}", rng.integers(-3, 4, n).astype(float)
        yield f"equal {n}", np.full(n, -0.1)
        yield f"Cauchy cubed {n}", rng.standard_cauchy(n) ** 3
    for scale in (5e-324, 1e-310, 1e-300, 1e-150, 1e150, 1e300):
        yield f"scale {scale}", np.round(4 * rng.standard_normal(4500), 1) * scale
    yield "lognormal", rng.lognormal(0, 3, 6000)
    yield "far away", 1e12 + rng.standard_normal(5000)
    yield "one large", np.append(np.full(5000, 1e-9), 1.0)
    yield "largest doubles", np.full(5, np.finfo(float).max)
    yield "halves", 2.0 ** -np.arange(1074.0)
    yield "factorials", 1 - np.cumprod(np.append(1e-15, np.arange(2.0, 18.0)))
    yield "sorted", np.sort(rng.standard_normal(5000))
