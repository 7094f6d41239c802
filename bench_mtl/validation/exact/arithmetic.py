"""Exact arithmetic on floats: arrays of fractions, and proven enclosures of what is not rational.

Nothing here rounds except outward, and by less than 1e-30 relative to what is enclosed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

#: An array of fractions.
Exact: TypeAlias = Any

#: Digits of logarithms and exponentials, bits of roots beyond those of their argument, and bits of singular vectors.
_DIGITS, _ROOT_BITS, _VECTOR_BITS = 50, 128, 240

_CONTEXT = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])

#: More than the relative error of a fraction as a decimal, and of one function of it.
_ROUNDING = Fraction(1, 10 ** (_DIGITS - 2))

_ZERO = Fraction(0)

#: Exponentials of numbers below are between 0 and the second; above minus the first they are too large to be of interest.
_FAR, _NEGLIGIBLE = Fraction(-2500), Fraction(1, 10**1000)


class TooLargeError(ArithmeticError):
    """A number is beyond all floats."""


@dataclass(frozen=True)
class Enclosure:
    """A real number between two fractions."""

    low: Fraction
    high: Fraction

    @staticmethod
    def of(x: Fraction | int) -> Enclosure:
        """Return a number that is known exactly."""
        return Enclosure(Fraction(x), Fraction(x))

    def __add__(self, other: Enclosure | Fraction | int) -> Enclosure:
        added = other if isinstance(other, Enclosure) else Enclosure.of(other)
        return Enclosure(self.low + added.low, self.high + added.high)

    __radd__ = __add__

    def __mul__(self, factor: Fraction | int) -> Enclosure:
        """Return the product with a number of at least 0."""
        return Enclosure(self.low * factor, self.high * factor)


def exact(x: Any) -> Exact:
    """Return an array of floats as what they represent."""
    array = np.asarray(x, dtype=np.float64)
    result = np.empty(array.size, dtype=object)
    result[:] = [Fraction(entry) for entry in array.ravel().tolist()]
    return result.reshape(array.shape)


def rounded(x: Fraction, bits: int) -> Fraction:
    """Return the leading bits of a number, rounded towards 0."""
    shift = max(0, bits - abs(x.numerator).bit_length() + x.denominator.bit_length())
    size = Fraction((abs(x.numerator) << shift) // x.denominator, 1 << shift)
    return size if x >= 0 else -size


def square_root(x: Fraction) -> Enclosure:
    """Return the root of a number of at least 0; exact where it is rational."""
    shift = max(0, _ROOT_BITS - (x.numerator.bit_length() - x.denominator.bit_length()) // 2)
    scaled = (x.numerator << (2 * shift)) * x.denominator
    floor, unit = math.isqrt(scaled), x.denominator << shift
    return Enclosure(Fraction(floor, unit), Fraction(floor + (floor * floor != scaled), unit))


def logarithm(x: Fraction) -> Enclosure:
    """Return log x, x > 0: decimals are rounded correctly, and a relative error of x is an absolute one of its logarithm."""
    if x == 1:
        return Enclosure.of(0)
    value = Fraction(_CONTEXT.ln(_decimal(x)))
    error = _ROUNDING * (1 + abs(value))
    return Enclosure(value - error, value + error)


def log1p(x: Enclosure) -> Enclosure:
    """Return log(1 + x), x >= 0: also with all digits where x is tiny."""
    if x.high < Fraction(1, 10**16):
        return Enclosure(x.low - x.low * x.low / 2, x.high - x.high * x.high / 2 + x.high**3 / 3)
    low = logarithm(1 + x.low)
    return low if x.low == x.high else Enclosure(low.low, logarithm(1 + x.high).high)


def exponential(x: Fraction) -> Enclosure:
    """Return exp x. Raises TooLargeError where it is beyond all floats."""
    if x == 0:
        return Enclosure.of(1)
    if x > -_FAR:
        raise TooLargeError
    if x < _FAR:
        return Enclosure(_ZERO, _NEGLIGIBLE)
    value = Fraction(_CONTEXT.exp(_decimal(x)))
    error = value * _ROUNDING * (1 + abs(x))
    return Enclosure(value - error, value + error)


def log_sum_exp(x: list[Fraction]) -> Enclosure:
    """Return the logarithm of the sum of exponentials."""
    place = x.index(max(x))
    rest = sum((exponential(entry - x[place]) for i, entry in enumerate(x) if i != place), Enclosure.of(0))
    return log1p(rest) + x[place]


def trace_norm(W: Exact) -> Enclosure:
    """Return the sum of the singular values.

    With V of nearly orthonormal columns and C = W V (of nearly orthogonal ones), exact from here on,

        ||W||_* <= ||C||_* ||V^-1||_2 <= sum_i ||c_i|| / sqrt(1 - e),            e = ||V^T V - I||_F
        ||W||_* >= ||C||_* / ||V||_2  >= <C, Z> / (||Z||_2 sqrt(1 + e)),         Z any matrix, here C with its columns scaled to length 1
    """
    tall = W if W.shape[0] >= W.shape[1] else W.T
    if not tall.any():
        return Enclosure.of(0)
    V = _right_vectors(tall)
    gram, drift = (tall @ V).T @ (tall @ V), square_root(((V.T @ V - np.eye(len(V), dtype=int)) ** 2).sum()).high
    lengths = [square_root(square) for square in gram.diagonal()]
    high = sum((length.high for length in lengths), _ZERO)
    smallest = max(length.low for length in lengths) / (1 << _VECTOR_BITS * 3 // 4)
    kept = [(i, length.low) for i, length in enumerate(lengths) if length.low > smallest]  # of the others the angles are lost
    low = sum((length for _, length in kept), _ZERO)
    # <c_i, c_j> / (|c_i| |c_j|) off the diagonal
    skew = sum(((gram[i, j] / (a * b)) ** 2 for i, a in kept for j, b in kept if i != j), _ZERO)
    spread = (1 + square_root(skew).high) * (1 + drift)
    return Enclosure(low if spread == 1 else low / square_root(spread).high, high if drift == 0 else high / square_root(1 - drift).low)


def _right_vectors(W: Exact) -> Exact:
    """Return right singular vectors by Jacobi's one-sided rotations in fixed point: near, not exact."""
    largest, m, one = np.abs(W).max(), W.shape[1], 1 << _VECTOR_BITS
    A = np.vectorize(lambda entry: int(entry / largest * one), otypes=[object])(W)
    V = np.eye(m, dtype=int).astype(object) * one
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    for _ in range(40):
        moved = False
        for i, j in pairs:
            a, b, c = A[:, i] @ A[:, i], A[:, j] @ A[:, j], A[:, i] @ A[:, j]
            if c == 0 or c * c <= (a * b) >> (2 * _VECTOR_BITS - 40):
                continue
            moved = True
            # tan of the angle: the smaller root of t^2 + 2 z t - 1, z = (b - a) / (2 c)
            difference = b - a
            root = math.isqrt(difference * difference + 4 * c * c)
            t = ((2 * c) << _VECTOR_BITS) // (difference + root if difference >= 0 else difference - root)
            cosine = (one << _VECTOR_BITS) // math.isqrt((one << _VECTOR_BITS) + t * t)
            sine = (t * cosine) >> _VECTOR_BITS
            for M in (A, V):
                p, q = M[:, i].copy(), M[:, j].copy()
                M[:, i], M[:, j] = (p * cosine - q * sine) >> _VECTOR_BITS, (p * sine + q * cosine) >> _VECTOR_BITS
        if not moved:
            break
    return V * Fraction(1, one)


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))
