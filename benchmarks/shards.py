"""What data in shards cost: `python -m benchmarks.shards`.

In turn and in one run: one local shard against the design in memory, one Dask worker against this process, two workers against one; and the
largest memory of every process of a solve whose data are several times what a worker may have.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import psutil
from tabulate import tabulate

from bench_mtl.core.designs import stacked_rows
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.core.shards import Shards
from bench_mtl.core.threads import one_blas_thread
from bench_mtl.data import TaskData, load
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import Problem
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge

#: Data of 200 MB, to compare designs, and those that the suite `headline-sharded` has.
_SMALL = {
    "dense": {"name": "blocks_dense", "examples": 100_000, "features": 250, "tasks": 4, "noise_std": 1.0},
    "sparse": {"name": "blocks_sparse", "examples": 700_000, "features": 2000, "nonzeros": 25, "tasks": 2, "noise_std": 1.0},
}
_LARGE = {
    "dense": {"name": "blocks_dense", "examples": 3_250_000, "features": 250, "tasks": 4, "noise_std": 1.0},
    "sparse": {"name": "blocks_sparse", "examples": 20_000_000, "features": 2000, "nonzeros": 25, "tasks": 2, "noise_std": 1.0},
}

Row = tuple[str, str, str]


def problems(data: TaskData) -> dict[str, Problem]:
    return {"logistic": L1InfGLM(data, loss="logistic", penalty=0.01), "hinge": L1InfHinge(data, penalty=0.01)}


def passes(problem: Problem, repeats: int) -> Iterator[Callable[[], object]]:
    """Yield what a first-order method asks for, at points that are not 0."""
    rng = np.random.default_rng(0)
    for _ in range(repeats):
        W = 0.1 * rng.standard_normal(problem.point_shape)
        if isinstance(problem, L1InfHinge):
            yield lambda W=W: problem.smoothed(W, 0.1)  # type: ignore[misc]
        else:
            yield lambda W=W: problem.value_and_gradient(W)  # type: ignore[misc]


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turn(one: Problem, other: Problem, repeats: int) -> tuple[float, float, float]:
    """Return the median seconds of a pass of both, in turn, and the median ratio of the first to the second."""
    pairs = [(seconds(a), seconds(b)) for a, b in zip(passes(one, repeats), passes(other, repeats), strict=True)][1:]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)


def one_shard_rows(kind: str, folder: Path, repeats: int) -> Iterator[Row]:
    """One local shard over the design in memory, on one thread; the limit is 1.15."""
    stored = load({**_SMALL[kind], "folder": str(folder)})
    assert isinstance(stored.design, ShardedDesign)
    X = np.concatenate(list(stored.design.shards.map(_matrix))) if kind == "dense" else stacked_sparse(stored.design)
    plain = TaskData.shared(X, stored.targets)
    sharded = TaskData(ShardedDesign(Shards.held([(stacked_rows(plain.design), plain.targets)])), plain.targets)
    with one_blas_thread():
        for name, one in problems(sharded).items():
            a, b, ratio = in_turn(one, problems(plain)[name], repeats)
            yield f"{kind}, {name}: a pass of one local shard over one of the design in memory", f"{a:.3f} / {b:.3f} s", f"{ratio:.2f}"


def stacked_sparse(design: ShardedDesign) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(sp.vstack(list(design.shards.map(_matrix)), format="csr"))


def _matrix(shard: Any) -> Any:
    return shard.matrix()


def worker_rows(kind: str, folder: Path, repeats: int) -> Iterator[Row]:
    """Two workers against one, a pass over the large data; and the same bits."""
    spec = {**_LARGE[kind], "folder": str(folder)}
    found = {workers: load({**spec, "workers": workers, "memory_gib": 2.0}) for workers in (1, 2)}
    for name in problems(found[1]):
        one, two = (problems(data)[name] for data in found.values())
        a, b, ratio = in_turn(one, two, repeats)
        yield f"{kind}, {name}: a pass of one worker over one of two", f"{a:.2f} / {b:.2f} s", f"{ratio:.2f}"
    for data in found.values():
        data.design.shards.blocks.workers.close()  # type: ignore[attr-defined]


def memory_rows(kind: str, folder: Path, limit: float) -> Iterator[Row]:
    """The largest memory of this process and of each worker during a solve to 1e-4."""
    data = load({**_LARGE[kind], "folder": str(folder), "workers": 2, "memory_gib": 2.0})
    most: dict[int, int] = {}
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(most, stop))
    watcher.start()
    try:
        record = run(problems(data)["logistic"], "auto", tolerance=1e-4, limits=limit)
    finally:
        stop.set()
        watcher.join()
        data.design.shards.blocks.workers.close()  # type: ignore[attr-defined]
    own = most.pop(os.getpid())
    workers = sorted(most.values())[-2:]
    gap = "none" if record.best is None else f"{record.best.relative_gap:.1e}"
    yield f"{kind}: a solve to 1e-4 by two workers", f"{record.times.solve:.0f} s, {record.status}", gap
    yield f"{kind}: largest resident memory of this process", "GiB", f"{own / 2**30:.2f}"
    for number, size in enumerate(workers):
        yield f"{kind}: of worker {number}, mapped files included (limit 2)", "GiB", f"{size / 2**30:.2f}"


def watch(most: dict[int, int], stop: threading.Event) -> None:
    """Note the largest resident memory of this process and of all below it."""
    here = psutil.Process()
    while not stop.wait(0.05):
        for process in [here, *here.children(recursive=True)]:
            with suppress(psutil.Error):
                most[process.pid] = max(most.get(process.pid, 0), process.memory_info().rss)


@click.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Where the data are kept: 13 GB with --large; a temporary folder by default."
)
@click.option("--large", is_flag=True, help="Also workers, on data that none of them can hold: a quarter of an hour.")
@click.option("--repeats", default=12, show_default=True, help="Passes of each contestant; the first does not count.")
@click.option("--seconds", "limit", default=600.0, show_default=True, help="Of a solve.")
def main(folder: Path | None, large: bool, repeats: int, limit: float) -> None:
    """Print a table of figures."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) if folder is None else folder
        rows: list[Row] = []
        for kind in ("dense", "sparse"):
            rows += one_shard_rows(kind, place, repeats)
            if large:
                rows += worker_rows(kind, place, repeats)
                rows += memory_rows(kind, place, limit)
    click.echo(tabulate(rows, ("what", "measured", "figure"), tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
