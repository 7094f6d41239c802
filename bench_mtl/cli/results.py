"""Commands about results that are there: `bench-mtl check`, `compare`, `export`, `merge` and `publish`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from bench_mtl.cli.console import answer, answer_json, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_BAD_INPUT, EXIT_FAILED, NearChoice, fail, json_option, script_options, source_options
from bench_mtl.core.errors import InputError, plural


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("--drop", is_flag=True, help="Set damaged rows aside, so that the suite runs them anew; the damaged file remains beside it.")
@click.option("--recertify", is_flag=True, help="Prove the bounds of every row again, from the points and dual points that it keeps.")
@source_options
@json_option
def check(folders: tuple[Path, ...], drop: bool, recertify: bool, data_dir: Path | None, plugins: Path | None) -> int:
    """Compare all that the results in FOLDERS hold with its checksums, and list what is damaged.

    \b
    Examples:
      bench-mtl check results/quick
      bench-mtl check results/* --drop
      bench-mtl check results/quick --recertify
    """
    code = 0
    documents: list[dict[str, Any]] = []
    for folder in folders:
        if len(folders) > 1 and folder.is_file():
            say(f"{folder}: a file, not a folder: skipped")
            continue
        document: dict[str, Any] = {"folder": folder, "error": None, "checked": None, "recertified": None}
        documents.append(document)
        try:
            is_good = _is_whole(folder, document, drop=drop) and (not recertify or _is_proven(folder, document, data_dir, plugins))
            code = max(code, 0 if is_good else EXIT_FAILED)
        except InputError as error:  # the others are looked at all the same
            document["error"] = str(error)
            code = fail(str(error), EXIT_BAD_INPUT)
    answer_json(lambda: {"folders": documents})
    return code


def _is_whole(folder: Path, document: dict[str, Any], *, drop: bool) -> bool:
    """Check one folder, say what is damaged, put it in its document, and return whether its results are whole in the end."""
    from bench_mtl.results import check as checking

    checked = checking.check(folder)
    document |= {"checked": checked, "set_aside": None}
    verdict = f"{len(checked.damaged)} damaged" if checked.damaged else "all as its checksum says"
    say(f"{folder}: {plural(checked.rows, 'row')}, {verdict}")
    for text in checked.damaged:
        say(f"  damaged: {text}")
    if checked.damaged and not drop:
        warn(f"{folder} is damaged: bench-mtl check {folder} --drop sets aside what is, and keeps the rest")
    elif checked.damaged and (dropped := checking.drop(folder)) is not None:
        aside, rows = dropped
        document["set_aside"] = {"file": aside, "rows": rows}
        say(f"  {plural(rows, 'row')} set aside: the damaged file is now {aside}; the command that made these results runs them anew")
    return drop or not checked.damaged


def _is_proven(folder: Path, document: dict[str, Any], data_dir: Path | None, plugins: Path | None) -> bool:
    """Prove the rows of one folder again, say and document what became of them, and return whether none says more than its points prove."""
    from bench_mtl.data.catalogue import named_directory
    from bench_mtl.results import Store
    from bench_mtl.runner.recertify import Standing, recertify
    from bench_mtl.runner.setting import Setting

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
@click.option("--anyway", is_flag=True, help="Compare different machines or numbers of threads too.")
@json_option
def compare(a: Path, b: Path, threshold: float, anyway: bool) -> int:
    """Compare two results folders case by case: the old one A, the new one B.

    \b
    Examples:
      bench-mtl compare results/before results/after
      bench-mtl compare results/before results/after --threshold 0.25
    """
    from bench_mtl.core.checks import real_number
    from bench_mtl.report.comparison_words import to_words, verdict
    from bench_mtl.results.comparison import compare as compared

    comparison = compared(a, b, threshold=real_number("--threshold", threshold), anyway=anyway)
    answer(to_words(comparison))
    answer_json(lambda: {"has_regressed": comparison.has_regressed, "verdict": verdict(comparison), "comparison": comparison})
    return EXIT_FAILED if comparison.has_regressed else 0


@click.command()
@click.argument("folder", type=A_PATH)
@click.option("--format", "form", type=NearChoice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--out", type=A_PATH, help="Output folder; FOLDER/export by default.")
@json_option
def export(folder: Path, form: str, out: Path | None) -> None:
    """Write the results in FOLDER as tables for other programs: runs, samples, measures, environments, patterns of solutions.

    \b
    Examples:
      bench-mtl export results/quick
      bench-mtl export results/quick --format csv --out tables
    """
    from bench_mtl.results.export import export as write

    written = write(folder, form, out)
    for path, rows in written.items():
        say(f"{path}: {plural(rows, 'row')}")
    answer_json(lambda: {"files": [{"path": path, "rows": rows} for path, rows in written.items()]})


@click.command()
@click.argument("folders", nargs=-1, required=True, type=A_PATH)
@click.option("-o", "--out", required=True, type=A_PATH, help="New results folder.")
@click.option("--without-proofs", is_flag=True, help="Leave out what `check --recertify` needs, most of the file.")
@json_option
def merge(folders: tuple[Path, ...], out: Path, without_proofs: bool) -> None:
    """Bring the results of one suite in several FOLDERS, from several machines, together in a new one.

    Of a case that several folders have, the row of the folder given first counts; the others are stored, but not reported.

    \b
    Examples:
      bench-mtl merge laptop/quick server/quick -o results/quick-both
      bench-mtl merge results/large -o to-publish/large --without-proofs
    """
    from bench_mtl.results.merge import merge as bring_together

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
    answer_json(lambda: {"folder": out, "folders": folders, "merged": merged})


@click.command()
@click.argument("results", nargs=-1, required=True, type=A_PATH)
@click.option("--out", required=True, type=A_PATH, help="Folder of the site: new, empty or an earlier site.")
@click.option("--title", default="Comparisons of solvers", show_default=True, help="Title of the index.")
@click.option("--instances", is_flag=True, help="Build the instances again and write them as npz and as MPS or CBF; takes its time.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that draw figures.")
@source_options
@script_options
def publish(results: tuple[Path, ...], **options: Any) -> int:
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
    from bench_mtl.publish import publish as written

    site = written(results, **options)
    if site.left_out:
        warn(f"no results of a suite, left out: {', '.join(site.left_out)}")
    say(f"{plural(site.suites, 'suite')}, leader boards of {plural(site.families, 'problem')}")
    answer(f"site: {site.index}, {plural(site.instances, 'instance')}")
    answer_json(lambda: site)
    for name in site.contradictions:
        warn(f"proven bounds in {name} contradict each other")
    return EXIT_FAILED if site.contradictions else 0
