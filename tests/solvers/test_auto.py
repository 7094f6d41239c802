"""`auto`: what it picks, and what a race of two costs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pytest
from solver_data import proven

from bench_mtl.core.types import Array, Iterate
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems import L12GLM, DirtyModel, L1BallGLM, L1InfGLM, L1InfHinge, L12Hinge, SparseLowRank
from bench_mtl.solvers import PDHG, Auto, SmoothedGradient, WorkingSet
from bench_mtl.solvers.auto.race import Candidate, GapTest, Race
from bench_mtl.validation.tiny_instances import in_shards


@pytest.fixture(scope="module")
def wide() -> L1InfHinge:
    """Many features and examples in few tasks: an iteration of the interior-point method is expensive."""
    return L1InfHinge(synthetic_l1inf(tasks=4, features=200, examples=190), radius=50.0)


@pytest.fixture(scope="module")
def correlated() -> L1InfHinge:
    """Shared examples with few directions of any size: hard for a first-order method, small for the other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40)) * np.logspace(0, -2, 40) @ np.linalg.qr(rng.standard_normal((40, 40)))[0]
    return L1InfHinge(TaskData.shared(X, np.where(X @ rng.standard_normal((40, 3)) + 0.05 > 0.0, 1.0, -1.0)), radius=20.0)


def note_of(problem: Problem, solver: Auto, gap: float) -> str:
    return str(dict(proven(problem, solver, gap).info)["note"])


def test_an_easy_target_is_left_to_the_first_order_method() -> None:
    many = L1InfHinge(synthetic_l1inf(tasks=60, features=200, examples=40), radius="truth")
    assert note_of(many, Auto(), 0.05) == "pdhg"


def test_a_close_target_is_left_to_the_working_sets(wide: L1InfHinge) -> None:
    assert note_of(wide, Auto(), 1e-6).startswith("working_set")
    begun = list(islice(WorkingSet().steps(wide), 6))
    for a, b in zip(Auto(target=1e-6).steps(wide), begun, strict=False):
        assert np.array_equal(a.primal, b.primal)
        assert (a.step, a.work) == (b.step, b.work)


def test_in_turns_each_goes_on_where_it_was(correlated: L1InfHinge) -> None:
    iterates = list(islice(Auto(target=2e-3).steps(correlated), 1, 80))
    names = [iterate.note.split(";")[0] for iterate in iterates]
    assert set(names) == {"pdhg", "working_set"}
    assert [iterate.step for iterate in iterates] == sorted(iterate.step for iterate in iterates)
    assert (np.diff([iterate.work for iterate in iterates]) > 0.0).all()
    alone = {solver.name: (one for one in solver.steps(correlated) if one.step > 0) for solver in (PDHG(), WorkingSet())}
    for iterate, name in zip(iterates, names, strict=True):
        assert np.array_equal(iterate.primal, next(alone[name]).primal)


def test_asked_for_more_than_its_target_it_takes_the_working_sets() -> None:
    several = L1InfHinge(synthetic_l1inf(tasks=4, features=200, examples=190), radius=20.0)
    assert note_of(several, Auto(target=0.3), 1e-9).startswith("working_set; pdhg has taken ")


def test_without_memory_for_the_factors_the_first_order_method_goes_on() -> None:
    small = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=30), radius="truth")
    assert note_of(small, Auto(memory_gib=1e-9), 1e-6) == "pdhg"


def drawn(n: int, d: int, *, is_shared: bool = True) -> TaskData:
    rng = np.random.default_rng(5)
    Xs, Y = rng.standard_normal((3, n, d)), np.where(rng.standard_normal((n, 3)) > 0.0, 1.0, -1.0)
    return TaskData.shared(Xs[0], Y) if is_shared else TaskData.per_task(list(Xs), list(Y.T))


def low_rank_of(data: TaskData) -> SparseLowRank:
    return SparseLowRank(data, penalty=0.5, radius=2.0)


