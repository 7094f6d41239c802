"""Solvers of multi-task relationship learning over one design, in the singular basis of X: the paper's, and a gradient method."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import dense, diagonal_of
from bench_mtl.core.types import Array, Iterate, Matrix
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.normal_equations import LARGEST_FACTOR
from bench_mtl.model.protocols import SHOWN_SHARE, Problem
from bench_mtl.model.solver_state import Stepper, SteppingSolver
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.projections import prox_squared_trace

#: Eigenvalues of X^T X below this share of the largest, times their number, are rounding of 0.
_RANK_SHARE = 1e-14


class SingularBasis(NamedTuple):
    """X = P S U^T, through what is needed of it; r is the rank of X. For W = U Z ::

    f(W) = weight/2 ||X W - Y||_F^2 = weight/2 sum_ij (s_i^2 Z_ij^2 - 2 products_ij Z_ij) + const
    """

    squares: Array
    """S^2, r numbers, ascending."""
    products: Array
    """U^T X^T Y = S P^T Y, r x m."""
    basis: Array
    """U, d x r; where X is wider than long P S^-1, n x r, as U = X^T P S^-1."""
    X: Matrix | None
    """X where the basis is of its rows."""
    weight: float

    @staticmethod
    def of(form: LinearForm) -> SingularBasis:
        """From the eigenvalues of the smaller of X^T X and X X^T."""
        design, targets, weight = form.fit.design, form.fit.targets, float(form.fit.weights.flat[0])
        X: Any = design.block(0)
        wide = X.shape[0] < X.shape[1]
        squares, vectors = _decomposed(X @ X.T if wide else X.T @ X)
        kept = squares > _RANK_SHARE * len(squares) * max(float(squares[-1]), 0.0)
        squares, vectors = squares[kept], vectors[:, kept]
        if wide:
            lengths = np.sqrt(squares)
            return SingularBasis(squares, lengths[:, None] * (vectors.T @ targets), vectors / lengths, X, weight)
        return SingularBasis(squares, vectors.T @ design.adjoint(targets), vectors, None, weight)

    def point(self, Z: Array) -> Array:
        """U Z, d x m."""
        inner = self.basis @ Z
        return np.ascontiguousarray(inner if self.X is None else np.asarray(self.X.T @ inner))

    def coordinates(self, W: Array) -> Array:
        """U^T W, r x m."""
        return np.asarray(self.basis.T @ (W if self.X is None else np.asarray(self.X @ W)))


class BasisStepper(Stepper):
    """Steps on coordinates, of whose points the first 32 are iterates, then one in about 32.

    Work: 1 for the decomposition, and half a pass a point; the steps themselves do not touch the data.
    """

    def __init__(self, form: LinearForm) -> None:
        self.form, self.basis = form, SingularBasis.of(form)

    @abstractmethod
    def after(self, now: Any) -> Any:
        """Return the state after one step, with its `step` and the same `work`; None where there is none."""

    def step(self, now: Any) -> Any:
        for _ in range(1 + now.step // SHOWN_SHARE):
            now = None if now is None else self.after(now)
        return None if now is None else now._replace(work=now.work + 0.5)

    def iterate(self, now: Any) -> Iterate:
        return Iterate(self.basis.point(now.Z), None, now.step, now.work)


def _decomposed(gram: Matrix) -> tuple[Array, Array]:
    """The ascending eigenvalues of a symmetric matrix, and its eigenvectors."""
    diagonal = diagonal_of(gram)
    if diagonal is None:
        return np.linalg.eigh(dense(gram))
    order = np.argsort(diagonal)
    return diagonal[order], np.eye(len(order))[:, order]


class _BasisSolver(SteppingSolver):
    takes = (loss_under("squared", SquaredNorms),)

    def objection(self, problem: Problem) -> str | None:
        fit = problem.form(LinearForm).fit
        if not fit.design.is_shared or np.ptp(fit.weights) > 0.0:
            return f"{self.label} needs one design for all tasks and equal weights"
        n, d = fit.design.sizes[0], fit.design.n_features
        if min(n, d) > LARGEST_FACTOR:
            return f"{self.label} needs X^T X or X X^T of at most {LARGEST_FACTOR} rows, but X is {n} x {d}"
        return None


@dataclass(frozen=True)
class AlternatingRelationships(_BasisSolver):
    """W <- argmin F(W, Omega), Omega <- (W^T W)^(1/2) / ||W||_*, in turn, for the F with tr(W Omega^-1 W^T) of a `SquaredNorms`.

    For one design X for all tasks, with the weight w of its examples, W solves w X^T X W + W (ridge I + coupling Omega^-1) = w X^T Y. With
    X = P S U^T and Omega = V D V^T this system is diagonal, ::

        W = U Z V^T,      Z_ij = w s_i (P^T Y V)_ij d_j / ((w s_i^2 + ridge) d_j + coupling)

    so X is decomposed once, by the smaller of X^T X and X X^T, and a step costs r m^2, r the rank of X. A d_j that is 0 gives a column of
    zeros. The objective never rises. Omega starts at the mean of I / m and that of the start point, so that no direction is missing.

    Where the optimum has a lower rank than min(r, m) the method may end elsewhere, though the problem is convex: W turns into a direction v
    of the tasks only as fast as v.Omega v lets it, and that may vanish, geometrically, before W has arrived. The gap shows it. A
    `perturbation` keeps all directions open, and ends near the optimum; `spectral_gradient` ends at it.

    Parameters
    ----------
    perturbation : p >= 0 makes Omega = (W^T W + (p ||W||_*)^2 I)^(1/2), over its trace; 0 is the paper's method

    References
    ----------
    Zhang, Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010; the perturbation is that of
    Argyriou, Evgeniou, Pontil, "Convex multi-task feature learning", Machine Learning 73, 2008, section 4.
    """

    perturbation: float = 0.0

    name: ClassVar[str] = "alternating_relationships"

    def __post_init__(self) -> None:
        real_number("perturbation", self.perturbation)

    def stepper(self, problem: Problem) -> AlternatingStepper:
        return AlternatingStepper(problem.form(LinearForm), self.perturbation)


class AlternatingState(NamedTuple):
    Z: Array
    D: Array
    """The eigenvalues of the next Omega before it is perturbed, all 0 where W = 0 is the best W for every Omega ..."""
    V: Array
    """... and its eigenvectors."""
    step: int = 0
    work: float = 1.0


class AlternatingStepper(BasisStepper):
    def __init__(self, form: LinearForm, perturbation: float) -> None:
        super().__init__(form)
        self._perturbation = perturbation

    def start(self, at: Iterate) -> AlternatingState:
        Z = self.basis.coordinates(at.primal)
        m = Z.shape[1]
        D, V = _relationships(Z)
        return AlternatingState(Z, 0.5 * (D + 1.0 / m) if D.any() else np.full(m, 1.0 / m), V)

    def after(self, now: AlternatingState) -> AlternatingState | None:
        basis, D, V = self.basis, now.D, now.V
        ridge, coupling = self.form.squared_norms.strengths
        if now.step:
            if not D.any():
                return None
            D = np.hypot(D, self._perturbation)
            D /= D.sum()
        Z = basis.weight * (basis.products @ V) * D
        weights = (basis.weight * basis.squares[:, None] + ridge) * D + coupling
        Z = np.divide(Z, weights, out=np.zeros_like(Z), where=weights > 0.0)
        D, turn = _relationships(Z)
        return AlternatingState(Z @ V.T, D, V @ turn, now.step + 1, now.work)


def _relationships(Z: Array) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of (Z^T Z)^(1/2) / ||Z||_*; no eigenvalue but 0 of a Z of zeros."""
    _, values, rows = np.linalg.svd(Z, full_matrices=len(Z) < Z.shape[1])
    D = np.zeros(Z.shape[1])
    D[: len(values)] = values
    return D / (D.sum() or 1.0), rows.T


