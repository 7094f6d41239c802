"""Run the benchmarks, print the bars, and write everything to a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.engine.environment import describe_environment
from benchmarks.bars import Bar, bars, resources
from benchmarks.grids import FAMILIES, GRIDS
from benchmarks.timing import Measured, measured


@click.command(help=__doc__)
@click.option("--grid", type=click.Choice(list(GRIDS)), default="full", show_default=True, help="quick takes under a minute.")
@click.option("--only", type=click.Choice(list(FAMILIES)), multiple=True, help="One family of projections; repeatable. All by default.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/bench"), show_default=True, help="The folder to write to.")
def main(grid: str, only: tuple[str, ...], out: Path) -> None:
    cells: list[Measured] = []
    with threadpool_limits(1):  # BLAS and LAPACK
        for family in only or FAMILIES:
            cells.extend(measured(FAMILIES[family](GRIDS[grid]), GRIDS[grid].effort, click.echo))
        found = [*bars(cells), *(resources() if not only else ())]
    write(out, grid, cells, found)
    click.echo("\n" + bar_table(found, "simple"))
    click.echo(f"\nwritten: {out / 'bench.json'}, {out / 'bench.md'}")


def write(folder: Path, grid: str, cells: Sequence[Measured], found: Sequence[Bar]) -> None:
    """bench.json with everything, bench.md with tables to read."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = describe_environment(threads=1)
    result: dict[str, Any] = {
        "grid": grid,
        "environment": environment,
        "unit": "seconds a call",
        "bars": [bar.as_table() for bar in found],
        "cells": [cell.as_table() for cell in cells],
    }
    (folder / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    machine = f"{environment['processor']}, {environment['logical_cores']} logical cores, Python {environment['python']}, " + ", ".join(
        f"{name} {environment['packages'][name]}" for name in ("numpy", "scipy", "numba")
    )
    tables = [f"## {family}\n\n{time_table([cell for cell in cells if cell.family == family])}" for family in FAMILIES]
    heading = f"# Benchmarks of the projections\n\nGrid {grid}. {machine}. Times are milliseconds a call, of the\n"
    heading += "calling thread on a processor, of the fastest repeat.\n"
    (folder / "bench.md").write_text("\n".join([heading, bar_table(found, "github"), "", "\n\n".join(tables), ""]), encoding="utf-8")


def bar_table(found: Sequence[Bar], style: str) -> str:
    verdict = {True: "met", False: "NOT MET", None: "-"}
    rows = [(bar.name, _number(bar.value), _limit(bar), verdict[bar.met], bar.detail) for bar in found]
    return tabulate(rows, headers=["bar", "figure", "limit", "", "worst cell"], tablefmt=style, disable_numparse=True)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3g}"


def _limit(bar: Bar) -> str:
    return "" if bar.limit is None else f"{'>=' if bar.at_least else '<='} {bar.limit:g}"


def time_table(cells: Sequence[Measured]) -> str:
    if not cells:
        return "Not run."
    names = list(cells[0].times)
    rows = [
        [" x ".join(map(str, cell.shape)), cell.data, f"{cell.ratio:g}", *(f"{1e3 * cell.times[name].cpu:.3g}" for name in names)]
        for cell in cells
    ]
    return tabulate(rows, headers=["size", "data", "C/norm", *names], tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