@pytest.mark.parametrize(
    ("problem", "picked"),
    [
        (L1InfGLM(drawn(40, 12), penalty="0.001 max"), "working_set"),
        (L1InfGLM(drawn(40, 12), radius=2.0, loss="logistic"), "working_set"),
        (DirtyModel(drawn(40, 12), row_penalty="0.1 max", entry_penalty="0.1 max"), "working_set"),
        (L1BallGLM(drawn(40, 12), penalty="0.1 max"), "l1_working_set"),
        (L1BallGLM(drawn(40, 12), radius=2.0, loss="logistic"), "l1_working_set"),
        (low_rank_of(drawn(40, 12)), "admm"),
        (low_rank_of(drawn(10, 100)), "partial_minimisation"),
        (low_rank_of(drawn(10, 12, is_shared=False)), "admm"),
        (low_rank_of(drawn(10, 100, is_shared=False)), "dual_newton"),
        (L1InfGLM(in_shards(drawn(40, 12, is_shared=False)), penalty="0.1 max", loss="logistic"), "dual_newton"),
    ],
)
def test_other_problems_have_their_solver_by_loss_norm_and_shape(problem: Problem, picked: str) -> None:
    assert note_of(problem, Auto(), 1e-4).startswith(picked)


def test_where_working_sets_end_early_newton_goes_on() -> None:
    rng = np.random.default_rng(1)
    X, W = rng.standard_normal((60, 30)), rng.standard_normal((30, 3))
    separable = TaskData.shared(X, np.where(X @ W > 0.0, 1.0, -1.0))
    problem = L1InfGLM(separable, penalty="1e-5 max", loss="logistic")
    assert note_of(problem, Auto(), 1e-6).startswith("dual_newton")


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_features_of_unlike_size_go_to_the_method_that_does_not_mind(loss: str) -> None:
    rng = np.random.default_rng(8)
    X, Y = rng.standard_normal((40, 6)), np.where(rng.standard_normal((40, 2)) > 0.0, 1.0, -1.0)
    steps = [next(islice(Auto().steps(L12GLM(TaskData.shared(X * units, Y), penalty="0.1 max", loss=loss)), 1, None))
             for units in (1.0, 10.0 ** np.linspace(-2.0, 2.0, 6))]  # fmt: skip
    assert [iterate.note.split(" ")[0] for iterate in steps] == ["accelerated_gradient_restart", "dual_newton"]


def test_many_unlike_features_under_an_l1_norm_stay_with_working_sets() -> None:
    data = drawn(100, 400)
    unlike = TaskData.shared(data.design.block(0) * 10.0 ** np.linspace(-3.0, 3.0, 400), data.targets)
    assert note_of(L1BallGLM(unlike, penalty="0.1 max", loss="logistic"), Auto(), 1e-6).startswith("l1_working_set")


def test_where_the_entries_hardly_cost_anything_newton_goes_on() -> None:
    one = TaskData.shared(drawn(1, 6).design.block(0), drawn(1, 6).targets)
    proven(DirtyModel(one, row_penalty="0.2 max", entry_penalty=1e-6), Auto(), 1e-6, seconds=10.0)


def test_hinges_of_unlike_features_go_to_interior_points_on_cones() -> None:
    data = drawn(40, 400)
    unlike = TaskData.shared(data.design.block(0) * 10.0 ** np.linspace(-2.0, 2.0, 400), data.targets)
    notes = [next(islice(Auto().steps(L12Hinge(each, penalty="0.1 max")), 1, None)).note for each in (data, unlike)]
    assert notes == ["graph_admm", "cone_interior_point"]


def test_where_the_sets_end_the_accelerated_method_goes_on() -> None:
    rng = np.random.default_rng(7)
    problem = L1InfGLM(TaskData.shared(rng.standard_normal((60, 200)), rng.standard_normal((60, 3))), penalty="0.1 max")
    assert "accelerated_gradient" in note_of(problem, Auto(memory_gib=1e-5), 1e-5)


def test_the_solver_that_goes_on_begins_where_another_has_ended() -> None:
    class Short(PDHG):
        def resume(self, problem: Problem, start: Iterate) -> Iterator[Iterate]:
            return islice(super().resume(problem, start), 5)

    problem = L1InfHinge(synthetic_l1inf(tasks=3, features=8, examples=30), radius="truth")
    candidates = Candidate(Short(), least=1.0), Candidate(SmoothedGradient(), test=math.inf)
    *_, before, after = islice(Race(Auto(), candidates, problem, Iterate(problem.start_point()), 1e-6).iterates(), 6)
    following = islice(SmoothedGradient().resume(problem, Iterate(before.primal, before.dual)), 1, None)
    assert (before.note, after.note[:15]) == ("pdhg", "smoothed_gradie")
    np.testing.assert_array_equal(after.primal, next(following).primal)


def test_along_a_path_l1_norms_keep_their_columns() -> None:
    along: Any = Auto().along_path()
    assert along == along.along_path()
    assert along.aimed_at(1e-6).l1_solver.memory is along.l1_solver.memory is not None


