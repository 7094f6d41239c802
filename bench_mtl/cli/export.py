"""`bench-mtl export`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer_json, say
from bench_mtl.cli.options import A_PATH, NearChoice, json_option


@click.command()
@click.argument("folder", type=A_PATH)
@click.option("--format", "form", type=NearChoice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--out", type=A_PATH, help="Output folder; FOLDER/export by default.")
@json_option
def export(folder: Path, form: str, out: Path | None) -> None:
    """Write the results in FOLDER as tables for other programs: runs, samples, measures, environments, patterns of solutions.

    Exit code 0: written; 2: bad usage or input; 3: the disk is full; 4: a bug of bench-mtl.

    \b
    Examples:
      bench-mtl export results/quick
      bench-mtl export results/quick --format csv --out tables
    """
    from bench_mtl.results.export import export as write

    written = write(folder, form, out)
    for path, rows in written.items():
        say(f"{path}: {rows} {'row' if rows == 1 else 'rows'}")
    answer_json(lambda: {"files": [{"path": path, "rows": rows} for path, rows in written.items()]})
