"""Losses of linear predictions one by one: derivatives by differences, conjugates, dual points, numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.types import Array
from bench_mtl.model.losses import LOSSES, Loss, MarginLoss, Squared

pytestmark = pytest.mark.numerics

N, K = 7, 3
ALL = pytest.mark.parametrize("loss", LOSSES.values(), ids=lambda loss: loss.name)


def drawn(loss: Loss, seed: int = 0) -> tuple[Array, Array, Array, np.random.Generator]:
    rng = np.random.default_rng(seed)
    t = rng.standard_normal((N, K))
    scores = rng.standard_normal((N, K))
    if loss.couples_tasks:
        y = np.asarray(np.arange(K) == scores.argmax(axis=1)[:, None], dtype=np.float64)
    else:
        y = np.where(scores > 0.0, 1.0, -1.0) if loss.is_of_labels else scores
    return t, y, rng.uniform(0.2, 2.0, size=(N, 1 if loss.couples_tasks else K)), rng


@ALL
def test_derivatives_are_differences_of_values(loss: Loss) -> None:
    t, y, w, _ = drawn(loss)
    derivatives, step = w * loss.derivatives(t, y), 1e-6
    second = None if loss.couples_tasks or not loss.is_smooth else loss.curvatures(t, y)
    for place in np.ndindex(t.shape):
        change = np.zeros_like(t)
        change[place] = step
        difference = (loss.total(t + change, y, w) - loss.total(t - change, y, w)) / (2.0 * step)
        assert derivatives[place] == pytest.approx(difference, rel=1e-7, abs=1e-8)
        if second is not None:
            difference = (loss.derivatives(t + change, y)[place] - loss.derivatives(t - change, y)[place]) / (2.0 * step)
            assert second[place] == pytest.approx(difference, rel=1e-7, abs=1e-8)
            assert loss.curvature is None or second[place] <= loss.curvature
    if loss.largest_derivative is not None:
        sizes = np.linalg.norm(loss.derivatives(1e3 * t, y), axis=1) if loss.couples_tasks else np.abs(loss.derivatives(1e3 * t, y))
        assert 0.99 * loss.largest_derivative <= sizes.max() <= loss.largest_derivative * (1 + 1e-15)


def test_predictions_too_far_apart_have_an_infinite_loss() -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        assert LOSSES["multiclass"].total(np.array([[1e308, -1e308]]), np.array([[0.0, 1.0]]), np.ones((1, 1))) == np.inf


@ALL
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_the_conjugate_is_attained_by_derivatives_and_exceeded_by_none(loss: Loss, seed: int, scale: float) -> None:
    """f(t) + f*(-r) >= -<r, t> (Fenchel and Young), with equality at r = -f'(t); -f*(-c r) is what `bound` maximises over c."""
    t, y, w, rng = drawn(loss, seed)

    def negated_conjugate(r: Array) -> float:
        """At an admissible r: `bound` at the longest multiple it may take, r itself, which a steep reward makes the best."""
        normal = loss.normalised(r, y, w)
        places = np.unravel_index(int(np.abs(normal).argmax()), normal.shape)
        multiple = float(r[places] / normal[places])
        return loss.bound(normal, y, w, -1e9, multiple) - 1e9 * multiple

    own = loss.admissible(-w * loss.derivatives(t, y), y, w)
    attained = negated_conjugate(own) - float((own * t).sum())
    assert attained == pytest.approx(loss.total(t, y, w), rel=1e-6, abs=1e-5)
    if not loss.couples_tasks:
        assert loss.conjugate_gain(own, y, w) - float((own * t).sum()) == pytest.approx(loss.total(t, y, w), rel=1e-9, abs=1e-9)
    other = loss.admissible(scale * rng.standard_normal(t.shape), y, w)
    assert np.allclose(loss.admissible(other, y, w), other, rtol=1e-12, atol=1e-14)
    if other.any():
        assert negated_conjugate(other) - float((other * t).sum()) <= loss.total(t, y, w) + 1e-5


@pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if loss.name != "hinge"], ids=lambda loss: loss.name)
def test_normalised_dual_points_are_the_largest_that_are_admissible(loss: Loss) -> None:
    t, y, w, _ = drawn(loss)
    normal = loss.normalised(0.01 * loss.admissible(-w * loss.derivatives(t, y), y, w), y, w)
    assert np.allclose(loss.admissible(normal, y, w), normal, rtol=1e-12)
    if np.isfinite(getattr(loss, "upper", 1.0)) and not isinstance(loss, Squared):
        assert not np.allclose(loss.admissible(1.01 * normal, y, w), 1.01 * normal, rtol=1e-6)
    assert not loss.normalised(np.zeros_like(t), y, w).any()


MARGINS = pytest.mark.parametrize("loss", [loss for loss in LOSSES.values() if isinstance(loss, MarginLoss)], ids=lambda loss: loss.name)


@MARGINS
def test_other_points_are_clipped_to_where_the_conjugate_is_finite(loss: MarginLoss) -> None:
    y, w = np.array([[1.0, -1.0]]), np.array([[0.5, 2.0]])
    for u in (-1e9, -1.0, -1e-9, 0.0, 0.3, 1.0, 1e9):
        r = loss.admissible(u * y * w, y, w)
        assert np.allclose(y * r / w, min(max(u, loss.lower), loss.upper), rtol=1e-15)


@MARGINS
@pytest.mark.parametrize("radius", [0.1, 50.0])
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_opposite_dual_entries_of_equal_examples_do_not_cancel(loss: MarginLoss, radius: float, label: float) -> None:
    """An entry that the conjugate does not allow must not make the support of the others smaller, nor keep them from proving anything."""
    y, w = np.full((2, 1), label), np.array([[0.5], [2.0]])
    optimum = loss.total(radius * y, y, w)  # over |t| <= radius, of the prediction t of both

    def bound(dual: Array) -> float:
        r = loss.normalised(loss.admissible(dual, y, w), y, w)
        return loss.bound(r, y, w, radius * abs(float(r.sum())), np.inf)

    for size in (1e-3, 0.5, 1.0):
        proven = bound(size * y * [[1.0], [-1.0]])
        assert proven <= optimum * (1 + 1e-12)
        assert proven == bound(size * y * [[1.0], [0.0]])
        if radius < 1.0:
            assert proven > 0.0
