"""Alternating structure optimisation: each fit against one of all unknowns at once, falling objectives, the limits of the model."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from bench_mtl.data import TaskData
from bench_mtl.estimators import ASOClassifier
from bench_mtl.estimators.alternating_structure import LOSSES, _Ridge

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 8))
Y = X @ RNG.standard_normal((8, 2)) @ RNG.standard_normal((2, 5)) + RNG.standard_normal((30, 5))
Xs = [RNG.standard_normal((size, 8)) for size in (4, 20, 9, 8, 12)]
ys = [A @ RNG.standard_normal(8) for A in Xs]
DATA = {
    "shared": TaskData.shared(X, Y),
    "wide": TaskData.shared(X[:5], Y[:5]),
    "CSR": TaskData.shared(sp.csr_array(X * (RNG.random(X.shape) < 0.4)), Y),
    "per task": TaskData.per_task(Xs, ys),
    "per task CSR": TaskData.per_task([sp.csr_array(A) for A in Xs], ys),
}


def fitted(
    data: TaskData, *, penalty: float = 0.1, h: int = 2, loss: str = "squared", tol: float = 1e-9, most: int = 200
) -> SimpleNamespace:
    found = ASOClassifier(penalty, h, loss=loss, tol=tol, max_iter=most, fit_intercept=False)._fit_data(data)
    return SimpleNamespace(**vars(found), structure=found.attributes["structure_"], objectives=found.attributes["objectives_"])


def losses(data: TaskData, W: np.ndarray, loss: str) -> float:
    """Means over the examples of each task, by the formulas of the docstring."""
    formulas = {
        "squared": lambda f, y: (y - f) ** 2,
        "logistic": lambda f, y: np.log(1.0 + np.exp(-y * f)),
        "modified_huber": lambda f, y: np.where(y * f >= -1.0, np.maximum(0.0, 1.0 - y * f) ** 2, -4.0 * y * f),
    }
    tasks = [data.task(k) for k in range(data.n_tasks)]
    return sum(float(formulas[loss](A @ w, y).mean()) for (A, y), w in zip(tasks, W.T, strict=True))


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (6, 6)])
@pytest.mark.parametrize("h", [0, 1, 3])
def test_a_fit_is_least_squares_of_both_parts_at_once(shape: tuple[int, int], h: int) -> None:
    rng = np.random.default_rng(h)
    A, y = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    Theta = np.linalg.qr(rng.standard_normal((shape[1], h)))[0].T
    n, d = shape
    stacked = np.vstack([np.hstack([A, A @ Theta.T]) / np.sqrt(n), np.hstack([np.sqrt(0.3) * np.eye(d), np.zeros((d, h))])])
    both = np.linalg.lstsq(stacked, np.vstack([y / np.sqrt(n), np.zeros((d, 2))]), rcond=None)[0]
    expected = both[:d] + Theta.T @ both[d:]
    for design in (A, sp.csr_array(A)):
        assert np.allclose(_Ridge(design, 0.3).best(y, Theta), expected, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", DATA)
def test_the_objective_is_what_it_says_and_never_rises(name: str, loss: str) -> None:
    data = DATA[name]
    data = data if loss == "squared" else TaskData(data.design, np.where(data.targets > 0.0, 1.0, -1.0))
    found = fitted(data, loss=loss)
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(found.objectives))
    assert len(found.objectives) > 2
    own = found.coefficients - found.structure.T @ (found.structure @ found.coefficients)
    value = losses(data, found.coefficients, loss) + 0.1 * float((own**2).sum())
    assert found.objectives[-1] == pytest.approx(value, rel=1e-9)
    assert np.allclose(found.structure @ found.structure.T, np.eye(2))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_end_is_stationary(loss: str) -> None:
    """No descent is left in the weights or in rotations of the structure: L-BFGS from there finds nothing."""
    # Labels at random are not separable in a plane: there the free weights of the labels' losses would grow for ever.
    labels = np.where(np.random.default_rng(2).random(Y.shape) < 0.5, 1.0, -1.0)
    data = DATA["shared"] if loss == "squared" else TaskData.shared(X, labels)
    found = fitted(data, loss=loss, tol=1e-10, most=3000)

    def objective(w: np.ndarray) -> float:
        W = w.reshape(8, 5)
        tail = np.linalg.svd(W, compute_uv=False)[2:]
        return losses(data, W, loss) + 0.1 * float(tail @ tail)

    assert objective(found.coefficients.ravel()) == pytest.approx(found.objectives[-1])
    better = scipy.optimize.minimize(objective, found.coefficients.ravel(), method="L-BFGS-B", options={"maxiter": 15}).fun
    assert found.objectives[-1] <= better * (1 + 1e-5)
