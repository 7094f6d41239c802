"""An accelerated proximal gradient method in the singular basis of X."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import LinearForm, loss_under
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.projections import prox_squared_trace
from bench_mtl.solvers.relationships.basis import SingularBasis, incompatibility, shown


@dataclass(frozen=True)
class SpectralGradient(IterativeSolver):
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

    def incompatibility(self, problem: Problem) -> str | None:
        return super().incompatibility(problem) or incompatibility(self, problem)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.form(LinearForm)
        point = problem.start_point() if start is None else start.copy()
        yield Iterate(point, None, 0, 0.0)
        basis = SingularBasis.of(form)
        yield from shown(basis, _descent(basis, form, basis.coordinates(point)))


def _descent(basis: SingularBasis, form: LinearForm, Z: Array) -> Iterator[Array]:
    if not len(Z):  # X is zero, and so is the best W
        yield Z
        return
    curvatures = basis.weight * basis.squares[:, None]
    step_size = 1.0 / float(curvatures.max())
    shrink = 1.0 / (1.0 + step_size * form.squared_norms.ridge)
    previous, t = Z, 1.0
    while True:
        ahead = 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
        search = Z + (t - 1.0) / ahead * (Z - previous)
        gradient = curvatures * search - basis.weight * basis.products
        new = prox_squared_trace(shrink * (search - step_size * gradient), shrink * step_size * form.squared_norms.coupling)
        uphill = float(((search - new) * (new - Z)).sum()) > 0.0
        previous, Z, t = (new, new, 1.0) if uphill else (Z, new, ahead)
        yield Z
