"""Every installed problem family keeps the promises of `Problem`."""

from contextlib import nullcontext

import numpy as np
import pytest

from bench_mtl import Capability, Problem, load_registry
from bench_mtl.core.rounding import compensated
from bench_mtl.problems import SparseLowRank, TaskRelationships
from bench_mtl.validation.conformance import ProblemCheck, check_gradient, check_weak_duality, problem_checks
from bench_mtl.validation.tiny_instances import all_instances, tiny_instances

pytestmark = pytest.mark.numerics

PROBLEMS = load_registry().problems
GRID = [pytest.param(problem, check, id=f"{name}-{check.what}") for name, problem in PROBLEMS.items() for check in problem_checks(problem)]


@pytest.mark.parametrize(("problem", "check"), GRID)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4))])
def test_problem_keeps_its_promises(problem: type[Problem], check: ProblemCheck, seed: int) -> None:
    instances = all_instances if seed == 0 else tiny_instances
    fitting = [tiny for tiny in instances(problem, seed) if check.applies_to(tiny)]
    assert fitting, "no tiny instance of this problem offers what the class says"
    for tiny in fitting:
        check.check(tiny, np.random.default_rng(seed))


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_problem_describes_itself(problem: type[Problem]) -> None:
    for tiny in all_instances(problem, 0):
        assert {"n", "d", "m"} <= set(tiny.dimensions)
        assert tiny.start_point().shape == tiny.point_shape
        assert tiny.infeasibility(tiny.start_point()) == 0.0
        assert problem.offers


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_what_is_no_number_proves_nothing(problem: type[Problem]) -> None:
    rng = np.random.default_rng(0)
    for tiny in all_instances(problem, 0):
        point = tiny.repair(0.1 * rng.standard_normal(tiny.point_shape))
        best = tiny.objective(point)
        for odd in (np.nan, np.inf, -np.inf, 1e308, -1e308):
            for shape in tiny.dual_shapes:
                dual = rng.standard_normal(shape)
                dual.flat[rng.integers(dual.size)] = odd
                for products in (nullcontext(), compensated()):
                    with products:
                        assert tiny.dual_bound(point, dual) <= best
            wrong = point.copy()
            wrong.flat[rng.integers(wrong.size)] = odd
            if not np.isfinite(odd):
                assert tiny.infeasibility(wrong) == np.inf


def test_a_false_gradient_is_noticed() -> None:
    """The checks can fail."""

    class Wrong(SparseLowRank):
        def value_and_gradient(self, point):  # type: ignore[no-untyped-def]
            value, gradient = super().value_and_gradient(point)
            return value, 1.01 * gradient

        def dual_bound(self, point, dual):  # type: ignore[no-untyped-def]
            return 1e6

    wrong = next(Wrong.examples(np.random.default_rng(0)))
    with pytest.raises(AssertionError, match="gradient says"):
        check_gradient(wrong, np.random.default_rng(0))
    with pytest.raises(AssertionError, match="above objective"):
        check_weak_duality(wrong, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("is_modelled", "check", "words"),
    [(True, "agrees with CVXPY", "above a value of"), (False, "bounds near the optimum", "near the optimum a lower bound is")],
)
def test_a_bound_that_is_false_near_the_optimum_alone_is_noticed(is_modelled: bool, check: str, words: str) -> None:
    """By a proven enclosure of its conic model, or without one by a solver that goes on until bounds cross."""

    class Wrong(TaskRelationships):
        offers = TaskRelationships.offers if is_modelled else TaskRelationships.offers - {Capability.CONIC}

        def dual_bound(self, point, dual):  # type: ignore[no-untyped-def]
            bound = super().dual_bound(point, dual)
            return bound + 1e-6 * abs(bound)

    tiny = next(Wrong.examples(np.random.default_rng(0)))
    noticed = {}
    for each in problem_checks(Wrong):
        if each.applies_to(tiny):
            try:
                each.check(tiny, np.random.default_rng(0))
            except AssertionError as error:
                noticed[each.what] = str(error)
    assert noticed.keys() == {check}, noticed
    assert words in noticed[check]
