"""The threshold theta of the projections onto the simplex and the l1 ball, and the pass that applies it.

With the key a_i of an entry (|x_i| for the l1 ball, x_i for the simplex and the non-negative ball), the projection is
w_i = max(a_i - theta, 0) with the root theta of the excess E(theta) = sum_i max(a_i - theta, 0) - radius: convex, decreasing,
piecewise linear. Every tangent's root is a lower bound of theta, so Newton's method (the set iteration of Michelot, JOTA 1986)
lands on its left after one step and rises from there. A step takes the excess f and the slope g (the number of keys above) to
f' / f + g' / g <= 1, so that f g falls by a factor 4 at least, from at most n^2 max|a| to the rounding of the excess: some 60
steps for any data, and `_MAX_STEPS` is never reached.

Rounding. theta is the sum of three doubles, high + middle + low, subtracted one after the other: t_i = (a_i - high) - middle,
w_i = t_i - low. Where the radius is small against the keys, `high` is the largest of them, from which all that survive subtract
without error (Sterbenz); else it is the root rounded to a double. `low` is the last Newton step, from the sum of the very terms
t_i that are written, which is error-free up to u^2 n (a two-sum in every lane). So sum_i (t_i - low) = radius up to the rounding
of `low`, at most 2 u |sum t_i - radius| <= 2 u radius, each w_i adds one rounding, and sum_i w_i <= radius (1 + 4 u), u = 2^-53,
as long as all keys above theta are known, which the count of the last pass proves (else it is repeated). A result below the
normal range (2^-1022) rounds to a multiple of 2^-1074 instead.
"""

from __future__ import annotations

import math

import numpy as np

from bench_mtl.kernels.jit import exact, reordered, selecting

NEWTON, SORT, PIVOT, FILTER = range(4)
INSIDE_TOLERANCE = 4 * 2.0**-53  # what the projection itself may leave: projecting twice changes nothing
LANES = 512  # of the error-free sum: three rows of them and the block that is added stay in the first-level cache
SCRATCH = 1 << 16  # sampled entries, or survivors
_BLOCK = 2048  # entries that stay in the first-level cache
_LEAF = 64  # entries of which none is copied unless one survives
_SAMPLED = 4096  # shorter vectors are not worth sampling
_MAX_STEPS = 200


@selecting
def _above(x, theta, absolute):  # type: ignore[no-untyped-def]
    """Sum of key - theta over the keys above theta, and their number, over one block."""
    total = 0.0
    count = 0.0
    if absolute:
        for i in range(x.size):
            t = abs(np.float64(x[i])) - theta
            keep = t > 0.0
            total += t if keep else 0.0
            count += 1.0 if keep else 0.0
    else:
        for i in range(x.size):
            t = np.float64(x[i]) - theta
            keep = t > 0.0
            total += t if keep else 0.0
            count += 1.0 if keep else 0.0
    return total, count


@reordered
def _sums(x):  # type: ignore[no-untyped-def]
    """sum |x| and sum x of one block; the first is finite only where every entry is."""
    size = 0.0
    total = 0.0
    for i in range(x.size):
        value = np.float64(x[i])
        size += abs(value)
        total += value
    return size, total


@exact
def _excess(x, theta, absolute):  # type: ignore[no-untyped-def]
    """`_above` of a vector of any length."""
    total = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        part, number = _above(x[start : min(start + _BLOCK, x.size)], theta, absolute)
        total += part
        count += number
    return total, count


@exact
def _first_pass(x, theta, absolute):  # type: ignore[no-untyped-def]
    """sum |x|, sum x, and `_excess` where theta is finite, in one read."""
    size = 0.0
    whole = 0.0
    total = 0.0
    count = 0.0
    for start in range(0, x.size, _BLOCK):
        block = x[start : min(start + _BLOCK, x.size)]
        part_size, part_whole = _sums(block)
        size += part_size
        whole += part_whole
        if theta > -np.inf:
            part, number = _above(block, theta, absolute)
            total += part
            count += number
    return size, whole, total, count


@exact
def _add_lanes(x, high, middle, absolute, total, error, count):  # type: ignore[no-untyped-def]
    """Add a block of terms to as many error-free sums (Knuth's two-sum, which vectorises)."""
    for i in range(x.size):
        a = np.float64(x[i])
        t = ((abs(a) if absolute else a) - high) - middle
        keep = t > 0.0
        t = t if keep else 0.0
        old = total[i]
        new = old + t
        back = new - old
        error[i] += (old - (new - back)) + (t - back)
        total[i] = new
        count[i] += 1.0 if keep else 0.0


