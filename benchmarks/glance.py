"""The tables of README, of docs/results-at-a-glance.md and of the paper: what users are told to take, against the best rival of each kind.

`python -m benchmarks.glance` prints their lines, made from the rows of the kept reports. Where a line has several problems or draws,
seconds and ratios are geometric means over them, and intervals are over them, too. A dash stands for a kind of which nobody was run.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_mtl.report.columns import format_ratio, format_seconds, format_target, share
from bench_mtl.report.tables.contests import contests, measured, pairs
from bench_mtl.report.tables.instances import run_times
from bench_mtl.results.frames import AUTO, GENERIC, PEER
from bench_mtl.results.loading import read_results

if TYPE_CHECKING:
    import pandas as pd

REPORTS = Path(__file__).parents[1] / "reports"

README, GLANCE, PAPER = "README.md", "docs/results-at-a-glance.md", "paper/paper.md"

HEAD = """\
| problem | proven gap | auto, s | best generic, s | ratio | best library, s | ratio |
| --- | --- | --- | --- | --- | --- | --- |"""


class Line(NamedTuple):
    """A line of the tables for every target: problems by patterns of their labels in a report, and the targets that README shows."""

    text: str
    report: str
    problems: tuple[str, ...]
    targets: tuple[float, ...]
    in_readme: tuple[float, ...] = ()


LINES = [
    Line("hinge, 60 tasks, 40 examples each", "headline-fresh", ("hinge*, 40 *",), (1e-4, 1e-6), (1e-6,)),
    Line("the same, 160 examples each", "headline-fresh", ("hinge*, 160 *",), (1e-4, 1e-6), (1e-6,)),
    Line("the same, 640 examples each", "headline-hinge", ("*, 640 *",), (1e-4, 1e-6)),
    Line("sparse + low rank, 30 tasks", "headline-fresh", ("sparse + low rank*",), (1e-4, 1e-6), (1e-6,)),
    Line("sparse + low rank, Scene", "headline-lowrank", ("*, Scene",), (1e-4, 1e-6), (1e-4,)),
    Line("sparse + low rank, Yeast", "headline-lowrank", ("*, Yeast",), (1e-4, 1e-6)),
    Line("lasso, 500 x 5000", "headline-fresh", ("lasso, *",), (1e-4, 1e-6), (1e-6,)),
    Line("lasso, rcv1", "headline-peers", ("lasso, rcv1sub1*",), (1e-4, 1e-6)),
    Line("sparse logistic, 2000 x 500", "headline-fresh", ("logistic*",), (1e-4, 1e-6), (1e-4, 1e-6)),
    Line("sparse logistic, Bibtex", "headline-peers", ("logistic, Bibtex*",), (1e-4, 1e-6)),
    Line("l1,inf least squares, 3 sets", "headline-peers", ("l1,inf*",), (1e-4, 1e-6), (1e-6,)),
]


def lines(page: str) -> Iterator[str]:
    """Yield the lines of the table on a page, as Markdown."""
    before = ""
    for line in LINES:
        field = contests(_times(line.report), {line.text: _labels(line)})
        for target in line.in_readme if page == README else line.targets:
            text = "" if line.text == before else f"{line.text} "
            before = line.text
            yield f"| {text}| {format_target(target)} | {' | '.join(_cells(field[field['target'] == target]))} |"


@cache
def _times(report: str) -> pd.DataFrame:
    results = read_results(REPORTS / report)
    return run_times(results.runs, results.samples, results.targets)


def _labels(line: Line) -> list[str]:
    """Return the labels of a line's problems."""
    return [label for label in _times(line.report)["problem"].unique() if any(fnmatchcase(label, pattern) for pattern in line.problems)]


def _cells(field: pd.DataFrame) -> list[str]:
    """Return the seconds of `auto`, and of the best of each other kind its name, seconds and the ratio to them."""
    own = measured(field[field["tried"] & (field["solver"] == AUTO)])
    cells = [_seconds(own)]
    for kind in (GENERIC, PEER):
        rivals = field[field["tried"] & (field["kind"] == kind)]
        cells += _against(rivals, own) if len(rivals) else ["-", "-"]
    return cells


def _against(rivals: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    """Return the cells of the rivals of one kind, of which the first runs choose the fastest on every instance."""
    firsts = rivals["first_seconds"].fillna(np.inf).groupby(rivals["place"], sort=False)
    best = measured(rivals.loc[firsts.idxmin()])
    reached = best["median_seconds"].notna()
    if not reached.any():
        had = [seconds for timeouts in rivals["timeouts"] for seconds in timeouts]
        return [f"not in {max(had):.3g} s" if had else "none gets there", "-"]
    names = list(dict.fromkeys(str(name).split(" ")[0] for name in best["solver"][reached]))
    who = f"{' or '.join(names)} {_seconds(best)}"
    (pair,) = pairs(best.assign(solver="rival"), own).to_dict("records")
    number = share(pair["ratios"], pair["instances"])
    if not pair["ratios"]:
        return [who, "-"]
    ratio, low, high = (format_ratio(pair[name]).rstrip("x") for name in ("ratio", "ratio_low", "ratio_high"))
    return [who, f"{ratio} ({low}-{high}){number}" if pair["ratio_low"] > 0.0 else f"{ratio}{number}"]


def _seconds(rows: pd.DataFrame) -> str:
    reached = rows["median_seconds"].dropna()
    return f"{format_seconds(geometric_mean(reached))}{share(len(reached), len(rows))}" if len(reached) else "not reached"


if __name__ == "__main__":
    for page in (README, GLANCE, PAPER):
        print(f"{page}\n\n{HEAD}", *lines(page), sep="\n", end="\n\n")