@dataclass(frozen=True)
class SpectralGradient(_BasisSolver):
    """The accelerated proximal gradient method with restarts on the coordinates Z of W = U Z, X = P S U^T::

        Z_{i+1} <- prox(A_i - grad f(A_i) / L),      A_i = Z_i + (t_{i-1} - 1) / t_i (Z_i - Z_{i-1})
        grad f(Z)_ij = w (s_i^2 Z_ij - (S P^T Y)_ij)

    Both norms of a `SquaredNorms` are those of Z, so X is decomposed once, by the smaller of X^T X and X X^T, and a step costs r m^2, r
    the rank of X, whatever n and d are. Momentum is dropped where it points uphill.

    References
    ----------
    Beck, Teboulle, SIAM Journal on Imaging Sciences 2(1), 2009; O'Donoghue, Candes, Foundations of Computational Mathematics 15, 2015.
    """

    name: ClassVar[str] = "spectral_gradient"

    def stepper(self, problem: Problem) -> SpectralStepper:
        return SpectralStepper(problem.form(LinearForm))


class SpectralState(NamedTuple):
    Z: Array
    previous: Array
    momentum: float = 1.0
    step: int = 0
    work: float = 1.0


class SpectralStepper(BasisStepper):
    def __init__(self, form: LinearForm) -> None:
        super().__init__(form)
        ridge, self._coupling = form.squared_norms.strengths
        self._curvatures = self.basis.weight * self.basis.squares[:, None]
        self._step_size = 1.0 / max(float(self._curvatures.max(initial=0.0)), 1e-300)
        self._shrink = 1.0 / (1.0 + self._step_size * ridge)

    def start(self, at: Iterate) -> SpectralState:
        Z = self.basis.coordinates(at.primal)
        return SpectralState(Z, Z)

    def after(self, now: SpectralState) -> SpectralState | None:
        basis, Z, step_size, shrink = self.basis, now.Z, self._step_size, self._shrink
        if not len(Z):  # X is zero, and so is the best W
            return None if now.step else now._replace(step=1)
        ahead = 0.5 * (1.0 + (1.0 + 4.0 * now.momentum * now.momentum) ** 0.5)
        search = Z + (now.momentum - 1.0) / ahead * (Z - now.previous)
        gradient = self._curvatures * search - basis.weight * basis.products
        new = prox_squared_trace(shrink * (search - step_size * gradient), shrink * step_size * self._coupling)
        uphill = float(((search - new) * (new - Z)).sum()) > 0.0
        return SpectralState(new, new if uphill else Z, 1.0 if uphill else ahead, now.step + 1, now.work)
