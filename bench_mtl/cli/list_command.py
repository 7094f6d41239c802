"""`bench-mtl list`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import answer, answer_json
from bench_mtl.cli.options import NearChoice, data_dir_option, json_option, plugins_option


@click.command("list")
@click.argument("what", type=NearChoice(["problems", "solvers", "suites", "data"]))
@data_dir_option
@plugins_option
@json_option
def list_(what: str, data_dir: Path | None, plugins: Path | None) -> None:
    """List what there is: problems, solvers, suites or data.

    Exit code 0: listed; 2: bad usage or input; 4: a bug of bench-mtl.

    \b
    Examples:
      bench-mtl list solvers
      bench-mtl list data --data-dir ~/data
    """
    from bench_mtl.cli import listing

    rows = listing.found(what, data_dir=data_dir, plugins=plugins)
    answer(listing.render(what, rows, data_dir=data_dir))
    answer_json(lambda: {what: rows})
