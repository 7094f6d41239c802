"""Frank-Wolfe for smooth losses: its directions, its step sizes, its blocks, its edges, its options."""

from itertools import islice, pairwise
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from solver_data import pairwise_cases, proven

from bench_mtl import Capability, Problem, TaskData
from bench_mtl.problems import L12GLM, L1BallGLM, Portfolio
from bench_mtl.solvers.frank_wolfe_smooth import FrankWolfeSmooth, loss_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 8))
Y = X @ (RNG.standard_normal((8, 3)) * (RNG.random((8, 3)) < 0.5)) + 0.3 * RNG.standard_normal((20, 3))
LABELS = np.where(Y > 0.0, 1.0, -1.0)
CLASSES = np.where(np.arange(3) == Y.argmax(axis=1)[:, None], 1.0, -1.0)
XS = [X[:5], X[5:12], X[12:]]
MARKET = TaskData.shared(np.exp(0.3 * RNG.standard_normal((14, 6))), np.ones(14))
PROBLEMS: dict[str, Problem] = {
    "one ball": L1BallGLM(TaskData.shared(X, Y[:, 0]), radius=1.0),
    "a ball a task": L1BallGLM(TaskData.shared(X, Y), radius=1.0),
    "one ball in all": L1BallGLM(TaskData.per_task(XS, [Xk @ Y[0:8, k] for k, Xk in enumerate(XS)]), radius=2.0, balls="all"),
    "CSR": L1BallGLM(TaskData.shared(sp.csr_array(X * (np.abs(X) > 0.7)), LABELS), loss="logistic", radius=1.0),
    "nonneg": L1BallGLM(TaskData.shared(X, Y), radius=1.0, nonneg=True),
    "logistic": L1BallGLM(TaskData.per_task(XS, [np.sign(Xk @ Y[0:8, k]) for k, Xk in enumerate(XS)]), loss="logistic", radius=1.0),
    "classes": L1BallGLM(TaskData.shared(X, CLASSES), loss="multiclass", radius=1.0),
    "classes together": L1BallGLM(TaskData.shared(X, CLASSES), loss="multiclass", radius=2.0, balls="all"),
    "portfolio": Portfolio(MARKET),
    "boxed portfolio": Portfolio(MARKET, upper=0.3),
}


class Opaque(L1BallGLM):
    """Offers no form, so that only its operators can be used."""

    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX, Capability.LMO})


def step_by_hand(A: np.ndarray, y: np.ndarray, radius: float, variant: str, w: np.ndarray) -> np.ndarray | None:
    """A step of least squares over one l1 ball, with the weights of the corners read off the point; None where two corners are as good."""
    corners = [sign * radius * np.eye(len(w))[j] for j in range(len(w)) for sign in (1.0, -1.0)]
    g = A.T @ (A @ w - y)
    weights = [max(0.0, float(w @ corner)) / radius**2 for corner in corners] + [1.0 - np.abs(w).sum() / radius]
    held = [(c, a) for c, a in zip([*corners, np.zeros(len(w))], weights, strict=True) if a > 1e-13]
    low, high = np.sort([g @ c for c in corners]), np.sort([g @ c for c, _ in held])[::-1]
    if any(len(values) > 1 and abs(values[1] - values[0]) < 1e-9 * abs(values[0]) for values in (low, high)):
        return None
    S = min(corners, key=lambda corner: float(g @ corner))
    U, weight = max(held, key=lambda pair: float(g @ pair[0]))
    D, longest = S - w, 1.0
    if variant == "pairwise":
        D, longest = S - U, weight
    elif variant == "away" and weight < 1.0 and g @ (w - U) < g @ D:
        D, longest = w - U, weight / (1.0 - weight)
    return w + min(longest, max(0.0, -(g @ D)) / max(1e-300, (A @ D) @ (A @ D))) * D


@pytest.mark.parametrize("variant", ["pairwise", "away", "plain"])
@pytest.mark.parametrize("name", ["one ball", "a ball a task"])
def test_steps_are_those_of_the_papers_ball_by_ball(variant: str, name: str) -> None:
    compared = 0
    for before, after in pairwise(islice(FrankWolfeSmooth(variant).steps(PROBLEMS[name]), 30)):
        for k in range(before.primal.shape[1]):
            expected = step_by_hand(X, Y[:, k], 1.0, variant, before.primal[:, k])
            if expected is not None:
                compared += 1
                assert np.allclose(after.primal[:, k], expected, atol=1e-9)
    assert compared >= 3  # close to the optimum corners are as good as each other


@pytest.mark.parametrize(
    ("name", "variant", "rule"), pairwise_cases(list(PROBLEMS), ["pairwise", "away", "plain"], ["exact", "backtracking"])
)
def test_points_stay_inside_fall_and_agree_with_their_predictions(name: str, variant: str, rule: str) -> None:
    problem = PROBLEMS[name]
    loss = loss_of(problem)
    iterates = list(islice(FrankWolfeSmooth(variant, rule).steps(problem), 99))
    objectives = [problem.objective(iterate.primal) for iterate in iterates]
    for iterate in iterates:
        assert problem.infeasibility(iterate.primal) <= 1e-12
        assert np.allclose(-iterate.dual, loss.derivatives(loss.predict(iterate.primal)), rtol=1e-9, atol=1e-12)
    assert all(after <= before + 1e-12 * abs(before) for before, after in pairwise(objectives))


@pytest.mark.parametrize("variant", ["pairwise", "away", "plain"])
def test_a_problem_without_forms_is_solved_by_its_oracles(variant: str) -> None:
    proven(Opaque(TaskData.shared(X, Y[:, :2]), radius=1.0), FrankWolfeSmooth(variant), 1e-6 if variant != "plain" else 1e-2)


@pytest.mark.parametrize("variant", ["pairwise", "away", "plain"])
def test_the_point_of_a_set_with_an_oracle_stays_the_combination_of_its_corners(variant: str) -> None:
    """It is made anew from them every 100 steps, and a step from a corner to itself changes no weight: nothing may jump."""
    problem = L12GLM(TaskData.shared(X, Y), radius=1.0)
    iterates = list(islice(FrankWolfeSmooth(variant).steps(problem), 250))
    objectives = [problem.objective(iterate.primal) for iterate in iterates]
    assert all(problem.infeasibility(iterate.primal) <= 1e-12 for iterate in iterates)
    assert all(after <= before + 1e-13 * before for before, after in pairwise(objectives))
