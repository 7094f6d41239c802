"""All figures of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench_mtl.report.figures import convergence, scaling, style
from bench_mtl.report.figures.drawing import Drawing, Undrawn, distinct_stems
from bench_mtl.report.results import Results
from bench_mtl.report.tables.scaling import scaling_points

if TYPE_CHECKING:
    import pandas as pd


def drawings(results: Results, tables: Mapping[str, pd.DataFrame]) -> tuple[list[Drawing], list[Undrawn]]:
    """The figures of a report in the order of their subjects, and what could not be drawn.

    Parameters
    ----------
    results : of one suite
    tables : of the report, by the names of their files

    Returns
    -------
    drawings : list of Drawing
        Nothing is drawn yet.
    undrawn : list of Undrawn
        A sentence for each figure that a reader may look for and that there is not.
    """
    styles = style.line_styles(results.runs["solver_label"])
    made = [*_convergence(results, styles), *_scaling(results, tables["scaling"], styles)]
    found = [one for one in made if isinstance(one, Drawing)]
    stems = distinct_stems(drawing.stem for drawing in found)
    return [replace(drawing, stem=stem) for drawing, stem in zip(found, stems, strict=True)], [
        one for one in made if isinstance(one, Undrawn)
    ]


def _convergence(results: Results, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """One of every problem that has a certified point."""
    points = convergence.curves(results.runs, results.samples)
    by_problem = {str(problem): rows for problem, rows in points.groupby("problem", sort=False, observed=True)}
    for label, runs in results.runs.groupby("problem_label", sort=False):
        problem = str(label)
        if problem not in by_problem:
            yield Undrawn("convergence", problem, "No run has a proven point on this problem, so there is no figure.")
            continue
        of_problem = by_problem[problem]
        yield Drawing(
            problem,
            f"Convergence on {problem}",
            "convergence",
            problem,
            convergence.caption(of_problem, runs, results.targets),
            of_problem,
            partial(convergence.convergence, of_problem, runs, results.targets, styles),
        )


def _scaling(results: Results, fits: pd.DataFrame, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """One of every sweep."""
    if fits.empty:
        return
    points = scaling_points(results.runs, results.samples, results.targets[-1])
    for sweep, of_fits in fits.groupby("sweep", sort=False):
        of_sweep = points[points["sweep"] == sweep]
        draw = partial(scaling.scaling_figure, of_sweep, of_fits, styles)
        yield Drawing(f"scaling {sweep}", f"Scaling of {sweep}", "scaling", str(sweep), scaling.caption(of_sweep, of_fits), of_sweep, draw)
