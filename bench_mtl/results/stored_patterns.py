"""Patterns of solutions as they are read."""

from __future__ import annotations

from dataclasses import dataclass

from bench_mtl.model.patterns import Mask, unpack


@dataclass(frozen=True)
class Pattern:
    """Where the entries of one matrix of a run's solution are not negligible (`bench_mtl.model.patterns.NEGLIGIBLE_ENTRY`).

    The `part` is the name of the matrix, such as W, or P and Q, `nonzeros` counts entries that are not exactly zero, however small, and the
    `rank` is None where nobody has computed it. The mask is stored packed, in `bits`, so that thousands of patterns fit in memory.
    """

    run_id: int
    part: str
    nonzeros: int
    rank: int | None
    shape: tuple[int, int]
    bits: bytes

    @property
    def mask(self) -> Mask:
        """Rows x columns, true where the entry is in the pattern."""
        return unpack(self.bits, *self.shape)
