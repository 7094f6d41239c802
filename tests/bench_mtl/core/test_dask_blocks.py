"""Blocks of Dask workers and of Dask collections: the bits of one process, whoever computes and whoever dies, and errors with names."""

import itertools
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from deeds_of_workers import moments, moments_unless_killed, rows_and, sum_at_the_second_try, targets_of
from shared_cluster import SharedCluster, inside

from bench_mtl.core import dask_blocks
from bench_mtl.core.blocks import TreeSum, leaves, plus
from bench_mtl.core.dask_blocks import OnDask, Place, Workers, _runs
from bench_mtl.core.dask_cluster import ClusterLostError
from bench_mtl.core.dask_rows import active_client, is_dask, shards_of, values_of
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import compensated
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.types import Limits
from bench_mtl.data import TaskData
from bench_mtl.data.readers import read_shards, write_shards
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_glm import L1InfGLM

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask has no arrays")
dd = pytest.importorskip("dask.dataframe", reason="Dask has no frames")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

N, D, M = 53, 5, 2
COUNTS = (20, 1, 9, 11, 12)

rng = np.random.default_rng(0)
A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)
Y = np.where(rng.standard_normal((N, M)) > 0.0, 1.0, -1.0)
FRAME = pd.DataFrame(A, columns=list("abcde"))


def csr(block: np.ndarray) -> sp.csr_matrix:
    return sp.csr_matrix(block)


def parts(X: Any, counts: tuple[int, ...] = COUNTS) -> list[tuple[Any, np.ndarray]]:
    ends = np.cumsum([0, *counts]).tolist()
    return [(X[start:end], Y[start:end]) for start, end in itertools.pairwise(ends)]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("files") / "set", parts(A))


@pytest.fixture
def workers(cluster: SharedCluster) -> Iterator[Workers]:
    """The two workers of the cluster that tests share."""
    workers = cluster.computing()
    yield workers
    workers.close()


def on(workers: Workers, shards: Any) -> Shards:
    """Return shards of this process on workers."""
    return Shards(OnDask(workers, shards.sizes.counts, tuple((shard,) for shard in shards.blocks.blocks)), shards.sizes)


def products(shards: Any) -> list[np.ndarray]:
    """Return what a fit asks of examples."""
    design = ShardedDesign(shards)
    W = np.random.default_rng(1).standard_normal((D, M))
    R = np.random.default_rng(2).standard_normal((N, M))
    with compensated():
        exact = design.enclose_adjoint(R)
    found = [design.forward(W), design.adjoint(R), design.norms(), design.gram(0), exact.lower, exact.upper]
    found += [np.asarray(getattr(part, "todense", lambda part=part: part)()) for part in [design.restricted(np.array([3, 1])).block(0)]]
    found.append(shards.with_targets(np.abs(Y) + np.arange(M)).with_targets(Y[:, :1]).total(moments))
    return [*found, np.concatenate(list(shards.map(targets_of))), np.array(list(shards.map(rows_and, each=[10, 20, 30, 40, 50])))]


def require_same_bits(one: Any, other: Any) -> None:
    for value, wanted in zip(one, other, strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("count", range(1, 12))
def test_sums_of_any_runs_in_any_order_have_the_bits_of_the_tree(count: int) -> None:
    def total(level: int, place: int) -> float:
        if level == 0:
            return values[place]
        left, right = 2 * place, 2 * place + 1
        return total(level - 1, left) + (total(level - 1, right) if right << (level - 1) < count else 0.0)

    order = random.Random(count)
    values = (10.0 ** np.random.default_rng(count).uniform(-8.0, 8.0, count)).tolist()
    for workers in (1, 2, 3, 5):
        runs = _runs([order.randrange(1, 9) for _ in range(count)], workers)
        assert list(itertools.chain(*runs)) == list(range(count))
        tree = TreeSum(count, plus)
        for first in order.sample([k for k, *_ in runs], len(runs)):
            of_run = TreeSum(count, plus)
            of_run.put(leaves([values[k] for run in runs if run[0] == first for k in run], first))
            assert len(of_run.nodes) <= 2 * count.bit_length()
            tree.put(of_run.nodes.items())
        assert tree.total() == total((count - 1).bit_length(), 0)


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("last", [1, 300, 1000])
def test_workers_have_a_power_of_two_of_shards_each_however_short_the_last_one_is(workers: int, last: int) -> None:
    runs = _runs([1000] * (8 * workers - 1) + [last], workers)
    assert [(run[0] % 8, len(run)) for run in runs] == [(0, 8)] * workers


#: The same numbers in every way that Dask has of holding them.
COLLECTIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: da.from_array(A, chunks=(COUNTS, D)),
    "array in columns": lambda: da.from_array(A, chunks=(COUNTS, 2)),
    "array in the order of Fortran": lambda: da.from_array(A, chunks=(COUNTS, D)).map_blocks(np.asfortranarray),
    "sparse array": lambda: da.from_array(A, chunks=(COUNTS, D)).map_blocks(csr),
    "array of unknown lengths": lambda: da.concatenate(
        [da.from_delayed(dask.delayed(X), (np.nan, D), float) for X, _ in parts(A)], allow_unknown_chunksizes=True
    ),
    "frame": lambda: dd.concat([dd.from_pandas(FRAME.iloc[X.index], npartitions=1) for X, _ in parts(FRAME)]),
    "frame with empty partitions": lambda: dd.from_delayed([dask.delayed(X) for X, _ in parts(FRAME, (20, 1, 0, 9, 11, 12, 0))]),
    "array of a frame": lambda: dd.from_delayed([dask.delayed(X) for X, _ in parts(FRAME)]).to_dask_array(),
}

