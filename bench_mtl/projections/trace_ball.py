"""The trace (nuclear) norm, the projection onto its ball and its proximal operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bench_mtl.core.checks import floating_array, one_of, real_array, real_number, require_finite
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections import spectra
from bench_mtl.projections.border import ldexp, projected
from bench_mtl.projections.simplex import POSITIVE_BALL, project_lines

METHODS = ("auto", "svd", "gram", "partial")
#: Where ||A||_F^2 is outside this and its inverse, A is brought to about 1 by a power of two.
_SMALLEST_SQUARE = 1e-150

_LARGEST_LIFT = 900
#: "auto" tries a Krylov space from this many columns on, of up to 1/25 of them: where that fails it has cost a tenth of the decomposition.
_PARTIAL_FROM, _PARTIAL_SHARE = 256, 25
#: A block of fewer columns costs more than the steps it saves.
_START_FROM = 4
#: A factor of the answer may be formed before the product with A while s_1 <= 16 theta: its rounding then stays that of the other form.
_WELL_CONDITIONED = 16.0
#: A weight of the squared norm above this leaves less than any digit of A sees.
_LARGEST_WEIGHT = 1e290


class TraceProjection(NamedTuple):
    """A projection or proximal point with what was found on the way."""

    matrix: AnyArray
    """The answer, d x m."""
    theta: float
    """What was taken off the remaining singular values; 0 where the answer is A, ||A||_F (any number that large) for a radius of 0."""
    singular_values: Array | None
    """The positive singular values of the answer, descending; None where no decomposition was needed or A is the answer."""
    subspace: Array | None
    """Their singular vectors on the shorter side (right ones where d >= m, else left), one a column: a `start` for a nearby A."""
    method: str
    """What produced the answer: "svd", "gram", "partial", or "bound" where norms alone settled it."""


def norm_trace(A: Any) -> float:
    """||A||_* = the sum of the singular values of a d x m matrix."""
    A = floating_array("A", A, ndim=(2,))
    require_finite("A", A)
    return float(np.linalg.svd(A.astype(np.float64, copy=False), compute_uv=False).sum()) if A.size else 0.0


def project_trace_ball(A: Any, radius: float, *, method: str = "auto", start: Array | None = None, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_* <= radius: the matrix of `trace_ball_projection` (see there)."""
    return trace_ball_projection(A, radius, method=method, start=start, out=out).matrix


