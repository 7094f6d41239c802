"""Proven enclosures of the optimal value of any convex model of CVXPY, from the answer of any solver."""

from bench_mtl.enclosures.enclosing import Enclosure, certify

__all__ = ["Enclosure", "certify"]
