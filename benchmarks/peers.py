"""Each of our solvers beside each peer on the suite `headline-peers`, in one process and in turn: `python -m benchmarks.peers`.

A figure is the median over the rounds of the seconds until a gap was proven: of a peer those of the cheapest tolerance that proves it,
its matrix laid out and its code compiled before. The ratio of a solver is its figure over that of the fastest of ours on the same instance:
below 1 where a peer is ahead. Whoever does not get there within the limit has none, and is not waited for in later rounds. Real data are
left out by name where their folder is absent. About a quarter of an hour.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from pathlib import Path

import click
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import PEER_PREFIX, Limits, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.model.protocols import Problem, Solver

SUITE = "headline-peers"
GAPS = (1e-4, 1e-6, 1e-8)

Times = dict[str, dict[float, float]]
"""Seconds by label of solver and gap, infinite where the gap was not proven."""


def instances(data_dir: Path | None) -> Iterator[tuple[str, Problem, list[tuple[Case, Solver]]]]:
    """The problems of the suite with the solvers that take them; those whose data are absent are named and left out."""
    registry = load_registry()
    cases: dict[str, list[Case]] = {}
    for case in expand(read_suite(SUITE), registry):
        cases.setdefault(case.instance.label, []).append(case)
    for label, of_label in cases.items():
        try:
            problem = of_label[0].instance.build(registry, data_dir)
        except InputError as error:
            click.echo(f"left out: {label}: {error}", err=True)
            continue
        solvers = [(case, registry.solver(case.solver, case.options)) for case in of_label]
        yield label, problem, [(case, solver) for case, solver in solvers if solver.incompatibility(problem) is None]


def seconds(problem: Problem, solver: Solver, limit: float) -> dict[float, float]:
    """Return the seconds until each gap was proven, in one run."""
    record = run(problem, solver, tolerance=Tolerance(min(GAPS)), limits=Limits(seconds=limit))
    return {
        gap: min((sample.seconds for sample in record.samples if sample.certificate.relative_gap <= gap), default=math.inf) for gap in GAPS
    }


def measured(problem: Problem, solvers: list[Solver], rounds: int, limit: float) -> Times:
    """Return the medians over rounds in which all solvers have their turn; a first round, which is not counted, warms up."""
    times: dict[str, dict[float, list[float]]] = {solver.label: {gap: [] for gap in GAPS} for solver in solvers}
    waited = list(solvers)
    for number in range(rounds + 1):
        for solver in list(waited):
            found = seconds(problem, solver, limit)
            if not math.isfinite(found[min(GAPS)]):
                waited.remove(solver)
            if number or solver not in waited:
                for gap in GAPS:
                    times[solver.label][gap].append(found[gap])
    return {label: {gap: statistics.median(samples) for gap, samples in of.items()} for label, of in times.items()}


def rows_of(label: str, times: Times, peers: set[str]) -> Iterator[list[str]]:
    """A line a gap and solver: its seconds, and their ratio to those of the fastest of ours."""
    for gap in GAPS:
        best = min((of[gap] for name, of in times.items() if name not in peers), default=math.inf)
        for name, of in times.items():
            if math.isfinite(of[gap]):
                ratio = f"{of[gap] / best:.2f}" if math.isfinite(best) else "-"
                yield [label, f"{gap:g}", name, "peer" if name in peers else "ours", f"{of[gap]:.3g}", ratio]


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), envvar="BENCH_MTL_DATA")
@click.option("--select", default="", help="Only instances with this in their name.")
@click.option("--rounds", default=5, type=click.IntRange(min=1))
@click.option("--limit", default=8.0, help="Seconds of a run, of a peer for each tolerance.")
def main(data_dir: Path | None, select: str, rounds: int, limit: float) -> None:
    rows: list[list[str]] = []
    lead: dict[float, list[float]] = {gap: [] for gap in GAPS}
    with threadpool_limits(1):
        for label, problem, chosen in instances(data_dir):
            if select.lower() not in label.lower():
                continue
            problem.warm_up()
            for _, solver in chosen:
                solver.warm_up()
            peers = {solver.label for case, solver in chosen if case.solver.startswith(PEER_PREFIX)}
            times = measured(problem, [solver for _, solver in chosen], rounds, limit)
            rows += rows_of(label, times, peers)
            for gap in GAPS:
                ours = min((of[gap] for name, of in times.items() if name not in peers), default=math.inf)
                theirs = min((of[gap] for name, of in times.items() if name in peers), default=math.inf)
                if math.isfinite(ours) and math.isfinite(theirs):
                    lead[gap].append(ours / theirs)
    click.echo(tabulate(rows, ["instance", "gap", "solver", "kind", "seconds", "ratio"], tablefmt="github", disable_numparse=True))
    for gap, ratios in lead.items():
        if ratios:
            mean = statistics.geometric_mean(ratios)
            click.echo(
                f"\nto {gap:g}: fastest of ours over fastest peer: geometric mean {mean:.2f}, largest {max(ratios):.2f}, of {len(ratios)}"
            )


if __name__ == "__main__":
    main()
