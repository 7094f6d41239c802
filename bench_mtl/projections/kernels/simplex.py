"""The threshold theta of the projections onto the simplex and the l1 ball, and the pass that applies it.

With the key a_i of an entry (|x_i| for the l1 ball, x_i for the simplex and the non-negative ball), the projection is
w_i = max(a_i - theta, 0) with the root theta of the excess E(theta) = sum_i max(a_i - theta, 0) - radius: convex, decreasing,
piecewise linear. Every tangent's root is a lower bound of theta, so Newton's method (the set iteration of Michelot, JOTA 1986)
lands on its left after one step and rises from there. A step takes the excess f and the slope g (the number of keys above) to
f' / f + g' / g <= 1, so that f g falls by a factor 4 at least, from at most n^2 max|a| to the rounding of the excess: some 60
steps for any data, and `_MAX_STEPS` is never reached.

Rounding. theta is the sum of three doubles, high + middle + low, subtracted one after the other: t_i = (a_i - high) - middle,
w_i = t_i - low. Where the radius is small against the keys, `high` is the largest of them, from which all that survive subtract
without error (Sterbenz); else it is the root to a few digits. `low` is the last Newton step, from the sum of the very terms t_i
that are written, which `_above` computes without error to 2^-60 radius. So sum_i (t_i - low) = radius up to the rounding of `low`,
at most 2 u |sum t_i - radius| <= 2 u radius, each w_i adds one rounding, and sum_i w_i <= radius (1 + 4 u), u = 2^-53, as long as
all keys above theta are in the sum, which the count of the last pass proves (else it is repeated). A w_i below the normal range
(2^-1022) rounds to a multiple of 2^-1074; there `low` is rounded up.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bench_mtl.core.kernels.jit import exact, inlined, reordered, selecting
from bench_mtl.projections.kernels.norms import finite
from bench_mtl.projections.kernels.sums import two_sum

NEWTON, SORT, PIVOT = range(3)
SCRATCH = 1 << 16  # entries sampled, or surviving
_BLOCK = 2048  # entries that stay in the first-level cache
_LEAF = 128  # entries of which none is copied unless one survives
_SHORT = 32  # entries that a plain loop handles faster than blocks
_SAMPLED = 4096  # shorter vectors are not worth a sample
LARGEST_RADIUS = 2.0**900  # for which sums of terms and their grid stay finite
_SMALLEST_NORMAL = 2.0**-1022
_MAX_STEPS = 200
_REFUSED, _INSIDE, _OUTSIDE = range(3)
_NOWHERE = (0.0, 0.0, 0.0, 0.0)


class Rule(NamedTuple):
    """What is projected onto: keys are |x| if `absolute`; in a `ball` what is inside, to the tolerance, stays."""

    radius: float
    absolute: bool
    ball: bool
    tolerance: float
    method: int


@selecting
def _above(x: Any, high: float, middle: float, grid: float, absolute: bool) -> tuple[float, float, float]:
    """sum of max(key - theta, 0) over one block, coarse and fine part, and the number of keys above theta = high + middle.

    The coarse parts are whole multiples of the spacing of `grid`, and `_BLOCK` of them stay below 2^53 of it, so any order sums them
    without error; the fine parts are below 2^-40 of the radius. (The terms are of exact functions: only sums may be reordered.)
    """
    coarse = 0.0
    fine = 0.0
    count = 0.0
    for i in range(x.size):
        term = _term(abs(x[i]) if absolute else x[i], high, middle)
        keep = term > 0.0
        upper, lower = _split(term if keep else 0.0, grid)
        coarse += upper
        fine += lower
        count += 1.0 if keep else 0.0
    return coarse, fine, count


@exact
def _term(key: float, high: float, middle: float) -> float:
    return (key - high) - middle


@exact
def _split(term: float, grid: float) -> tuple[float, float]:
    coarse = (term + grid) - grid
    return coarse, term - coarse


@selecting
def _above_roughly(x: Any, theta: float, absolute: bool) -> tuple[float, float]:
    """`_above` with ordinary rounding, at half the time."""
    total = 0.0
    count = 0.0
    for i in range(x.size):
        term = (abs(x[i]) if absolute else x[i]) - theta
        keep = term > 0.0
        total += term if keep else 0.0
        count += 1.0 if keep else 0.0
    return total, count


@reordered
def _sums(x: Any, least: float) -> tuple[float, float]:
    """sum |x| and sum max(x, least) of one block; the first is finite only where every entry is.

    (With `least` 0 the second is right to its own rounding, which (sum |x| + sum x) / 2 is not beside a large negative entry.)
    """
    size = 0.0
    total = 0.0
    for i in range(x.size):
        size += abs(x[i])
        total += x[i] if x[i] > least else least
    return size, total


@exact
def _first_pass(x: Any, theta: float, absolute: bool, least: float) -> tuple[float, float, float, float]:
    """sum |x|, sum max(x, least), sum of max(key - theta, 0) and the number of keys above, all roughly."""
    size = 0.0
    total = 0.0
    above = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        block = x[start : min(start + _BLOCK, x.size)]
        part, rest = _sums(block, least)
        size += part
        total += rest
        part, rest = _above_roughly(block, theta, absolute)
        above += part
        count += rest
    return size, total, above, count


@exact
def rough_pass(x: Any, theta: float, absolute: bool) -> tuple[float, float]:
    """Sum of max(key - theta, 0) and the number of keys above, roughly."""
    total = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        part, number = _above_roughly(x[start : min(start + _BLOCK, x.size)], theta, absolute)
        total += part
        count += number
    return total, count


@exact
def _pass(x: Any, high: float, middle: float, radius: float, absolute: bool) -> tuple[float, float]:
    """E(theta) at theta = high + middle, and the number of keys above."""
    grid = 1.5 * math.ldexp(1.0, 13 + math.frexp(radius)[1])  # spacing: 2^-40 radius; sums: up to 2^13 radius
    coarse = -radius
    fine = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        part, rest, number = _above(x[start : min(start + _BLOCK, x.size)], high, middle, grid, absolute)
        coarse, lost = two_sum(coarse, part)
        fine += lost + rest
        count += number
    return coarse + fine, count


@exact
def _write(x: Any, out: Any, same: bool, high: float, middle: float, low: float, absolute: bool) -> float:
    """out = sign(x) max(key - theta, 0), and the number of entries left; `same` where out is x (the compiler must know to vectorise)."""
    if same:
        return _shrink(out, out, high, middle, low, absolute)
    return _shrink(x, out, high, middle, low, absolute)


@inlined
def _shrink(x: Any, out: Any, high: float, middle: float, low: float, absolute: bool) -> float:
    count = 0
    for i in range(x.size):
        a = x[i]
        t = (((abs(a) if absolute else a) - high) - middle) - low
        count += 1 if t > 0.0 else 0
        w = t if t > 0.0 else 0.0
        out[i] = math.copysign(w, a) if absolute else w
    return float(count)


@exact
def largest_key(x: Any, absolute: bool) -> float:
    """The largest key, -inf where there is none."""
    best = -np.inf
    for i in range(x.size):
        best = max(best, abs(x[i]) if absolute else x[i])
    return best


@exact
def newton(keys: Any, theta: float, radius: float, absolute: bool) -> float:
    """The root to rounding, from any theta below the largest key."""
    before = -1.0
    for _ in range(_MAX_STEPS):
        total, count = rough_pass(keys, theta, absolute)
        if count == 0.0 or count == before or theta + (total - radius) / count == theta:
            break
        before = count
        theta += (total - radius) / count
    return theta


@exact
def _short_newton(x: Any, theta: float, radius: float, absolute: bool) -> float:
    """`newton` for a few entries, from a lower bound."""
    before = 0
    for _ in range(_MAX_STEPS):
        total = -radius
        count = 0
        for i in range(x.size):
            term = (abs(x[i]) if absolute else x[i]) - theta
            if term > 0.0:
                total += term
                count += 1
        if count == 0 or count == before:
            break
        before = count
        theta += total / count
    return theta


@exact
def _sampled_root(x: Any, radius: float, absolute: bool, scratch: Any) -> tuple[float, int]:
    """The root for whole cache lines, evenly spread, with their share of the radius (0 where not finite); their keys are in `scratch`."""
    lines = min(scratch.size, x.size // 64) // 8
    stride = x.size // lines
    for line in range(lines):
        for i in range(8):
            a = x[line * stride + i]
            scratch[8 * line + i] = abs(a) if absolute else a
    sample = scratch[: 8 * lines]
    share = radius * (sample.size / x.size)
    theta = newton(sample, largest_key(sample, False) - share, share, False)
    return theta if abs(theta) < np.inf else 0.0, sample.size


@exact
def _between(sample: Any, n: int, theta: float, new: float) -> float:
    """An upper estimate of how many of n keys lie between two numbers, from a sample of them."""
    between = abs(rough_pass(sample, theta, False)[1] - rough_pass(sample, new, False)[1])
    return (between + 2.0 + 2.0 * math.sqrt(between)) * (n / sample.size)


@exact
def _gather(x: Any, theta: float, absolute: bool, kept: Any) -> int:
    """The keys above theta into `kept`, and their number: few, so leaves without any are skipped."""
    number = 0
    for start in range(0, x.size, _LEAF):
        leaf = x[start : min(start + _LEAF, x.size)]
        _, count = _above_roughly(leaf, theta, absolute)
        if count > 0.0:
            for i in range(leaf.size):
                a = abs(leaf[i]) if absolute else leaf[i]
                if a > theta and number < kept.size:
                    kept[number] = a
                    number += 1
    return number


@exact
def _far(x: Any, radius: float, absolute: bool) -> tuple[float, float, float, float]:
    """The root by steps from largest - radius, relative to the largest key: for a radius that is small against the keys."""
    high = largest_key(x, absolute)
    middle = -radius
    step = 0.0
    count = -1.0
    for _ in range(_MAX_STEPS):
        before = count
        excess, count = _pass(x, high, middle, radius, absolute)
        step = excess / count
        if count == before or middle + step == middle:
            break
        middle += step
    return high, middle, step, count


@exact
def _search(x: Any, start: Any, floor: float, rule: Any, scratch: Any, sampled: int) -> tuple[float, float, float, float]:
    """The root as three doubles, and the number of keys that are thought to be above it, from a theta, and total and count above it.

    `floor` is a lower bound of the root. A step that passes D of k keys leaves about D^2 / 2k between: while these are many, passes may be
    rough, and the search ends with an exact pass from which no key lies between theta and the root. The sample tells the first D.
    """
    radius, absolute = rule.radius, rule.absolute
    theta, total, count = start
    excess = total - radius
    near = count
    exactly = False
    for _ in range(_MAX_STEPS):
        new = max(floor, theta + excess / count) if count > 0.0 else floor
        if exactly and (new == theta or near < 0.3):
            if count == 0.0 or excess > radius:
                break
            return theta, 0.0, excess / count, count
        if new > theta and 0.0 < count <= min(scratch.size, x.size // 128):
            kept = scratch[: _gather(x, new, absolute, scratch)]
            if kept.size == 0:  # rounded up to the largest key
                break
            new = newton(kept, new, radius, False)
            excess, count = _pass(kept, new, 0.0, radius, False)
            if count == 0.0 or excess > radius:
                return _far(kept, radius, False)
            return new, 0.0, excess / count, count
        if near == count and sampled > 0:
            near = min(near, _between(scratch[:sampled], x.size, theta, new))
        before = count
        theta = new
        exactly = 0.5 * near * near < 0.3 * count
        if exactly:
            excess, count = _pass(x, theta, 0.0, radius, absolute)
        else:
            excess, count = rough_pass(x, theta, absolute)
            excess -= radius
        near = 0.5 * (before - count) ** 2 / max(count, 1.0)
    return _far(x, radius, absolute)


@exact
def _sorted_theta(ascending: Any, radius: float) -> float:
    """Figure 1 of Duchi et al.: the last k for which the k-th largest key exceeds (sum of k largest - radius) / k."""
    top = ascending[ascending.size - 1]  # keys less the largest, so that a small radius does not cancel
    total = 0.0
    theta = -radius
    for k in range(1, ascending.size + 1):
        key = ascending[ascending.size - k] - top
        if key <= theta:
            break
        total += key
        theta = (total - radius) / k
    return top + theta


@exact
def _pivot_theta(keys: Any, radius: float) -> float:
    """Figure 2 of Duchi et al.: a random pivot splits the candidates; those above it stay for good, or are all that is left.

    Expected O(n). After 8 log2(n) + 64 splits (practically never) Newton's method ends the search, so the worst case is O(n log n).
    """
    low = 0
    high = keys.size
    above = 0.0  # sum and number of the keys known to survive
    number = 0.0
    state = 88172645463325252
    for _ in range(64 + 8 * int(math.log2(keys.size + 1))):
        if low >= high:
            return (above - radius) / number
        state ^= (state << 13) & 0x7FFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= (state << 17) & 0x7FFFFFFFFFFFFFFF
        pivot = keys[low + state % (high - low)]
        # Three ways: above the pivot to the front, equal to it in the middle, so that ties cannot slow the search down.
        front = low
        i = low
        back = high
        part = 0.0
        while i < back:
            key = keys[i]
            if key > pivot:
                keys[i] = keys[front]
                keys[front] = key
                part += key
                front += 1
                i += 1
            elif key < pivot:
                back -= 1
                keys[i] = keys[back]
                keys[back] = key
            else:
                i += 1
        part += (back - front) * pivot
        count = number + (back - low)
        if (above + part) - count * pivot < radius:
            above += part
            number = count
            low = back
        else:
            high = front
    return newton(keys, (above - radius) / number if number > 0.0 else largest_key(keys, False) - radius, radius, False)


@exact
def _find(x: Any, keys: Any, rule: Any, scratch: Any) -> tuple[int, tuple[float, float, float, float]]:
    """The status (`_REFUSED`, `_INSIDE`, `_OUTSIDE`), and the root as three doubles with the number of keys thought to be above it."""
    radius, absolute, ball, tolerance, method = rule
    theta = 0.0
    sampled = 0
    if method == NEWTON and x.size >= _SAMPLED:
        theta, sampled = _sampled_root(x, radius, absolute, scratch)
        theta = max(theta, 0.0) if ball else theta
    size, whole, total, count = _first_pass(x, theta, absolute, 0.0 if ball else -np.inf)
    if not size < np.inf and not finite(x):
        return _REFUSED, _NOWHERE
    whole = size if ball and absolute else whole  # sum of the positive keys, roughly
    inside = ball and whole <= radius * (1.0 + 1e-9)
    if inside and whole > 0.5 * radius:
        inside = _pass(x, 0.0, 0.0, radius, absolute)[0] <= radius * tolerance
    if inside:
        return _INSIDE, _NOWHERE
    if not size < np.inf:  # finite keys with an infinite sum
        return _OUTSIDE, _far(x, radius, absolute)
    floor = (whole - radius) / x.size
    floor = max(floor, 0.0) if ball else floor
    if method != NEWTON or x.size <= _SHORT:
        if method == SORT:
            theta = _sorted_theta(keys, radius)
        else:
            theta = _pivot_theta(keys, radius) if method == PIVOT else _short_newton(x, floor, radius, absolute)
        excess, count = _pass(x, theta, 0.0, radius, absolute)
        return _OUTSIDE, (theta, 0.0, excess / count, count) if count > 0.0 and excess <= radius else _far(x, radius, absolute)
    return _OUTSIDE, _search(x, (theta, total, count), floor, rule, scratch, sampled)


@exact
def project_line(x: Any, keys: Any, out: Any, same: bool, rule: Any, scratch: Any) -> bool:
    """Project one vector into `out` (the same memory where `same`); False if it is not finite."""
    radius, absolute = rule.radius, rule.absolute
    end, (high, middle, low, count) = _find(x, keys, rule, scratch)
    if end == _REFUSED:
        return False
    if end == _INSIDE:
        for i in range(out.size):
            out[i] = x[i] if absolute or x[i] > 0.0 else 0.0
        return True
    tiny = radius < x.size * _SMALLEST_NORMAL
    left = _write(x, out, same, high, middle, np.nextafter(low, np.inf) if tiny else low, absolute)
    # From the left of the root, what was written has the same projection as x: project it again, in place, until all keys were in the sum.
    for _ in range(_MAX_STEPS):
        if left == count:
            break
        excess, count = _pass(out, 0.0, 0.0, radius, True)
        if count == 0.0:
            break
        low = np.nextafter(excess / count, np.inf) if tiny else excess / count
        left = _write(out, out, True, 0.0, 0.0, low if excess > 0.0 else 0.0, True)
    return True


@exact
def project_lines(lines: Any, keys: Any, out: Any, same: bool, rule: Any, scratch: Any) -> bool:
    """`project_line` of every row of a matrix; `keys` are the sorted keys of all rows for `SORT`, for `PIVOT` the keys in any order.

    `rule` has the fields of a `Rule`, as a plain tuple, which Numba recognises sooner.
    """
    rule = Rule(*rule)
    for i in range(lines.shape[0]):
        row_keys = keys[min(i, keys.shape[0] - 1)]
        if not project_line(lines[i], row_keys, out[i], same, rule, scratch):
            return False
    return True
