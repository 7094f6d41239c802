"""A norm ball for every task: the columns of a matrix, each within a radius of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_mtl.core.types import Array
from bench_mtl.projections import project_l1_ball, project_l2_ball

#: Norms of a column.
NORMS = ("l1", "l2")


@dataclass(frozen=True)
class TaskBalls:
    """The matrices W with ||w_k|| <= radii_k for every column k, in the l1 or the l2 norm."""

    norm: str
    """One of `NORMS`."""
    radii: Array
    """At least 0, one a task."""

    def norms(self, W: Array) -> Array:
        """||w_k|| of every column, m numbers."""
        return np.asarray(np.abs(W).sum(axis=0)) if self.norm == "l1" else _lengths(W)

    def dual_norms(self, G: Array) -> Array:
        """max <g_k, w> over ||w|| <= 1 for every column, m numbers: the largest entry, or the length."""
        return np.asarray(np.abs(G).max(axis=0, initial=0.0)) if self.norm == "l1" else _lengths(G)

    def excess(self, W: Array) -> float:
        """max_k of ||w_k|| - radii_k, relative to the radius where that is not 0; 0 inside."""
        over = np.maximum(self.norms(W) - self.radii, 0.0)
        return float((over / np.where(self.radii > 0.0, self.radii, 1.0)).max(initial=0.0))

    def project(self, W: Array) -> Array:
        """argmin_V 1/2 ||V - W||_F^2 over these matrices."""
        if self.norm == "l2":
            return project_l2_ball(W, self.radii, axis=0)
        radii = np.unique(self.radii)
        if len(radii) == 1:
            return project_l1_ball(W, float(radii[0]), axis=0)
        V = np.empty(W.shape, order="F")
        for radius in radii:
            same = np.flatnonzero(self.radii == radius)
            V[:, same] = project_l1_ball(np.asfortranarray(W[:, same]), float(radius), axis=0)
        return np.ascontiguousarray(V)

    def vertex(self, direction: Array) -> Array:
        """argmin <direction, W> over these matrices; of a column of zeros the origin."""
        W = np.zeros(direction.shape)
        if self.norm == "l1":
            places = np.abs(direction).argmax(axis=0), np.arange(direction.shape[1])
            W[places] = -self.radii * np.sign(direction[places])
            return W
        top = np.abs(direction).max(axis=0, initial=0.0)
        unit = direction / np.where(top > 0.0, top, 1.0)
        lengths = _lengths(unit)
        return np.asarray(-self.radii * (unit / np.where(lengths > 0.0, lengths, 1.0)))


def _lengths(W: Array) -> Array:
    """The l2 norms of the columns; squares of tiny or huge entries do not leave the range of doubles."""
    top = np.abs(W).max(axis=0, initial=0.0)
    scale = np.where(top > 0.0, top, 1.0)
    return np.asarray(scale * np.sqrt(((W / scale) ** 2).sum(axis=0)))