#: Of every kind those of a graph or those that workers hold; the others are slow.
PLACES = [
    pytest.param(kind, is_held, id=f"{kind}, {'held' if is_held else 'computed'}", marks=[] if number % 2 == is_held else pytest.mark.slow)
    for number, kind in enumerate(COLLECTIONS)
    for is_held in (False, True)
]


@pytest.mark.parametrize(("kind", "is_held"), PLACES)
def test_blocks_of_dask_have_the_bits_of_shards_in_memory_whoever_computes_them(kind: str, is_held: bool, cluster: SharedCluster) -> None:
    X = COLLECTIONS[kind]()
    expected = products(Shards.held(parts(csr(A) if kind == "sparse array" else A)))
    rows = shards_of(X)
    assert (rows.shape, rows.with_targets(Y).sizes.counts) == ((N, D), COUNTS)
    require_same_bits(products(rows.with_targets(Y)), expected)
    with cluster.client.as_current():
        assert active_client() is cluster.client
        require_same_bits(products(shards_of(X.persist() if is_held else X).with_targets(Y)), expected)
    assert active_client() is None


def test_values_are_those_that_dask_computes(cluster: SharedCluster) -> None:
    X, frame = da.from_array(A, chunks=(10, 2)), dd.from_pandas(FRAME, npartitions=3)
    texts = dd.from_pandas(pd.DataFrame({"t": np.where(A[:, 0] > 0.0, "plus", "minus")}), npartitions=2)
    collections = [
        X, X[:, 0], X[X[:, 0] > 0.0], X[::2], da.vstack([X, X]), (X - X.mean(axis=0)) / X.std(axis=0),
        frame, frame["a"], frame[["a", "c"]] * 2, frame[frame.a > 0.0], frame[frame.a > 0.0]["b"], frame["a"] > 0.0, texts["t"],
        frame.repartition(npartitions=5), frame[frame.a > 0.0].to_dask_array(),
    ]  # fmt: skip
    for number, collection in enumerate(collections):
        np.testing.assert_array_equal(values_of("y", collection), np.asarray(collection.compute(scheduler="sync")), str(number))
    with cluster.client.as_current():
        for held in (frame.persist()[frame.a > 0.0], frame.persist()["a"], X.persist() * 2, X.persist().rechunk((50, -1))):
            np.testing.assert_array_equal(values_of("y", held), np.asarray(held.compute()))


def test_what_goes_to_and_fro_is_counted(workers: Workers) -> None:
    here = Shards.held(parts(A))
    problem = L1InfGLM(TaskData(ShardedDesign(on(workers, here)), Y), loss="logistic", penalty=0.01)
    problem.value_and_gradient(problem.zero())
    before = dict(workers.counts)
    problem.value_and_gradient(problem.zero())
    counts = {name: workers.counts[name] - value for name, value in before.items()}
    assert (counts["rounds"], counts["messages"]) == (1, 4)  # to each worker and back
    point = 8 * D * M
    assert counts["sent"] >= 2 * point  # W to both
    assert 2 * point <= counts["received"] <= 2 * (2 * 3 * point + 4096)  # of a run of shards the tree has at most two nodes a level
    info = dict(run(problem, "accelerated_gradient", limits=Limits(seconds=600.0, iterations=5)).info)
    assert info["rounds"] >= 5
    assert info["shards"] == len(COUNTS)


def test_workers_are_of_the_process_that_asks(workers: Workers) -> None:
    """A copy has no connection; it makes one of its own when it is used."""
    assert workers.client.status == "running"
    again = pickle.loads(pickle.dumps(workers))
    assert (again.place, again._client) == (workers.place, None)


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_dies_costs_no_bit(count: int) -> None:
    """Neither of shards that it computes with, nor of blocks and targets that it holds; where it was the only one another is started."""
    here, workers = Shards.held(parts(A)), Workers(Place(workers=count))
    client = workers.client
    try:
        with client.as_current():
            X = COLLECTIONS["array"]().persist()
            blocks = shards_of(X).with_targets(Y)
            holder = min(itertools.chain(*client.who_has(X).values()))
        victim = client.run(os.getpid)[holder]
        np.testing.assert_array_equal(on(workers, here).total(moments_unless_killed, victim), here.total(moments))
        until = time.monotonic() + 20.0
        while psutil.pid_exists(victim) and time.monotonic() < until:  # who has started it has to hear of its end
            time.sleep(0.02)
        assert not psutil.pid_exists(victim)
        np.testing.assert_array_equal(blocks.total(moments), here.total(moments))
    finally:
        workers.close()


