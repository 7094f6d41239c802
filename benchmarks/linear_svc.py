"""Dual coordinate ascent on `ridge_hinge` against scikit-learn's LinearSVC (liblinear), to the same proven gap.

`LinearSVC(loss="hinge", dual=True, fit_intercept=False)` with C = 1 / (2 n sigma) minimises the objective of `ridge_hinge` over 2 sigma. It
runs at a ladder of tolerances; our problem certifies every `coef_`, against the best bound that our solver has proven: so its gap is
that of its point alone, and ours is that of point and bound. Its time is that of `fit` at the loosest tolerance that reaches the gap, as
if that were known; ours is the solver's clock. Both run on one thread, a task at a time.

Run by `python -m benchmarks.linear_svc` (a minute); real data from BENCH_MTL_DATA where they are there.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.checks import is_sparse
from bench_mtl.core.types import Limits, Record, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.ridge_hinge import RidgeHinge
from bench_mtl.solvers.dual_coordinate_ascent import DualCoordinateAscent

TOLERANCES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
GAPS = (1e-2, 1e-4, 1e-6)
REPEATS = 3


def instances() -> dict[str, tuple[TaskData, float]]:
    """Data and ridges by name."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((5000, 100))
    labels = np.sign(dense @ rng.standard_normal((100, 3)) + 5.0 * rng.standard_normal((5000, 3)))
    text: Any = sp.random_array((5000, 20_000), density=0.003, rng=rng, format="csr")
    text.data[:] = np.abs(rng.standard_normal(text.nnz))
    topics = np.sign(text @ rng.standard_normal((20_000, 2)) + 0.5 * rng.standard_normal((5000, 2)))
    found = {
        "dense 5000 x 100, 3 tasks": (TaskData.shared(dense, labels), 1e-3),
        "dense 5000 x 100, 3 tasks, ridge 1e-1": (TaskData.shared(dense, labels), 1e-1),
        "text 5000 x 20000, 2 tasks": (TaskData.shared(text, topics), 1e-4),
    }
    for name in ("rcv1sub1", "yeast"):
        data = _catalogued(name)
        if data is not None:
            found[name] = (data, 1e-4)
    return found


def _catalogued(name: str) -> TaskData | None:
    """Return the first three tasks of a data set of the catalogue; None where its file is not there."""
    from bench_mtl.core.errors import BenchError
    from bench_mtl.data.catalogue import load, spec_of

    try:
        data = load(spec_of(name))
    except BenchError:
        return None
    return TaskData.shared(data.design.block(0), np.where(data.targets[:, :3] > 0.0, 1.0, -1.0))


def measure(data: TaskData, ridge: float) -> dict[float, tuple[float, float]]:
    """Seconds of LinearSVC and of ours, by proven gap."""
    problem, solver = RidgeHinge(data, ridge=ridge), DualCoordinateAscent()
    solver.warm_up()
    ours = [run(problem, solver, tolerance=Tolerance(min(GAPS)), limits=Limits(seconds=60.0)) for _ in range(REPEATS)]
    best = max(record.samples[-1].certificate.dual for record in ours)
    theirs = [_linear_svc(problem, data, ridge, tolerance, best) for tolerance in TOLERANCES]
    return {gap: (min((s for s, g in theirs if g <= gap), default=np.inf), min(_seconds(record, gap) for record in ours)) for gap in GAPS}


def _seconds(record: Record, gap: float) -> float:
    return min((sample.seconds for sample in record.samples if sample.certificate.relative_gap <= gap), default=np.inf)


def _linear_svc(problem: RidgeHinge, data: TaskData, ridge: float, tolerance: float, bound: float) -> tuple[float, float]:
    """Seconds of all fits, the fastest of some repeats, and the relative gap of their coefficients to the bound."""
    from sklearn.svm import LinearSVC

    W, seconds = np.zeros(problem.point_shape), 0.0
    for k in range(data.n_tasks):
        X, y = data.task(k)
        X = sp.csr_matrix(X) if is_sparse(X) else X
        options: dict[str, Any] = {"C": 1.0 / (2.0 * len(y) * ridge), "tol": tolerance, "max_iter": 100_000}
        svc = LinearSVC(loss="hinge", dual=True, fit_intercept=False, random_state=0, **options)
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                svc.fit(X, y)
            times.append(time.perf_counter() - began)
        seconds += min(times)
        W[:, k] = svc.coef_[0] * svc.classes_[1]
    objective = problem.objective(W)
    bound = max(bound, problem.dual_bound(W, None))
    return seconds, (objective - bound) / objective


def main() -> None:
    """Print the table."""
    print("| data | gap | LinearSVC, s | dual_coordinate_ascent, s | ratio |\n| --- | --- | --- | --- | --- |")
    for name, (data, ridge) in instances().items():
        for gap, (theirs, ours) in measure(data, ridge).items():
            print(f"| {name} | {gap:g} | {theirs:.4f} | {ours:.4f} | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
