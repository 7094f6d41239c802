"""Bounds that hold in exact arithmetic on the numbers as stored, whatever floating point does.

An `Interval` holds a real number, or an array of them, between two floats. Every operation rounds outward, so that what is computed from
exact data encloses what exact arithmetic would give (Moore; Rump, Acta Numerica 2010). Products with data are enclosed by a priori error
bounds instead, after Jansson's rigorous bounds: for any order of summation, with or without fused multiply-add, ::

    |fl(x.y) - x.y| <= gamma_n |x|.|y| <= gamma_n ||x|| ||y||,      gamma_n = n u / (1 - n u),  u = 2^-53

plus what products may lose below the smallest normal number. Sums lose nothing there, by the gradual
underflow of IEEE 754.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Array, Matrix

#: Half the distance from 1 to the next float: the relative error of one rounding.
UNIT = 2.0**-53
#: The smallest normal number: more than any one operation loses below it, even where such numbers are flushed to 0.
TINIEST = float(np.finfo(np.float64).tiny)
#: The smallest number above 0: what one product or quotient loses at most where such numbers are kept.
SMALLEST = 5e-324
#: The largest number.
LARGEST = float(np.finfo(np.float64).max)
#: More than the distance to the next float, relative to a number.
_STEP = 2.0**-52
#: Relative error allowed for one log, exp or root of NumPy: eight roundings, where the libraries promise four.
_FUNCTION = 8.0 * UNIT
#: Sums of squares above this have lost nothing that counts below the range.
SAFE = 1e-250

Numbers: TypeAlias = Any
"""A float or an array of floats."""

_compensated: ContextVar[bool] = ContextVar("compensated", default=False)


@contextmanager
def compensated() -> Iterator[None]:
    """Within this, `Design` encloses products by compensated dot products: several times slower, with errors of one rounding."""
    token = _compensated.set(True)
    try:
        yield
    finally:
        _compensated.reset(token)


def is_compensated() -> bool:
    """Return whether products are to be compensated now."""
    return _compensated.get()


def gamma(n: int) -> float:
    """Return an upper bound on n u / (1 - n u), the relative error of a sum of n products; inf where there is none."""
    share = n * UNIT
    return share / (1.0 - share) * (1.0 + 8.0 * UNIT) if share < 0.5 else np.inf


def up(x: Numbers) -> Numbers:
    """Return an upper bound on what was rounded once to x, entry by entry: a sum, or a product that is no smaller than `TINIEST`.

    (A sum that is 0 or below `TINIEST` is exact. `numpy.nextafter` is one step exactly, and takes five times as long.)
    """
    return x + abs(x) * _STEP


def down(x: Numbers) -> Numbers:
    """Return a lower bound on what was rounded once to x, entry by entry, see `up`."""
    return x - abs(x) * _STEP


def euclidean_norms(X: Array, axis: int | None = None) -> Array:
    """Return upper bounds on the Euclidean norms along an axis of a dense array, stored as an axis of length 1.

    Where a square may leave the range of floats, entries are brought near 1 first. Where an entry is not finite the bound is inf.
    """
    count = X.size if axis is None else X.shape[axis]
    with np.errstate(all="ignore"):
        squares = _squares(X, axis)
    if np.all((squares > SAFE) & (squares < 1.0 / SAFE)):
        return np.asarray(np.sqrt(squares) * (1.0 + gamma(count + 8)))
    top = np.abs(X).max(axis=axis, keepdims=True, initial=0.0)
    with np.errstate(all="ignore"):
        squares = _squares(X / np.where(top > 0.0, top, 1.0), axis)
        bounds = top * (np.sqrt(squares) * (1.0 + gamma(count + 8))) + TINIEST
    return np.where(top == 0.0, 0.0, np.where(top < np.inf, bounds, np.inf))


def _squares(X: Array, axis: int | None) -> Array:
    """Return sums of squares along an axis, which is kept; of a matrix without making the matrix of squares."""
    if X.ndim == 2 and axis is not None:
        return np.expand_dims(np.einsum("ij,ij->i" if axis == 1 else "ij,ij->j", X, X), axis)
    return np.asarray(np.square(X).sum(axis=axis, keepdims=True))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Numbers between `lower` and `upper`, entry by entry.

    A bound that is lost (inf less inf) is NaN, and so is what is made of it; `ends` makes it infinite.
    """

    lower: Numbers
    upper: Numbers

    #: NumPy's arrays leave `array - interval` to the interval.
    __array_ufunc__ = None

    @staticmethod
    def exact(x: Numbers) -> Interval:
        """Return floats that are meant as they are."""
        return Interval(x, x)

    @staticmethod
    def around(value: Numbers, error: Numbers) -> Interval:
        """Return all numbers within `error` of a computed value."""
        return Interval(down(value - error), up(value + error))

    @property
    def width(self) -> Numbers:
        """An upper bound on the distance of both ends."""
        return up(self.upper - self.lower)

    @property
    def middle(self) -> Numbers:
        """A float near the middle; not a bound."""
        return 0.5 * self.lower + 0.5 * self.upper

    @property
    def error(self) -> Numbers:
        """How far a number of the interval is from `middle`, at most."""
        middle = self.middle
        return up(np.maximum(self.upper - middle, middle - self.lower))

    def __neg__(self) -> Interval:
        return Interval(-self.upper, -self.lower)

    def __add__(self, other: Interval | Numbers) -> Interval:
        other = _interval(other)
        return Interval(down(self.lower + other.lower), up(self.upper + other.upper))

    __radd__ = __add__

    def __sub__(self, other: Interval | Numbers) -> Interval:
        return self + -_interval(other)

    def __rsub__(self, other: Interval | Numbers) -> Interval:
        return _interval(other) + -self

    def __mul__(self, other: Interval | Numbers) -> Interval:
        """A float, or an array of floats, costs two products; another interval four."""
        if type(self.lower) is float and type(other) is not np.ndarray:
            return self._times_numbers(other)
        lost = TINIEST * (_can_differ(self) & _can_differ(other))
        if not isinstance(other, Interval):
            a, b = self.lower * other, self.upper * other
            return Interval(down(np.minimum(a, b)) - lost, up(np.maximum(a, b)) + lost)
        ends = [a * b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        low = np.minimum(np.minimum(ends[0], ends[1]), np.minimum(ends[2], ends[3]))
        high = np.maximum(np.maximum(ends[0], ends[1]), np.maximum(ends[2], ends[3]))
        return Interval(down(low) - lost, up(high) + lost)

    def _times_numbers(self, other: Interval | float) -> Interval:
        """`*` of single numbers, without NumPy, which takes ten times as long for them."""
        low, high = (other.lower, other.upper) if isinstance(other, Interval) else (other, other)
        if type(low) is not float:
            return Interval(np.float64(self.lower), np.float64(self.upper)) * other
        products = self.lower * low, self.lower * high, self.upper * low, self.upper * high
        if not math.isfinite(sum(products)):  # an end that is finite must stay
            return Interval(np.float64(self.lower), np.float64(self.upper)) * other
        lost = TINIEST if (self.lower or self.upper) and (low or high) else 0.0
        return Interval(down(min(products)) - lost, up(max(products)) + lost)

    __rmul__ = __mul__

    def __truediv__(self, other: Interval | Numbers) -> Interval:
        """By numbers above 0 only; where the divisor may be 0, nothing is known."""
        other = _interval(other)
        sure = other.lower > 0.0
        inverse = Interval(down(1.0 / np.where(sure, other.upper, 1.0)) - TINIEST, up(1.0 / np.where(sure, other.lower, 1.0)) + TINIEST)
        known = self * inverse
        return Interval(np.where(sure, known.lower, -np.inf)[()], np.where(sure, known.upper, np.inf)[()])

    def signed(self, signs: Array) -> Interval:
        """Return the products with -1 or +1, which round nothing."""
        ends = signs * self.lower, signs * self.upper
        return Interval(np.minimum(*ends), np.maximum(*ends))

    def magnitude(self) -> Interval:
        """Return the moduli."""
        high = np.maximum(np.abs(self.lower), np.abs(self.upper))
        low = np.maximum(np.maximum(self.lower, -self.upper), 0.0)
        return Interval(low, high)

    def square(self) -> Interval:
        """Return the squares."""
        size = self.magnitude()
        lost = TINIEST * (size.upper != 0.0)
        return Interval(np.maximum(down(size.lower * size.lower) - lost, 0.0), up(size.upper * size.upper) + lost)

    def root(self) -> Interval:
        """Return the square roots, of numbers that are at least 0 (what rounding has put below is raised to it)."""
        low, high = np.sqrt(np.maximum(self.lower, 0.0)), np.sqrt(np.maximum(self.upper, 0.0))
        return Interval(np.maximum(down(low), 0.0), up(high))

    def positive_part(self) -> Interval:
        """Return max(0, x)."""
        if type(self.lower) is float and self.lower == self.lower and self.upper == self.upper:
            return Interval(max(self.lower, 0.0), max(self.upper, 0.0))
        return self.at_least(0.0)

    def at_least(self, least: Numbers) -> Interval:
        """Return max(least, x)."""
        return Interval(np.maximum(self.lower, least), np.maximum(self.upper, least))

    def at_most(self, most: Numbers) -> Interval:
        """Return min(most, x)."""
        return Interval(np.minimum(self.lower, most), np.minimum(self.upper, most))

    @staticmethod
    def of_sum(values: Array, axis: int | None = None) -> Interval:
        """Return the sum of numbers that are not negative."""
        count = np.size(values) if axis is None else np.shape(values)[axis]
        total = float(np.sum(values)) if axis is None else np.sum(values, axis=axis)
        return Interval.around(total, 2.0 * gamma(count) * total)

    def sum(self, axis: int | None = None) -> Interval:
        """Return the sum, over an axis or over all."""
        size = np.maximum(np.abs(self.lower), np.abs(self.upper))
        count = np.size(size) if axis is None else np.shape(size)[axis]
        slack = 2.0 * gamma(count) * size.sum(axis=axis)
        return Interval(down(np.sum(self.lower, axis=axis) - slack), up(np.sum(self.upper, axis=axis) + slack))

    def largest(self, axis: int | None = None) -> Interval:
        """Return the maximum, over an axis or over all."""
        return Interval(np.max(self.lower, axis=axis), np.max(self.upper, axis=axis))

    def log(self) -> Interval:
        """Return the logarithms: -inf at 0, and below, where rounding has put it."""
        return _logarithms(np.log, self, 0.0)

    def log1p(self) -> Interval:
        """Return log(1 + x), which keeps the digits of a small x."""
        return _logarithms(np.log1p, self, -1.0)

    def exp(self) -> Interval:
        """Return the exponentials."""
        found = _widened(np.exp(self.lower), np.exp(self.upper))
        return Interval(np.maximum(found.lower, 0.0), found.upper)

    @property
    def ends(self) -> tuple[float, float]:
        """Both bounds of a single number: -inf and inf where nothing is known."""
        low, high = float(self.lower), float(self.upper)
        return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)

    def __getitem__(self, key: Any) -> Interval:
        return Interval(np.asarray(self.lower)[key], np.asarray(self.upper)[key])

    def ldexp(self, exponents: Numbers, lost: float = SMALLEST) -> Interval:
        """Return the products with powers of two, exact but for what leaves the range; of many numbers a `lost` of `TINIEST` is faster."""
        lost = lost * _can_differ(self)
        low, high = np.minimum(np.ldexp(self.lower, exponents), LARGEST), np.maximum(np.ldexp(self.upper, exponents), -LARGEST)
        return Interval(low - lost, high + lost)

    def reshape(self, *shape: int) -> Interval:
        """Return the same numbers in another shape."""
        return Interval(np.reshape(self.lower, shape), np.reshape(self.upper, shape))


