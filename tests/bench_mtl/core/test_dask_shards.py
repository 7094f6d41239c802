"""Blocks of Dask as shards: the bits of memory, whoever computes them, and named errors for all that they may turn out to be."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from deeds_of_workers import moments, moments_unless_killed, rows_and, targets_of
from shared_cluster import SharedCluster, inside

from bench_mtl.core.cluster_shards import ClusterShards
from bench_mtl.core.dask_blocks import DaskBlocks, _with_sums, active_client, is_dask
from bench_mtl.core.dask_cluster import ClusterLostError, client_of, close_local, local_cluster
from bench_mtl.core.dask_shards import DaskRows, values_of
from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import LocalShards
from bench_mtl.core.tree_sums import TreeSum, plus
from bench_mtl.core.worker_pool import Place, WorkerPool

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask has no arrays")
dd = pytest.importorskip("dask.dataframe", reason="Dask has no frames")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

N, D, M = 53, 5, 2
COUNTS = (20, 1, 20, 12)

rng = np.random.default_rng(0)
A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
Y = rng.standard_normal((N, M))
FRAME = pd.DataFrame(A, columns=list("abcde"))


def csr(block: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix(block)


def parts(X: Any, counts: tuple[int, ...]) -> list[tuple[Any, np.ndarray]]:
    ends = np.cumsum([0, *counts]).tolist()
    return [(X[start:end], Y[start:end]) for start, end in itertools.pairwise(ends)]


#: The same numbers in every way that Dask has of holding them.
COLLECTIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: da.from_array(A, chunks=(COUNTS, D)),
    "array in columns": lambda: da.from_array(A, chunks=(COUNTS, 2)),
    "array in the order of Fortran": lambda: da.from_array(A, chunks=(COUNTS, D)).map_blocks(np.asfortranarray),
    "sparse array": lambda: da.from_array(A, chunks=(COUNTS, D)).map_blocks(csr),
    "array of unknown lengths": lambda: da.concatenate(
        [da.from_delayed(dask.delayed(X), (np.nan, D), float) for X, _ in parts(A, COUNTS)], allow_unknown_chunksizes=True
    ),
    "frame": lambda: dd.concat([dd.from_pandas(FRAME.iloc[X.index], npartitions=1) for X, _ in parts(FRAME, COUNTS)]),
    "frame with empty partitions": lambda: dd.from_delayed([dask.delayed(X) for X, _ in parts(FRAME, (20, 1, 0, 20, 12, 0))]),
    "array of a frame": lambda: dd.from_delayed([dask.delayed(X) for X, _ in parts(FRAME, COUNTS)]).to_dask_array(),
}


def products(shards: Any) -> list[np.ndarray]:
    """Return what a fit asks of examples."""
    design = ShardedDesign(shards)
    W = np.random.default_rng(1).standard_normal((D, M))
    with compensated():
        exact = design.enclose_adjoint(Y)
    found = [design.forward(W), design.adjoint(Y), design.norms(), design.gram(0), exact.lower, exact.upper]
    return [*found, np.concatenate(list(shards.map(targets_of))), np.array(list(shards.map(rows_and, each=[10, 20, 30, 40])))]


#: Of every kind those of a graph or those that workers hold; the others are slow.
PLACES = [
    pytest.param(kind, is_held, id=f"{kind}, {'held' if is_held else 'computed'}", marks=[] if number % 2 == is_held else pytest.mark.slow)
    for number, kind in enumerate(COLLECTIONS)
    for is_held in (False, True)
]


@pytest.mark.parametrize(("kind", "is_held"), PLACES)
def test_blocks_have_the_bits_of_shards_in_memory_whoever_computes_them(kind: str, is_held: bool, cluster: SharedCluster) -> None:
    X = COLLECTIONS[kind]()
    expected = products(LocalShards.held(parts(csr(A) if kind == "sparse array" else A, COUNTS)))
    rows = DaskRows.of(X)
    assert rows.shape == (N, D)
    assert rows.shards(Y).sizes.counts == COUNTS
    for value, wanted in zip(products(rows.shards(Y)), expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
    with cluster.client.as_current():
        assert active_client() is cluster.client
        for value, wanted in zip(products(DaskRows.of(X.persist() if is_held else X).shards(Y)), expected, strict=True):
            np.testing.assert_array_equal(value, wanted)
    assert active_client() is None


def test_they_are_the_design_in_memory() -> None:
    design = ShardedDesign(DaskRows.of(COLLECTIONS["array"]()).shards(Y))
    W = np.random.default_rng(1).standard_normal((D, M))
    np.testing.assert_allclose(design.forward(W), SharedDesign(A, M).forward(W), rtol=1e-13, atol=1e-13)


def test_values_are_those_that_dask_computes(cluster: SharedCluster) -> None:
    X, frame = da.from_array(A, chunks=(10, 2)), dd.from_pandas(FRAME, npartitions=3)
    texts = dd.from_pandas(pd.DataFrame({"t": np.where(A[:, 0] > 0.0, "plus", "minus")}), npartitions=2)
    collections = [
        X, X + 1, X[:, 0], X[X[:, 0] > 0.0], X[::2], da.vstack([X, X]), (X - X.mean(axis=0)) / X.std(axis=0),
        frame, frame["a"], frame[["a", "c"]] * 2, frame[frame.a > 0.0], frame[frame.a > 0.0]["b"], frame["a"] > 0.0, texts["t"],
        frame.repartition(npartitions=5), frame[frame.a > 0.0].to_dask_array(),
    ]  # fmt: skip
    for number, collection in enumerate(collections):
        np.testing.assert_array_equal(values_of("y", collection), np.asarray(collection.compute(scheduler="sync")), str(number))
    with cluster.client.as_current():
        for held in (frame.persist()[frame.a > 0.0], frame.persist()["a"], X.persist() * 2, X.persist().rechunk((50, -1))):
            np.testing.assert_array_equal(values_of("y", held), np.asarray(held.compute()))


@pytest.mark.parametrize("count", range(1, 12))
def test_sums_of_tasks_have_the_bits_of_the_tree(count: int) -> None:
    values = (10.0 ** np.random.default_rng(count).uniform(-8.0, 8.0, count)).tolist()
    tree = TreeSum(count, plus)
    for k, value in enumerate(values):
        tree.put(value, k)
    leaves: list[Any] = [("leaf", k) for k in range(count)]
    graph: dict[Any, Any] = {leaf: (pickle.dumps, value) for leaf, value in zip(leaves, values, strict=True)}
    root = _with_sums(graph, leaves, pickle.dumps(plus))
    assert pickle.loads(dask.get(graph, root)) == tree.total()


def block(value: Any, columns: int = D) -> Any:
    return da.from_delayed(dask.delayed(np.full)((4, columns), value), (4, columns), float)


def with_one(value: float) -> Any:
    bad = A.copy()
    bad[22, 3] = value
    return da.from_array(bad, chunks=(COUNTS, 2))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: with_one(np.nan), r"block 2 of X has NaN at index \(1, 3\): only finite numbers"),
    "inf": (lambda: with_one(np.inf), r"block 2 of X has inf at index \(1, 3\)"),
    "missing": (
        lambda: dd.from_pandas(FRAME.astype("Float64").shift(1), npartitions=1),
        r"block 0 of X has NaN at index \(0, 0\)",
    ),
    "text": (lambda: dd.from_pandas(FRAME.assign(e="word"), npartitions=1), "block 0 of X must be an array of real numbers"),
    "complex": (lambda: da.from_array(A * 1j, chunks=(20, D)), "block 0 of X must be an array of real numbers, not complex"),
    "vector": (lambda: da.from_array(A[:, 0], chunks=20), "X must have 2 dimensions, but has 1"),
    "cube": (lambda: da.from_array(A[:, :, None], chunks=20), "X must have 2 dimensions, but has 3"),
    "delayed": (lambda: dask.delayed(A), "X must be an array or a frame of Dask, not Delayed"),
    "no rows": (lambda: dd.from_pandas(FRAME, npartitions=2).query("a > 9"), "X is empty"),
    "no columns": (lambda: da.from_array(A[:, :0], chunks=(20, 0)), "X has no features"),
    "both kinds": (lambda: da.concatenate([block(1.0), block(1.0).map_blocks(csr)]), "dense and sparse blocks, such as"),
    "widths": (
        lambda: da.concatenate([block(1.0), da.from_delayed(dask.delayed(np.full)((4, 3), 1.0), (4, D), float)]),
        "block 1 of X has 3 columns, but block 0 has 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_used_is_named(kind: str) -> None:
    make, words = REFUSED[kind]
    with pytest.raises(InputError, match=words):
        DaskRows.of(make())


def test_workers_name_it_too(cluster: SharedCluster) -> None:
    with cluster.client.as_current(), pytest.raises(InputError, match=r"block 2 of X has NaN at index \(1, 3\)"):
        DaskRows.of(with_one(np.nan))


def test_what_another_client_holds_is_refused(cluster: SharedCluster) -> None:
    with cluster.client.as_current():
        held = COLLECTIONS["array"]().persist()
    with pytest.raises(InputError, match="held by the workers of a Dask client that is not active here"):
        DaskRows.of(held)


def test_numbers_that_change_are_found() -> None:
    def drawn() -> np.ndarray:
        return np.random.default_rng().standard_normal((4, D))

    steady = da.from_array(A[:20], chunks=(20, D))
    shards = DaskRows.of(da.concatenate([steady, da.from_delayed(dask.delayed(drawn, pure=False)(), (4, D), float)])).shards(Y[:24])
    with pytest.raises(InputError, match="X has other numbers each time that it is computed, first in its rows from 20 on"):
        shards.require_unchanged()
    DaskRows.of(steady).shards(Y[:20]).require_unchanged()


def test_large_coefficients_are_sent_without_a_warning(cluster: SharedCluster) -> None:
    with cluster.client.as_current(), dask.config.set({"distributed.admin.large-graph-warning-threshold": 1}), warnings.catch_warnings():
        warnings.simplefilter("error")
        DaskRows.of(COLLECTIONS["array"]())


def dying(number: int, deaths: int, notes: Path) -> np.ndarray:
    """Return a block, once the worker that made it has been killed so many times."""
    died = notes / f"{number}"
    count = len(died.read_text()) if died.exists() else 0
    if count < deaths:
        died.write_text("x" * (count + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return np.random.default_rng(number).standard_normal((6, D))


def mortal(deaths: int, notes: Path) -> Any:
    made = dask.delayed(partial(dying, notes=notes), pure=False)
    return da.concatenate([da.from_delayed(made(number, deaths if number == 1 else 0), (6, D), float) for number in range(4)])


@pytest.mark.slow
def test_a_worker_that_dies_over_a_block_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    expected = DaskRows.of(mortal(0, tmp_path / "calm")).shards(Y[:24])
    cluster = local_cluster("test", 2, 3)
    client = client_of(cluster)
    try:
        with client.as_current():
            shards = DaskRows.of(mortal(1, tmp_path)).shards(Y[:24])
            assert (tmp_path / "1").read_text() == "x"  # it has died
            (tmp_path / "1").unlink()
            value = shards.total(moments)
            assert (tmp_path / "1").read_text() == "x"  # and again, with coefficients and targets that were on it
        np.testing.assert_array_equal(value, expected.total(moments))
    finally:
        client.close()
        close_local(cluster, 10.0)


def test_a_worker_that_dies_costs_no_bit() -> None:
    """Neither of shards that it computes with, nor of blocks and targets that it holds."""
    here, pool = LocalShards.held(parts(A, COUNTS)), WorkerPool(Place(workers=2))
    pool.connect()
    client = pool._client
    try:
        with client.as_current():
            X = COLLECTIONS["array"]().persist()
            blocks = DaskRows.of(X).shards(Y)
            holder = min(itertools.chain(*client.who_has(X).values()))
        victim = client.run(os.getpid)[holder]
        shards = ClusterShards(here.shards, here.sizes, pool)
        np.testing.assert_array_equal(shards.total(moments_unless_killed, victim), here.total(moments))
        assert not psutil.pid_exists(victim)
        np.testing.assert_array_equal(blocks.total(moments), here.total(moments))
    finally:
        pool.close()


@pytest.mark.slow
def test_workers_that_keep_dying_are_lost(tmp_path: Path) -> None:
    cluster = local_cluster("test", 1, 1)
    client = client_of(cluster)
    try:
        with client.as_current(), pytest.raises(ClusterLostError, match="keep dying over the same block"):
            DaskRows.of(mortal(9, tmp_path))
    finally:
        client.close()
        close_local(cluster, 10.0)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (
            distributed.scheduler.KilledWorker("task", SimpleNamespace(address="tcp://host:1"), 1),
            "running",
            "keep dying over the same block: .*task",
        ),
        (distributed.CancelledError("task"), "running", "has dropped what it was to compute: task"),
        (OSError("Timed out"), "closed", r"does not answer \(Timed out\)"),
    ],
    ids=["killed", "cancelled", "closed"],
)
@pytest.mark.parametrize("is_late", [False, True], ids=["asked", "answering"])
def test_what_dask_raises_has_a_name(error: Exception, status: str, words: str, is_late: bool) -> None:
    class Client:
        """One whose cluster fails."""

        def __init__(self) -> None:
            self.status = status

        def get(self, graph: Any, keys: list[Any], sync: bool) -> list[Any]:
            if not is_late:
                raise error
            return [SimpleNamespace(status="error", result=self.result) for _ in keys]

        def result(self, timeout: float) -> None:
            raise error

    blocks = DaskBlocks(None, {}, ("a",), Client(), (None,))
    with pytest.raises(ClusterLostError, match=words):
        list(blocks.each(moments))


def test_clusters_that_end_are_lost() -> None:
    with inside() as (cluster, client), client.as_current():
        shards = DaskRows.of(COLLECTIONS["array"]()).shards(Y)
        cluster.close()
        with pytest.raises(ClusterLostError, match="Dask"):
            shards.total(moments)


def test_dask_is_known_without_being_imported() -> None:
    assert not is_dask(A)
    assert is_dask(COLLECTIONS["array"]())
    assert is_dask(COLLECTIONS["frame"]())
    code = """
import sys
import numpy as np
from bench_mtl.estimators import L1InfRegressor
X = np.random.default_rng(0).standard_normal((20, 3))
L1InfRegressor(radius=1.0).fit(X, X[:, :2]).predict(X)
assert not [name for name in sys.modules if name.split(".")[0] in ("dask", "distributed")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
