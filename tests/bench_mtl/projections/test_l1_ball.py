"""The l1-ball projection and soft thresholding against their twins, and by what defines them."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import FLOAT32, U, exact_sum, vector_cases

from bench_mtl.core.errors import InputError
from bench_mtl.projections import METHODS
from bench_mtl.projections.l1_ball import project_l1_ball, soft_threshold
from bench_mtl.validation import slow_projections as slow

elements = st.one_of(st.floats(-100, 100), st.sampled_from([-1.0, 0.0, 1.0, 2.0**-40, 1e-150, 5e-324]))
vectors = st.integers(1, 20).flatmap(lambda n: arrays(np.float64, n, elements=elements))
pairs = st.integers(1, 20).flatmap(lambda n: st.tuples(*2 * [arrays(np.float64, n, elements=elements)]))
radii = st.one_of(st.floats(1e-3, 1e3), st.floats(0.0, 1.0), st.just(1e-300))


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("v", [pytest.param(v, id=name) for name, v in vector_cases()])
def test_every_method_agrees_with_the_twin(v: np.ndarray, nonneg: bool) -> None:
    size = float(np.abs(v).max())
    with np.errstate(over="ignore"):
        norm = min(float(np.abs(v).sum()), 1e308)
    for ratio in (1e-300, 1e-20, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-12, 1.0, 2.0):
        radius = min(ratio * norm, 1e308)
        expected = slow.l1_ball(v, radius, nonneg=nonneg)
        for method in METHODS:
            w = project_l1_ball(v, radius, method=method, nonneg=nonneg)
            assert np.abs(w - expected).max() <= 1e-13 * size + 1e-323, (method, ratio)
            assert exact_sum(np.abs(w)) <= np.longdouble(radius) * (1 + 4 * U), (method, ratio)
            if exact_sum(np.abs(expected)) > 0.999 * radius > len(v) * 1e-290:
                assert exact_sum(np.abs(w)) >= np.longdouble(radius) * (1 - 8 * U), (method, ratio)
            assert np.array_equal(project_l1_ball(w, radius, method=method, nonneg=nonneg), w), (method, ratio)


@pytest.mark.parametrize("n", [1, 7, 5000])
def test_a_radius_of_the_norm_and_its_neighbours(n: int) -> None:
    v = np.random.default_rng(n).standard_normal(n)
    norm = float(exact_sum(np.abs(v)))
    for radius in (norm, math.nextafter(norm, math.inf)):
        assert project_l1_ball(v, radius).tobytes() == v.tobytes()
    w = project_l1_ball(v, norm * (1 - 100 * U))
    assert exact_sum(np.abs(w)) <= norm * (1 - 96 * U)
    assert not np.array_equal(w, v)
    assert np.abs(w - v).max() <= 1e-13 * norm


@given(vectors, radii, st.sampled_from(METHODS), st.booleans())
def test_variational_inequality_and_signs(v: np.ndarray, radius: float, method: str, nonneg: bool) -> None:
    w = project_l1_ball(v, radius, method=method, nonneg=nonneg)
    assert np.all((w == 0) | (np.sign(w) == np.sign(v)))
    assert np.all(np.abs(w) <= np.abs(v))
    assert np.all(w >= 0) or not nonneg
    residual = v - w
    slack = 1e-12 * (1 + np.abs(v).max()) ** 2 * len(v)
    # <v - w, z - w> <= 0 at every extreme point z of the set: 0 and +-radius e_i
    best = max(0.0, radius * float(residual.max() if nonneg else np.abs(residual).max()))
    assert best - float(residual @ w) <= slack * (1 + radius) or exact_sum(np.abs(np.maximum(v, 0) if nonneg else v)) <= radius * (
        1 + 4 * U
    )


@given(pairs, radii)
def test_non_expansive_and_blind_to_order(pair: tuple[np.ndarray, np.ndarray], radius: float) -> None:
    one, other = (project_l1_ball(v, radius) for v in pair)
    assert np.linalg.norm(one - other) <= np.linalg.norm(pair[0] - pair[1]) * (1 + 1e-14) + 1e-12
    order = np.random.default_rng(0).permutation(len(one))
    assert np.abs(project_l1_ball(pair[0][order], radius) - one[order]).max() <= 1e-13 * 100


@pytest.mark.slow  # to compile, most of all
@pytest.mark.parametrize("n", [5, 6000])
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1.0, 1e37])
def test_float32_stays_inside_to_the_precision_of_doubles(scale: float, n: int) -> None:
    v = (scale * np.random.default_rng(0).standard_normal(n)).astype(np.float32)
    for ratio in (1e-3, 0.3, 0.99):
        radius = float(ratio * exact_sum(np.abs(v)))
        w = project_l1_ball(v, radius)
        assert w.dtype == np.float32
        assert exact_sum(np.abs(w)) <= radius * (1 + 4 * U)
        assert np.abs(w - slow.l1_ball(v, radius)).max() <= 1e-6 * np.abs(v).max() + 2.0**-148
        assert np.array_equal(project_l1_ball(w, radius), w)


@pytest.mark.parametrize("scale", [1e-38, 1.0, 1e37])
def test_float32_is_rounded_towards_the_inside(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above without compiling for float32: kernels of float64 do the work, and their results are rounded to the nearest."""
    from bench_mtl.projections.kernels import simplex as kernel

    compiled, calls = kernel.project_lines, 0

    def rounded(lines: np.ndarray, keys: np.ndarray, out: np.ndarray, same: bool, *others: object) -> int:
        nonlocal calls
        calls += 1
        wide = np.empty(lines.shape)
        refused: int = compiled(lines.astype(np.float64), keys, wide, False, *others)
        out[...] = wide
        return refused

    monkeypatch.setattr(kernel, "project_lines", rounded)
    for n in (5, 50, 2000):
        v = (scale * np.random.default_rng(n).standard_normal(n)).astype(np.float32)
        for ratio in (1e-3, 0.3, 0.9, 0.99):
            radius = float(ratio * exact_sum(np.abs(v)))
            w = project_l1_ball(v, radius)
            assert w.dtype == np.float32
            assert exact_sum(np.abs(w)) <= radius * (1 + 4 * U), (n, ratio)
            assert np.abs(w - slow.l1_ball(v, radius)).max() <= 1e-6 * np.abs(v).max() + 2.0**-148
    assert calls == 12


