"""Weights of examples are numbers of copies: the same optimum, the same bound, and a refusal where that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from bench_mtl.core.errors import InputError
from bench_mtl.estimators import (
    ASOClassifier,
    DirtyClassifier,
    L1BallClassifier,
    L1InfClassifier,
    L2BallClassifier,
    LinearSVMMultiTaskClassifier,
    MatrixNormalClassifier,
    MTRLClassifier,
    OneNormClassifier,
    RidgeMultiTaskClassifier,
    SparseLowRankClassifier,
    TraceNormClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
LABELS = (X @ RNG.standard_normal((4, 2)) + 0.5 * RNG.standard_normal((40, 2)) > 0.0).astype(int)
WEIGHTS = np.arange(40) % 3
ROWS = np.repeat(np.arange(40), WEIGHTS)

#: Squares, for which any weights go into the rows.
SQUARES = (
    DirtyClassifier(0.1, 0.1),
    DirtyClassifier(3.0, 3.0, reduction="sum"),
    L1BallClassifier(0.5, loss="squared"),
    L1InfClassifier(0.5, loss="squared"),
    L1InfClassifier(penalty=0.1, loss="squared"),
    MTRLClassifier(),
    OneNormClassifier(),
    RidgeMultiTaskClassifier(),
    SparseLowRankClassifier(),
    TraceNormClassifier(0.5),
)

#: All other losses: an example of weight 3 is three examples.
OTHERS = (
    ASOClassifier(loss="modified_huber", n_components=1),
    DirtyClassifier(0.1, 0.1, loss="logistic"),
    L1BallClassifier(0.5),
    L1InfClassifier(0.5),
    L1InfClassifier(penalty=1.0, reduction="sum"),
    L1InfClassifier(0.5, loss="logistic"),
    L2BallClassifier(0.5),
    LinearSVMMultiTaskClassifier(random_state=0),
    SparseLowRankClassifier(loss="logistic"),
)


def title(model: Any) -> str:
    return " ".join(f"{model}".split())


@pytest.mark.parametrize("model", SQUARES, ids=title)
def test_weighted_squares_have_the_optimum_and_the_bound_of_copies(model: Any) -> None:
    model = clone(model).set_params(tol=1e-7, fit_intercept=True)
    weighted = clone(model).fit(X, LABELS, sample_weight=WEIGHTS)
    copies = clone(model).fit(X[ROWS], LABELS[ROWS])
    assert max(weighted.dual_bound_, copies.dual_bound_) <= min(weighted.objective_, copies.objective_) * (1.0 + 1e-12)
    assert weighted.objective_ == pytest.approx(copies.objective_, rel=2e-7)
    assert weighted.dual_bound_ == pytest.approx(copies.dual_bound_, rel=2e-7)
    fractions = clone(model).fit(sp.csr_array(X), LABELS, sample_weight=0.3 + WEIGHTS)
    assert fractions.gap_ <= 1e-7


def test_what_has_no_bound_weighs_examples_too() -> None:
    for model in (ASOClassifier(n_components=1, tol=1e-8), MatrixNormalClassifier(tol=1e-8)):
        weighted = clone(model).fit(X, LABELS, sample_weight=2.5 * WEIGHTS)  # a mean: only shares count
        np.testing.assert_allclose(weighted.coef_, clone(model).fit(X[ROWS], LABELS[ROWS]).coef_, atol=1e-3)


@pytest.mark.parametrize("model", OTHERS, ids=title)
def test_weights_of_other_losses_are_copies(model: Any) -> None:
    weighted = clone(model).fit(X, LABELS, sample_weight=WEIGHTS)
    copies = clone(model).fit(X[ROWS], LABELS[ROWS])
    np.testing.assert_array_equal(weighted.coef_, copies.coef_)
    assert weighted.objective_ == copies.objective_ if hasattr(copies, "objective_") else True
    with pytest.raises(InputError, match=r"^sample_weight must be whole numbers with the loss '\w+' \(only squares .* but one is 0.5$"):
        clone(model).fit(X, LABELS, sample_weight=0.5 + WEIGHTS)


def test_the_formula_of_weighted_hinges_and_logistic_losses() -> None:
    signs = 2 * LABELS - 1
    hinge = L1InfClassifier(0.5).fit(X, LABELS, sample_weight=WEIGHTS)
    losses = np.maximum(0.0, 1.0 - signs * (X @ hinge.coef_.T + hinge.intercept_)).sum(axis=1)
    assert hinge.objective_ == pytest.approx(float(WEIGHTS @ losses) / WEIGHTS.sum(), rel=1e-12)
    logistic = SparseLowRankClassifier(loss="logistic").fit(X, LABELS, sample_weight=WEIGHTS)
    losses = np.logaddexp(0.0, -signs * (X @ logistic.coef_.T + logistic.intercept_)).sum(axis=1)
    assert logistic.objective_ == pytest.approx(float(WEIGHTS @ losses) + np.abs(logistic.sparse_coef_).sum(), rel=1e-12)


def test_tasks_with_rows_of_their_own() -> None:
    Xs, ys, weights = [X[:25], X[10:]], [LABELS[:25, 0], LABELS[10:, 1]], [WEIGHTS[:25], None]
    rows = np.repeat(np.arange(25), WEIGHTS[:25])
    for model in (L1InfClassifier(0.5), L1InfClassifier(0.5, loss="squared", tol=1e-7)):
        weighted = clone(model).fit_tasks(Xs, ys, weights)
        copies = clone(model).fit_tasks([X[rows], Xs[1]], [ys[0][rows], ys[1]])
        assert weighted.objective_ == pytest.approx(copies.objective_, rel=2e-7)
    with pytest.raises(InputError, match=r"sample_weight of task 1 must be whole numbers with the loss 'hinge'"):
        L1InfClassifier(0.5).fit_tasks(Xs, ys, [None, np.full(30, 0.5)])
    with pytest.raises(InputError, match="sample_weight must have an entry for each of the 2 tasks, but has 1"):
        L1InfClassifier(0.5).fit_tasks(Xs, ys, [None])
    with pytest.raises(InputError, match="sample_weight must be a list with an entry for each task, not float"):
        L1InfClassifier(0.5).fit_tasks(Xs, ys, 2.0)


def test_an_example_of_weight_0_is_none() -> None:
    three = np.array(["a", "b", "c"])[np.arange(40) % 3]
    model = OneNormClassifier().fit(X, three, sample_weight=(three != "b").astype(float))
    assert model.classes_.tolist() == ["a", "c"]
    with pytest.raises(InputError, match="y has only one class, 'a'"):
        OneNormClassifier().fit(X, three, sample_weight=three == "a")
    for wrong, message in (
        (-WEIGHTS, "[Nn]egative"),
        (0 * WEIGHTS, "zero"),
        (WEIGHTS[:3], "shape"),
        (1e9 + WEIGHTS, "add up"),
    ):
        with pytest.raises(InputError, match=f"sample_weight.*{message}"):
            L1InfClassifier(0.5).fit(X, LABELS, sample_weight=wrong)
