"""Singular values between bounds: held to what is known of them exactly, and to eigenvalues in high precision."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_values import rational

from bench_mtl.core.rounding import Interval
from bench_mtl.core.spectral_bounds import enclose_spectral_norm, enclose_trace_norm, frobenius_bound, singular_value_bounds

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(0)
SHAPES = [(1, 1), (5, 3), (3, 5), (40, 12), (12, 40)]


def is_at_least_sigma_max(t: Fraction, A: Any) -> bool:
    """Whether t^2 I - A^T A has no negative eigenvalue, by the pivots of an exact elimination: above 0, or 0 in a row of zeros."""
    exact = rational(A if A.shape[0] >= A.shape[1] else A.T)
    M = t * t * rational(np.eye(exact.shape[1])) - exact.T @ exact
    for k in range(len(M)):
        if M[k, k] < 0 or (M[k, k] == 0 and any(M[k, k + 1 :])):
            return False
        if M[k, k] > 0:
            M[k + 1 :, k:] -= np.outer(M[k + 1 :, k] / M[k, k], M[k, k:])
    return True


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 2.0**-1040, 2.0**1010])
@pytest.mark.parametrize("kind", ["random", "rank one", "ones", "identity"])
def test_the_largest_singular_value_is_between_its_bounds(kind: str, scale: float) -> None:
    for shape in ((1, 1), (3, 2), (2, 4), (6, 5)):
        A = {
            "random": RNG.standard_normal(shape),
            "rank one": np.outer(RNG.standard_normal(shape[0]), RNG.standard_normal(shape[1])),
            "ones": np.ones(shape),
            "identity": np.eye(*shape),
        }[kind] * scale
        found = enclose_spectral_norm(A)
        assert is_at_least_sigma_max(Fraction(found.upper), A)
        assert found.lower == 0.0 or not is_at_least_sigma_max(Fraction(found.lower) * (1 - Fraction(1, 10**15)), A)
        assert found.upper - found.lower <= 1e-12 * found.upper + 1e-322


@pytest.mark.parametrize("scale", [1.0, 2.0**-1060, 2.0**980])
@pytest.mark.parametrize("shape", SHAPES)
def test_trace_norms_of_known_factors_are_between_their_bounds(shape: tuple[int, int], scale: float) -> None:
    """Of a matrix with one entry a row and column the singular values are the moduli; the trace norm of any is above |trace|."""
    p = min(shape)
    entries = RNG.standard_normal(p) * 10.0 ** RNG.integers(-8, 8, p) * scale
    A = np.zeros(shape)
    A[RNG.permutation(shape[0])[:p], RNG.permutation(shape[1])[:p]] = entries
    total, found = sum(abs(rational(entries))), enclose_trace_norm(A)
    assert Fraction(found.lower) <= total <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-11 * found.upper + 1e-322
    bounds = singular_value_bounds(Interval.exact(A))
    assert all(Fraction(bound) >= size for bound, size in zip(bounds, sorted(abs(rational(entries)), reverse=True), strict=True))


def test_a_matrix_between_bounds_has_those_of_all_of_them() -> None:
    A = RNG.standard_normal((5, 4))
    around = Interval.around(A, 1e-3)
    found, bounds = enclose_spectral_norm(around), singular_value_bounds(around)
    for _ in range(20):
        other = A + 1e-3 * RNG.uniform(-1.0, 1.0, A.shape)
        values = np.linalg.svd(other, compute_uv=False)
        assert found.lower <= values[0] <= found.upper
        assert np.all(values <= bounds)


def test_zeros_are_exact_and_what_is_not_finite_says_nothing() -> None:
    for enclose in (enclose_spectral_norm, enclose_trace_norm):
        assert enclose(np.zeros((3, 2))).ends == (0.0, 0.0)
        assert enclose(np.array([[np.inf, 1.0]])).ends[1] == np.inf
    assert frobenius_bound(np.zeros((3, 2))) == 0.0
    with np.errstate(invalid="ignore"):
        assert np.all(np.isinf(singular_value_bounds(Interval(np.full((2, 2), -np.inf), np.full((2, 2), np.inf)))))
