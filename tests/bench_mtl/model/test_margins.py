"""Losses of multiclass margins: what dual points gain, the prox against CVXPY, a loss of one's own."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.model.losses import MarginLoss
from bench_mtl.model.margins import MULTICLASS_LOSSES, MulticlassFit, multiclass_fit

pytestmark = pytest.mark.numerics

N, K = 12, 4


class Squared(MarginLoss):
    """(1 - rho)^2, which rises beyond 1: its u may be negative."""

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float | None] = 2.0
    lower: ClassVar[float] = -np.inf

    def value(self, margins: Array) -> Array:
        return (1.0 - margins) ** 2

    def dual(self, margins: Array) -> Array:
        return 2.0 * (1.0 - margins)

    def gain(self, u: Array) -> Array:
        return u - 0.25 * u * u

    def gain_derivative(self, u: Array) -> Array:
        return 1.0 - 0.5 * u


def fit_of(loss: str | MarginLoss, seed: int = 0) -> tuple[MulticlassFit, Array]:
    rng = np.random.default_rng(seed)
    design = SharedDesign(rng.standard_normal((N, 3)), K)
    return multiclass_fit(design, rng.integers(0, K - 1, N), loss), rng.standard_normal((N, K))  # the last class has no example


@pytest.mark.parametrize("loss", [*MULTICLASS_LOSSES, Squared()], ids=lambda loss: getattr(loss, "name", loss))
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-320, 1e-100, 1e-3, 1.0, 1e3, 1e100]))
def test_no_dual_point_gains_more_than_the_loss(loss: str | MarginLoss, seed: int, scale: float) -> None:
    fit, S = fit_of(loss, seed)
    U = fit.admissible(scale * np.random.default_rng(seed).standard_normal((N, K)))
    assert np.all(U[np.arange(N), fit.classes] == 0.0)
    assert np.allclose(fit.admissible(U), U, rtol=1e-12)
    normal = fit.normalised(U)
    assert np.all(np.isfinite(normal))
    R = fit.residuals(normal)
    assert fit.gain(normal) - float((R * S).sum()) <= fit.value(S) * (1 + 1e-9)
    # The best multiple is one of those that may be taken, and none on a grid is better.
    best = fit.enclose_gain(normal, 0.7).ends[0]
    gains = [fit.gain(fit.admissible(c * normal)) for c in np.linspace(0.0, 0.7, 30) if np.allclose(fit.admissible(c * normal), c * normal)]
    assert best >= max(gains) - 1e-9


@pytest.mark.parametrize("step", [1e-3, 1.0, 50.0])
def test_the_prox_of_the_hinge_is_cvxpys(step: float) -> None:
    import cvxpy as cp

    fit, S = fit_of("hinge")
    found, U = fit.prox(S, step)
    Z = cp.Variable(S.shape)
    losses = [cp.max((np.arange(K) != y) * 1.0 + Z[i] - Z[i, y]) for i, y in enumerate(fit.classes)]
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(Z - S) + step / N * sum(losses))).solve(solver="CLARABEL")
    assert np.allclose(found, Z.value, atol=1e-5)
    assert fit.gain(U) - float((fit.residuals(U) * found).sum()) == pytest.approx(fit.value(found), abs=1e-9)
    assert np.allclose(found, S + step * fit.residuals(U), atol=1e-12)
