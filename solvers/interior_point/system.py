"""The Newton system of `interior_point`: one block a task, and a d x d Schur complement in the row bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.designs import Design, dense, frozen, frozen_matrix
from bench_mtl.core.threads import run_together, useful_threads
from bench_mtl.core.types import Array, Matrix
from bench_mtl.solvers.interior_point.dense import factor, invert

#: The cost per entry of a weighted Gram matrix of a sparse design, relative to a dense one.
_SPARSE_COST = 16
#: Numbers of the scratch that all threads have together, unless one alone needs more.
_MOST_SCRATCH = 50_000_000
#: Rows that wait until they are multiplied: enough for a fast product, few enough for the cache.
_LINES = 512


class Solution(NamedTuple):
    """The solution of a `NewtonSystem`."""

    W: Array
    mu: Array
    a: Array
    forward: Array
    """X_k dw_k, with intercepts X_k dw_k + db_k, stacked."""
    shift: Array | None = None
    """db, m numbers, of a system with intercepts."""


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

    With intercepts a task has one unknown more, db_k, and one equation more, that its da add up to -rho_k. With the mean of rows weighted
    by E_k, v_k, and e = sum E_k, eliminating db_k = mean(g_k) - v_k.dw_k + rho_k / e leaves the system of the rows without that mean,
    with f_k - rho_k v_k in the place of f_k. In F that is the projection I - q q^T from the left, q = E^1/2 1 / sqrt(e).

    What couples the rows may also be stiffer in mu, or rows of another kind: a `base` takes the place of sum_k 4 P_k Q_k T_k^-1 in S, and
    the system is that with its difference from the latter added to sum_k (P_k + Q_k).

    The products F^T F, which take most of the time, have at most so many `threads`; None for the processors. Where BLAS itself takes one
    thread they change no bit.
    """

    def __init__(self, design: Design, threads: int | None = 1, *, intercept: bool = False) -> None:
        self.design, self.intercept = design, intercept
        self.d = design.n_features
        self._small, self._by_features, self._middles = _blocks(design, intercept)
        heights = [block.X.shape[0] for block in self._by_features]
        tallest = max((block.X.shape[0] for block in self._by_features if not is_sparse(block.X)), default=0)
        room = max(1, _MOST_SCRATCH // max(1, tallest * self.d))
        self.threads = max(1, min(useful_threads(threads, sum(heights) * self.d), len(heights), room))
        self._scratch = np.empty((self.threads, tallest, self.d))
        self._schur = np.empty((self.d, self.d))
        self._tasks = np.array([block.k for block in self._by_features], dtype=np.intp)
        self._in_square = np.zeros(design.n_examples, dtype=bool)
        for block in self._by_features:
            self._in_square[block.span] = True
        self._common: tuple[Array, Array] | None = None
        """The roots and the Gram matrix that all tasks had in common last: those of a squared loss stay."""
        self._factor_work = factor_passes(design)
        self.work = 0.0
        """The work so far in passes over the data: products with the design, and factorisations by their operations."""

    def factor(self, E: Array, P: Array, Q: Array, t: float, base: Array | None = None, *, careful: bool = False) -> None:
        """Prepare `solve` for these scalings; when `careful` for slower solves that lose fewer digits where blocks are near singular."""
        self.count()
        self._careful = careful
        self._E, self.P, self.Q, self.t = E, P, Q, t
        self._last: tuple[Array, Array] | None = None
        self._T, self._D = P + Q, Q - P
        crossed = (4.0 * P * (Q / self._T)).sum(axis=0)
        self._more: Array | float = 0.0 if base is None else base - crossed
        if self.intercept:
            self._totals = self._task_sums(E)
            self._means = self.adjoint(E) / self._totals[:, None]
        roots, columns = np.sqrt(E), 1.0 / np.sqrt(self._T)
        sides = self._D * columns
        S = self._schur
        S[:] = t
        S[np.diag_indices(self.d)] += crossed if base is None else base
        self._columns, self._E_square = columns, np.where(self._in_square, E, 0.0)
        common = self._common_gram(roots)

        def write(block: _FeatureBlock, scratch: Array) -> None:
            block.write(roots[block.span], columns[block.k], common, scratch)

        self._share(write)
        for square in self._by_features:
            square.factor(partial(write, square, self._scratch[0]), sides[square.k], S, careful)
        self._small.factor(roots, columns, sides, S)
        self._scale = 1.0 / np.sqrt(S.diagonal())
        S *= self._scale
        S *= self._scale[:, None]
        kept = S.copy()
        factor(S, lambda: np.copyto(S, kept))

    def count(self) -> None:
        """Count a factorisation."""
        self.work += self._factor_work

    def _share(self, write: Callable[[_FeatureBlock, Array], None]) -> None:
        """Have the threads call `write` for every block, each with scratch of its own."""

        @np.errstate(all="ignore")  # which holds for a thread alone
        def part(thread: int) -> None:
            for block in self._by_features[thread :: self.threads]:
                write(block, self._scratch[thread])

        run_together([partial(part, thread) for thread in range(self.threads)])

    def _common_gram(self, roots: Array) -> Array | None:
        """X^T E X where it is the same for all tasks, as at zero with shared data; else None."""
        if not self.design.is_shared or len(self._by_features) < 2:
            return None
        each = roots.reshape(self.design.n_tasks, -1)
        if not np.array_equal(each, np.broadcast_to(each[0], each.shape)):
            return None
        if self._common is None or not np.array_equal(each[0], self._common[0]):
            gram = np.empty((self.d, self.d))
            self._by_features[0].write_gram(each[0], np.ones(self.d), self._scratch[0], gram)
            self._common = each[0].copy(), gram
        return self._common[1]

    def solve(self, f: Array, g: Array, h: Array, *, whole: bool = True, rho: Array | None = None) -> Solution:
        """The solution for right-hand sides f (m x d), g (stacked) and h (d), read-only, and with intercepts rho (m; None: zeros).

        Unless it is to be `whole`, a is that of tasks in n_k x n_k form only, else 0: see `completed`.
        """
        solution = self._solved(f, g, h, rho, whole or self._careful)
        if not self._careful:
            return solution
        rest = None if not self.intercept else self._task_sums(solution.a) + (0.0 if rho is None else rho)
        change = self._solved(*self.residual(f, g, h, solution), rest, True)
        W, mu, a, forward = (old + new for old, new in zip(solution[:4], change[:4], strict=True))
        shift = None if solution.shift is None or change.shift is None else solution.shift + change.shift
        return Solution(W, mu, a, forward, shift)

    def _solved(self, f: Array, g: Array, h: Array, rho: Array | None, whole: bool) -> Solution:
        """Return the solution without refinement: with intercepts by that of the rows without their means."""
        if not self.intercept:
            return self._solve(f, g, h, whole)
        means = self._task_sums(self._E * g) / self._totals
        shift = np.zeros_like(means)
        if rho is not None:
            shift = rho / self._totals
            f = f - rho[:, None] * self._means
        found = self._solve(f, g - self._spread(means), h, whole)
        a = found.a - self._E * self._spread(shift) if rho is not None else found.a
        return found._replace(a=a, forward=g - a / self._E, shift=means - (self._means * found.W).sum(axis=1) + shift)

    def completed(self, g: Array, W: Array, a: Array, shift: Array | None = None) -> Array:
        """Return a with that of the tasks in d x d form, where X_k dw_k (+ db_k) has to be taken."""
        if not self._by_features:
            return a
        forward = self.forward(W) if shift is None else self.forward(W) + self._spread(shift)
        return np.where(self._in_square, self._E * (g - forward), a)

    def _task_sums(self, values: Array) -> Array:
        return self.design.task_sums(self.design.unstack(values))

    def _spread(self, values: Array) -> Array:
        """One value a task, for each of its examples, stacked."""
        return np.repeat(values, self.design.sizes)

    def residual(self, f: Array, g: Array, h: Array, x: Solution) -> tuple[Array, Array, Array]:
        """Return the residual of (f, g, h) after a solution."""
        upper, lower = self.P * (x.mu - x.W), self.Q * (x.mu + x.W)
        bounds = (upper + lower).sum(axis=0) + self._more * x.mu + self.t * x.mu.sum()
        return f + self.adjoint(x.a) + upper - lower, g - x.a / self._E - x.forward, h - bounds

    def forward(self, W: Array) -> Array:
        """X_k w_k of all tasks, stacked; W is m x d."""
        self.work += 0.5
        return self.design.stack(self.design.forward(W.T))

    def adjoint(self, r: Array) -> Array:
        """X_k^T r_k of all tasks, m x d."""
        self.work += 0.5
        return np.ascontiguousarray(self.design.adjoint(self.design.unstack(r)).T)

    def _solve(self, f: Array, g: Array, h: Array, whole: bool) -> Solution:
        """First dmu, for which all tasks are solved as if it were 0, and then the tasks again."""
        right = f + self._image(g) if self._by_features and g.any() else f
        first, _ = self._solve_tasks(f, right, g)
        rest = h - (self._D * first).sum(axis=0)
        dmu = self._scale * lapack.dpotrs(self._schur.T, self._scale * rest, lower=1)[0]
        coupling = self._D * dmu
        dW, da = self._solve_tasks(f - coupling, right - coupling, g)
        if not self._by_features:
            return Solution(dW, dmu, da, g - da / self._E)
        if not whole:
            return Solution(dW, dmu, da, da)
        forward = self.forward(dW)
        if self.intercept:  # of the rows without their means
            forward = forward - self._spread((self._means * dW).sum(axis=1))
        return Solution(dW, dmu, da + self._E_square * (g - forward), forward)

    def _image(self, g: Array) -> Array:
        """X_k^T E_k g_k of the tasks in d x d form, m x d; that of the last g is known."""
        if self._last is None or self._last[0] is not g:
            self._last = g, self.adjoint(self._E_square * g)
        return self._last[1]

    def _solve_tasks(self, f: Array, right: Array, g: Array) -> tuple[Array, Array]:
        """K_k (f_k + X_k^T E_k g_k) for all tasks, and da of those in n_k x n_k form.

        These find da_k = E_k^1/2 (I + F F^T)^-1 E_k^1/2 (g_k - X_k T_k^-1 f_k) first; for the others the sum is in `right`.
        """
        dW, da = np.zeros_like(f), np.zeros_like(g)
        if len(self._small):
            self.work += self._small.share
            self._small.solve(f / self._T, g, da, dW)
            dW += f
            dW /= self._T
        if self._by_features:
            from bench_mtl.solvers.interior_point.kernels import solve_features

            if self._careful:
                for square in self._by_features:
                    columns = self._columns[square.k]
                    dW[square.k] = columns * lapack.dpotrs(square.middle.T, columns * right[square.k], lower=1)[0]
            else:
                solve_features(self._tasks, self._columns, self._middles, right, dW)
        return dW, da


class _FeatureBlock:
    """K = T^-1/2 (I + F^T F)^-1 T^-1/2 by d x d matrices, of which the one in the middle is kept.

    The Schur complement needs it. To solve with it takes half as long as with the factor, and loses more.
    """

    def __init__(self, k: int, X: Matrix, span: slice, middle: Array, is_centred: bool) -> None:
        self.k, self.X, self.span, self._is_centred = k, X, span, is_centred
        self.middle = middle
        """The inverse in the middle of K, or the Cholesky factor of what it inverts, when careful; d x d."""

    def write(self, roots: Array, columns: Array, common: Array | None, scratch: Array) -> None:
        """I + F^T F to `middle`, for E^1/2 and T^-1/2; `common` is X^T E X, where it is known."""
        if common is None:
            self.write_gram(roots, columns, scratch, self.middle)
        else:
            np.multiply(common, columns, out=self.middle)
            self.middle *= columns[:, None]
        self.middle.ravel()[:: len(columns) + 1] += 1.0

    def factor(self, again: Callable[[], None], sides: Array, S: Array, careful: bool) -> None:
        """Adds (D T^-1/2) [I - (I + F^T F)^-1] (T^-1/2 D) to S; `again` writes `middle` as it is now."""
        from bench_mtl.solvers.interior_point.kernels import add_complement

        factor(self.middle, again)
        inverse = self.middle.copy() if careful else self.middle
        invert(inverse)
        add_complement(inverse, sides, S)

    def write_gram(self, roots: Array, columns: Array, scratch: Array, out: Array) -> None:
        """F^T F for E^1/2 and T^-1/2. Nothing here holds the GIL for long, as SciPy's products would."""
        from bench_mtl.solvers.interior_point.kernels import scale_both, sparse_gram

        if is_sparse(self.X):
            sparse_gram(self.X.data, self.X.indices, self.X.indptr, roots, columns, out)
            if self._is_centred:
                mean = columns * (self.X.T @ roots**2) / np.sqrt(roots @ roots)
                out -= np.outer(mean, mean)
        else:
            rows = scratch[: self.X.shape[0]]
            scale_both(self.X, roots, columns, rows)
            if self._is_centred:
                _project(rows, roots)
            np.matmul(rows.T, rows, out=out)


class _ExampleBlock(NamedTuple):
    """The n_k x n_k factor of a task, L L^T = I + F F^T."""

    k: int
    X: Array
    span: slice
    matrix: Array
    is_centred: bool

    def factor(self, roots: Array, columns: Array, sides: Array, lines: Array) -> None:
        """Leaves in `lines` B = L^-1 F (T^-1/2 D), so that B^T B = (D T^-1/2) F^T (I + F F^T)^-1 F (T^-1/2 D)."""
        from bench_mtl.solvers.interior_point.kernels import scale_both, scale_columns

        scale_both(self.X, roots, columns, lines)
        if self.is_centred:
            _project(lines, roots)
        self._gram(lines)
        factor(self.matrix, lambda: self._gram(lines))
        blas.dtrsm(1.0, self.matrix.T, lines.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        scale_columns(lines, sides)

    def _gram(self, lines: Array) -> None:
        blas.dsyrk(1.0, lines.T, 0.0, self.matrix.T, 1, 1, 1)
        self.matrix.ravel()[:: len(self.matrix) + 1] += 1.0


class _ExampleBlocks:
    """All tasks whose systems are n_k x n_k: their designs and their factors, one after the other."""

    def __init__(self, design: Design, members: list[tuple[int, slice]], is_centred: bool) -> None:
        self._is_centred = is_centred
        sizes = [design.sizes[k] for k, _ in members]
        kept = members[:1] if design.is_shared else members
        designs = [dense(design.block(k)) for k, _ in kept]
        self._rows = np.concatenate(designs) if designs else np.empty((0, design.n_features))
        self._factors = np.empty(sum(n * n for n in sizes))
        self._places = np.empty((len(members), 5), dtype=np.intp)
        self._blocks: list[_ExampleBlock] = []
        self.share = sum(sizes) / design.n_examples
        row, at = 0, 0
        for index, ((k, span), n) in enumerate(zip(members, sizes, strict=True)):
            self._places[index] = k, n, span.start, row, at
            matrix = self._factors[at : at + n * n].reshape(n, n)
            self._blocks.append(_ExampleBlock(k, self._rows[row : row + n], span, matrix, is_centred))
            row, at = row if design.is_shared else row + n, at + n * n
        self._lines = np.empty((max([_LINES, *sizes]) if sizes else 0, design.n_features))

    def __len__(self) -> int:
        return len(self._blocks)

    def factor(self, roots: Array, columns: Array, sides: Array, S: Array) -> None:
        """Adds (D T^-1/2) F^T (I + F F^T)^-1 F (T^-1/2 D) of all tasks to S."""
        self._roots, filled = roots, 0
        for block in self._blocks:
            n = len(block.matrix)
            if filled + n > len(self._lines):
                self._add(filled, S)
                filled = 0
            block.factor(roots[block.span], columns[block.k], sides[block.k], self._lines[filled : filled + n])
            filled += n
        self._add(filled, S)

    def _add(self, filled: int, S: Array) -> None:
        if filled:
            blas.dsyrk(1.0, self._lines[:filled].T, 1.0, S.T, 0, 1, 1)

    def solve(self, W: Array, g: Array, a: Array, images: Array) -> None:
        """Writes a_k = E^1/2 (I + F F^T)^-1 E^1/2 (g_k - X_k w_k) and images_k = X_k^T a_k, where k is one of these tasks."""
        from bench_mtl.solvers.interior_point.kernels import solve_examples

        solve_examples(self._places, self._rows, self._factors, self._roots, self._is_centred, W, g, a, images)


def _blocks(design: Design, is_centred: bool) -> tuple[_ExampleBlocks, list[_FeatureBlock], Array]:
    """The tasks' blocks by their form, and the matrices in the middle of those by features.

    A sparse design is made dense where that is cheaper, a shared one only once.
    """
    d = design.n_features
    small: list[tuple[int, slice]] = []
    by_features: list[_FeatureBlock] = []
    middles = np.empty((sum(not _prefers_examples(n, d) for n in design.sizes), d, d))
    start, X = 0, None
    for k, n in enumerate(design.sizes):
        span = slice(start, start + n)
        start += n
        if _prefers_examples(n, d):
            small.append((k, span))
            continue
        if X is None or not design.is_shared:
            X = _as_needed(design.block(k))
        by_features.append(_FeatureBlock(k, X, span, middles[len(by_features)], is_centred))
    return _ExampleBlocks(design, small, is_centred), by_features, middles


def _project(F: Array, roots: Array) -> None:
    """F <- (I - q q^T) F, q the roots over their length."""
    q = roots / np.sqrt(roots @ roots)
    F -= np.outer(q, q @ F)


def _as_needed(X: Matrix) -> Matrix:
    if not is_sparse(X):
        return X
    lengths = np.diff(X.indptr).astype(np.float64)
    if _SPARSE_COST * float((lengths**2).sum()) > float(X.shape[0]) * X.shape[1] ** 2:
        return frozen(X.toarray())
    return frozen_matrix(X)


def _prefers_examples(n: int, d: int) -> bool:
    # An operation of a triangular inverse takes about twice as long as one of a product or a solve.
    return _example_flops(n, d) < _feature_flops(n, d) + float(d) ** 3


def _example_flops(n: int, d: int) -> float:
    """Return the operations of the product F F^T, its factor, B, and B^T B; a symmetric result counts half."""
    return 2.0 * n * n * d + n**3 / 3.0 + float(n) * d * d


def _feature_flops(n: int, d: int) -> float:
    """Return the operations of the product F^T F, its factor and the inverse."""
    return float(n) * d * d + float(d) ** 3


def factor_passes(design: Design) -> float:
    """Operations of the factorisations of one iteration, in passes over the data (as if they were dense)."""
    d = design.n_features
    flops = sum(_example_flops(n, d) if _prefers_examples(n, d) else _feature_flops(n, d) for n in design.sizes) + d**3 / 3.0
    return flops / (4.0 * design.n_examples * d)


def bytes_needed(design: Design) -> float:
    """Memory of the factors, of what is made dense, and of a thread's scratch."""
    d = design.n_features
    tallest = max((n for n in design.sizes if not _prefers_examples(n, d)), default=0)
    wide = [n for n in design.sizes if _prefers_examples(n, d)]
    rows = sum(wide[:1] if design.is_shared else wide)
    numbers = float(d) * (d + tallest + rows) + sum(float(n) * n for n in wide) + (len(design.sizes) - len(wide)) * float(d) * d
    if design.is_sparse:
        numbers += float(d) * (max(design.sizes) if design.is_shared else sum(design.sizes))
    return 8.0 * numbers
