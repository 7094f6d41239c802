"""Tables as users bring them, unscaled, under weak penalties: `auto` against generic solvers, `python -m benchmarks.unscaled`.

Ten data sets, six norms and three losses, with penalties of 1e-1, 1e-3 and 1e-5 of the largest, to a relative gap of 1e-6 within
`--seconds`. A time is that of the whole call: of a generic solver with its model's building, at its cheapest tolerance that proves the gap.
`--only` picks instances by a part of their names; sets of the catalogue that are absent are named and left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from sklearn import datasets
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.core.errors import InputError
from bench_mtl.data import load
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry, make_problem
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData

RIVALS = ("clarabel", "ecos", "scs")
SHARES = (1e-1, 1e-3, 1e-5)
LOSSES = ("squared", "logistic", "hinge")
GAP = 1e-6

#: The problem of a norm with smooth losses, and with hinges.
NORMS: dict[str, tuple[str, str | None]] = {
    "l1,inf": ("l1inf_glm", "l1inf_hinge"),
    "l1,2": ("l12_glm", "l12_hinge"),
    "l1": ("l1_ball_glm", None),
    "trace": ("trace_norm_glm", None),
    "dirty": ("dirty_model", None),
    "sparse + low rank": ("sparse_low_rank", None),
}


def _classes(name: str, examples: int = 300) -> Callable[[], tuple[Any, Any]]:
    def load_classes() -> tuple[Any, Any]:
        X, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(X))[:examples]
        return X[rows], (labels[rows, None] == np.unique(labels)).astype(float) * 2.0 - 1.0

    return load_classes


def _catalogue(name: str) -> Callable[[], tuple[Any, Any]]:
    def load_set() -> tuple[Any, Any]:
        data = load({"name": name})
        return data.task(0)[0], np.column_stack([data.task(k)[1] for k in range(data.n_tasks)])

    return load_set


SETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": _classes("iris"),
    "wine": _classes("wine"),
    "breast_cancer": _classes("breast_cancer"),
    "digits": _classes("digits"),
    "diabetes": lambda: (datasets.load_diabetes(scaled=False).data[:, :8], datasets.load_diabetes(scaled=False).data[:, 8:]),
    "linnerud": lambda: datasets.load_linnerud(return_X_y=True),
    **{name.removeprefix("mtr_"): _catalogue(name) for name in ("mtr_enb", "mtr_jura", "mtr_slump", "mtr_andro")},
}


def instances(only: str) -> Iterator[tuple[str, str, Problem]]:
    """Yield the names of norm and loss, that of the instance, and the problem."""
    registry = load_registry()
    for name, load_set in SETS.items():
        try:
            X, Y = load_set()
        except InputError as absent:
            print(f"{name} is left out: {absent}")
            continue
        for loss in LOSSES:
            labels = Y if loss == "squared" or (abs(Y) == 1.0).all() else np.where(np.median(Y, axis=0) < Y, 1.0, -1.0)
            for norm, (smooth, hinge) in NORMS.items():
                kind = hinge if loss == "hinge" else smooth
                if kind is None:
                    continue
                for share in SHARES:
                    label = f"{name}, {norm}, {loss}, {share:g}"
                    if only in label:
                        given = {"intercept": True, **({} if loss == "hinge" else {"loss": loss}), **_penalties(norm, share, X, labels)}
                        yield f"{norm}, {loss}", label, make_problem(registry.problem(kind), TaskData.shared(X, labels), given)


def _penalties(norm: str, share: float, X: Any, Y: Any) -> dict[str, Any]:
    if norm == "dirty":
        return {"row_penalty": f"{share:g} max", "entry_penalty": f"{share:g} max"}
    if norm != "sparse + low rank":
        return {"penalty": f"{share:g} max"}
    # The trace norm of least squares in features of length one, a tenth of it, in the units of the features again.
    sizes, X, Y = np.linalg.norm(X, axis=0), X - X.mean(axis=0), Y - Y.mean(axis=0)
    lengths = np.linalg.norm(X, axis=0)
    lengths[lengths <= 1e-12 * sizes] = np.inf  # a constant feature
    fit = np.linalg.lstsq(X / lengths, Y, rcond=1e-8)[0] / lengths[:, None]
    return {"penalty": share * float(np.abs(X.T @ Y).max()) / len(X), "radius": 0.1 * float(np.linalg.norm(fit, "nuc"))}


def seconds(problem: Problem, solver: str, limit: float) -> float:
    """Return the seconds of the whole call, infinite where the gap was not proven."""
    with threadpool_limits(1):
        record = run(problem, solver, tolerance=GAP, limits=limit)
    if record.best is None or not record.best.relative_gap <= GAP:
        return math.inf
    return record.times.build + record.times.compile + record.times.setup + record.times.solve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    rows: dict[str, list[tuple[str, list[float]]]] = {}
    for group, label, problem in instances(chosen.only):
        if group not in rows:
            run(problem, "auto", tolerance=GAP, limits=chosen.seconds)  # what compiles now is not timed
        times = [seconds(problem, solver, chosen.seconds) for solver in ("auto", *RIVALS)]
        rows.setdefault(group, []).append((label, times))
    heads = ["norm, loss", "instances", "auto proves", "its median, s", "longest, s", *(f"{name} proves" for name in RIVALS), "behind"]
    print(tabulate([_row(group, cells) for group, cells in rows.items()], heads, "github", floatfmt=".2g"))
    print("\nBehind: auto takes more than 3 times as long as the best rival, or proves nothing in time:\n")
    behind = [(label, *times) for cells in rows.values() for label, times in cells if _is_behind(times)]
    print(tabulate(behind, ["instance", "auto, s", *RIVALS], "github", floatfmt=".2g"))


def _is_behind(times: list[float]) -> bool:
    return not math.isfinite(times[0]) or times[0] > 3.0 * min(times[1:])


def _row(group: str, cells: list[tuple[str, list[float]]]) -> list[Any]:
    times = np.array([times for _, times in cells])
    proven = np.isfinite(times).sum(axis=0)
    behind = sum(_is_behind(instance) for _, instance in cells)
    finite = times[np.isfinite(times[:, 0]), 0]
    return [group, len(times), proven[0], median(finite) if len(finite) else math.inf, finite.max(initial=0.0), *proven[1:], behind]


if __name__ == "__main__":
    main()
