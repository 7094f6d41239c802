"""What a fit of the estimators costs, as their user sees it: `python -m benchmarks.fits`.

Ten per cent of Yahoo References (wide TF-IDF rows of unit length) and the training part of Yeast, at the default relative gap of 1e-3. Each
fit is made twice, and the quicker one counts: compiled code is loaded by then. Seconds of a processor are those of this process; on a busy
machine they say more than those on the wall.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.core.types import Array, Matrix
from bench_mtl.data.catalogue import load
from bench_mtl.estimators import ASOClassifier, L1InfClassifier, MTRLClassifier, SparseLowRankClassifier, TraceNormClassifier
from bench_mtl.estimators.linear import LinearTaskClassifier


class Fit(NamedTuple):
    """A model to be fitted, and the seconds that it may take."""

    data: str
    name: str
    model: LinearTaskClassifier
    limit: float


def fits(quick: bool) -> Iterator[Fit]:
    for tau in (5.0, 20.0):
        yield Fit("References", f"TraceNorm tau {tau:g}", TraceNormClassifier(tau), 1.0)
    yield Fit("References", "MTRL", MTRLClassifier(), 1.0)
    if not quick:
        yield Fit("References", "ASO", ASOClassifier(), 1.0)
    for gamma in (1.0,) if quick else (0.1, 0.3, 1.0, 3.0):
        for tau in (5.0,) if quick else (1.0, 5.0, 20.0):
            yield Fit("References", f"sparse + low rank, gamma {gamma:g}, tau {tau:g}", SparseLowRankClassifier(gamma, tau), 10.0)
    for radius in (1.0, 10.0) if quick else (0.3, 1.0, 3.0, 10.0, 30.0, 100.0):
        yield Fit("Yeast", f"l1,inf hinge, radius {radius:g}", L1InfClassifier(radius), 0.2)


def rows_of(data: str, share: float, data_dir: Path | None) -> tuple[Matrix, Array]:
    """Examples and labels 0/1: a share of References drawn with seed 0, with the labels that occur and do not always; or 1500 of Yeast."""
    if data == "Yeast":
        tasks = load({"name": "yeast"}, data_dir=data_dir)
        return tasks.design.block(0)[:1500], (tasks.targets[:1500] > 0.0).astype(np.float64)
    tasks = load({"name": "yahoo_reference_ji", "preprocess": ["tfidf", "unit_rows"]}, data_dir=data_dir)
    n = tasks.targets.shape[0]
    drawn = np.random.default_rng(0).permutation(n)[: round(share * n)]
    labels = tasks.targets[drawn] > 0.0
    varied = labels.any(axis=0) & ~labels.all(axis=0)
    return tasks.design.block(0)[drawn], labels[:, varied].astype(np.float64)


def seconds(model: LinearTaskClassifier, X: Matrix, Y: Array, repeats: int) -> tuple[float, float]:
    """Seconds of the quickest fit on the wall clock and on the processor."""
    best = (np.inf, np.inf)
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        model.fit(X, Y)
        best = min(best, (time.perf_counter() - wall, time.process_time() - processor))
    return best


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Few rows and few fits: whether it runs at all.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of .npz data sets; BENCH_MTL_DATA by default.")
def main(quick: bool, data_dir: Path | None) -> None:
    lines: list[list[Any]] = []
    held: dict[str, tuple[Matrix, Array]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not met its gap is seen in the table
        for data, name, model, limit in fits(quick):
            if data not in held:
                held[data] = rows_of(data, 0.01 if quick else 0.1, data_dir)
            X, Y = held[data]
            wall, processor = seconds(model, X, Y, 1 if quick else 2)
            gap = f"{model.gap_:.1e}" if hasattr(model, "gap_") else "-"
            shape = " x ".join(map(str, (*X.shape, Y.shape[1])))
            lines.append([f"{data}, {shape}", name, f"{wall:.3f}", f"{processor:.3f}", limit, gap, model.n_iter_])
            click.echo(f"{name}: {wall:.3f} s", err=True)
    headers = ["data", "fit", "seconds", "of processor", "limit", "proven gap", "iterations"]
    click.echo(tabulate(lines, headers=headers, tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