@exact
def _exact_excess(x, high, middle, absolute, radius, lanes):  # type: ignore[no-untyped-def]
    """The excess less the radius, and the count, at theta = high + middle: correctly summed up to rounding of order u^2."""
    width = min(LANES, x.size)
    total = lanes[0, :width]
    error = lanes[1, :width]
    count = lanes[2, :width]
    total[:] = 0.0
    error[:] = 0.0
    count[:] = 0.0
    for start in range(0, x.size, LANES):
        _add_lanes(x[start : min(start + LANES, x.size)], high, middle, absolute, total, error, count)
    whole = -radius
    rest = 0.0
    number = 0.0
    for i in range(width):
        new = whole + total[i]
        back = new - whole
        rest += ((whole - (new - back)) + (total[i] - back)) + error[i]
        whole = new
        number += count[i]
    return whole + rest, number


@exact
def _write(x, out, same, high, middle, low, absolute, shrink):  # type: ignore[no-untyped-def]
    """out = sign(x) max(key - theta, 0), and the number of entries left; `same` where out is x (the compiler must know to vectorise)."""
    count = 0
    if same:
        for i in range(out.size):
            a = np.float64(out[i])
            t = (((abs(a) if absolute else a) - high) - middle) - low
            keep = t > 0.0
            count += 1 if keep else 0
            t = t * shrink if keep else 0.0
            out[i] = math.copysign(t, a) if absolute else t
    else:
        for i in range(x.size):
            a = np.float64(x[i])
            t = (((abs(a) if absolute else a) - high) - middle) - low
            keep = t > 0.0
            count += 1 if keep else 0
            t = t * shrink if keep else 0.0
            out[i] = math.copysign(t, a) if absolute else t
    return float(count)


@exact
def _largest(x, absolute):  # type: ignore[no-untyped-def]
    best = -np.inf
    for i in range(x.size):
        a = np.float64(x[i])
        best = max(best, abs(a) if absolute else a)
    return best


