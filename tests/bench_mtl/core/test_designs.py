"""Designs against the loop that defines them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign, diagonal_of, spectral_norm, spectral_norm_bound
from bench_mtl.core.errors import InputError

pytestmark = pytest.mark.numerics

RNG = np.random.default_rng(1)
D, M = 5, 3
X = RNG.standard_normal((7, D)) * (RNG.random((7, D)) < 0.6)
UNEVEN = [RNG.standard_normal((n, D)) for n in (4, 6, 2)]
EVEN = [RNG.standard_normal((4, D)) for _ in range(M)]

DESIGNS = {
    "shared dense": (SharedDesign(X, M), [X] * M),
    "shared CSR": (SharedDesign(sp.csr_array(X), M), [X] * M),
    "per task uneven": (PerTaskDesign(UNEVEN), UNEVEN),
    "per task even": (PerTaskDesign(EVEN), EVEN),
    "per task CSR": (PerTaskDesign([sp.csr_array(block) for block in UNEVEN]), UNEVEN),
}


@pytest.mark.parametrize(("design", "blocks"), DESIGNS.values(), ids=list(DESIGNS))
def test_a_design_is_its_blocks(design: Design, blocks: list[np.ndarray]) -> None:
    W, R = RNG.standard_normal((D, M)), RNG.standard_normal(design.output_shape)
    image, back = design.forward(W), design.adjoint(R)
    assert image.shape == design.output_shape
    for k, block in enumerate(blocks):
        assert np.allclose(design.task_outputs(image, k), block @ W[:, k])
        assert np.allclose(back[:, k], block.T @ design.task_outputs(R, k))
        dense = design.block(k)
        assert np.array_equal(dense.toarray() if sp.issparse(dense) else dense, block)
    assert np.allclose(design.stacked() @ W.ravel(order="F"), design.stack(image))
    assert np.array_equal(design.unstack(design.stack(R)), R)
    assert design.norm() == pytest.approx(max(np.linalg.norm(block, 2) for block in blocks))
    spread = np.broadcast_to(design.per_example(np.arange(3.0)), design.output_shape)
    for k, block in enumerate(blocks):
        assert np.array_equal(design.task_outputs(spread, k), np.full(len(block), float(k)))
    assert design.n_examples == sum(len(block) for block in blocks)


def test_the_callers_arrays_stay_writable_and_the_designs_do_not() -> None:
    mine = np.ones((3, 2))
    design = SharedDesign(mine, 1)
    with pytest.raises(ValueError, match="read-only"):
        design.block(0)[0, 0] = 5.0
    mine[0, 0] = 2.0
    sparse = sp.csr_array(np.eye(3))
    with pytest.raises(ValueError, match="read-only"):
        SharedDesign(sparse, 1).block(0).data[0] = 5.0
    sparse.data[0] = 2.0


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_the_spectral_norm_survives_extreme_scales(scale: float) -> None:
    assert spectral_norm(scale * X) == pytest.approx(scale * np.linalg.norm(X, 2), rel=1e-10)


def test_the_spectral_norm_of_a_large_matrix_is_an_upper_bound() -> None:
    blocks = np.random.default_rng(0).standard_normal((42, 50, 49))
    big = sp.block_diag(list(blocks), format="csr")  # so large that it is not taken apart, with a norm that takes no minute
    exact = np.linalg.norm(blocks, 2, axis=(1, 2)).max()
    assert exact <= spectral_norm(big) <= exact * (1 + 1e-5)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([], "at least one task"),
        ([np.ones((0, 2))], "task 0 is empty"),
        ([np.ones((2, 0))], "no features"),
        ([np.ones((2, 2)), np.ones((2, 3))], "task 1 has 3 features, but task 0 has 2"),
        ([np.ones(3)], "2 dimension"),
        ([np.array([[1.0, np.nan]])], r"X of task 0 has NaN at index \(0, 1\)"),
        ([[["a"]]], "real numbers"),
    ],
)
def test_bad_designs_are_refused_by_name(blocks: list[object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        PerTaskDesign(blocks)


def test_a_large_norm_is_not_missed_and_its_bound_holds() -> None:
    """The leading singular vector is orthogonal to the all-ones vector, where a fixed Lanczos start would miss it."""
    n = 2001
    u = np.zeros(n)
    u[0], u[1] = 1.0, -1.0
    X = sp.csr_array(sp.eye_array(n) + 10.0 * sp.csr_array(np.outer(u, u)))
    assert spectral_norm(X) == pytest.approx(21.0, rel=1e-5)
    assert spectral_norm_bound(X) >= 21.0
    assert spectral_norm(sp.csr_array(sp.eye_array(n))) >= 1.0
    assert spectral_norm(sp.csr_array((n, n))) == 0.0


def test_the_diagonal_of_a_sparse_matrix_with_nothing_beside_it() -> None:
    values = np.array([3.0, 0.0, 2.0])
    assert np.array_equal(diagonal_of(sp.csr_array(np.diag(values))), values)
    assert diagonal_of(np.diag(values)) is None
    assert diagonal_of(sp.csr_array(np.diag(values, 1))) is None
    assert diagonal_of(sp.csr_array(np.ones((3, 3)))) is None
    assert spectral_norm(sp.csr_array(np.diag(-values))) == 3.0
