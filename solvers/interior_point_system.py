"""The Newton system of `interior_point`: one block a task, and a d x d Schur complement in the row bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from bench_mtl.checks import is_sparse
from bench_mtl.linops import Design, frozen, frozen_matrix
from bench_mtl.types import Array, Matrix

#: A weighted Gram matrix of a sparse design costs so many times more an entry than a dense one.
_SPARSE_COST = 16
#: Added to a diagonal, relative to it, where a factorisation fails; every further try adds a hundred times more.
_FIRST_SHIFT, _LAST_SHIFT = 1e-15, 1e-3


class Solution(NamedTuple):
    """Of a `NewtonSystem`."""

    W: Array
    mu: Array
    a: Array
    forward: Array
    """X_k dw_k, stacked."""


class NewtonSystem:
    """Factors and solves, for one set of scalings, the reduced Newton system of all tasks.

    With X_k the design of task k, E_k a positive diagonal (one entry an example), P_k and Q_k positive diagonals (one entry a feature),
    H_k = X_k^T E_k X_k and one number t >= 0, it is in (dW, dmu)::

        (H_k + P_k + Q_k) dw_k + (Q_k - P_k) dmu = f_k + X_k^T E_k g_k             for every task k
        sum_k (Q_k - P_k) dw_k + (sum_k (P_k + Q_k) + t 11^T) dmu = h

    and da_k = E_k (g_k - X_k dw_k). Eliminating dW leaves S dmu = h - sum_k (Q_k - P_k) K_k (f_k + X_k^T E_k g_k), with
    K_k = (H_k + P_k + Q_k)^-1 and

        S = t 11^T + sum_k [P_k + Q_k - (Q_k - P_k) K_k (Q_k - P_k)].

    With T = P + Q and D = Q - P the bracket is the sum of two positive semidefinite terms, so that nothing cancels::

        T - D K D = 4 P Q T^-1 + (D T^-1/2) [I - (I + F^T F)^-1] (T^-1/2 D),     F = E^1/2 X T^-1/2
                I - (I + F^T F)^-1 = F^T (I + F F^T)^-1 F

    A task takes the d x d form (`_FeatureBlock`) or the n_k x n_k form (`_ExampleBlock`), whichever is cheaper. In the latter da_k is
    found first and dw_k from it, so that its error does not grow where T tends to 0 on more coordinates than there are examples.

    Arrays of features are m x d and arrays of examples are vectors stacked task by task, in which the sign of an example's label
    is part of its values.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.d = design.n_features
        self._blocks = _blocks(design)
        self._by_examples = [block for block in self._blocks if isinstance(block, _ExampleBlock)]
        self._by_features = [block for block in self._blocks if isinstance(block, _FeatureBlock)]
        self._schur = np.empty((self.d, self.d))
        self._lines = np.empty((sum(block.n for block in self._by_examples), self.d))
        self._factor_work = _factor_flops(design) / (4.0 * design.n_examples * self.d)
        self.work = 0.0
        """So far, in passes over the data: products with the design, and factorisations by their operations."""

    def factor(self, E: Array, P: Array, Q: Array, t: float) -> None:
        """Prepare `solve` for these scalings."""
        self.work += self._factor_work
        self._E, self.P, self.Q, self.t = E, P, Q, t
        self._T, self._D = P + Q, Q - P
        roots, columns = np.sqrt(E), 1.0 / np.sqrt(self._T)
        sides = self._D * columns
        S = self._schur
        S[:] = t
        S[np.diag_indices(self.d)] += (4.0 * P * (Q / self._T)).sum(axis=0)
        for square in self._by_features:
            square.factor(roots[square.span], columns[square.k], sides[square.k], S)
        first = 0
        for block in self._by_examples:
            lines = self._lines[first : first + block.n]
            block.factor(roots[block.span], columns[block.k], sides[block.k], lines)
            first += block.n
        for first in range(0, len(self._lines), 512):
            blas.dsyrk(1.0, self._lines[first : first + 512].T, 1.0, S.T, 0, 1, 1)
        self._scale = 1.0 / np.sqrt(S.diagonal())
        S *= self._scale
        S *= self._scale[:, None]
        _factor(S)

    def solve(self, f: Array, g: Array, h: Array, refinements: int = 0) -> Solution:
        """The solution for right-hand sides f (m x d), g (stacked) and h (d); residuals are solved for again so many times."""
        solution = self._solve(f, g, h)
        for _ in range(refinements):
            change = self._solve(*self.residual(f, g, h, solution))
            solution = Solution(*(old + new for old, new in zip(solution, change, strict=True)))
        return solution

    def residual(self, f: Array, g: Array, h: Array, x: Solution) -> tuple[Array, Array, Array]:
        """What is left of (f, g, h) after a solution."""
        upper, lower = self.P * (x.mu - x.W), self.Q * (x.mu + x.W)
        return f + self.adjoint(x.a) + upper - lower, g - x.a / self._E - x.forward, h - (upper + lower).sum(axis=0) - self.t * x.mu.sum()

    def forward(self, W: Array) -> Array:
        """X_k w_k of all tasks, stacked; W is m x d."""
        self.work += 0.5
        return self.design.stack(self.design.forward(W.T))

    def adjoint(self, r: Array) -> Array:
        """X_k^T r_k of all tasks, m x d."""
        self.work += 0.5
        return np.ascontiguousarray(self.design.adjoint(self.design.unstack(r)).T)

    def _solve(self, f: Array, g: Array, h: Array) -> Solution:
        pulled = self._pulled(g)
        first, _ = self._task_solve(f, g, pulled)
        right = h - (self._D * first).sum(axis=0)
        dmu = self._scale * lapack.dpotrs(self._schur.T, self._scale * right, lower=1)[0]
        dW, da = self._task_solve(f - self._D * dmu, g, pulled)
        forward = self.forward(dW)
        for block in self._by_features:
            da[block.span] = self._E[block.span] * (g[block.span] - forward[block.span])
        return Solution(dW, dmu, da, forward)

    def _pulled(self, g: Array) -> Array | None:
        """X_k^T E_k g_k for the tasks in d x d form."""
        if not self._by_features:
            return None
        weighted = self._E * g
        for block in self._by_examples:
            weighted[block.span] = 0.0
        return self.adjoint(weighted)

    def _task_solve(self, f: Array, g: Array, pulled: Array | None) -> tuple[Array, Array]:
        """(K_k (f_k + X_k^T E_k g_k), da_k), the second only for the tasks in n_k x n_k form."""
        solution = f.copy() if pulled is None else f + pulled
        da = np.zeros_like(g)
        if self._by_examples:
            lead = g - self.forward(f / self._T)
            for block in self._by_examples:
                da[block.span] = block.solve(lead[block.span])
            solution += self.adjoint(da)
        for square in self._by_features:
            solution[square.k] = square.solve(solution[square.k])
        for block in self._by_examples:
            solution[block.k] /= self._T[block.k]
        return solution, da


