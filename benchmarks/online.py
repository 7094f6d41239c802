"""What a step of online learning under an l1 ball costs: `python -m benchmarks.online`.

One line a figure. An update adds to k entries of a vector with n non-zeros and projects it, exactly; a pass is one visit to every document.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from tabulate import tabulate

from bench_mtl.core.designs import SharedDesign
from bench_mtl.core.types import Array
from bench_mtl.data.readers.npz import read_npz
from bench_mtl.model.forms import LinearForm
from bench_mtl.model.linear_loss import LinearFit
from bench_mtl.model.losses import Logistic
from bench_mtl.model.norms import L1
from bench_mtl.model.regularisers import Constraint
from bench_mtl.projections import METHODS, STORAGES, SparseBall
from bench_mtl.solvers.sparse_online import SparseOnline, SparseRun
from bench_mtl.solvers.stochastic_gradient import StochasticGradient

_CHANGED = 100
_UPDATES = 500
_REPEATS = 5
_SMALLEST_FALL = 0.1  # of a value where vectors are filled, so that all stay


def main_table(dimensions: tuple[int, ...], counts: tuple[int, ...], updates: int) -> list[tuple[str, ...]]:
    """Updates in many dimensions with as many non-zeros as change, then of more and more non-zeros, and their memory."""
    rows = []
    for storage in STORAGES:
        for d in dimensions:
            ball, seconds = updated(storage, d, _CHANGED, updates)
            rows.append(line(f"{storage}, d = {d:.0e}, {ball.nnz} non-zeros", seconds, ball))
    for n in counts:
        for storage in STORAGES:
            ball, seconds = updated(storage, 10**8, n, updates)
            rows.append(line(f"{storage}, d = 1e+08, {ball.nnz} non-zeros", seconds, ball))
    return rows


def line(what: str, seconds: float, ball: SparseBall) -> tuple[str, ...]:
    return (what, f"{1e6 * seconds:.1f}", f"{ball.nbytes / 2**10:.0f}", f"{ball.nbytes / ball.nnz:.0f}")


def updated(storage: str, d: int, n: int, updates: int) -> tuple[SparseBall, float]:
    """A ball with about n non-zeros, all of which stay, and the seconds of an update of some of them."""
    rng = np.random.default_rng(0)
    ball = SparseBall(4.0 * n, storage=storage)
    features = np.unique(rng.integers(0, d, size=n))
    for some in np.array_split(features, max(1, n // 5000)):
        ball.add(some, rng.exponential(5.0, size=some.size) + _SMALLEST_FALL)
    chosen = features[rng.integers(0, features.size, size=(updates, _CHANGED))]
    values = rng.exponential(_SMALLEST_FALL, size=chosen.shape) * rng.choice([-1.0, 1.0], size=chosen.shape)

    def run() -> None:
        for indices, numbers in zip(chosen, values, strict=True):
            ball.add(indices, numbers)

    return ball, fastest(run) / updates


def fastest(run: Callable[[], Any], repeats: int = _REPEATS) -> float:
    """Seconds of the thread on a processor; the first call compiles, and fills the caches."""
    run()
    times = []
    for _ in range(repeats):
        begun = time.thread_time()
        run()
        times.append(time.thread_time() - begun)
    return min(times)


def documents() -> tuple[str, LinearForm]:
    """The training documents of rcv1sub1 with their most frequent label, or some as sparse where the file is absent."""
    file = Path(os.environ.get("BENCH_MTL_DATA", ".")) / "rcv1sub1.npz"
    if file.exists():
        data = read_npz(file, split="train", labels=1)
        name, design, labels = "rcv1sub1", data.design, data.targets
    else:
        from scipy.sparse import random_array

        rng = np.random.default_rng(0)
        X = random_array((3000, 47236), density=0.0016, rng=rng, format="csr")
        name, design, labels = "random documents", SharedDesign(X, 1), rng.choice([-1.0, 1.0], size=(3000, 1))
    fit = LinearFit(design, labels, Logistic(), np.full(labels.shape, 1.0 / len(labels)))
    return f"{name}, {len(labels)} x {design.n_features}", LinearForm(fit, Constraint(L1("task"), 1.0))


def passes(form: LinearForm, share: float) -> tuple[dict[str, float], int]:
    """Seconds of one pass from W = 0 by every way to project; of the dense ones set-up and a share of the steps are timed."""
    count = len(form.fit.targets)
    zero = np.zeros((form.fit.design.n_features, 1))
    found = {}
    nonzeros = 0
    for storage in STORAGES:
        found[storage] = fastest(lambda storage=storage: SparseRun(form, SparseOnline(storage=storage), zero).advance(count))  # type: ignore[misc]
        run = SparseRun(form, SparseOnline(storage=storage), zero)
        run.advance(count)
        nonzeros = int(np.count_nonzero(run.point))
    for method in METHODS:
        found[f"dense {method}"] = dense_pass(form, method, zero, count, share)
    return found, nonzeros


def dense_pass(form: LinearForm, method: str, zero: Array, count: int, share: float) -> float:
    """Seconds to set up and to make `count` steps, of which a share is made."""

    def run(steps: int) -> None:
        dense = StochasticGradient(averaging="last", projection=method).run(form, zero)
        for _ in range(steps):
            dense.advance()

    made = max(1, int(share * count))
    few = fastest(lambda: run(0), 2)
    return few + (fastest(lambda: run(made), 2) - few) * count / made


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer updates, fewer non-zeros, a hundredth of the dense passes.")
def main(quick: bool) -> None:
    dimensions = (10**5, 10**8) if quick else (10**5, 10**6, 10**7, 10**8)
    counts = (1000,) if quick else (1000, 10_000, 100_000, 1_000_000)
    rows = main_table(dimensions, counts, 20 if quick else _UPDATES)
    headers = ["vector", f"us an update of {_CHANGED}", "KiB", "bytes a non-zero"]
    click.echo(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))
    name, form = documents()
    table = []
    for radius in (100.0,) if quick else (10.0, 100.0, 1000.0):
        found, nonzeros = passes(replace(form, regulariser=Constraint(form.norm, radius)), 0.01 if quick else 0.2)
        slowest = [f"{seconds / found[storage]:.1f}" for storage in STORAGES for seconds in (found["dense newton"], found["dense sort"])]
        table.append([f"{radius:g}", str(nonzeros), *(f"{1e3 * seconds:.1f}" for seconds in found.values()), *slowest])
    headers = ["radius", "non-zeros", *(f"{way}, ms" for way in found)]
    headers += [f"dense {method} / {storage}" for storage in STORAGES for method in ("newton", "sort")]
    click.echo(f"\nOne pass over {name}, logistic loss, a projection after every document:\n")
    click.echo(tabulate(table, headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
