"""What `run` takes, and how what it takes and gives is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_mtl import InputError, Limits, Status, TaskData, Tolerance, run
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.projected_subgradient import ProjectedSubgradient


@pytest.fixture(scope="module")
def problem() -> L1InfHinge:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    return L1InfHinge(TaskData.shared(X, np.sign(X @ rng.standard_normal((4, 2))), name="tiny"), radius=1.0)


def test_numbers_and_names_stand_for_what_they_mean(problem: L1InfHinge) -> None:
    for solver, tolerance in (("projected_subgradient", 0.1), (ProjectedSubgradient(), Tolerance(0.1))):
        record = run(problem, solver, tolerance=tolerance)
        assert record.status == Status.VERIFIED
        assert record.best is not None
        assert 1e-6 < record.best.relative_gap <= 0.1  # not the gap that is proven where none is given
    for limits in (0.01, Limits(seconds=0.01)):
        assert run(problem, "projected_subgradient", tolerance=1e-15, limits=limits).status == Status.TIMEOUT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problem": "l1inf_hinge"}, r"^problem must be a Problem, such as L1InfHinge\(data, radius=2.0\), not str$"),
        ({"problem": L1InfHinge}, r"^problem must be a Problem, .* not the class L1InfHinge$"),
        (
            {"solver": ProjectedSubgradient},
            r"^solver must be a Solver, such as Auto\(\), or the name of one, not the class ProjectedSubgradient$",
        ),
        ({"solver": None}, r"^solver must be a Solver, .* not NoneType$"),
        ({"solver": "projected_subgradent"}, r"^unknown solver 'projected_subgradent': did you mean 'projected_subgradient'\?"),
        ({"tolerance": 0.0}, r"^tolerance must be"),
        ({"tolerance": "1e-3"}, r"^tolerance must be a number, not '1e-3'$"),
        ({"limits": -1.0}, r"^limits must be"),
        ({"limits": {"seconds": 1.0}}, r"^limits must be a number"),
    ],
)
def test_a_mistake_in_the_call_raises_at_once(problem: L1InfHinge, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(**({"problem": problem, "solver": ProjectedSubgradient()} | arguments))


def test_a_record_is_a_frame_and_prints_in_two_lines(problem: L1InfHinge) -> None:
    record = run(problem, "projected_subgradient", tolerance=0.1, limits=10)
    frame = record.frame()
    assert list(frame.columns) == ["seconds", "step", "work", "primal", "dual", "relative_gap", "infeasibility"]
    assert len(frame) == len(record.samples)
    assert frame["primal"].iloc[-1] == record.samples[-1].certificate.primal
    assert repr(record).startswith(f"<Record verified: {record.reason}\n  {len(record.samples)} samples, ")
    assert "<= optimum <=" in repr(record)
    nothing = run(problem, "projected_gradient")
    assert nothing.frame().empty
    assert repr(nothing).startswith("<Record skipped: ")


def test_data_and_problems_print_in_two_lines(problem: L1InfHinge) -> None:
    X = np.eye(3)
    assert repr(TaskData.shared(X, X, name="own")) == "<TaskData 'own': 3 tasks\n  3 x 3 dense, the same for all tasks>"
    assert (
        repr(TaskData.per_task([X, X[:2]], [X[0], X[1, :2]]))
        == "<TaskData 'unnamed': 2 tasks\n  2 to 3 x 3 dense, of its own for each task>"
    )
    assert repr(problem) == "<L1InfHinge: n = 40, d = 4, m = 2>"
