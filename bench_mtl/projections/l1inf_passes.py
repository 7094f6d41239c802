"""Passes over the rows of a matrix for the l1,inf projections: the way to the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from bench_mtl.core.types import AnyArray, Array
from bench_mtl.projections.matrix_rows import MatrixRows
from bench_mtl.projections.scratch import scratch_buffer


@dataclass(frozen=True)
class Passes:
    """A matrix, where its projection goes, and the state of its rows between passes."""

    rows: MatrixRows
    nonneg: Any
    """None or True, as kernels take it."""
    result: AnyArray
    """The memory of the clipped rows, laid out as the data."""
    state: Array
    prediction: Array

    @classmethod
    def of(cls, rows: MatrixRows, nonneg: bool, result: AnyArray) -> Passes:
        size = kernels().STATE_ROWS
        state = scratch_buffer("l1inf", size * rows.d).reshape(size, rows.d)
        return cls(rows, True if nonneg else None, result, state, scratch_buffer("prediction", kernels().COEFFICIENTS))

    def search(self, radius: float, theta: float, *, only_prepare: bool = False) -> tuple[int, float, int]:
        """`kernels.l1inf.search` over all rows."""
        rows = self.rows
        return kernels().search(rows.matrix, rows.lanes, rows.d, radius, theta, only_prepare, self.prediction, self.state, self.nonneg)

    def first(self, theta: float) -> int:
        """`kernels.l1inf_passes.first_pass` over all rows."""
        return kernels().first_pass(self.rows.matrix, self.rows.lanes, 1, theta, self.prediction, self.state, self.nonneg)

    def following(self, old: float, theta: float) -> int:
        """`kernels.l1inf_passes.next_pass` over all rows."""
        return kernels().next_pass(self.rows.matrix, self.rows.lanes, 1, old, theta, self.state, self.nonneg)

    def clip(self, levels: Array) -> None:
        """Write the data, cut at the levels, into the result."""
        kernels().clip(self.rows.matrix, self.rows.lanes, levels, self.nonneg, self.result)


@cache
def kernels() -> Any:
    """Load all kernels at the first use; an import statement in each function would cost as much as a small projection."""
    from bench_mtl.projections.kernels import l1inf, l1inf_merge, l1inf_passes, levels

    modules = (levels, l1inf_merge, l1inf_passes, l1inf)
    return SimpleNamespace(**{name: value for module in modules for name, value in vars(module).items()})