def prox_trace(A: Any, weight: float, *, method: str = "auto", start: Array | None = None, out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 + weight ||B||_*: the matrix of `trace_proximal_point` (see there)."""
    return trace_proximal_point(A, weight, method=method, start=start, out=out).matrix


def prox_squared_trace(A: Any, weight: float, *, method: str = "auto", out: AnyArray | None = None) -> AnyArray:
    """argmin_B 1/2 ||B - A||_F^2 + weight/2 ||B||_*^2: the singular values less theta = weight ||B||_*, or 0 where that is negative.

    With the k remaining values, of sum S_k, theta = weight S_k / (1 + k weight). Methods are those of `trace_ball_projection`.
    """
    return _shrunk(A, _SquaredPenalty(real_number("weight", weight)), method, None, out).matrix


def trace_ball_projection(
    A: Any, radius: float, *, method: str = "auto", start: Array | None = None, out: AnyArray | None = None
) -> TraceProjection:
    """argmin_B 1/2 ||B - A||_F^2 subject to ||B||_* <= radius, with details.

    B = U max(S - theta, 0) V^T for the singular value decomposition A = U S V^T and the one theta that gives ||B||_* = radius; inside the
    ball B = A exactly. The singular values are projected onto the simplex (Chen, Liu, Ye 2012, section 4.2).

    Parameters
    ----------
    A : array of shape (d, m)
    method : how the singular vectors are found; all agree to about 1e-13 s_1

        - "svd": LAPACK's decomposition, of the triangular QR factor where A is long.
        - "gram": from the Gram matrix of the shorter side; "svd" where theta < 0.01 s_1, since squaring costs digits.
        - "partial": the leading triplets alone, from a Krylov space of up to a quarter of the shorter side, certified: no singular value
          above theta is left. "gram" where that fails.
        - "auto": "partial" where it is likely to pay, else "gram".
    start : array of shape (min(d, m), k), k small: the `subspace` of an earlier answer, for "partial" and "auto". Any other array of that
        shape costs time alone, never accuracy.

    Notes
    -----
    The answer is formed as P diag(b / (||p_i|| ||v_i||)) V^T with P = A V and the projected values b, so that
    ||B||_* <= sum_i b_i <= radius whatever the rounding of V. There is rounding of norms and of this product: with k remaining values,
    n = min(d, m), u = 2^-53, ||B||_* <= radius (1 + (d + m + 2 n + (k + 2) sqrt(n)) u). Where k > n / 2 and s_1 <= 16 theta, A (V F V^T) is
    cheaper, and rounding of the Gram matrix (128 d m u at worst) and of this product (16 n (n + k) u) takes the place of that of norms.
    In practice both stay below radius (1 + 1e-14). Rounding to float32 adds sqrt(n) 2^-24 radius. A second projection moves the answer by
    no more than this and the 1e-13 s_1. Entries of B below the normal range add d m 2^-1074.
    """
    return _shrunk(A, _Ball(real_number("radius", radius)), method, start, out)


def trace_proximal_point(
    A: Any, weight: float, *, method: str = "auto", start: Array | None = None, out: AnyArray | None = None
) -> TraceProjection:
    """argmin_B 1/2 ||B - A||_F^2 + weight ||B||_*, with details: the singular values less `weight`, or 0 where that is negative.

    Parameters and methods are those of `trace_ball_projection`, with a weight for the radius; theta = weight.
    """
    return _shrunk(A, _Penalty(real_number("weight", weight)), method, start, out)


@dataclass(frozen=True)
class _Ball:
    size: float

    def shrink(self, values: Array) -> tuple[Array, float]:
        if not len(values) or values.sum() <= self.size:
            return values, 0.0
        kept = project_lines(values, self.size, POSITIVE_BALL)
        return kept, max(0.0, float(values[0] - kept[0]))

    def settled(self, frobenius: float, n: int) -> float | None:
        if self.size == 0.0:
            return frobenius
        return 0.0 if math.sqrt(n) * frobenius * (1 + 1e-12) <= self.size else None

    def in_units(self, exponent: int) -> _Ball:
        return _Ball(math.ldexp(self.size, exponent))


@dataclass(frozen=True)
class _Penalty:
    size: float

    def shrink(self, values: Array) -> tuple[Array, float]:
        return np.maximum(values - self.size, 0.0), self.size

    def settled(self, frobenius: float, n: int) -> float | None:
        return self.size if self.size == 0.0 or frobenius * (1 + 1e-12) <= self.size else None

    def in_units(self, exponent: int) -> _Penalty:
        return _Penalty(math.ldexp(self.size, exponent))


@dataclass(frozen=True)
class _SquaredPenalty:
    weight: float

    def shrink(self, values: Array) -> tuple[Array, float]:
        if not len(values) or values[0] == 0.0:
            return values, 0.0
        weight = min(self.weight, _LARGEST_WEIGHT)
        # Relative to the largest value and shifted by it, so that digits stay where the weight takes almost all of it.
        shifted = values / values[0] - 1.0
        counts = np.arange(1, len(values) + 1)
        levels = (1.0 - weight * np.cumsum(shifted)) / (1.0 + weight * counts)  # what is kept of the largest value, if this many are kept
        level = levels[np.count_nonzero(shifted + levels > 0.0) - 1]
        return np.maximum(shifted + level, 0.0) * values[0], float((1.0 - level) * values[0])

    def settled(self, frobenius: float, n: int) -> float | None:
        return 0.0 if self.weight == 0.0 or frobenius == 0.0 else None

    def in_units(self, exponent: int) -> _SquaredPenalty:
        return self  # a weight of squares has no unit


_Shrinkage: TypeAlias = _Ball | _Penalty | _SquaredPenalty
"""How singular values shrink; `settled` is the theta that is known from the Frobenius norm: 0 makes A the answer, another makes it zero.

`in_units` is the same for values 2^exponent times as large.
"""


def _shrunk(A: Any, shrinkage: _Shrinkage, method: str, start: Array | None, out: AnyArray | None) -> TraceProjection:
    """Compute a projection or proximal point: check, scale, find the vectors, multiply."""
    method = one_of("method", method, METHODS)
    A = floating_array("A", A, ndim=(2,))
    start = _checked_start(start, min(A.shape))
    details: list[Any] = []
    matrix = projected(A, out, lambda source, result: details.extend(_compute(source, shrinkage, method, start, result)), toward_zero=False)
    return TraceProjection(matrix, *details)


def _compute(
    A: Array, shrinkage: _Shrinkage, method: str, start: Array | None, result: Array
) -> tuple[float, Array | None, Array | None, str]:
    """Write the answer to `result`, and return the other fields of a `TraceProjection`."""
    scaled, exponent, frobenius = _scaled(A)
    # Values shrink in the units of A, where no radius vanishes; only matrices near overflow keep smaller ones, so that sums stay finite.
    lift = min(exponent, _LARGEST_LIFT)
    shrinkage = shrinkage.in_units(lift - exponent)

    def rule(values: Array) -> tuple[float, int]:
        kept, theta = shrinkage.shrink(np.ldexp(values, lift))
        return math.ldexp(theta, -lift), int(np.count_nonzero(kept))

    theta = shrinkage.settled(math.ldexp(frobenius, lift), min(A.shape))
    leading, name = None, "bound"
    if theta is None:
        leading, name = _leading(scaled, rule, method, start)
        theta = math.ldexp(leading.theta, lift)
    values = vectors = None
    if leading is None or theta == 0.0:
        np.copyto(result, A if theta == 0.0 else 0.0)
    else:
        values, theta, vectors = _product(scaled, leading, shrinkage, lift, exponent, result if A.shape[0] >= A.shape[1] else result.T)
    return float(ldexp(theta, exponent - lift)), values, vectors, name


def _leading(A: Array, rule: spectra.Rule, method: str, start: Array | None) -> tuple[spectra.Leading, str]:
    """The vectors to keep by the method asked for, or by the next more thorough one that can answer."""
    n = A.shape[1]
    found = None
    if method == "partial":
        found = spectra.by_partial(A, rule, start, max(n // 4, 8))
    elif method == "auto" and n >= _PARTIAL_FROM:
        columns = n // _PARTIAL_SHARE
        warm = start if start is not None and _START_FROM <= start.shape[1] < columns else None
        found = spectra.by_partial(A, rule, warm, columns if warm is None else max(columns, 3 * warm.shape[1] + 3))
    if found is not None:
        return found, "partial"
    if method != "svd":
        found = spectra.by_gram(A, rule)
    return (found, "gram") if found is not None else (spectra.by_svd(A, rule), "svd")


def _product(
    A: Array, leading: spectra.Leading, shrinkage: _Shrinkage, lift: int, exponent: int, result: Array
) -> tuple[Array, float, Array]:
    """Write A V F V^T, with F what is kept of each singular value; return the values kept, theta (in units of 2^lift) and V."""
    V, n = leading.vectors, A.shape[1]
    if 2 * V.shape[1] > n and leading.values[0] <= _WELL_CONDITIONED * leading.theta:
        lengths = leading.values
        kept, theta = shrinkage.shrink(np.ldexp(lengths, lift))
        half = V * np.sqrt(np.ldexp(kept, exponent - lift) / lengths)
        np.matmul(A, half @ half.T, out=result)
    else:
        P = A @ V
        square = np.einsum("ij,ij->j", V, V)
        lengths = np.sqrt(np.einsum("ij,ij->j", P, P) / square)
        kept, theta = shrinkage.shrink(np.ldexp(lengths, lift))
        share = np.divide(np.ldexp(kept, exponent - lift), lengths * square, out=np.zeros_like(kept), where=kept > 0.0)
        np.matmul(P, (V * share).T, out=result)
    order = np.argsort(-kept, kind="stable")[: np.count_nonzero(kept)]
    vectors = V if np.array_equal(order, np.arange(V.shape[1])) else V[:, order]
    return ldexp(kept[order], exponent - lift), theta, vectors


def _scaled(A: Array) -> tuple[Array, int, float]:
    """(B, e, ||B||_F) with A or A^T = 2^e B, not wider than long, of a norm whose powers are safe."""
    B = A if A.shape[0] >= A.shape[1] else A.T
    square = spectra.squared_norm(B)  # finite for finite data of ordinary size: no other pass is needed to check it
    if math.isfinite(square) and square >= _SMALLEST_SQUARE and square <= 1 / _SMALLEST_SQUARE:
        return B, 0, math.sqrt(square)
    require_finite("A", A)
    exponent = math.frexp(float(np.abs(B).max(initial=0.0)))[1]
    B = np.ldexp(B, -exponent)
    return B, exponent, math.sqrt(spectra.squared_norm(B))


def _checked_start(start: Any, n: int) -> Array | None:
    if start is None:
        return None
    start = real_array("start", start, ndim=2)
    if start.shape[0] != n:
        raise InputError("start", start.shape, f"have {n} rows, the shorter side of A")
    sizes = np.abs(start).max(axis=0, initial=0.0)
    return start / np.where(sizes > 0.0, sizes, 1.0) if 0 < start.shape[1] <= n else None
