"""Enclosures of models of CVXPY hold, whatever the answer is that they are made from, and are narrow where it is good."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cvxpy.tests import solver_test_helpers as standard
from cvxpy.transforms.partial_optimize import partial_optimize
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl import InputError, certify
from bench_mtl.core.rounding import Interval
from bench_mtl.enclosures.cones import Cone
from bench_mtl.enclosures.linear import Equations, image, independent_rows, least_eigenvalue, least_products
from bench_mtl.enclosures.programme import Chain
from tests.bench_mtl.validation.exact.test_exact_programmes import SOLVER, optimum, term

pytestmark = pytest.mark.filterwarnings("ignore:.*(solution may be inaccurate|Solution may be inaccurate).*")


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def lasso() -> cp.Problem:
    A, x = normal(1, 40, 60), cp.Variable(60)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - A[:, :5].sum(axis=1)) + 3.0 * cp.norm1(x)))


def hinge() -> cp.Problem:
    A, w, b = normal(2, 40, 5), cp.Variable(5), cp.Variable()
    labels = np.sign(A[:, 0] + 0.5 * normal(3, 40))
    return cp.Problem(cp.Minimize(0.1 * cp.norm1(w) + cp.sum(cp.pos(1.0 - cp.multiply(labels, A @ w + b)))))


def portfolio() -> cp.Problem:
    S, mu, w = np.cov(normal(4, 12, 60)), 0.1 * normal(5, 12), cp.Variable(12)
    return cp.Problem(cp.Maximize(mu @ w - 0.5 * cp.quad_form(w, cp.psd_wrap(S))), [cp.sum(w) == 1, w >= 0])


def robust() -> cp.Problem:
    A, b, x = normal(6, 30, 8), normal(7, 30), cp.Variable(8)
    return cp.Problem(cp.Minimize(cp.norm(A @ x - b) + 0.5 * cp.norm(x)))


def max_cut() -> cp.Problem:
    W = np.triu(normal(8, 9, 9) > 0.3, 1).astype(float)
    L = np.diag((W + W.T).sum(axis=1)) - W - W.T
    X = cp.Variable((9, 9), PSD=True)
    return cp.Problem(cp.Maximize(cp.trace(L @ X) / 4), [cp.diag(X) == 1])


def logistic() -> cp.Problem:
    A, w = normal(9, 40, 6), cp.Variable(6)
    return cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(np.sign(A[:, 0] + normal(10, 40)), A @ w))) + 0.5 * cp.norm1(w)))


def entropy() -> cp.Problem:
    A, p = normal(11, 3, 15), cp.Variable(15)
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(p))), [cp.sum(p) == 1, A @ p == 0.1 * A.mean(axis=1)])


def powers() -> cp.Problem:
    x = cp.Variable(3)
    cones = [cp.PowCone3D(x[0], x[1], x[2], 0.3), x[0] + x[1] + 2.0 * x[2] <= 4.0]
    return cp.Problem(cp.Maximize(x[2] - 0.1 * x[0]), cones)


#: Models with the solvers that answer them.
MODELS: dict[str, tuple[Callable[[], cp.Problem], tuple[str, ...]]] = {
    "lasso": (lasso, ("CLARABEL", "SCS")),
    "hinge": (hinge, ("CLARABEL", "ECOS", "SCS", "HIGHS")),
    "portfolio": (portfolio, ("CLARABEL", "ECOS", "SCS", "HIGHS")),
    "robust": (robust, ("CLARABEL", "ECOS", "SCS")),
    "max cut": (max_cut, ("CLARABEL", "SCS")),
    "logistic": (logistic, ("CLARABEL", "ECOS", "SCS")),
    "entropy": (entropy, ("CLARABEL", "ECOS", "SCS")),
    "powers": (powers, ("CLARABEL", "SCS")),
}
PAIRS = [(name, solver) for name, (_, solvers) in MODELS.items() for solver in solvers]


@cache
def enclosed(name: str, solver: str | None = None) -> Any:
    """Return the enclosure of a model by one of its solvers, by default the first."""
    make, solvers = MODELS[name]
    return certify(make(), solver=solver or solvers[0])


@pytest.mark.parametrize(("name", "solver"), PAIRS, ids=str)
def test_every_model_is_enclosed_narrowly_and_all_solvers_agree(name: str, solver: str) -> None:
    found, other = enclosed(name, solver), enclosed(name)
    assert found.relative_gap < (1e-3 if solver == "SCS" else 1e-5), found
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)


@pytest.mark.parametrize(("name", "solver"), PAIRS, ids=str)
def test_a_repaired_point_is_as_good_as_the_bound_that_it_proves(name: str, solver: str) -> None:
    model = MODELS[name][0]()
    found = certify(model, solver=solver, judge="answer")
    if found.repaired_values:
        for variable, repaired in found.repaired_values.items():
            variable.value = repaired
        value, sign = float(np.ravel(model.objective.value)[0]), -1.0 if isinstance(model.objective, cp.Maximize) else 1.0
        bound = found.lower if sign < 0.0 else found.upper
        assert sign * value <= sign * bound + 1e-7 * abs(bound)
        assert all(constraint.violation().max(initial=0.0) <= 1e-7 for constraint in model.constraints)


@pytest.mark.parametrize("judge", ["answer", "value"])
@pytest.mark.parametrize("size", [1e-9, 1e-4, 1e-1, 1e3])
@pytest.mark.parametrize("name", MODELS)
def test_no_answer_makes_a_bound_false(name: str, size: float, judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points and multipliers that are wrong by a share, or altogether, cost width and nothing else."""
    make, solvers = MODELS[name]
    true = enclosed(name)
    solve, rng = Chain.solve, np.random.default_rng(0)

    def lying(self: Chain) -> Any:
        answer = solve(self)
        for values in (answer.primal_vars, answer.dual_vars):
            for number, value in values.items():
                dense = np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=np.float64)
                values[number] = dense + size * (1.0 + np.abs(dense)) * rng.standard_normal(dense.shape)
        return answer

    monkeypatch.setattr(Chain, "solve", lying)
    found = certify(make(), solver=solvers[0], judge=judge)
    assert found.lower <= true.upper
    assert true.lower <= found.upper


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0, 10, 26, 40]), twins=st.booleans())
def test_linear_programmes_of_a_known_optimum(seed: int, scale: int, twins: bool) -> None:
    """A x >= b and x >= 0 with whole numbers, made from an optimal pair; columns of unlike size, or equal to a unit in the last place."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 9)), int(rng.integers(2, 9))
    A, x, y = rng.integers(-9, 10, (m, n)), rng.integers(0, 5, n), rng.integers(0, 5, m)
    slack, reduced = rng.integers(0, 4, m) * (y == 0), rng.integers(0, 4, n) * (x == 0)
    b, c = A @ x - slack, A.T @ y + reduced
    units = 2.0 ** rng.integers(-scale, scale + 1, n) if scale else np.ones(n)
    scaled = A * units
    if twins and m > 1:  # a row again, with the right side lower: it changes nothing
        scaled, b = np.vstack([scaled, scaled[0] * (1.0 + 2.0**-52)]), np.append(b, min(b[0], 0) - 1)
        if (scaled[-1] @ (x / units)) < b[-1]:
            return
    exact = Fraction(int(c @ x))
    variable = cp.Variable(n)
    model = cp.Problem(cp.Minimize((c * units) @ variable), [scaled @ variable >= b, variable >= 0])
    try:
        found = certify(model, solver="CLARABEL")
    except InputError:  # the solver failed, and so there is no answer
        return
    assert found.lower == -np.inf or Fraction(found.lower) <= exact
    assert found.upper == np.inf or exact <= Fraction(found.upper)


def hadamard(n: int) -> np.ndarray:
    H = np.ones((1, 1))
    while len(H) < n:
        H = np.block([[H, H], [H, -H]])
    return H


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("unit", [1.0, 2.0**20])
def test_semidefinite_programmes_of_a_known_optimum(n: int, unit: float) -> None:
    """The least eigenvalue of a Hadamard matrix: all are plus or minus sqrt(n)."""
    X = cp.Variable((n, n), PSD=True)
    found = certify(cp.Problem(cp.Minimize(cp.trace(unit * hadamard(n) @ X)), [cp.trace(X) == 1]), solver="CLARABEL")
    assert found.lower <= -unit * math.sqrt(n) * (1.0 - 1e-15)
    assert found.upper >= -unit * math.sqrt(n) * (1.0 + 1e-15)
    assert found.relative_gap < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_semidefinite_programmes_made_from_an_optimal_pair(seed: int) -> None:
    """X and S are sums of h h^T over different columns h of a Hadamard matrix, all in whole numbers, so that X S = 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.choice([4, 8])), int(rng.integers(2, 6))
    weights, is_primal = rng.integers(1, 5, n), np.arange(n) < int(rng.integers(1, n))
    X, S = (((hadamard(n) * (weights * one)) @ hadamard(n).T).astype(int) for one in (is_primal, ~is_primal))
    B = rng.integers(-4, 5, (m, n, n))
    B = B + B.transpose(0, 2, 1)
    B[0] = np.eye(n)
    y = rng.integers(-3, 4, m)
    b, C = np.einsum("kij,ij->k", B, X), np.einsum("k,kij->ij", y, B) + S
    variable = cp.Variable((n, n), PSD=True)
    model = cp.Problem(cp.Minimize(cp.trace(C @ variable)), [cp.trace(B[k] @ variable) == b[k] for k in range(m)])
    for solver in ("CLARABEL", "SCS"):
        enclosure = certify(model, solver=solver)
        assert enclosure.lower <= int(b @ y) <= enclosure.upper, enclosure


