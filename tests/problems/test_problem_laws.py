"""Laws of all problems of linear models: data of any size and kind, zeros, the penalty that gives zero, bad input.

(tests/laws holds every problem to its operators and to CVXPY's optimum on tiny instances.)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import InputError, Iterate, TaskData, load_registry
from bench_mtl.model.protocols import Capability, NotOfferedError, Problem
from bench_mtl.problems import L1BallGLM, L1InfGLM, L1InfHinge
from bench_mtl.validation.conformance import check_weak_duality

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 5))
SCORES = X @ RNG.standard_normal((5, 3)) + 0.5 * RNG.standard_normal((20, 3))
TARGETS = {
    "squared": SCORES,
    **dict.fromkeys(("logistic", "hinge"), np.where(SCORES > 0.0, 1.0, -1.0)),
    "multiclass": np.where(np.arange(3) == SCORES.argmax(axis=1)[:, None], 1.0, -1.0),
}

PROBLEMS = load_registry().problems
NORMED = ("l12_glm", "l1inf_glm", "trace_norm_glm", "l1_ball_glm", "l12_hinge", "l1inf_hinge")

#: Parameters of every problem of linear models: with little and much room, and penalties.
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    **{name: [{"radius": 0.0}, {"radius": 1.0}, {"penalty": 0.0}, {"penalty": 0.1}, {"penalty": "0.5 max"}] for name in NORMED},
    "ball_hinge": [{"radius": 0.0}, {"radius": 1.0, "norm": "l2"}, {"radius": [0.5, 0.0, 2.0]}],
    "dirty_model": [{"row_penalty": b, "entry_penalty": s} for b, s in ((0.0, 0.0), (0.1, 0.0), (0.1, 0.2), ("0.5 max", "0.5 max"))],
    "sparse_low_rank": [{"penalty": 100.0, "radius": 0.0}, {"penalty": 0.2, "radius": 1.0}],
    "ridge_hinge": [{"ridge": 1e-12}, {"ridge": 0.1}, {"ridge": 1e12}],
    "task_relationships": [{"ridge": r, "coupling": c} for r, c in ((1e-12, 1e12), (1e12, 1e-12), (0.0, 1e-12), (0.3, 0.2))],
}


def losses(name: str) -> tuple[str, ...]:
    if "hinge" in name:
        return ("hinge",)
    if name == "task_relationships":
        return ("squared",)
    return ("squared", "logistic", "multiclass") if name == "l1_ball_glm" else ("squared", "logistic")


def made(name: str, loss: str, data: TaskData, parameters: dict[str, Any]) -> Problem:
    options = {} if loss == "hinge" or name == "task_relationships" else {"loss": loss}
    return PROBLEMS[name].from_data(data, **parameters, **options)


FAMILIES = [(name, loss) for name in PARAMETERS for loss in losses(name)]


@pytest.mark.parametrize(("name", "loss"), FAMILIES)
def test_held_out_examples_are_measured(name: str, loss: str) -> None:
    data = TaskData.shared(X, TARGETS[loss])
    problem = made(name, loss, data.with_held_out(data), PARAMETERS[name][1])
    point = np.ones(problem.point_shape)
    assert problem.measures(point)["held-out error"] == pytest.approx(problem.training_error(point), rel=1e-12)  # type: ignore[attr-defined]
    assert "held-out error" not in made(name, loss, data, PARAMETERS[name][1]).measures(point)


@pytest.mark.numerics
@pytest.mark.parametrize(("name", "loss"), FAMILIES)
def test_bounds_hold_on_data_of_any_size_and_on_targets_that_are_all_alike(name: str, loss: str) -> None:
    Y = TARGETS[loss]
    alike = (
        np.where(np.arange(3) == 1, np.ones_like(Y), -1.0) if loss == "multiclass" else np.full_like(Y, 0.0 if loss == "squared" else 1.0)
    )
    for parameters in PARAMETERS[name]:
        for scale, targets in ((1e-160, Y), (1e-8, alike), (0.0, Y), (0.0, alike), (1.0, alike), (1e8, alike), (1e150, Y)):
            check_weak_duality(made(name, loss, TaskData.shared(scale * X, targets), parameters), np.random.default_rng(0))


@pytest.mark.numerics
@pytest.mark.parametrize(("name", "loss"), FAMILIES)
def test_what_leaves_nothing_but_zero_is_solved_there(name: str, loss: str) -> None:
    """A design of zeros, targets of zeros, or no room: zero is the optimum, and proven."""
    for parameters in PARAMETERS[name]:
        for data in (TaskData.shared(0.0 * X, TARGETS[loss]), TaskData.shared(sp.csr_array(X.shape), TARGETS[loss])):
            problem = made(name, loss, data, parameters)
            is_void = any(value == 0.0 for key, value in parameters.items() if "penalty" in key)  # which proves nothing where 0 > 0
            assert is_void or problem.certify(Iterate(problem.zero())).relative_gap <= 1e-9
    no_room = made(name, loss, TaskData.shared(X, TARGETS[loss]), PARAMETERS[name][0])
    if PARAMETERS[name][0].get("radius") == 0.0:
        assert no_room.certify(Iterate(no_room.zero())).relative_gap <= 1e-9


@pytest.mark.numerics
@pytest.mark.parametrize(("name", "loss"), FAMILIES)
def test_designs_of_all_kinds_are_one_problem(name: str, loss: str) -> None:
    Y = TARGETS[loss]
    kinds = [TaskData.shared(X, Y), TaskData.shared(sp.csr_array(X), Y)]
    if loss != "multiclass":
        kinds += [TaskData.per_task([X] * 3, list(Y.T)), TaskData.per_task([sp.csr_array(X)] * 3, list(Y.T))]
    problems = [made(name, loss, data, PARAMETERS[name][-1]) for data in kinds]
    point = problems[0].repair(np.random.default_rng(1).standard_normal(problems[0].point_shape))
    first, *others = (problem.certify(Iterate(point)) for problem in problems)
    for other in others:
        assert (other.primal, other.dual) == (pytest.approx(first.primal), pytest.approx(first.dual, abs=1e-12))


@pytest.mark.parametrize(("name", "loss"), [family for family in FAMILIES if family[1] != "squared"])
def test_labels_0_1_are_converted_and_the_reader_is_told(name: str, loss: str) -> None:
    problem = made(name, loss, TaskData.shared(X, TARGETS[loss]), PARAMETERS[name][1])
    with pytest.warns(UserWarning, match=r"labels 0/1 were converted to -1/\+1"):
        other = made(name, loss, TaskData.shared(X, (TARGETS[loss] + 1.0) / 2.0), PARAMETERS[name][1])
    assert "labels 0/1 were converted to -1/+1" in other.notes
    point = np.full(problem.point_shape, 0.1)
    assert problem.objective(point) == other.objective(point)
    with pytest.raises(InputError, match="labels must be"):
        made(name, loss, TaskData.shared(X, X[:, :3]), PARAMETERS[name][1])


@pytest.mark.numerics
@pytest.mark.parametrize("name", [*NORMED, "dirty_model"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_largest_penalty_is_the_smallest_that_gives_zero(name: str, reduction: str) -> None:
    options = {} if name in ("trace_norm_glm", "l1_ball_glm") else {"reduction": reduction}
    keys = ("row_penalty", "entry_penalty") if name == "dirty_model" else ("penalty",)
    for loss in losses(name):
        data = TaskData.shared(X, TARGETS[loss])
        for short in (None, *keys):
            shares = {key: f"{1.0 + 1e-9 if short is None else 0.98 if key == short else 5.0} max" for key in keys}
            problem = made(name, loss, data, {**shares, **options})
            assert (problem.certify(Iterate(problem.zero())).relative_gap <= 1e-9) == (short is None)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=list(PROBLEMS))
def test_points_and_dual_points_of_another_shape_are_refused(problem: type[Problem]) -> None:
    tiny = next(problem.examples(np.random.default_rng(0)))
    with pytest.raises(InputError, match="primal point must have shape"):
        tiny.certify(Iterate(np.zeros((7, *tiny.point_shape))))
    with pytest.raises(InputError, match="dual point must have shape"):
        tiny.certify(Iterate(tiny.zero(), np.zeros((7, *tiny.dual_shape))))
    with pytest.raises(InputError, match="dual point has NaN"):
        tiny.certify(Iterate(tiny.zero(), np.full(tiny.dual_shape, np.nan)))


def test_a_penalty_bounds_no_set() -> None:
    problem = L1InfGLM(TaskData.shared(X, SCORES), penalty=1.0)
    with pytest.raises(NotOfferedError):
        problem.lmo(problem.zero())
    assert Capability.LMO in problem.offers


SIGNED = TaskData.shared(X, TARGETS["logistic"])

BAD = [
    *((name, parameters, words) for name in NORMED for parameters, words in (
        ({}, "exactly one of radius"),
        ({"radius": 1.0, "penalty": 1.0}, "exactly one of radius"),
        ({"radius": -1.0}, "radius must be finite and at least 0"),
        ({"radius": np.nan}, "radius must be finite"),
        ({"radius": "0.1 max"}, "radius must be a number"),
        ({"radius": "truth"}, "needs data that know their true W"),
        ({"penalty": -1.0}, "penalty must be finite and at least 0"),
        ({"penalty": "0.1"}, "penalty must be a number of at least 0, or a share such as '0.1 max', not '0.1'"),
        ({"penalty": "-0.1 max"}, "a share such as"),
    )),
    *((name, {"radius": 1.0, "reduction": "max"}, "reduction must be one of") for name in ("l12_glm", "l1inf_hinge", "ball_hinge")),
    *((name, {"radius": 1.0, "loss": "absolute"}, "loss must be one of") for name in ("l12_glm", "trace_norm_glm", "l1_ball_glm")),
    *((name, parameters, words) for name in ("l12_glm", "l1_ball_glm") for parameters, words in (
        ({"radius": 1.0, "feature_factors": [1.0] * 5}, "are for a penalty"),
        ({"radius": 1.0, "ridge": 1.0}, "are for a penalty"),
        ({"penalty": 1.0, "ridge": -1.0}, "ridge must be finite and at least 0"),
        ({"penalty": 1.0, "feature_factors": [1.0]}, "a number for each feature, 5, but has 1"),
        ({"penalty": 1.0, "feature_factors": [1.0, -1.0, 1.0, 1.0, 1.0]}, "0 or from 1e-09 to 1e\\+09"),
        ({"penalty": 1.0, "feature_factors": [1.0, np.nan, 1.0, 1.0, 1.0]}, "feature_factors has NaN at index 1"),
        ({"penalty": 1.0, "feature_factors": [1.0, 0.0, 1.0, 1.0, 1.0]}, "needs a ridge above 0"),
        ({"penalty": "0.1 max", "ridge": 1.0, "feature_factors": [1.0, 0.0, 1.0, 1.0, 1.0]}, "penalty must be a number"),
    )),
    ("trace_norm_glm", {"radius": 1.0, "ridge": 1.0}, "are for a penalty"),
    ("l12_glm", {"radius": 1.0, "nonnegative": 1}, "nonnegative must be true or false"),
    ("l12_glm", {"radius": 1.0, "loss": "quantile:1"}, "tau of the quantile loss must be above 0 and below 1"),
    ("l12_glm", {"radius": 1.0, "loss": "quantile:few"}, "quantile:NUMBER"),
    ("l1_ball_glm", {"radius": 1.0, "loss": "quantile"}, "loss must be one of"),
    ("l1_ball_glm", {"radius": 1.0, "balls": "none"}, "balls"),
    ("l1_ball_glm", {"radius": 1.0, "nonneg": 1}, "nonneg"),
    ("ball_hinge", {"radius": None}, "radius must be a number"),
    ("ball_hinge", {"radius": "true"}, "radius must be a number, a list with one a task, or 'truth', not 'true'"),
    ("ball_hinge", {"radius": [1.0]}, "radius must have one number a task, 3, but has 1"),
    ("ball_hinge", {"radius": [1.0, -2.0, 1.0]}, "radius of task 1 must be finite and at least 0"),
    ("ball_hinge", {"radius": np.ones((3, 2))}, "radius of task 0 must be a number"),
    ("ball_hinge", {"radius": np.array(1.0)}, "radius must be a number"),
    ("ball_hinge", {"radius": 1.0, "norm": "linf"}, "norm must be one of l1, l2"),
    ("dirty_model", {"row_penalty": -1.0, "entry_penalty": 1.0}, "row_penalty must be finite and at least 0"),
    ("dirty_model", {"row_penalty": 1.0, "entry_penalty": "max"}, "entry_penalty must be a number of at least 0, or a share"),
    ("sparse_low_rank", {"penalty": 0.0, "radius": 1.0}, "penalty must be finite and above 0"),
    ("sparse_low_rank", {"penalty": 1.0, "radius": "truth"}, "needs data that know their true Q"),
    ("ridge_hinge", {"ridge": 0.0}, "ridge must be"),
    ("ridge_hinge", {"ridge": "much"}, "ridge must be"),
    ("task_relationships", {"ridge": -1.0, "coupling": 1.0}, "ridge must be"),
    ("task_relationships", {"ridge": 1.0, "coupling": np.nan}, "coupling must be"),
    ("task_relationships", {"ridge": 0.0, "coupling": 0.0}, "ridge and coupling are both 0"),
]  # fmt: skip


@pytest.mark.parametrize(
    "bad", [[[0.1 + 5j] * 3] * 5, [[10**400] * 3] * 5, [[1.0], [1.0, 2.0]], np.ma.array(np.ones((5, 3)), mask=np.eye(5, 3))]
)
def test_points_of_no_real_numbers_are_not_judged(bad: Any) -> None:
    problem = L1InfHinge(SIGNED, radius=1.0)
    with pytest.raises(InputError, match="primal point must be an array of real numbers"):
        problem.certify(Iterate(bad))


@pytest.mark.parametrize("shape", [(5,), (5, 1), (3, 5), (5, 4)])
@pytest.mark.parametrize("name", ["ball_hinge", "l1inf_hinge", "l1_ball_glm"])
def test_a_truth_of_another_shape_is_no_radius(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"the true W of .* must have shape"):
        PROBLEMS[name].from_data(replace(SIGNED, truth={"W": np.ones(shape)}), radius="truth")


@pytest.mark.parametrize(("name", "parameters", "words"), BAD)
def test_bad_parameters_are_named(name: str, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        PROBLEMS[name].from_data(SIGNED, **parameters)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: TaskData.shared(X, SCORES[:2]), "Y has 2 rows, but X has 20"),
        (lambda: TaskData.shared(X, np.ones((20, 0))), "at least one task"),
        (lambda: TaskData.shared(X, np.ones((20, 2, 1))), "Y must have shape n x m"),
        (lambda: TaskData.shared(np.where(X[1, 1] == X, np.nan, X), SCORES), r"X has NaN at index \(1, 1\)"),
        (lambda: TaskData.shared(sp.csr_array(np.where(X[1, 1] == X, np.nan, X)), SCORES), "X has NaN"),
        (lambda: TaskData.shared(X, np.where(SCORES[0, 1] == SCORES, np.inf, SCORES)), r"Y has inf at index \(0, 1\)"),
        (lambda: TaskData.shared(np.ones((0, 2)), np.ones((0, 1))), "X is empty"),
        (lambda: TaskData.per_task([X, X[:0]], [SCORES[:, 0], SCORES[:0, 0]]), "X of task 1 is empty: a task needs at least one example"),
        (lambda: TaskData.per_task([X, X], [SCORES[:, 0], SCORES[:2, 1]]), r"y of task 1 must have shape \(20,\)"),
        (lambda: TaskData.shared("text", SCORES), "real numbers"),
        (lambda: L1InfHinge(TaskData.shared(X[:2], [[0.0], [-1.0]]), radius=1.0), "labels mix 0 with -1"),
        (lambda: L1InfHinge(TaskData.shared(X[:2], [[2.0], [1.0]]), radius=1.0), r"must be -1/\+1 \(or 0/1\), but entry \(0, 0\) is 2"),
        (lambda: L1BallGLM(SIGNED, radius=1.0, loss="multiclass"), "exactly one class a row"),
        (lambda: L1BallGLM(TaskData.per_task([X, X], list(SIGNED.targets.T[:2])), radius=1.0, loss="multiclass"), "one design"),
    ],
)  # fmt: skip
def test_bad_data_are_refused_by_name(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build()
