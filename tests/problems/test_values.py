"""Lower bounds, distances and measures worked out by hand. (`bench_mtl.validation.exact` holds problems to exact arithmetic.)"""

from dataclasses import replace

import numpy as np
import pytest

from bench_mtl import Capability, InputError, Problem
from bench_mtl.core.types import Array, Iterate
from bench_mtl.data import TaskData, synthetic_l1inf, synthetic_sparse_low_rank
from bench_mtl.problems import L12GLM, BallHinge, DirtyModel, GroupBoosting, L1BallGLM, L1InfGLM, L1InfHinge, L12Hinge, Portfolio
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.problems.task_relationships import TaskRelationships
from bench_mtl.problems.trace_norm_glm import TraceNormGLM
from bench_mtl.projections import norm_l1inf, norm_l12
from bench_mtl.validation.tiny_instances import in_shards

X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
Y = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
T = np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 3.0]])
LABELLED, DATA, MARKED = TaskData.shared(X, Y), TaskData.shared(X, T), TaskData.shared(X, np.where(T > 0.6, 1.0, -1.0))
CLASSES = TaskData.shared(X, np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]))

EYE, ZERO = np.eye(2), np.zeros((2, 2))


def test_tasks_of_different_sizes_are_weighed_by_their_means() -> None:
    data = TaskData.per_task([X, X[:2]], [T[:, 0], T[:2, 1]])
    assert L1InfGLM(data, radius=9.0).objective(EYE) == pytest.approx(0.5 * 0.25 / 3.0 + 0.5 * (1.0 + 1.0) / 2.0)
    assert TaskRelationships(data, ridge=1.0, coupling=0.0).objective(EYE) == pytest.approx(0.25 / 3.0 + 2.0 / 2.0 + 1.0)


FIRST = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])  # X^T of it is [[1, 0], [0, 0]]
BOTH = np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])  # of the labels [[1, 1], [0, 0], [0, 0]] too: X^T of it is [[1, -1], [0, 0]]
SPREAD = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])  # g_0 = (1, 0), g_1 = (0.5, 1.5)


@pytest.mark.parametrize(
    ("problem", "dual", "bound"),
    [
        (L1InfHinge(LABELLED, radius=0.25, reduction="sum"), FIRST, 0.75),
        (L1InfHinge(LABELLED, radius=2.0, reduction="sum"), FIRST, 0.0),
        (L1InfHinge(LABELLED, penalty=0.5, reduction="sum"), FIRST, 0.5),
        (L1InfHinge(LABELLED, penalty=5.0, reduction="sum"), 100.0 * FIRST, 1.0),  # clipped
        (L12Hinge(LABELLED, radius=0.25, reduction="sum"), abs(BOTH), 2.0 - 0.25 * np.sqrt(2.0)),
        (L12Hinge(LABELLED, penalty=0.5, reduction="sum"), abs(BOTH), 2.0 * 0.5 / np.sqrt(2.0)),
        (BallHinge(LABELLED, radius=0.25, reduction="sum"), SPREAD, 0.75 + 1.0 - 0.25 * 1.5),
        (BallHinge(LABELLED, radius=0.25, norm="l2", reduction="sum"), SPREAD, 0.75 + 1.0 - 0.25 * 2.5**0.5),
        (BallHinge(LABELLED, radius=[2.0, 0.25], reduction="sum"), SPREAD, 1.0 - 0.25 * 1.5),  # one task proves 0
        (BallHinge(LABELLED, radius=0.0), 100.0 * SPREAD, 1.0),
        # squared losses: c (<r, y> - radius ||G||') - c^2/2 ||r||^2 at the best c
        (TraceNormGLM(DATA, radius=0.5), FIRST, 0.125),
        (TraceNormGLM(DATA, radius=2.0), FIRST, 0.0),
        (TraceNormGLM(DATA, penalty=0.25), 7.0 * FIRST, 0.25 - 0.03125),
        (L1BallGLM(DATA, radius=0.5, balls="all"), FIRST, 0.125),
        (L1InfGLM(DATA, radius=0.5), FIRST, 0.125 / 3.0),  # r / 3 is the dual point of means: c = 1/6
        (SparseLowRank(DATA, penalty=0.25, radius=0.5), FIRST, 0.25 * 0.5 - 0.03125),
        *(
            (DirtyModel(DATA, row_penalty=b, entry_penalty=s, reduction="sum"), 7.0 * BOTH, 2.0 * c - c * c)
            for b, s, c in ((2.0, 1.0, 1.0), (9.0, 9.0, 1.0), (1.0, 9.0, 0.5), (9.0, 0.25, 0.25), (1.0, 0.25, 0.25), (0.0, 1.0, 0.0))
        ),
    ],
    ids=lambda each: each.name if isinstance(each, Problem) else "",
)
def test_bounds(problem: Problem, dual: Array, bound: float) -> None:
    assert problem.dual_bound(problem.zero(), dual) == pytest.approx(bound)


