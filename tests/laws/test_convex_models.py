"""Models of CVXPY are problems of `compare`: every answer of every solver is enclosed, in this process and in others."""

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

from bench_mtl import InputError, Iterate, Status, Tolerance, compare, run
from bench_mtl.enclosures.convex_model import ConvexModel
from tests.laws.test_conic_enclosures import MODELS, enclosed

pytestmark = pytest.mark.filterwarnings("ignore:.*(solution may be inaccurate|Solution may be inaccurate).*")


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_enclosed_by_every_solver_that_takes_the_model(name: str) -> None:
    make, solvers = MODELS[name]
    model = make()
    true = enclosed(name)
    sign = -1.0 if isinstance(model.objective, cp.Maximize) else 1.0
    lower, upper = sorted((sign * true.lower, sign * true.upper))
    compared = compare({name: model}, list(solvers), targets=1e-3, limits=10.0, isolation="inline").frame()
    expected = ["skipped" if solver == "HIGHS" and name == "portfolio" else "verified" for solver in solvers]  # which has squares
    assert list(compared["status"]) == expected, compared
    compared = compared[compared["status"] == "verified"]
    assert (compared["dual"] <= upper).all()
    assert (compared["primal"] >= lower).all()
    assert ("maximises" in " ".join(ConvexModel(model).notes)) == (sign < 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_points_and_multipliers_from_nowhere_have_no_false_bound(name: str) -> None:
    problem, rng, true = ConvexModel(MODELS[name][0]()), np.random.default_rng(0), enclosed(name)
    lower, upper = (-true.upper, -true.lower) if problem.notes else (true.lower, true.upper)
    for size in (0.0, 1e-2, 1.0, 1e3):
        point, dual = size * rng.standard_normal(problem.point_shape), size * rng.standard_normal(problem.dual_shape)
        certificate = problem.certify(Iterate(point, dual))
        assert certificate.dual <= upper
        assert certificate.primal >= lower


def test_an_optimum_of_0_is_verified_by_the_scale_and_violations_are_measured() -> None:
    A, x = np.random.default_rng(0).integers(-3, 4, (20, 5)), cp.Variable(5)
    model = cp.Problem(cp.Minimize(cp.norm1(A @ x - A.sum(axis=1))), [cp.sum(x) == 5])
    problem = ConvexModel(model)
    assert problem.scale() > 0.0
    assert problem.infeasibility(problem.zero()) > 0.1
    frame = compare({"exact": model}, ["CLARABEL"], targets=1e-3, limits=10.0, isolation="inline").frame()
    assert list(frame["status"]) == ["verified"], frame
    assert (frame["primal"] - frame["dual"] <= 1e-9 * problem.scale()).all()


def test_gaps_are_held_to_a_scale_in_units_of_the_objective() -> None:
    x = cp.Variable()
    problem = ConvexModel(cp.Problem(cp.Minimize(1e15 * x), [x >= 1e-15]))
    assert 1.0 <= problem.scale() <= 10.0
    far = problem.certify(Iterate(np.array([1e-12]), np.array([0.0])))
    assert far.primal >= 999.0
    assert not Tolerance(1e-3).met_by(far, problem.scale())


@pytest.mark.parametrize("objective", [cp.norm1, cp.sum_squares])
def test_an_optimum_of_0_at_the_zero_point_is_verified(objective: Callable[[cp.Variable], cp.Expression]) -> None:
    x = cp.Variable(3)
    model = cp.Problem(cp.Minimize(objective(x)), [x >= -1.0])
    frame = compare({"zero": model}, ["CLARABEL"], targets=1e-3, limits=10.0, isolation="inline").frame()
    assert list(frame["status"]) == ["verified"], frame


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_the_scale_is_the_same_in_any_unit_of_the_variables(unit: float) -> None:
    A, x, z = np.random.default_rng(0).standard_normal((9, 3)), cp.Variable(3), cp.Variable(3)
    one, other = (
        ConvexModel(cp.Problem(cp.Minimize(cp.sum_squares(A @ each - 1.0) + cp.sum(each)), [each >= 0.5])) for each in (x, unit * z)
    )
    assert one.scale() == pytest.approx(other.scale(), rel=1e-3)


@pytest.mark.parametrize("other", [lambda x: x[1] >= 1e9, lambda x: cp.SOC(x[1], x[2:] + 1e9), lambda x: x[1] == 2e9])
def test_violations_are_relative_to_the_rows_of_their_cone(other: Callable[[cp.Variable], cp.Constraint]) -> None:
    x = cp.Variable(4)
    problem = ConvexModel(cp.Problem(cp.Minimize(cp.sum(x)), [cp.SOC(3.0, x[:1]), x[0] >= 2.0, x[0] <= 4.0, other(x)]))
    assert problem.infeasibility(np.array([1.0, 2e9, 0.0, 0.0])) == pytest.approx(1.0 / 3.0)


def test_other_processes_take_it_and_certify_it_again() -> None:
    result = compare(MODELS["hinge"][0](), ["clarabel", "scs", "pdhg"], targets=[1e-2, 1e-4], limits=10.0)
    frame = result.frame().drop_duplicates("solver").set_index("solver")
    assert list(frame["status"]) == ["verified", "verified", "skipped"]
    assert "convex_model" in str(frame["problem"].iloc[0])
    assert "is first to prove a gap of 1e-4" in str(result)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"problems must be a Problem of bench_mtl or a cvxpy.Problem, not Variable"):
        compare(cp.Variable(), ["scs"])
    with pytest.raises(InputError, match=r"integer variables"):
        compare(cp.Problem(cp.Minimize(cp.Variable(integer=True))), ["scs"])
    with pytest.raises(InputError, match=r"problems has parameters without values, p: set them first"):
        compare(cp.Problem(cp.Minimize(cp.Variable(nonneg=True) * cp.Parameter(name="p", nonneg=True))), ["scs"])


def test_an_answer_whose_optimum_nothing_bounds_from_below_is_inaccurate_and_no_error() -> None:
    A, x = np.random.default_rng(0).standard_normal((20, 40)), cp.Variable(40)
    record = run(ConvexModel(cp.Problem(cp.Minimize(cp.norm1(A @ x - A @ np.ones(40))))), "highs", tolerance=1e-4)
    assert record.status is Status.INACCURATE
    assert "and no lower bound is proven" in record.reason
