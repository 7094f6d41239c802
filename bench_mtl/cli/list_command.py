"""`bench-mtl list`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.console import say
from bench_mtl.cli.options import data_dir_option, plugins_option


@click.command("list")
@click.argument("what", type=click.Choice(["problems", "solvers", "suites", "papers", "data"]))
@data_dir_option
@plugins_option
def list_(what: str, data_dir: Path | None, plugins: Path | None) -> None:
    """List what there is: problems, solvers, suites, experiments of papers, or data.

    \b
    Examples:
      bench-mtl list solvers
      bench-mtl list data --data-dir ~/data
    """
    from bench_mtl.cli import listing

    say(listing.render(what, data_dir=data_dir, plugins=plugins))
