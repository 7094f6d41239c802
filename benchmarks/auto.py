"""What `auto` costs beside the best of the solvers that it could have picked: `python -m benchmarks.auto`.

Every instance is solved to every target by each solver alone and by `auto`, in one process on one thread, in rounds: what is compared runs
right after one another, so that a slow moment of the machine meets all. After the first round the solvers that took over twice the time
of the fastest are left out. A solver's time is its median over the rounds; the factor is that of `auto` over the shortest of the others.
Over an hour; real data are skipped by name where their folder is absent.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Tolerance
from bench_mtl.data.catalogue import load
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.problems.l1_ball_glm import L1BallGLM
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient
from bench_mtl.solvers.admm import ADMM
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.l1_working_set import L1WorkingSet
from bench_mtl.solvers.partial_minimisation import PartialMinimisation
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.working_set import WorkingSet

SUITES = ("headline-hinge", "headline-hinge-real", "headline-lowrank")
TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
#: The solvers of ours that `auto` could pick, and others that were the best before.
RIVALS: tuple[Solver, ...] = (
    PDHG(), InteriorPoint(), AcceleratedGradient(restart="gradient"), ADMM(), PartialMinimisation(),
    L1WorkingSet(), WorkingSet(),
)  # fmt: skip
#: A rival that takes longer than this, in seconds, or in the first round than this multiple of the fastest, is not waited for.
LIMIT, PATIENCE = 30.0, 2.0

_SYNTHETIC, _GLM = {"name": "synthetic_l1inf"}, {"name": "synthetic_glm"}
_LABELS = {**_GLM, "kind": "labels", "label_noise": 0.1}
_SCENE = {"name": "scene", "split": "train", "preprocess": "standardise"}
_ARTS = {"name": "yahoo_arts_ji", "preprocess": "unit_rows"}
_OES = {"name": "mtr_oes97", "preprocess": "standardise"}
_LOGISTIC = {"loss": "logistic"}

Instance = tuple[str, dict[str, Any], dict[str, Any]]
"""Label, data, parameters."""

#: Instances outside the headline suites, by problem.
OTHERS: dict[type[Problem], tuple[Instance, ...]] = {
    L1InfHinge: (
        ("synthetic, d=1000 m=10 n=50", {**_SYNTHETIC, "tasks": 10, "features": 1000, "examples": 50}, {"radius": "truth"}),
        ("synthetic, d=50 m=200 n=30", {**_SYNTHETIC, "tasks": 200, "features": 50, "examples": 30}, {"radius": "truth"}),
        ("synthetic, d=400 m=5 n=400", {**_SYNTHETIC, "tasks": 5, "features": 400, "examples": 400}, {"radius": 20.0}),
        (
            "synthetic, d=100 m=20 n=100, penalty 5 %",
            {**_SYNTHETIC, "tasks": 20, "features": 100, "examples": 100},
            {"penalty": "0.05 max"},
        ),
        (
            "synthetic, d=100 m=20 n=100, penalty 30 %",
            {**_SYNTHETIC, "tasks": 20, "features": 100, "examples": 100},
            {"penalty": "0.3 max"},
        ),
        ("synthetic, d=3000 m=3 n=200", {**_SYNTHETIC, "tasks": 3, "features": 3000, "examples": 200}, {"radius": 5.0}),
        ("Medical, unit rows, penalty 5 %", {"name": "medical", "preprocess": "unit_rows"}, {"penalty": "0.05 max"}),
        ("Medical, unit rows, radius 50", {"name": "medical", "preprocess": "unit_rows"}, {"radius": 50.0}),
        ("Slashdot, unit rows, radius 20", {"name": "slashdot", "preprocess": "unit_rows"}, {"radius": 20.0}),
        ("Slashdot, unit rows, penalty 10 %", {"name": "slashdot", "preprocess": "unit_rows"}, {"penalty": "0.1 max"}),
        ("Language log, unit rows, radius 10", {"name": "langlog", "preprocess": "unit_rows"}, {"radius": 10.0}),
        ("Birds, standardised, radius 1", {"name": "birds", "preprocess": "standardise"}, {"radius": 1.0}),
        ("Birds, standardised, radius 5", {"name": "birds", "preprocess": "standardise"}, {"radius": 5.0}),
        ("Landmine, penalty 10 %", {"name": "landmine"}, {"penalty": "0.1 max"}),
        ("Landmine, penalty 1 %", {"name": "landmine"}, {"penalty": "0.01 max"}),
        ("Yahoo Science, unit rows, radius 20", {"name": "yahoo_science_ji", "preprocess": "unit_rows"}, {"radius": 20.0}),
        ("Yahoo Education, TF-IDF, radius 30", {"name": "yahoo_education_ji", "preprocess": ["tfidf", "unit_rows"]}, {"radius": 30.0}),
        ("TMC2007, unit rows, radius 20", {"name": "tmc2007_500", "preprocess": "unit_rows"}, {"radius": 20.0}),
        ("Ohsumed, unit rows, radius 20", {"name": "ohsumed", "preprocess": "unit_rows"}, {"radius": 20.0}),
        ("Reuters-K500, unit rows, radius 20", {"name": "reutersk500", "preprocess": "unit_rows"}, {"radius": 20.0}),
    ),
    L1InfGLM: (
        ("l1,inf, oes97, penalty 10 %", _OES, {"penalty": "0.1 max"}),
        ("l1,inf, oes97, penalty 1 %", _OES, {"penalty": "0.01 max"}),
        ("l1,inf, Scene, penalty 1 %", _SCENE, {"penalty": "0.01 max"}),
        ("l1,inf, Scene, logistic, penalty 3 %", _SCENE, {"penalty": "0.03 max", **_LOGISTIC}),
        ("l1,inf, Bibtex, 40 tasks, penalty 10 %", {"name": "bibtex", "split": "train", "labels": 40}, {"penalty": "0.1 max"}),
        ("l1,inf, Bibtex, 40 tasks, penalty 1 %", {"name": "bibtex", "split": "train", "labels": 40}, {"penalty": "0.01 max"}),
        ("l1,inf, Bibtex, logistic, 100 tasks", {"name": "bibtex", "split": "train", "labels": 100}, {"penalty": "0.1 max", **_LOGISTIC}),
        ("l1,inf, Arts, penalty 5 %", _ARTS, {"penalty": "0.05 max"}),
        ("l1,inf, Arts, logistic, penalty 10 %", _ARTS, {"penalty": "0.1 max", **_LOGISTIC}),
        ("l1,inf, School, radius 5", {"name": "school"}, {"radius": 5.0}),
        ("l1,inf, synthetic, d=2000 m=10 n=500", {**_GLM, "tasks": 10, "features": 2000, "examples": 500}, {"penalty": "0.1 max"}),
        ("l1,inf, synthetic, d=5000 m=30 n=400", {**_GLM, "tasks": 30, "features": 5000, "examples": 400}, {"radius": 20.0}),
        (
            "l1,inf, synthetic, logistic, d=300 m=50 n=1000",
            {**_LABELS, "tasks": 50, "features": 300, "examples": 1000},
            {"radius": 10.0, **_LOGISTIC},
        ),
    ),
    L1BallGLM: (
        ("lasso, Gaussian, 500 x 5000", {**_GLM, "features": 5000, "examples": 500, "relevant": 0.01}, {"penalty": "0.01 max"}),
        ("lasso, Gaussian, 500 x 5000, ball", {**_GLM, "features": 5000, "examples": 500, "relevant": 0.01}, {"radius": 20.0}),
        ("lasso, rcv1sub1, penalty 1 %", {"name": "rcv1sub1", "split": "train", "labels": 1}, {"penalty": "0.01 max"}),
        ("lasso, Scene, 6 tasks, penalty 1 %", _SCENE, {"penalty": "0.01 max"}),
        (
            "logistic, Gaussian, 2000 x 500",
            {**_LABELS, "features": 500, "examples": 2000, "relevant": 0.1},
            {"penalty": "0.01 max", **_LOGISTIC},
        ),
        ("logistic, Bibtex, penalty 10 %", {"name": "bibtex", "split": "train", "labels": 1}, {"penalty": "0.1 max", **_LOGISTIC}),
        ("logistic, Arts, ball 30", _ARTS, {"radius": 30.0, **_LOGISTIC}),
    ),
    SparseLowRank: (
        (
            "sparse + low rank, d=300 m=40 n=100",
            {"name": "synthetic_sparse_low_rank", "tasks": 40, "features": 300, "examples": 100},
            {"penalty": 5.0, "radius": "truth"},
        ),
        ("sparse + low rank, Birds", {"name": "birds", "preprocess": "unit_rows"}, {"penalty": 0.5, "radius": 5.0}),
        ("sparse + low rank, Medical", {"name": "medical", "preprocess": "unit_rows"}, {"penalty": 0.5, "radius": 10.0}),
        (
            "sparse + low rank, Corel5k, 40 labels",
            {"name": "corel5k", "labels": 40, "preprocess": "unit_rows"},
            {"penalty": 1.0, "radius": 5.0},
        ),
    ),
}


class Row(NamedTuple):
    """Seconds of the rivals that came near the fastest, and of `auto`, infinite where the target was not met."""

    instance: str
    target: float
    rivals: dict[str, float]
    auto: float

    @property
    def factor(self) -> float:
        return self.auto / min(self.rivals.values())


def instances(data_dir: Path | None, select: str) -> Iterator[tuple[str, Problem]]:
    """The problems of the headline suites, then the others, that have `select` in their name; those whose data are absent are left out."""
    registry = load_registry()
    chosen: list[tuple[str, Callable[[], Problem]]] = []
    for name in SUITES:
        found = {case.instance.label: case.instance for case in expand(read_suite(name), registry)}
        chosen += [(label, partial(instance.build, registry, data_dir)) for label, instance in found.items()]
    for kind, others in OTHERS.items():
        chosen += [(label, partial(_built, kind, data, parameters, data_dir)) for label, data, parameters in others]
    for label, build in chosen:
        if select.lower() not in label.lower():
            continue
        try:
            problem = build()
        except InputError as error:
            click.echo(f"left out: {label}: {error}", err=True)
            continue
        yield label, problem


def _built(problem: Callable[..., Problem], data: dict[str, Any], parameters: dict[str, Any], data_dir: Path | None) -> Problem:
    return problem(load(data, data_dir=data_dir), **parameters)


def seconds(problem: Problem, solver: Solver, target: float, limit: float) -> float:
    """Return the time to a proven gap of `target`, infinite where the limit comes first."""
    record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=limit))
    return record.samples[-1].seconds if record.best is not None and record.status == "verified" else math.inf


def measured(label: str, problem: Problem, rounds: int) -> Iterator[Row]:
    rivals = [solver for solver in reversed(RIVALS) if solver.incompatibility(problem) is None]
    if (unsuited := Auto().incompatibility(problem)) is not None:
        click.echo(f"left out: {label}: {unsuited}", err=True)
        return
    for target in TARGETS:
        first: dict[str, float] = {}
        for solver in rivals:
            limit = min(LIMIT, PATIENCE * min(first.values(), default=LIMIT))
            first[solver.name] = seconds(problem, solver, target, limit)
        fastest = min(first.values(), default=math.inf)
        if not math.isfinite(fastest):
            continue
        competing = [Auto(), *(solver for solver in rivals if first[solver.name] <= PATIENCE * fastest)]
        times: dict[str, list[float]] = {solver.name: [] for solver in competing}
        for _ in range(rounds):
            for solver in competing:
                times[solver.name].append(seconds(problem, solver, target, LIMIT))
        medians = {name: statistics.median(of_rounds) for name, of_rounds in times.items()}
        yield Row(label, target, {name: medians[name] for name in medians if name != Auto.name}, medians[Auto.name])


def table(rows: list[Row]) -> str:
    """A line an instance and target: the factor, the seconds of `auto`, those of each rival that took the problem."""
    names = [solver.name for solver in RIVALS if any(solver.name in row.rivals for row in rows)]

    def shown(value: float) -> str:
        return f"{value:.3g}" if math.isfinite(value) else "-"

    lines = []
    for row in rows:
        times = [row.auto, *(row.rivals.get(name, math.inf) for name in names)]
        lines.append([row.instance, f"{row.target:g}", f"{row.factor:.2f}", *map(shown, times)])
    headers = ["instance", "gap", "factor", "auto, s", *(f"{name}, s" for name in names)]
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), envvar="BENCH_MTL_DATA")
@click.option("--select", default="", help="Only instances with this in their name.")
@click.option("--rounds", default=5, type=click.IntRange(min=1))
def main(data_dir: Path | None, select: str, rounds: int) -> None:
    rows: list[Row] = []
    with threadpool_limits(1):
        for solver in (*RIVALS, Auto()):
            solver.warm_up()
        for label, problem in instances(data_dir, select):
            problem.warm_up()
            rows += measured(label, problem, rounds)
    click.echo(table(rows))
    factors = [row.factor for row in rows]
    if factors:
        above = sum(factor > 1.5 for factor in factors)
        click.echo(f"\nfactor: median {statistics.median(factors):.2f}, largest {max(factors):.2f}, above 1.5: {above} of {len(factors)}")


if __name__ == "__main__":
    main()
