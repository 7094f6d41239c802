"""Exponentiated gradient: against plain products in a loop, on every kind of simplex; its step rules, starts and options."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array, Iterate, Limits, Status, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.model.forms import SimplexForm
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.portfolio import Portfolio
from bench_mtl.solvers.exponentiated_gradient import ExponentiatedGradient

RNG = np.random.default_rng(0)
X = RNG.standard_normal((25, 6))
Y = X @ (RNG.standard_normal((6, 3)) * (RNG.random((6, 3)) < 0.5)) + 0.2 * RNG.standard_normal((25, 3))
SIGNS = np.where(RNG.random((6, 3)) < 0.5, 1.0, -1.0)
RELATIVES = np.exp(0.2 * RNG.standard_normal((25, 6)))
DATA = TaskData.shared(X, Y)


def forms() -> dict[str, Problem]:
    oriented = TaskData(DATA.design, DATA.targets, "oriented", orientation=frozen(SIGNS))
    return {
        "signed": L1BallGLM(DATA, radius=1.0),
        "signed, one ball": L1BallGLM(DATA, radius=2.0, balls="all"),
        "nonneg": L1BallGLM(DATA, radius=1.0, nonneg=True),
        "oriented": L1BallGLM(oriented, radius=1.0, nonneg=True),
        "simplex": Portfolio(TaskData.shared(RELATIVES, np.ones(25))),
    }


FORMS = forms()


def columns_of(form: SimplexForm, d: int, m: int) -> list[list[tuple[int, int]]]:
    """The entries of W that each simplex has."""
    entries = [(j, k) for j in range(d) for k in range(m)]
    return [[e for e in entries if e[1] == k] for k in range(m)] if form.balls == "task" else [entries]


class Twin:
    """One weight at a time, as products of exponentials, divided by their sum."""

    def __init__(self, form: SimplexForm, shape: tuple[int, ...]) -> None:
        self.form, self.shape = form, shape
        self.columns = columns_of(form, *shape)
        n = len(self.columns[0]) * (2 if form.signed else 1) + form.slack
        self.n = n
        self.plus, self.minus = [dict.fromkeys(c, 1.0 / n) for c in self.columns], [dict.fromkeys(c, 1.0 / n) for c in self.columns]
        self.slack = [1.0 / n if form.slack else 0.0 for _ in self.columns]

    def sign(self, e: tuple[int, int]) -> float:
        return 1.0 if self.form.orientation is None else float(self.form.orientation[e])

    def point(self) -> Array:
        W = np.zeros(self.shape)
        for plus, minus in zip(self.plus, self.minus, strict=True):
            for e in plus:
                W[e] = self.form.mass * self.sign(e) * (plus[e] - (minus[e] if self.form.signed else 0.0))
        return W

    def largest_range(self, G: Array) -> float:
        ranges = []
        for column in self.columns:
            prices = [self.form.mass * self.sign(e) * G[e] for e in column]
            prices += [-price for price in prices] if self.form.signed else []
            prices += [0.0] if self.form.slack else []
            ranges.append(max(prices) - min(prices))
        return max(ranges)

    def step(self, G: Array, eta: float) -> None:
        for c, column in enumerate(self.columns):
            for e in column:
                price = self.form.mass * self.sign(e) * G[e]
                self.plus[c][e] *= np.exp(-eta * price)
                self.minus[c][e] *= np.exp(eta * price)
            total = sum(self.plus[c].values()) + (sum(self.minus[c].values()) if self.form.signed else 0.0) + self.slack[c]
            for e in column:
                self.plus[c][e] /= total
                self.minus[c][e] /= total
            self.slack[c] /= total


@pytest.mark.parametrize("name", FORMS)
def test_scheduled_steps_are_plain_products(name: str) -> None:
    problem = FORMS[name]
    twin = Twin(problem.form(SimplexForm), problem.point_shape)
    best, lowest = problem.start_point(), problem.objective(problem.start_point())
    iterates = list(islice(ExponentiatedGradient(step_rule="sqrt", rates=(0.5,)).steps(problem), 31))
    eta0 = 0.0
    for t, iterate in enumerate(iterates[1:], start=1):
        W = twin.point()
        value, G = problem.value_and_gradient(W)
        if t == 1:
            eta0 = 0.5 * np.sqrt(np.log(twin.n)) / twin.largest_range(G)
        if value < lowest:
            best, lowest = W, value
        twin.step(G, eta0 / np.sqrt(t))
        assert np.allclose(iterate.primal, best, atol=1e-12)


@pytest.mark.parametrize("name", FORMS)
def test_line_search_steps_are_plain_products(name: str) -> None:
    """Each step is an exponentiated gradient step of some length, found here from the change of one weight; the objective falls."""
    problem = FORMS[name]
    values = [problem.objective(iterate.primal) for iterate in islice(ExponentiatedGradient().steps(problem), 100)]
    assert np.all(np.diff(values[1:]) <= 1e-12 * (1.0 + abs(values[1])))
    record = run(problem, ExponentiatedGradient(), tolerance=Tolerance(1e-6), limits=Limits(seconds=20.0, iterations=5000))
    assert record.status is Status.VERIFIED, record.reason


def test_the_first_line_search_step_is_one_of_a_power_of_two() -> None:
    problem = FORMS["signed"]
    twin = Twin(problem.form(SimplexForm), problem.point_shape)
    _, G = problem.value_and_gradient(twin.point())
    first = list(islice(ExponentiatedGradient().steps(problem), 2))[1].primal
    found = []
    for halvings in range(20):
        trial = Twin(problem.form(SimplexForm), problem.point_shape)
        trial.step(G, 0.5**halvings / twin.largest_range(G))
        found.append(np.abs(trial.point() - first).max())
    assert min(found) < 1e-12


@pytest.mark.parametrize("kind", ["shared", "CSR", "per task"])
def test_drawn_steps_are_plain_products(kind: str) -> None:
    if kind == "per task":
        sizes = (4, 9, 12)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        blocks = [X[a:b] for a, b in pairwise(starts)]
        data = TaskData.per_task(blocks, [Y[a:b, k] for k, (a, b) in enumerate(pairwise(starts))])
    else:
        data = TaskData.shared(sp.csr_array(X) if kind == "CSR" else X, Y)
    problem = L1BallGLM(data, radius=1.0)
    twin = Twin(problem.form(SimplexForm), problem.point_shape)
    _, G = problem.value_and_gradient(twin.point())
    eta0 = 0.1 * np.sqrt(np.log(twin.n)) / twin.largest_range(G)
    rng = np.random.default_rng(7)
    draws = [rng.integers(25, size=3) for _ in range(20)]
    points, etas = [], []
    for t, chosen in enumerate(draws, start=1):
        W = twin.point()
        points.append(W)
        etas.append(eta0 / np.sqrt(t))
        G = np.zeros((6, 3))
        for i in chosen:
            for k in range(3):
                if kind == "per task" and not starts[k] <= i < starts[k + 1]:
                    continue
                G[:, k] += 25 / 3 * X[i] * (X[i] @ W[:, k] - Y[i, k])
        twin.step(G, etas[-1])
    iterates = list(islice(ExponentiatedGradient(batch=3, rates=(0.1,), search_iterations=19, seed=7).steps(problem), 3))
    for iterate, steps in zip(iterates[1:], (19, 20), strict=True):
        recent = slice(7, steps)  # steps 8 and later: since the last power of two but one
        expected = np.average(points[recent], axis=0, weights=etas[recent])
        assert iterate.step == steps
        assert np.allclose(iterate.primal, expected, atol=1e-10)


@pytest.mark.parametrize("rate", [0.1, pytest.param(5.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "parameters",
    [{"radius": 1.0}, {"radius": 2.0, "balls": "all"}, {"radius": 1.0, "nonneg": True}, {"radius": 1.5, "balls": "all", "nonneg": True}],
    ids=lambda parameters: "-".join(map(str, parameters.values())),
)
def test_sparse_steps_are_the_dense_ones(parameters: dict[str, object], rate: float) -> None:
    rng = np.random.default_rng(3)
    few = rng.standard_normal((40, 30)) * (rng.random((40, 30)) < 0.1)
    few[5] = 0.0  # an example without features
    targets, orientation = rng.standard_normal((40, 3)), frozen(np.where(rng.random((30, 3)) < 0.5, 1.0, -1.0))
    runs = []
    for design in (few, sp.csr_array(few)):
        data = TaskData.shared(design, targets)
        problem = L1BallGLM(TaskData(data.design, data.targets, "few", orientation=orientation), **parameters)
        solver = ExponentiatedGradient(batch=2, rates=(rate,), seed=5)
        runs.append(list(islice(solver.steps(problem, 0.1 * np.array(orientation)), 36)))
    for dense, sparse in zip(*runs, strict=True):
        assert dense.step == sparse.step
        assert np.allclose(dense.primal, sparse.primal, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", FORMS)
def test_starts_are_met_almost(name: str) -> None:
    problem = FORMS[name]
    good = run(problem, ExponentiatedGradient(), tolerance=Tolerance(1e-5), limits=Limits(seconds=20.0, iterations=20_000)).solution
    assert good is not None
    iterates = list(islice(ExponentiatedGradient().steps(problem, good), 3))
    assert np.array_equal(iterates[0].primal, good)
    cold = problem.objective(problem.start_point()) - problem.objective(good)
    assert problem.objective(iterates[2].primal) - problem.objective(good) < 0.02 * cold


def test_weights_are_not_lost_by_underflow() -> None:
    """The asset that is hopeless for long earns everything in the end: a weight of 0 would stay 0."""
    relatives = np.array([[1.0, 1.0], [1.0, 1e-12]])
    problem = Portfolio(TaskData.shared(np.concatenate([relatives, [[1e-12, 1.0]]]), np.ones(3)))
    start = np.array([[1.0], [0.0]])
    record = run(problem, ExponentiatedGradient(), tolerance=Tolerance(1e-6), limits=Limits(seconds=10.0, iterations=2000), start=start)
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("options", [{}, {"step_rule": "sqrt"}, {"batch": 2}])
@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_data_of_any_size(options: dict[str, object], factor: float) -> None:
    problem = L1BallGLM(TaskData.shared(factor * X, factor * Y), radius=1.0)
    record = run(problem, ExponentiatedGradient(**options), tolerance=Tolerance(0.05), limits=Limits(seconds=20.0, iterations=50_000))
    assert record.status is Status.VERIFIED, record.reason


@pytest.mark.parametrize("options", [{}, {"step_rule": "sqrt"}, {"batch": 2}])
def test_edges(options: dict[str, object]) -> None:
    solver = ExponentiatedGradient(**options)
    limits = Limits(seconds=10.0, iterations=3000)
    zeros = TaskData.shared(np.zeros((4, 3)), np.ones(4))
    cases: list[tuple[Problem, float]] = [
        (L1BallGLM(TaskData.shared(X[:, :1], Y[:, 0]), radius=0.1), 1e-2),
        (L1BallGLM(TaskData.shared(X[:1], Y[:1]), radius=0.1), 1e-2),
        (L1BallGLM(DATA, radius=0.0), 1e-9),
        (L1BallGLM(zeros, radius=1.0), 1e-9),
        (L1BallGLM(TaskData.shared(np.tile(X[:4], (5, 1)), np.tile(Y[:4], (5, 1))), radius=0.1), 1e-2),
    ]
    for problem, target in cases:
        record = run(problem, solver, tolerance=Tolerance(target), limits=limits, traced="batch" in options)  # random steps rise and fall
        assert record.status is Status.VERIFIED, record.reason
    if "batch" not in options:
        alone = Portfolio(TaskData.shared(np.array([[1.1], [0.9]]), np.ones(2)))
        assert run(alone, solver, tolerance=Tolerance(1e-9), limits=limits).status is Status.VERIFIED


def test_a_vertex_is_reached_and_nothing_overflows() -> None:
    relatives = np.ones((10, 4))
    relatives[:, 2] = 1.5
    problem = Portfolio(TaskData.shared(relatives, np.ones(10)))
    *_, last = islice(ExponentiatedGradient().steps(problem), 300)
    assert np.allclose(last.primal[:, 0], [0, 0, 1, 0])
    assert problem.certify(Iterate(last.primal)).gap <= 1e-12


def test_labels() -> None:
    labels = [solver.label for solver in ExponentiatedGradient.variants()]
    assert labels == ["exponentiated_gradient", "exponentiated_gradient_sqrt", "exponentiated_gradient_stochastic"]


def test_incompatibilities_say_why() -> None:
    solver = ExponentiatedGradient()
    hinge, boxed = L1InfHinge(TaskData.shared(X, np.sign(Y)), radius=1.0), Portfolio(TaskData.shared(RELATIVES, np.ones(25)), upper=0.5)
    offered = ", ".join(sorted(L1InfHinge.offers))
    words = f"exponentiated_gradient needs smooth and takes SimplexForm; l1inf_hinge offers {offered} and has HingeForm"
    assert solver.incompatibility(hinge) == words
    assert solver.incompatibility(L1BallGLM(DATA, penalty=1.0)) == "exponentiated_gradient takes SimplexForm; l1_ball_glm has L1Form"
    assert solver.incompatibility(boxed) == "exponentiated_gradient takes SimplexForm; portfolio has CurvedForm"
    assert "draws examples" in (ExponentiatedGradient(batch=2).incompatibility(FORMS["simplex"]) or "")
    assert solver.incompatibility(FORMS["simplex"]) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step_rule": "fast"}, "step_rule must be one of"),
        ({"batch": 0}, "batch"),
        ({"batch": 2, "step_rule": "line_search"}, "needs full gradients"),
        ({"rates": ()}, "rates must be a non-empty list"),
        ({"rates": (0.0,)}, "rates must be finite and above 0"),
        ({"search_iterations": 0}, "search_iterations"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ExponentiatedGradient(**options)
