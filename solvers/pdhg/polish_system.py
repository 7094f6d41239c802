"""The linear systems of an active set: a block for every task, and a border of the unknowns that tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sl

from bench_mtl.core.types import Array

#: Pivots below this share of the largest count as 0.
_RANK = 1e-11


class Factor:
    """A complete orthogonal factorisation A = Q T Z^T with T triangular, for least squares with A and with A^T.

    `complement` spans what is orthogonal to the range, where asked for.
    """

    def __init__(self, A: Array, complement: bool = False) -> None:
        Q, R, order = sl.qr(A, mode="full" if complement else "economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diag(R))
        rank = int((pivots > _RANK * pivots[0]).sum())
        self.rank, self.Q, self.complement = rank, Q[:, :rank], Q[:, rank:]
        Z = np.zeros((A.shape[1], rank))
        self.full = rank == A.shape[1]
        if self.full:
            Z[order] = np.eye(rank)
            self.T = R[:rank]
        else:
            Z[order], upper = sl.qr(R[:rank].T, mode="economic", check_finite=False)
            self.T = upper.T
        self.Z = Z

    def solve(self, b: Array) -> Array:
        """The shortest z with the smallest ||A z - b||."""
        if self.rank == 0:
            return np.zeros(len(self.Z))
        return self.Z @ sl.solve_triangular(self.T, self.Q.T @ b, lower=not self.full, check_finite=False)

    def solve_transposed(self, c: Array) -> Array:
        """The shortest x with the smallest ||A^T x - c||."""
        if self.rank == 0:
            return np.zeros(len(self.Q))
        return self.Q @ sl.solve_triangular(self.T, self.Z.T @ c, lower=not self.full, trans="T", check_finite=False)


@dataclass(frozen=True)
class Block:
    """The equations [own border] of a task: in unknowns of its own, and in the shared ones."""

    own: Array
    border: Array
    factor: Factor | None
    """The factor of `own` with its complement; None without unknowns of its own."""

    @cached_property
    def reduced(self) -> Array:
        """The equations that are left to the shared unknowns."""
        return self.border if self.factor is None else self.factor.complement.T @ self.border

    def solve(self, b: Array) -> Array:
        return np.zeros(self.own.shape[1]) if self.factor is None else self.factor.solve(b)

    def solve_transposed(self, c: Array) -> Array:
        return np.zeros(len(self.own)) if self.factor is None else self.factor.solve_transposed(c)

    def project(self, b: Array) -> Array:
        return b if self.factor is None else self.factor.complement.T @ b

    def expand(self, y: Array) -> Array:
        return y if self.factor is None else self.factor.complement @ y


class System:
    """A = [diag(own_k) border; 0 last], with or without the last row: least squares with A and A^T, a task at a time.

    Orthogonal transformations of a task's equations leave some for its own unknowns, which these meet exactly, and a few that are left to
    the shared unknowns: a system as small as those.
    """

    def __init__(self, blocks: Sequence[Block], last: Array | None, n_shared: int) -> None:
        self.blocks, self.last = blocks, last
        self.equations = np.cumsum([0, *(len(block.own) for block in blocks)])
        self.unknowns = np.cumsum([0, *(block.own.shape[1] for block in blocks)])
        reduced = [block.reduced for block in blocks] + ([] if last is None else [last[None, :]])
        self.left = np.cumsum([0, *(len(rows) for rows in reduced)])
        C = np.concatenate(reduced) if reduced else np.zeros((0, n_shared))
        self.shared = Factor(C) if min(C.shape) else None
        self.n_left, self.n_shared = len(C), n_shared

    def apply(self, z: Array) -> Array:
        """A z."""
        shared = z[self.unknowns[-1] :]
        parts = [block.own @ own + block.border @ shared for block, own in zip(self.blocks, self._own(z), strict=True)]
        return np.concatenate([*parts, np.empty(0) if self.last is None else [self.last @ shared]])

    def apply_transposed(self, x: Array) -> Array:
        """A^T x."""
        parts, shared = [], np.zeros(self.n_shared)
        for block, values in zip(self.blocks, self._equations(x), strict=True):
            parts.append(block.own.T @ values)
            shared += block.border.T @ values
        if self.last is not None:
            shared += x[-1] * self.last
        return np.concatenate([*parts, shared])

    def solve(self, b: Array) -> Array:
        """z with the smallest ||A z - b||, its shared part as short as can be, then the others."""
        parts = self._equations(b)
        left = [block.project(part) for block, part in zip(self.blocks, parts, strict=True)]
        left.append(b[self.equations[-1] :])
        shared = np.zeros(self.n_shared) if self.shared is None else self.shared.solve(np.concatenate(left))
        own = [block.solve(part - block.border @ shared) for block, part in zip(self.blocks, parts, strict=True)]
        return np.concatenate([*own, shared])

    def solve_transposed(self, c: Array) -> Array:
        """x that meets A^T x = c as far as every task can for itself, then as far as they can together."""
        parts = [block.solve_transposed(own) for block, own in zip(self.blocks, self._own(c), strict=True)]
        rest = c[self.unknowns[-1] :] - sum(
            (block.border.T @ x for block, x in zip(self.blocks, parts, strict=True)), np.zeros(self.n_shared)
        )
        y = np.zeros(self.n_left) if self.shared is None else self.shared.solve_transposed(rest)
        out = [x + block.expand(y[self.left[k] : self.left[k + 1]]) for k, (block, x) in enumerate(zip(self.blocks, parts, strict=True))]
        return np.concatenate([*out, np.empty(0) if self.last is None else y[-1:]])

    def null_direction(self, rest: Array) -> Array:
        """z with A z = 0 and <rest, z> > 0, of a rest that `solve_transposed` leaves."""
        shared = rest[self.unknowns[-1] :]
        own = [part - block.solve(block.border @ shared) for block, part in zip(self.blocks, self._own(rest), strict=True)]
        return np.concatenate([*own, shared])

    def _own(self, z: Array) -> list[Array]:
        return [z[i:j] for i, j in zip(self.unknowns[:-1], self.unknowns[1:], strict=True)]

    def _equations(self, x: Array) -> list[Array]:
        return [x[i:j] for i, j in zip(self.equations[:-1], self.equations[1:], strict=True)]