def entropy(p: Array) -> Array:
    """Return -p log p, entry by entry, for p >= 0, up to one logarithm and one product; below `TINIEST` off by less than that.

    (NumPy's logarithm uses vector instructions, which `scipy.special.entr` does not.)
    """
    return np.asarray(-p * np.log(np.maximum(p, TINIEST)))


def entropies(p: Interval) -> Interval:
    """Return -p log p, entry by entry, of p raised to 0 at least: it rises up to 1/e and falls beyond."""
    low, high = np.maximum(p.lower, 0.0), np.maximum(p.upper, 0.0)
    at_low, at_high = entropy(low), entropy(high)
    peak = 0.36787944117144233
    most = np.where((low <= peak) & (high >= peak), peak, np.maximum(at_low, at_high))
    return _widened(np.minimum(at_low, at_high), most, 2.0)


def soft_plus(x: Interval) -> Interval:
    """Return log(1 + exp(x)), entry by entry, with all digits also where it is near 0."""
    low, high = (np.maximum(end, 0.0) + np.log1p(np.exp(-np.abs(end))) for end in (x.lower, x.upper))
    found = _widened(low, high, 4.0)
    return Interval(np.maximum(found.lower, 0.0), found.upper)


def _widened(low: Numbers, high: Numbers, times: float = 1.0) -> Interval:
    """Allow for the error of one call of the library, or of several."""
    share = times * _FUNCTION
    return Interval(low - (share * np.abs(low) + TINIEST), high + (share * np.abs(high) + TINIEST))


