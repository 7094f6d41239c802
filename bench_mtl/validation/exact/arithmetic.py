"""Exact arithmetic on floats: whole numbers with a common power of 2, fractions, and proven enclosures of what is not rational.

Nothing here rounds except outward, and by less than 1e-30 relative to what is enclosed.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.types import Array

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


class Enclosure(NamedTuple):
    """A real number between two fractions."""

    low: Fraction
    high: Fraction

    @staticmethod
    def of(x: Fraction | int) -> Enclosure:
        """Return a number that is known exactly."""
        return Enclosure(Fraction(x), Fraction(x))

    def plus(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.low + other.low, self.high + other.high)

    def times(self, factor: Fraction) -> Enclosure:
        """Return the product with a number of at least 0."""
        return Enclosure(self.low * factor, self.high * factor)


class Dyadic(NamedTuple):
    """An array of the numbers `whole` times 2 to the power of -`bits`."""

    whole: Any
    """An array of Python's whole numbers."""
    bits: int

    def transposed(self) -> Dyadic:
        return Dyadic(self.whole.T, self.bits)

    def at(self, key: Any) -> Dyadic:
        """Return part of the array."""
        return Dyadic(self.whole[key], self.bits)

    def product(self, other: Dyadic) -> Dyadic:
        """Return the matrix product."""
        return Dyadic(np.dot(self.whole, other.whole), self.bits + other.bits)

    def times(self, other: Dyadic) -> Dyadic:
        """Return the product entry by entry."""
        return Dyadic(self.whole * other.whole, self.bits + other.bits)

    def plus(self, other: Dyadic) -> Dyadic:
        bits = max(self.bits, other.bits)
        return Dyadic((self.whole << (bits - self.bits)) + (other.whole << (bits - other.bits)), bits)

    def negative(self) -> Dyadic:
        return Dyadic(-self.whole, self.bits)

    def fractions(self) -> list[Any]:
        """Return the entries as fractions, in nested lists."""
        return _fractions(self.whole.tolist(), 1 << self.bits)

    def total(self) -> Fraction:
        """Return the sum of all entries."""
        return Fraction(int(self.whole.sum()), 1 << self.bits)

    def floats(self) -> Array:
        """Return the nearest floats."""
        flat = [_to_float(Fraction(int(entry), 1 << self.bits)) for entry in self.whole.ravel()]
        return np.array(flat).reshape(self.whole.shape)


def dyadic(x: Any) -> Dyadic:
    """Return an array of floats as what they stand for."""
    array = np.asarray(x, dtype=np.float64)
    pairs = [float(entry).as_integer_ratio() for entry in array.ravel()]
    bits = max((denominator.bit_length() - 1 for _, denominator in pairs), default=0)
    whole = np.empty(len(pairs), dtype=object)
    whole[:] = [numerator << (bits - denominator.bit_length() + 1) for numerator, denominator in pairs]
    return Dyadic(whole.reshape(array.shape), bits)


