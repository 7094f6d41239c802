"""Stumps and their exact oracle, against all stumps written out one by one."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bench_mtl.core.errors import InputError
from bench_mtl.model.forms import ROW_NORMS
from bench_mtl.weak_learners import StumpOracle, Stumps, draw_stumps, violations


def twin_violation(G: Any, norm: str) -> float:
    positive = [max(float(g), 0.0) for g in G]
    return {"l12": sum(p * p for p in positive) ** 0.5, "l1inf": sum(positive), "l1": max(positive)}[norm]


def all_stumps(X: Any) -> list[tuple[int, float, float]]:
    """(feature, threshold, polarity) in the documented order."""
    found = []
    for j in range(X.shape[1]):
        values = sorted(set(X[:, j].tolist()))
        for a, b in itertools.pairwise(values):
            found += [(j, (a + b) / 2.0, 1.0), (j, (a + b) / 2.0, -1.0)]
    return found


def output(X: Any, stump: tuple[int, float, float]) -> Any:
    j, threshold, polarity = stump
    return np.array([polarity if x > threshold else -polarity for x in X[:, j]])


def listed(stumps: Stumps) -> list[tuple[int, float, float]]:
    return list(zip(stumps.features.tolist(), stumps.thresholds.tolist(), stumps.polarities.tolist(), strict=True))


few_values = st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0])
cases = st.tuples(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda size: st.tuples(
        hnp.arrays(np.float64, size[:2], elements=few_values),
        hnp.arrays(np.float64, (size[0], size[2]), elements=st.integers(-3, 3).map(float)),
    )
)


@given(case=cases, norm=st.sampled_from(ROW_NORMS), count=st.integers(1, 40), is_sparse=st.booleans())
def test_the_oracle_is_exact(case: tuple[Any, Any], norm: str, count: int, is_sparse: bool) -> None:
    X, R = case
    matrix = sp.csr_array(X) if is_sparse else X
    everything = all_stumps(X)
    if not everything:
        with pytest.raises(InputError, match="no usable feature"):
            StumpOracle(matrix)
        return
    oracle = StumpOracle(matrix)
    assert oracle.n_stumps == len(everything)
    sizes = [twin_violation(output(X, stump) @ R, norm) for stump in everything]
    order = sorted(range(len(everything)), key=lambda i: -sizes[i])  # stable: ties in the documented order
    stumps, found = oracle.most_violating(R, norm, count)
    np.testing.assert_allclose(found, [sizes[i] for i in order[:count]], rtol=1e-14)
    if norm == "l12":  # roots of sums of scaled squares: equal ones may differ in their last digit
        own = [sizes[everything.index(stump)] for stump in listed(stumps)]
        np.testing.assert_allclose(own, [sizes[i] for i in order[:count]], rtol=1e-14)
        return
    # R is whole numbers, so that all sums are exact, and with them the ties.
    assert listed(stumps) == [everything[i] for i in order[:count]]
    assert oracle.highest(R, norm) == found[0]
    one_each, of_each = StumpOracle(matrix, one_per_feature=True).most_violating(R, norm, count)
    first = [min(i for i in order if everything[i][0] == j and sizes[i] == max(sizes[k] for k in order if everything[k][0] == j))
             for j in sorted({stump[0] for stump in everything})]  # fmt: skip
    assert listed(one_each) == [everything[i] for i in sorted(first, key=lambda i: -sizes[i])[:count]]
    assert of_each[0] == found[0]


@pytest.mark.parametrize(("a", "b"), [(1.0, np.nextafter(1.0, 2.0)), (-5e-324, 0.0), (0.0, 5e-324), (-1.7e308, 1.7e308)])
def test_thresholds_separate_any_two_numbers(a: float, b: float) -> None:
    X = np.array([[b], [a], [b]])
    np.testing.assert_array_equal(draw_stumps(X, 2).outputs(X), [[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]])


def test_explicit_zeros_are_zeros() -> None:
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, -1.0]])
    stored = sp.csr_array((np.array([0.0, 1.0, 2.0, 0.0, -1.0]), np.array([0, 1, 0, 1, 1]), np.array([0, 2, 4, 5])), shape=(3, 2))
    assert listed(draw_stumps(stored, 100)) == all_stumps(X)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_drawn_stumps_are_different_and_of_the_data(storage: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(-2, 3, (30, 6)).astype(float)
    X[:, 2] = 7.0
    matrix = sp.csr_array(X) if storage == "sparse" else X
    everything = all_stumps(X)
    stumps = draw_stumps(matrix, 15, seed=4)
    assert len(set(listed(stumps))) == 15
    assert set(listed(stumps)) <= set(everything)
    assert listed(stumps) == listed(draw_stumps(X, 15, seed=4)) != listed(draw_stumps(X, 15, seed=5))
    assert listed(draw_stumps(matrix, 1000)) == everything
    H = stumps.outputs(matrix)
    np.testing.assert_array_equal(H, np.column_stack([output(X, stump) for stump in listed(stumps)]))
    assert np.all(np.abs(H.sum(axis=0)) < 30)


def test_take_join_and_describe() -> None:
    stumps = Stumps(np.array([12, 0]), np.array([0.35, -1.0]), np.array([1.0, -1.0]))
    assert stumps.names() == ("x[12] > 0.35", "x[0] <= -1")
    assert stumps.take([1, 0, 1]).names() == ("x[0] <= -1", "x[12] > 0.35", "x[0] <= -1")
    assert stumps.take(np.array([False, True])).joined(stumps).names() == ("x[0] <= -1", "x[12] > 0.35", "x[0] <= -1")
    assert stumps.features_of(0) == (12,)
    with pytest.raises(ValueError, match="read-only"):
        stumps.thresholds[0] = 1.0


def test_violations_beyond_squares() -> None:
    np.testing.assert_allclose(violations([[3e200, 4e200], [3e-200, 4e-200], [-1.0, 0.0]], "l12"), [5e200, 5e-200, 0.0])


X = np.array([[0.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StumpOracle([[np.nan], [1.0]]), "X has NaN at index"),
        (lambda: StumpOracle(np.ones((3, 2))), "X has no usable feature: each of its 2 features has one value in all of its 3"),
        (lambda: StumpOracle(np.ones((2, 0))), "no usable feature"),
        (lambda: StumpOracle(np.ones(3)), "must have 2 dimension"),
        (lambda: StumpOracle(X).highest(np.ones((3, 2)), "l12"), "R must be 2 x K"),
        (lambda: StumpOracle(X).highest([[np.inf], [0.0]], "l12"), "R has inf"),
        (lambda: StumpOracle(X).highest(np.ones((2, 2)), "l2"), "norm must be one of l12, l1inf, l1"),
        (lambda: StumpOracle(X).most_violating(np.ones((2, 2)), "l12", 0), "count must be"),
        (lambda: draw_stumps(X, 0), "count must be a whole number of at least 1"),
        (lambda: draw_stumps(X, 1, -1), "seed must be"),
        (lambda: draw_stumps(np.ones((2, 2)), 1), "no usable feature"),
        (lambda: Stumps(np.array([0.5]), np.ones(1), np.ones(1)), "features must be"),
        (lambda: Stumps(np.array([0]), np.ones(2), np.ones(1)), "thresholds have length 2"),
        (lambda: Stumps(np.array([0]), np.ones(1), np.zeros(1)), "polarities must be"),
        (lambda: draw_stumps(X, 1).take([5]), "indices have 5, but there are 1 learners"),
        (lambda: draw_stumps(X, 1).take([True, False]), "a mask of 2 entries"),
        (lambda: draw_stumps(X, 1).take([0.0]), "indices must be"),
        (lambda: Stumps(np.array([2]), np.ones(1), np.ones(1)).outputs(X), "X has 2 features, but a stump examines feature 2"),
        (lambda: draw_stumps(X, 1).outputs([[np.nan, 1.0]]), "X has NaN"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