def _logarithms(function: Callable[[Numbers], Numbers], x: Interval, least: float) -> Interval:
    """Return logarithms of numbers raised to the least that there are of, and allow for their error: those that are 0 are exact."""
    with np.errstate(divide="ignore"):
        low, high = function(np.maximum(x.lower, least)), function(np.maximum(x.upper, least))
    sizes = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high))  # an end that is infinite is exact
    slack_low, slack_high = (_FUNCTION * size + TINIEST * np.not_equal(size, 0.0) for size in sizes)
    return Interval(low - slack_low, high + slack_high)


def _can_differ(x: Interval | Numbers) -> Numbers:
    """Return whether a number may be other than 0: then a product with it may be lost below `TINIEST`."""
    return (np.not_equal(x.lower, 0.0) | np.not_equal(x.upper, 0.0)) if isinstance(x, Interval) else np.not_equal(x, 0.0)


def _interval(x: Interval | Numbers) -> Interval:
    return x if isinstance(x, Interval) else Interval(x, x)


def enclose_dot(x: Array, y: Array) -> Interval:
    """Return the dot product of two arrays of floats of the same shape."""
    a, b = np.ravel(x), np.ravel(y)
    value = float(compensated_product(a[None, :], b[:, None])[0, 0] if is_compensated() else a @ b)
    return Interval.around(value, float(product_error(value, a.size, *(float(euclidean_norms(each)[0]) for each in (a, b)))))


