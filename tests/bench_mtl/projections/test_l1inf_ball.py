"""The l1,inf ball against its long-double twin, its forms against each other, its errors by name, and its bounds on work and memory."""

import functools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from projection_cases import Case, cases, distance, feasible, none, sum_of_maxima

from bench_mtl.core.errors import InputError
from bench_mtl.projections import l1inf_projection, norm_l1inf, norm_linf1, project_l1inf_ball, prox_l1inf
from bench_mtl.validation import slow_projections as slow

METHODS = ("newton", "merge")
#: Passes that no input may take. The slowest that searches of this kind came across takes 6; `kernels.l1inf.MAX_PASSES` is the hard limit.
MOST_PASSES = 24


@functools.cache
def expected(kind: str) -> tuple[tuple[Case, np.ndarray], ...]:
    return tuple((case, slow.l1inf_ball(case.A, case.radius)) for case in cases(kind))


# Exactness


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(300, 300), (2000, 60), (5000, 10), (60, 2000), (4000, 3)])
def test_agrees_with_the_twin_on_larger_matrices(shape: tuple[int, int], method: str) -> None:
    rng = np.random.default_rng(shape)
    A = rng.standard_normal(shape) * np.exp(rng.standard_normal((shape[0], 1)))
    for ratio in (0.01, 0.5):
        radius = ratio * sum_of_maxima(A)
        B = project_l1inf_ball(A, radius, method=method)
        assert distance(B, slow.l1inf_ball(A, radius), A) <= 1e-13
        assert feasible(B, radius)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e307, 1.7e308])
def test_sums_beyond_the_largest_number_are_no_obstacle(size: float, method: str) -> None:
    A = size * np.random.default_rng(0).uniform(-1, 1, (30, 20))
    for radius in (1.0, 1e300, 1e308):
        B = project_l1inf_ball(A, radius, method=method)
        assert distance(B, slow.l1inf_ball(A, radius), A) <= 1e-13
        assert feasible(B, radius)


@pytest.mark.parametrize("method", METHODS)
def test_the_long_form_says_what_it_found(method: str) -> None:
    A = np.random.default_rng(2).standard_normal((12, 8))
    radius = 0.2 * norm_l1inf(A)
    result = l1inf_projection(A, radius, method=method)
    assert np.array_equal(result.matrix, project_l1inf_ball(A, radius, method=method))
    assert np.array_equal(result.maxima, np.abs(result.matrix).max(axis=1))
    lost = (np.abs(A) - np.abs(result.matrix)).sum(axis=1)
    assert lost[result.maxima > 0] == pytest.approx(np.full((result.maxima > 0).sum(), result.theta))
    assert lost.max() <= result.theta * (1 + 1e-13)
    assert 1 <= result.passes <= MOST_PASSES
    inside = l1inf_projection(A, 2 * norm_l1inf(A), method=method)
    assert inside.theta == 0.0
    assert np.array_equal(inside.maxima, np.abs(A).max(axis=1))


@pytest.mark.parametrize("theta0", [0.0, 1e-300, 1e-3, 1.0, 1e3, 1e300])
@pytest.mark.parametrize("kind", ["gauss", "ties", "cauchy^3", "zero rows", "constant", "one dominates"])
def test_a_start_may_be_anywhere(kind: str, theta0: float) -> None:
    for case, twin in list(expected(kind))[::5]:
        result = l1inf_projection(case.A, case.radius, theta0=theta0)
        assert distance(result.matrix, twin, case.A) <= 1e-13, case.name
        assert feasible(result.matrix, case.radius), case.name
        assert result.passes <= MOST_PASSES, case.name


def test_callers_in_several_threads_do_not_meet() -> None:
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((400, m)) for m in (5, 40, 5, 40, 5, 40)]
    alone = [project_l1inf_ball(A, 20.0) for A in inputs]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(20):
            for one, other in zip(alone, pool.map(lambda A: project_l1inf_ball(A, 20.0), inputs), strict=True):
                assert np.array_equal(one, other)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", [(6, 4), (3, 0), (0, 3)])
def test_row_maxima_of_float32_are_those_of_the_matrix(form: Callable[..., Any], shape: tuple[int, int]) -> None:
    A = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = l1inf_projection(form(A), 1.0)
    B = found.matrix.toarray() if sp.issparse(found.matrix) else found.matrix
    assert B.dtype == np.float32
    np.testing.assert_array_equal(found.maxima, np.abs(B).max(axis=1, initial=0.0))


def test_csr_of_any_make() -> None:
    A = np.array([[0.0, -3.0, 1.0], [0.0, 0.0, 0.0], [2.0, 0.0, 5.0]])
    expected_result = project_l1inf_ball(A, 2.0)
    unsorted = sp.csr_array((np.array([1.0, -3.0, 5.0, 2.0]), np.array([2, 1, 2, 0]), np.array([0, 2, 2, 4])), shape=(3, 3))
    doubled = sp.csr_array((np.array([-1.0, -2.0, 1.0, 2.0, 5.0]), np.array([1, 1, 2, 0, 2]), np.array([0, 3, 3, 5])), shape=(3, 3))
    stored_zero = sp.csr_array((np.array([0.0, -3.0, 1.0, 2.0, 5.0]), np.array([0, 1, 2, 0, 2]), np.array([0, 3, 3, 5])), shape=(3, 3))
    for S in (unsorted, doubled, stored_zero, sp.csr_matrix(A), sp.csc_array(A), sp.coo_array(A), sp.csr_array(A.astype(int))):
        assert np.allclose(project_l1inf_ball(S, 2.0).toarray(), expected_result, rtol=0, atol=1e-15)
        assert np.array_equal(S.toarray(), A)
        assert norm_l1inf(S) == 8.0
        assert norm_linf1(S) == 7.0