def test_columns_are_one_ball_a_task() -> None:
    A = np.random.default_rng(0).standard_normal((50, 6))
    expected = np.stack([project_l1_ball(column, 1.5) for column in A.T.copy()], axis=1)
    for given_array in (A, np.asfortranarray(A), np.hstack([A, A])[:, :6]):
        assert np.array_equal(project_l1_ball(given_array, 1.5, axis=0), expected)
    assert np.array_equal(project_l1_ball(A, 1.5, axis=0, out=A), expected)


def test_nothing_that_grows_is_allocated_where_out_is_given() -> None:
    A = np.random.default_rng(0).standard_normal((200, 1000))
    out = np.empty_like(A)
    for axis in (-1, 0):
        project_l1_ball(A, 1.0, axis=axis, out=out)
        soft_threshold(A, 1.0, out=out)
        tracemalloc.start()
        project_l1_ball(A, 1.0, axis=axis, out=out)
        soft_threshold(A, 1.0, out=out)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 50_000


@given(vectors, st.floats(0, 50))
def test_soft_threshold_is_entrywise_and_the_rest_of_a_clip(v: np.ndarray, threshold: float) -> None:
    B = soft_threshold(v, threshold)
    assert np.array_equal(B, [np.sign(a) * max(abs(a) - threshold, 0.0) for a in v])
    assert np.abs(B + np.clip(v, -threshold, threshold) - v).max() <= 2 * U * 100  # Moreau, with the dual ball


@pytest.mark.parametrize("dtype", [np.float64, FLOAT32])
def test_soft_threshold_of_any_layout(dtype: type) -> None:
    A = np.random.default_rng(0).standard_normal((60, 70)).astype(dtype)
    expected = (np.sign(A) * np.maximum(np.abs(A.astype(float)) - 0.5, 0)).astype(dtype)
    for given_array in (A, np.asfortranarray(A), np.hstack([A, A])[:, :70]):
        assert np.array_equal(soft_threshold(given_array, 0.5), expected)
        out = np.empty((70, 60), dtype).T
        assert np.array_equal(soft_threshold(given_array, 0.5, out=out), expected)
    x = A.ravel().copy()
    assert np.array_equal(soft_threshold(x[:-1], 0.5, out=x[1:]), expected.ravel()[:-1])
    assert np.array_equal(soft_threshold(A, 0.5, out=A), expected)
    assert soft_threshold(np.zeros((0, 3)), 1.0).shape == (0, 3)


