"""How long a proven gap takes on an accelerator, beside this machine's processors: `python -m benchmarks.accelerator`.

It prints one Markdown table: problems of one dense design for all tasks under an l1,inf constraint, each to three proven gaps, on the first
GPU that JAX knows, in first-order and interior-point steps, and by `auto` on all cores. A time on the device is apart in three: moving the
data there, the loop, and the proof on the host, which are all on the clock of a run; compiling is not. Without a GPU one line says so, and
small sizes run on JAX's processor back end: these times say nothing about a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import click
import numpy as np
from tabulate import tabulate

from bench_mtl.core.types import Record, Status
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.model.protocols import IterativeSolver, Problem
from bench_mtl.problems.l1inf_glm import L1InfGLM
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.solvers.accelerator import AcceleratorGradient, AcceleratorInteriorPoint, AcceleratorPDHG, device
from bench_mtl.solvers.accelerator.solver import AcceleratorSolver
from bench_mtl.solvers.auto import Auto

#: Examples, features and tasks.
LARGE = ((4_000, 300, 30), (20_000, 500, 40), (100_000, 2_000, 64))
SMALL = ((500, 60, 6), (2_000, 200, 20))
LOSSES = ("hinge", "squared", "logistic")
GAPS = (1e-2, 1e-4, 1e-6)
HEADERS = ("loss", "examples x features x tasks", "solver", "gap", "seconds", "move", "loop", "proof", "steps", "ms a step", "passes, GB/s")


def problem_of(loss: str, n: int, d: int, m: int) -> Problem:
    """Return a problem whose true W has a tenth of its rows, in a ball of half its norm."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, m)) * (rng.random((d, 1)) < 0.1) / np.sqrt(0.1 * d)
    scores = X @ W + 0.3 * rng.standard_normal((n, m))
    radius = 0.5 * float(np.abs(W).max(axis=1).sum())
    if loss == "hinge":
        return L1InfHinge(TaskData.shared(X, np.where(scores < 0.0, -1.0, 1.0)), radius=radius)
    targets = scores if loss == "squared" else np.where(scores < 0.0, -1.0, 1.0)
    return L1InfGLM(TaskData.shared(X, targets), loss=loss, radius=radius)


def moving_seconds(problem: Problem, where: str) -> float:
    """Return how long the matrix takes to the device."""
    target = device.first_device(where)
    started = perf_counter()
    device.put(problem.design.block(0), target).block_until_ready()  # type: ignore[attr-defined]
    return perf_counter() - started


def line_of(record: Record, problem: Problem, solver: IterativeSolver, moving: float) -> tuple[Any, ...]:
    """Return what a row says of a run, after its loss, sizes, solver and gap."""
    if record.status is not Status.VERIFIED:
        return f"not in {record.times.solve:.0f} s: {record.reason}", *[None] * 6
    steps, seconds, proof = record.samples[-1].step, record.times.solve, record.times.test
    if not isinstance(solver, AcceleratorSolver):
        return seconds, None, None, proof, steps, None, None
    loop = max(seconds - proof - moving, 0.0)
    read = 2e-9 * problem.design.block(0).nbytes * steps  # type: ignore[attr-defined] # a first-order step is two passes
    rate = None if isinstance(solver, AcceleratorInteriorPoint) or loop == 0.0 else read / loop
    return seconds, moving, loop, proof, steps, 1e3 * loop / steps, rate


def rows(losses: Sequence[str], sizes: Sequence[tuple[int, int, int]], where: str, seconds: float) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table, as they are measured; of a solver that does not come to a gap none of smaller ones."""
    for loss in losses:
        for size in sizes:
            problem = problem_of(loss, *size)
            kind = AcceleratorPDHG if loss == "hinge" else AcceleratorGradient
            contestants: list[IterativeSolver] = [kind(device=where), AcceleratorInteriorPoint(device=where), Auto()]
            moving_seconds(problem, where)  # the first move wakes the device up
            moving = moving_seconds(problem, where)
            for solver in contestants:
                solver.warm_up()
                measured = partial(run, problem, solver, limits=seconds)
                if isinstance(solver, AcceleratorSolver):
                    measured(tolerance=GAPS[0])  # compiles
                for gap in GAPS:
                    record = measured(tolerance=gap)
                    line = line_of(record, problem, solver, moving)
                    yield loss, " x ".join(f"{number:,}" for number in size), solver.label, f"{gap:g}", *line
                    if record.status is not Status.VERIFIED:
                        break


@click.command(help=__doc__)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Limit of a run.")
@click.option("--small", is_flag=True, help="Small sizes on the GPU too.")
@click.option("--loss", "losses", type=click.Choice(LOSSES), multiple=True, default=LOSSES, help="One alone; repeatable.")
def main(seconds: float, small: bool, losses: tuple[str, ...]) -> None:
    """Print the table."""
    reason = device.obstacle("gpu")
    where = "cpu" if reason else "gpu"
    if (missing := device.obstacle(where)) is not None:
        raise click.ClickException(f"the accelerator {missing}")
    if reason is not None:
        click.echo(f"No GPU: the accelerator {reason}. Small sizes run on JAX's processor back end.\n")
    click.echo(f"Device: {device.first_device(where).device_kind}, {device.version()}.\n")
    sizes = SMALL if small or reason is not None else LARGE
    click.echo(tabulate(list(rows(losses, sizes, where, seconds)), HEADERS, tablefmt="github", floatfmt=".3g", missingval=""))


if __name__ == "__main__":
    main()
