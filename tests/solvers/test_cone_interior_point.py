"""`ConeInteriorPoint`: its direction against all equations, and the longest step in cones, on features of any size."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.data import TaskData
from bench_mtl.problems.l12_hinge import L12Hinge
from bench_mtl.solvers.cone_interior_point import ConeStepper, _longest_in_cones

pytestmark = pytest.mark.numerics


def raw_data(examples: int, features: int) -> TaskData:
    """Return examples whose columns have sizes from a hundredth to a hundred, and labels of three tasks."""
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((examples, features))
    Y = Z @ (rng.standard_normal((features, 3)) * (rng.random((features, 1)) < 0.6)) + rng.standard_normal((examples, 3))
    return TaskData.shared(Z * 10.0 ** np.linspace(-2.0, 2.0, features), np.where(Y > 0.0, 1.0, -1.0))


def test_a_direction_solves_the_equations_and_the_linearised_products() -> None:
    """A step of length 1 meets all equations, as they are linear."""
    for bound in ({"penalty": "0.1 max"}, {"radius": 2.0}):
        problem = L12Hinge(raw_data(30, 5), intercept=True, **bound)
        solver_run = ConeStepper(problem)
        now = solver_run.started()
        now, _ = solver_run.after(now)  # type: ignore[assignment]
        system = solver_run._system(now)
        assert system is not None
        by = solver_run._direction(now, system, 1e-3, None)
        design, y = solver_run.design, solver_run.y
        whole = now.moved(by, 1.0, 1.0)
        assert np.allclose(design.adjoint(y * whole.a), whole.G, atol=1e-10)
        assert np.allclose(design.task_sums(y * whole.a), 0.0, atol=1e-10)
        assert np.allclose(1.0 - y * (design.forward(whole.V) + design.per_example(whole.b)), whole.upper - whole.lower, atol=1e-9)
        assert np.allclose(now.a * by.lower + now.lower * by.a, 1e-3 - now.a * now.lower)
        if problem.hinges.radius is not None:
            assert solver_run.units @ whole.t + whole.slack == pytest.approx(problem.hinges.radius)
            assert now.slack * by.tau + now.tau * by.slack == pytest.approx(1e-3 - now.slack * now.tau)
        # Theta takes the dual point of every cone to the primal one, and its change to what is left of mu / dual.
        s = system.scaling
        for j in range(design.n_features):
            w = np.array([s.w0[j], *s.w1[j]])
            theta = s.eta[j] * (2.0 * np.outer(w, w) - np.diag([1.0, *-np.ones(design.n_tasks)]))
            point, dual = np.array([now.t[j], *now.V[j]]), np.array([now.tau * solver_run.units[j], *-now.G[j]])
            assert np.allclose(theta @ dual, point, rtol=1e-9)
            change = np.array([by.t[j], *by.V[j]]) + theta @ np.array([by.tau * solver_run.units[j], *-by.G[j]])
            inverse = np.array([dual[0], *-dual[1:]]) / (dual[0] ** 2 - dual[1:] @ dual[1:])
            assert np.allclose(change, 1e-3 * inverse - point, rtol=1e-6, atol=1e-9)


def test_a_step_ends_at_the_first_boundary_of_a_cone() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows, turn, rise = rng.standard_normal((3, 2)), rng.standard_normal((3, 2)), rng.standard_normal(3)
        heights = np.linalg.norm(rows, axis=1) + rng.random(3)
        length = _longest_in_cones(heights, rows, rise, turn)
        shares = np.linspace(0.0, 1.0, 2001)[:, None]
        inside = (np.linalg.norm(rows + shares[..., None] * turn, axis=2) <= heights + shares * rise).all(axis=1)
        first = 1.0 if inside.all() else float(shares[np.argmin(inside), 0])
        assert first - 1e-3 <= length <= first + 1e-9
