"""An accelerated proximal gradient method in the singular basis of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.protocols import Problem
from bench_mtl.model.solver_state import SteppingSolver
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.projections import prox_squared_trace
from bench_mtl.solvers.relationships.basis import BasisStepper, basis_objection


@dataclass(frozen=True)
class SpectralGradient(SteppingSolver):
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
    takes = (loss_under("squared", SquaredNorms),)

    def objection(self, problem: Problem) -> str | None:
        return basis_objection(self, problem)

    def stepper(self, problem: Problem) -> SpectralStepper:
        return SpectralStepper(problem.form(LinearForm))


class State(NamedTuple):
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
        self._step_size = 1.0 / float(self._curvatures.max(initial=0.0) or 1.0)
        self._shrink = 1.0 / (1.0 + self._step_size * ridge)

    def start(self, at: Iterate) -> State:
        Z = self.basis.coordinates(at.primal)
        return State(Z, Z)

    def after(self, now: State) -> State | None:
        basis, Z, step_size, shrink = self.basis, now.Z, self._step_size, self._shrink
        if not len(Z):  # X is zero, and so is the best W
            return None if now.step else now._replace(step=1)
        ahead = 0.5 * (1.0 + (1.0 + 4.0 * now.momentum * now.momentum) ** 0.5)
        search = Z + (now.momentum - 1.0) / ahead * (Z - now.previous)
        gradient = self._curvatures * search - basis.weight * basis.products
        new = prox_squared_trace(shrink * (search - step_size * gradient), shrink * step_size * self._coupling)
        uphill = float(((search - new) * (new - Z)).sum()) > 0.0
        return State(new, new if uphill else Z, 1.0 if uphill else ahead, now.step + 1, now.work)
