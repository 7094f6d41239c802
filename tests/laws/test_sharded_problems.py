"""Problems whose examples are in shards: certified as in memory, and refused by the solvers that do not take them.

That the others solve them is for the test of pairs to say, which has every problem and every solver in shards of every kind.
"""

import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Capability, Iterate, Limits, Problem, TaskData, load_registry, run
from bench_mtl.core.designs import dense
from bench_mtl.core.rounding import compensated
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.problems import L1InfGLM, L1InfHinge
from bench_mtl.solvers.adaptive_sample_size import AdaptiveSampleSize, _smoothing_of
from bench_mtl.validation.tiny_instances import in_memory, in_shards, sharded_instances

REGISTRY = load_registry()

N, D, M = 40, 8, 3

PROBLEMS = {
    "l1inf_hinge, radius": ("l1inf_hinge", True, {"radius": 2.0}),
    "l1inf_hinge, penalty": ("l1inf_hinge", True, {"penalty": "0.1 max"}),
    "l1inf_hinge, intercept": ("l1inf_hinge", True, {"penalty": "0.1 max", "intercept": True}),
    "l1inf_glm, squared": ("l1inf_glm", False, {"penalty": "0.1 max"}),
    "l1inf_glm, squared, intercept": ("l1inf_glm", False, {"penalty": "0.1 max", "intercept": True}),
    "l1inf_glm, logistic": ("l1inf_glm", True, {"penalty": "0.1 max", "loss": "logistic"}),
    "sparse_low_rank": ("sparse_low_rank", False, {"penalty": 5.0, "radius": 3.0}),
    "l1_ball_glm, radius": ("l1_ball_glm", False, {"radius": 3.0}),
    "l1_ball_glm, logistic": ("l1_ball_glm", True, {"penalty": "0.1 max", "loss": "logistic"}),
    "trace_norm_glm": ("trace_norm_glm", False, {"radius": 3.0}),
    "l12_hinge": ("l12_hinge", True, {"penalty": "0.1 max"}),
    "l12_glm": ("l12_glm", False, {"penalty": "0.1 max"}),
    "l12_glm, quantile": ("l12_glm", False, {"penalty": "0.1 max", "loss": "quantile:0.3"}),
    "l1inf_glm, options": (
        "l1inf_glm",
        False,
        {"penalty": 0.1, "feature_factors": np.linspace(0.0, 2.0, D), "nonnegative": True, "ridge": 0.1},
    ),
    "l1_ball_glm, multiclass": ("l1_ball_glm", "classes", {"penalty": "0.1 max", "loss": "multiclass"}),
    "dirty_model": ("dirty_model", False, {"row_penalty": 0.2, "entry_penalty": 0.15}),
    "task_relationships": ("task_relationships", False, {"ridge": 1.0, "coupling": 1.0}),
    "ball_hinge": ("ball_hinge", True, {"radius": 1.0}),
    "group_boosting": ("group_boosting", "classes", {"nu": "0.1 max"}),
}


