"""What `auto` costs beside the best of the solvers that it could have picked: `python -m benchmarks.auto`.

Every instance is solved to every target by each solver alone and by `auto`, in one process on one thread. The factor is the time of `auto`
over the shortest of the others, of as many repeats as are asked for, the fastest each. Some minutes; real data are skipped by name where
their folder is absent.
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
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.auto import Auto
from bench_mtl.solvers.interior_point import InteriorPoint
from bench_mtl.solvers.pdhg import PDHG
from bench_mtl.solvers.working_set import WorkingSet

SUITES = ("headline-hinge", "headline-hinge-real")
TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
RIVALS: tuple[Solver, ...] = (PDHG(), InteriorPoint(), WorkingSet())
#: A rival that takes longer than this, in seconds, or than this multiple of the best, is not waited for.
LIMIT, PATIENCE = 30.0, 2.0

_SYNTHETIC = {"name": "synthetic_l1inf"}

#: Instances outside the headline suites, none of which the constants of `auto` were chosen on.
OTHERS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("synthetic, d=1000 m=10 n=50", {**_SYNTHETIC, "tasks": 10, "features": 1000, "examples": 50}, {"radius": "truth"}),
    ("synthetic, d=50 m=200 n=30", {**_SYNTHETIC, "tasks": 200, "features": 50, "examples": 30}, {"radius": "truth"}),
    ("synthetic, d=400 m=5 n=400", {**_SYNTHETIC, "tasks": 5, "features": 400, "examples": 400}, {"radius": 20.0}),
    ("synthetic, d=100 m=20 n=100, penalty 5 %", {**_SYNTHETIC, "tasks": 20, "features": 100, "examples": 100}, {"penalty": "0.05 max"}),
    ("synthetic, d=100 m=20 n=100, penalty 30 %", {**_SYNTHETIC, "tasks": 20, "features": 100, "examples": 100}, {"penalty": "0.3 max"}),
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
)


class Row(NamedTuple):
    """Seconds of the rivals by their names, and of `auto`, infinite where the target was not met."""

    instance: str
    target: float
    rivals: dict[str, float]
    auto: float

    @property
    def factor(self) -> float:
        return self.auto / min(self.rivals.values())


def instances(data_dir: Path | None) -> Iterator[tuple[str, Problem]]:
    """The problems of the headline suites, then the others; those whose data are absent are named and left out."""
    registry = load_registry()
    chosen: list[tuple[str, Callable[[], Problem]]] = []
    for name in SUITES:
        found = {case.instance.label: case.instance for case in expand(read_suite(name), registry)}
        chosen += [(label, partial(instance.build, registry, data_dir)) for label, instance in found.items()]
    chosen += [(label, partial(_built, data, parameters, data_dir)) for label, data, parameters in OTHERS]
    for label, build in chosen:
        try:
            problem = build()
        except InputError as error:
            click.echo(f"left out: {label}: {error}", err=True)
            continue
        yield label, problem


def _built(data: dict[str, Any], parameters: dict[str, Any], data_dir: Path | None) -> Problem:
    return L1InfHinge(load(data, data_dir=data_dir), **parameters)


def seconds(problem: Problem, solver: Solver, target: float, limit: float, repeats: int) -> float:
    """Return the shortest time to a proven gap of `target`, infinite where the limit comes first."""
    best = math.inf
    for _ in range(repeats):
        record = run(problem, solver, tolerance=Tolerance(target), limits=Limits(seconds=min(limit, PATIENCE * best)), warmed=True)
        if record.best is not None and record.status == "verified":
            best = min(best, record.samples[-1].seconds)
        else:
            break
    return best


def measured(label: str, problem: Problem, repeats: int) -> Iterator[Row]:
    for target in TARGETS:
        times: dict[str, float] = {}
        for solver in reversed(RIVALS):
            if solver.incompatibility(problem) is None:
                limit = min(LIMIT, PATIENCE * min(times.values(), default=LIMIT))
                times[solver.name] = seconds(problem, solver, target, limit, repeats)
        if any(map(math.isfinite, times.values())):
            yield Row(label, target, times, seconds(problem, Auto(), target, LIMIT, repeats))


def table(rows: list[Row]) -> str:
    """A line an instance and target: the factor, the seconds of `auto`, those of each rival."""
    names = [solver.name for solver in RIVALS]

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
@click.option("--repeats", default=2, type=click.IntRange(min=1))
def main(data_dir: Path | None, select: str, repeats: int) -> None:
    rows: list[Row] = []
    with threadpool_limits(1):
        for solver in (*RIVALS, Auto()):
            solver.warm_up()
        for label, problem in instances(data_dir):
            if select.lower() in label.lower():
                problem.warm_up()
                rows += measured(label, problem, repeats)
    click.echo(table(rows))
    factors = [row.factor for row in rows]
    if factors:
        above = sum(factor > 1.5 for factor in factors)
        click.echo(f"\nfactor: median {statistics.median(factors):.2f}, largest {max(factors):.2f}, above 1.5: {above} of {len(factors)}")


if __name__ == "__main__":
    main()
