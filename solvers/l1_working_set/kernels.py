"""Sweeps of coordinate descent over some columns, with Anderson's extrapolation; products with these columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.kernels.jit import reordered

#: Share of the steps' squares that is added to their Gram matrix.
_RIDGE = 1e-14

#: Sweeps between extrapolations.
SPAN = 5


@reordered
def descend(
    values: Any, indices: Any, indptr: Any, columns: Any, curvatures: Any, cone: Any, penalty: float, h: Any,
    w: Any, g: Any, tolerance: float, rounding: float, most: int, patience: int,
) -> tuple[int, bool]:  # fmt: skip
    """Sweep over the columns for a quadratic model under an l1 penalty, until no slope misses its condition by more than the tolerance.

    ::

        min_w  1/2 sum_i (g_i - h_i x_i.(w - w0))^2 / h_i + penalty ||w||_1,      w0 and g as given

    One sweep in five is over all columns, the others over those whose entries are not zero or have just become so. After every five the
    affine combination of their points with the smallest combined step (Anderson's) is taken if it is lower.

    Parameters
    ----------
    values, indices, indptr : of columns, as in CSC form, with unsigned indices (of which none counts from the end); or columns one after
        the other, None and None; or X^T X, None and None: then g is X^T times the residuals, d, and h None
    columns : which to sweep over, p
    curvatures : sum_i h_i x_ij^2 of them, p
    cone : the sign that their entries must have, 0 for any, p
    h : curvatures of the examples; None for all of 1
    w, g : the entries, p, and h times the residuals, n; both change
    rounding : of a slope, in units of the root of its column's curvature
    most, patience : ends after so many sweeps, or so many in a row that leave all signs as they are

    Returns
    -------
    The number of sweeps, and whether the tolerance is met.
    """
    n, p = g.size, columns.size
    points, slopes = np.empty((SPAN + 1, p)), np.empty((SPAN + 1, n))
    points[0], slopes[0] = w, g
    stored, same, close = 1, 0, tolerance
    moving, count = np.empty(p, dtype=np.int64), 0
    for sweep in range(most):
        largest, turned = 0.0, False
        is_full = stored == 1 or count == 0
        if not is_full:
            size = count
        else:
            size, count = p, 0
        for place in range(size):
            a = place if is_full else moving[place]
            curvature = curvatures[a]
            if curvature == 0.0:
                continue
            old = w[a]
            new = old + product(values, indices, indptr, columns[a], g) / curvature
            cut = penalty / curvature
            if new > cut and cone[a] >= 0:
                new -= cut
            elif new < -cut and cone[a] <= 0:
                new += cut
            else:
                new = 0.0
            if is_full and (new != 0.0 or old != 0.0):
                moving[count] = a
                count += 1
            move = new - old
            if move != 0.0:
                w[a] = new
                subtract(values, indices, indptr, columns[a], move, h, g)
                largest = max(largest, abs(move) * curvature - rounding * np.sqrt(curvature))
                if new * old <= 0.0:
                    turned = True
        if largest <= close:
            miss = excess(values, indices, indptr, columns, curvatures, cone, penalty, w, g, rounding)
            if miss <= tolerance:
                return sweep + 1, True
            close = 0.5 * min(close, largest) * max(tolerance / miss, 0.1)
            count = 0
        same = 0 if turned else same + 1
        if same >= patience:
            return sweep + 1, False
        points[stored], slopes[stored] = w, g
        stored += 1
        if stored == SPAN + 1:
            extrapolate(values, columns, points, slopes, curvatures, penalty, h, cone, w, g)
            points[0], slopes[0] = w, g
            stored = 1
    return most, False


@reordered
def excess(
    values: Any, indices: Any, indptr: Any, columns: Any, curvatures: Any, cone: Any, penalty: float, w: Any, g: Any, rounding: float
) -> float:
    """By how much at most, beyond its rounding, a slope x_j.g misses its condition: penalty sign(w_j), or not above it where w_j = 0."""
    largest = 0.0
    for a in range(columns.size):
        slope = product(values, indices, indptr, columns[a], g)
        if w[a] > 0.0:
            miss = abs(slope - penalty)
        elif w[a] < 0.0:
            miss = abs(slope + penalty)
        elif cone[a] == 0.0:
            miss = abs(slope) - penalty
        else:
            miss = cone[a] * slope - penalty
        largest = max(largest, miss - rounding * np.sqrt(curvatures[a]))
    return largest


@reordered
def product(values: Any, indices: Any, indptr: Any, column: int, r: Any) -> float:
    """x_j.r; of the rows of a Gram matrix, r has it."""
    total = 0.0
    if values.ndim == 2:
        total = r[column]
    elif indptr is None:
        x = values[column * r.size : (column + 1) * r.size]
        for i in range(r.size):
            total += x[i] * r[i]
    else:
        x, rows = values[indptr[column] : indptr[column + 1]], indices[indptr[column] : indptr[column + 1]]
        for q in range(x.size):
            total += x[q] * r[rows[q]]
    return total


@reordered
def subtract(values: Any, indices: Any, indptr: Any, column: int, factor: float, h: Any, r: Any) -> None:
    """r -= factor h x_j, or factor times a row of a Gram matrix."""
    if values.ndim == 2:
        row = values[column]
        for i in range(r.size):
            r[i] -= factor * row[i]
    elif indptr is None:
        x = values[column * r.size : (column + 1) * r.size]
        if h is None:
            for i in range(r.size):
                r[i] -= factor * x[i]
        else:
            for i in range(r.size):
                r[i] -= factor * h[i] * x[i]
    else:
        x, rows = values[indptr[column] : indptr[column + 1]], indices[indptr[column] : indptr[column + 1]]
        for q in range(x.size):
            i = rows[q]
            r[i] -= factor * x[q] * (1.0 if h is None else h[i])


@reordered
def products(values: Any, indices: Any, indptr: Any, columns: Any, r: Any, out: Any) -> None:
    """out_a = x_j.r of the columns j."""
    for a in range(columns.size):
        out[a] = product(values, indices, indptr, columns[a], r)


@reordered
def combine(values: Any, indices: Any, indptr: Any, columns: Any, w: Any, out: Any) -> None:
    """out += sum_a w_a x_j of the columns j."""
    for a in range(columns.size):
        if w[a] != 0.0:
            subtract(values, indices, indptr, columns[a], -w[a], None, out)


@reordered
def squares(values: Any, indices: Any, indptr: Any, columns: Any, h: Any, n: int, out: Any) -> None:
    """out_a = sum_i h_i x_ij^2 of the columns j."""
    for a in range(columns.size):
        total, column = 0.0, columns[a]
        if indptr is None:
            x = values[column * n : (column + 1) * n]
            for i in range(n):
                total += x[i] * x[i] * (1.0 if h is None else h[i])
        else:
            x, rows = values[indptr[column] : indptr[column + 1]], indices[indptr[column] : indptr[column + 1]]
            for q in range(x.size):
                total += x[q] * x[q] * (1.0 if h is None else h[rows[q]])
        out[a] = total


@reordered
def change(values: Any, columns: Any, penalty: float, h: Any, w: Any, g: Any, new_w: Any, new_g: Any) -> float:
    """By how much 1/2 sum_i g_i^2 / h_i + penalty ||w||_1 changes; g and new_g are slopes where the values are a Gram matrix."""
    total = 0.0
    if values.ndim == 2:
        for a in range(w.size):
            total += (w[a] - new_w[a]) * (g[columns[a]] + new_g[columns[a]])
    else:
        for i in range(g.size):
            total += (new_g[i] - g[i]) * (new_g[i] + g[i]) / (1.0 if h is None else h[i])
    size = 0.0
    for a in range(w.size):
        size += abs(new_w[a]) - abs(w[a])
    return 0.5 * total + penalty * size


@reordered
def extrapolate(
    values: Any, columns: Any, points: Any, slopes: Any, curvatures: Any, penalty: float, h: Any, cone: Any, w: Any, g: Any
) -> None:
    """Move w and g, the last of the points and slopes, to their affine combination with the smallest combined step, if that is lower."""
    shares = np.empty(SPAN)
    if not affine_shares(points, curvatures, shares):
        return
    new_w, new_g = np.zeros(w.size), np.zeros(g.size)
    for k in range(SPAN):
        share, point, slope = shares[k], points[k + 1], slopes[k + 1]
        for a in range(w.size):
            new_w[a] += share * point[a]
        for i in range(g.size):
            new_g[i] += share * slope[i]
    for a in range(w.size):
        if new_w[a] * cone[a] < 0.0:
            return
    if change(values, columns, penalty, h, w, g, new_w, new_g) < 0.0:
        w[:] = new_w
        g[:] = new_g


@reordered
def affine_shares(points: Any, curvatures: Any, shares: Any) -> bool:
    """argmin || sum_k c_k (points[k+1] - points[k]) ||^2 subject to sum_k c_k = 1; returns False where rounding hides it.

    The curvatures are weights of the entries. By Gaussian elimination on the Gram matrix of the steps.
    """
    p = points.shape[1]
    steps = np.empty((SPAN, p))
    for k in range(SPAN):
        for a in range(p):
            steps[k, a] = np.sqrt(curvatures[a]) * (points[k + 1, a] - points[k, a])
    gram = np.empty((SPAN, SPAN))
    trace = 0.0
    for k in range(SPAN):
        for o in range(k + 1):
            total, one, other = 0.0, steps[k], steps[o]
            for a in range(p):
                total += one[a] * other[a]
            gram[k, o] = gram[o, k] = total
        trace += gram[k, k]
    if not 0.0 < trace < np.inf:
        return False
    for k in range(SPAN):
        gram[k, k] += _RIDGE * trace
        shares[k] = 1.0
    for k in range(SPAN):
        pivot = gram[k, k]
        if pivot <= 0.0:
            return False
        for row in range(k + 1, SPAN):
            factor = gram[row, k] / pivot
            for column in range(k, SPAN):
                gram[row, column] -= factor * gram[k, column]
            shares[row] -= factor * shares[k]
    for k in range(SPAN - 1, -1, -1):
        for column in range(k + 1, SPAN):
            shares[k] -= gram[k, column] * shares[column]
        shares[k] /= gram[k, k]
    total = 0.0
    for k in range(SPAN):
        total += shares[k]
    if not abs(total) > 0.0 or not abs(total) < np.inf:
        return False
    for k in range(SPAN):
        shares[k] /= total
    return True


@reordered
def add_outer(indptr: Any, indices: Any, values: Any, h: Any, out: Any) -> None:
    """out += sum_i h_i x_i x_i^T, of rows x_i in CSR form with unsigned sorted indices, and a symmetric out."""
    for i in range(indptr.size - 1):
        x, places = values[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        for q in range(x.size):
            factor = x[q] * (1.0 if h is None else h[i])
            row = out[places[q]]
            for o in range(q + 1):
                row[places[o]] += factor * x[o]
    for a in range(out.shape[0]):
        for b in range(a):
            out[b, a] = out[a, b]


@reordered
def count_columns(indices: Any, slots: Any, counts: Any) -> None:
    """Add to counts how many entries the columns of a CSR matrix have that have slots; the others have -1."""
    for q in range(indices.size):
        slot = slots[indices[q]]
        if slot >= 0:
            counts[slot] += 1


@reordered
def copy_columns(indptr: Any, indices: Any, data: Any, slots: Any, starts: Any, values: Any, rows: Any) -> None:
    """Copy the columns of a CSR matrix that have slots to values and rows, each from its start on; starts become the ends."""
    for i in range(indptr.size - 1):
        for q in range(indptr[i], indptr[i + 1]):
            slot = slots[indices[q]]
            if slot >= 0:
                place = starts[slot]
                values[place] = data[q]
                rows[place] = i
                starts[slot] = place + 1