def pair(is_sparse: bool, with_labels: bool | str) -> tuple[TaskData, TaskData]:
    """Return the same data in memory and in shards."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)
    W = rng.standard_normal((D, M)) * (rng.random((D, 1)) < 0.4)
    scores = X @ W + 0.5 * rng.standard_normal((N, M))
    matrix: Any = sp.csr_array(X) if is_sparse else X
    targets = np.where(scores > np.median(scores), 1.0, -1.0) if with_labels else scores
    if with_labels == "classes":
        targets = 2.0 * np.eye(M)[scores.argmax(axis=1)] - 1.0
    plain = TaskData.shared(matrix, targets)
    return plain, in_shards(plain)


def pair_by_task(is_sparse: bool, with_labels: bool | str) -> tuple[TaskData, TaskData]:
    """Return the same data in memory and in shards, with examples of their own for every task."""
    rng = np.random.default_rng(7)
    W = rng.standard_normal((D, M)) * (rng.random((D, 1)) < 0.4)
    Xs: list[Any] = [rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.5) for n in (14, 9, 18)]
    scores = [X @ W[:, k] + 0.5 * rng.standard_normal(len(X)) for k, X in enumerate(Xs)]
    ys = [np.where(s > np.median(s), 1.0, -1.0) if with_labels else s for s in scores]
    Xs = [sp.csr_array(X) for X in Xs] if is_sparse else Xs
    plain = TaskData.per_task(Xs, ys)
    return plain, in_shards(plain)


#: Every case with a shared design, and with examples of their own for every task where tasks are no classes.
DATA = [
    *(pytest.param(case, pair, id=case) for case in PROBLEMS),
    *(pytest.param(case, pair_by_task, id=f"{case}, by task") for case, (_, labels, _) in PROBLEMS.items() if labels != "classes"),
]


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("case", "make"), DATA)
def test_certificates_are_those_of_the_data_in_memory(case: str, make: Any, is_sparse: bool) -> None:
    name, with_labels, parameters = PROBLEMS[case]
    kind = REGISTRY.problem(name)
    plain, sharded = (kind.from_data(data, **parameters) for data in make(is_sparse, with_labels))
    point = plain.repair(np.random.default_rng(1).standard_normal(plain.point_shape))
    assert sharded.is_in_shards
    assert not plain.is_in_shards
    one, other = plain.enclose_objective(point), sharded.enclose_objective(point)
    assert one.lower <= other.upper
    assert other.lower <= one.upper  # both hold the exact value
    bound, best = sharded.dual_bound(point, None), plain.dual_bound(point, None)
    # Of entropies the best multiple of a dual point is not known before the sums over shards, and chords stand for them.
    least = {"logistic": 0.8, "multiclass": 0.2}.get(str(parameters.get("loss")), 1.0)
    assert least * best - 1e-9 <= bound <= best * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("case", PROBLEMS)
def test_bounds_near_an_optimum_are_those_of_the_data_in_memory(case: str) -> None:
    name, with_labels, parameters = PROBLEMS[case]
    made = REGISTRY.problem(name)
    plain, sharded = (made.from_data(data, **parameters) for data in pair(False, with_labels))
    solver = "accelerated_gradient" if Capability.SMOOTH in plain.offers else "smoothed_gradient"
    solution = run(plain, solver, tolerance=1e-7, limits=Limits(iterations=300)).solution
    assert sharded.dual_bound(solution, None) == pytest.approx(plain.dual_bound(solution, None), rel=1e-6, abs=1e-9)
    assert sharded.dual_bound(solution, sharded.dual_at(solution)) == pytest.approx(sharded.dual_bound(solution, None), rel=1e-12)


def test_a_solver_that_does_not_take_shards_says_so() -> None:
    """Where it would take the same in memory. Every solver that takes shards takes those of some problem."""
    taking = set()
    for name, solver in {name: REGISTRY.solver(name) for name in REGISTRY.solvers}.items():
        for kind in REGISTRY.problems.values():
            for sharded in sharded_instances(kind, 0):
                reason, plain = solver.incompatibility(sharded), in_memory(sharded)
                if reason is None:
                    assert solver.takes_shards, f"{name} on {kind.name}"
                    taking.add(name)
                elif solver.incompatibility(plain) is None and is_described_alike(sharded, plain):
                    assert "in shards" in reason, f"{name} on {kind.name}: {reason}"
    assert taking == {name for name in REGISTRY.solvers if REGISTRY.solvers[name].takes_shards}


def is_described_alike(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same forms, which those of the squared loss with intercepts have not: in memory data are centred."""
    return [(type(form), form.has_intercept) for form in one.make_forms()] == [
        (type(form), form.has_intercept) for form in other.make_forms()
    ]


