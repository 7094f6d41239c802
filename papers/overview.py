"""How many claims of each experiment have which verdict: the table in the README.md of a folder of reports."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bench_mtl import InputError
from bench_mtl.report import escaped
from papers.index import PLACES
from papers.judge import Verdict
from papers.report import read_folder
from papers.store import FILE_NAME

#: The lines of README.md that the table stands between.
START = "<!-- The verdicts below are written from the rows by: python -m papers report reports/ -->"
END = "<!-- end of the verdicts -->"

#: A source up to the year: the paper, without the place in it.
_PAPER = re.compile(r".*?\b(?:19|20)\d\d\b")


def folders_of_cells(folder: Path) -> list[Path]:
    """Return the folders in a folder that hold cells. Raises InputError: there are none."""
    held = sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}"))
    if not held:
        raise InputError(f"neither {folder} nor a folder in it holds a {FILE_NAME}")
    return held


def overview_files(folder: Path) -> dict[str, bytes]:
    """Return README.md of a folder of reports with the table in it, by name; nothing where it has no place for it."""
    readme = folder / "README.md"
    before, start, rest = readme.read_text(encoding="utf-8").partition(f"\n{START}\n") if readme.is_file() else ("", "", "")
    _, end, after = rest.partition(f"\n{END}\n")
    if not end:
        return {}
    reads = [(path.name, read_folder(path)[0]) for path in folders_of_cells(folder)]
    reads.sort(key=lambda pair: [*PLACES].index(pair[1].experiment.name))
    rows = [["report", "what", *map(str, Verdict), "all"], ["---", "---", *["---:"] * (len(Verdict) + 1)]]
    together: Counter[Verdict] = Counter()
    for name, read in reads:
        counts = Counter(each.verdict for each in read.judged)
        paper = _PAPER.match(read.experiment.source)
        what = f"{paper[0] if paper else read.experiment.source}: {read.experiment.title}"
        rows.append([f"[{name}]({name}/report.md)", escaped(what), *_cells(counts)])
        together += counts
    rows.append(["together", "", *_cells(together)])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows).replace("|  |", "| |")
    return {readme.name: f"{before}{start}\n{table}{end}{after}".encode()}


def _cells(counts: Counter[Verdict]) -> list[str]:
    return [*(str(counts[verdict]) for verdict in Verdict), str(counts.total())]
