"""`bench-mtl report`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.console import say, warn
from bench_mtl.cli.options import EXIT_FAILED

if TYPE_CHECKING:
    from bench_mtl.core.types import Status
    from bench_mtl.report import View


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to; FOLDER itself by default.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="md|html|csv|tex|parquet|svg|pdf|png",
    help="Repeatable; all of them by default. csv, tex and parquet are of tables, svg, pdf and png of figures.",
)
@click.option("--target", "targets", type=float, multiple=True, help="Relative gap to report on instead of the suite's. Repeatable.")
@click.option("--baseline", metavar="SOLVER", help="Label of the solver that speed-ups are against; the fastest generic one by default.")
@click.option(
    "--select",
    multiple=True,
    metavar="KEY=PATTERN",
    help="Only runs whose problem, family, solver, seed or repetition is like PATTERN (with * and ?). Repeatable.",
)
def report(
    folder: Path, out: Path | None, formats: tuple[str, ...], targets: tuple[float, ...], baseline: str | None, select: tuple[str, ...]
) -> int:
    """Write the report of the results in FOLDER: report.html, report.md, tables/, figures/.

    FOLDER may also hold a paper's experiment (`bench-mtl paper`), whose report has no option but --format (md, csv, svg, png).

    The results may be unfinished, or merged from several machines; of each machine's problems the times are kept apart.

    \b
    Examples:
      bench-mtl report results/quick
      bench-mtl report results/quick --format html --out ~/talk
      bench-mtl report results/quick --target 1e-3 --baseline scs --select 'problem=hinge*' --select solver=pdhg --select solver=scs
    """
    from bench_mtl.papers.store import experiment_in
    from bench_mtl.report import View

    name = experiment_in(folder)
    if name is not None:
        return _paper_report(folder, name, formats, chose=out is not None or any((targets, baseline, select)))
    return written_report(folder, out=out, view=View(targets, baseline, select), formats=formats)


def _paper_report(folder: Path, name: str, formats: tuple[str, ...], *, chose: bool) -> int:
    """Write the report of a paper's experiment again from its rows."""
    from bench_mtl.core.errors import InputError
    from bench_mtl.papers import rewrite_paper_report

    if chose:
        raise InputError(f"{folder} holds the cells of a paper's experiment, '{name}': its report has no option but --format")
    path, statuses = rewrite_paper_report(folder, name, formats)
    say(f"report: {path}")
    return exit_code_of(statuses)


def written_report(folder: Path, *, out: Path | None = None, view: View | None = None, formats: tuple[str, ...] = ()) -> int:
    """Write the report, print it in short, and return the exit code."""
    from bench_mtl.core.threads import available_processors
    from bench_mtl.report import write_and_sum_up

    written = write_and_sum_up(folder, out=out, view=view, formats=formats, processes=available_processors())
    say()
    say(written.summary)
    say(f"\nreport: {', '.join(map(str, written.paths))}")
    for contradiction in written.contradictions:
        warn(contradiction)
    code = exit_code_of(written.statuses)
    return EXIT_FAILED if written.contradictions else code


def exit_code_of(statuses: Collection[Status]) -> int:
    """Return the exit code for runs that ended so, and say how many failed."""
    failed = sum(status.is_failure for status in statuses)
    if failed:
        say(f"{failed} of {len(statuses)} runs failed (wrong, crashed or error); the report says why", error=True)
    return EXIT_FAILED if failed else 0