def test_features_are_not_read_where_newton_is_too_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = L1InfGLM(TaskData.shared(np.eye(4), np.ones((4, 2))), penalty=0.1)
    for name in ("_NEWTON_PRODUCTS", "_NEWTON_PRODUCTS_BY_TASKS"):
        monkeypatch.setattr(f"bench_mtl.solvers.auto.solver.{name}", 0.0)
    monkeypatch.setattr("bench_mtl.solvers.auto.solver.feature_units", lambda design: pytest.fail("the data were read"))
    assert next(iter(Auto().steps(problem))).step == 0


@dataclass(frozen=True)
class Stub(IterativeSolver):
    """Proves nothing: its iterates state when they are at the end, after so many steps of a price."""

    length: int
    price: float

    name: ClassVar[str] = "stub"

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        for step in range(self.length + 1):
            yield Iterate(problem.start_point(), None, step, step * self.price, claim=0.0 if step == self.length else 0.5)

    @property
    def cost(self) -> float:
        return self.length * self.price


def entered(stub: Stub, bound: Callable[[GapTest, GapTest, float], float], least: float) -> Candidate:
    return Candidate(stub, lambda before, after: after.work - before.work, least, bound)


def cost_of(candidates: list[Candidate], problem: Problem, target: float, is_proven: Callable[[Iterate], bool]) -> float:
    """Return what a race costs until one proves the target, in the prices of the candidates."""
    prices: list[float] = []

    def counting(price: Callable[[Iterate, Iterate], float]) -> Callable[[Iterate, Iterate], float]:
        def counted(before: Iterate, after: Iterate) -> float:
            prices.append(price(before, after))
            return prices[-1]

        return counted

    lanes = [replace(candidate, price=counting(candidate.price)) for candidate in candidates]
    iterates = Race(Auto(), lanes, problem, Iterate(problem.start_point()), target).iterates()
    assert any(is_proven(iterate) for iterate in iterates)
    return sum(prices)


@pytest.mark.parametrize("seed", range(20))
def test_a_race_costs_at_most_twice_the_better_and_a_step(seed: int, wide: L1InfHinge) -> None:
    """Whatever the bounds are, as long as they are none too high; and 17 times that where they are."""
    rng = np.random.default_rng(seed)
    stubs = [Stub(int(rng.integers(1, 200)), float(rng.uniform(1.0, 30.0))) for _ in range(2)]
    shares = rng.uniform(0.0, 1.0, 2)

    def honest(stub: Stub, share: float) -> Candidate:
        return entered(stub, lambda before, now, target: share * (stub.cost - now.spent), share * stub.cost)

    def cost(candidates: list[Candidate]) -> float:
        return cost_of(candidates, wide, 1e-6, lambda iterate: iterate.claim == 0.0)

    best, a_step = min(stub.cost for stub in stubs), max(stub.price for stub in stubs)
    assert cost([honest(*pair) for pair in zip(stubs, shares, strict=True)]) <= 2.0 * best + a_step
    false = [entered(stubs[0], lambda before, now, target: np.inf, 0.0), honest(stubs[1], 0.0)]
    assert cost(false) <= 17.0 * best + 17.0 * a_step


RACES = {
    "hinge": L1InfHinge(synthetic_l1inf(tasks=4, features=100, examples=60), radius=20.0),
    "squares, rows": L1InfGLM(drawn(60, 20), penalty="0.1 max"),
    "logistic, groups": L12GLM(drawn(80, 12), penalty="0.05 max", loss="logistic"),
    "squares, entries": L1BallGLM(drawn(60, 20), penalty="0.05 max"),
}


@pytest.mark.parametrize("target", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("name", RACES)
def test_a_race_of_solvers_costs_at_most_twice_the_better_and_a_step(name: str, target: float) -> None:
    """Of the first two, a third one that comes late takes nothing."""
    problem = RACES[name]
    candidates = list(Auto().candidates(problem, target))
    assert len(candidates) >= 2

    def is_proven(iterate: Iterate) -> bool:
        return problem.certify(iterate).relative_gap <= target

    costs, steps = [], []
    for candidate in candidates[:2]:
        prices = []
        before = Iterate(problem.start_point())
        for iterate in islice(candidate.solver.steps(problem), 3000):
            prices.append(candidate.price(before, iterate))
            before = iterate
            if is_proven(iterate):
                break
        costs.append(sum(prices) if is_proven(before) else np.inf)
        steps.append(max(prices))
    assert cost_of(candidates, problem, target, is_proven) <= 2.0 * min(costs) + max(steps)
