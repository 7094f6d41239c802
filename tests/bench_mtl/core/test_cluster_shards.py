"""Shards that Dask workers compute with: the bits of one process, however they are divided and whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from deeds_of_workers import PartNumbers, process_of, sum_alone, sum_slowly
from shared_cluster import SharedCluster, pids_of

from bench_mtl.core import worker_pool
from bench_mtl.core.cluster_shards import ClusterShards
from bench_mtl.core.dask_cluster import ClusterLostError
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.types import Limits
from bench_mtl.core.worker_pool import Place, WorkerPool
from bench_mtl.data import TaskData
from bench_mtl.data.readers import read_shards, write_shards
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_glm import L1InfGLM

pytest.importorskip("distributed", reason="Dask is not installed")

D, M, SHARDS = 12, 2, 7


def written(folder: Path, is_sparse: bool) -> Path:
    """Write labelled examples in shards of different sizes."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((D, M)) * (rng.random((D, 1)) < 0.5)

    def parts() -> Iterator[tuple[Any, Any]]:
        for k in range(SHARDS):
            X = rng.standard_normal((150 + 40 * k, D)) * (rng.random((150 + 40 * k, D)) < 0.7)
            Y = np.where(X @ W + 0.3 * rng.standard_normal((len(X), M)) > 0.0, 1.0, -1.0)
            yield (sp.csr_array(X) if is_sparse else X), Y

    return write_shards(folder / "set", parts(), name="sparse" if is_sparse else "dense")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("dense"), False)


@pytest.fixture
def pool(cluster: SharedCluster) -> Iterator[WorkerPool]:
    """The two workers of the cluster that tests share."""
    pool = cluster.pool()
    yield pool
    pool.close()


def on(pool: WorkerPool, data: TaskData) -> TaskData:
    """Return the same data, computed with by workers."""
    return TaskData(ShardedDesign(shards_on(pool, data)), data.targets, data.name)


