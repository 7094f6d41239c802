"""Laws of all designs: their products and norms are those of the matrices that they are made of, wherever the rows of these are."""

import contextlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from exact_values import rational, require_between, unlike

from bench_mtl.core.designs import Design, PerTaskDesign, SharedDesign, diagonal_of, spectral_norm, spectral_norm_bound
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval, compensated, compensated_product, is_compensated
from bench_mtl.core.sharded_design import design_of
from bench_mtl.core.shards import Shards
from bench_mtl.data import TaskData
from bench_mtl.projections import project_l1inf_ball

pytestmark = pytest.mark.numerics

D, M = 5, 3
EVEN, UNEVEN = (6, 6, 6), (4, 7, 3)


def in_shards(blocks: list[Any], tasks: list[int] | None = None) -> Design:
    """Return a design with every block in two shards, or one that is shared, of three blocks of rows."""
    parts = [(k, rows) for k, X in enumerate(blocks) for rows in (X[:1], X[1:])]
    m = 1 if tasks else M
    return design_of(Shards.held([(rows, np.zeros((rows.shape[0], m))) for _, rows in parts], [k for k, _ in parts] if tasks else None))


def shared(kind: Callable[[Any], Any], blocks: list[Any]) -> tuple[Design, list[Any]]:
    return SharedDesign(kind(np.concatenate(blocks)), M), [np.concatenate(blocks)] * M


def shared_in_shards(kind: Callable[[Any], Any], blocks: list[Any]) -> tuple[Design, list[Any]]:
    return in_shards([kind(X) for X in blocks]), [np.concatenate(blocks)] * M


def per_task(kind: Callable[[Any], Any], blocks: list[Any]) -> tuple[Design, list[Any]]:
    return PerTaskDesign([kind(X) for X in blocks]), blocks


def per_task_in_shards(kind: Callable[[Any], Any], blocks: list[Any]) -> tuple[Design, list[Any]]:
    return in_shards([kind(X) for X in blocks], list(range(M))), blocks


KINDS = [(make, kind, sizes) for make in (shared, shared_in_shards, per_task, per_task_in_shards) for kind in (np.asarray, sp.csr_array)
         for sizes in ((EVEN, UNEVEN) if make is per_task else (UNEVEN,))]  # fmt: skip
of_any_kind = pytest.mark.parametrize(("make", "kind", "sizes"), KINDS, ids=[f"{m.__name__} {k.__name__} {s}" for m, k, s in KINDS])


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


@of_any_kind
def test_a_design_is_its_matrices(make: Any, kind: Any, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    design, blocks = make(kind, [rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.6) for n in sizes])
    distinct = blocks[:1] if design.is_shared else blocks
    W, R = rng.standard_normal((D, M)), rng.standard_normal(design.output_shape)
    image, back = design.forward(W), design.adjoint(R)
    close: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
    features = np.array([4, 1])
    assert (design.n_features, design.n_tasks, design.sizes) == (D, M, tuple(map(len, blocks)))
    assert image.shape == design.output_shape == ((len(blocks[0]), M) if design.is_shared else (sum(map(len, blocks)),))
    assert design.n_examples == sum(map(len, blocks))
    assert design.is_sparse == (kind is sp.csr_array)
    assert design.n_stored == sum(np.count_nonzero(X) if design.is_sparse else X.size for X in distinct)
    assert design.squares() == pytest.approx(sum(np.square(X).sum() for X in distinct))
    np.testing.assert_allclose(design.norms(), [np.linalg.norm(X, 2) for X in blocks], rtol=1e-12)
    spread = np.broadcast_to(design.per_example(np.arange(3.0)), design.output_shape)
    np.testing.assert_allclose(design.task_sums(R), [design.task_outputs(R, k).sum() for k in range(M)], **close)
    for k, X in enumerate(blocks):
        np.testing.assert_allclose(design.task_outputs(image, k), X @ W[:, k], **close)
        np.testing.assert_allclose(back[:, k], X.T @ design.task_outputs(R, k), **close)
        np.testing.assert_allclose(design.gram(k), X.T @ X, **close)
        np.testing.assert_array_equal(dense(design.restricted(features).block(k)), X[:, features])
        np.testing.assert_allclose(design.of_task(k).forward(W[:, :1]), X @ W[:, :1], **close)
        assert np.all(design.task_outputs(spread, k) == k)
        assert len(design.task_outputs(spread, k)) == len(X)
    np.testing.assert_array_equal(design.stack(R), np.concatenate([design.task_outputs(R, k) for k in range(M)]))
    np.testing.assert_array_equal(design.unstack(design.stack(R)), R)
    before = pickle.dumps(design) if design.is_in_shards else b""
    design.adjoint_with_error(R)
    assert not before or pickle.dumps(design) == before  # workers compare a problem with what it was
    if design.is_in_shards:
        for ask in (lambda: design.block(0), design.stacked, design.with_constant):
            with pytest.raises(InputError, match="in shards"):
                ask()
        return
    np.testing.assert_allclose(design.stacked() @ W.ravel(order="F"), design.stack(image), **close)
    for k, X in enumerate(blocks):
        np.testing.assert_array_equal(dense(design.block(k)), X)
        np.testing.assert_array_equal(dense(design.with_constant().block(k)), np.hstack([X, np.ones((len(X), 1))]))


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 1e-290])
@of_any_kind
def test_products_are_enclosed(make: Any, kind: Any, sizes: tuple[int, ...], scale: float, is_exact: bool) -> None:
    rng = np.random.default_rng(len(make.__name__))
    design, blocks = make(kind, [scale * unlike(rng, n, D) for n in sizes])
    W, R = unlike(rng, D, M), unlike(rng, *design.output_shape)
    W[:, 1] = 0.0
    moved, around = R * (1.0 + 1e-9 * rng.uniform(-1.0, 1.0, R.shape)), Interval.around(R, 1.1e-9 * np.abs(R))
    with compensated() if is_exact else contextlib.nullcontext():
        assert is_compensated() == is_exact
        forward = Interval.around(*design.forward_with_error(W))
        adjoint, of_any = design.enclose_adjoint(R), design.enclose_adjoint(around)
    assert not is_compensated()
    for k, X in enumerate(blocks):
        exact = rational(X)
        of_task = Interval(design.task_outputs(forward.lower, k), design.task_outputs(forward.upper, k))
        require_between(of_task, exact @ rational(W[:, k]))
        require_between(adjoint[:, k], exact.T @ rational(design.task_outputs(R, k)))
        require_between(of_any[:, k], exact.T @ rational(design.task_outputs(moved, k)))


