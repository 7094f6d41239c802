"""Peers: that their objectives are ours to the last factor, what they refuse, and what is made of their answers."""

import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Iterate, Status, TaskData, Tolerance, run
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.losses import Squared
from bench_mtl.model.norms import L1
from bench_mtl.model.protocols import Answer, Problem, Solver
from bench_mtl.problems import L1BallGLM, L1InfGLM, RidgeHinge
from bench_mtl.solvers import Celer, Cyanure, DualCoordinateAscent, Skglm, Sklearn, Spams
from bench_mtl.solvers.peers.hinge_duals import hinge_dual_of
from bench_mtl.solvers.peers.peer import L1Peer, Peer
from bench_mtl.solvers.peers.pieces import tiny

#: The gap that an answer at the tightest tolerance must have, and that of a penalty or a radius off by a hundredth must not.
BAR = 1e-6

PEERS: tuple[Peer, ...] = (Celer(), Cyanure(), Sklearn(), Sklearn(method="saga"), Skglm(), Spams(), Spams(method="lars"))

Make = Callable[[float], Problem]


class Weighted(L1BallGLM):
    """The lasso with a weight for every example."""

    def __init__(self, data: TaskData, weights: Any, penalty: float) -> None:
        FitProblem.__init__(self, data, Squared(), weights)
        self.balls = "task"
        self.radius, self.penalty = self.constrain_or_penalise(L1("all", False, None), data, None, penalty)


def data_of(shape: tuple[int, int], is_sparse: bool, *, tasks: int = 2, labels: bool = False, per_task: bool = False) -> TaskData:
    rng = np.random.default_rng(shape[0] + 2 * is_sparse)
    n, d = shape
    X: Any = rng.standard_normal(shape) * (rng.random(shape) < 0.5 if is_sparse else 1.0)
    Y = X @ (rng.standard_normal((d, tasks)) * (np.arange(d) < 6)[:, None]) + rng.standard_normal((n, tasks))
    Y = np.where(Y > 0.0, 1.0, -1.0) if labels else Y
    X = sp.csr_array(X) if is_sparse else X
    if per_task:
        sizes = [n - 4 * k for k in range(tasks)]
        return TaskData.per_task([X[:size] for size in sizes], [Y[:size, k] for k, size in enumerate(sizes)])
    return TaskData.shared(X, Y)


def objectives(shape: tuple[int, int], is_sparse: bool) -> dict[str, Make]:
    """Problems by name, each as a function of a factor of its penalty or radius."""
    real, own = data_of(shape, is_sparse), data_of(shape, is_sparse, per_task=True)
    labels, own_labels = data_of(shape, is_sparse, labels=True), data_of(shape, is_sparse, labels=True, per_task=True)
    top = L1BallGLM(real, penalty="0.1 max").penalty
    top_logistic = L1BallGLM(own_labels, loss="logistic", penalty="0.1 max").penalty
    joint, joint_sum = (L1InfGLM(real, penalty="0.1 max", reduction=reduction).penalty for reduction in ("mean", "sum"))
    weights = np.random.default_rng(3).uniform(0.5, 2.0, real.targets.shape)
    return {
        "lasso": lambda factor: L1BallGLM(real, penalty=factor * top),
        "lasso, own designs": lambda factor: L1BallGLM(own, penalty=factor * top),
        "lasso, weights": lambda factor: Weighted(real, weights, factor * top),
        "lasso, w >= 0": lambda factor: L1BallGLM(real, penalty=factor * top, nonneg=True),
        "least squares in balls": lambda factor: L1BallGLM(real, radius=2.0 * factor),
        "logistic": lambda factor: L1BallGLM(own_labels, loss="logistic", penalty=factor * top_logistic),
        "logistic in balls": lambda factor: L1BallGLM(labels, loss="logistic", radius=2.0 * factor),
        "l1inf, mean": lambda factor: L1InfGLM(real, penalty=factor * joint),
        "l1inf, sum": lambda factor: L1InfGLM(real, penalty=factor * joint_sum, reduction="sum"),
        "ridge hinge": lambda factor: RidgeHinge(own_labels, ridge=3.0 * factor),
    }


