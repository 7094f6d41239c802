"""Frank-Wolfe: its directions, its line search, its gap, its atoms, its options."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.projections import norm_l1inf
from bench_mtl.solvers.frank_wolfe import FrankWolfe, line_search
from bench_mtl.solvers.smoothed_gradient import SmoothedGradient

DATA = synthetic_l1inf(tasks=3, features=8, examples=10)
HINGE = L1InfHinge(DATA, radius=2.0)


def test_the_line_search_finds_the_minimum() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        slack, change, weights = rng.standard_normal(20), rng.standard_normal(20), rng.random(20)
        smoothing, longest = 10 ** rng.uniform(-4, 0.5), 10 ** rng.uniform(-1, 1)

        def value(gamma: float, slack=slack, change=change, weights=weights, smoothing=smoothing) -> float:  # type: ignore[no-untyped-def]
            z = slack - gamma * change
            return float((weights * np.where(z > smoothing, z - smoothing / 2, np.maximum(z, 0.0) ** 2 / (2 * smoothing))).sum())

        found = line_search(slack, change, weights, smoothing, longest)
        assert 0.0 <= found <= longest
        grid = np.linspace(0.0, longest, 2001)
        assert value(found) <= min(map(value, grid)) + 1e-12


def test_a_line_without_end_and_one_that_rises() -> None:
    slack, weights = np.ones(3), np.ones(3)
    assert line_search(slack, -np.ones(3), weights, 0.1, 1.0) == 0.0
    assert line_search(slack, np.zeros(3), weights, 0.1, 1.0) == 0.0
    assert line_search(slack, np.array([1.0, 1.0, -0.5]), weights, 0.1, np.inf) == pytest.approx(0.975)  # where 2 slack / 0.1 = 0.5


def test_plain_steps_are_algorithm_1(monkeypatch: pytest.MonkeyPatch) -> None:
    W, mu = np.zeros((8, 3)), 1e-3
    monkeypatch.setattr("bench_mtl.solvers.frank_wolfe._SMALLEST_SMOOTHING", mu)  # so that mu stays
    iterates = list(islice(FrankWolfe(variant="plain", smoothing=mu).steps(HINGE), 20))
    lowest = np.inf
    best = W
    for iterate in iterates:
        if HINGE.objective(W) < lowest:
            lowest, best = HINGE.objective(W), W
        assert np.allclose(iterate.primal, best, atol=1e-7)
        gradient = HINGE.smoothed(W, mu)[1]
        row = np.abs(gradient).sum(axis=1).argmax()
        S = np.zeros_like(W)
        S[row] = -2.0 * np.sign(gradient[row])
        low, high = 0.0, 1.0  # a ternary search of a convex function
        for _ in range(200):
            third = (high - low) / 3
            left, right = (HINGE.smoothed(W + gamma * (S - W), mu)[0] for gamma in (low + third, high - third))
            low, high = (low + third, high) if left > right else (low, high - third)
        W = W + low * (S - W)


@pytest.mark.parametrize("variant", ["pairwise", "away", "plain"])
def test_points_stay_inside_and_follow_their_atoms(variant: str) -> None:
    """The point is made anew from its atoms every 100 steps: nothing may jump there."""
    solver = FrankWolfe(variant=variant)
    iterates = list(islice(solver.steps(HINGE), 320))
    assert all(norm_l1inf(iterate.primal) <= 2.0 * (1 + 1e-12) for iterate in iterates)
    objectives = [HINGE.objective(iterate.primal) for iterate in iterates]
    assert all(after <= before + 1e-12 for before, after in pairwise(objectives))


def test_its_own_gap_is_the_proven_one() -> None:
    """What it takes for the bound of its dual point is what the problem says."""
    from bench_mtl.solvers.frank_wolfe import _Run

    alone = _Run(HINGE, FrankWolfe(), HINGE.zero())
    for _ in range(30):
        alone.certify()
        assert HINGE.dual_bound(alone.point, alone.best_dual) == pytest.approx(max(0.0, alone._highest), abs=1e-9)
        alone.advance()


@pytest.mark.parametrize(("variant", "target"), [("pairwise", 1e-7), ("away", 1e-7), ("plain", 1e-2)])
def test_it_proves_small_gaps(variant: str, target: float) -> None:
    record = run(HINGE, FrankWolfe(variant=variant), tolerance=Tolerance(target), limits=Limits(iterations=10_000))
    assert record.status is Status.VERIFIED, record.reason


def test_it_goes_on_from_another_solvers_point() -> None:
    good = run(HINGE, SmoothedGradient(), tolerance=Tolerance(1e-3))
    assert good.solution is not None
    record = run(HINGE, FrankWolfe(), tolerance=Tolerance(1e-7), start=good.solution, limits=Limits(iterations=10_000))
    assert record.status is Status.VERIFIED, record.reason


def test_a_penalty_is_refused_with_a_sentence() -> None:
    words = "frank_wolfe needs a bounded set, and a penalty bounds none: give l1inf_hinge a radius"
    assert FrankWolfe().incompatibility(L1InfHinge(DATA, penalty=1.0)) == words
    assert FrankWolfe().incompatibility(HINGE) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variant": "lazy"}, "variant must be one of pairwise, away, plain"),
        ({"smoothing": 0.0}, "smoothing must be finite and above 0"),
        ({"reduction": 1.0}, "reduction must be below 1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        FrankWolfe(**options)  # type: ignore[arg-type]
