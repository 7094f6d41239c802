"""Coordinate descent: against sweeps by hand, the search on the penalty, its counts, its edges, its options."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.coordinate_descent import CoordinateDescent, kernels

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 8))
Y = X @ (RNG.standard_normal((8, 3)) * (RNG.random((8, 3)) < 0.5)) + 0.3 * RNG.standard_normal((20, 3))
LIMITS = Limits(seconds=20.0, iterations=2000)


def lasso_by_hand(X: np.ndarray, y: np.ndarray, penalty: float, nonneg: bool = False) -> np.ndarray:
    """Cyclic coordinate descent, entry by entry."""
    w = np.zeros(X.shape[1])
    for _ in range(300):
        for j in range(len(w)):
            w[j] = 0.0
            product = X[:, j] @ (y - X @ w)
            size = max(0.0, (product if nonneg else abs(product)) - penalty)
            w[j] = size * (1.0 if product > 0 else -1.0) / (X[:, j] @ X[:, j])
    return w


def solved(problem: L1BallGLM, target: float = 1e-10, **options: object) -> np.ndarray:
    record = run(problem, CoordinateDescent(**options), tolerance=Tolerance(target), limits=LIMITS)  # type: ignore[arg-type]
    assert record.status is Status.VERIFIED, record.reason
    assert record.solution is not None
    return record.solution


@pytest.mark.parametrize("gram", ["always", "never"])
@pytest.mark.parametrize("nonneg", [False, True])
def test_a_penalised_problem_is_the_lasso_of_every_task(gram: str, nonneg: bool) -> None:
    W = solved(L1BallGLM(TaskData.shared(X, Y), penalty=2.0, nonneg=nonneg), 1e-13, gram=gram)
    expected = np.stack([lasso_by_hand(X, y, 2.0, nonneg) for y in Y.T], axis=1)
    assert np.allclose(W, expected, atol=1e-5)
    assert np.array_equal(W != 0.0, expected != 0.0)


@pytest.mark.parametrize("balls", ["task", "all"])
def test_a_radius_finds_the_penalty_that_it_came_from(balls: str) -> None:
    expected = np.stack([lasso_by_hand(X, y, 2.0) for y in Y.T], axis=1)
    if balls == "all":
        assert np.allclose(solved(L1BallGLM(TaskData.shared(X, Y), radius=float(np.abs(expected).sum()), balls="all"), 1e-12), expected)
        return
    for k in range(3):
        problem = L1BallGLM(TaskData.shared(X, Y[:, k]), radius=float(np.abs(expected[:, k]).sum()))
        assert np.allclose(solved(problem, 1e-12)[:, 0], expected[:, k], atol=1e-6)


def test_the_end_is_on_the_ball_and_within_one_piece_of_the_path() -> None:
    """The combination of two fits of one piece is exact: far more digits than the last tolerance has."""
    problem = L1BallGLM(TaskData.shared(X, Y[:, 0]), radius=1.0)
    gaps = [problem.certify(iterate).relative_gap for iterate in islice(CoordinateDescent().steps(problem), 12)]
    assert min(gaps) < 1e-9
    W = solved(problem, 1e-12)
    assert np.abs(W).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("form", [{"radius": 1.0}, {"radius": 1.0, "balls": "all"}, {"penalty": 1.0}, {"radius": 0.8, "nonneg": True}])
def test_sparse_and_per_task_designs_give_the_same(form: dict[str, object]) -> None:
    thin = X * (np.abs(X) > 0.6)
    expected = solved(L1BallGLM(TaskData.shared(thin, Y), **form), 1e-12)  # type: ignore[arg-type]
    for data in (TaskData.shared(sp.csr_array(thin), Y), TaskData.per_task([sp.csr_array(thin)] * 3, list(Y.T))):
        assert np.allclose(solved(L1BallGLM(data, **form), 1e-12), expected, atol=1e-5)  # type: ignore[arg-type]


def test_orientation_flips_columns_task_by_task() -> None:
    flips = np.where(RNG.random((8, 3)) < 0.5, -1.0, 1.0)
    design = TaskData.shared(X, Y).design
    W = solved(L1BallGLM(TaskData(design, Y, orientation=flips), penalty=1.0, nonneg=True), 1e-13)
    for k in range(3):
        assert np.allclose(W[:, k], flips[:, k] * lasso_by_hand(X * flips[:, k], Y[:, k], 1.0, True), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [(slice(None), slice(0, 1)), (slice(0, 4), slice(None)), (slice(0, 1), slice(None)), ([0, 0, 0, 1, 1, 2], slice(None))],
    ids=["one feature", "wide", "one example", "duplicate rows"],
)
@pytest.mark.parametrize(
    "form",
    [
        lambda u: {"radius": 0.3 / u},
        lambda u: {"radius": 0.0},
        lambda u: {"radius": 1e3 / u},
        lambda u: {"penalty": 1e9 * u * u},
        lambda u: {"penalty": u},
    ],
)
def test_edges(scale: float, rows: object, columns: object, form: Callable[[float], dict[str, float]]) -> None:
    """Among them radii that do not bind, to where the penalty has to fall to 0."""
    small = scale * X[rows][:, columns]  # type: ignore[index]
    solved(L1BallGLM(TaskData.shared(small, Y[rows]), **form(scale)), 1e-6)  # type: ignore[index,arg-type]


def test_nothing_to_fit() -> None:
    empty = X.copy()
    empty[:, 3] = 0.0
    assert np.all(solved(L1BallGLM(TaskData.shared(empty, Y), radius=5.0))[3] == 0.0)
    for data in (TaskData.shared(0.0 * X, Y), TaskData.shared(sp.csr_array(0.0 * X), Y), TaskData.shared(X, 0.0 * Y)):
        for form in ({"radius": 1.0}, {"penalty": 1.0}, {"penalty": 0.0}):
            assert not solved(L1BallGLM(data, **form)).any()  # type: ignore[arg-type]
    assert not solved(L1BallGLM(TaskData.shared(np.abs(X), -np.abs(Y)), radius=1.0, nonneg=True)).any()


def test_no_penalty_is_least_squares() -> None:
    """Its bound is 0 unless the fit is exact, so nothing is proven; the point is right."""
    problem = L1BallGLM(TaskData.shared(X, Y), penalty=0.0)
    last = list(islice(CoordinateDescent().steps(problem), 30))[-1]
    assert np.allclose(last.primal, np.linalg.lstsq(X, Y)[0], atol=1e-6)


def test_the_search_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is a fit; its work the sweeps, a pass and a half more, and at the beginning a product with X^T for each of two things."""
    monkeypatch.setattr("bench_mtl.solvers.coordinate_descent.fits.SWEEPS", 1)
    problem = L1BallGLM(TaskData.shared(X, Y[:, 0]), radius=1.0)
    iterates = list(islice(CoordinateDescent(gram="never").steps(problem), 6))
    assert [it.step for it in iterates] == list(range(6))
    assert [it.work for it in iterates] == [0.0, *(1.0 + 2.5 * step for step in range(1, 6))]
    with_gram = next(islice(CoordinateDescent(gram="always").steps(problem), 1, None))
    assert with_gram.work == pytest.approx(8 / 2 + 1.0 + 1.5 + 8 / 40)


