"""Newton's method for a quadratic model on the face of the l1 norm that the signs of the entries span."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from bench_mtl.core.types import Array

#: Share of every curvature that is added to it, so that a Hessian can be factorised where columns are dependent.
_RIDGE = 1e-13
#: Larger entries of a step come from curvatures of almost 0.
_LARGEST_STEP = 1e100
#: Entries that a step leaves at this share of what they were are zero.
_GONE = 1e-15


def face_minimiser(H: Array, slopes: Array, w: Array, penalty: float, faces: int) -> tuple[Array | None, bool]:
    """Lower 1/2 d^T H d - <slopes, d> + penalty ||w + d||_1 from d = 0, where entries may become 0 and none changes its sign.

    On the face of the signs of w the minimiser is the solution of H d = slopes - penalty sign(w). Where it has other signs, the step ends
    at the lowest of the points w + t d, t = 1, 1/2, 1/4 and where the first entry becomes 0, with entries of other signs set to 0; the
    entries left span the next face.

    H is positive definite and changes, the slopes are minus the derivative at w, which has no zeros, and at most so many faces are solved
    for. Returns the new w, None where H cannot be factorised, and whether it is the minimiser of its face.
    """
    p = len(w)
    H[np.diag_indices(p)] *= 1.0 + _RIDGE
    signs = np.sign(w)
    point = w.copy()
    free = np.ones(p, dtype=bool)

    def height(v: Array) -> float:
        return float((v - w) @ (0.5 * (H @ (v - w)) - slopes)) + penalty * float(np.abs(v).sum())

    for face in range(faces):
        gradient = H @ (point - w) - slopes if face else -slopes
        where = np.flatnonzero(free)
        if not len(where):
            return point, True
        d = _solved(H if len(where) == p else H[np.ix_(where, where)], -gradient[where] - penalty * signs[where])
        if d is None:
            return (point if face else None), False
        new = point[where] + d
        if np.all(new * signs[where] > 0.0):
            point[where] = new
            return point, True
        room = np.where(new * signs[where] <= 0.0, point[where] / np.where(d == 0.0, 1.0, -d), np.inf)
        point = min((_moved(point, where, t * d) for t in (1.0, 0.5, 0.25, float(room.min()))), key=height)
        free = point != 0.0
    return point, False


def _moved(point: Array, where: NDArray[np.intp], step: Array) -> Array:
    """Return the point after a step in some of its entries; those that would change their sign, or almost vanish, become 0."""
    before = point[where]
    after = before + step
    after[after * np.sign(before) <= _GONE * np.abs(before)] = 0.0
    moved = point.copy()
    moved[where] = after
    return moved


def solved(H: Array, b: Array) -> Array | None:
    """Return H^-1 b of a positive definite H; None where it cannot be factorised. H changes."""
    H[np.diag_indices(len(b))] *= 1.0 + _RIDGE
    return _solved(H, b)


def _solved(H: Array, b: Array) -> Array | None:
    """Return H^-1 b; None where H cannot be factorised, or is almost singular. (SciPy's checks take longer than a small system.)"""
    factor, failed = dpotrf(H, lower=1, clean=0)
    if failed:
        return None
    found = dpotrs(factor, b, lower=1)[0]
    return np.asarray(found) if np.abs(found).max() <= _LARGEST_STEP else None
