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

_INTRODUCTION = """# The papers, run again

What the papers say beside what came out here, experiment by experiment; each links to its report, which has the rule for every verdict."""

#: The lines of README.md in the folder that the table of its experiments stands between.
START = "<!-- The verdicts below are written from the rows by: python -m papers report reports/ -->"
END = "<!-- end of the verdicts -->"

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
    """Write papers.html, and the table in README.md, in a folder whose folders hold experiments; return the path of the page."""
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
    named = [f"[{path.name}]({path.name}/report.md) | {escaped(f'{_paper(each.source)}: {each.title}')}" for path, each in
             ((path, read.experiment) for path, read in reads)]  # fmt: skip
    files = {"papers.html": article("The papers, run again", _INTRODUCTION, parts)}
    replace_files(folder, files | _with_table(folder / "README.md", [*named, "together |"], counts.iloc[:, 1:]))
    return folder / "papers.html"


def _with_table(readme: Path, names: list[str], counts: pd.DataFrame) -> dict[str, bytes]:
    """Return a list of reports with the counts of verdicts in its table; nothing where it has no place for that."""
    before, start, rest = readme.read_text(encoding="utf-8").partition(f"\n{START}\n") if readme.is_file() else ("", "", "")
    _, end, after = rest.partition(f"\n{END}\n")
    if not end:
        return {}
    lines = [" | ".join([name, *map(str, row)]) for name, row in zip(names, counts.to_numpy().tolist(), strict=True)]
    table = [" | ".join(["report", "what", *counts.columns]), " | ".join(["---", "---", *["---:"] * len(counts.columns)]), *lines]
    return {readme.name: (before + start + "\n" + "\n".join(f"| {line} |" for line in table) + "\n" + end + after).encode()}


def _last(table: pd.DataFrame) -> list[str]:
    return list(table.iloc[-1])[1:] if len(table) else ["0"] * (len(Verdict) + 1)


def _paper(source: str) -> str:
    match = _PAPER.match(source)
    return source if match is None else match[0]
