"""Patterns of solutions as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

from bench_mtl.model.patterns import Mask, pack, unpack


@final
@dataclass(frozen=True, init=False)
class Pattern:
    """Where the entries of one matrix of a run's solution are not negligible (`bench_mtl.model.patterns.NEGLIGIBLE_ENTRY`).

    The mask is kept packed and is made anew whenever it is asked for, so that thousands of patterns fit in memory.

    Parameters
    ----------
    run_id : the run
    part : name of the matrix, such as W, or P and Q
    mask : rows x columns, true where the entry is in the pattern
    nonzeros : number of entries that are not exactly zero, however small
    rank : numerical rank of the matrix; None where nobody has found out
    """

    run_id: int
    part: str
    nonzeros: int
    rank: int | None
    shape: tuple[int, int]
    """Rows and columns."""
    bits: bytes
    """The mask, by `bench_mtl.model.patterns.pack`."""

    def __init__(self, run_id: int, part: str, mask: Mask, nonzeros: int, rank: int | None) -> None:
        rows, columns = mask.shape
        self._set(run_id, part, nonzeros, rank, (rows, columns), pack(mask))

    @classmethod
    def packed(cls, run_id: int, part: str, nonzeros: int, rank: int | None, shape: tuple[int, int], bits: bytes) -> Self:
        """The pattern whose mask is packed already."""
        pattern = cls.__new__(cls)
        pattern._set(run_id, part, nonzeros, rank, shape, bits)
        return pattern

    def _set(self, *values: Any) -> None:
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def mask(self) -> Mask:
        """Rows x columns, true where the entry is in the pattern."""
        return unpack(self.bits, *self.shape)