#: Linear programmes whose rows or columns nearly depend on each other, or are of sizes 12 decades apart.
ILL_CONDITIONED: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "hilbert": lambda rng, m, n: 1.0 / (1.0 + np.arange(m)[:, None] + np.arange(n)) * rng.choice([-1.0, 1.0], n),
    "twins": lambda rng, m, n: np.repeat(rng.standard_normal((m, n)), 2, axis=0)[:m] + 1e-12 * rng.standard_normal((m, n)),
    "rank": lambda rng, m, n: rng.standard_normal((m, 2)) @ rng.standard_normal((2, n)) + 1e-9 * rng.standard_normal((m, n)),
    "rows": lambda rng, m, n: 10.0 ** rng.uniform(-6.0, 6.0, (m, 1)) * rng.standard_normal((m, n)),
    "columns": lambda rng, m, n: 10.0 ** rng.uniform(-6.0, 6.0, n) * rng.standard_normal((m, n)),
}


@pytest.mark.slow
@pytest.mark.skipif(SOLVER is None, reason="QSopt_ex is not installed")
@pytest.mark.parametrize("kind", ILL_CONDITIONED)
def test_ill_conditioned_linear_programmes_are_held_to_rational_optima(kind: str, tmp_path: Path) -> None:
    """A x >= b and 0 <= x <= u, a hundred of each kind: feasible, since b has been lowered, and bounded."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(3, 9)), int(rng.integers(3, 9))
        A, x, y = ILL_CONDITIONED[kind](rng, m, n), rng.random(n) * (rng.random(n) < 0.6), rng.random(m) * (rng.random(m) < 0.6)
        b = A @ x - 1e-9 * (np.abs(A) @ x) - 0.1 * np.abs(A).max(axis=1) * rng.random(m) * (y == 0.0)
        c, most = A.T @ y + np.abs(A).max(axis=0) * rng.random(n) * (x == 0.0), rng.uniform(1.0, 4.0, n)
        lines = ["Problem", "ill", "Minimize", "obj: " + " ".join(term(c[j], f"x_{j}") for j in range(n)), "Subject"]
        lines += [f"r_{i}: {' '.join(term(A[i, j], f'x_{j}') for j in range(n))} >= {Fraction(b[i])}" for i in range(m)]
        lines += [f"u_{j}: x_{j} <= {Fraction(most[j])}" for j in range(n)]
        exact = optimum("\n".join([*lines, "End", ""]), tmp_path)
        variable = cp.Variable(n)
        model = cp.Problem(cp.Minimize(c @ variable), [A @ variable >= b, variable >= 0, variable <= most])
        for solver in ("HIGHS", "CLARABEL"):
            try:
                enclosure = certify(model, solver=solver)
            except InputError:  # the solver failed, and so there is no answer
                continue
            assert enclosure.lower == -np.inf or Fraction(enclosure.lower) <= exact, (seed, solver, float(exact), enclosure)
            assert enclosure.upper == np.inf or exact <= Fraction(enclosure.upper), (seed, solver, float(exact), enclosure)


#: CVXPY's own standard problems, each with the objective that it expects; where it takes an argument, with each.
STANDARD: dict[str, Callable[[], Any]] = {
    "socp_3, axis 0": partial(standard.socp_3, 0),
    "socp_3, axis 1": partial(standard.socp_3, 1),
    "sdp_1, min": partial(standard.sdp_1, "min"),
    "sdp_1, max": partial(standard.sdp_1, "max"),
    **{name: make for name, make in vars(standard).items() if name.split("_")[0] in {"lp", "qp", "socp", "sdp", "expcone", "pcp", "mi"}},
}
del STANDARD["socp_3"], STANDARD["sdp_1"]

#: Relative widths of more than 1e-6: rows of lp_5 are combinations of others that have been rounded, so that nothing is proven.
WIDER = {"lp_5": np.inf, "sdp_pcp_1": 5e-6}


@pytest.mark.filterwarnings("ignore:The problem has an expression with dimension greater than 2")
@pytest.mark.parametrize("name", STANDARD)
def test_standard_problems_of_cvxpy_are_enclosed_or_it_is_said_why_not(name: str) -> None:
    helper = STANDARD[name]()
    if helper.prob.is_mixed_integer():
        with pytest.raises(InputError, match="integer variables"):
            certify(helper.prob, solver="CLARABEL")
        return
    expected = float(helper.expect_val)
    enclosure = certify(helper.prob, solver="CLARABEL")
    digits = 5e-3 if name.startswith("sdp_1") else 1e-6 * max(1.0, abs(expected)) if math.isfinite(expected) else 0.0
    assert enclosure.lower - digits <= expected <= enclosure.upper + digits, enclosure
    if math.isfinite(expected):
        assert enclosure.upper - enclosure.lower <= WIDER.get(name, 1e-6) * max(abs(expected), 1e-2), enclosure
        assert name != "lp_5" or "depend on each other" in str(enclosure)
    else:
        assert ("infeasible" in str(enclosure)) != ("unbounded" in str(enclosure)), enclosure


def test_an_answer_that_is_not_optimal_is_seen() -> None:
    """At W = 0 a support vector machine has 20, which CVXPY 1.9 calls optimal where HiGHS is asked; `certify` has no bounds from CVXPY."""
    A, w, b = normal(0, 20, 3), cp.Variable(3, name="w"), cp.Variable(name="b")
    labels = np.sign(A[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(20))
    model = cp.Problem(cp.Minimize(0.01 * cp.norm1(w) + cp.sum(cp.pos(1.0 - cp.multiply(labels, A @ w + b)))))
    model.solve(solver="CLARABEL")
    true = model.value
    zero = certify(model, {w: np.zeros(3), b: 0.0})
    assert zero.upper == pytest.approx(20.0, rel=1e-5)
    found = certify(model, solver="HIGHS")
    assert found.relative_gap < 1e-9
    assert found.lower <= true * (1 + 1e-6)
    assert true <= found.upper * (1 + 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_values_that_leave_constraints_by_rounding_are_judged_at_a_feasible_point(name: str) -> None:
    make, solvers = MODELS[name]
    model, true = make(), enclosed(name)
    model.solve(solver=solvers[0])
    rng = np.random.default_rng(0)
    values = {one: one.value + 1e-8 * np.abs(one.value).max() * rng.standard_normal(one.shape) for one in model.variables()}
    alone, helped = certify(model, values, judge="answer"), certify(model, values, solver=solvers[0])
    assert helped.relative_gap < 1e-5, helped
    for found in (alone, helped):
        assert max(found.lower, true.lower) <= min(found.upper, true.upper)
        distance = max(np.abs(found.repaired_values[one] - value).max() for one, value in values.items())
        assert distance < 1e-5 * max(np.abs(value).max() for value in values.values())
    is_maximum = isinstance(model.objective, cp.Maximize)
    assert (alone.lower == helped.lower) if is_maximum else (alone.upper == helped.upper)


def test_values_that_are_far_from_feasible_are_judged_at_the_nearest_point() -> None:
    x = cp.Variable(2)
    found = certify(cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1.0]), {x: np.array([0.0, 3.0])})
    assert [found.lower, found.upper] == pytest.approx([2.0, 4.0])
    assert "about 1e+00 from the values" in str(found)


def test_the_upper_bound_of_feasible_values_is_their_objective() -> None:
    rng = np.random.default_rng(0)
    A, b, x = rng.standard_normal((12, 8)), rng.standard_normal(12), cp.Variable(8)
    for constraints in ([], [x >= 0.0]):
        values = np.abs(rng.standard_normal(8))
        found = certify(cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) + 0.5 * cp.norm1(x)), constraints), {x: values})
        assert found.upper == pytest.approx(np.sum((A @ values - b) ** 2) + 0.5 * values.sum(), rel=1e-8)
        assert found.lower > 0.0


def test_values_prove_a_lower_bound_where_the_solver_of_the_model_does_not() -> None:
    """The optimum, of a quadratic objective without a linear part, is 0."""
    w = cp.Variable()
    found = certify(cp.Problem(cp.Minimize(cp.square(w - 2)), [w >= 0]), {w: 1.0})
    assert -1e-6 <= found.lower <= 0.0
    assert found.upper == pytest.approx(1.0)
    assert "is outside" not in str(found)


def test_values_are_judged_as_attributes_of_variables_allow() -> None:
    S, z = cp.Variable((2, 2), symmetric=True, name="S"), cp.Variable(nonneg=True, name="z")
    upper = cp.Problem(cp.Minimize(cp.sum(S) + S[0, 1]), [S >> np.eye(2), cp.norm(S, "fro") <= 9.0])
    for values in ([[3, 2], [0, 3]], [[3, 0], [2, 3]], [["3", "2"], ["0", "3"]]):
        found = certify(upper, {S: values}, judge="answer")
        assert found.value == 9.0
        assert found.upper == pytest.approx(9.0)
        assert "what is judged of S is the projection" in str(found)
    found = certify(cp.Problem(cp.Minimize(cp.square(z - 2))), {z: -1.0})
    assert found.value == 4.0
    assert found.upper == pytest.approx(4.0)


def test_a_solver_that_fails_leaves_the_bounds_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Chain) -> Any:
        raise InputError("the solver failed: no reason")

    monkeypatch.setattr(Chain, "solve", failing)
    x = cp.Variable(3)
    model = cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.norm(x, 1) <= 1])
    found = certify(model, {x: np.ones(3) / 3}, judge=None)
    assert found.lower <= 4 / 3 <= found.upper
    assert found.relative_gap < 1e-3
    assert "the solver failed: no reason: the lower bound is that of the values alone" in found.why
    with pytest.raises(InputError, match="the solver failed"):
        certify(model)


def test_values_of_every_kind_of_variable_are_taken() -> None:
    x, H = cp.Variable(3, bounds=[-1.0, 2.0]), cp.Variable((2, 2), hermitian=True)
    D, S, n = cp.Variable((2, 2), diag=True), cp.Variable((3, 3), symmetric=True), cp.Variable(nonpos=True)
    Z = np.array([[2.0, 1.0 - 1.0j], [1.0 + 1.0j, 3.0]])
    constraints = [H >> np.eye(2), cp.norm(x - 3.0) <= 5.0, S >> np.eye(3), cp.diag(D) >= 1.0, n >= -2.0]
    cost = cp.real(cp.trace(Z @ H)) + cp.trace(S) + cp.sum(D) - n - cp.sum(x) + cp.sum_squares(x)
    model = cp.Problem(cp.Minimize(cost), constraints)
    values = {x: np.full(3, 0.5), H: np.eye(2), D: np.eye(2), S: np.eye(3), n: 0.0}
    found = certify(model, values)
    assert found.upper == pytest.approx(found.value, rel=1e-6)
    assert found.relative_gap < 1e-6
    y, z = cp.Variable(pos=True), cp.Variable(2, pos=True)
    product = cp.Problem(cp.Maximize(y * z[0]), [y + z[0] <= 3, y <= 1, z[1] >= 2.0 * y])
    assert certify(product, {y: 1.0, z: np.array([2.0, 3.0])}, gp=True).lower == pytest.approx(2.0)
    with pytest.raises(InputError, match="must be above 0, as the model is a geometric programme"):
        certify(product, {y: 0.0, z: np.array([2.0, 3.0])}, gp=True)
    with pytest.raises(InputError, match=r"must have shape \(3,\), but has \(2,\)"):
        certify(model, values | {x: np.zeros(2)})


def test_what_cannot_be_proven_is_said_and_a_bound_on_a_variable_helps() -> None:
    x = cp.Variable(3)
    flat = certify(cp.Problem(cp.Minimize(x[0] + x[1]), [cp.sum(x) <= 1, cp.sum(x) >= 1, x >= 0, x[2] <= 0.3]), solver="ECOS")
    assert flat.lower == pytest.approx(0.7, rel=1e-6)
    assert (flat.upper, flat.relative_gap) == (np.inf, np.inf)
    assert "no interior" in str(flat)
    A, b, z = normal(12, 4, 8), normal(13, 4), cp.Variable(8, name="z")
    model = cp.Problem(cp.Minimize(cp.norm1(A @ z - b)))
    assert "bounds on them would help" in certify(model, solver="CLARABEL").why[0]
    helped = certify(model, solver="CLARABEL", bounds={z: 10.0})
    assert -1e-6 < helped.lower <= helped.upper < 1e-6
    assert helped.why[-1] == "taken on trust: |z| <= 10"


def test_bounds_are_taken_of_variables_with_attributes() -> None:
    """The optima are attained where all entries have the modulus of the bound."""
    H, S = cp.Variable((2, 2), hermitian=True), cp.Variable((2, 2), symmetric=True)
    z, n, signs = cp.Variable(2, nonneg=True), cp.Variable(nonpos=True), np.array([[1.0, -1.0], [-1.0, 1.0]])
    cost = cp.sum(cp.multiply(signs, S)) - cp.sum(z) + n + cp.real(H[0, 0] + H[1, 1]) + cp.imag(H[0, 1])
    box = [cp.abs(H) <= 5.0, cp.abs(S) <= 3.0, z <= 2.0, n >= -1.0]
    bounds = {S: 3.0, z: 2.0, n: 1.0, H: 5.0}
    alone = certify(cp.Problem(cp.Minimize(cost)), {one: np.zeros(one.shape) for one in bounds}, bounds=bounds, judge="answer")
    assert alone.lower == pytest.approx(-32.0)
    found = certify(cp.Problem(cp.Minimize(cost), box), bounds=bounds, solver="CLARABEL")
    assert alone.lower <= -32.0 <= found.upper
    assert found.lower <= -32.0
    assert found.relative_gap < 1e-6


@pytest.mark.filterwarnings("ignore:(?s).*order of the flatten expression:FutureWarning")  # CVXPY's own
def test_a_set_of_numbers_is_not_relaxed() -> None:
    x = cp.Variable()
    with pytest.raises(InputError, match="integer constraints"):
        certify(cp.Problem(cp.Minimize(cp.abs(x - 2)), [cp.FiniteSet(x, [0, 1, 4])]))


def test_what_is_minimised_out_is_enclosed() -> None:
    x, y = cp.Variable(), cp.Variable()
    inner = partial_optimize(cp.Problem(cp.Minimize(cp.abs(x - y) + cp.abs(y)), [y >= 1]), [y])
    found = certify(cp.Problem(cp.Minimize(inner + cp.abs(x))), solver="CLARABEL")
    assert found.lower <= 2.0 <= found.upper
    assert found.relative_gap < 1e-6


def test_models_that_are_not_enclosed_are_refused_by_name() -> None:
    x, whole = cp.Variable(2), cp.Variable(integer=True)
    for model, words in (
        (cp.Problem(cp.Minimize(whole), [whole >= 0.5]), "integer variables"),
        (cp.Problem(cp.Minimize(0)), "no variables"),
        (cp.Problem(cp.Maximize(cp.sum_squares(x))), "CVXPY refuses the model"),
    ):
        with pytest.raises(InputError, match=words):
            certify(model)
    with pytest.raises(InputError, match="judge must be one of value, answer"):
        certify(cp.Problem(cp.Minimize(x[0]), [x >= 0]), judge="nobody")
    y, p = cp.Variable(2, name="y"), cp.Parameter(name="p")
    model = cp.Problem(cp.Minimize(cp.sum(y)), [y >= 1])
    for values, words in (
        ({}, "values are missing for y"),
        (3.0, "values must be a table of the model's variables and their values, not 3"),
        ({y: [1.0, 2.0, 3.0]}, r"the values of y must have shape \(2,\), but has \(3,\)"),
        ({y: 1.0}, r"the values of y must have shape \(2,\), but has \(\)"),
        ({y: ["a", "b"]}, "the values of y must be an array of real numbers"),
        ({y: [1.0, np.nan]}, "the values of y has NaN at index 1"),
    ):
        with pytest.raises(InputError, match=words):
            certify(model, values)
    for nothing in ("abc", None, 3, y):
        with pytest.raises(InputError, match=r"^model must be a Problem of bench_mtl or a cvxpy.Problem, not "):
            certify(nothing)
    with pytest.raises(InputError, match="the keys of bounds must be variables of the model, not 'y'"):
        certify(model, bounds={"y": 1.0})
    with pytest.raises(InputError, match="model has parameters without values, p: set them first"):
        certify(cp.Problem(cp.Minimize(cp.sum(y)), [y >= p]))
    with pytest.raises(InputError, match="solver must be the name of a solver of CVXPY, not 3"):
        certify(model, solver=3)  # type: ignore[arg-type]


def test_values_from_anywhere_leave_the_model_as_it_was() -> None:
    y = cp.Variable(2, name="y")
    model = cp.Problem(cp.Minimize(cp.sum(y)), [y >= 1])
    found = certify(model, {y: np.array([2.0, 1.0])})
    assert (y.value, model.constraints[0].dual_value, model.value, found.value) == (None, None, None, 3.0)
    assert found.upper == pytest.approx(3.0)
    model.solve(solver="CLARABEL")
    before = (y.value.copy(), model.constraints[0].dual_value.copy(), model.value)
    again = certify(model, {y: np.array([2.0, 1.0])})
    assert (again.lower, again.upper, again.value) == (found.lower, found.upper, 3.0)
    np.testing.assert_array_equal(y.value, before[0])
    np.testing.assert_array_equal(model.constraints[0].dual_value, before[1])
    assert model.value == before[2]


def test_equalities_that_follow_from_others_are_left_out() -> None:
    """Supplies and demands of equal sums: any row is a combination of the others."""
    X = cp.Variable((12, 15), nonneg=True)
    sums = [cp.sum(X, axis=1) == 15, cp.sum(X, axis=0) == 12, cp.sum(X) == 180, X[0, 0] + X[0, 1] == 1, 7 * X[0, 1] == 7 - 7 * X[0, 0]]
    cost = cp.sum(cp.multiply(normal(15, 12, 15), X))
    assert certify(cp.Problem(cp.Minimize(cost), sums), solver="HIGHS").relative_gap < 1e-7
    other = certify(cp.Problem(cp.Minimize(cost), [*sums[:2], cp.sum(X) == 180 + 2.0**-40]), solver="HIGHS", judge="answer")
    assert "contradict" in str(other)


def test_only_rows_that_almost_follow_in_floats_are_met_in_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.round(1024.0 * normal(0, 6, 20))
    dependent, mixed = np.vstack([A, 3.0 * A[0] - 0.5 * A[1], A[2] + 2.0 * A[5]]), np.vstack([A, normal(1, 6, 6) @ A])
    b, apart = np.zeros(8), independent_rows(sp.csr_array(mixed), np.zeros(12))
    assert (len(apart[0]), apart[1]) == (12, False)
    assert len(independent_rows(sp.csr_array(dependent), b)[0]) == 6
    assert independent_rows(sp.csr_array(dependent), b + np.eye(8)[7])[1]
    monkeypatch.setattr("bench_mtl.enclosures.linear._MOST_EXACT_TERMS", 0)
    assert len(independent_rows(sp.csr_array(dependent), b)[0]) == 8
    monkeypatch.setattr("bench_mtl.enclosures.linear.Fraction", None)
    independent_rows(sp.csr_array(mixed), np.zeros(12))


@pytest.mark.parametrize("solver", ["CLARABEL", "HIGHS"])
def test_equalities_that_nearly_follow_from_others_stay(solver: str) -> None:
    """Both entries are 1/2; without the second equality the least first one is 0, and a solver may say so."""
    x = cp.Variable(2)
    sums = [x[0] + x[1] == 1, x[0] + (1 + 2.0**-40) * x[1] == 1 + 2.0**-41, x >= 0]
    assert certify(cp.Problem(cp.Minimize(x[0]), sums), solver=solver).upper >= 0.5


@pytest.mark.parametrize("judge", ["answer", "value"])
def test_what_is_too_large_is_bounded_by_products_or_refused_by_name(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_mtl.enclosures.linear._MOST_ENTRIES", 0)
    monkeypatch.setattr("bench_mtl.enclosures.linear._MOST_NONZEROS", 0)
    A, x, w = np.abs(normal(14, 30, 20)), cp.Variable(20), cp.Variable(20)
    found = certify(cp.Problem(cp.Maximize(cp.sum(x)), [A @ x <= 1, x >= 0, x <= 1]), solver="HIGHS", judge=judge)
    assert found.relative_gap < 1e-6, found
    assert "too large to be solved again" in str(found)
    free = certify(cp.Problem(cp.Minimize(cp.sum_squares(A @ w - 1))), solver="CLARABEL", judge=judge)
    assert "too large" in free.why[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench_mtl.enclosures.inside._solved", None)
        values = certify(cp.Problem(cp.Minimize(cp.norm1(A @ x - 1)), [x >= 0, x <= 1]), {x: np.full(20, 0.5)}, judge=judge)
    assert values.upper == pytest.approx(values.value, rel=1e-6)


# The parts


def test_geometric_programmes_and_maximisation_are_turned_back() -> None:
    x, y = cp.Variable(pos=True), cp.Variable(pos=True)
    found = certify(cp.Problem(cp.Maximize(x * y), [x + y <= 3, x <= 1]), gp=True, solver="CLARABEL")
    assert found.lower <= 2.0 <= found.upper
    assert found.relative_gap < 1e-5


@given(seed=st.integers(0, 2**32 - 1))
def test_cones_contain_what_they_should_and_no_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inside = {
        "nonneg": ([[0.0], [1.0]], [[-5e-324]]),
        "soc": ([[5.0, 3.0, 4.0 * (1 - 1e-12)]], [[5.0, 3.0, 4.0 * (1 + 1e-12)]]),
        "exp": ([[1.0, 1.0, np.e * (1 + 1e-12)], [-1.0, 0.0, 0.0]], [[1.0, 1.0, np.e * (1 - 1e-12)], [1.0, 0.0, 1.0]]),
        "pow": ([[4.0, 1.0, 2.0 * (1 - 1e-12)]], [[4.0, 1.0, 2.0 * (1 + 1e-12)]]),
        "psd": ([[1.0, 2.0 * (1 - 1e-12), 1.0]], [[1.0, 2.0 * (1 + 1e-12), 1.0]]),
    }
    for kind, (good, bad) in inside.items():
        alpha = np.array([0.5]) if kind == "pow" else None
        for lines, expected in ((good, True), (bad, False)):
            for line in lines:
                cone = Cone(kind, np.arange(len(line))[None], alpha)
                factor = 2.0 ** float(rng.integers(-30, 30))
                z = Interval.exact(np.array([line]) * (1.0 if kind == "nonneg" else factor))
                assert cone.contains(z, dual=False) is expected, (kind, line, factor)
                wide = Interval(z.lower - 1e-9 * np.abs(factor), z.upper + 1e-9 * np.abs(factor))
                assert not (expected is False and cone.contains(wide, dual=False))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 8))
def test_least_eigenvalues_are_below_those_of_every_matrix_within_the_radius(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, n)) * np.exp(rng.normal(0.0, 5.0))
    Z = Z + Z.T
    R = np.abs(rng.standard_normal((n, n))) * 1e-3
    R = R + R.T
    bound = least_eigenvalue(Z, R)
    for _ in range(5):
        near = Z + np.triu(R * rng.choice([-1.0, 1.0], (n, n)))
        near = np.triu(near) + np.triu(near, 1).T
        assert bound <= np.linalg.eigvalsh(near)[0] * (1 + 1e-12 * np.sign(np.linalg.eigvalsh(near)[0])) + 1e-12 * np.abs(Z).max()


@given(seed=st.integers(0, 2**32 - 1), decades=st.integers(0, 12))
def test_images_and_products_hold_at_every_corner_of_a_box_in_rational_numbers(seed: int, decades: int) -> None:
    rng = np.random.default_rng(seed)
    A, x, b = rng.standard_normal((3, 4)) * (rng.random((3, 4)) < 0.6), rng.standard_normal(4), rng.standard_normal(3)
    radius = 10.0**-decades * rng.random(4)
    enclosed = image(sp.csr_array(A), x, radius, b)
    for i, row in enumerate(A.tolist()):
        middle = sum((Fraction(a) * Fraction(v) for a, v in zip(row, x.tolist(), strict=True)), Fraction(b[i]))
        far = sum(abs(Fraction(a)) * Fraction(v) for a, v in zip(row, radius.tolist(), strict=True))
        assert Fraction(enclosed.lower[i]) <= middle - far
        assert middle + far <= Fraction(enclosed.upper[i])
    r, low = Interval.around(x, radius), rng.standard_normal(4)
    high = low + rng.random(4)
    least = least_products(r, low, high)
    for ends in itertools.product((r.lower, r.upper), (low, high)):
        assert all(Fraction(bound) <= Fraction(a) * Fraction(v) for bound, a, v in zip(least, *ends, strict=True))
    with np.errstate(invalid="ignore"):
        assert least_products(Interval.around(np.zeros(1), 1.0), np.array([-np.inf]), np.ones(1))[0] == -np.inf


@pytest.mark.parametrize("inverted", [True, False])
@given(seed=st.integers(0, 2**32 - 1))
def test_a_solution_is_within_the_reach_that_is_proven(inverted: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, N = int(rng.integers(1, 6)), int(rng.integers(6, 12))
    M, rho = rng.standard_normal((k, N)), 1e-6 * rng.standard_normal(k)
    equations = Equations(sp.csr_array(M), np.exp(rng.normal(0.0, 2.0, N)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench_mtl.enclosures.linear._INVERTED", 10**6 if inverted else 0)
        reach = equations.reach(Interval.exact(rho))
    v = equations.solve(rho)
    assert np.allclose(M @ v, rho, rtol=1e-9, atol=1e-18)
    assert np.all(np.abs(v) <= reach)
    doubled = Equations(sp.csr_array(np.vstack([M, M[:1]])), np.ones(N))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench_mtl.enclosures.linear._INVERTED", 0)
        assert doubled.reach(Interval.exact(np.append(rho, rho[:1]))) is None


def test_what_underflows_counts() -> None:
    tiny = Interval(np.full((1, 3), -1e-170), np.full((1, 3), 1e-170))
    assert not any(Cone("psd", np.arange(3)[None]).contains(tiny, dual=dual) for dual in (True, False))
    x = cp.Variable(2)
    matrix = cp.bmat([[x[0], x[1]], [x[1], x[0]]])
    assert certify(cp.Problem(cp.Minimize(x[0]), [x[1] == 1e-170, x[0] == 1e-171, matrix >> 0]), solver="CLARABEL").upper == np.inf
    z = cp.Variable()
    assert certify(cp.Problem(cp.Minimize(1e-200 * z), [z <= 1e-200, z >= -1e-200]), solver="CLARABEL").lower < 0.0
    r = np.full(2, 1e-170)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench_mtl.enclosures.linear._INVERTED", 0)
        reach = Equations(sp.csr_array(np.eye(2)), np.ones(2)).reach(Interval(-r, r))
    assert np.all(reach >= r)
    high = np.array([np.inf, np.inf, 5e-324])
    Cone("exp", np.arange(3)[None]).narrow(np.full(3, -np.inf), high)
    assert high[0] > 0.0


def test_dense_columns_are_left_out_of_what_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("_MOST_ENTRIES", 40_000), ("_MOST_NONZEROS", 500), ("_MOST_IN_A_COLUMN", 10)):
        monkeypatch.setattr(f"bench_mtl.enclosures.linear.{name}", most)
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((20, 80)), cp.Variable(80)
    model = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(A @ x - A[:, :3].sum(axis=1)) + cp.norm1(x)))
    assert certify(model, solver="CLARABEL").relative_gap <= 1e-6


def test_reasons_are_of_their_bounds_and_values_far_off_are_stated_first() -> None:
    y = cp.Variable(name="y")
    model = cp.Problem(cp.Maximize(-cp.square(y - 3) + 2), [y <= 1])
    least, most = certify(model, {y: 1.0}).why[:2]
    assert least.startswith("lower bound: the point")
    assert most.startswith("upper bound: the multipliers")
    assert certify(model, {y: 5.0}).why[0] == "the values leave the constraints by up to 4.0e+00: the bounds are of another point"
    z = cp.Variable(name="z")
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: certify(model, {y: 1.0, z: 1.0}), "the keys of values must be variables of the model, not z"),
        (lambda: certify(model, bounds=10), "bounds must be a table of the model's variables and their bounds, not 10"),  # type: ignore[arg-type]
        (lambda: certify(model, solver="CLARABEL", max_itr=3), "the solver refuses the model or an option: .*max_itr"),
    ]
    for call, words in calls:
        with pytest.raises(InputError, match=words):
            call()


@pytest.mark.filterwarnings("ignore:Power atom with exponent:UserWarning")
def test_what_cvxpy_changes_is_refused_or_stated() -> None:
    for attributes in ({"symmetric": True}, {"diag": True}):
        D = cp.Variable((2, 2), complex=True, name="D", **attributes)
        with pytest.raises(InputError, match="CVXPY drops attributes of the complex variables D: state them as constraints"):
            certify(cp.Problem(cp.Minimize(cp.sum(cp.abs(D))), [D[0, 1] == 1]))
    y, w, none = cp.Variable(), cp.Variable(2), cp.Variable((0,))
    assert any("by a fraction, " in reason for reason in certify(cp.Problem(cp.Minimize(cp.power(y, np.pi)), [y >= 2])).why)
    assert not any("by a fraction" in reason for reason in certify(cp.Problem(cp.Minimize(cp.square(y)), [y >= 2])).why)
    with pytest.raises(InputError, match="the bounds contradict a feasible point"):
        certify(cp.Problem(cp.Minimize(cp.square(y) - 6 * y)), {y: 2.0}, bounds={y: 1}, judge="answer")
    empty = cp.Problem(cp.Minimize(cp.sum(w)), [w >= 1, none >= 0])
    assert certify(empty, {none: np.zeros(0), w: np.ones(2)}).upper == pytest.approx(2.0)


def test_a_panic_of_clarabel_is_no_end() -> None:
    C = np.array([[24, 4j, 2 - 2j], [-4j, 9, 8 + 8j], [2 + 2j, 8 - 8j, 17]])
    X = np.array([[1, -4j, -2 + 2j], [4j, 16, -8 - 8j], [-2 - 2j, -8 + 8j, 8]])
    H = cp.Variable((3, 3), hermitian=True)
    for judge in ("answer", "value"):
        found = certify(cp.Problem(cp.Minimize(cp.real(cp.trace(C @ H))), [H >> 0]), {H: X}, judge=judge)
        assert found.lower <= 0.0 <= found.upper