@pytest.mark.parametrize("kind", [L1InfHinge, L12Hinge])
@pytest.mark.parametrize("intercept", [False, True])
def test_labels_that_no_feature_tells_are_proven_to_be_so(kind: type[L1InfHinge | L12Hinge], intercept: bool) -> None:
    """X^T r is 0, and known to be at most a little more: the limit of its multiples has no upper end."""
    corners = TaskData.shared(np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]), np.array([[-1.0], [1.0], [1.0], [-1.0]]))
    for data in (corners, in_shards(corners)):
        found = kind(data, penalty=0.05, intercept=intercept).certify(Iterate(np.zeros((2, 1))))
        assert found.primal == pytest.approx(1.0)
        assert found.relative_gap <= 1e-13
        assert found.rounding <= 1e-13


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_penalty_proves_nothing_rather_than_less(loss: str) -> None:
    """X^T r is 0, but rounding hides it: only the multiple 0 of r is sure to be allowed."""
    opposed = TaskData.shared(np.array([[1.0], [-1.0]]), np.ones((2, 1)))
    assert L1InfGLM(opposed, loss=loss, penalty=0.0).certify(Iterate(np.zeros((1, 1)))).dual == 0.0


def test_a_form_scales_a_dual_point_down_to_a_penalty_and_never_up() -> None:
    for penalty, proven in ((0.5, 0.5), (5.0, 1.0)):
        form = L1InfHinge(LABELLED, penalty=penalty, reduction="sum").hinges
        assert form.bound(FIRST, form.adjoint(FIRST)) == pytest.approx(proven)


def test_the_bound_of_a_support_vector_machine_takes_the_best_scale_of_every_task() -> None:
    a, expected = np.random.default_rng(0).random((3, 2)) / 3.0, 0.0
    for k in range(2):
        G = X.T @ (a[:, k] * Y[:, k])
        scales = np.linspace(0.0, 1.0 / 3.0 / a[:, k].max(), 100_001)
        expected += (scales * a[:, k].sum() - scales**2 * (G @ G) / 0.4).max()
    problem = RidgeHinge(LABELLED, ridge=0.1)
    for scale in (1.0, 1e-7):
        assert problem.dual_bound(ZERO, scale * a * Y) == pytest.approx(expected, rel=1e-8)


def test_infeasibility_is_relative_to_the_radius() -> None:
    W = np.array([[3.0, 0.0], [4.0, 1.0]])
    for problem, excess in (
        (L1InfHinge(LABELLED, radius=5.0), 0.4),
        (L1InfHinge(LABELLED, radius=0.0), 7.0),
        (L1InfHinge(LABELLED, penalty=1.0), 0.0),
        (L12Hinge(LABELLED, radius=0.5), (3.0 + 17.0**0.5) / 0.5 - 1.0),
        (BallHinge(LABELLED, radius=[5.0, 1.0], norm="l2"), 0.0),
        (BallHinge(LABELLED, radius=[5.0, 1.0]), 0.4),
        (BallHinge(LABELLED, radius=[10.0, 0.0]), 1.0),
    ):
        assert problem.infeasibility(W) == pytest.approx(excess)


def test_radii_of_the_truth() -> None:
    data = synthetic_l1inf(tasks=4, features=10, examples=12)
    true = data.truth["W"]
    assert L1InfGLM(data, loss="logistic", radius="truth").radius == pytest.approx(norm_l1inf(true))
    assert L12Hinge(data, radius="truth").radius == pytest.approx(norm_l12(true))
    assert TraceNormGLM(data, radius="truth", loss="logistic").radius == pytest.approx(np.linalg.norm(true, "nuc"))
    for norm, order in (("l1", 1), ("l2", 2)):
        assert BallHinge(data, radius="truth", norm=norm).balls.radii == pytest.approx(np.linalg.norm(true, ord=order, axis=0))
    data = synthetic_sparse_low_rank(tasks=5, features=8, examples=10, rank=2, zero_features=2, zero_tasks=1)
    assert TraceNormGLM(data, radius="truth").radius == pytest.approx(np.linalg.norm(data.truth["P"] + data.truth["Q"], "nuc"))
    assert SparseLowRank(data, penalty=1.0, radius="truth").radius == pytest.approx(np.linalg.norm(data.truth["Q"], "nuc"))


