"""Wide data in the space of their rows: the same optimum and the same bound, found with fewer numbers."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bench_mtl import Iterate, TaskData
from bench_mtl.estimators import ASOClassifier, ASORegressor, MTRLClassifier, MTRLRegressor, TraceNormClassifier, TraceNormRegressor
from bench_mtl.estimators.row_space import RowSpace
from bench_mtl.problems import TaskRelationships, TraceNormGLM

RNG = np.random.default_rng(0)
N, D, M = 12, 60, 4
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.5)
Y = RNG.standard_normal((N, M))
Xs = [X[:5], X[3:10], X[7:]]
ys = [RNG.standard_normal(len(A)) for A in Xs]
WIDE = {
    "dense": TaskData.shared(X, Y),
    "CSR": TaskData.shared(sp.csr_array(X), Y),
    "duplicate rows": TaskData.shared(np.concatenate([X, X]), np.concatenate([Y, -2.0 * Y])),
    "a row of zeros": TaskData.shared(np.concatenate([X, 0.0 * X[:1]]), np.concatenate([Y, Y[:1]])),
    "one row": TaskData.shared(X[:1], Y[:1]),
    "per task": TaskData.per_task(Xs, ys),
    "per task CSR": TaskData.per_task([sp.csr_array(A) for A in Xs], ys),
}
#: The problems that estimators reduce.
PROBLEMS: tuple[tuple[Any, dict[str, float]], ...] = (
    (TraceNormGLM, {"radius": 0.3}),
    (TraceNormGLM, {"penalty": 0.5}),
    (TaskRelationships, {"ridge": 0.1, "coupling": 0.2}),
)


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("name", WIDE)
def test_certificates_are_those_of_the_full_problem(name: str, squares: bool) -> None:
    """At any coordinates and any dual point: so every gap that is proven of the reduced problem is one of the full problem."""
    space = RowSpace.of(WIDE[name], squares=squares)
    for problem, parameters in PROBLEMS:
        full, reduced = problem(WIDE[name], **parameters), problem(space.data, **parameters)
        A, r = 0.1 * RNG.standard_normal(reduced.point_shape), RNG.standard_normal(reduced.dual_shape)
        for dual in (None, r):
            there = reduced.certify(Iterate(A, dual))
            here = full.certify(Iterate(space.coefficients(A), space.dual(dual)))
            assert here.primal == pytest.approx(there.primal, rel=1e-9)
            assert here.dual == pytest.approx(there.dual, rel=1e-9, abs=1e-9)


MODELS: dict[str, Any] = {
    "TraceNormRegressor": TraceNormRegressor(0.2, tol=1e-6),
    "TraceNormRegressor, penalty": TraceNormRegressor(penalty=2.0, tol=1e-6),
    "TraceNormClassifier": TraceNormClassifier(0.2, tol=1e-6),
    "TraceNormClassifier, logistic": TraceNormClassifier(0.4, loss="logistic", tol=1e-6),
    "MTRLRegressor": MTRLRegressor(tol=1e-6),
    "MTRLClassifier": MTRLClassifier(0.1, 0.2, tol=1e-6, fit_intercept=False),
    "ASORegressor": ASORegressor(n_components=2, tol=1e-6),
    "ASOClassifier": ASOClassifier(n_components=1, loss="logistic", tol=1e-2),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
@pytest.mark.parametrize("own_rows", [False, True], ids=["shared", "per task"])
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_finds_what_it_finds_with_all_features(name: str, own_rows: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, labels = sp.csr_array if sparse else np.asarray, "Classifier" in name

    def fitted() -> Any:
        model = clone(MODELS[name])
        if own_rows:
            return model.fit_tasks([kind(A) for A in Xs], [np.arange(len(y)) % 2 if labels else y for y in ys])
        return model.fit(kind(X), Y > 0.0 if labels else Y)

    reduced = fitted()
    monkeypatch.setattr(RowSpace, "of", staticmethod(lambda data, *, squares: None))
    plain = fitted()
    assert reduced.coef_.shape == plain.coef_.shape
    assert reduced.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    if hasattr(plain, "gap_"):
        assert reduced.gap_ <= reduced.tol
        assert reduced.dual_bound_ <= plain.objective_ * (1 + 1e-12)
    else:
        assert np.allclose(reduced.structure_ @ reduced.structure_.T, np.eye(reduced.n_components_), atol=1e-9)
        assert reduced.structure_.shape == plain.structure_.shape


def test_rows_almost_the_same_are_fitted_to_the_gap_that_is_asked_for() -> None:
    """The basis has lost a direction that a small gap needs: the fit goes on with all features."""
    near = np.concatenate([X, X + 1e-7 * RNG.standard_normal(X.shape)])
    model = TraceNormRegressor(penalty=1.0, tol=1e-9).fit(near, np.concatenate([Y, Y]))
    assert model.gap_ <= 1e-9


def test_only_where_it_pays() -> None:
    for X, pays in ((RNG.standard_normal((20, 30)), (False, False)), (np.zeros((2, 30)), (False, False)),
                    (sp.random_array((100, 210), density=0.1, format="csr", rng=0), (False, True))):  # fmt: skip
        data = TaskData.shared(X, RNG.standard_normal((X.shape[0], 2)))
        assert tuple(RowSpace.of(data, squares=squares) is not None for squares in (False, True)) == pays