def square_root(x: Fraction) -> Enclosure:
    """Return the root of a number of at least 0; exact where it is rational."""
    shift = max(0, _ROOT_BITS - (x.numerator.bit_length() - x.denominator.bit_length()) // 2)
    scaled = (x.numerator << (2 * shift)) * x.denominator
    floor = math.isqrt(scaled)
    unit = x.denominator << shift
    return Enclosure(Fraction(floor, unit), Fraction(floor + (floor * floor != scaled), unit))


def logarithm(x: Fraction) -> Enclosure:
    """Return log x, x > 0: decimals are rounded correctly, and a relative error of x is an absolute one of its logarithm."""
    if x == 1:
        return Enclosure.of(0)
    found = Fraction(_CONTEXT.ln(_decimal(x)))
    error = _ROUNDING * (1 + abs(found))
    return Enclosure(found - error, found + error)


def log1p(x: Enclosure) -> Enclosure:
    """Return log(1 + x), x >= 0: also with all digits where x is tiny."""
    if x.high < Fraction(1, 10**16):
        return Enclosure(x.low - x.low * x.low / 2, x.high - x.high * x.high / 2 + x.high**3 / 3)
    if x.low == x.high:
        return logarithm(1 + x.low)
    return Enclosure(logarithm(1 + x.low).low, logarithm(1 + x.high).high)


def exponential(x: Fraction) -> Enclosure:
    """Return exp x.

    Raises
    ------
    TooLargeError : it is beyond all floats.
    """
    if x == 0:
        return Enclosure.of(1)
    if x > -_FAR:
        raise TooLargeError
    if x < _FAR:
        return Enclosure(_ZERO, _NEGLIGIBLE)
    found = Fraction(_CONTEXT.exp(_decimal(x)))
    error = found * _ROUNDING * (1 + abs(x))
    return Enclosure(found - error, found + error)


def log_sum_exp(x: list[Fraction]) -> Enclosure:
    """Return the logarithm of the sum of exponentials."""
    largest = max(x)
    place = x.index(largest)
    rest = Enclosure.of(0)
    for i, entry in enumerate(x):
        if i != place:
            rest = rest.plus(exponential(entry - largest))
    return Enclosure.of(largest).plus(log1p(rest))


def trace_norm(W: Dyadic) -> Enclosure:
    """Return the sum of the singular values.

    With V of nearly orthonormal columns and C = W V (of nearly orthogonal ones), exact from here on,

        ||W||_* <= ||C||_* ||V^-1||_2 <= sum_i ||c_i|| / sqrt(1 - e),            e = ||V^T V - I||_F
        ||W||_* >= ||C||_* / ||V||_2  >= <C, Z> / (||Z||_2 sqrt(1 + e)),         Z any matrix, here C with its columns scaled to length 1
    """
    tall = W if W.whole.shape[0] >= W.whole.shape[1] else W.transposed()
    if not tall.whole.any():
        return Enclosure.of(0)
    V = _right_vectors(tall)
    C = tall.product(V)
    lengths = [square_root(_product(C, i, i)) for i in range(C.whole.shape[1])]
    high = sum((length.high for length in lengths), _ZERO)
    smallest = max(length.low for length in lengths) / (1 << _VECTOR_BITS * 3 // 4)
    kept = [(i, length.low) for i, length in enumerate(lengths) if length.low > smallest]  # of the others the angles are lost
    low = sum((length for _, length in kept), _ZERO)
    drift = square_root(_off_identity(V)).high
    # <c_i, c_j> / (|c_i| |c_j|) off the diagonal
    skew = _ZERO
    for i, a in kept:
        for j, b in kept:
            if i != j and (inner := _product(C, i, j)) != 0:
                skew += (inner / (a * b)) ** 2
    spread = (1 + square_root(skew).high) * (1 + drift)
    return Enclosure(low if spread == 1 else low / square_root(spread).high, high if drift == 0 else high / square_root(1 - drift).low)


def _right_vectors(W: Dyadic) -> Dyadic:
    """Return right singular vectors by Jacobi's one-sided rotations in fixed point: near, not exact."""
    size = max(abs(int(entry)) for entry in W.whole.ravel()).bit_length()
    shift = _VECTOR_BITS - size
    A = W.whole << shift if shift >= 0 else W.whole >> -shift
    A = np.array(A, dtype=object)
    m, one = A.shape[1], 1 << _VECTOR_BITS
    V = np.empty((m, m), dtype=object)
    V[:, :] = [[one if i == j else 0 for j in range(m)] for i in range(m)]
    for _ in range(40):
        moved = False
        for i in range(m):
            for j in range(i + 1, m):
                a, b, c = int(A[:, i] @ A[:, i]), int(A[:, j] @ A[:, j]), int(A[:, i] @ A[:, j])
                if c == 0 or c * c <= (a * b) >> (2 * _VECTOR_BITS - 40):
                    continue
                moved = True
                # tan of the angle: the smaller root of t^2 + 2 z t - 1, z = (b - a) / (2 c)
                difference = b - a
                root = math.isqrt(difference * difference + 4 * c * c)
                bottom = difference + root if difference >= 0 else difference - root
                t = ((2 * c) << _VECTOR_BITS) // bottom
                cosine = (one << _VECTOR_BITS) // math.isqrt((one << _VECTOR_BITS) + t * t)
                sine = (t * cosine) >> _VECTOR_BITS
                for M in (A, V):
                    p, q = M[:, i].copy(), M[:, j].copy()
                    M[:, i], M[:, j] = (p * cosine - q * sine) >> _VECTOR_BITS, (p * sine + q * cosine) >> _VECTOR_BITS
        if not moved:
            break
    return Dyadic(V, _VECTOR_BITS)


def _product(C: Dyadic, i: int, j: int) -> Fraction:
    return Fraction(int(C.whole[:, i] @ C.whole[:, j]), 1 << (2 * C.bits))


def _off_identity(V: Dyadic) -> Fraction:
    """The square of the Frobenius norm of V^T V - I."""
    gram = np.dot(V.whole.T, V.whole)
    one = 1 << (2 * V.bits)
    for i in range(len(gram)):
        gram[i, i] -= one
    return Fraction(int((gram * gram).sum()), one * one)


def _fractions(entries: Any, denominator: int) -> Any:
    return [_fractions(entry, denominator) for entry in entries] if isinstance(entries, list) else Fraction(entries, denominator)


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def _to_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(np.finfo(np.float64).max, x)
