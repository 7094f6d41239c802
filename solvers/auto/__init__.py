"""`auto`: one solver that picks between others, and says why."""

from bench_mtl.solvers.auto.solver import Auto

__all__ = ["Auto"]
