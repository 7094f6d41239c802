"""How far a weak learner violates the dual constraint of group-sparse boosting."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench_mtl.core.checks import one_of, real_array
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.forms import ROW_NORMS, positive_dual_norms
from bench_mtl.model.margins import multiclass_residuals


def residuals(U: Any, classes: Any) -> Array:
    """Return `multiclass_residuals` of a dual point U (n x K), checked: R_ir = 1[r = y_i] sum_l U_il - U_ir.

    Parameters
    ----------
    classes : y, a number from 0 to K - 1 for each row.

    Raises
    ------
    InputError : wrong shapes, NaN or inf, a class out of range.
    """
    values, y = real_array("U", U, ndim=2), np.asarray(classes)
    n, K = values.shape
    if y.shape != (n,) or y.dtype.kind not in "iu" or (n and not 0 <= y.min() <= y.max() < K):
        raise InputError(f"classes must be {n} whole numbers from 0 to {K - 1}, but have shape {y.shape} and type {y.dtype}")
    return multiclass_residuals(values, y.astype(np.intp))


def violations(G: Any, norm: str) -> Array:
    """Return `positive_dual_norms` of each row of G (J x K), checked; with H of a set of learners, G = H^T R.

    Because W >= 0 only the positive part counts: a dual point is feasible for a penalty nu where no learner's violation exceeds nu
    (the seed of group-sparse boosting, Paisitkriangkrai, Shen and van den Hengel 2012, appendix, equations 6 and 11).

    Raises
    ------
    InputError : an unknown norm, NaN or inf, not a matrix.
    """
    return positive_dual_norms(real_array("G", G, ndim=2), one_of("norm", norm, ROW_NORMS))


def direction(g: Array, norm: str) -> Array:
    """Return a v >= 0 of norm 1 (l2, l-inf or l1) with v . g = ||max(g, 0)||_dual; zero where no entry is above 0."""
    positive = np.maximum(g, 0.0)
    top = positive.max(initial=0.0)
    if top == 0.0:
        return positive
    if norm == "l12":
        return positive / top / np.linalg.norm(positive / top)
    return np.where(positive > 0.0, 1.0, 0.0) if norm == "l1inf" else np.eye(len(g))[int(g.argmax())]
