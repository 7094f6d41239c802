"""Newton systems of row faces: what is in one task alone is eliminated task by task, and what couples tasks is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from bench_mtl.core.types import Array
from bench_mtl.solvers.dual_newton.faces import Face, RowFace

#: Added to the diagonal of a system that is scaled to 1 there.
SHIFT = 1e-15
#: Columns from which on, and the share of the multiplications of one dense system up to which, the tasks are taken one by one.
_LEAST_COLUMNS, _SHARE = 100, 0.5


class TaskGram(NamedTuple):
    """What a task adds to a system."""

    gram: Array
    """X_k^T diag(s_k) X_k."""
    slopes: Array | None
    """X_k^T s_k, None without intercepts."""
    total: float
    """The sum of s_k."""


def _alone(values: Array) -> NDArray[np.bool_]:
    return np.count_nonzero(values, axis=1) <= 1


def is_mostly_apart(faces: Sequence[Face]) -> bool:
    """Return whether a system of these columns is much cheaper with those of single tasks eliminated first."""
    if not all(isinstance(face, RowFace) for face in faces):
        return False
    values = np.concatenate([face.values for face in faces])  # type: ignore[union-attr]
    if len(values) < _LEAST_COLUMNS:
        return False
    alone = _alone(values)
    sizes, coupling = np.count_nonzero(values[alone], axis=0).astype(float), float(np.count_nonzero(~alone))
    apart = (sizes**2 * (sizes / 3.0 + coupling)).sum() + sizes.sum() * coupling**2 + coupling**3 / 3.0
    return bool(apart < _SHARE * len(values) ** 3 / 3.0)


def solved_by_tasks(
    faces: Sequence[Face], tasks: Iterable[TaskGram], diagonal: Array, rhs: Array, normals: Sequence[Array]
) -> Array | None:
    """Return argmin_y 1/2 y^T (M + diag(diagonal)) y - rhs^T y subject to N^T y = 0, None where rounding forbids it.

    M is the sum over the tasks of (L_k, e_k)^T [[gram, slopes], [slopes^T, total]] (L_k, e_k) with the intercepts' unit vectors e_k, whose
    entries of y come last; N has the normals of every face.
    """
    rows = np.concatenate([face.rows for face in faces])  # type: ignore[union-attr]
    values = np.concatenate([face.values for face in faces])  # type: ignore[union-attr]
    alone = _alone(values)
    joint, task = np.flatnonzero(~alone), np.where(alone, np.argmax(values != 0.0, axis=1), -1)
    N = _side_by_side(normals, len(rhs))
    B, c = np.column_stack([rhs, N]), len(joint)
    rest, left, parts = np.diag(diagonal[joint]), B[joint], []
    for k, (gram, slopes, total) in enumerate(tasks):
        places, h = np.flatnonzero(task == k), values[joint, k]
        v, own, p = values[places, k], rows[places], len(places)
        if slopes is not None:
            places = np.append(places, len(rows) + k)
        of_joint, size = gram[:, rows[joint]] * h, len(places)
        A, F = np.empty((size, size)), np.empty((size, c + B.shape[1]))
        A[:p, :p] = gram[own[:, None], own] * v[:, None] * v
        F[:p, :c], F[:, c:] = of_joint[own] * v[:, None], B[places]
        if slopes is not None:
            A[p, :p] = A[:p, p] = slopes[own] * v
            A[p, p], F[p, :c] = total, slopes[rows[joint]] * h
        A.ravel()[:: size + 1] += diagonal[places]
        scale, lower, failed = _lower_factor(A)
        if failed:
            return None
        half = dtrtrs(lower, scale[:, None] * F, lower=1)[0] if size else F
        coupled = half[:, :c]
        rest += of_joint[rows[joint]] * h[:, None] - coupled.T @ coupled
        left -= coupled.T @ half[:, c:]
        if size:
            parts.append((places, scale, lower, half))
    if not (np.diagonal(rest) > 0.0).all():
        return None
    scale, lower, failed = _lower_factor(rest)
    if failed:
        return None
    Y = np.empty(B.shape)
    Y[joint] = coupling = scale[:, None] * dpotrs(lower, scale[:, None] * left, lower=1)[0] if c else left
    for places, scale, lower, half in parts:
        Y[places] = scale[:, None] * dtrtrs(lower, half[:, c:] - half[:, :c] @ coupling, lower=1, trans=1)[0]
    y, of_normals = Y[:, 0], Y[:, 1:]
    return y - of_normals @ np.linalg.lstsq(N.T @ of_normals, N.T @ y)[0] if N.shape[1] else y


def _lower_factor(A: Array) -> tuple[Array, Array, bool]:
    """Return what scales a positive definite matrix to 1 on its diagonal, the lower factor of that, and whether there is none."""
    scale = 1.0 / np.sqrt(np.diagonal(A))
    scaled = A * scale[:, None] * scale
    scaled.ravel()[:: len(A) + 1] += SHIFT
    lower, info = dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1) if len(A) else (scaled, 0)
    return scale, lower, bool(info)


def _side_by_side(normals: Sequence[Array], size: int) -> Array:
    """Return the normals of all faces as columns with an entry for every column of the system."""
    N, at_row, at_column = np.zeros((size, sum(each.shape[1] for each in normals))), 0, 0
    for each in normals:
        N[at_row : at_row + len(each), at_column : at_column + each.shape[1]] = each
        at_row, at_column = at_row + len(each), at_column + each.shape[1]
    return N
