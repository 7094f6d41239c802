"""X^T X of the rows of a sparse matrix, as a dense matrix."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import exact


@exact
def add_gram(data: Any, indices: Any, indptr: Any, out: Any) -> None:
    """Add X^T X to the upper triangle of `out`, d x d, X in CSR form with sorted indices."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            row, value = out[indices[p]], data[p]
            for q in range(p, indptr[i + 1]):
                row[indices[q]] += value * data[q]
