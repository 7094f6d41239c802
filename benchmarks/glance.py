"""The tables of README, of docs/results-at-a-glance.md and of the paper: what users are told to take, against the best rival of each kind.

`python -m benchmarks.glance` prints their lines, made from the rows of the kept reports. Where a line has several problems or draws,
seconds and ratios are geometric means over them, and intervals are over them, too.
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
| problem | proven gap | ours | s | best generic | s | ratio | best library | s | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


class Line(NamedTuple):
    """A line of the tables for every target: problems by patterns of their labels in a report, and the pages it is on besides `GLANCE`."""

    text: str
    report: str
    problems: tuple[str, ...]
    targets: tuple[float, ...]
    pages: tuple[str, ...] = ()
    ours: str = AUTO


LINES = [
    Line("hinge, 60 tasks, 200 features, 40 examples a task, 5 draws", "headline-fresh", ("hinge*, 40 *",), (1e-4, 1e-6), (README, PAPER)),
    Line("the same, 160 examples a task, 5 draws", "headline-fresh", ("hinge*, 160 examples a task",), (1e-4, 1e-6), (README, PAPER)),
    Line("the same on all cores", "headline-fresh", ("hinge*, 160 *, all cores",), (1e-4, 1e-6)),
    Line("the same, 640 examples a task", "headline-hinge", ("*, 640 examples a task",), (1e-4, 1e-6, 1e-8), (README, PAPER)),
    Line("hinge, Scene and Yeast, 4 problems", "headline-hinge-real", ("hinge, Scene*", "hinge, Yeast*"), (1e-3, 1e-6), (README, PAPER)),
    Line("hinge, Corel5k and Yahoo Arts, 4 problems", "headline-hinge-real", ("hinge, Corel5k*", "hinge, Yahoo*"), (1e-3, 1e-4)),
    Line("sparse + low rank, 30 tasks, 100 features, 5 draws", "headline-fresh", ("sparse + low rank*",), (1e-4, 1e-6), (README, PAPER)),
    Line("sparse + low rank, Scene", "headline-lowrank", ("*, Scene",), (1e-4,), (README, PAPER)),
    Line("sparse + low rank, Yeast", "headline-lowrank", ("*, Yeast",), (1e-4, 1e-6)),
    Line("lasso, 500 x 5000, 10 problems", "headline-fresh", ("lasso, * max",), (1e-4, 1e-6), (README, PAPER)),
    Line("the same on all cores", "headline-fresh", ("lasso, *, all cores *",), (1e-4, 1e-6)),
    Line("logistic loss with an l1 penalty, 2000 x 500, 10 problems", "headline-fresh", ("logistic*",), (1e-4, 1e-6), (README, PAPER)),
    Line("lasso, rcv1, 2 penalties", "headline-peers", ("lasso, rcv1sub1*",), (1e-4, 1e-6)),
    Line("logistic loss with an l1 penalty, Bibtex, 2 penalties", "headline-peers", ("logistic, Bibtex*",), (1e-4, 1e-6)),
    Line("l1,inf least squares, 3 data sets, 6 problems", "headline-peers", ("l1,inf*",), (1e-4, 1e-6), (README,)),
    Line(
        "multiclass boosting, 300 examples, 100 stumps, 10 problems", "headline-fresh", ("boosting*",), (1e-4, 1e-6), (README, PAPER),
        ours="multiboost_group",
    ),
    Line("multiclass boosting, 2000 examples, 500 stumps", "boosting-table", ("synthetic norm=*",), (1e-4,), ours="multiboost_group"),
]  # fmt: skip


def lines(page: str) -> Iterator[str]:
    """Yield the lines of the table on a page, as Markdown."""
    before = ""
    for line in LINES:
        if page == GLANCE or page in line.pages:
            field = contests(_times(line.report), {line.text: _labels(line)})
            for target in line.targets[-1:] if page == README else line.targets:
                text = "" if line.text == before else line.text
                before = line.text
                yield f"| {text} | {format_target(target)} | {' | '.join(_cells(field[field['target'] == target], line.ours))} |"


@cache
def _times(report: str) -> pd.DataFrame:
    results = read_results(REPORTS / report)
    return run_times(results.runs, results.samples, results.targets)


def _labels(line: Line) -> list[str]:
    """Return the labels of a line's problems: those of one thread, unless a pattern says otherwise."""
    labels = _times(line.report)["problem"].unique()
    cores = any("all cores" in pattern for pattern in line.problems)
    return [label for label in labels if any(fnmatchcase(label, pattern) for pattern in line.problems) and ("all cores" in label) == cores]


def _cells(field: pd.DataFrame, ours: str) -> list[str]:
    """Return who is ours with its seconds, and of the best of each other kind its name, seconds and the ratio to ours."""
    own = measured(field[field["tried"] & (field["solver"] == ours)])
    cells = [ours, _seconds(own)]
    for kind in (GENERIC, PEER):
        rivals = field[field["tried"] & (field["kind"] == kind)]
        cells += _against(rivals, own) if len(rivals) else ["none", "-", "-"]
    return cells


def _against(rivals: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    """Return the cells of the rivals of one kind, of which the first runs choose the fastest on every instance."""
    firsts = rivals["first_seconds"].fillna(np.inf).groupby(rivals["place"], sort=False)
    best = measured(rivals.loc[firsts.idxmin()])
    reached = best["median_seconds"].notna()
    if not reached.any():
        had = [seconds for timeouts in rivals["timeouts"] for seconds in timeouts]
        return ["all", f"not in {max(had):.3g} s" if had else "none", "-"]
    names = [str(name) for name in best["solver"][reached].unique()]
    (pair,) = pairs(best.assign(solver="rival"), own).to_dict("records")
    number = share(pair["ratios"], pair["instances"])
    if not pair["ratios"]:
        return [_named(names), _seconds(best), "-"]
    ratio, low, high = (format_ratio(pair[name]).rstrip("x") for name in ("ratio", "ratio_low", "ratio_high"))
    return [_named(names), _seconds(best), f"{ratio} ({low} to {high}){number}" if pair["ratio_low"] > 0.0 else f"{ratio}{number}"]


def _named(names: list[str]) -> str:
    return " or ".join(names) if len(names) < 3 else f"{names[0]} or {len(names) - 1} others"


def _seconds(rows: pd.DataFrame) -> str:
    reached = rows["median_seconds"].dropna()
    return f"{format_seconds(geometric_mean(reached))}{share(len(reached), len(rows))}" if len(reached) else "not reached"


if __name__ == "__main__":
    for page in (README, GLANCE, PAPER):
        print(f"{page}\n\n{HEAD}", *lines(page), sep="\n", end="\n\n")
