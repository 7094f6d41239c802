"""Every installed problem family keeps the promises of `Problem`."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from bench_mtl.core.rounding import compensated
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import Capability, Problem
from bench_mtl.validation.conformance import ProblemCheck, problem_checks
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
    from bench_mtl.problems.sparse_low_rank import SparseLowRank
    from bench_mtl.validation.conformance import check_gradient, check_weak_duality

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


class RidgeFit(Problem):
    """min_W 1/2 ||Y - X W||^2 + 1/2 ||W||^2 without a model, D(r) = <r, Y> - 1/2 ||r||^2 - ||X^T r||^2 / divisor."""

    name, offers = "ridge_fit", frozenset({Capability.SMOOTH, Capability.PROX})
    divisor, point_shape, dual_shape, dimensions = 2.0, (4, 2), (9, 2), {"n": 18, "d": 4, "m": 2}

    def __init__(self, rng: np.random.Generator) -> None:
        self.X, self.Y = rng.standard_normal((9, 4)), 1e-2 * rng.standard_normal((9, 2))

    @classmethod
    def examples(cls, rng):  # type: ignore[no-untyped-def]
        yield cls(rng)

    def smooth_value(self, point):  # type: ignore[no-untyped-def]
        return 0.5 * float(((self.Y - self.X @ point) ** 2).sum())

    def value_and_gradient(self, point):  # type: ignore[no-untyped-def]
        return self.smooth_value(point), self.X.T @ (self.X @ point - self.Y)

    def lipschitz(self) -> float:
        return float(np.linalg.norm(self.X, 2) ** 2)

    def prox_value(self, point):  # type: ignore[no-untyped-def]
        return 0.5 * float((point**2).sum())

    def objective(self, point):  # type: ignore[no-untyped-def]
        return self.smooth_value(point) + self.prox_value(point)

    def prox(self, point, step_size):  # type: ignore[no-untyped-def]
        return point / (1.0 + step_size)

    def repair(self, point):  # type: ignore[no-untyped-def]
        return point

    def infeasibility(self, point) -> float:  # type: ignore[no-untyped-def]
        return 0.0

    def dual_bound(self, point, dual):  # type: ignore[no-untyped-def]
        r = self.Y - self.X @ point if dual is None else dual
        return float((r * self.Y).sum()) - 0.5 * float((r**2).sum()) - float(((self.X.T @ r) ** 2).sum()) / self.divisor


def test_a_bound_that_is_false_near_the_optimum_alone_is_noticed() -> None:
    class Wrong(RidgeFit):
        divisor = 4.0

    for problem in (RidgeFit, Wrong):
        tiny = next(problem.examples(np.random.default_rng(0)))
        for check in problem_checks(problem):
            if problem is Wrong and check.what == "bounds near the optimum":
                with pytest.raises(AssertionError, match="near the optimum a lower bound is"):
                    check.check(tiny, np.random.default_rng(0))
            elif check.applies_to(tiny):
                check.check(tiny, np.random.default_rng(0))
