"""The trace-ball projection and its proximal operator : details, methods, certificates, starts and scales."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_limits

from bench_mtl.core.errors import InputError
from bench_mtl.projections import spectra
from bench_mtl.projections.trace_ball import (
    METHODS,
    norm_trace,
    project_trace_ball,
    prox_trace,
    trace_ball_projection,
    trace_proximal_point,
)
from bench_mtl.validation import slow_projections as slow

pytestmark = pytest.mark.numerics


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def apart(A: np.ndarray, B: np.ndarray | float) -> float:
    """The largest difference; NaN, which no bound admits, where there is one."""
    assert np.shape(B) in ((), A.shape)
    return float(np.abs(A - B).max(initial=0.0))


def orthonormal(rng: np.random.Generator, d: int, n: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, n)))[0]


def with_values(values: np.ndarray, d: int, m: int, seed: int = 0) -> np.ndarray:
    """A random d x m matrix with the given singular values."""
    rng = np.random.default_rng(seed)
    n = len(values)
    return (orthonormal(rng, d, n) * values) @ orthonormal(rng, m, n).T


def low_rank(d: int, m: int, rank: int = 4, noise: float = 0.01) -> np.ndarray:
    rng = np.random.default_rng(d + m)
    return rng.standard_normal((d, rank)) @ rng.standard_normal((rank, m)) + noise * rng.standard_normal((d, m))


MATRICES = {
    "row": np.random.default_rng(2).standard_normal((1, 9)),
    "tall": np.random.default_rng(3).standard_normal((90, 50)),
    "wide": np.random.default_rng(4).standard_normal((50, 90)),
    "low rank and noise": low_rank(80, 60),
    "rank three": low_rank(40, 45, rank=3, noise=0.0),
    "ties": with_values(np.repeat([5.0, 2.0, 0.5], 14), 60, 42),
    "decay": with_values(np.logspace(0, -12, 40), 70, 40),
}


@pytest.mark.parametrize("name", MATRICES)
def test_details_belong_to_the_answer(name: str) -> None:
    A = MATRICES[name]
    for method in METHODS:
        found = trace_ball_projection(A, 0.4 * norm_trace(A), method=method)
        count = len(found.singular_values)
        values = np.linalg.svd(found.matrix, compute_uv=False)
        assert apart(found.singular_values, values[:count]) <= 1e-12 * values[0]
        assert np.all(found.singular_values > 0)
        assert np.all(np.diff(found.singular_values) <= 0)
        assert apart(values[count:], 0.0) <= 1e-12 * values[0]
        assert found.subspace.shape == (min(A.shape), count)
        assert apart(found.subspace.T @ found.subspace, np.eye(count)) <= 1e-12
        side = found.matrix if A.shape[0] >= A.shape[1] else found.matrix.T
        assert np.linalg.norm(side @ found.subspace, axis=0) == pytest.approx(found.singular_values, rel=1e-10, abs=1e-12 * values[0])


def test_the_method_used_is_named_and_falls_back_where_it_must() -> None:
    gauss, low = np.random.default_rng(0).standard_normal((300, 280)), low_rank(300, 280)
    cases = [
        (low, 0.5, "svd", "svd"),
        (low, 0.5, "gram", "gram"),
        (low, 0.5, "partial", "partial"),
        (low, 0.5, "auto", "partial"),
        (low.T, 0.5, "auto", "partial"),
        (gauss, 0.5, "auto", "gram"),
        (gauss, 0.5, "partial", "gram"),  # too many values are kept
        (np.eye(300), 0.5, "partial", "gram"),  # a Krylov space sees one of equal values: not certified
        (low, 1 - 1e-6, "gram", "svd"),  # theta is lost in the rounding of squares
        (low, 1 - 1e-6, "auto", "svd"),
    ]
    for A, ratio, asked, used in cases:
        assert trace_ball_projection(A, ratio * norm_trace(A), method=asked).method == used, (A.shape, ratio, asked)
    assert trace_ball_projection(low, 1e9).method == "bound"
    inside = trace_ball_projection(low, norm_trace(low) * 1.001)
    assert inside.method == "gram"
    assert inside.theta == 0.0
    assert np.array_equal(inside.matrix, low)


def test_the_gram_matrix_is_left_alone_where_squares_cost_digits() -> None:
    """Half of the values at 1, half a little above theta: the worst case, 3e-13 off at theta = 0.002 if it were not refused."""
    for theta, used in ((0.002, "svd"), (0.009, "svd"), (0.011, "gram")):
        values = np.r_[np.ones(150), np.full(150, 1.05 * theta)]
        U, V = (orthonormal(np.random.default_rng(seed), d, 300) for seed, d in ((0, 400), (1, 300)))
        found = trace_proximal_point((U * values) @ V.T, theta, method="gram")
        assert found.method == used
        assert np.linalg.norm(found.matrix - (U * (values - theta)) @ V.T, 2) <= 1e-13


def test_the_certificates_reject_a_withheld_vector() -> None:
    values = np.r_[10.0, 9.0, 8.0, np.full(37, 0.01)]
    A = with_values(values, 60, 40)
    V = np.linalg.svd(A)[2].T
    total = float((values**2).sum())
    assert spectra.rest_bound(values[3:4], total - float((values[:4] ** 2).sum()), total) <= 1.0
    assert spectra.nothing_larger_is_left(A, V[:, :3], 1.0)
    for withheld in range(3):
        seen = np.delete(np.arange(4), withheld)
        assert spectra.rest_bound(values[3:4], total - float((values[seen] ** 2).sum()), total) > 7.0**2
        kept = np.delete(np.arange(3), withheld)
        assert not spectra.nothing_larger_is_left(A, V[:, kept], 1.0)
        assert not spectra.nothing_larger_is_left(A, V[:, kept], values[withheld] * (1 - 1e-10))
        assert spectra.nothing_larger_is_left(A, V[:, kept], values[withheld] * (1 + 1e-10))
        assert not spectra.nothing_larger_is_left(np.diag(values), np.eye(40)[:, kept], values[withheld]), "no room for rounding"
    assert spectra.rest_bound(values[:0], 0.0, total) > 1e-14 * total, "no room for rounding"


LEADING = np.linalg.svd(low_rank(300, 280))[2].T
STARTS = {
    "the answer": LEADING[:, :4],
    "one too few": LEADING[:, :3],
    "rotated and not normed": LEADING[:, :4] @ np.random.default_rng(1).standard_normal((4, 4)) * 1e6,
    "random": np.random.default_rng(2).standard_normal((280, 5)),
    "wrong": LEADING[:, 100:106],
    "leading ones left out": np.hstack([LEADING[:, 1:4], LEADING[:, 50:52]]),
    "without rank": np.ones((280, 5)),
    "zero": np.zeros((280, 5)),
    "tiny": 1e-300 * LEADING[:, :4],
    "empty": np.zeros((280, 0)),
    "many": np.random.default_rng(3).standard_normal((280, 200)),
    "all": LEADING,
}


@pytest.fixture(scope="module")
def projected() -> list[tuple[np.ndarray, float, np.ndarray, float]]:
    """Matrices, radii, their projections by the slow twin, and by how much others may be off."""
    A = low_rank(300, 280)
    pairs = [(side, ratio * norm_trace(A)) for side, ratio in ((A, 0.01), (A, 0.8), (A.T, 0.8))]
    return [(side, radius, slow.trace_ball(side, radius), 1e-12 * float(np.linalg.norm(A, 2))) for side, radius in pairs]


@pytest.mark.parametrize("method", ["partial", "auto"])
@pytest.mark.parametrize("name", STARTS)
def test_no_start_changes_the_answer(name: str, method: str, projected: list[tuple[np.ndarray, float, np.ndarray, float]]) -> None:
    for side, radius, expected, room in projected:
        found = trace_ball_projection(side, radius, method=method, start=STARTS[name])
        assert apart(found.matrix, expected) <= room
        if method == "partial" and name in ("one too few", "leading ones left out"):
            assert found.method == "partial", "one more column finds what the start lacks"


def test_a_good_start_saves_the_search() -> None:
    """One block of products is enough from an earlier answer; the same room from nothing is not."""
    A = low_rank(300, 280)
    radius = 0.5 * norm_trace(A)
    answer = trace_ball_projection(A, radius)
    count = answer.subspace.shape[1]

    def rule(values: np.ndarray) -> tuple[float, int]:
        return answer.theta, int(np.count_nonzero(values > answer.theta))

    assert spectra.by_partial(A, rule, None, count + 1) is None
    found = spectra.by_partial(A, rule, answer.subspace, count + 1)
    assert found.vectors.shape == (280, count)


def test_answers_repeat_and_leave_global_randomness_alone() -> None:
    A = low_rank(300, 280)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (trace_ball_projection(A, 20.0) for _ in range(2))
    assert first.method == "partial"
    assert np.array_equal(first.matrix, second.matrix)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_lapack_that_fails_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.random.default_rng(0).standard_normal((50, 40))
    svd, used = scipy.linalg.svd, []

    def stubborn(*given, lapack_driver="gesdd", **named):  # type: ignore[no-untyped-def]
        used.append(lapack_driver)
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return svd(*given, lapack_driver=lapack_driver, **named)

    monkeypatch.setattr(scipy.linalg, "svd", stubborn)
    dsterf = spectra.lapack.dsterf
    monkeypatch.setattr(spectra.lapack, "dsterf", lambda *given: (dsterf(*given)[0], 1))
    found = trace_ball_projection(A, 100.0)
    assert found.method == "svd"
    assert apart(found.matrix, slow.trace_ball(A, 100.0)) <= 1e-12
    assert used == ["gesdd", "gesvd"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exponent", [-1060, -1030, -500, -300, 300, 500, 1010])
def test_scales_far_from_one(exponent: int, method: str) -> None:
    """Scaling by a power of two scales the answer, to rounding; of a subnormal matrix to its last place."""
    base = np.ldexp(np.round(np.ldexp(low_rank(45, 40), 10)), -10)  # few enough digits for subnormal numbers
    A = np.ldexp(base, exponent)
    assert np.array_equal(np.ldexp(A, -exponent), base) or exponent == -1060
    size = float(np.linalg.norm(base, 2))
    room = 1e-12 * size + np.ldexp(1.0, -1073 - exponent) * (30 if exponent < -1000 else 0)
    for ratio in (1e-3, 0.3, 0.9):
        radius = float(np.ldexp(ratio * norm_trace(base), exponent))
        expected = slow.trace_ball(np.ldexp(A, -exponent), math.ldexp(radius, -exponent))
        found = trace_ball_projection(A, radius, method=method)
        assert apart(np.ldexp(found.matrix, -exponent), expected) <= room
        near = prox_trace(A, found.theta, method=method)
        assert apart(np.ldexp(near, -exponent), expected) <= room


@pytest.mark.parametrize("method", METHODS)
def test_neither_a_vast_matrix_nor_a_radius_out_of_its_reach_is_lost(method: str) -> None:
    base = low_rank(45, 40)
    assert norm_trace(project_trace_ball(1e200 * base, 1e-200, method=method)) == pytest.approx(1e-200, rel=1e-12, abs=0.0)
    found = trace_ball_projection(np.ldexp(base, 1019), math.ldexp(0.5, 1019), method=method)  # its singular values overflow
    assert apart(np.ldexp(found.matrix, -1019), slow.trace_ball(base, 0.5)) <= 1e-12
    assert found.theta == math.inf
    assert found.singular_values.sum() == pytest.approx(math.ldexp(0.5, 1019), rel=1e-12)


def test_a_start_that_cannot_be_one_is_refused() -> None:
    for start, words in ((np.ones((3, 1)), "start must have 2 rows, the shorter side"), (np.ones(2), "start must have 2 dimension")):
        with pytest.raises(InputError, match=words):
            trace_ball_projection(np.ones((3, 2)), 1.0, start=start)
    with pytest.raises(InputError, match="start has NaN"):
        trace_proximal_point(np.ones((3, 2)), 1.0, start=np.full((2, 1), np.nan))


def test_where_nothing_is_left_lapack_is_not_asked_for_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    found = prox_trace(np.eye(40), 2.0)
    assert not np.any(found)
    assert capfd.readouterr() == ("", "")


def test_a_start_of_any_size_costs_time_alone() -> None:
    A = np.random.default_rng(0).standard_normal((300, 280))
    start = np.full((280, 4), 1e308)
    assert np.allclose(project_trace_ball(A, 50.0, start=start), project_trace_ball(A, 50.0))