#: What each takes, and with dense X only.
TAKEN = {
    "celer": ({"lasso", "lasso, own designs", "lasso, weights", "lasso, w >= 0", "logistic"}, set()),
    "skglm": ({"lasso", "lasso, own designs", "lasso, weights", "lasso, w >= 0", "logistic"}, set()),
    "cyanure": (
        {"lasso", "lasso, own designs", "lasso, weights", "least squares in balls", "logistic", "logistic in balls", "l1inf, mean"}
        | {"l1inf, sum"},
        set(),
    ),
    "sklearn": ({"lasso", "lasso, own designs", "lasso, weights", "lasso, w >= 0", "logistic", "ridge hinge"}, set()),
    "sklearn_saga": ({"logistic"}, set()),
    "spams": ({"lasso", "lasso, own designs", "lasso, weights", "lasso, w >= 0"}, {"l1inf, mean", "l1inf, sum"}),
    "spams_lars": (set(), {"lasso", "lasso, own designs", "lasso, weights", "lasso, w >= 0", "least squares in balls"}),
}  # fmt: skip


def installed(solver: Peer) -> Peer:
    if not solver.is_installed:
        pytest.skip(f"{solver.package} is not installed")
    return solver


def answer_of(solver: Solver, problem: Problem, tolerance: float | None = None) -> Answer:
    return solver.solve(solver.build(problem), solver.tolerances[-1] if tolerance is None else tolerance, None)


def finished(answer: Answer) -> Iterate:
    """Return the answer with the dual point that its library does not offer."""
    return answer.iterate if answer.finish is None else answer.finish()


def gap_of(problem: Problem, answer: Answer) -> float:
    return problem.certify(finished(answer)).relative_gap


#: Skglm compiles for half a minute.
every_peer = pytest.mark.parametrize(
    "solver", [pytest.param(peer, id=peer.label, marks=pytest.mark.slow if peer.name == "peer_skglm" else []) for peer in PEERS]
)
dense_and_sparse = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])


@dense_and_sparse
@pytest.mark.parametrize("shape", [(30, 12), (15, 40)], ids=["n>d", "n<d"])
@every_peer
def test_the_objective_is_ours_to_the_last_factor(solver: Peer, shape: tuple[int, int], is_sparse: bool) -> None:
    """The answer at a tight tolerance is proven to solve our problem, and one with a factor of 1.01 in it is seen not to."""
    always, dense = TAKEN[installed(solver).label]
    taken = always if is_sparse else always | dense
    for name, make in objectives(shape, is_sparse).items():
        problem = make(1.0)
        reason = solver.incompatibility(problem)
        assert (reason is None) == (name in taken), f"{name}: {reason}"
        if reason is None:
            assert gap_of(problem, answer_of(solver, problem, 1e-9)) <= BAR, name
            assert gap_of(problem, answer_of(solver, make(1.01), 1e-9)) > BAR, name


@dense_and_sparse
@pytest.mark.parametrize(
    ("solver", "squared", "logistic"), [(Sklearn(), "columns", "rows"), (Celer(), "columns", "rows"), (Cyanure(), "rows", "rows")]
)
def test_data_are_laid_out_as_the_library_takes_them(solver: Peer, squared: str, logistic: str, is_sparse: bool) -> None:
    """What it copies into another order would be on its clock."""
    makers, orders = objectives((30, 12), is_sparse), {"rows": ("C", "csr"), "columns": ("F", "csc")}
    for name, order in (("lasso", squared), ("logistic", logistic)):
        X = solver.build(makers[name](1.0)).pieces[0].X
        assert orders[order][is_sparse] == (X.format if is_sparse else "C" if X.flags.c_contiguous else "F"), name