def test_measures() -> None:
    """What is used is counted above a millionth of the largest; held-out errors are shares of examples, or of squares."""
    held = TaskData.shared(EYE, np.array([[1.0, 1.0], [-1.0, 1.0]]))
    point = np.array([[2.0, 1e-9], [1.0, -1.0]])
    used = {"non-zeros": 3.0, "features used": 2.0}
    assert L12Hinge(LABELLED, radius=9.0).measures(point) == used
    for kind in (L1InfGLM, L12GLM):
        assert kind(MARKED.with_held_out(held), loss="logistic", radius=9.0).measures(point) == {**used, "held-out error": 0.5}
        assert kind(DATA, radius=9.0).measures(ZERO) == {"non-zeros": 0.0, "features used": 0.0}
    assert L1InfGLM(DATA.with_held_out(held), radius=9.0).measures(point)["held-out error"] == pytest.approx(10.0 / 4.0)
    classes = replace(held, targets=np.array([[1.0, -1.0], [1.0, -1.0]]))
    assert L1BallGLM(CLASSES.with_held_out(classes), loss="multiclass", radius=9.0).measures(-point) == {
        "non-zeros": 3.0, "held-out error": 1.0,
    }  # fmt: skip
    assert RidgeHinge(LABELLED.with_held_out(held), ridge=1.0).measures(point) == {"held-out error": 0.5}
    split = np.array([[[2.0, 1e-9], [0.0, 0.0]], [[1e-9, 0.0], [1e-3, -1e-3]]])
    dirty = DirtyModel(MARKED.with_held_out(held), row_penalty=1.0, entry_penalty=1.0, loss="logistic")
    assert dirty.measures(split) == {"rows of B": 1.0, "non-zeros of S": 2.0, "features used": 2.0, "held-out error": 0.5}
    assert dirty.parts == ("B", "S")


def test_constructors_take_a_papers_letters_and_say_what_data_are() -> None:
    by_letters = SparseLowRank(DATA, gamma=0.5, tau=2.0)  # type: ignore[call-arg]
    assert (by_letters.penalty, by_letters.radius) == (0.5, 2.0)
    with pytest.raises(InputError, match="gamma and penalty are the same parameter"):
        SparseLowRank(DATA, gamma=0.5, penalty=0.5, radius=2.0)  # type: ignore[call-arg]
    problems = ((L1InfHinge, {"radius": 1.0}), (Portfolio, {}), (GroupBoosting, {"penalty": 1.0}), (RidgeHinge, {"ridge": 1.0}))
    for problem, parameters in problems:
        with pytest.raises(InputError, match=r"data must be a TaskData, which TaskData\.shared\(X, Y\).* make it, not .* class tuple"):
            problem((X, Y), **parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", ["0.5 max", "1 max", "0 max"])
def test_a_share_of_what_overflows_is_refused(share: str) -> None:
    huge = TaskData.shared(1e200 * X, 1e200 * T)
    for make in (L1InfGLM, L12GLM, L1BallGLM, TraceNormGLM):
        with pytest.raises(InputError, match=f"penalty '{share}' is no finite number on these data"):
            make(huge, penalty=share)
    with pytest.raises(InputError, match="row_penalty"):
        DirtyModel(huge, row_penalty=share, entry_penalty=1.0)


@pytest.mark.parametrize("problem", [L1InfGLM, TraceNormGLM, SparseLowRank, DirtyModel, TaskRelationships, L1InfHinge])
def test_a_plug_in_has_the_steps_of_normal_equations(problem: type[Problem]) -> None:
    rng = np.random.default_rng(0)
    are_faster = []
    for tiny in problem.examples(rng):
        fast, point = tiny.by_normal_equations(), rng.standard_normal(tiny.point_shape)
        are_faster.append(getattr(fast, "_normal", None) is not None)
        if Capability.SMOOTH in tiny.offers:
            for one, other in zip(fast.value_and_gradient(point), tiny.value_and_gradient(point), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
            assert fast.smooth_value(point) == pytest.approx(tiny.smooth_value(point), rel=1e-12)
        assert fast.certify(Iterate(point)) == tiny.certify(Iterate(point))
    assert any(are_faster) == (problem is not L1InfHinge)
