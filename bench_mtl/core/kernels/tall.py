"""Products of a matrix of many rows, in one pass over these: of a dense one with a few columns, where BLAS packs its operands first, and
X^T X of a sparse one."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import exact, reordered


@reordered
def tall_product(X: Any, V: Any, out: Any) -> None:
    """out = X V^T: X n x d, V m x d, `out` n x m, all row by row. Four columns share a pass over a row."""
    n, d = X.shape
    m = V.shape[0]
    whole = m // 4 * 4
    for i in range(n):
        x = X[i]
        for k in range(0, whole, 4):
            v0, v1, v2, v3 = V[k], V[k + 1], V[k + 2], V[k + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for j in range(d):
                s0 += x[j] * v0[j]
                s1 += x[j] * v1[j]
                s2 += x[j] * v2[j]
                s3 += x[j] * v3[j]
            out[i, k], out[i, k + 1], out[i, k + 2], out[i, k + 3] = s0, s1, s2, s3
        for k in range(whole, m):
            v0, s0 = V[k], 0.0
            for j in range(d):
                s0 += x[j] * v0[j]
            out[i, k] = s0


@reordered
def add_tall_adjoint(X: Any, R: Any, out: Any) -> None:
    """out += R^T X: X n x d, R n x m, `out` m x d, all row by row. Four rows share a pass over a row of `out`."""
    n, d = X.shape
    m = R.shape[1]
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
        for k in range(m):
            r0, r1, r2, r3 = R[i, k], R[i + 1, k], R[i + 2, k], R[i + 3, k]
            row = out[k]
            for j in range(d):
                row[j] += x0[j] * r0 + x1[j] * r1 + x2[j] * r2 + x3[j] * r3
    for i in range(whole, n):
        x0 = X[i]
        for k in range(m):
            r0, row = R[i, k], out[k]
            for j in range(d):
                row[j] += x0[j] * r0


@exact
def add_gram(data: Any, indices: Any, indptr: Any, out: Any) -> None:
    """Add X^T X to the upper triangle of `out`, d x d, X in CSR form with sorted indices."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            row, value = out[indices[p]], data[p]
            for q in range(p, indptr[i + 1]):
                row[indices[q]] += value * data[q]
