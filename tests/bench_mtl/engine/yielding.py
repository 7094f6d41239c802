"""What tests of the driver share: a small problem, limits that end soon, and a solver that yields what a test makes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench_mtl.core.types import Array, Iterate, Limits
from bench_mtl.data import synthetic_l1inf
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems.l1inf_hinge import L1InfHinge

SHORT = Limits(seconds=60.0, iterations=2000)


@dataclass
class Watched:
    """A deadline that somebody reads."""

    value: float = 0.0
    compiling: float = 0.0


def hinge(kind: type[L1InfHinge] = L1InfHinge) -> L1InfHinge:
    return kind(synthetic_l1inf(tasks=3, features=10, examples=12), radius=2.0)


class Yielding(IterativeSolver):
    """Yields what it is given, or what a function makes of the problem, from wherever it is to start."""

    name = "yielding"
    requires = frozenset()

    def __init__(self, *iterates: Any, make: Callable[[Problem], Iterator[Any]] | None = None) -> None:
        self.iterates, self.make = iterates, make

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Any]:
        return iter(self.iterates) if self.make is None else self.make(problem)

    def resume(self, problem: Problem, start: Iterate) -> Iterator[Any]:
        return self.steps(problem)
