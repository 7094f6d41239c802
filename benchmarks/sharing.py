"""Weak learners that it takes for the same error where classes share them and where they do not: `python -m benchmarks.sharing`.

The data sets of suite `boosting-table`, fitted with every norm and many nu by `multiboost_group` and `multiboost_l1` to a proven gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
from tabulate import tabulate

from bench_mtl.core.types import Limits, Tolerance
from bench_mtl.data.catalogue import load
from bench_mtl.engine.regularisation_path import PathPoint, regularisation_path
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.model.task_data import TaskData
from bench_mtl.problems.group_boosting import GroupBoosting
from bench_mtl.report.figures import figure_files, looks_in_turn, styled
from bench_mtl.solvers.multiboost import MultiboostGroup, MultiboostL1
from papers.figures import legend, scale, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUITE = "boosting-table"
NORMS = ("l12", "l1inf", "l1")
TOLERANCE = Tolerance(1e-3)
LIMITS = Limits(seconds=20.0)

#: Of the smallest nu that gives W = 0.
SHARES = np.geomspace(0.5, 0.005, 21)

_SENTENCE = """\
"Error" is the least one that all three norms reach on held-out examples, at any nu: the largest of their three least errors. Then, for
every norm, the fewest weak learners of a fit that reaches it, with that fit's own error and nu, as a share of the smallest nu that gives
W = 0. "Unproven" counts the fits of the data set that are not proven to a relative gap of 1e-3 when, after 20 s, the step that is under
way ends. Which error is reached is decided on the held-out examples themselves, for every norm alike: this says what trade-offs there
are, not how well one would do who has to choose nu first."""


def data_sets(data_dir: Path | None) -> Iterator[tuple[str, TaskData]]:
    """Each with the label of the first problem of the suite that has it."""
    seen: list[Any] = []
    for problem in read_suite(SUITE).problems:
        if problem.data not in seen:
            seen.append(problem.data)
            yield problem.label, load(problem.data, data_dir=data_dir)


def fits(label: str, data: TaskData, norm: str) -> list[dict[str, Any]]:
    """A row a nu, from sparse to dense; each fit begins at the one before."""
    largest = GroupBoosting(data, penalty="1 max", norm=norm).penalty
    solver = MultiboostL1() if norm == "l1" else MultiboostGroup()

    def problem(nu: float) -> GroupBoosting:
        return GroupBoosting(data, penalty=nu, norm=norm)

    def row(point: PathPoint) -> dict[str, Any]:
        record = point.record
        if record.solution is None or record.best is None:
            raise click.ClickException(f"{label}, {norm}, nu = {point.value:.3g}: {record.reason}")
        return {
            "data": label,
            "norm": norm,
            "nu / max": point.value / largest,
            "relative gap": record.best.relative_gap,
            "seconds": record.times.solve,
            **problem(point.value).measures(record.solution),
        }

    return [row(point) for point in regularisation_path(problem, SHARES * largest, solver, tolerance=TOLERANCE, limits=LIMITS)]


def at_equal_error(found: pd.DataFrame) -> pd.DataFrame:
    """A row a data set and norm: the sparsest fit that is at least as good as the least error that all norms reach."""
    rows = []
    for label, of_data in found.groupby("data", sort=False):
        error = of_data.groupby("norm")["held-out error"].min().max()
        unproven = int((of_data["relative gap"] > TOLERANCE.relative_gap).sum())
        for norm in NORMS:
            good = of_data[(of_data["norm"] == norm) & (of_data["held-out error"] <= error)]
            best = good.sort_values(["features used", "held-out error"]).iloc[0]
            rows.append(
                {
                    "data": label,
                    "error": error,
                    "norm": norm,
                    "weak learners": int(best["features used"]),
                    "classes a learner": best["classes a feature"],
                    "its error": best["held-out error"],
                    "nu / max": best["nu / max"],
                    "unproven": f"{unproven} of {len(of_data)}",
                }
            )
    return pd.DataFrame(rows)


def drawing(table: pd.DataFrame) -> Figure:
    """Held-out error against weak learners, a panel a data set; solid markers are the fits with no better one of as few learners."""
    looks = looks_in_turn(NORMS, markersize=4)
    labels = list(dict.fromkeys(table["data"]))
    with styled():
        figure, panels = sheet(len(labels), height=2.4)
        for panel, label in zip(panels, labels, strict=True):
            for norm in NORMS:
                rows = table[(table["data"] == label) & (table["norm"] == norm) & (table["features used"] > 0)].sort_values("features used")
                x, y = rows["features used"], 100 * rows["held-out error"]
                leads = y < y.cummin().shift(fill_value=float("inf"))
                panel.plot(x, y, **looks[norm] | {"linestyle": "none", "alpha": 0.25})
                panel.plot(x[leads], y[leads], **looks[norm], linewidth=1.1, label=norm)
            panel.set(title=label, xlabel="weak learners used", ylabel="held-out error, %")
            scale(panel, "x")
        legend(figure, panels)
    return figure


def text(found: pd.DataFrame) -> str:
    table = at_equal_error(found)
    for column in ("error", "its error"):
        table[column] = [f"{100 * value:.1f} %" for value in table[column]]
    lines = tabulate(table, headers="keys", tablefmt="pipe", showindex=False, floatfmt=".2g")  # type: ignore[arg-type]
    return f"# Weak learners at equal error\n\n{_SENTENCE}\n\n{lines}\n\n![Held-out error against weak learners](sharing.svg)\n"


@click.command(help=__doc__)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for sharing.csv, .md and .svg.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of .npz data sets; BENCH_MTL_DATA by default.")
def main(out: Path, data_dir: Path | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for label, data in data_sets(data_dir):
        for norm in NORMS:
            rows += fits(label, data, norm)
            click.echo(f"{label}, {norm}: {sum(row['seconds'] for row in rows[-len(SHARES) :]):.1f} s")
            pd.DataFrame(rows).to_csv(out / "sharing.csv", index=False, float_format="%.6g")
    found = pd.DataFrame(rows)
    (out / "sharing.md").write_text(text(found))
    (out / "sharing.svg").write_bytes(figure_files(drawing(found), ["svg"])["svg"])
    click.echo(text(found))


if __name__ == "__main__":
    main()
