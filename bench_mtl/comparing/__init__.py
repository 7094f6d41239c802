"""Compares solvers on problems that a caller has in memory: `compare`, and the `Comparison` that it returns."""

from bench_mtl.comparing.comparison import Comparison
from bench_mtl.comparing.running import compare

__all__ = ["Comparison", "compare"]
