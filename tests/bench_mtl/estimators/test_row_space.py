"""Wide data in the space of their rows: the same optimum and the same bound, found with fewer numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bench_mtl.core.types import Iterate
from bench_mtl.data import TaskData
from bench_mtl.estimators import ASOClassifier, ASORegressor, MTRLClassifier, MTRLRegressor, TraceNormClassifier, TraceNormRegressor
from bench_mtl.estimators.linear import LinearTasks
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.task_relationships import TaskRelationships
from bench_mtl.problems.trace_norm_glm import TraceNormGLM

RNG = np.random.default_rng(0)
N, D, M = 12, 60, 4
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.5)
Y = RNG.standard_normal((N, M))
LABELS = np.where(Y > 0.0, 1.0, -1.0)
Xs = [X[:5], X[3:10], X[7:]]
ys = [RNG.standard_normal(len(A)) for A in Xs]
WIDE = {
    "dense": TaskData.shared(X, Y),
    "CSR": TaskData.shared(sp.csr_array(X), Y),
    "duplicate rows": TaskData.shared(np.concatenate([X, X]), np.concatenate([Y, -2.0 * Y])),
    "a row of zeros": TaskData.shared(np.concatenate([X, 0.0 * X[:1]]), np.concatenate([Y, Y[:1]])),
    "one row": TaskData.shared(X[:1], Y[:1]),
    "tiny": TaskData.shared(1e-200 * X, Y),
    "per task": TaskData.per_task(Xs, ys),
    "per task CSR": TaskData.per_task([sp.csr_array(A) for A in Xs], ys),
}


def spaces(data: TaskData) -> list[RowSpace]:
    found = [RowSpace.of(data, squares=squares) for squares in (False, True)]
    return [space for space in found if space is not None]


def pairs(name: str) -> list[tuple[Problem, Problem, RowSpace]]:
    """A problem on wide data and the reduced one, for each that an estimator reduces."""
    data = WIDE[name]
    found: list[tuple[Problem, Problem, RowSpace]] = []
    for squares in (False, True):
        space = RowSpace.of(data, squares=squares)
        assert space is not None
        found.append((TraceNormGLM(data, radius=0.3), TraceNormGLM(space.data, radius=0.3), space))
        found.append((TraceNormGLM(data, penalty=0.5), TraceNormGLM(space.data, penalty=0.5), space))
        found.append((TaskRelationships(data, ridge=0.1, coupling=0.2), TaskRelationships(space.data, ridge=0.1, coupling=0.2), space))
    return found


@pytest.mark.parametrize("name", [name for name in WIDE if name != "tiny"])
def test_certificates_are_those_of_the_full_problem(name: str) -> None:
    """At any coordinates and any dual point: so every gap that is proven of the reduced problem is one of the full problem."""
    for full, reduced, space in pairs(name):
        A, r = 0.1 * RNG.standard_normal(reduced.point_shape), RNG.standard_normal(reduced.dual_shape)
        for dual in (None, r):
            there = reduced.certify(Iterate(A, dual))
            here = full.certify(Iterate(space.coefficients(A), space.dual(dual)))
            assert here.primal == pytest.approx(there.primal, rel=1e-9)
            assert here.dual == pytest.approx(there.dual, rel=1e-9, abs=1e-9)


MODELS: dict[str, LinearTasks] = {
    "TraceNormRegressor": TraceNormRegressor(0.2, tol=1e-6),
    "TraceNormRegressor, penalty": TraceNormRegressor(penalty=2.0, tol=1e-6, fit_intercept=True),
    "TraceNormClassifier": TraceNormClassifier(0.2, tol=1e-6),
    "TraceNormClassifier, logistic": TraceNormClassifier(0.4, loss="logistic", tol=1e-6, fit_intercept=True),
    "MTRLRegressor": MTRLRegressor(tol=1e-6),
    "MTRLClassifier": MTRLClassifier(0.1, 0.2, tol=1e-6, fit_intercept=True),
    "MTRLClassifier, the paper's method": MTRLClassifier(0.1, 0.2, solver="alternating_relationships"),
    "ASORegressor": ASORegressor(n_components=2, tol=1e-6),
    "ASOClassifier": ASOClassifier(n_components=1, loss="logistic", tol=1e-2, fit_intercept=True),
}


def without_reduction(monkeypatch: pytest.MonkeyPatch, model: LinearTasks, fit: Any) -> LinearTasks:
    with monkeypatch.context() as patched:
        patched.setattr(RowSpace, "of", staticmethod(lambda data, *, squares: None))
        return fit(clone(model))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
@pytest.mark.parametrize("own_rows", [False, True], ids=["shared", "per task"])
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_finds_what_it_finds_with_all_features(name: str, own_rows: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, labels = MODELS[name], "Classifier" in name
    if own_rows and model.get_params().get("solver"):
        model = clone(model).set_params(solver=None)

    def fit(one: Any) -> Any:
        if own_rows:
            rows = [sp.csr_array(A) if sparse else A for A in Xs]
            return one.fit_tasks(rows, [np.where(np.arange(len(y)) % 2, 1, 0) if labels else y for y in ys])
        return one.fit(sp.csr_array(X) if sparse else X, LABELS if labels else Y)

    reduced, plain = fit(clone(model)), without_reduction(monkeypatch, model, fit)
    assert reduced.converged_
    assert plain.converged_
    assert reduced.coef_.shape == plain.coef_.shape
    assert reduced.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    if hasattr(plain, "gap_"):
        assert reduced.gap_ <= model.get_params()["tol"]
        assert reduced.dual_bound_ <= plain.objective_ * (1 + 1e-12)
    else:
        assert np.allclose(reduced.structure_ @ reduced.structure_.T, np.eye(reduced.n_components_), atol=1e-9)
        assert reduced.structure_.shape == plain.structure_.shape


def test_rows_almost_the_same_are_fitted_to_the_gap_that_is_asked_for() -> None:
    """The basis has lost a direction that a small gap needs: the fit goes on with all features."""
    near = np.concatenate([X, X + 1e-7 * RNG.standard_normal(X.shape)])
    targets = np.concatenate([Y, Y])
    model = TraceNormRegressor(penalty=1.0, tol=1e-9).fit(near, targets)
    assert model.gap_ <= 1e-9


def test_only_where_it_pays() -> None:
    narrow = TaskData.shared(RNG.standard_normal((20, 30)), RNG.standard_normal((20, 2)))
    nothing = TaskData.shared(np.zeros((2, 30)), RNG.standard_normal((2, 2)))
    many = TaskData.shared(sp.random_array((100, 210), density=0.1, format="csr", rng=0), RNG.standard_normal((100, 2)))
    for data in (narrow, nothing):
        assert spaces(data) == []
    assert [space.turn is None for space in spaces(many)] == [False]
