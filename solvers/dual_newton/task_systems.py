"""Newton systems of row faces: what is in one task alone is eliminated task by task, and what couples tasks is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

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


class _Eliminated(NamedTuple):
    """The columns of one task, scaled to a diagonal of 1 and factorised."""

    places: NDArray[np.intp]
    scale: Array
    lower: Array
    coupled: Array
    """The lower factor's inverse times their products with the columns of several tasks."""


def _alone(values: Array) -> NDArray[np.bool_]:
    return np.count_nonzero(values, axis=1) <= 1


def is_mostly_apart(faces: Sequence[Face]) -> bool:
    """Return whether a system of these columns is much cheaper with those of single tasks eliminated first."""
    if not all(isinstance(face, RowFace) for face in faces):
        return False
    values = np.concatenate([face.values for face in faces])  # type: ignore[attr-defined]
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
    rows = np.concatenate([face.rows for face in faces])  # type: ignore[attr-defined]
    values = np.concatenate([face.values for face in faces])  # type: ignore[attr-defined]
    alone = _alone(values)
    joint, task = np.flatnonzero(~alone), np.where(alone, np.argmax(values != 0.0, axis=1), -1)
    rest, parts = np.diag(diagonal[joint]), []
    try:
        for k, (gram, slopes, total) in enumerate(tasks):
            places, h = np.flatnonzero(task == k), values[joint, k]
            v, of_joint = values[places, k], gram[:, rows[joint]] * h
            A, F = gram[np.ix_(rows[places], rows[places])] * v[:, None] * v, of_joint[rows[places]] * v[:, None]
            if slopes is not None:
                border = slopes[rows[places]] * v
                A = np.block([[A, border[:, None]], [border, np.full(1, total)]])
                F, places = np.vstack([F, slopes[rows[joint]] * h]), np.append(places, len(rows) + k)
            A[np.diag_indices_from(A)] += diagonal[places]
            scale = 1.0 / np.sqrt(np.diagonal(A))
            lower = _lower_factor(A, scale)
            coupled = solve_triangular(lower, scale[:, None] * F, lower=True, check_finite=False)
            rest += of_joint[rows[joint]] * h[:, None] - coupled.T @ coupled
            parts.append(_Eliminated(places, scale, lower, coupled))
        if not (np.diagonal(rest) > 0.0).all():
            return None
        scale = 1.0 / np.sqrt(np.diagonal(rest))
        lower = _lower_factor(rest, scale)
    except LinAlgError:
        return None

    def solved(B: Array) -> Array:
        Y = np.empty(B.shape)
        halves = [solve_triangular(each.lower, each.scale[:, None] * B[each.places], lower=True, check_finite=False) for each in parts]
        left = B[joint] - sum((each.coupled.T @ half for each, half in zip(parts, halves, strict=True)), np.zeros((len(joint), B.shape[1])))
        Y[joint] = scale[:, None] * cho_solve((lower, True), scale[:, None] * left, check_finite=False)
        for each, half in zip(parts, halves, strict=True):
            back = solve_triangular(each.lower, half - each.coupled @ Y[joint], lower=True, trans="T", check_finite=False)
            Y[each.places] = each.scale[:, None] * back
        return Y

    N = _side_by_side(normals, len(rhs))
    Y = solved(np.column_stack([rhs, N]))
    y, of_normals = Y[:, 0], Y[:, 1:]
    return y - of_normals @ np.linalg.lstsq(N.T @ of_normals, N.T @ y)[0] if N.shape[1] else y


def _lower_factor(A: Array, scale: Array) -> Array:
    scaled = A * scale[:, None] * scale
    scaled[np.diag_indices_from(scaled)] += SHIFT
    return np.asarray(cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)[0])


def _side_by_side(normals: Sequence[Array], size: int) -> Array:
    """Return the normals of all faces as columns with an entry for every column of the system."""
    N, at_row, at_column = np.zeros((size, sum(each.shape[1] for each in normals))), 0, 0
    for each in normals:
        N[at_row : at_row + len(each), at_column : at_column + each.shape[1]] = each
        at_row, at_column = at_row + len(each), at_column + each.shape[1]
    return N
