"""The alternating method of multi-task relationship learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import SteppingSolver
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.solvers.relationships.basis import BasisStepper, basis_objection


@dataclass(frozen=True)
class AlternatingRelationships(SteppingSolver):
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
    takes = (loss_under("squared", SquaredNorms),)

    def __post_init__(self) -> None:
        real_number("perturbation", self.perturbation)

    def objection(self, problem: Problem) -> str | None:
        return basis_objection(self, problem)

    def stepper(self, problem: Problem) -> AlternatingStepper:
        return AlternatingStepper(problem.form(LinearForm), self.perturbation)


class State(NamedTuple):
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

    def start(self, at: Iterate) -> State:
        Z = self.basis.coordinates(at.primal)
        m = Z.shape[1]
        D, V = _relationships(Z)
        return State(Z, 0.5 * (D + 1.0 / m) if D.any() else np.full(m, 1.0 / m), V)

    def after(self, now: State) -> State | None:
        basis, D, V = self.basis, now.D, now.V
        ridge, coupling = self.form.squared_norms.strengths
        if now.step:
            if not D.any():
                return None
            D = np.hypot(D, self._perturbation)
            D /= D.sum()
        Z = basis.weight * (basis.products @ V) * D
        Z /= (basis.weight * basis.squares[:, None] + ridge) * D + coupling
        D, turn = _relationships(Z)
        return State(Z @ V.T, D, V @ turn, now.step + 1, now.work)


def _relationships(Z: Array) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of (Z^T Z)^(1/2) / ||Z||_*; no eigenvalue but 0 of a Z of zeros."""
    _, values, rows = np.linalg.svd(Z, full_matrices=len(Z) < Z.shape[1])
    D = np.zeros(Z.shape[1])
    D[: len(values)] = values
    return D / (D.sum() or 1.0), rows.T