def test_a_sparse_value_that_is_not_finite_is_named_by_row_and_column() -> None:
    S = sp.csr_array(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, np.nan]]))
    for function in (project_l1inf_ball, prox_l1inf):
        with pytest.raises(InputError, match=r"A has NaN at index \(2, 2\)"):
            function(S, 1.0)


@pytest.mark.parametrize("base", [1.001, 1.1, 1.5, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("size", [10, 100, 300])
def test_geometric_families_take_few_passes(base: float, size: int) -> None:
    """Rows and columns that each give way at another theta are what makes searches of this kind slow."""
    row, column = np.arange(size)[:, None], np.arange(8.0)
    limit = 280 / math.log10(base)
    for A in (
        base ** -np.minimum(row * np.ones(8), limit),
        base ** -np.minimum(row + column, limit),
        base ** -np.minimum(row * (column + 1.0), limit),
        base ** -np.minimum(np.arange(float(size)) * np.ones((3, 1)), limit),
        (1.0 + row) * base ** -np.minimum(row + column, limit),
    ):
        for ratio in (1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999999):
            radius = ratio * sum_of_maxima(A)
            result = l1inf_projection(A, radius)
            assert result.passes <= MOST_PASSES
            assert feasible(result.matrix, radius)


# Radii at which a row just vanishes: the sum of the levels bends there, and rounding may put a row on either side


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
def test_a_radius_at_which_a_row_vanishes(columns: int) -> None:
    rng = np.random.default_rng(columns)

    def failures() -> Iterator[str]:
        for trial in range(150):
            A = rng.integers(0, 100, size=(int(rng.integers(2, 8)), columns)) / rng.choice([10.0, 100.0])
            theta = np.sort(np.abs(A).sum(axis=1))[int(rng.integers(len(A)))]
            sums = np.cumsum(-np.sort(-np.abs(A), axis=1), axis=1)
            radius = float(np.maximum(((sums - theta) / np.arange(1, columns + 1)).max(axis=1), 0.0).sum())
            for shifted in (np.nextafter(radius, 0.0), radius, np.nextafter(radius, np.inf)):
                if 0.0 < shifted < norm_l1inf(A):
                    twin = slow.l1inf_ball(A, shifted)
                    for method in METHODS:
                        error = distance(project_l1inf_ball(A, shifted, method=method), twin, A)
                        if not error <= 1e-13:
                            yield f"trial {trial}, {method}: off by {error:.1e} at {A.tolist()}, {shifted!r}"

    none(failures())


@pytest.mark.parametrize("A", [[[0.7], [2.0], [0.1]], [[2.0], [9.7], [5.6], [9.6]]])
def test_radii_that_once_made_the_search_go_round_for_ever(A: list[list[float]]) -> None:
    for radius in (1.3, 0.1):
        assert np.allclose(project_l1inf_ball(A, radius), project_l1inf_ball(A, radius, method="merge"), rtol=0, atol=1e-14)


def test_a_tiny_radius_on_sparse_rows_of_equal_sums_takes_memory_for_its_entries_alone() -> None:
    wide, d = 2048, 5000
    A = sp.vstack(
        [sp.csr_array(np.full((1, wide), 1.0 / wide)), sp.csr_array((np.ones(d), (np.arange(d), np.arange(d) % wide)), (d, wide))]
    )
    project_l1inf_ball(sp.csr_array(A), 1e-12)  # what is compiled and loaded is not counted
    tracemalloc.start()
    for radius in (0.0, 1e-12):
        B = project_l1inf_ball(sp.csr_array(A), radius)
        assert float(abs(B).max(axis=1).sum()) == pytest.approx(radius, rel=1e-12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_vanished_rows_are_plain_zeros() -> None:
    for A in (np.array([[-1.0, -2.0], [3.0, 4.0]]), np.asfortranarray([[-1.0, -2.0], [3.0, 4.0]]), -np.ones((2, 40)) * [[0.1], [9.0]]):
        B = project_l1inf_ball(A, 0.5)
        assert not B[0].any()
        assert not np.signbit(B[0]).any()


# Properties

#: Ordinary numbers, and few enough values that ties are common.
elements = st.one_of(st.floats(-100, 100), st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 2.0**-40, 1e-150]))
matrices = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(lambda shape: arrays(np.float64, shape, elements=elements))
sizes = st.one_of(st.floats(1e-3, 1e3), st.floats(0.0, 10.0), st.just(1e-300))


@given(matrices, sizes, st.booleans(), st.floats(0.0, 1e4))
def test_all_ways_lead_to_the_same_point(A: np.ndarray, radius: float, nonneg: bool, theta0: float) -> None:
    B = project_l1inf_ball(A, radius, nonneg=nonneg)
    near = 1e-13 * float(np.abs(A).max())
    assert np.abs(project_l1inf_ball(A, radius, nonneg=nonneg, method="merge") - B).max() <= near
    assert np.abs(project_l1inf_ball(A, radius, nonneg=nonneg, theta0=theta0) - B).max() <= near
    sparse = sp.csr_array(A)
    assert np.abs(project_l1inf_ball(sparse, radius, nonneg=nonneg).toarray() - B).max() <= near
    assert np.abs(prox_l1inf(sparse, radius, nonneg=nonneg).toarray() - prox_l1inf(A, radius, nonneg=nonneg)).max() <= near
    assert np.array_equal(sparse.toarray(), A)
    assert np.abs(project_l1inf_ball(-A if not nonneg else A, radius, nonneg=nonneg) - (B if nonneg else -B)).max() <= near
    assert np.abs(project_l1inf_ball(np.maximum(A, 0.0), radius) - project_l1inf_ball(A, radius, nonneg=True)).max() <= near