@pytest.mark.parametrize("solver", [Sklearn(), Celer()])
def test_dense_examples_are_not_copied_on_the_clock(solver: L1Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    lasso, seen = importlib.import_module(solver.module or solver.package).Lasso, list[Any]()
    path = lasso.path

    def noting(*arguments: Any, **options: Any) -> Any:
        seen.extend(each for each in arguments if np.ndim(each) == 2)
        return path(*arguments, **options)

    is_static = isinstance(inspect.getattr_static(lasso, "path"), staticmethod)
    monkeypatch.setattr(lasso, "path", staticmethod(noting) if is_static else noting)
    pieces = solver.build(objectives((30, 12), False)["lasso"](1.0))
    assert solver.solve(pieces, 1e-6, None).claims_optimal
    assert seen
    assert all(any(np.shares_memory(X, piece.X) for piece in pieces.pieces) for X in seen)


@dense_and_sparse
@every_peer
def test_a_tiny_piece_of_every_kind_is_fitted_beforehand(solver: Peer, is_sparse: bool) -> None:
    always, dense = TAKEN[installed(solver).label]
    makers = objectives((30, 12), is_sparse)
    for name in always if is_sparse else always | dense:
        pieces = solver.build(makers[name](1.0))
        fitted = solver.fit(tiny(pieces.pieces[0], solver.layout(pieces.pieces[0])), 1e-3)
        assert np.isfinite(fitted.coefficients).all(), name
        assert solver.compile(pieces) is pieces


@pytest.mark.parametrize("solver", PEERS, ids=lambda solver: solver.label)
def test_a_package_that_is_missing_is_a_skipped_run_that_names_the_extra(solver: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    labels = data_of((30, 12), False, labels=True)
    problem = L1BallGLM(labels, loss="logistic" if isinstance(solver, Sklearn) else "squared", penalty="0.1 max")
    record = run(problem, solver, tolerance=Tolerance(1e-4))
    assert record.status is Status.SKIPPED
    wanted = f".[{solver.extra}]" if solver.extra else "scikit-learn"
    assert record.reason == f"{solver.label} is not installed: pip install '{wanted}'"
    assert solver.version == "not installed"


@pytest.mark.parametrize(
    ("solver", "share"),
    [(Celer(options={"max_iter": 1, "p0": 1}), 1e-3), (Cyanure(options={"max_iter": 1}), 1e-2), (Sklearn(options={"max_iter": 1}), 1e-3),
     (Spams(options={"max_it": 2, "it0": 1}), 1e-3)],
    ids=lambda value: getattr(value, "label", ""),
)  # fmt: skip
def test_a_fit_that_did_not_converge_says_so_and_claims_nothing(solver: Peer, share: float) -> None:
    problem = L1BallGLM(data_of((15, 40), False), penalty=f"{share} max")
    answer = answer_of(installed(solver), problem, 1e-10)
    assert not answer.claims_optimal
    assert "converge" in answer.message or "limit" in answer.message
    assert gap_of(problem, answer) > 1e-9


@pytest.mark.parametrize(
    ("problem", "solver", "reason"),
    [
        (L1BallGLM(data_of((30, 12), False), penalty=0.0), Celer(), "it needs a penalty above 0"),
        (L1BallGLM(data_of((30, 12), False), radius=1.0, balls="all"), Cyanure(), "one ball holds all 2 tasks"),
        (L1InfGLM(data_of((30, 12), False), radius=1.0), Cyanure(), "no such constraint"),
        (L1InfGLM(data_of((30, 12), True), penalty=1.0), Spams(), "sparse X it stops at W = 0"),
        (RidgeHinge(TaskData.shared(np.eye(3), -np.ones((3, 1))), ridge=1.0), Sklearn(), "have the same label"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(problem: Problem, solver: Peer, reason: str) -> None:
    said = solver.incompatibility(problem)
    assert reason in said
    assert said.startswith(solver.label)


def test_the_dual_variables_of_a_support_vector_machine_prove_its_answer() -> None:
    """From the residuals alone next to nothing is proven: the examples on the margin decide."""
    problem = RidgeHinge(data_of((30, 12), False, labels=True), ridge=0.05)
    answer = answer_of(Sklearn(), problem, 1e-9)
    assert problem.certify(finished(answer)).relative_gap < 1e-6
    assert problem.certify(finished(answer)._replace(dual=None)).relative_gap > 1e-4


def test_documents_that_are_all_on_the_margin_have_their_dual_variables() -> None:
    """There are more words than documents. Bounded least squares took minutes there, and the runner took the library for a cheat."""
    rng = np.random.default_rng(0)
    X = sp.random_array((1500, 20_000), density=0.004, format="csr", rng=rng)
    problem = RidgeHinge(TaskData.shared(X, np.sign(X @ rng.standard_normal((20_000, 1)))), ridge=1e-3)
    solver = Sklearn()
    answer = solver.solve(solver.compile(solver.build(problem)), 1e-8, None)
    assert problem.certify(finished(answer)).relative_gap < 1e-6


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-5])
def test_coefficients_of_a_support_vector_machine_have_the_gap_that_they_have(is_sparse: bool, tolerance: float) -> None:
    """With examples that are there twice, where the dual optimum is not unique, the bound is as good as the optimum for this w."""
    rng = np.random.default_rng(4)
    half = rng.integers(0, 3, (60, 5)).astype(float)
    X, y = np.concatenate([half, half]), np.sign(rng.standard_normal(120))
    problem = RidgeHinge(TaskData.shared(sp.csr_array(X) if is_sparse else X, y[:, None]), ridge=1e-3)
    (piece,) = Sklearn().build(problem).pieces
    w = Sklearn().fit(piece, tolerance).coefficients
    optimum = run(problem, DualCoordinateAscent(), tolerance=1e-11, limits=10.0).best
    upper = problem.objective(w[:, None])
    certificate = problem.certify(Iterate(w[:, None], hinge_dual_of(piece, w)[:, None]))
    assert upper - certificate.dual <= 1.03 * (upper - optimum.dual) + 1e-12
