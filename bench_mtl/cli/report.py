"""`bench-mtl report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli.console import answer_json, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_BAD_INPUT, EXIT_FAILED, fail, json_option, repeatable
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.files import is_file
from bench_mtl.core.text import LONGEST_LINE, one_line

if TYPE_CHECKING:
    from bench_mtl.core.types import Status
    from bench_mtl.report import View
    from bench_mtl.report.check import Fault
    from bench_mtl.report.write import Written


class _Reports(click.Group):
    """Where no command of its own is named, `write` is meant, or `check` or `index` by an option of that name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] not in [[name] for name in (*self.commands, *self.get_help_option_names(ctx))]:
            name = next((name for name in ("check", "index") if f"--{name}" in args), "write")
            args = [name, *(word for word in args if word != f"--{name}")]
        return super().parse_args(ctx, args)


@click.group(cls=_Reports)
def report() -> None:
    """Write reports of results, and check those that are written.

    `report FOLDER` and its options are those of `report write FOLDER`; --check and --index are short for the other two.

    \b
    Examples:
      bench-mtl report results/quick
      bench-mtl report results/quick --format html --out ~/talk
      bench-mtl report results/quick --target 1e-3 --baseline scs --select 'problem=hinge*' --select solver=pdhg --select solver=scs
      bench-mtl report check results/quick
      bench-mtl report index reports
    """


@report.command()
@click.argument("folder", type=A_PATH)
@click.option("--out", type=A_PATH, help="Where to; FOLDER itself by default.")
@click.option(
    "--format", "formats", multiple=True, metavar="md|html|csv|tex|parquet|svg|pdf|png|cover",
    help="Repeatable; all but cover by default. csv, tex and parquet are of tables, svg, pdf and png of figures, cover is the first alone.",
)  # fmt: skip
@click.option("--target", "targets", type=float, multiple=True, help="Relative gap to report on instead of the suite's. Repeatable.")
@click.option("--baseline", metavar="SOLVER", help="Label of the solver that speed-ups are against; the fastest generic one by default.")
@repeatable("--select", "KEY=PATTERN", "Only runs whose problem, family, solver, seed, repetition or data is like PATTERN (with * and ?).")
@json_option
def write(
    folder: Path, out: Path | None, formats: tuple[str, ...], targets: tuple[float, ...], baseline: str | None, select: tuple[str, ...]
) -> int:
    """Write the report of the results in FOLDER: report.html, report.md, tables/, figures/.

    With --format cover report.md shows its first figure alone, cover.svg, and names the others.

    The results may be unfinished, or merged from several machines; times of each machine are separate.
    """
    from bench_mtl.report import View
    from bench_mtl.results.database import FILE_NAME

    if inner := sorted(folder.glob(f"*/{FILE_NAME}")) if not is_file("folder", folder / FILE_NAME) else []:
        each = f"give one of them, such as {inner[0].parent}; --check checks the reports in them, and --index lists them"
        raise InputError(f"{folder} holds {plural(len(inner), 'folder')} of results, and none itself: {each}")
    written = said_report(folder, out=out, view=View(targets, baseline, select), formats=formats)
    document = {"folder": folder, "report": written.paths, "statuses": Counter(written.statuses), "contradictions": written.contradictions}
    answer_json(lambda: document)
    return exit_code_of(written.statuses, written.contradictions)


@report.command()
@click.argument("folder", type=A_PATH)
@json_option
def check(folder: Path) -> int:
    """Make report.md in FOLDER again from the rows, write nothing, and name the lines that differ.

    FOLDER holds a report, or reports in folders of their own with README.md, a list of them.
    """
    from bench_mtl.report.check import check_report, suite_report
    from bench_mtl.report.index import INDEX, index_faults
    from bench_mtl.results.database import FILE_NAME

    is_one = is_file("folder", folder / FILE_NAME) or not is_file("folder", folder / INDEX)
    codes: list[int] = []
    reports: list[dict[str, Any]] = []
    for each in [folder] if is_one else sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}")):
        faults: list[Fault] = []
        lines, error = 0, ""
        try:
            faults, lines = check_report(each, suite_report)
        except InputError as cannot:
            error = str(cannot)
            codes.append(fail(error, EXIT_BAD_INPUT))
        else:
            codes.append(_said(faults, each, f" in {plural(lines, 'line')}"))
        reports.append({"folder": each, "lines": lines, "faults": faults, "error": error or None})
    listing: dict[str, Any] | None = None if is_one else {"file": folder / INDEX, "faults": list(index_faults(folder))}
    if listing is not None:
        codes.append(_said(listing["faults"], listing["file"]))
    answer_json(lambda: {"reports": reports, "index": listing})
    return max(codes)


def _said(faults: Collection[Fault], where: Path, of: str = "") -> int:
    """Say each fault in a line that begins with its file and line, as editors read it, and how many there are; return the exit code."""
    for fault in faults:
        say(one_line(str(fault), LONGEST_LINE), error=True)
    say(f"{where}: {plural(len(faults), 'fault')}{of}")
    return EXIT_FAILED if faults else 0


@report.command()
@click.argument("folder", type=A_PATH)
@json_option
def index(folder: Path) -> None:
    """Write the numbers in FOLDER/README.md, which lists the reports in FOLDER, from their rows."""
    from bench_mtl.report.index import write_index

    written = write_index(folder)
    say(f"index: {written}")
    answer_json(lambda: {"index": written})


def said_report(folder: Path, *, out: Path | None = None, view: View | None = None, formats: tuple[str, ...] = ()) -> Written:
    """Write the report, and print it in short."""
    from bench_mtl.core.threads import available_processors
    from bench_mtl.report import write_and_sum_up

    written = write_and_sum_up(folder, out=out, view=view, formats=formats, processes=available_processors())
    say(f"\n{written.summary}")
    say(f"\nreport: {', '.join(map(str, written.paths))}")
    for contradiction in written.contradictions:
        warn(contradiction)
    return written


def exit_code_of(statuses: Collection[Status], contradictions: Iterable[str] = ()) -> int:
    """Return the exit code for runs that ended so, and say how many failed, or that none was of a solver that fits."""
    failed, skipped = sum(status.is_failure for status in statuses), sum(status == "skipped" for status in statuses)
    is_unfit = 0 < skipped == len(statuses)
    if failed:
        say(f"{failed} of {len(statuses)} runs failed (wrong, crashed or error); the report says why", error=True)
    elif is_unfit:
        say(f"no solver fits its problem: {'the run was' if skipped == 1 else f'all {skipped} runs were'} skipped", error=True)
    return EXIT_FAILED if failed or is_unfit or any(contradictions) else 0
