"""Problems under an l1,2 norm: values and bounds by hand, the norm between its neighbours, tight bounds, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Iterate, Limits, Status, Tolerance
from bench_mtl.data import TaskData, synthetic_l1inf
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l12_glm import L12GLM
from bench_mtl.problems.l12_hinge import L12Hinge
from bench_mtl.projections import norm_l12
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.pdhg import PDHG

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
DATA = TaskData.shared(X, Y)
W = np.array([[0.3, 0.4], [0.0, 0.25]])  # norm 0.5 + 0.25; predictions [[0.3, 0.4], [0, 0.5], [0.3, 0.65]]


def test_objectives_by_hand() -> None:
    hinges = (0.7 + 1.0 + 0.7) + (1.4 + 0.5 + 0.35)
    squares = (0.7**2 + 1.0 + 0.7**2) + (1.4**2 + 0.5**2 + 0.35**2)
    assert L12Hinge(DATA, radius=1.0).objective(W) == pytest.approx(hinges / 3.0)
    assert L12Hinge(DATA, penalty=2.0, reduction="sum").objective(W) == pytest.approx(hinges + 1.5)
    assert L12GLM(DATA, radius=1.0).objective(W) == pytest.approx(squares / 6.0)
    assert L12GLM(DATA, penalty=2.0, reduction="sum").objective(W) == pytest.approx(0.5 * squares + 1.5)
    assert L12Hinge(DATA, radius=0.5).infeasibility(W) == pytest.approx(0.5)


def test_the_bound_of_the_hinge_by_hand() -> None:
    a = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])  # G = [[1, -1], [0, 0]], so its longest row has sqrt(2)
    zero, longest = np.zeros((2, 2)), np.sqrt(2.0)
    assert L12Hinge(DATA, radius=0.25, reduction="sum").dual_bound(zero, a) == pytest.approx(2.0 - 0.25 * longest)
    assert L12Hinge(DATA, radius=2.0, reduction="sum").dual_bound(zero, a) == 0.0
    assert L12Hinge(DATA, penalty=0.5, reduction="sum").dual_bound(zero, a) == pytest.approx(2.0 * 0.5 / longest)
    assert L12Hinge(DATA, penalty=5.0, reduction="sum").dual_bound(zero, 100 * a) == pytest.approx(2.0), "a is clipped"


@pytest.mark.parametrize("make", [L12Hinge, L12GLM])
def test_auto_takes_both_and_the_bound_is_tight(make: type[Problem]) -> None:
    data = synthetic_l1inf(tasks=4, features=8, examples=12)
    for restriction in ({"radius": 1.0}, {"penalty": "0.3 max"}):
        problem = make.from_data(data, **restriction)
        record = run(problem, Auto(), tolerance=Tolerance(1e-5), limits=Limits(seconds=30.0))
        assert record.status is Status.VERIFIED, record.reason
        picked = "cone_interior_point" if make is L12Hinge else "accelerated_gradient"
        assert str(dict(record.info)["note"]).startswith(picked)


def test_of_one_task_it_is_the_l1_norm() -> None:
    one = TaskData.shared(X, Y[:, :1])
    norms = (L12GLM(one, penalty=0.2, reduction="sum"), L1InfGLM(one, penalty=0.2, reduction="sum"), L1BallGLM(one, penalty=0.2))
    optima = [run(problem, Auto(), tolerance=Tolerance(1e-9)).best for problem in norms]
    assert all(best is not None and best.primal == pytest.approx(optima[0].primal) for best in optima)  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [L12Hinge, L12GLM])
def test_the_largest_penalty_gives_zero(make: type[Problem]) -> None:
    certificate = make.from_data(DATA, penalty="1 max").certify(Iterate(np.zeros((2, 2))))
    assert certificate.relative_gap <= 1e-12
    assert make.from_data(DATA, penalty="0.9 max").certify(Iterate(np.zeros((2, 2)))).relative_gap > 1e-3


def test_the_radius_of_the_truth_and_what_is_counted() -> None:
    data = synthetic_l1inf(tasks=4, features=10, examples=12)
    assert L12Hinge(data, radius="truth").radius == pytest.approx(norm_l12(data.truth["W"]))
    point = np.array([[2.0, 1e-9], [0.0, 0.0]])
    held_out = DATA.with_held_out(TaskData.shared(np.eye(2), np.ones((2, 2))))
    assert L12Hinge(DATA, radius=9.0).measures(point) == {"non-zeros": 1.0, "features used": 1.0}
    assert L12GLM(held_out, loss="logistic", radius=9.0).measures(point) == {
        "non-zeros": 1.0, "features used": 1.0, "held-out error": 0.5,
    }  # fmt: skip


def test_solvers_of_the_other_norm_do_not_take_it() -> None:
    assert PDHG().incompatibility(L12Hinge(DATA, radius=1.0)) == "pdhg takes HingeForm or BallForm; l12_hinge has NormHingeForm"


@pytest.mark.parametrize("make", [L12Hinge, L12GLM])
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "exactly one of radius"),
        ({"radius": 1.0, "penalty": 1.0}, "exactly one of radius"),
        ({"radius": -1.0}, "radius must be finite and at least 0"),
        ({"penalty": -1.0}, "penalty must be finite and at least 0"),
        ({"radius": 1.0, "reduction": "max"}, "reduction must be one of mean, sum"),
    ],
)
def test_bad_input_is_named(make: type[Problem], parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make.from_data(DATA, **parameters)