class _Block(ABC):
    """The system of one task."""

    def __init__(self, k: int, X: Matrix, span: slice) -> None:
        self.k, self.X, self.span = k, X, span
        self.n, self.d = (int(size) for size in X.shape)

    @abstractmethod
    def solve(self, right: Array) -> Array: ...


class _FeatureBlock(_Block):
    """K = T^-1/2 (I + F^T F)^-1 T^-1/2 from the d x d factor of I + F^T F."""

    def __init__(self, k: int, X: Matrix, span: slice, scratch: _Scratch) -> None:
        super().__init__(k, X, span)
        self._factor = np.empty((self.d, self.d))
        self._inverse = scratch.square(self.d)
        self._scaled = None if is_sparse(X) else scratch.lines(self.n, self.d)

    def factor(self, roots: Array, columns: Array, sides: Array, S: Array) -> None:
        from bench_mtl.kernels.newton import add_complement

        self._columns = columns
        shift = 0.0
        while True:
            self._gram(roots, columns)
            self._factor[np.diag_indices(self.d)] += 1.0
            if _try_factor(self._factor, shift):
                break
            shift = _next_shift(shift)
        self._inverse[:] = self._factor
        lapack.dpotri(self._inverse.T, lower=1, overwrite_c=1)
        add_complement(self._inverse, sides, S)

    def solve(self, right: Array) -> Array:
        return self._columns * lapack.dpotrs(self._factor.T, self._columns * right, lower=1)[0]

    def _gram(self, roots: Array, columns: Array) -> None:
        from bench_mtl.kernels.newton import scale_both, sparse_gram

        if self._scaled is None:
            sparse_gram(self.X.data, self.X.indices, self.X.indptr, roots, columns, self._factor)
        else:
            scale_both(self.X, roots, columns, self._scaled)
            blas.dsyrk(1.0, self._scaled.T, 0.0, self._factor.T, 0, 1, 1)


