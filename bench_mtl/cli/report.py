"""`bench-mtl report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli.console import answer_json, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_BAD_INPUT, EXIT_FAILED, fail, json_option
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.files import is_file
from bench_mtl.core.text import LONGEST_LINE, one_line

if TYPE_CHECKING:
    from bench_mtl.core.types import Status
    from bench_mtl.report import View
    from bench_mtl.report.check import Fault
    from bench_mtl.report.write import Written


@click.command()
@click.argument("folder", type=A_PATH)
@click.option("--out", type=A_PATH, help="Where to; FOLDER itself by default.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="md|html|csv|tex|parquet|svg|pdf|png|cover",
    help="Repeatable; all but cover by default. csv, tex and parquet are of tables, svg, pdf and png of figures, cover is the first alone.",
)
@click.option("--target", "targets", type=float, multiple=True, help="Relative gap to report on instead of the suite's. Repeatable.")
@click.option("--baseline", metavar="SOLVER", help="Label of the solver that speed-ups are against; the fastest generic one by default.")
@click.option(
    "--select",
    multiple=True,
    metavar="KEY=PATTERN",
    help="Only runs whose problem, family, solver, seed, repetition or data is like PATTERN (with * and ?). Repeatable.",
)
@click.option("--check", is_flag=True, help="Make report.md again from the rows, and name the lines that differ.")
@click.option("--index", is_flag=True, help="Write the numbers in FOLDER/README.md, which lists the reports in FOLDER, from their rows.")
@json_option
def report(
    folder: Path,
    out: Path | None,
    formats: tuple[str, ...],
    targets: tuple[float, ...],
    baseline: str | None,
    select: tuple[str, ...],
    check: bool,
    index: bool,
) -> int:
    """Write the report of the results in FOLDER: report.html, report.md, tables/, figures/.

    With --format cover report.md shows its first figure alone, cover.svg, and names the others.

    With --check nothing is written: FOLDER holds a report, or reports in folders of their own with README.md, a list of them. Exit code 0:
    they are what the rows give; 1: a line is not, each is named with file and line; 2: there is nothing that can be checked.

    The results may be unfinished, or merged from several machines; of each machine's problems the times are kept apart.

    Exit code without --check 0: no reported run is wrong, crashed or error; 1: one is, proven bounds exclude each other, or no solver fits
    its problem; 2: bad usage or input; 4: a bug of bench-mtl; 130: interrupted.

    \b
    Examples:
      bench-mtl report results/quick
      bench-mtl report results/quick --format html --out ~/talk
      bench-mtl report results/quick --target 1e-3 --baseline scs --select 'problem=hinge*' --select solver=pdhg --select solver=scs
      bench-mtl report results/quick --check
    """
    if check or index:
        chose = bool(out is not None or formats or targets or baseline or select) or (check and index)
        return _checked(folder, chose=chose) if check else _written_index(folder, chose=chose)
    from bench_mtl.report import View
    from bench_mtl.results.database import FILE_NAME

    if inner := sorted(folder.glob(f"*/{FILE_NAME}")) if not is_file("folder", folder / FILE_NAME) else []:
        each = f"give one of them, such as {inner[0].parent}, or --check, which checks the reports in them, or --index, which lists them"
        raise InputError(f"{folder} holds {plural(len(inner), 'folder')} of results, and none itself: {each}")
    written = said_report(folder, out=out, view=View(targets, baseline, select), formats=formats)
    answer_json(
        lambda: {
            "folder": folder,
            "report": written.paths,
            "statuses": Counter(written.statuses),
            "contradictions": written.contradictions,
        }
    )
    return exit_code_of_report(written)


def _checked(folder: Path, *, chose: bool) -> int:
    """Check the report in a folder, or all reports in the folders in it and the list of them, and return the exit code."""
    from bench_mtl.report.index import INDEX, index_faults
    from bench_mtl.results.database import FILE_NAME

    if chose:
        raise InputError("--check goes with no other option: it checks the report that is there")
    reports: list[dict[str, Any]] = []
    if is_file("folder", folder / FILE_NAME) or not is_file("folder", folder / INDEX):
        code = _said(folder, reports)
        answer_json(lambda: {"reports": reports, "index": None})
        return code
    codes = [_said(path.parent, reports) for path in sorted(folder.glob(f"*/{FILE_NAME}"))]
    faults = list(index_faults(folder))
    _say_faults(faults)
    say(f"{folder / INDEX}: {plural(len(faults), 'fault')}")
    answer_json(lambda: {"reports": reports, "index": {"file": folder / INDEX, "faults": faults}})
    return max([EXIT_FAILED if faults else 0, *codes])


def _said(folder: Path, reports: list[dict[str, Any]]) -> int:
    """Check one report, say which lines differ or why it cannot be checked, add that to `reports`, and return the exit code."""
    from bench_mtl.report.check import check_report, suite_report

    try:
        faults, lines = check_report(folder, suite_report)
    except InputError as error:
        reports.append({"folder": folder, "lines": 0, "faults": [], "error": str(error)})
        return fail(str(error), EXIT_BAD_INPUT)
    _say_faults(faults)
    say(f"{folder}: {plural(len(faults), 'fault')} in {plural(lines, 'line')}")
    reports.append({"folder": folder, "lines": lines, "faults": faults, "error": None})
    return EXIT_FAILED if faults else 0


def _say_faults(faults: Iterable[Fault]) -> None:
    """Say each fault in a line that begins with its file and line, as editors read it."""
    for fault in faults:
        say(one_line(str(fault), LONGEST_LINE), error=True)


def _written_index(folder: Path, *, chose: bool) -> int:
    """Write the findings in the list of the reports in a folder."""
    from bench_mtl.report.index import write_index

    if chose:
        raise InputError("--index goes with no other option: it writes the findings of all reports in FOLDER")
    written = write_index(folder)
    say(f"index: {written}")
    answer_json(lambda: {"index": written})
    return 0


def said_report(folder: Path, *, out: Path | None = None, view: View | None = None, formats: tuple[str, ...] = ()) -> Written:
    """Write the report, and print it in short."""
    from bench_mtl.core.threads import available_processors
    from bench_mtl.report import write_and_sum_up

    written = write_and_sum_up(folder, out=out, view=view, formats=formats, processes=available_processors())
    say()
    say(written.summary)
    say(f"\nreport: {', '.join(map(str, written.paths))}")
    for contradiction in written.contradictions:
        warn(contradiction)
    return written


def exit_code_of_report(written: Written) -> int:
    """Return the exit code for a report that has been written, and say what made it."""
    code = exit_code_of(written.statuses)
    return EXIT_FAILED if written.contradictions else code


def exit_code_of(statuses: Collection[Status]) -> int:
    """Return the exit code for runs that ended so, and say how many failed, or that none was of a solver that fits."""
    failed, skipped = sum(status.is_failure for status in statuses), sum(status == "skipped" for status in statuses)
    if failed:
        say(f"{failed} of {len(statuses)} runs failed (wrong, crashed or error); the report says why", error=True)
    elif skipped and skipped == len(statuses):
        say(f"no solver fits its problem: {'the run was' if skipped == 1 else f'all {skipped} runs were'} skipped", error=True)
        return EXIT_FAILED
    return EXIT_FAILED if failed else 0
