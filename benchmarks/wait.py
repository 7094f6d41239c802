"""The whole wait of a run in a warm process against the time that its solver alone takes: what stopping tests, proofs and the driver add.

`python -m benchmarks.wait` prints a Markdown table: medians over runs that are interleaved, of problems that remember nothing from the
run before. `--only` picks cases by a part of their names; data of the catalogue are found as everywhere (`BENCH_MTL_DATA`).
"""

from __future__ import annotations

import argparse
import gc
from statistics import median
from time import perf_counter
from typing import Any

from bench_mtl.core.forgetting import forget_cached
from bench_mtl.core.types import Record
from bench_mtl.data import load
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry, make_problem
from bench_mtl.model.protocols import Problem

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=9)
    chosen = parser.parse_args()
    registry = load_registry()
    problems: dict[str, Problem] = {}
    waits: dict[str, list[tuple[float, Record]]] = {}
    for name, (kind, data, parameters, _, _) in CASES.items():
        if chosen.only in name:
            problems[name] = make_problem(registry.problem(kind), load(data, seed=0), parameters)
            waits[name] = []
    for _ in range(chosen.runs + 2):  # two to warm up
        for name, problem in problems.items():
            forget_cached(problem)
            gc.collect()
            began = perf_counter()
            record = run(problem, CASES[name][3], tolerance=CASES[name][4])
            waits[name].append((perf_counter() - began, record))
    print("| case | wait, ms | solver alone, ms | tests, ms | tests made | wait / alone | wait - alone, ms | gap |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, runs in waits.items():
        print(_row(name, runs[2:]))


def _row(name: str, runs: list[tuple[float, Record]]) -> str:
    wait = 1e3 * median(seconds for seconds, _ in runs)
    alone = 1e3 * median(record.times.solve - record.times.test for _, record in runs)
    tests = 1e3 * median(record.times.test for _, record in runs)
    last = runs[-1][1]
    gap = "none" if last.best is None else f"{last.best.relative_gap:.0e}"
    numbers = f"{wait:.1f} | {alone:.1f} | {tests:.1f} | {len(last.samples)} | {wait / alone:.2f} | {wait - alone:.1f}"
    return f"| {name} | {numbers} | {gap}, {last.status} |"


if __name__ == "__main__":
    main()
