"""A solver that raises what solvers seldom raise, where they seldom do."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench_mtl.core.errors import IncompleteError
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import IterativeSolver, Problem


@dataclass(frozen=True)
class OddRaise(IterativeSolver):
    """Raises in the method `where` what `kind` says."""

    where: str = "steps"
    kind: str = "error"

    name = "odd_raise"
    requires = frozenset()

    @property
    def label(self) -> str:
        return f"{self.where}_{self.kind}"

    def warm_up(self) -> None:
        self._raise("warm_up")

    def incompatibility(self, problem: Problem) -> str | None:
        self._raise("incompatibility")
        return super().incompatibility(problem)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        self._raise("steps")
        yield Iterate(problem.zero())
        self._raise("later")

    def _raise(self, where: str) -> None:
        if where == self.where:
            raise _RAISED[self.kind]


_RAISED: dict[str, BaseException] = {
    "error": RuntimeError("two lines\nof trouble"),
    "exit": SystemExit("leave"),
    "memory": MemoryError("none left"),
    "incomplete": IncompleteError("the cluster is gone"),
}