def shards_on(pool: WorkerPool, data: TaskData) -> ClusterShards:
    assert isinstance(data.design, ShardedDesign)
    shards: Any = data.design.shards
    return ClusterShards(shards.shards, shards.sizes, pool)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_bits_do_not_depend_on_who_computes(is_sparse: bool, tmp_path: Path, pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs themselves: `tests/conformance/test_who_computes.py`."""
    data = read_shards(written(tmp_path, is_sparse))
    rng = np.random.default_rng(1)
    W, R = rng.standard_normal((D, M)), rng.standard_normal(data.targets.shape)
    features = np.array([3, 1])
    working = worker_pool._Round._working
    for count in (1, 2, 3):  # all that shows of a number of workers is into how many parts the shards are divided
        monkeypatch.setattr(worker_pool._Round, "_working", lambda self, count=count: (2 * working(self))[:count])
        before = pool.traffic.messages
        design, other = data.design, on(pool, data).design
        np.testing.assert_array_equal(design.forward(W), other.forward(W))
        assert pool.traffic.messages - before == 2 * count
        np.testing.assert_array_equal(design.adjoint(R), other.adjoint(R))
        np.testing.assert_array_equal(design.gram(0), other.gram(0))
        np.testing.assert_array_equal(design.norms(), other.norms())
        np.testing.assert_array_equal(design.restricted(features).forward(W[:2]), other.restricted(features).forward(W[:2]))
        with compensated():
            np.testing.assert_array_equal(design.adjoint_with_error(R), other.adjoint_with_error(R))


def test_what_goes_to_and_fro_is_counted(manifest: Path, pool: WorkerPool) -> None:
    data = read_shards(manifest)
    problem = L1InfGLM(on(pool, data), loss="logistic", penalty=0.01)
    problem.value_and_gradient(problem.zero())
    before = pool.traffic.rounds, pool.traffic.messages, pool.traffic.sent, pool.traffic.received
    problem.value_and_gradient(problem.zero())
    after = pool.traffic.rounds, pool.traffic.messages, pool.traffic.sent, pool.traffic.received
    rounds, messages, sent, received = (b - a for a, b in zip(before, after, strict=True))
    assert rounds == 1
    assert messages == 4  # to each worker and back
    point = 8 * D * M
    assert sent >= 2 * point  # W to both
    # Of a run of shards the tree has at most two nodes a level.
    assert 2 * point <= received <= 2 * (2 * 3 * point + 4096)
    assert received < 8 * data.targets.size  # nothing as long as the examples


def test_a_run_says_what_went_to_and_fro(manifest: Path, pool: WorkerPool) -> None:
    data = read_shards(manifest)
    limits = Limits(seconds=600.0, iterations=5)
    there, here = (
        dict(run(L1InfGLM(each, loss="logistic", penalty="0.1 max"), "accelerated_gradient", limits=limits).info)
        for each in (on(pool, data), data)
    )
    assert there["rounds"] >= 5
    assert there["shards"] == SHARDS
    assert "rounds" not in here


def test_workers_are_of_the_process_that_asks(pool: WorkerPool) -> None:
    """A copy has no connection; it makes one of its own when it is used."""
    pool.compute(pickle.dumps(PartNumbers()), lambda parts: pickle.dumps(None), [1])
    again = pickle.loads(pickle.dumps(pool))
    assert again.place == pool.place
    assert again._client is None


def kill_one(pids: list[int], seed: int, stop: threading.Event) -> None:
    """Kill one of the workers at a random moment, unless told to stop before."""
    rng = random.Random(seed)
    if not stop.wait(rng.uniform(0.0, 2.0)):
        os.kill(rng.choice(pids), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("seed", range(23))
def test_a_worker_killed_at_any_moment_costs_its_shards_and_no_bit(seed: int, is_sparse: bool, tmp_path: Path) -> None:
    """At a moment that is the same each time: `test_a_worker_that_dies_costs_no_bit` of `test_dask_shards.py`."""
    data = read_shards(written(tmp_path, is_sparse))
    options: dict[str, Any] = {"loss": "logistic", "penalty": 0.02}
    limits = Limits(seconds=600.0, iterations=60)
    plain = run(L1InfGLM(data, **options), "accelerated_gradient", limits=limits)
    pool, stop = WorkerPool(Place(workers=2)), threading.Event()
    shards = shards_on(pool, data)
    pids = sorted(set(shards.map(process_of)))
    killer = threading.Thread(target=kill_one, args=(pids, seed, stop))
    try:
        killer.start()
        record = run(L1InfGLM(on(pool, data), **options), "accelerated_gradient", limits=limits)
        killer.join()  # it may come after the run: then it hits what follows
        total = shards.total(sum_slowly, 0.05)
    finally:
        stop.set()
        killer.join()
        pool.close()
    assert len(pids) == 2
    assert record.status == plain.status
    np.testing.assert_array_equal(record.solution, plain.solution)
    assert record.best == plain.best
    assert total == pytest.approx(data.targets.sum())


def test_a_worker_that_hangs_is_helped_out(
    manifest: Path, cluster: SharedCluster, pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "_STUCK_SECONDS", 0.3)
    monkeypatch.setattr(worker_pool, "_LOOK_SECONDS", 0.1)
    data = read_shards(manifest)
    shards = shards_on(pool, data)
    assert set(shards.map(process_of)) == set(cluster.pids)
    stuck = psutil.Process(cluster.pids[0])
    stuck.suspend()
    try:
        assert shards.total(sum_slowly, 0.01) == pytest.approx(data.targets.sum())
        assert pool.traffic.again >= 1
    finally:
        stuck.resume()
    assert set(pids_of(cluster.client)) == set(cluster.pids)  # it answers again


def test_a_shard_that_is_too_large_for_a_worker_ends_the_run_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Gram matrix of 8000 features would take 488 MiB."""
    monkeypatch.setattr(worker_pool, "_MOST_SHORTAGES", 1)
    X = sp.csr_array((np.ones(8000), (np.arange(8000) % 40, np.arange(8000))), shape=(40, 8000))
    path = write_shards(tmp_path / "wide", [(X[:20], np.ones((20, 1))), (X[20:], np.ones((20, 1)))])
    data = read_shards(path, workers=1, memory_gib=0.4)
    try:
        with pytest.raises(MemoryError, match="not enough memory for a shard"):
            data.design.gram(0)
        np.testing.assert_array_equal(data.design.adjoint(np.ones((40, 1))), np.ones((8000, 1)))  # the worker goes on
    finally:
        data.design.shards.pool.close()  # type: ignore[attr-defined]


def test_workers_that_are_short_of_memory_are_asked_for_less(manifest: Path, pool: WorkerPool, tmp_path: Path) -> None:
    """Both at once: no shard is too large alone."""
    data = read_shards(manifest)
    assert shards_on(pool, data).total(sum_alone, str(tmp_path)) == pytest.approx(data.targets.sum())


def test_what_a_function_raises_reaches_the_caller(tmp_path: Path, pool: WorkerPool) -> None:
    manifest = written(tmp_path, False)
    data = read_shards(manifest)
    (manifest.parent / "00003.targets.npy").unlink()
    with pytest.raises(InputError, match=r"00003\.targets\.npy is missing: all who compute"):
        shards_on(pool, data).total(sum_slowly, 0.0)


SCHEDULER = """
import time, distributed
cluster = distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None)
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


def test_a_lost_scheduler_has_a_name(manifest: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            data = read_shards(manifest, cluster=process.stdout.readline().strip())
            ones = np.ones(data.targets.shape)
            np.testing.assert_array_equal(data.design.adjoint(ones), read_shards(manifest).design.adjoint(ones))
            threading.Timer(0.2, process.kill).start()
            with pytest.raises(ClusterLostError):
                go_on(data.design, ones)
        finally:
            process.kill()


def go_on(design: Any, R: Any) -> None:
    """Ask for products for ever."""
    while True:
        design.adjoint(R)


def test_bad_places_are_refused(manifest: Path) -> None:
    for options, words in (
        ({"cluster": "nowhere"}, "cluster must be local or the address"),
        ({"cluster": "tcp://host:1", "workers": 2}, "workers and memory_gib are those of a new cluster"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"memory_gib": 2.0}, "workers and memory_gib are those of a new cluster"),
        ({"workers": 1, "memory_gib": 0.2}, "memory_gib must be finite and at least 0.3, not 0.2"),
    ):
        with pytest.raises(InputError, match=words):
            read_shards(manifest, **options)  # type: ignore[arg-type]
