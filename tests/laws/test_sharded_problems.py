"""Problems whose examples are in shards: certified as in memory, and refused by the solvers that do not take them.

That the others solve them is for the test of pairs to say, which has every problem and every solver in shards of every kind.
"""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.rounding import Interval, compensated
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Iterate, Limits
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import Problem
from bench_mtl.model.tiny_data import row_sparse_data
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.validation.tiny_instances import in_memory, in_shards, sharded_instances

REGISTRY = load_registry()

SHARDED = {f"{name}, {k}": tiny for name, kind in REGISTRY.problems.items() for k, tiny in enumerate(sharded_instances(kind, 0))}

#: Those that some solver of operators takes, and a third of them, by turns, for runs.
SOLVERS = {
    name: solver
    for name, tiny in SHARDED.items()
    for solver in [next((s for s in ("accelerated_gradient", "smoothed_gradient") if REGISTRY.solver(s).incompatibility(tiny) is None), "")]
    if solver
}
RUN = list(SOLVERS)[::3]

#: What a bound in shards is of that in memory, at least: of entropies the best multiple of a dual point is not known before the sums over
#: shards, and chords stand for them.
LEAST = {"logistic": 0.8, "multiclass": 0.2}


@pytest.mark.parametrize("name", SHARDED)
def test_certificates_are_those_of_the_data_in_memory(name: str) -> None:
    sharded: Any = SHARDED[name]
    plain: Any = in_memory(sharded)
    point = plain.repair(np.random.default_rng(1).standard_normal(plain.point_shape))
    one, other = plain.enclose_objective(point), sharded.enclose_objective(point)
    assert one.lower <= other.upper
    assert other.lower <= one.upper  # both hold the exact value
    bound, best = sharded.dual_bound(point, None), plain.dual_bound(point, None)
    least = LEAST.get(getattr(getattr(plain, "loss", None), "name", ""), 1.0)
    assert least * best - 1e-9 <= bound <= best * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", RUN)
def test_bounds_near_an_optimum_are_those_of_the_data_in_memory_and_a_problem_is_the_same_after_a_run(name: str) -> None:
    """What it remembers, such as norms and normal equations, is no part of it: the runner compares."""
    sharded = pickle.loads(pickle.dumps(SHARDED[name]))
    plain, before = in_memory(SHARDED[name]), pickle.dumps(sharded)
    solution = run(sharded, SOLVERS[name], tolerance=1e-7, limits=Limits(iterations=2000)).solution
    assert pickle.dumps(sharded) == before
    assert solution is not None
    assert sharded.dual_bound(solution, None) == pytest.approx(plain.dual_bound(solution, None), rel=1e-6, abs=1e-9)
    assert sharded.dual_bound(solution, sharded.dual_at(solution)) == pytest.approx(sharded.dual_bound(solution, None), rel=1e-12)


def test_a_solver_that_does_not_take_shards_says_so() -> None:
    """Where it would take the same in memory. Every solver that takes shards takes those of some problem."""
    taking = set()
    for name, solver in {name: REGISTRY.solver(name) for name in REGISTRY.solvers}.items():
        for case, sharded in SHARDED.items():
            reason, plain = solver.incompatibility(sharded), in_memory(sharded)
            if reason is None:
                assert solver.takes_shards, f"{name} on {case}"
                taking.add(name)
            elif solver.incompatibility(plain) is None and is_described_alike(sharded, plain):
                assert "in shards" in reason, f"{name} on {case}: {reason}"
    assert taking == {name for name in REGISTRY.solvers if REGISTRY.solvers[name].takes_shards}


def is_described_alike(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same forms, which those of the squared loss with intercepts have not: in memory data are centred."""
    forms, others = ([(type(form), form.has_intercept) for form in each.make_forms()] for each in (one, other))
    return forms == others


@pytest.mark.parametrize("is_precise", [False, True], ids=["plain", "compensated"])
@pytest.mark.parametrize("name", [name for name in SOLVERS if name.startswith(("l1inf_hinge", "l12_hinge"))])
def test_bounds_in_one_pass_are_those_of_one_each(name: str, is_precise: bool) -> None:
    problem: Any = SHARDED[name]
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


class Dearer(L1InfGLM):
    """A problem whose objective is another one than that of its class."""

    def enclose_objective_at(self, point: np.ndarray, predictions: np.ndarray, error: np.ndarray) -> Interval:
        return super().enclose_objective_at(point, predictions, error) + 1000.0


class DearerHinge(L1InfHinge):
    """The same with hinges."""

    def enclose_objective_at(self, point: np.ndarray, predictions: np.ndarray, error: np.ndarray) -> Interval:
        return super().enclose_objective_at(point, predictions, error) + 1000.0


@pytest.mark.parametrize("kind", [Dearer, DearerHinge])
def test_what_a_class_overrides_counts_in_shards_too(kind: Any) -> None:
    data = row_sparse_data(np.random.default_rng(0)).labelled().shared
    plain, sharded = (kind(each, penalty=0.1) for each in (data, in_shards(data)))
    point = plain.repair(np.random.default_rng(1).standard_normal(plain.point_shape))
    assert sharded.objective(point) == pytest.approx(plain.objective(point))
    assert sharded.certify(Iterate(point)).primal == pytest.approx(plain.certify(Iterate(point)).primal)


def test_steps_do_not_depend_on_what_was_computed_before() -> None:
    """A Gram matrix that is there already changes no norm."""
    X = np.random.default_rng(0).standard_normal((100, 80))
    fresh, used = (ShardedDesign(Shards.held([(X[:30], np.zeros((30, 1))), (X[30:], np.zeros((70, 1)))])) for _ in range(2))
    used.gram(0)
    assert fresh.norm() == used.norm()