@exact
def _sample(x, absolute, sample):  # type: ignore[no-untyped-def]
    """Keys of whole cache lines, evenly spread, into `sample`; their number."""
    lines = min(sample.size, x.size // 64) // 8
    stride = x.size // lines
    for line in range(lines):
        for i in range(8):
            a = np.float64(x[line * stride + i])
            sample[8 * line + i] = abs(a) if absolute else a
    return 8 * lines


@exact
def _newton(x, theta, radius, absolute):  # type: ignore[no-untyped-def]
    """The root to rounding, from any theta, for data in cache; and the number of entries above."""
    before = -1.0
    count = 0.0
    for _ in range(_MAX_STEPS):
        total, count = _excess(x, theta, absolute)
        if count == 0.0 or count == before:
            break
        before = count
        step = (total - radius) / count
        if theta + step == theta:
            break
        theta += step
    return theta, count


@exact
def _gather(x, theta, absolute, kept):  # type: ignore[no-untyped-def]
    """The keys above theta into `kept`, and their number: few, so leaves without any are skipped."""
    number = 0
    for start in range(0, x.size, _LEAF):
        leaf = x[start : min(start + _LEAF, x.size)]
        _, count = _above(leaf, theta, absolute)
        if count > 0.0:
            for i in range(leaf.size):
                a = np.float64(leaf[i])
                a = abs(a) if absolute else a
                if a > theta:
                    if number == kept.size:
                        return -1
                    kept[number] = a
                    number += 1
    return number


@exact
def _locate(x, theta, total, count, doubt, floor, radius, absolute, scratch):  # type: ignore[no-untyped-def]
    """A theta from which one exact step is expected to end, and how many keys lie above (in `scratch` if they fit, else -1).

    `total`, `count`: the excess at `theta`; `doubt`: how many keys are thought to lie between theta and the root; `floor`: a lower
    bound of the root. A step that passes D of k keys is followed by one that passes about D^2 / 2k: so much for how far away the end is.
    """
    for _ in range(_MAX_STEPS):
        new = floor
        if count > 0.0:
            new = max(floor, theta + (total - radius) / count)
            coming = 0.5 * doubt * doubt / count
            if 0.5 * coming * coming / count < 0.1 or new == theta:
                return new, -1
            if new > theta and count <= min(scratch.size, x.size // 128):
                number = _gather(x, new, absolute, scratch)
                if number > 0:
                    new, _ = _newton(scratch[:number], new, radius, False)
                    return new, number
        before = count
        theta = new
        total, count = _excess(x, theta, absolute)
        doubt = abs(before - count) if before > 0.0 else count
    return theta, -1


@exact
def _sorted_theta(ascending, radius):  # type: ignore[no-untyped-def]
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
def _load(x, absolute, keys):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        a = np.float64(x[i])
        keys[i] = abs(a) if absolute else a


@exact
def _pivot_theta(keys, radius):  # type: ignore[no-untyped-def]
    """Figure 2 of Duchi et al.: a random pivot splits the candidates; those above it stay for good, or are all that is left.

    Expected O(n). After 8 log2(n) + 64 splits (never, but by ill luck) Newton's method ends the search, so the worst case is O(n log n).
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
    theta, _ = _newton(keys, (above - radius) / number if number > 0.0 else _largest(keys, False) - radius, radius, False)
    return theta


@exact
def _filter_theta(x, radius, absolute, kept):  # type: ignore[no-untyped-def]
    """Condat's algorithm (Math. Prog. 2016): a lower bound of theta grows while the data are read, and drops what lies below it."""
    a = np.float64(x[0])
    a = abs(a) if absolute else a
    kept[0] = a
    theta = a - radius
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
    first = start
    for i in range(start - 1, -1, -1):
        if kept[i] > theta:
            first -= 1
            a = kept[i]
            kept[i] = kept[first]
            kept[first] = a
            theta += (a - theta) / (end - first)
    theta, _ = _newton(kept[first:end], theta, radius, False)
    return theta


@exact
def _settle(x, theta, radius, absolute, lanes):  # type: ignore[no-untyped-def]
    """The root as three doubles, and the number of keys above: exact Newton steps from `theta`."""
    high = theta
    middle = 0.0
    before = -1.0
    count = 0.0
    far = False
    for _ in range(_MAX_STEPS):
        excess, count = _exact_excess(x, high, middle, absolute, radius, lanes)
        if count > 0.0 and (excess <= radius or far):
            step = excess / count
            if not far or count == before or middle + step == middle:
                return high, middle, step, count
            middle += step
            before = count
            continue
        largest = _largest(x, absolute)
        if radius <= 0.5 * abs(largest):
            far = True
            high = largest
            middle = -radius
        elif count == 0.0:
            high = largest - radius
        else:
            high += excess / count
    return high, middle, 0.0, count


@exact
def _apply(x, out, same, theta, number, radius, absolute, shrink, scratch, lanes):  # type: ignore[no-untyped-def]
    """Write the projection, given a theta near the root (`number` keys above it in `scratch`, or -1).

    If theta was on the left of the root, what was written has the same projection as `x`, so it is projected once more, in place.
    """
    if number > 0:
        high, middle, low, count = _settle(scratch[:number], theta, radius, False, lanes)
    else:
        high, middle, low, count = _settle(x, theta, radius, absolute, lanes)
    left = _write(x, out, same, high, middle, low, absolute, shrink)
    steps = 1
    while left < count and steps < _MAX_STEPS:
        excess, count = _exact_excess(out, 0.0, 0.0, True, radius, lanes)
        if count == 0.0:
            break
        left = _write(out, out, True, 0.0, 0.0, max(excess / count, 0.0), True, shrink)
        steps += 1
    return steps


@exact
def _start(x, radius, absolute, scratch):  # type: ignore[no-untyped-def]
    """theta of a sample, and its number of keys above; -inf for short vectors."""
    if x.size < _SAMPLED:
        return -np.inf, 0.0
    number = _sample(x, absolute, scratch)
    share = radius * (number / x.size)
    return _newton(scratch[:number], _largest(scratch[:number], False) - share, share, False)


@exact
def _project_line(x, keys, out, same, radius, absolute, ball, method, shrink, scratch, lanes):  # type: ignore[no-untyped-def]
    """Project one vector; False if it is not finite, or too large to be summed."""
    theta, seen = -np.inf, 0.0
    if method == NEWTON:
        theta, seen = _start(x, radius, absolute, scratch)
        if not theta > -np.inf:  # a sample with NaN or inf, or none
            theta = -np.inf
        if ball:
            theta = max(theta, 0.0)
    size, whole, total, count = _first_pass(x, theta, absolute)
    if not size < np.inf:
        return False
    whole = size if absolute else whole
    if ball:
        whole = 0.5 * (size + whole) if not absolute else size
        if whole <= radius * (1.0 + 1e-9):
            excess, _ = _exact_excess(x, 0.0, 0.0, absolute, radius, lanes)
            if excess <= radius * INSIDE_TOLERANCE:
                for i in range(x.size):
                    out[i] = x[i] if absolute or x[i] > 0 else 0
                return True
    number = -1
    if method == NEWTON:
        floor = (whole - radius) / x.size
        if ball:
            floor = max(floor, 0.0)
        doubt = 3.0 * count / math.sqrt(seen) if seen > 0.0 else count
        theta, number = _locate(x, theta, total, count, doubt, floor, radius, absolute, scratch)
    elif method == SORT:
        theta = _sorted_theta(keys, radius)
    elif method == PIVOT:
        _load(x, absolute, keys)
        theta = _pivot_theta(keys, radius)
    else:
        theta = _filter_theta(x, radius, absolute, keys)
    _apply(x, out, same, theta, number, radius, absolute, shrink, scratch, lanes)
    return True


@exact
def project_lines(lines, keys, out, same, radius, absolute, ball, method, shrink, scratch, lanes):  # type: ignore[no-untyped-def]
    """Project every row of a C-contiguous matrix into `out` (the same memory where `same`); the first row refused, or -1.

    `keys`: the sorted keys of all rows for `SORT`, else one row of scratch (unused by `NEWTON`).
    """
    for i in range(lines.shape[0]):
        row_keys = keys[i if method == SORT else 0]
        if not _project_line(lines[i], row_keys, out[i], same, radius, absolute, ball, method, shrink, scratch, lanes):
            return i
    return -1