@pytest.mark.parametrize("make", [pair, pair_by_task])
@pytest.mark.parametrize("is_precise", [False, True], ids=["plain", "compensated"])
@pytest.mark.parametrize("case", ["l1inf_hinge, radius", "l1inf_hinge, penalty", "l12_hinge"])
def test_bounds_in_one_pass_are_those_of_one_each(case: str, is_precise: bool, make: Any) -> None:
    name, with_labels, parameters = PROBLEMS[case]
    problem: Any = REGISTRY.problem(name).from_data(make(False, with_labels)[1], **parameters)
    rng = np.random.default_rng(2)
    W = problem.repair(rng.standard_normal(problem.point_shape))
    own, huge = problem.dual_at(W), np.full(problem.dual_shape, 1.7e308)
    smoothed = problem.smoothed(0.1 * W, 0.5)[2]
    explicit = rng.random(problem.dual_shapes[1])
    with compensated() if is_precise else nullcontext():
        for duals in ([], [own], [smoothed, own, 0.5 * own], [explicit, smoothed], [huge, smoothed]):
            objective, bounds = problem.bounds(W, duals)
            assert objective == pytest.approx(problem.objective(W), rel=1e-12)
            assert bounds == pytest.approx([problem.dual_bound(W, dual) for dual in duals], rel=1e-9, abs=1e-9)
            assert all(bound <= objective for bound in bounds)
    assert problem.bounds(np.full(problem.point_shape, 1.7e308), [smoothed])[0] == np.inf


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [pair, pair_by_task])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gram_matrices_of_some_columns_are_totals_over_shards(loss: str, make: Any, is_sparse: bool) -> None:
    plain, sharded = (L1InfGLM(data, penalty=0.1, loss=loss) for data in make(is_sparse, loss == "logistic"))
    W, columns = np.random.default_rng(3).standard_normal((D, M)), np.array([1, 4, 6])
    V = np.random.default_rng(4).standard_normal((D, M))
    near, design = sharded.sums.expansion(W, sharded.sums.told(V), columns), plain.design
    curvatures = plain.fit.curvatures(design.forward(W)) if loss == "logistic" else np.ones(design.output_shape)
    for k in range(M):
        X, D_k = dense(design.block(k))[:, columns], design.task_outputs(curvatures, k)
        np.testing.assert_allclose(near.grams[k % len(near.grams)], X.T @ (D_k[:, None] * X), rtol=1e-12, atol=1e-14)
    (value, gradient), (of_dual, slopes) = map(plain.value_and_gradient, (W, V))
    np.testing.assert_allclose(near.gradient, gradient, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(near.slopes, -slopes, rtol=1e-11, atol=1e-13)
    # Fenchel's inequality is an equation there.
    assert (near.value, near.gain) == pytest.approx((value, of_dual - float((V * slopes).sum())), rel=1e-11)


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_is_the_same_after_a_run(case: str) -> None:
    """What it remembers, such as norms and normal equations, is no part of it: the runner compares."""
    name, with_labels, parameters = PROBLEMS[case]
    sharded = REGISTRY.problem(name).from_data(pair(False, with_labels)[1], **parameters)
    before = pickle.dumps(sharded)
    run(sharded, "accelerated_gradient" if Capability.SMOOTH in sharded.offers else "smoothed_gradient", tolerance=1e-2)
    assert pickle.dumps(sharded) == before


@pytest.mark.parametrize("family", [L1InfGLM, L1InfHinge])
def test_what_a_class_overrides_counts_in_shards_too(family: Any) -> None:
    dearer = {"enclose_objective_at": lambda self, *given: family.enclose_objective_at(self, *given) + 1000.0}
    kind: Any = type("Dearer", (family,), dearer)
    plain, sharded = (kind(data, penalty=0.1) for data in pair(False, True))
    point = plain.repair(np.random.default_rng(1).standard_normal(plain.point_shape))
    assert sharded.objective(point) == pytest.approx(plain.objective(point))
    assert sharded.certify(Iterate(point)).primal == pytest.approx(plain.certify(Iterate(point)).primal)


@pytest.mark.parametrize("first", [0.5, 1.0])
def test_no_sample_is_named_before_it_is_taken(first: float) -> None:
    solver, problem = AdaptiveSampleSize(first=first), REGISTRY.problem("l1inf_glm").from_data(pair(False, False)[1], penalty="0.1 max")
    stepper = solver.stepper(problem)
    assert stepper.iterate(stepper.start(Iterate(problem.zero()))).note == "adaptive_sample_size: start"


def test_steps_do_not_depend_on_what_was_computed_before() -> None:
    """A Gram matrix that is there already changes no norm."""
    X = np.random.default_rng(0).standard_normal((100, 80))
    fresh, used = (ShardedDesign(Shards.held([(X[:30], np.zeros((30, 1))), (X[30:], np.zeros((70, 1)))])) for _ in range(2))
    used.gram(0)
    assert fresh.norm() == used.norm()


def test_the_smoothing_that_a_dual_point_in_shards_tells_is_in_the_unit_of_the_problem() -> None:
    problem = REGISTRY.problem("l12_glm").from_data(pair(False, False)[1], penalty="0.1 max", loss="quantile:0.3")
    dual = problem.smoothed(problem.zero(), 0.25)[2]
    assert problem.smoothing_unit != pytest.approx(1.0, rel=1e-3)
    assert _smoothing_of(problem, dual) == pytest.approx(0.25)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [pair, pair_by_task])
def test_auto_solves_small_hinges_in_shards_by_working_sets(make: Any, intercept: bool) -> None:
    problem = L1InfHinge(make(False, True)[1], radius=1.0, intercept=intercept)
    record = run(problem, "auto", tolerance=1e-8, limits=Limits(iterations=100))
    assert record.status == "verified", record.reason
