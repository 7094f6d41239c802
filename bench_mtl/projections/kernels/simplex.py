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
(2^-1022) rounds to a multiple of 2^-1074 instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import exact, reordered, selecting

NEWTON, SORT, PIVOT, FILTER, FAR = range(5)
SCRATCH = 1 << 16  # entries sampled, or surviving
_BLOCK = 2048  # entries that stay in the first-level cache
_LEAF = 128  # entries of which none is copied unless one survives
_SHORT = 32  # entries that a plain loop handles faster than blocks
_SAMPLED = 4096  # shorter vectors are not worth a sample
LARGEST_RADIUS = 2.0**900  # for which sums of terms and their grid stay finite
_MAX_STEPS = 200
_REFUSED, _INSIDE, _OUTSIDE = range(3)


@exact
def _shifted(key: float, high: float, middle: float) -> float:
    return (key - high) - middle


@exact
def _split(term: float, grid: float) -> tuple[float, float]:
    """The multiple of the spacing of `grid` next to `term`, and what it leaves: both without error."""
    coarse = (term + grid) - grid
    return coarse, term - coarse


@selecting
def _above(x: Any, high: float, middle: float, grid: float, absolute: bool) -> tuple[float, float, float]:
    """sum of max(key - theta, 0) over one block, coarse and fine part, and the number of keys above theta = high + middle.

    The coarse parts are whole multiples of one spacing and `_BLOCK` of them stay below 2^53 of it, so any order sums them without
    error; the fine parts are below 2^-40 of the radius. (Only the sums may be reordered: the terms are of exact functions.)
    """
    coarse = 0.0
    fine = 0.0
    count = 0.0
    if absolute:
        for i in range(x.size):
            term = _shifted(abs(np.float64(x[i])), high, middle)
            keep = term > 0.0
            upper, lower = _split(term if keep else 0.0, grid)
            coarse += upper
            fine += lower
            count += 1.0 if keep else 0.0
    else:
        for i in range(x.size):
            term = _shifted(np.float64(x[i]), high, middle)
            keep = term > 0.0
            upper, lower = _split(term if keep else 0.0, grid)
            coarse += upper
            fine += lower
            count += 1.0 if keep else 0.0
    return coarse, fine, count


@selecting
def _above_roughly(x: Any, theta: float, absolute: bool) -> tuple[float, float]:
    """`_above` with ordinary rounding, at half the time."""
    total = 0.0
    count = 0.0
    if absolute:
        for i in range(x.size):
            term = abs(np.float64(x[i])) - theta
            keep = term > 0.0
            total += term if keep else 0.0
            count += 1.0 if keep else 0.0
    else:
        for i in range(x.size):
            term = np.float64(x[i]) - theta
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
        value = np.float64(x[i])
        size += abs(value)
        total += value if value > least else least
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
def _pass(x: Any, high: float, middle: float, radius: float, absolute: bool) -> tuple[float, float]:
    """E(theta) at theta = high + middle, less the radius, and the number of keys above."""
    grid = 1.5 * math.ldexp(1.0, 13 + math.frexp(radius)[1])  # spacing: 2^-40 radius; sums: up to 2^13 radius
    coarse = -radius
    fine = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        part, rest, number = _above(x[start : min(start + _BLOCK, x.size)], high, middle, grid, absolute)
        new = coarse + part
        back = new - coarse
        fine += ((coarse - (new - back)) + (part - back)) + rest
        coarse = new
        count += number
    return coarse + fine, count


@exact
def _write(x: Any, out: Any, same: bool, high: float, middle: float, low: float, absolute: bool, shrink: float) -> float:
    """out = sign(x) max(key - theta, 0), and the number of entries left; `same` where out is x (the compiler must know to vectorise)."""
    count = 0
    if same:
        for i in range(out.size):
            a = np.float64(out[i])
            t = (((abs(a) if absolute else a) - high) - middle) - low
            keep = t > 0.0
            count += 1 if keep else 0
            w = t * shrink if keep else 0.0
            out[i] = math.copysign(w, a) if absolute else w
    else:
        for i in range(x.size):
            a = np.float64(x[i])
            t = (((abs(a) if absolute else a) - high) - middle) - low
            keep = t > 0.0
            count += 1 if keep else 0
            w = t * shrink if keep else 0.0
            out[i] = math.copysign(w, a) if absolute else w
    return float(count)