class _ExampleBlock(_Block):
    """(E^-1 + X T^-1 X^T)^-1 = E^1/2 (I + F F^T)^-1 E^1/2 from the n_k x n_k factor of I + F F^T."""

    def __init__(self, k: int, X: Array, span: slice) -> None:
        super().__init__(k, X, span)
        self._factor = np.empty((self.n, self.n))

    def factor(self, roots: Array, columns: Array, sides: Array, lines: Array) -> None:
        """Leaves in `lines` the B with B^T B = (D T^-1/2) F^T (I + F F^T)^-1 F (T^-1/2 D)."""
        from bench_mtl.kernels.newton import scale_both, scale_columns

        self._roots = roots
        scale_both(self.X, roots, columns, lines)
        shift = 0.0
        while True:
            blas.dsyrk(1.0, lines.T, 0.0, self._factor.T, 1, 1, 1)
            self._factor[np.diag_indices(self.n)] += 1.0
            if _try_factor(self._factor, shift):
                break
            shift = _next_shift(shift)
        blas.dtrsm(1.0, self._factor.T, lines.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        scale_columns(lines, sides)

    def solve(self, right: Array) -> Array:
        return self._roots * lapack.dpotrs(self._factor.T, self._roots * right, lower=1)[0]


class _Scratch:
    """Buffers that the blocks use one after the other."""

    def __init__(self) -> None:
        self._square = np.empty((0, 0))
        self._lines = np.empty((0, 0))

    def reserve(self, n: int, d: int) -> None:
        self._square = np.empty((d, d))
        self._lines = np.empty((n, d))

    def square(self, d: int) -> Array:
        return self._square

    def lines(self, n: int, d: int) -> Array:
        return self._lines[:n]


def _blocks(design: Design) -> list[_ExampleBlock | _FeatureBlock]:
    """The tasks' blocks; a sparse design is made dense where that is cheaper, a shared one only once."""
    d = design.n_features
    scratch = _Scratch()
    wide = [_prefers_examples(n, d) for n in design.sizes]
    tall = [n for n, by_examples in zip(design.sizes, wide, strict=True) if not by_examples]
    if tall:
        scratch.reserve(max(tall), d)
    blocks: list[_ExampleBlock | _FeatureBlock] = []
    first, X = 0, None
    for k, n in enumerate(design.sizes):
        if X is None or not design.is_shared:
            X = _as_needed(design.block(k), wide[k])
        span = slice(first, first + n)
        blocks.append(_ExampleBlock(k, X, span) if wide[k] else _FeatureBlock(k, X, span, scratch))
        first += n
    return blocks


def _as_needed(X: Matrix, by_examples: bool) -> Matrix:
    if not is_sparse(X):
        return X
    lengths = np.diff(X.indptr).astype(np.float64)
    if by_examples or _SPARSE_COST * float((lengths**2).sum()) > float(X.shape[0]) * X.shape[1] ** 2:
        return frozen(X.toarray())
    return frozen_matrix(X)


def _prefers_examples(n: int, d: int) -> bool:
    return _example_flops(n, d) < _feature_flops(n, d)


def _example_flops(n: int, d: int) -> float:
    return 2.0 * n * n * d + n**3 / 3.0 + float(n) * d * d


def _feature_flops(n: int, d: int) -> float:
    return float(n) * d * d + 2.0 * float(d) ** 3


def _factor_flops(design: Design) -> float:
    d = design.n_features
    return sum(min(_example_flops(n, d), _feature_flops(n, d)) for n in design.sizes) + d**3 / 3.0


def bytes_needed(design: Design) -> float:
    """Memory of the factors and of what is made dense."""
    d = design.n_features
    wide = [n for n in design.sizes if _prefers_examples(n, d)]
    numbers = float(d) * d + sum(float(n) * n + float(n) * d for n in wide) + (len(design.sizes) - len(wide)) * float(d) * d
    if design.is_sparse:
        numbers += float(d) * (max(design.sizes) if design.is_shared else sum(design.sizes))
    return 8.0 * numbers


def _try_factor(A: Array, shift: float) -> bool:
    """Replace the positive definite A by its Cholesky factor, its diagonal raised by the share `shift`."""
    if shift > 0.0:
        A[np.diag_indices(len(A))] *= 1.0 + shift
    return bool(lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)[1] == 0)


def _next_shift(shift: float) -> float:
    if shift >= _LAST_SHIFT:
        raise FloatingPointError("the Newton system is not positive definite")
    return max(_FIRST_SHIFT, 100.0 * shift)


def _factor(A: Array) -> None:
    """Cholesky factor of A in place, with a shift if it needs one."""
    kept = A.copy()
    shift = 0.0
    while not _try_factor(A, shift):
        shift = _next_shift(shift)
        A[:] = kept
