"""Commands about results that are there: `bench-mtl report`, `check`, `compare`, `export`, `merge` and `publish`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import click

from bench_mtl.cli.console import Answer, answer, fail, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_BAD_INPUT, EXIT_FAILED, NearChoice, json_option, repeatable, script_options, source_options
from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.files import is_file
from bench_mtl.core.text import LONGEST_LINE, one_line
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Status
from bench_mtl.data.catalogue import named_directory
from bench_mtl.publish import publish as written
from bench_mtl.report import View, write_and_sum_up
from bench_mtl.report.check import Fault, suite_report
from bench_mtl.report.check import check_report as faults_of
from bench_mtl.report.comparison_words import to_words, verdict
from bench_mtl.report.index import INDEX, index_faults, write_index
from bench_mtl.report.write import Written
from bench_mtl.results import Store
from bench_mtl.results import check as checking
from bench_mtl.results.comparison import compare as compared
from bench_mtl.results.database import FILE_NAME
from bench_mtl.results.export import export as exported
from bench_mtl.results.merge import merge as bring_together
from bench_mtl.runner.recertify import Standing, recertify
from bench_mtl.runner.setting import Setting


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
) -> Answer:
    """Write the report of the results in FOLDER: report.html, report.md, tables/, figures/.

    With --format cover report.md shows its first figure alone, cover.svg, and names the others.

    The results may be unfinished, or merged from several machines; times of each machine are separate.
    """
    if inner := sorted(folder.glob(f"*/{FILE_NAME}")) if not is_file("folder", folder / FILE_NAME) else []:
        each = f"give one of them, such as {inner[0].parent}; --check checks the reports in them, and --index lists them"
        raise InputError(f"{folder} holds {plural(len(inner), 'folder')} of results, and none itself: {each}")
    written = said_report(folder, out=out, view=View(targets, baseline, select), formats=formats)
    document = {"folder": folder, "report": written.paths, "statuses": Counter(written.statuses), "contradictions": written.contradictions}
    return exit_code_of(written.statuses, written.contradictions), lambda: document


@report.command("check")
@click.argument("folder", type=A_PATH)
@json_option
def check_report(folder: Path) -> Answer:
    """Make report.md in FOLDER again from the rows, write nothing, and name the lines that differ.

    FOLDER holds a report, or reports in folders of their own with README.md, a list of them.
    """
    is_one = is_file("folder", folder / FILE_NAME) or not is_file("folder", folder / INDEX)

    def look(each: Path, document: dict[str, Any]) -> bool:
        document["faults"], document["lines"] = faults_of(each, suite_report)
        return _is_right(document["faults"], each, f" in {plural(document['lines'], 'line')}")

    folders = [folder] if is_one else sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}"))
    code, reports = _each(folders, {"lines": 0, "faults": []}, look)
    listing: dict[str, Any] | None = None if is_one else {"file": folder / INDEX, "faults": list(index_faults(folder))}
    if listing is not None and not _is_right(listing["faults"], listing["file"]):
        code = max(code, EXIT_FAILED)
    return code, lambda: {"reports": reports, "index": listing}


def _each(folders: Iterable[Path], empty: dict[str, Any], look: Callable[[Path, dict[str, Any]], bool]) -> tuple[int, list[dict[str, Any]]]:
    """Look at each folder, which fills its document; return the exit code and the documents. One that cannot be read ends nothing."""
    code = 0
    documents: list[dict[str, Any]] = []
    for folder in folders:
        documents.append({"folder": folder, "error": None, **empty})
        try:
            code = max(code, 0 if look(folder, documents[-1]) else EXIT_FAILED)
        except InputError as error:
            documents[-1]["error"] = str(error)
            code = fail(str(error), EXIT_BAD_INPUT)
    return code, documents


def _is_right(faults: Collection[Fault], where: Path, of: str = "") -> bool:
    """Say each fault in a line that begins with its file and line, as editors read it, and how many there are; return whether none is."""
    for fault in faults:
        say(one_line(str(fault), LONGEST_LINE), error=True)
    say(f"{where}: {plural(len(faults), 'fault')}{of}")
    return not faults


@report.command()
@click.argument("folder", type=A_PATH)
@json_option
def index(folder: Path) -> Answer:
    """Write the numbers in FOLDER/README.md, which lists the reports in FOLDER, from their rows."""
    written = write_index(folder)
    say(f"index: {written}")
    return 0, lambda: {"index": written}


def said_report(folder: Path, *, out: Path | None = None, view: View | None = None, formats: tuple[str, ...] = ()) -> Written:
    """Write the report, and print it in short."""
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


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("--drop", is_flag=True, help="Set damaged rows aside, so that the suite runs them anew; the damaged file remains beside it.")
@click.option("--recertify", is_flag=True, help="Prove the bounds of every row again, from the points and dual points that it keeps.")
@source_options
@json_option
def check(folders: tuple[Path, ...], drop: bool, recertify: bool, data_dir: Path | None, plugins: Path | None) -> Answer:
    """Compare all that the results in FOLDERS hold with its checksums, and list what is damaged.

    \b
    Examples:
      bench-mtl check results/quick
      bench-mtl check results/* --drop
      bench-mtl check results/quick --recertify
    """

    if not recertify and (data_dir or plugins):
        raise InputError("--data-dir and --plugins are for --recertify, which builds the problems again")

    def look(folder: Path, document: dict[str, Any]) -> bool:
        return _is_whole(folder, document, drop=drop) and (not recertify or _is_proven(folder, document, data_dir, plugins))

    given = [folder for folder in folders if len(folders) == 1 or not folder.is_file()]
    if not given:
        raise InputError(f"{', '.join(map(str, folders))}: files, and no folder of results")
    for file in sorted({*folders} - {*given}):
        say(f"{file}: a file, not a folder: skipped")
    code, documents = _each(given, {"checked": None, "set_aside": None, "recertified": None}, look)
    return code, lambda: {"folders": documents}


def _is_whole(folder: Path, document: dict[str, Any], *, drop: bool) -> bool:
    """Check one folder, say what is damaged, put it in its document, and return whether its results are whole in the end."""
    checked = checking.check(folder)
    document |= {"checked": checked, "set_aside": None}
    verdict = f"{len(checked.damaged)} damaged" if checked.damaged else "all match their checksums"
    say(f"{folder}: {plural(checked.rows, 'row')}, {verdict}")
    for text in checked.damaged:
        say(f"  damaged: {text}")
    if checked.damaged and not drop:
        warn(f"{folder} is damaged: bench-mtl check {folder} --drop sets aside what is, and keeps the rest")
    elif checked.damaged and (dropped := checking.drop(folder)) is not None:
        aside, rows, listings = dropped
        document["set_aside"] = {"file": aside, "rows": rows, "listings": listings}
        counts = [plural(number, noun) for number, noun in ((rows, "row"), (listings, "listing")) if number]
        what = " and ".join(counts) or "what is damaged"
        say(f"  {what} set aside: the damaged file is now {aside}; the command that made these results goes on from there")
    return drop or not checked.damaged


def _is_proven(folder: Path, document: dict[str, Any], data_dir: Path | None, plugins: Path | None) -> bool:
    """Prove the rows of one folder again, say and document what became of them, and return whether none says more than its points prove."""
    with Store.open(folder) as store:
        rows = []
        for row in recertify(store, Setting(1, plugins and plugins.absolute(), named_directory(data_dir))):
            rows.append(row)
            if row.standing is Standing.FALSE:
                say(f"  false: {row.label} {row.reason}")
    for reason, count in Counter(row.reason for row in rows if row.standing is Standing.UNPROVABLE).items():
        say(f"  {plural(count, 'row')} cannot be proven again: {reason}")
    counts = dict.fromkeys(Standing, 0) | Counter(row.standing for row in rows)
    document["recertified"] = {"counts": counts, "rows": rows}
    empty = f"; {counts[Standing.EMPTY]} have no bounds" if counts[Standing.EMPTY] else ""
    say(f"  {counts[Standing.PROVEN]} of {plural(len(rows), 'row')} proven again{empty}")
    return not counts[Standing.FALSE]


@click.command()
@click.argument("a", type=A_PATH)
@click.argument("b", type=A_PATH)
@click.option("--threshold", type=float, default=0.1, show_default=True, help="Share by which B may be slower than A.")
@click.option("--anyway", is_flag=True, help="Compare results of different machines or processors, threads, isolation or slots too.")
@json_option
def compare(a: Path, b: Path, threshold: float, anyway: bool) -> Answer:
    """Compare two results folders case by case: the old one A, the new one B.

    \b
    Examples:
      bench-mtl compare results/before results/after
      bench-mtl compare results/before results/after --threshold 0.25
    """
    comparison = compared(a, b, threshold=real_number("--threshold", threshold), anyway=anyway)
    answer(to_words(comparison))
    document = {"has_regressed": comparison.has_regressed, "verdict": verdict(comparison), "comparison": comparison}
    return EXIT_FAILED if comparison.has_regressed else 0, lambda: document


@click.command()
@click.argument("folder", type=A_PATH)
@click.option("--format", "form", type=NearChoice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--out", type=A_PATH, help="Output folder; FOLDER/export by default.")
@json_option
def export(folder: Path, form: str, out: Path | None) -> Answer:
    """Write the results in FOLDER as tables for other programs.

    \b
    Examples:
      bench-mtl export results/quick
      bench-mtl export results/quick --format csv --out tables
    """
    written = exported(folder, form, out)
    for path, rows in written.items():
        say(f"{path}: {plural(rows, 'row')}")
    return 0, lambda: {"files": [{"path": path, "rows": rows} for path, rows in written.items()]}


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("-o", "--out", required=True, type=A_PATH, help="New results folder.")
@click.option("--without-proofs", is_flag=True, help="Leave out what `check --recertify` needs, most of the file.")
@json_option
def merge(folders: tuple[Path, ...], out: Path, without_proofs: bool) -> Answer:
    """Bring the results of one suite in several FOLDERS, from several machines, together in a new one.

    Of a case that several folders have, the row of the folder given first counts; the others are stored, but not reported.

    \b
    Examples:
      bench-mtl merge laptop/quick server/quick -o results/quick-both
      bench-mtl merge results/large -o to-publish/large --without-proofs
    """
    for place, folder in enumerate(folders):
        if folder.resolve() in [before.resolve() for before in folders[:place]]:
            raise InputError(f"merge: the folder {folder} is given twice")
    merged = bring_together(folders, out, proofs=not without_proofs)
    say(f"{out}: {merged.runs} runs of {plural(len(folders), 'folder')}")
    if merged.superseded:
        say(f"{plural(merged.superseded, 'row')} of cases that a folder before has too: stored as superseded")
    if merged.ambiguous:
        say(f"{merged.ambiguous} runs share problem, solver, seed and repetition with another, but not version, data, options or limits")
    if len(merged.machines) > 1:
        say("the runs were made on different machines, whose times are not comparable:")
        for machine in merged.machines:
            say(f"  {machine['processor']}, {machine['logical_cores']} cores, {machine['memory_gib']} GiB")
    say(f"bench-mtl report {out} writes the report")
    return 0, lambda: {"folder": out, "folders": folders, "merged": merged}


@click.command()
@click.argument("results", nargs=-1, required=True, type=A_PATH)
@click.option("--out", required=True, type=A_PATH, help="Folder of the site: new, empty or an earlier site.")
@click.option("--title", default="Comparisons of solvers", show_default=True, help="Title of the index.")
@click.option("--instances", is_flag=True, help="Build the instances again and write them as npz and as MPS or CBF; takes its time.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that draw figures.")
@source_options
@script_options
def publish(results: tuple[Path, ...], **options: Any) -> Answer:
    """Write a static site of RESULTS: results folders, or folders of such.

    An index of all suites, the report of each, a page for every instance with its rows, leader boards by problem and target, and the
    history of suites that were run several times. It needs no server and asks the network for nothing. An earlier site is replaced when
    the new one is complete.

    \b
    Examples:
      bench-mtl publish reports --out site --jobs 2
      bench-mtl publish results/quick results/mine --out site --title "Our solvers"
      bench-mtl publish results/mine --out site --instances --data-dir ~/data
    """
    site = written(results, **options)
    if site.left_out:
        warn(f"no results of a suite, left out: {', '.join(site.left_out)}")
    say(f"{plural(site.suites, 'suite')}, leader boards of {plural(site.families, 'problem')}")
    answer(f"site: {site.index}, {plural(site.instances, 'instance')}")
    for name in site.contradictions:
        warn(f"proven bounds in {name} contradict each other")
    return EXIT_FAILED if site.contradictions else 0, lambda: site