@pytest.mark.parametrize("function", [project_l1_ball, soft_threshold])
def test_bad_input_is_refused_and_good_input_left_alone(function) -> None:  # type: ignore[no-untyped-def]
    A = np.array([[1.0, -2.0], [3.0, 4.0]])
    before = A.copy()
    result = function(A, 1.0)
    assert np.array_equal(A, before)
    result[...] = 9.0
    assert np.array_equal(A, before), "the result shares memory with the input"
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = np.array([[1.0, 2.0], [bad, 1.0]])
        for out in (None, spoilt):
            with pytest.raises(InputError, match=r"(NaN|inf) at index \(1, 0\)"):
                function(spoilt, 1.0, out=out)
        assert not np.isfinite(spoilt[1, 0])
        assert spoilt[0, 0] == 1.0
        with pytest.raises(InputError, match="must be finite"):
            function(A, bad)
    with pytest.raises(InputError, match="at least 0"):
        function(A, -1.0)
    with pytest.raises(InputError, match="must be a number"):
        function(A, "one")
    with pytest.raises(InputError, match="real numbers"):
        function(np.array([["a"]]), 1.0)
    with pytest.raises(InputError, match="out must be"):
        function(A, 1.0, out=np.zeros((2, 2), np.float32))


def test_radius_zero_and_nothing_at_all() -> None:
    assert not project_l1_ball(np.array([1.0, -2.0]), 0.0).any()
    assert project_l1_ball(np.zeros(0), 1.0).shape == (0,)
    assert project_l1_ball(np.zeros((3, 0)), 1.0).shape == (3, 0)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 2.0])
def test_rows_far_away_end_on_the_ball(radius: float) -> None:
    A = 1e12 * np.random.default_rng(0).standard_normal((20, 5))
    assert np.abs(project_l1_ball(A, radius)).sum(axis=1) == pytest.approx(np.full(20, radius), rel=1e-14)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 40, 6000])
def test_a_large_negative_entry_hides_no_positive_one(method: str, n: int) -> None:
    for size in (1e17, 1e200, 1.7e308):
        v = np.full(n, -size)
        v[-1] = 5.0
        for radius in (1.0, 4.0, 7.0):
            expected = np.zeros(n)
            expected[-1] = min(radius, 5.0)
            assert np.array_equal(project_l1_ball(v, radius, method=method, nonneg=True), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [-1, 0])
def test_a_row_whose_sum_overflows_leaves_the_others_alone(method: str, axis: int) -> None:
    A: np.ndarray = np.array([[0.1, 0.2], [1.7e308, 1.7e308], [3.0, 4.0], [1.7e308, -1.7e308], [1e-300, 0.5]])
    for nonneg in (False, True):
        for radius in (1.0, 1e300, 1e308):
            B = project_l1_ball(A if axis else A.T, radius, method=method, nonneg=nonneg, axis=axis)
            B = B if axis else B.T
            for row, result in zip(A, B, strict=True):
                assert np.array_equal(result, project_l1_ball(row, radius, method=method, nonneg=nonneg))
                expected = slow.l1_ball(row, radius, nonneg=nonneg)
                assert np.abs(result - expected).max() <= 1e-15 * max(float(np.abs(expected).max()), radius if radius < 1e308 else 1e308)
            assert np.array_equal(B[[0, 4]], A[[0, 4]])
    spoilt = np.vstack([A, [1.0, np.nan]])
    with pytest.raises(InputError, match=r"v has NaN at index \(5, 1\)"):
        project_l1_ball(spoilt, 1.0, method=method)


def test_soft_threshold_where_sums_overflow() -> None:
    v = np.full(3000, 1e306)
    out: np.ndarray = np.full(3000, 7.0)
    assert np.array_equal(soft_threshold(v, 1.0, out=out), v)
    assert np.array_equal(soft_threshold(-v, 4e305), np.full(3000, -(1e306 - 4e305)))
    assert np.array_equal(soft_threshold(v, 1e306, out=v), np.zeros(3000))
    v = np.full(3000, 1e306)
    v[2500] = np.nan
    with pytest.raises(InputError, match="A has NaN at index 2500"):
        soft_threshold(v, 1.0)


def test_a_method_that_is_no_string_is_refused() -> None:
    for method in (np.array(["newton", "sort"]), None, ["newton"]):
        with pytest.raises(InputError, match="method must be one of"):
            project_l1_ball(np.ones(3), 1.0, method=method)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="axis must be"):
        project_l1_ball(np.ones(3), 1.0, axis=np.array([0, 1]))  # type: ignore[arg-type]
