"""Sums and updates of contiguous vectors, which other kernels are made of."""

from __future__ import annotations

from typing import Any

from bench_mtl.core.kernels.jit import reordered


@reordered
def dot(x: Any, y: Any) -> float:
    """sum x y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@reordered
def squared_distance(x: Any, y: Any) -> float:
    """sum (x - y)^2."""
    total = 0.0
    for i in range(x.size):
        difference = x[i] - y[i]
        total += difference * difference
    return total


@reordered
def add_multiple(factor: float, x: Any, out: Any) -> None:
    """out += factor * x."""
    for i in range(out.size):
        out[i] += factor * x[i]
