"""Dot products as if computed in twice the working precision and rounded once (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26, 2005, Dot2).

The result is within u |x.y| + gamma_n^2 |x|.|y| of the exact one, and 5 n times the smallest number where products leave the range.
"""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import exact

_SPLITTER = 134217729.0  # 2^27 + 1 (Veltkamp)


@exact
def _add_multiple(x: float, y: Any, total: Any, error: Any) -> None:
    """total + error += x y, entry by entry: the product and the sum each with their rounding error."""
    scaled = _SPLITTER * x
    x_high = scaled - (scaled - x)
    x_low = x - x_high
    for k in range(y.size):
        product = x * y[k]
        scaled = _SPLITTER * y[k]
        y_high = scaled - (scaled - y[k])
        y_low = y[k] - y_high
        lost = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
        old = total[k]
        new = old + product
        back = new - old
        error[k] += ((old - (new - back)) + (product - back)) + lost
        total[k] = new


@exact
def dense_product(X: Any, W: Any, out: Any, error: Any) -> None:
    """out + error = X W, of C-contiguous matrices; both begin at 0."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                _add_multiple(X[i, j], W[j], out[i], error[i])


@exact
def sparse_product(data: Any, indices: Any, indptr: Any, W: Any, out: Any, error: Any) -> None:
    """out + error = X W, X in CSR form; both begin at 0."""
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            _add_multiple(data[p], W[indices[p]], out[i], error[i])
