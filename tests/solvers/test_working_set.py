"""Rows that come and go: where they begin, how a point moves between sets of them, and runs against methods on all rows."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solver_data import proven

from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.model.forms import Hinges, LinearForm
from bench_mtl.problems import DirtyModel, L1InfGLM, L1InfHinge
from bench_mtl.solvers import InteriorPoint, WorkingSet
from bench_mtl.solvers.interior_point.equations import Equations, State
from bench_mtl.solvers.interior_point.solver import equations_of
from bench_mtl.solvers.working_set.run import Run, central_rows, moved


def wide(rng: np.random.Generator, *, d: int = 80) -> TaskData:
    """Three tasks of 12 to 40 examples with d features, of which five matter."""
    Xs = [rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4) for n in (12, 40, 25)]
    W = rng.standard_normal((d, 3)) * (np.arange(d) < 5)[:, None]
    return TaskData.per_task(Xs, [np.where(X @ W[:, k] + 0.3 * rng.standard_normal(len(X)) >= 0.0, 1.0, -1.0) for k, X in enumerate(Xs)])


@given(st.integers(0, 2**32 - 1), st.floats(1e-12, 1e6), st.floats(1e-6, 1e6))
def test_a_row_that_joins_is_on_the_central_path(seed: int, product: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    G = level * rng.standard_normal((4, 6)) * 10.0 ** rng.uniform(-9, 1, 6)
    G[rng.random(G.shape) < 0.2] = 0.0
    row = central_rows(G, level, product, 0.98)
    assert (row.slack > 0.0).all()
    assert (row.dual > 0.0).all()
    np.testing.assert_allclose(row.slack * row.dual, product, rtol=1e-12)
    np.testing.assert_allclose(row.dual.sum(axis=(0, 1)), np.full(6, level), rtol=1e-9)
    np.testing.assert_allclose(row.slack.sum(axis=0), np.tile(2.0 * row.mu, (4, 1)), rtol=1e-9)
    norms = np.abs(G).sum(axis=0)
    factors = np.minimum(1.0, 0.98 * level / np.maximum(norms, 1e-300))
    np.testing.assert_allclose(row.dual[0] - row.dual[1], factors * G, atol=1e-12 * level)


def of_rows(equations: Equations, x: State) -> list[np.ndarray]:
    """Return W, mu, and all slacks and duals of rows, each with a column a row."""
    at = equations.layout
    parts = [x.W, x.mu[None], *at.bounds(x.slack), *at.bounds(x.dual)]
    return [*parts, *at.signed(x.slack), *at.signed(x.dual)] if at.has_entries else parts


@pytest.mark.parametrize("parameters", [{"radius": 0.8}, {"penalty": 0.05}, {"row_penalty": 0.2, "entry_penalty": 0.1}], ids=str)
def test_a_point_that_moves_keeps_what_stays(parameters: dict[str, float]) -> None:
    data, has_entries = wide(np.random.default_rng(0)), "row_penalty" in parameters
    form = DirtyModel(data, **parameters).form(LinearForm) if has_entries else L1InfHinge(data, **parameters).form(Hinges)
    rows, chosen = np.array([1, 4, 7, 30]), np.array([0, 4, 30, 41, 79])
    old, new = (equations_of(form.restricted(each)) for each in (rows, chosen))
    x = old.start(np.zeros((2, 3, 4) if has_entries else (3, 4)))
    y = moved(x, old, rows, new, chosen, form.adjoint(old.dual_point(x)))
    for before, after in zip(of_rows(old, x), of_rows(new, y), strict=True):
        assert np.array_equal(after[:, [1, 2]], before[:, [1, 3]])
    for at in (old.layout, new.layout):
        of_examples, of_features = (0, 12) if has_entries else (2 * form.design.n_examples, 6)
        assert at.size == (of_examples + of_features * at.shape[1] + (form.radius is not None))
    assert np.array_equal(y.slack[new.layout.examples], x.slack[old.layout.examples])
    assert new.theta(y) == old.theta(x)
    assert (y.slack > 0.0).all()
    assert (y.dual > 0.0).all()
    residuals, joined = new.residuals(y), [0, 3, 4]
    if not has_entries:  # of fits rows begin short, whatever their gradient
        assert np.abs(residuals.W[:, joined]).max() <= 1e-12
    assert np.abs(residuals.mu[joined]).max() <= 1e-9 * new.theta(y)


def test_few_rows_are_kept_of_many() -> None:
    """At the end no more than a few rows are kept beside those that are not zero, and iterations are not many more than on all rows."""
    problem = L1InfHinge(wide(np.random.default_rng(3), d=400), radius=0.5)
    form = problem.form(Hinges)
    state, steps = Run(form, problem.zero(), 10, 2**32, 1), 0
    while not state.is_done and state.relative_gap > 1e-7:
        assert state.advance()
        steps += 1
    alone = proven(problem, InteriorPoint(), 1e-7)
    largest = np.abs(state.point).max(axis=1)
    assert len(state._rows) <= 3 * np.count_nonzero(largest > 1e-6 * largest.max()) + 10
    assert steps <= 2 * alone.samples[-1].step + 5


def test_rows_join_for_their_entries_alone() -> None:
    """A row under three tasks' entry penalties together has no part that tasks share."""
    problem = DirtyModel(wide(np.random.default_rng(4)), entry_penalty=0.02, row_penalty=0.06)
    proven(problem, WorkingSet(first=1), 1e-9)


@pytest.mark.parametrize("targets", [np.ones((12, 3)), -np.ones((12, 3))])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_where_nothing_but_intercepts_matters_a_run_ends(targets: Array, loss: str) -> None:
    data = TaskData.shared(np.random.default_rng(7).standard_normal((12, 4)), targets)
    for penalty in (0.0, 0.1):
        problem = DirtyModel(data, row_penalty=penalty, entry_penalty=penalty, loss=loss, intercept=True)
        assert len(list(islice(WorkingSet().steps(problem), 500))) < 500


def test_ends_with_a_note_where_memory_does() -> None:
    problem = L1InfHinge(wide(np.random.default_rng(6)), radius=20.0)
    iterates = list(islice(WorkingSet(first=2, memory_gib=30e3 / 2**30).steps(problem), 100))
    assert len(iterates) < 100
    assert "rows would need" in iterates[-1].note


def test_the_last_step_before_a_fresh_start_states_its_own_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    problem = L1InfGLM(TaskData.shared(draw.standard_normal((60, 30)), draw.standard_normal((60, 3))), penalty="0.1 max")
    steps = iter(WorkingSet().steps(problem))
    for _ in range(9):
        next(steps)
    monkeypatch.setattr("bench_mtl.solvers.working_set.run.PATIENCE", 0)
    last = next(steps)
    assert last.claim == pytest.approx(problem.certify(last).relative_gap, rel=0.1, abs=1e-9)
