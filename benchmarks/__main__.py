"""Run the benchmarks, print the bars, and write everything to a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from tabulate import tabulate
from threadpoolctl import threadpool_limits

from bench_mtl.engine.environment import describe_environment
from benchmarks.grids import FAMILIES, GRIDS, bars, resources
from benchmarks.timing import Bar, Cell, bar_table


@click.command(help=__doc__)
@click.option("--grid", type=click.Choice(list(GRIDS)), default="full", show_default=True, help="quick takes under a minute.")
@click.option("--only", type=click.Choice(list(FAMILIES)), multiple=True, help="One family of projections; repeatable. All by default.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/bench"), show_default=True, help="The folder to write to.")
def main(grid: str, only: tuple[str, ...], out: Path) -> None:
    cells: list[Cell] = []
    with threadpool_limits(1):  # BLAS and LAPACK
        for family in only or FAMILIES:
            for cell in FAMILIES[family](GRIDS[grid]):
                cells.append(cell)
                times = "  ".join(f"{name} {1e3 * timing.cpu:.3g}" for name, timing in cell.times.items())
                click.echo(f"{family:6} {cell!s:44} {times} ms")
        limited = [*bars(cells), *(resources() if not only else ())]
    write(out, grid, cells, limited)
    click.echo("\n" + bar_table(limited, "simple"))
    click.echo(f"\nwritten: {out / 'bench.json'}, {out / 'bench.md'}")


def write(folder: Path, grid: str, cells: Sequence[Cell], limited: Sequence[Bar]) -> None:
    """bench.json with everything, bench.md with tables to read."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = describe_environment(threads=1)
    result = {"grid": grid, "environment": environment, "unit": "seconds a call", "bars": [bar.as_table() for bar in limited]}
    result["cells"] = [asdict(cell) for cell in cells]
    (folder / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    packages = ", ".join(f"{name} {environment['packages'][name]}" for name in ("numpy", "scipy", "numba"))
    machine = f"{environment['processor']}, {environment['logical_cores']} logical cores, Python {environment['python']}, {packages}"
    heading = f"# Benchmarks of the projections\n\nGrid {grid}. {machine}. Times are milliseconds a call, of the\n"
    heading += "calling thread on a processor, of the fastest repeat.\n"
    tables = [f"## {family}\n\n{time_table([cell for cell in cells if cell.family == family])}" for family in FAMILIES]
    (folder / "bench.md").write_text("\n".join([heading, bar_table(limited, "github"), "", "\n\n".join(tables), ""]), encoding="utf-8")


def time_table(cells: Sequence[Cell]) -> str:
    if not cells:
        return "Not run."
    rows = [
        [" x ".join(map(str, cell.shape)), cell.data, f"{cell.ratio:g}", *(f"{1e3 * timing.cpu:.3g}" for timing in cell.times.values())]
        for cell in cells
    ]
    return tabulate(rows, headers=["size", "data", "C/norm", *cells[0].times], tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
