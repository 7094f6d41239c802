"""The page of the papers: what was found of each, with links to the reports of its experiments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_mtl.core.errors import InputError, not_written
from bench_mtl.papers.experiment import Experiment, Findings
from bench_mtl.papers.index import experiment, experiments
from bench_mtl.papers.report import findings_in, found_words, rewrite_paper_report, verdict_counts
from bench_mtl.papers.store import experiment_in
from bench_mtl.report.columns import escaped
from bench_mtl.report.page.article import Part, article
from bench_mtl.report.write import replace_files

OVERVIEW = "papers.html"

_INTRODUCTION = """# The papers, run again

What the papers say beside what came out here, experiment by experiment. Each links to its report, which has the rule for every reading, the
numbers, and what was chosen where the paper leaves a choice."""

#: A source up to the year: the paper, without the place in it.
_PAPER = re.compile(r".*?\b(?:19|20)\d\d\b")


@dataclass(frozen=True)
class _Report:
    """The report of one experiment."""

    folder: Path
    experiment: Experiment
    findings: Findings


def write_overview(folder: Path) -> Path:
    """Write papers.html in a folder whose folders hold papers' experiments, and the report.html of each, to which it links.

    Raises
    ------
    InputError : there is no such folder in it, rows cannot be read, files cannot be written.
    """
    reports = _reports(folder)
    for report in reports:
        rewrite_paper_report(report.folder, report.experiment.name, ("html",))
    papers = dict.fromkeys(_paper(report.experiment) for report in reports)
    parts = [_part(paper, [report for report in reports if _paper(report.experiment) == paper]) for paper in papers]
    try:
        replace_files(folder, {OVERVIEW: article("The papers, run again", _INTRODUCTION, parts)})
    except OSError as error:
        raise not_written(f"the page of the papers cannot be written to {folder}", error) from None
    return folder / OVERVIEW


def _reports(folder: Path) -> list[_Report]:
    """Return the reports in a folder, in the order of the list of experiments."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    order = {name: place for place, name in enumerate(experiments())}
    held = [(each, experiment_in(each)) for each in sorted(folder.iterdir()) if each.is_dir()]
    named = sorted(((each, name) for each, name in held if name is not None), key=lambda pair: order.get(pair[1], len(order)))
    if not named:
        raise InputError(f"no folder in {folder} holds the cells of a paper's experiment (bench-mtl paper NAME makes them)")
    return [_Report(each, experiment(name), findings_in(each, name)) for each, name in named]


def _paper(of: Experiment) -> str:
    found = _PAPER.match(of.source)
    return of.source if found is None else found[0]


def _part(paper: str, reports: Sequence[_Report]) -> Part:
    """Return the experiments of one paper: what each found, and how many statements and numbers have each reading, in all."""
    words = [
        f"### [{escaped(report.experiment.title)}]({report.folder.name}/report.html)\n\n{found_words(report.findings)}".rstrip()
        for report in reports
    ]
    return Part(paper, "\n\n".join(words), table=verdict_counts([each for report in reports for each in report.findings.comparisons]))
