"""Several threads on one projection: the same to the last bit, whatever happens to one of them."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl.core import threads
from bench_mtl.core.errors import InputError
from bench_mtl.projections import l1inf_passes, norm_l1inf, project_l1inf_ball, prox_l1inf


@pytest.fixture(autouse=True)
def always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads on matrices of any size, on any machine."""
    monkeypatch.setattr(threads, "_WORTH_THREADS", 1)
    monkeypatch.setattr(threads, "_processors", lambda: 2)


def matrices() -> dict[str, object]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((700, 45))
    sparse = np.where(rng.random(A.shape) < 0.1, A, 0.0)
    return {
        "rows": A,
        "side by side": A[:, :7].copy(),
        "Fortran": np.asfortranarray(A),
        "float32": A.astype(np.float32),
        "CSR": sp.csr_array(sparse),
        "out of scale": 1e200 * A,
        "one row": A[:1],
    }


def kinds() -> list[object]:
    """Every kind of matrix, with and without signs; slow is what has kernels of its own to compile, where another kind stays for it."""
    slow = {("float32", False), ("float32", True), ("side by side", True), ("CSR", True)}
    pairs = [(kind, nonneg) for kind in matrices() for nonneg in (False, True)]
    return [pytest.param(*pair, marks=[pytest.mark.slow] if pair in slow else []) for pair in pairs]


def dense(B: object) -> np.ndarray:
    return B.toarray() if sp.issparse(B) else B  # type: ignore[attr-defined, return-value]


@pytest.mark.parametrize(("kind", "nonneg"), kinds())
def test_the_number_of_threads_changes_nothing(kind: str, nonneg: bool) -> None:
    A = matrices()[kind]
    norm = norm_l1inf(A)
    for ratio in (0.0, 1e-9, 0.01, 0.5, 0.99, 2.0):
        for theta0 in (None, 0.1, 1e3):
            alone = project_l1inf_ball(A, ratio * norm, nonneg=nonneg, theta0=theta0, threads=1)
            both = project_l1inf_ball(A, ratio * norm, nonneg=nonneg, theta0=theta0, threads=2)
            assert np.array_equal(dense(alone), dense(both))
    assert np.array_equal(dense(prox_l1inf(A, 0.1, nonneg=nonneg, threads=1)), dense(prox_l1inf(A, 0.1, nonneg=nonneg, threads=2)))


@pytest.mark.parametrize("columns", [7, 45])
def test_a_bad_number_is_found_by_whoever_meets_it(columns: int) -> None:
    A = np.random.default_rng(0).standard_normal((700, columns))
    A[699, 3] = np.nan
    with pytest.raises(InputError, match=r"NaN at index \(699, 3\)"):
        project_l1inf_ball(A, 1.0, threads=2)
    A[699, 3] = -np.inf
    with pytest.raises(InputError, match=r"inf at index \(699, 3\)"):
        project_l1inf_ball(A, 1.0, nonneg=True, threads=2)


def test_callers_in_several_threads_do_not_meet() -> None:
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((400, m)) for m in (5, 40, 5, 40, 5, 40)]
    alone = [project_l1inf_ball(A, 20.0, threads=1) for A in inputs]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(20):
            for one, other in zip(alone, pool.map(lambda A: project_l1inf_ball(A, 20.0, threads=2), inputs), strict=True):
                assert np.array_equal(one, other)


def test_no_thread_to_be_had_is_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted:
        def submit(self, work: object) -> None:
            raise RuntimeError("can't start new thread")

    A = np.random.default_rng(0).standard_normal((700, 45))
    monkeypatch.setattr(threads, "_pool", Exhausted())
    assert np.array_equal(project_l1inf_ball(A, 20.0, threads=2), project_l1inf_ball(A, 20.0, threads=1))


def test_helpers_go_home_when_the_caller_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.random.default_rng(0).standard_normal((700, 45))
    teams = []

    class Watched(l1inf_passes.SharedPasses):
        def following(self, old: float, theta: float) -> int:
            teams.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(l1inf_passes, "SharedPasses", Watched)
    with pytest.raises(KeyboardInterrupt):
        project_l1inf_ball(A, 20.0, threads=2)
    assert teams[0].control[l1inf_passes.kernels().STOP] == 1
    monkeypatch.undo()
    assert np.array_equal(project_l1inf_ball(A, 20.0, threads=1), project_l1inf_ball(A, 20.0, threads=None))


def test_a_helper_that_fails_is_an_error_not_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l1inf_passes.SharedPasses, "_take_part", lambda self: None)  # so nobody finishes
    monkeypatch.setattr(l1inf_passes, "_TURNS", 10)
    A = np.random.default_rng(0).standard_normal((700, 45))
    monkeypatch.setattr(l1inf_passes.SharedPasses, "help", lambda self: self.control.__setitem__(l1inf_passes.kernels().FAILED, 1))
    with pytest.raises(MemoryError):
        project_l1inf_ball(A, 20.0, threads=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_its_own_threads() -> None:
    A = np.random.default_rng(0).standard_normal((700, 45))
    expected = project_l1inf_ball(A, 20.0, threads=2)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert np.array_equal(pool.apply_async(project_l1inf_ball, (A, 20.0), {"threads": 2}).get(timeout=60), expected)


def test_the_environment_limits_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (("1", 1), ("4,2", 2), ("", 2), ("two", 2), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads.useful_threads(None, 10**6) == expected
    assert threads.useful_threads(1000, 10**6) == 2