@exact
def _largest(x: Any, absolute: bool) -> float:
    best = -np.inf
    for i in range(x.size):
        a = np.float64(x[i])
        best = max(best, abs(a) if absolute else a)
    return best


@exact
def _rough_pass(x: Any, theta: float, absolute: bool) -> tuple[float, float]:
    """Sum of max(key - theta, 0) and the number of keys above, roughly."""
    total = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        part, number = _above_roughly(x[start : min(start + _BLOCK, x.size)], theta, absolute)
        total += part
        count += number
    return total, count


@exact
def _newton(keys: Any, theta: float, radius: float) -> tuple[float, float]:
    """The root to rounding, from any theta, and the number of keys above."""
    before = -1.0
    count = 0.0
    for _ in range(_MAX_STEPS):
        total, count = _rough_pass(keys, theta, False)
        if count == 0.0 or count == before or theta + (total - radius) / count == theta:
            break
        before = count
        theta += (total - radius) / count
    return theta, count


@exact
def _sample(x: Any, absolute: bool, sample: Any) -> int:
    """Keys of whole cache lines, evenly spread, into `sample`; their number."""
    lines = min(sample.size, x.size // 64) // 8
    stride = x.size // lines
    for line in range(lines):
        for i in range(8):
            a = np.float64(x[line * stride + i])
            sample[8 * line + i] = abs(a) if absolute else a
    return 8 * lines


@exact
def _gather(x: Any, theta: float, absolute: bool, kept: Any) -> int:
    """The keys above theta into `kept`, and their number: few, so leaves without any are skipped."""
    number = 0
    for start in range(0, x.size, _LEAF):
        leaf = x[start : min(start + _LEAF, x.size)]
        _, count = _above_roughly(leaf, theta, absolute)
        if count > 0.0:
            for i in range(leaf.size):
                a = np.float64(leaf[i])
                a = abs(a) if absolute else a
                if a > theta and number < kept.size:
                    kept[number] = a
                    number += 1
    return number


@exact
def _far(x: Any, radius: float, absolute: bool) -> tuple[float, float, float, float]:
    """The root by steps from largest - radius, relative to the largest key: for a radius that is small against the keys."""
    high = _largest(x, absolute)
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
def _near(sample: Any, share: float, theta: float, new: float) -> float:
    """An upper estimate of how many keys lie between `theta` and `new`, from a sample that is a `share` of all."""
    _, one = _rough_pass(sample, theta, False)
    _, other = _rough_pass(sample, new, False)
    between = abs(one - other)
    return (between + 2.0 + 2.0 * math.sqrt(between)) / share


@exact
def _search(
    x: Any,
    theta: float,
    excess: float,
    count: float,
    sampled: int,
    floor: float,
    radius: float,
    absolute: bool,
    scratch: Any,
    exactly: bool,
) -> tuple[float, float, float, float]:
    """The root as three doubles, and the number of keys that are thought to be above it, from `excess` and `count` at `theta`.

    `floor` is a lower bound of the root; `exactly` says that theta is thought to be the root, and its excess exact. The search ends with
    an exact pass from which no key lies between theta and the root. A step that passes D of k keys leaves about D^2 / 2k between: so
    the passes before it may be rough. The sample in `scratch` tells D too, and after a pass that was far off a better theta: its excess
    may be wrong by a factor, but what it loses between two thetas is right to sampling error.
    """
    share = sampled / x.size
    near = 0.0 if exactly else count
    for attempt in range(_MAX_STEPS):
        new = floor
        if count > 0.0:
            new = max(new, theta + excess / count)
            if new > theta and count <= min(scratch.size, x.size // 128):
                number = _gather(x, new, absolute, scratch)
                if number == 0:  # rounded up to the largest key
                    break
                kept = scratch[:number]
                theta, _ = _newton(kept, new, radius)
                excess, count = _pass(kept, theta, 0.0, radius, False)
                if count == 0.0 or excess > radius:
                    return _far(kept, radius, False)
                return theta, 0.0, excess / count, count
            if exactly and excess <= radius and (near < 0.3 or new == theta):
                return theta, 0.0, excess / count, count
            if sampled > 0 and near > 2.0 / share:
                near = min(near, _near(scratch[:sampled], share, theta, new))
                if attempt < 2 and near > 0.05 * count:
                    kept = scratch[:sampled]
                    lost, _ = _rough_pass(kept, theta, False)
                    goal = lost - share * excess
                    if goal > 0.0:
                        guess, left = _newton(kept, _largest(kept, False) - goal, goal)
                        if left > 0.0 and guess > floor:
                            new = guess
        if exactly and (new == theta or (near < 0.3 and excess > radius)):
            break
        before = count
        theta = new
        exactly = 0.5 * near * near < 0.3 * count or attempt > 20
        if exactly:
            excess, count = _pass(x, theta, 0.0, radius, absolute)
        else:
            excess, count = _rough_pass(x, theta, absolute)
            excess -= radius
        passed = abs(before - count)
        near = 0.5 * passed * passed / max(count, 1.0)
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
def _load(x: Any, absolute: bool, keys: Any) -> None:
    for i in range(x.size):
        a = np.float64(x[i])
        keys[i] = abs(a) if absolute else a


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
    theta, _ = _newton(keys, (above - radius) / number if number > 0.0 else _largest(keys, False) - radius, radius)
    return theta


@exact
def _filter_theta(x: Any, radius: float, absolute: bool, kept: Any) -> float:
    """Condat's algorithm (Math. Prog. 2016): a lower bound of theta grows while the data are read, and drops what lies below it."""
    first = np.float64(x[0])
    kept[0] = abs(first) if absolute else first
    theta = kept[0] - radius
    start = 0  # kept[:start] waits for a second look, kept[start:end] is the active set
    end = 1
    for i in range(1, x.size):
        a = np.float64(x[i])
        a = abs(a) if absolute else a
        if a > theta:
            theta += (a - theta) / (end - start + 1)
            if theta <= a - radius:
                start = end
                theta = a - radius
            kept[end] = a
            end += 1
    begin = start
    for i in range(start - 1, -1, -1):
        if kept[i] > theta:
            begin -= 1
            kept[i], kept[begin] = kept[begin], kept[i]
            theta += (kept[begin] - theta) / (end - begin)
    theta, _ = _newton(kept[begin:end], theta, radius)
    return theta


@exact
def _theta(x: Any, keys: Any, radius: float, absolute: bool, method: int) -> float:
    """The root by a method of the literature."""
    if method == SORT:
        return _sorted_theta(keys, radius)
    if method == PIVOT:
        _load(x, absolute, keys)
        return _pivot_theta(keys, radius)
    return _filter_theta(x, radius, absolute, keys)


@exact
def _identity(x: Any, out: Any, absolute: bool) -> None:
    for i in range(out.size):
        out[i] = x[i] if absolute or x[i] > 0 else 0


@exact
def _short_newton(x: Any, theta: float, radius: float, absolute: bool) -> float:
    """`_newton` for a few entries, from a lower bound."""
    before = 0
    for _ in range(_MAX_STEPS):
        total = -radius
        count = 0
        for i in range(x.size):
            a = np.float64(x[i])
            term = (abs(a) if absolute else a) - theta
            if term > 0.0:
                total += term
                count += 1
        if count == 0 or count == before:
            break
        before = count
        theta += total / count
    return theta


@exact
def _find(
    x: Any, keys: Any, radius: float, absolute: bool, ball: bool, tolerance: float, method: int, scratch: Any
) -> tuple[int, float, float, float, float]:
    """The status (`_REFUSED`, `_INSIDE`, `_OUTSIDE`), the root as three doubles, and the number of keys thought to be above it."""
    if method == FAR:
        if ball and _rough_pass(x, 0.0, absolute)[0] <= 2.0 * radius and _pass(x, 0.0, 0.0, radius, absolute)[0] <= radius * tolerance:
            return _INSIDE, 0.0, 0.0, 0.0, 0.0
        high, middle, low, count = _far(x, radius, absolute)
        return _OUTSIDE, high, middle, low, count
    theta = 0.0
    sampled = 0
    if method == NEWTON and x.size >= _SAMPLED:
        sampled = _sample(x, absolute, scratch)
        goal = radius * (sampled / x.size)
        theta, _ = _newton(scratch[:sampled], _largest(scratch[:sampled], False) - goal, goal)
        if not abs(theta) < np.inf:  # NaN or inf is in the sample
            theta = 0.0
        if ball:
            theta = max(theta, 0.0)
    size, whole, total, count = _first_pass(x, theta, absolute, 0.0 if ball else -np.inf)
    if not size < np.inf:
        return _REFUSED, 0.0, 0.0, 0.0, 0.0
    if ball:
        whole = size if absolute else whole  # sum of the positive keys, roughly
        inside = whole <= 0.5 * radius
        if not inside and whole <= radius * (1.0 + 1e-9) and radius <= LARGEST_RADIUS:
            inside = _pass(x, 0.0, 0.0, radius, absolute)[0] <= radius * tolerance
        if inside:
            return _INSIDE, 0.0, 0.0, 0.0, 0.0
    if radius > LARGEST_RADIUS:
        return _REFUSED, 0.0, 0.0, 0.0, 0.0
    excess = total - radius
    if method != NEWTON:
        theta = _theta(x, keys, radius, absolute, method)
        excess, count = _pass(x, theta, 0.0, radius, absolute)
    floor = (whole - radius) / x.size
    if method == NEWTON and x.size <= _SHORT:
        theta = _short_newton(x, max(floor, 0.0) if ball else floor, radius, absolute)
        excess, count = _pass(x, theta, 0.0, radius, absolute)
        if count > 0.0 and excess <= radius:
            return _OUTSIDE, theta, 0.0, excess / count, count
        high, middle, low, count = _far(x, radius, absolute)
        return _OUTSIDE, high, middle, low, count
    high, middle, low, count = _search(
        x, theta, excess, count, sampled, max(floor, 0.0) if ball else floor, radius, absolute, scratch, method != NEWTON
    )
    return _OUTSIDE, high, middle, low, count


@exact
def _project_line(
    x: Any,
    keys: Any,
    out: Any,
    same: bool,
    radius: float,
    absolute: bool,
    ball: bool,
    tolerance: float,
    method: int,
    shrink: float,
    scratch: Any,
) -> bool:
    """Project one vector; False if it is not finite, or too large to be summed."""
    end, high, middle, low, count = _find(x, keys, radius, absolute, ball, tolerance, method, scratch)
    if end == _REFUSED:
        return False
    if end == _INSIDE:
        _identity(x, out, absolute)
        return True
    left = _write(x, out, same, high, middle, low, absolute, shrink)
    # From the left of the root, what was written has the same projection as x: project it again, in place, until all keys were in the sum.
    for _ in range(_MAX_STEPS):
        if left == count:
            break
        excess, count = _pass(out, 0.0, 0.0, radius, True)
        if count == 0.0:
            break
        left = _write(out, out, True, 0.0, 0.0, max(excess / count, 0.0), True, shrink)
    return True


@exact
def project_lines(
    lines: Any,
    keys: Any,
    out: Any,
    same: bool,
    radius: float,
    absolute: bool,
    ball: bool,
    tolerance: float,
    method: int,
    shrink: float,
    scratch: Any,
) -> int:
    """Project every row of a C-contiguous matrix into `out` (the same memory where `same`); the first row refused, or -1.

    `keys`: the sorted keys of all rows for `SORT`, else one row of scratch (unused by `NEWTON` and `FAR`, which is for finite rows
    whose sum overflows while the radius is at most `LARGEST_RADIUS`: all that survives is near the largest key).
    """
    for i in range(lines.shape[0]):
        row_keys = keys[i if method == SORT else 0]
        if not _project_line(lines[i], row_keys, out[i], same, radius, absolute, ball, tolerance, method, shrink, scratch):
            return i
    return -1
