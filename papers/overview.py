"""The page of the papers: verdicts of all experiments counted in one table, and what each found, with links to their reports."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from bench_mtl import InputError
from bench_mtl.report import Part, article, escaped, replace_files
from papers.index import PLACES
from papers.judge import Verdict
from papers.report import found_words, read_folder, totals
from papers.store import FILE_NAME

#: Between these the list of all experiments stands in the README of a folder of reports.
START, END = "<!-- The verdicts below are written from the rows by: python -m papers report reports -->", "<!-- end of the verdicts -->"

_INTRODUCTION = """# The papers, run again

What the papers say beside what came out here, experiment by experiment; each links to its report, which has the rule for every verdict."""

#: A source up to the year: the paper, without the place in it.
_PAPER = re.compile(r".*?\b(?:19|20)\d\d\b")


def folders_of_cells(folder: Path) -> list[Path]:
    """Return the folders in a folder that hold cells.

    Raises
    ------
    InputError : there are none.
    """
    held = sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}"))
    if not held:
        raise InputError(f"neither {folder} nor a folder in it holds a {FILE_NAME}")
    return held


def write_overview(folder: Path) -> Path:
    """Write papers.html in a folder whose folders hold experiments, and the verdicts in its README where that has room; return its path."""
    order = {name: place for place, name in enumerate(PLACES)}
    reads = sorted(((path, read_folder(path)[0]) for path in folders_of_cells(folder)), key=lambda pair: order[pair[1].experiment.name])
    every = [each for _, read in reads for each in read.judged]
    lines = [[read.experiment.name, *_last(totals(read.judged))] for _, read in reads]
    counts = pd.DataFrame([*lines, ["together", *_last(totals(every))]], columns=["Experiment", *map(str, Verdict), "all"], dtype="str")
    parts = [Part("Verdicts", "Statements and numbers together.", table=counts)]
    for paper in dict.fromkeys(_paper(read.experiment.source) for _, read in reads):
        of = [(path, read) for path, read in reads if _paper(read.experiment.source) == paper]
        words = [f"### [{escaped(read.experiment.title)}]({path.name}/report.html)\n\n{found_words(read.judged)}" for path, read in of]
        parts.append(Part(paper, "\n\n".join(words), table=totals([each for _, read in of for each in read.judged])))
    linked = counts.assign(Experiment=[*(f"[{path.name}]({path.name}/report.md)" for path, _ in reads), "together"])
    linked.insert(1, "What is made again", [*(f"{read.experiment.title} ({_paper(read.experiment.source)})" for _, read in reads), ""])
    readme = folder / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    before, found, rest = text.partition(START)
    table = f"{before}{START}\n\n{linked.to_markdown(index=False)}\n\n{END}{rest.partition(END)[2]}"
    pages = {"papers.html": article("The papers, run again", _INTRODUCTION, parts)}
    replace_files(folder, pages | ({"README.md": table.encode()} if found else {}))
    return folder / "papers.html"


def _last(table: pd.DataFrame) -> list[str]:
    return list(table.iloc[-1])[1:] if len(table) else ["0"] * (len(Verdict) + 1)


def _paper(source: str) -> str:
    match = _PAPER.match(source)
    return source if match is None else match[0]
