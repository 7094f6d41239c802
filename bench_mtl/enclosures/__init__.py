"""Proven enclosures of the optimal value of any convex model of CVXPY, from the answer of any solver."""

from bench_mtl.enclosures.enclosing import certify
from bench_mtl.enclosures.enclosure import Enclosure

__all__ = ["Enclosure", "certify"]
