"""`bench-mtl export`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import say


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Output folder; FOLDER/export by default.")
def export(folder: Path, form: str, out: Path | None) -> None:
    """Write the results in FOLDER as tables for other programs: runs, samples, measures, environments, patterns of solutions.

    \b
    Examples:
      bench-mtl export results/quick
      bench-mtl export results/quick --format csv --out tables
    """
    from bench_mtl.results.export import export as write

    for path, rows in write(folder, form, out).items():
        say(f"{path}: {rows} {'row' if rows == 1 else 'rows'}")
