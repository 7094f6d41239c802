"""Gap against time on one pair of axes, for notebooks; reports have figures of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_mtl.report.figures.curves import GAP, course_points, draw_courses, draw_pointless, notes_of, runs_of, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench_mtl.results.loading import Results


def draw(results: Results, problem: str, ax: Axes | None) -> Axes:
    """Draw the proven relative gap of every run on a problem against its seconds, as the figures of reports do."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    points = course_points(results.runs, results.samples, results.measures)
    points = points[points["problem"] == problem]
    ax.set(xscale="log", yscale="log", xlabel="solve time (s)", ylabel="proven relative gap", title=problem)
    runs = runs_of(points, GAP, "seconds", results.targets)
    if runs:
        scale(ax, points[GAP].dropna().to_numpy(), GAP, results.targets)
        draw_courses(ax, runs, GAP, results.targets, notes_of(points), in_seconds=True)
    draw_pointless(ax, points[~points["solver"].isin(list(runs))])
    ax.grid(True, color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="small")
    return ax
