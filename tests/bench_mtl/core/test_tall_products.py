"""Products of blocks of rows with few columns, against NumPy's."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl.core.rounding import gamma
from bench_mtl.core.tall_products import tall_adjoint, tall_product

pytestmark = pytest.mark.numerics


@given(n=st.integers(0, 11), d=st.integers(1, 21), m=st.integers(0, 18), seed=st.integers(0, 1000), kind=st.sampled_from(["C", "F", "CSR"]))
def test_they_are_the_products(n: int, d: int, m: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    W, R = rng.standard_normal((d, m) if m else d), rng.standard_normal((n, m) if m else n)
    given_X = sp.csr_array(X) if kind == "CSR" else np.asarray(X, order=kind)  # type: ignore[call-overload]
    forward, back = tall_product(given_X, W), tall_adjoint(given_X, R)
    assert forward.shape == (X @ W).shape
    assert back.shape == (X.T @ R).shape
    # Both are within gamma of the exact product, whatever the order of their sums.
    assert np.all(np.abs(forward - X @ W) <= 2.0 * gamma(d) * (np.abs(X) @ np.abs(W)))
    assert np.all(np.abs(back - X.T @ R) <= 2.0 * gamma(n + 1) * (np.abs(X.T) @ np.abs(R)))


def test_bits_do_not_depend_on_where_a_block_lies_in_memory() -> None:
    rng = np.random.default_rng(0)
    held = rng.standard_normal(37 * 23 + 8)
    W, R = rng.standard_normal((23, 4)), rng.standard_normal((37, 4))
    X = held[: 37 * 23].copy().reshape(37, 23)
    for start in range(8):
        held[start : start + 37 * 23] = X.ravel()
        moved = held[start : start + 37 * 23].reshape(37, 23)
        assert np.array_equal(tall_product(moved, W), tall_product(X, W))
        assert np.array_equal(tall_adjoint(moved, R), tall_adjoint(X, R))
