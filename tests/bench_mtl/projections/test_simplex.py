"""The simplex projection against its twin, by what defines it, and the bound on its steps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import U, exact_sum, vector_cases

from bench_mtl.core.errors import InputError
from bench_mtl.projections.simplex import METHODS, project_simplex
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics

vectors = st.integers(1, 20).flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-100, 100, allow_subnormal=False)))
pairs = st.integers(1, 20).flatmap(lambda n: st.tuples(*2 * [arrays(np.float64, n, elements=st.floats(-100, 100))]))
masses = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("v", [pytest.param(v, id=name) for name, v in vector_cases()])
def test_every_method_agrees_with_the_twin(v: np.ndarray) -> None:
    size = float(np.abs(v).max())
    for mass in (1e-12 * size, 0.3 * size, size, 50.0 * min(size, 1e300)):
        if mass == 0.0:
            continue
        expected = slow.simplex(v, mass)
        for method in METHODS:
            w = project_simplex(v, mass, method=method)
            assert np.abs(w - expected).max() <= 1e-13 * max(size, mass / len(v)) + 1e-323, (method, mass)
            if mass > len(v) * 1e-300:
                assert abs(exact_sum(w) / mass - 1.0) <= 8 * U, (method, mass)


@given(vectors, masses, st.sampled_from(METHODS))
def test_variational_inequality(v: np.ndarray, mass: float, method: str) -> None:
    w = project_simplex(v, mass, method=method)
    assert w.min() >= 0.0
    # <v - w, z - w> <= 0 for every corner z = mass * e_i
    assert mass * (v - w).max() - float((v - w) @ w) <= 1e-12 * (1 + mass) * (1 + mass + np.abs(v).max()) * len(v)


@given(pairs, masses)
def test_non_expansive_idempotent_and_blind_to_order(pair: tuple[np.ndarray, np.ndarray], mass: float) -> None:
    one, other = (project_simplex(v, mass) for v in pair)
    assert np.linalg.norm(one - other) <= np.linalg.norm(pair[0] - pair[1]) + 1e-12 * (100 + mass)
    assert np.abs(project_simplex(one, mass) - one).max() <= 8 * U * mass
    order = np.random.default_rng(0).permutation(len(one))
    assert np.abs(project_simplex(pair[0][order], mass) - one[order]).max() <= 1e-13 * (100 + mass)


@pytest.mark.slow  # to compile, most of all
def test_float32_keeps_its_type_and_the_mass_to_its_precision() -> None:
    v = np.random.default_rng(0).standard_normal(6000).astype(np.float32)
    w = project_simplex(v, 3.0)
    assert w.dtype == np.float32
    assert np.abs(w - slow.simplex(v, 3.0)).max() <= 1e-6 * np.abs(v).max()
    assert abs(exact_sum(w) - 3.0) <= 3.0 * 4 * 2.0**-24


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("shape", [(7, 5), (3, 5000), (5000, 3)])
def test_every_line_of_a_matrix_is_projected_by_itself(shape: tuple[int, int], axis: int) -> None:
    big = np.random.default_rng(0).standard_normal((2 * shape[0], 2 * shape[1]))
    expected = np.apply_along_axis(project_simplex, axis, big[: shape[0], : shape[1]], 1.5)
    views = [np.ascontiguousarray(big[: shape[0], : shape[1]]), np.asfortranarray(big[: shape[0], : shape[1]]), big[: shape[0], : shape[1]]]
    for A in views:
        assert np.array_equal(project_simplex(A, 1.5, axis=axis), expected)
        out = np.full((shape[1], shape[0]), 9.0).T
        assert project_simplex(A, 1.5, axis=axis, out=out) is out
        assert np.array_equal(out, expected)
        before = big.copy()
        assert project_simplex(A, 1.5, axis=axis, out=A) is A
        assert np.array_equal(A, expected)
        big[...] = before


def test_an_overlapping_out_gets_what_a_new_one_would() -> None:
    x = np.random.default_rng(0).standard_normal(6000)
    expected = project_simplex(x[:-1], 2.0)
    assert np.array_equal(project_simplex(x[:-1], 2.0, out=x[1:]), expected)
    x = np.random.default_rng(0).standard_normal(6000)
    expected = project_simplex(x[::-1].copy(), 2.0)
    assert np.array_equal(project_simplex(x[::-1], 2.0, out=x), expected)


def test_read_only_and_whole_numbers_are_welcome() -> None:
    v = np.arange(5.0)
    v.flags.writeable = False
    assert np.array_equal(project_simplex(v, 1.0), project_simplex([0, 1, 2, 3, 4], 1.0))


def test_nothing_that_grows_is_allocated_where_out_is_given() -> None:
    v = np.random.default_rng(0).standard_normal(200_000)
    out = np.empty_like(v)
    project_simplex(v, 1.0, out=out)
    tracemalloc.start()
    project_simplex(v, 1.0, out=out)
    project_simplex(v, 1e5, out=out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000


def test_bad_input_is_refused_by_name() -> None:
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = np.array([[1.0, 2.0], [bad, 1.0]])
        before = spoilt.copy()
        for mass in (0.0, 1.0):
            with pytest.raises(InputError, match=r"v has (NaN|inf) at index \(1, 0\)"):
                project_simplex(spoilt, mass, out=spoilt)
        assert np.array_equal(spoilt, before, equal_nan=True)
        long = np.zeros(9000)
        long[8500] = bad
        for method in METHODS:
            with pytest.raises(InputError, match=r"v has (NaN|inf) at index 8500"):
                project_simplex(long, 1.0, method=method)
        with pytest.raises(InputError, match="mass must be finite"):
            project_simplex(A, bad)
    with pytest.raises(InputError, match="mass must be finite and at least 0"):
        project_simplex(A, -1.0)
    with pytest.raises(InputError, match="method must be one of"):
        project_simplex(A, 1.0, method="bisection")
    with pytest.raises(InputError, match="axis must be"):
        project_simplex(A, 1.0, axis=2)
    with pytest.raises(InputError, match="at least one entry"):
        project_simplex(np.zeros((3, 0)), 1.0)
    with pytest.raises(InputError, match="out must be"):
        project_simplex(A, 1.0, out=np.zeros(4))
    assert project_simplex(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert not project_simplex(A, 0.0).any()


@pytest.mark.parametrize("v", [pytest.param(v, id=name) for name, v in vector_cases() if len(v) < 6000])
def test_newton_takes_few_steps_whatever_the_data(v: np.ndarray) -> None:
    """The bound of the module: f g falls by 4 every step, from n^2 max|v| to the rounding of f, which is u n max|v| or so."""
    from bench_mtl.projections.kernels import simplex as kernel

    with np.errstate(over="ignore"):
        keys = np.abs(v)
        if not np.isfinite(keys.sum()) or keys.max() < 1e-300:
            pytest.skip("scaled by the caller")
    for radius in (1e-9 * keys.max(), 0.5 * keys.max(), 0.9 * keys.sum()):
        theta, count, steps = keys.max() - radius, -1.0, 0
        while True:
            excess, number = kernel._pass(keys, theta, 0.0, radius, False)
            steps += 1
            if number in (0.0, count) or theta + excess / number == theta:
                break
            theta, count = theta + excess / number, number
        assert steps <= 2 + 0.5 * (53 + 2 * np.log2(len(v) + 1)) < kernel._MAX_STEPS


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 2), (0,)])
def test_an_axis_that_is_none_is_refused_whatever_the_shape(shape: tuple[int, ...]) -> None:
    for axis in (5, -3, "rows", np.array([0, 1])):
        with pytest.raises(InputError, match="axis must be"):
            project_simplex(np.zeros(shape), axis=axis)  # type: ignore[arg-type]
