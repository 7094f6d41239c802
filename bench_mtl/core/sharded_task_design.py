"""Designs of tasks with examples of their own, whose rows are in shards, each of one task."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bench_mtl.core.designs import PerTaskDesign, SeparateDesign, frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import InShards, ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Array, Matrix


class ShardedTaskDesign(InShards, SeparateDesign):
    """A matrix X_k for each task, in shards of rows of one task each: W -> (X_1 w_1, ..., X_m w_m), stacked.

    What is asked of the whole is asked of the shards of one task after the other.
    """

    def __init__(self, shards: Shards) -> None:
        sizes = shards.sizes
        tasks = np.asarray(sizes.tasks)
        if np.any(np.diff(tasks) < 0) or set(tasks.tolist()) != set(range(sizes.n_tasks)):
            raise InputError(f"shards must be in the order of their tasks, 0 to {sizes.n_tasks - 1}, and every task must have one")
        self.shards = shards
        self.n_features = sizes.n_columns
        members = [np.flatnonzero(tasks == k).tolist() for k in range(sizes.n_tasks)]
        self._divide([sum(sizes.counts[place] for place in own) for own in members])
        self._designs = tuple(ShardedDesign(shards.some(own), 1) for own in members)

    def of_task(self, k: int) -> ShardedDesign:
        return self._designs[k]

    def forward(self, W: Array) -> Array:
        return np.concatenate([design.forward(W[:, k : k + 1])[:, 0] for k, design in enumerate(self._designs)])

    def adjoint(self, R: Array) -> Array:
        return np.concatenate([design.adjoint(R[self._span(k)][:, None]) for k, design in enumerate(self._designs)], axis=1)

    def restricted(self, features: NDArray[np.intp]) -> PerTaskDesign:
        """Return the design of some features alone, in memory."""
        return PerTaskDesign([design.restricted(features).block(0) for design in self._designs])

    def examples(self, k: int, rows: NDArray[np.intp]) -> Matrix:
        return self._designs[k].examples(0, rows)

    def gram(self, k: int) -> Array:
        return self._designs[k].gram(0)

    def squares(self) -> float:
        return math.fsum(design.squares() for design in self._designs)

    def norms(self) -> Array:
        return np.concatenate([design.norms() for design in self._designs])

    @property
    def _row_norms(self) -> Array:
        return frozen(np.concatenate([design._row_norms[:, 0] for design in self._designs]))

    @property
    def _column_norms(self) -> Array:
        return frozen(np.concatenate([design._column_norms for design in self._designs], axis=1))

    def _compensated_forward(self, W: Array) -> Array:
        return np.concatenate([design._compensated_forward(W[:, k : k + 1])[:, 0] for k, design in enumerate(self._designs)])

    def _compensated_adjoint(self, R: Array) -> Array:
        columns = [design._compensated_adjoint(R[self._span(k)][:, None]) for k, design in enumerate(self._designs)]
        return np.concatenate(columns, axis=1)


def design_of(shards: Shards) -> ShardedDesign | ShardedTaskDesign:
    """Return the design of shards, shared by all tasks or not."""
    return ShardedDesign(shards) if shards.sizes.tasks is None else ShardedTaskDesign(shards)