def test_a_start_is_used() -> None:
    problem = L1BallGLM(TaskData.shared(X, Y), radius=1.0)
    good = solved(problem, 1e-10)
    record = run(problem, CoordinateDescent(), tolerance=Tolerance(1e-8), start=good)
    assert record.samples[-1].step <= 3


def logistic_by_hand(X: np.ndarray, y: np.ndarray, penalty: float, nonneg: bool = False) -> np.ndarray:
    """Mean logistic loss: coordinate by coordinate a step on the bound of second order, whose curvature is a quarter of the squares."""
    n, w = len(y), np.zeros(X.shape[1])
    for _ in range(4000):
        for j in range(len(w)):
            curvature = 0.25 * X[:, j] @ X[:, j] / n
            ahead = w[j] + X[:, j] @ (y / (1.0 + np.exp(y * (X @ w)))) / n / curvature
            size = max(0.0, (ahead if nonneg else abs(ahead)) - penalty / curvature)
            w[j] = size * (1.0 if ahead > 0.0 else -1.0)
    return w


LABELS = np.where(Y > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("share", [1.0, 0.5, 1e-3])
def test_the_dual_value_of_a_logistic_fit_is_a_sum_of_entropies(share: float) -> None:
    """By their definition, from the probabilities of the other label; p = 0 and p = 1 have none."""
    y, s, t = LABELS[:, 0], np.linspace(0.5, 1.5, len(LABELS)), np.append(X[1:, 0], 800.0)
    p = share / (1.0 + np.exp(np.minimum(y * t, 700.0)))
    entropies = [-sum(q * np.log(q) for q in (one, 1.0 - one) if q > 0.0) for one in p]
    assert kernels._dual(y, s, t, share) == pytest.approx(float(s @ entropies), rel=1e-12)


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_logistic_fits_are_those_of_small_steps_by_hand(is_sparse: bool, nonneg: bool) -> None:
    expected = logistic_by_hand(X, LABELS[:, 0], 0.03, nonneg)
    assert 0 < np.count_nonzero(expected) < 8
    data = TaskData.shared(sp.csr_array(X) if is_sparse else X, LABELS[:, 0])
    W = solved(L1BallGLM(data, loss="logistic", penalty=0.03, nonneg=nonneg), 1e-12)
    assert np.allclose(W[:, 0], expected, atol=1e-5)
    assert np.array_equal(W[:, 0] != 0.0, expected != 0.0)
    radius = float(np.abs(expected).sum())
    again = solved(L1BallGLM(data, loss="logistic", radius=radius, nonneg=nonneg), 1e-10)
    assert np.allclose(again[:, 0], expected, atol=1e-4)


@pytest.mark.parametrize("form", [{"radius": 2.0}, {"radius": 4.0, "balls": "all"}, {"penalty": 0.05}, {"radius": 0.0}, {"radius": 1e3}])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_logistic_optima_are_proven_at_any_scale(form: dict[str, object], scale: float) -> None:
    """Among them a radius so large that the labels are almost separated, by margins of hundreds."""
    scaled = {
        name: value / scale if name == "radius" else value * scale if name == "penalty" else value  # type: ignore[operator]
        for name, value in form.items()
    }
    solved(L1BallGLM(TaskData.per_task([scale * X] * 3, list(LABELS.T)), loss="logistic", **scaled), 1e-6)  # type: ignore[arg-type]


def test_other_problems_are_refused_with_a_sentence() -> None:
    labels = np.where(Y > 0.0, 1.0, -1.0)
    classes = np.where(np.arange(3) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
    words = "coordinate_descent is for the squared and the logistic loss, and the loss of this l1_ball_glm is multiclass"
    assert CoordinateDescent().incompatibility(L1BallGLM(TaskData.shared(X, classes), loss="multiclass", radius=1.0)) == words
    logistic = L1BallGLM(TaskData.shared(X, labels), loss="logistic", radius=1.0)
    assert CoordinateDescent().incompatibility(logistic) is None
    assert "is for the squared loss" in str(CoordinateDescent(gram="always").incompatibility(logistic))
    assert "takes L1Form" in str(CoordinateDescent().incompatibility(L1InfHinge(TaskData.shared(X, labels), radius=1.0)))
    thin = L1BallGLM(TaskData.shared(sp.csr_array(X), Y), radius=1.0)
    assert "takes no X^T X" in str(CoordinateDescent(gram="always").incompatibility(thin))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerance": 0.0}, "tolerance must be finite and above 0"),
        ({"reduction": 1.0}, "reduction must be below 1"),
        ({"gram": "sometimes"}, "gram must be one of auto, always, never"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CoordinateDescent(**options)  # type: ignore[arg-type]
