"""The smooth step of ADMM by conjugate gradients, for designs too large to factorise: products with X and its transpose alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.designs import Design
from bench_mtl.core.types import Array

#: Conjugate gradients end at this share of the residual of the last iteration's answer, so that the error falls as the iterates converge.
_LEFT = 0.2

#: The largest number of conjugate gradient steps in one iteration; the next one continues from there.
_MOST_STEPS = 20

#: Leading eigenpairs of X X^T in the preconditioner, and random directions beside them to find these.
_PAIRS, _BESIDE = 32, 8


@dataclass(frozen=True)
class Products:
    """The products W -> X W and R -> X^T R. A shared sparse X is also stored by columns, which halves the time of X^T R."""

    forward: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]

    @classmethod
    def of(cls, design: Design) -> Products:
        if design.is_in_shards or not design.is_shared or not design.is_sparse:
            return cls(design.forward, design.adjoint)
        X = design.block(0)
        transposed = sp.csr_array(X.T)
        return cls(design.forward, lambda R: np.asarray(transposed @ R))


@dataclass(frozen=True)
class Resolvent:
    """Solves (I + X X^T / rho) r = q by preconditioned conjugate gradients, every task of a shared design on its own.

    With leading eigenpairs X X^T ~ V D V^T, the least of which is the scale of the rest, the preconditioner is
    r -> r - V (1 - (1 + D_min / rho) / (1 + D / rho)) V^T r.

    References
    ----------
    Frangella, Tropp, Udell, SIAM Journal on Matrix Analysis and Applications 44(2), 2023, equation 1.3.
    """

    products: Products
    vectors: Array
    values: Array

    @classmethod
    def of(cls, design: Design, products: Products) -> Resolvent:
        """Return a resolvent with eigenpairs by one subspace iteration; without eigenpairs for tasks with data of their own."""
        n, d = design.sizes[0], design.n_features
        if not design.is_shared:
            return cls(products, np.zeros((1, 0)), np.zeros(0))
        directions = np.random.default_rng(0).standard_normal((n, min(_PAIRS + _BESIDE, n, d)))
        basis = np.linalg.qr(products.forward(products.adjoint(np.linalg.qr(directions)[0])))[0]
        half = products.adjoint(basis)
        values, vectors = np.linalg.eigh(half.T @ half)
        kept = max(1, len(values) - _BESIDE)
        return cls(products, np.ascontiguousarray((basis @ vectors)[:, -kept:]), np.maximum(values[-kept:], 0.0))

    def improve(self, residual: Array, r: Array, image: Array, rho: float) -> int:
        """Bring r nearer to the solution, with image = X^T r; all three arrays change. Return the number of products."""
        shares = 1.0 - (1.0 + self.values[:1] / rho) / (1.0 + self.values / rho)
        goal = _LEFT * float(np.linalg.norm(residual))
        direction, size = np.zeros_like(r), np.ones(r.shape[1:])
        for step in range(_MOST_STEPS):
            if float(np.linalg.norm(residual)) <= goal:
                return step
            steered = residual
            if len(shares):
                steered = residual - self.vectors @ (shares[:, None] * (self.vectors.T @ residual))
            before, size = size, _products(residual, steered)
            direction = steered + _ratio(size, before) * direction if step else steered
            back = self.products.adjoint(direction)
            curved = direction + self.products.forward(back) / rho
            length = _ratio(size, _products(direction, curved))
            r += length * direction
            image += length * back
            residual -= length * curved
        return _MOST_STEPS


def _products(a: Array, b: Array) -> Array:
    """Return <a, b> for every column, or for vectors as a whole."""
    return np.asarray(np.einsum("i...,i...->...", a, b))


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)
