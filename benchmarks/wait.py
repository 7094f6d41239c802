"""The whole wait of a run in a warm process against the time that its solver alone takes: what stopping tests, proofs and the driver add.

`python -m benchmarks.wait` prints a Markdown table: medians over runs that are interleaved, of problems that remember nothing from the
run before. `--only` picks cases by a part of their names; data of the catalogue are found as everywhere (`BENCH_MTL_DATA`).
"""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter
from typing import Any

import click
from tabulate import tabulate

from bench_mtl.core.forgetting import forget_cached
from bench_mtl.core.types import Record
from bench_mtl.data import load
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry, make_problem

_LASSO = {"name": "synthetic_glm", "features": 5000, "examples": 500, "relevant": 0.01}
_LOGISTIC = {"name": "synthetic_glm", "kind": "labels", "features": 500, "examples": 2000, "relevant": 0.1, "label_noise": 0.1}
_RCV1 = {"name": "rcv1sub1", "split": "train", "labels": 1}
_SCENE = {"name": "scene", "preprocess": "unit_rows"}
_STANDARD = {"name": "scene", "split": "train", "preprocess": "standardise"}
_DIGITS = {"name": "digits", "examples": 300, "preprocess": "stumps:100"}
_CLASSES = {"name": "synthetic_multiclass", "examples": 300, "preprocess": "stumps:100"}

#: Problem, data, parameters, solver and relative gap, by name.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str, float]] = {
    "lasso 500 x 5000, 0.1 max": ("l1_ball_glm", _LASSO, {"penalty": "0.1 max"}, "auto", 1e-6),
    "lasso 500 x 5000, 0.01 max": ("l1_ball_glm", _LASSO, {"penalty": "0.01 max"}, "auto", 1e-6),
    "logistic 2000 x 500, 0.1 max": ("l1_ball_glm", _LOGISTIC, {"penalty": "0.1 max", "loss": "logistic"}, "auto", 1e-6),
    "lasso rcv1, 0.1 max": ("l1_ball_glm", _RCV1, {"penalty": "0.1 max"}, "auto", 1e-6),
    "lasso rcv1, 0.01 max": ("l1_ball_glm", _RCV1, {"penalty": "0.01 max"}, "auto", 1e-6),
    "sparse + low rank, Scene": ("sparse_low_rank", _SCENE, {"penalty": 1.0, "radius": 10.0}, "auto", 1e-4),
    "hinge, Scene standardised": ("l1inf_hinge", _STANDARD, {"radius": 1.0}, "auto", 1e-6),
    "boosting, digits 300": ("group_boosting", _DIGITS, {"nu": "0.03 max", "norm": "l12"}, "multiboost_group", 1e-4),
    "boosting, synthetic 300": ("group_boosting", _CLASSES, {"nu": "0.1 max", "norm": "l12"}, "multiboost_group", 1e-4),
    "l1,inf squared, Scene": ("l1inf_glm", _STANDARD, {"penalty": "0.1 max"}, "auto", 1e-6),
}

HEADERS = ["case", "wait, ms", "solver alone, ms", "tests, ms", "tests made", "wait / alone", "wait - alone, ms", "gap"]


@click.command(help=__doc__)
@click.option("--only", default="", help="A part of the names of cases.")
@click.option("--runs", default=9, show_default=True, type=click.IntRange(min=1))
def main(only: str, runs: int) -> None:
    registry = load_registry()
    chosen = {name: case for name, case in CASES.items() if only in name}
    problems = {
        name: make_problem(registry.problem(kind), load(data, seed=0), parameters) for name, (kind, data, parameters, *_) in chosen.items()
    }
    waits: dict[str, list[tuple[float, Record]]] = {name: [] for name in chosen}
    for _ in range(runs + 2):  # two to warm up
        for name, (*_, solver, gap) in chosen.items():
            forget_cached(problems[name])
            gc.collect()
            began = perf_counter()
            record = run(problems[name], solver, tolerance=gap)
            waits[name].append((perf_counter() - began, record))
    rows = [row(name, of_case[2:]) for name, of_case in waits.items()]
    click.echo(tabulate(rows, HEADERS, tablefmt="github", disable_numparse=True))


def row(name: str, runs: list[tuple[float, Record]]) -> list[str]:
    wait = 1e3 * median(seconds for seconds, _ in runs)
    alone = 1e3 * median(record.times.solve - record.times.test for _, record in runs)
    tests = 1e3 * median(record.times.test for _, record in runs)
    last = runs[-1][1]
    gap = "none" if last.best is None else f"{last.best.relative_gap:.0e}"
    times = [f"{wait:.1f}", f"{alone:.1f}", f"{tests:.1f}", str(len(last.samples)), f"{wait / alone:.2f}", f"{wait - alone:.1f}"]
    return [name, *times, f"{gap}, {last.status}"]


if __name__ == "__main__":
    main()