def test_workers_that_are_short_of_memory_are_asked_again(manifest: Path, workers: Workers, tmp_path: Path) -> None:
    shards = read_shards(manifest).design.shards  # type: ignore[attr-defined]
    assert on(workers, shards).total(sum_at_the_second_try, str(tmp_path)) == Y.sum()


def test_a_shard_that_is_too_large_for_a_worker_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    """The Gram matrix of 8000 features would take 488 MiB."""
    X = sp.csr_array((np.ones(8000), (np.arange(8000) % 40, np.arange(8000))), shape=(40, 8000))
    data = read_shards(write_shards(tmp_path / "wide", [(X[:20], np.ones((20, 1))), (X[20:], np.ones((20, 1)))]), workers=1, memory_gib=0.4)
    try:
        with pytest.raises(MemoryError, match="not enough memory for a shard"):
            data.design.gram(0)
        np.testing.assert_array_equal(data.design.adjoint(np.ones((40, 1))), np.ones((8000, 1)))  # the worker goes on
    finally:
        data.design.shards.blocks.workers.close()  # type: ignore[attr-defined]


def test_what_a_function_raises_reaches_the_caller(tmp_path: Path, workers: Workers) -> None:
    shards = read_shards(write_shards(tmp_path / "set", parts(A))).design.shards  # type: ignore[attr-defined]
    (tmp_path / "set" / "00003.targets.npy").unlink()
    with pytest.raises(InputError, match=r"00003\.targets\.npy is missing: all who compute"):
        on(workers, shards).total(moments)


def block(value: Any, columns: int = D) -> Any:
    return da.from_delayed(dask.delayed(np.full)((4, columns), value), (4, columns), float)


def with_one(value: float) -> Any:
    bad = A.copy()
    bad[22, 3] = value
    return da.from_array(bad, chunks=(COUNTS, 2))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: with_one(np.nan), r"block 2 of X has NaN at index \(1, 3\): only finite numbers"),
    "inf": (lambda: with_one(np.inf), r"block 2 of X has inf at index \(1, 3\)"),
    "missing": (lambda: dd.from_pandas(FRAME.astype("Float64").shift(1), npartitions=1), r"block 0 of X has NaN at index \(0, 0\)"),
    "text": (lambda: dd.from_pandas(FRAME.assign(e="word"), npartitions=1), "block 0 of X must be an array of real numbers"),
    "complex": (lambda: da.from_array(A * 1j, chunks=(20, D)), "block 0 of X must be an array of real numbers: not complex"),
    "vector": (lambda: da.from_array(A[:, 0], chunks=20), "X must have 2 dimensions, but has 1"),
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
        shards_of(make())


def test_workers_name_it_too_and_hold_their_own(cluster: SharedCluster) -> None:
    with cluster.client.as_current():
        with pytest.raises(InputError, match=r"block 2 of X has NaN at index \(1, 3\)"):
            shards_of(with_one(np.nan))
        held = COLLECTIONS["array"]().persist()
    with pytest.raises(InputError, match="held by the workers of a Dask client that is not active here"):
        shards_of(held)


def test_numbers_that_change_are_found() -> None:
    def drawn() -> np.ndarray:
        return np.random.default_rng().standard_normal((4, D))

    steady = da.from_array(A[:20], chunks=(20, D))
    shards = shards_of(da.concatenate([steady, da.from_delayed(dask.delayed(drawn, pure=False)(), (4, D), float)])).with_targets(Y[:24])
    with pytest.raises(InputError, match="X has other numbers each time that it is computed, first in its rows from 20 on"):
        shards.require_unchanged()
    shards_of(steady).with_targets(Y[:20]).require_unchanged()


def deadly() -> np.ndarray:
    os.kill(os.getpid(), signal.SIGKILL)
    return np.zeros((6, D))


@pytest.mark.slow
def test_workers_that_keep_dying_over_a_block_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_blocks, "_MOST_DEATHS", 1)
    workers = Workers(Place(workers=1))
    try:
        with workers.client.as_current(), pytest.raises(ClusterLostError, match="keep dying over the same block"):
            shards_of(da.concatenate([block(1.0), da.from_delayed(dask.delayed(deadly, pure=False)(), (6, D), float)]))
    finally:
        workers.close()


def test_clusters_that_end_are_lost() -> None:
    with inside() as (cluster, client), client.as_current():
        shards = shards_of(COLLECTIONS["array"]()).with_targets(Y)
        cluster.close()
        with pytest.raises(ClusterLostError, match="Dask"):
            shards.total(moments)


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
