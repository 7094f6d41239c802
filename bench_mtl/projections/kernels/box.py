"""The threshold theta of the projection onto a simplex within a box, and the pass that applies it.

w_i = min(max(v_i - theta, lower_i), upper_i) with the root of phi(theta) = sum_i w_i - mass: decreasing and piecewise linear with
breakpoints v_i - upper_i and v_i - lower_i, but not convex. Newton's method is safeguarded by a bracket. Every third step, and where it
would leave, the bracket is halved by the order of doubles, so that 64 halvings, 192 steps, are enough at any scale. The search ends where
the numbers of entries at their bounds are the same on both sides of the root: phi is linear in between, and the next step ends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact
from bench_mtl.projections.kernels.sums import two_sum

LANES = 512
_MAX_STEPS = 250
_MAX_RETURNS, _NEAR = 4, 2.0**-8
ROWS = 5  # of the scratch, of LANES entries each


@exact
def _add(v: Any, lower: Any, upper: Any, high: float, middle: float, total: Any, error: Any) -> None:
    """Add a block of w to compensated sums, one for each of its entries."""
    for i in range(v.size):
        w = min(max((v[i] - high) - middle, lower[i]), upper[i])
        total[i], lost = two_sum(total[i], w)
        error[i] += lost


@exact
def _count(v: Any, lower: Any, upper: Any, high: float, middle: float) -> tuple[int, int, int, int]:
    """The numbers of entries of a block at or below, below, at or above, and above their bounds."""
    at_lower = 0
    below = 0
    at_upper = 0
    above = 0
    for i in range(v.size):
        t = (v[i] - high) - middle
        at_lower += 1 if t <= lower[i] else 0
        below += 1 if t < lower[i] else 0
        at_upper += 1 if t >= upper[i] else 0
        above += 1 if t > upper[i] else 0
    return at_lower, below, at_upper, above


@exact
def _bound(bound: Any, start: int, stop: int, filled: Any) -> Any:
    """A block of a bound: of an array, or of one number that `filled` repeats."""
    return filled[: stop - start] if bound.size == 1 else bound[start:stop]


@exact
def _phi(v: Any, lower: Any, upper: Any, mass: float, high: float, middle: float, scratch: Any) -> tuple[float, int, int, int]:
    """phi at theta = high + middle, how many entries move with theta on the side where the root is, and how many are at their bounds."""
    total = scratch[0]
    error = scratch[1]
    total[:] = 0.0
    error[:] = 0.0
    at_lower = 0
    below = 0
    at_upper = 0
    above = 0
    for start in range(0, v.size, LANES):
        stop = min(start + LANES, v.size)
        block = v[start:stop]
        low, up = _bound(lower, start, stop, scratch[3]), _bound(upper, start, stop, scratch[4])
        _add(block, low, up, high, middle, total, error)
        counts = _count(block, low, up, high, middle)
        at_lower += counts[0]
        below += counts[1]
        at_upper += counts[2]
        above += counts[3]
    whole = -mass
    rest = 0.0
    for i in range(min(LANES, v.size)):
        whole, lost = two_sum(whole, total[i])
        rest += lost + error[i]
    value = whole + rest
    free = v.size - at_lower - above if value > 0.0 else v.size - below - at_upper
    return value, free, at_lower, at_upper


@exact
def _breakpoints(v: Any, lower: Any, upper: Any) -> tuple[float, float, bool]:
    """A number below the first and one above the last finite breakpoint (which round), and whether every entry is finite."""
    first = np.inf
    last = -np.inf
    finite = True
    for i in range(v.size):
        finite = bool(finite and abs(v[i]) < np.inf)
        for bound in (lower[min(i, lower.size - 1)], upper[min(i, upper.size - 1)]):
            if abs(bound) < np.inf:
                first = min(first, v[i] - bound)
                last = max(last, v[i] - bound)
    return np.nextafter(first, -np.inf), np.nextafter(last, np.inf), finite


@exact
def _middle(low: float, high: float, work: Any) -> float:
    """The double half-way between two in the order of all doubles."""
    work[0] = low
    work[1] = high
    bits = work[:2].view(np.int64)
    smallest = np.int64(-0x7FFFFFFFFFFFFFFF - 1)
    a = bits[0] if bits[0] >= 0 else smallest - bits[0]
    b = bits[1] if bits[1] >= 0 else smallest - bits[1]
    c = (a >> 1) + (b >> 1) + (a & b & 1)
    bits[0] = c if c >= 0 else smallest - c
    return work[0]


@exact
def _search(v: Any, lower: Any, upper: Any, mass: float, base: float, bracket: Any, scratch: Any) -> tuple[float, float, bool]:
    """A theta - base on the linear piece of the root, from a bracket; or a bracket of two neighbouring doubles."""
    low, high = bracket
    left, _, left_below, left_above = _phi(v, lower, upper, mass, base, low, scratch)
    right, _, right_below, right_above = _phi(v, lower, upper, mass, base, high, scratch)
    if left <= 0.0:
        return low, low, True
    if right >= 0.0:
        return high, high, True
    theta = low + (high - low) * (left / (left - right))
    for attempt in range(_MAX_STEPS):
        if not low < theta < high or attempt % 3 == 2:
            theta = _middle(low, high, scratch[2])
        if not low < theta < high:
            break
        value, free, below, above = _phi(v, lower, upper, mass, base, theta, scratch)
        if value == 0.0:
            return theta, theta, True
        if value > 0.0:
            known = below == right_below and above == right_above
            low, left_below, left_above = theta, below, above
        else:
            known = below == left_below and above == left_above
            high, right_below, right_above = theta, below, above
        if known or (left_below == right_below and left_above == right_above):
            for _ in range(_MAX_RETURNS):  # from a theta far from the root, v - theta would have lost the digits of v
                step = value / free if free > 0 else 0.0
                if not abs(theta + step) < _NEAR * abs(theta):
                    break
                theta = min(max(theta + step, low), high)
                value, free, _, _ = _phi(v, lower, upper, mass, base, theta, scratch)
            return theta, theta, True
        theta = theta + value / free if free > 0 else np.inf
    return low, high, False


@exact
def project(v: Any, mass: float, lower: Any, upper: Any, out: Any, scratch: Any) -> bool:
    """The projection of a vector, into `out`, which may be it; False if it is not finite. Bounds may hold one number for all."""
    scratch[3] = lower[0]
    scratch[4] = upper[0]
    first, last, finite = _breakpoints(v, lower, upper)
    if not finite:
        return False
    high = 0.0
    middle = 0.0
    if first <= last:
        low, high, done = _search(v, lower, upper, mass, 0.0, (first, last), scratch)
        if not done:  # all that matters lies between two doubles: relative to one of them it is well apart
            middle, _, done = _search(v, lower, upper, mass, high, (low - high, 0.0), scratch)
            if not done:
                middle, _, _ = _search(v, lower, upper, mass, low, (0.0, high - low), scratch)
                high = low
    step = 0.0
    before = -1
    for _ in range(_MAX_STEPS):
        value, free, _, _ = _phi(v, lower, upper, mass, high, middle, scratch)
        if free <= 0:
            step = 0.0
            break
        step = value / free
        if free == before or abs(value) <= 2.0**-52 * abs(mass) or middle + step == middle:
            break
        before = free
        middle += step
    for start in range(0, v.size, LANES):
        stop = min(start + LANES, v.size)
        low, up = _bound(lower, start, stop, scratch[3]), _bound(upper, start, stop, scratch[4])
        for i in range(start, stop):
            out[i] = min(max(((v[i] - high) - middle) - step, low[i - start]), up[i - start])
    return True
