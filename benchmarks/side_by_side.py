"""The solvers of a suite in one process and in turn, to every target: `python -m benchmarks.side_by_side SUITE`.

What is compared runs right after one another, so that a slow moment of the machine meets all. A figure is the median over the rounds of the
seconds until the target was proven: of a solver that is asked for a tolerance, those of its cheapest one that proves it. After the first
round, which warms up, whoever took over `--patience` times as long as the fastest, or proved nothing within the limit of the suite, is not
run again: the figure is that of this round. The ratio is over the fastest of the others. Data that are absent are named and left out.

`--waits` shows instead what a user waits for in a warm process, and what of it the solver alone takes: the rest are stopping tests, proofs
and the driver. Figures are medians over the rounds, of problems that remember nothing from the round before.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter
from typing import NamedTuple

import click
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.forgetting import forget_cached
from bench_mtl.core.types import PEER_PREFIX, Record, Tolerance
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, expand
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.model.protocols import Problem, Solver

HEADS = ["instance", "gap", "solver", "seconds", "ratio"]
HEADS_OF_WAITS = [*HEADS[:3], "wait, ms", "solver alone, ms", "tests, ms", "tests made", "wait / alone", "wait - alone, ms", "proven"]


class Contest(NamedTuple):
    """Seconds to one target of one instance by label of solver, infinite where it was not proven."""

    instance: str
    target: float
    seconds: dict[str, float]

    def ratio(self, label: str) -> float:
        others = min((value for name, value in self.seconds.items() if name != label), default=math.inf)
        return self.seconds[label] / others if math.isfinite(others) else math.nan

    def lead(self, peers: set[str]) -> float:
        """Return the seconds of the fastest peer over those of the fastest of ours; NaN where neither gets there or one did not run."""
        ours = min((value for name, value in self.seconds.items() if name not in peers), default=math.nan)
        theirs = min((value for name, value in self.seconds.items() if name in peers), default=math.nan)
        return theirs / ours


class Entrant(NamedTuple):
    """A solver on an instance, to one target."""

    case: Case
    solver: Solver

    def record(self, problem: Problem, target: float) -> Record:
        return run(problem, self.solver, tolerance=Tolerance(target), limits=self.case.limits)

    def seconds(self, problem: Problem, target: float) -> float:
        forget_cached(problem)  # for each run to compute
        proven = (sample.seconds for sample in self.record(problem, target).samples if sample.certificate.relative_gap <= target)
        return min(proven, default=math.inf)


def instances(suite: str, select: str, data_dir: Path | None) -> Iterator[tuple[str, Problem, list[Entrant]]]:
    """Yield every instance with the solvers that take it."""
    registry = load_registry()
    cases: dict[str, dict[str, Case]] = {}
    for case in expand(replace(read_suite(suite), curves=False), registry):
        label = case.instance.label + ("" if case.instance.seed is None else f" seed {case.instance.seed}")
        if select.lower() in label.lower():
            cases.setdefault(label, {}).setdefault(case.solver_label, case)
    for label, by_solver in cases.items():
        try:
            problem = next(iter(by_solver.values())).instance.build(registry, data_dir)
        except InputError as error:
            click.echo(f"left out: {label}: {error}", err=True)
            continue
        entrants = [Entrant(case, registry.solver(case.solver, case.options)) for case in by_solver.values()]
        yield label, problem, [entrant for entrant in entrants if entrant.solver.incompatibility(problem) is None]


def contest(label: str, problem: Problem, entrants: list[Entrant], target: float, rounds: int, patience: float) -> Contest:
    first = {entrant.case.solver_label: entrant.seconds(problem, target) for entrant in entrants}
    longest = patience * min(first.values(), default=math.inf)
    waited = [entrant for entrant in entrants if first[entrant.case.solver_label] <= longest < math.inf]
    samples: dict[str, list[float]] = {entrant.case.solver_label: [] for entrant in waited}
    for _ in range(rounds):
        for entrant in waited:
            samples[entrant.case.solver_label].append(entrant.seconds(problem, target))
    return Contest(label, target, first | {name: median(values) for name, values in samples.items()})


def waits(label: str, problem: Problem, entrants: list[Entrant], target: float, rounds: int) -> Iterator[list[str]]:
    """Yield, for every solver, the whole wait and what of it the solver alone takes; two rounds more warm up."""
    runs: dict[str, list[tuple[float, Record]]] = {entrant.case.solver_label: [] for entrant in entrants}
    for _ in range(rounds + 2):
        for entrant in entrants:
            forget_cached(problem)
            gc.collect()
            began = perf_counter()
            record = entrant.record(problem, target)
            runs[entrant.case.solver_label].append((perf_counter() - began, record))
    for name, (_, _, *every) in runs.items():
        wait = 1e3 * median(seconds for seconds, _ in every)
        alone = 1e3 * median(record.times.solve - record.times.test for _, record in every)
        tests, last = 1e3 * median(record.times.test for _, record in every), every[-1][1]
        gap = "none" if last.best is None else f"{last.best.relative_gap:.0e}"
        times = [f"{wait:.1f}", f"{alone:.1f}", f"{tests:.1f}", str(len(last.samples)), f"{wait / alone:.2f}", f"{wait - alone:.1f}"]
        yield [label, f"{target:g}", name, *times, f"{gap}, {last.status}"]


def lines(contests: list[Contest]) -> Iterator[list[str]]:
    for one in contests:
        for name, seconds in sorted(one.seconds.items(), key=lambda item: item[1]):
            yield [
                one.instance,
                f"{one.target:g}",
                name,
                f"{seconds:.3g}" if seconds < math.inf else "not reached",
                f"{one.ratio(name):.2f}",
            ]


def summaries(contests: list[Contest], targets: tuple[float, ...], peers: set[str]) -> Iterator[str]:
    """Yield how long `auto` takes beside the best of the others of ours, and who leads, ours or the peers."""
    ours = [Contest(*one[:2], {name: value for name, value in one.seconds.items() if name not in peers}) for one in contests]
    factors = [factor for one in ours if "auto" in one.seconds and not math.isnan(factor := one.ratio("auto"))]
    if factors:
        yield f"auto over the best of ours: median {median(factors):.2f}, largest {max(factors):.2f}, of {plural(len(factors), 'contest')}"
    for target in targets:
        leads = [lead for one in contests if one.target == target and not math.isnan(lead := one.lead(peers))]
        if both := [lead for lead in leads if 0.0 < lead < math.inf]:
            ahead = f"ours first in {sum(lead >= 1.0 for lead in leads)} of {len(leads)}"
            mean = f"geometric mean {geometric_mean(both):.2f} of {len(both)} that both reach"
            yield f"to {target:g}: fastest peer over ours: {mean}, {ahead}"


@click.command(help=__doc__)
@click.argument("suite")
@click.option("--data-dir", type=click.Path(path_type=Path), envvar="BENCH_MTL_DATA")
@click.option("--select", default="", help="Only instances with this in their name.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--patience", default=4.0, show_default=True, type=click.FloatRange(min=1.0))
@click.option("--waits", "shows_waits", is_flag=True, help="What a user waits for beside what each solver takes alone.")
def main(suite: str, data_dir: Path | None, select: str, rounds: int, patience: float, shows_waits: bool) -> None:
    contests: list[Contest] = []
    waited: list[list[str]] = []
    peers: set[str] = set()
    targets = read_suite(suite).targets
    with threadpool_limits(1):
        for label, problem, entrants in instances(suite, select, data_dir):
            problem.warm_up()
            for entrant in entrants:
                entrant.solver.warm_up()
            peers |= {entrant.case.solver_label for entrant in entrants if entrant.case.solver.startswith(PEER_PREFIX)}
            for target in targets:
                if shows_waits:
                    waited += waits(label, problem, entrants, target, rounds)
                else:
                    contests.append(contest(label, problem, entrants, target, rounds, patience))
    rows, heads = (waited, HEADS_OF_WAITS) if shows_waits else (list(lines(contests)), HEADS)
    click.echo(tabulate(rows, heads, tablefmt="github", disable_numparse=True))
    for sentence in summaries(contests, targets, peers):
        click.echo(f"\n{sentence}")


if __name__ == "__main__":
    main()