def quotient(x: float, y: Interval) -> Interval:
    """Return x / y of numbers that are not negative, rounded outward also where it is below `TINIEST`; inf where y may be 0."""
    (low, high), lost = y.ends, SMALLEST * (x > 0.0)
    least = max(0.0, float(down(min(x / high, np.finfo(float).max))) - lost) if high > 0.0 else np.inf
    return Interval(least, float(up(x / low)) + lost if low > 0.0 else np.inf)


def compensated_product(X: Matrix, W: Array) -> Array:
    """Return X W by compensated dot products, for a dense or CSR X and a dense W."""
    value, error = compensated_parts(X, W)
    return value + error


def compensated_parts(X: Matrix, W: Array) -> tuple[Array, Array]:
    """Return two arrays whose sum is X W by compensated dot products, for a dense or CSR X and a dense W; the second is the smaller one."""
    from bench_mtl.core.kernels.compensated import dense_product, sparse_product

    out, error = np.zeros((2, X.shape[0], W.shape[1]))
    if is_sparse(X):
        matrix = X.tocsr()
        data, indices, indptr = matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        sparse_product(_readable(data), _readable(indices), _readable(indptr), _readable(W), out, error)
    else:
        dense_product(_readable(X), _readable(W), out, error)
    return out, error


def sum_of_parts(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the sum of two values in two parts each, as two parts; what the larger sum loses goes to the smaller (Knuth's TwoSum)."""
    (a, lost), (b, more) = one, other
    total = a + b
    back = total - a
    return total, (lost + more) + ((a - (total - back)) + (b - back))


def product_error(value: Numbers, n: int, a: Numbers, b: Numbers) -> Numbers:
    """Return how far dot products of n terms are from the exact ones, `value` as they were computed, a and b bounds on both norms."""
    norms = a * b  # first: a share of one of them may vanish where the other is large
    lost = n * TINIEST * np.greater(a, 0.0) if np.any(b) else 0.0
    if is_compensated():
        return 2.0 * UNIT * np.abs(value) + 2.0 * gamma(n + 8) ** 2 * norms + 8.0 * lost
    norms *= gamma(n + 8)
    return norms + lost


def _readable(x: Any) -> Any:
    """Return a read-only view in C order: one type for the compiler."""
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view