def test_indices_of_64_bits_become_short() -> None:
    X: Any = sp.csr_array(np.eye(3))
    long = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    assert long.indices.dtype == np.int64
    for design in (SharedDesign(long, 2), PerTaskDesign([long, X])):
        block = design.block(0)
        assert (block.indices.dtype, block.indptr.dtype) == (np.int32, np.int32)
        assert np.array_equal(block.toarray(), np.eye(3))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("place", [-1, 4, 2**30, None])
def test_sparse_matrices_with_indices_of_nothing_are_refused(kind: Any, place: int | None) -> None:
    matrix = kind(np.eye(4))
    if place is None:
        matrix.indptr[0] = 1
    else:
        matrix.indices[2] = place
    for use in (lambda: SharedDesign(matrix, 1), lambda: PerTaskDesign([matrix]), lambda: project_l1inf_ball(matrix, 1.0)):
        with pytest.raises(InputError, match="has indices of rows or columns that are not there"):
            use()


def test_compensated_products_keep_what_cancels() -> None:
    e = 2.0**-52
    X, y = np.array([[4.0, 4.0], [1.0, 1.0 + e], [5.0, 5.0]]), np.array([[1.0], [1.0], [-1.0]])
    for design in (SharedDesign(X, 1), design_of(Shards.held([(row[None], np.ones((1, 1))) for row in X]))):
        plain = design.enclose_adjoint(y)
        with compensated():
            close = design.enclose_adjoint(y)
        assert np.all(plain.lower <= 0.0)
        assert np.all(plain.upper >= [[0.0], [e]])
        assert close.upper[1] == pytest.approx(e, rel=1e-12)
        assert close.lower[1] == pytest.approx(e, rel=1e-12)
    assert compensated_product(sp.csr_array(X.T), y).ravel().tolist() == [0.0, e]


def test_overflow_says_nothing_and_raises_nothing() -> None:
    design = SharedDesign(np.array([[1e200, -1e200]]), 1)
    with np.errstate(all="ignore"):
        for context in (contextlib.nullcontext(), compensated()):
            with context:
                low, high = Interval.around(*design.forward_with_error(np.array([[1e200], [1e200]]))).sum().ends
                assert low == -np.inf
                assert high == np.inf


def test_the_callers_arrays_stay_writable_and_the_designs_do_not() -> None:
    for mine in (np.ones((3, 2)), sp.csr_array(np.eye(3))):
        held = SharedDesign(mine, 1).block(0)
        with pytest.raises(ValueError, match="read-only"):
            getattr(held, "data" if sp.issparse(mine) else "T")[0] = 5.0
        mine[0, 0] = 2.0


@pytest.mark.parametrize("scale", [1e-170, 1e-150, 1.0, 1e150, 1e200])
@of_any_kind
def test_norms_survive_far_units(make: Any, kind: Any, sizes: tuple[int, ...], scale: float) -> None:
    design, _ = make(kind, [scale * np.eye(n, D) for n in sizes])
    assert design.norm() == pytest.approx(scale * np.sqrt(3.0 if design.is_shared else 1.0), rel=1e-10)


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


def test_complex_numbers_are_refused_in_sparse_matrices_too() -> None:
    with pytest.raises(InputError, match="not complex ones"):
        TaskData.shared(sp.csr_array([[1 + 2j], [1]]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="must be an array of real numbers"):
        TaskData.shared([[10**400]], [1.0])


def test_the_norm_of_the_smallest_numbers_is_no_infinity() -> None:
    assert SharedDesign(sp.csr_array([[1e-310]]), 1).norms() == pytest.approx(1e-310)
