"""The division of the examples into blocks, which depends on the data and the number of blocks alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.margins import MulticlassFit
from bench_mtl.solvers.admm.blocks import Block, block_of


class Piece(NamedTuple):
    """The examples of a block, to be sent to where its steps are taken."""

    fit: MulticlassFit
    """The mean loss of the examples of the block."""
    share: float
    """The share of all examples that these are."""

    def block(self) -> Block:
        return block_of(self.fit, self.share)


@dataclass(frozen=True)
class Division:
    """The examples of every block, in ascending order."""

    rows: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, classes: NDArray[np.intp], count: int) -> Division:
        """Return blocks whose sizes, and numbers of examples of each class, differ by 1 at most: shuffled within classes, then dealt."""
        shuffled = np.random.default_rng(0).permutation(len(classes))
        dealt = shuffled[np.argsort(classes[shuffled], kind="stable")]
        return cls(tuple(np.sort(dealt[q::count]) for q in range(count)))

    def pieces(self, fit: MulticlassFit) -> list[Piece]:
        X, total = fit.design.block(0), len(fit.classes)
        return [
            Piece(replace(fit, design=SharedDesign(X[rows], fit.design.n_tasks), classes=fit.classes[rows]), len(rows) / total)
            for rows in self.rows
        ]

    def joined(self, values: Sequence[Array]) -> Array:
        """Return the rows of all blocks in the order of the examples."""
        together = np.empty((sum(map(len, self.rows)), values[0].shape[1]))
        for rows, own in zip(self.rows, values, strict=True):
            together[rows] = own
        return together
