"""Gap against time on one pair of axes, for notebooks; reports have figures of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.report.figures import style
from bench_mtl.report.figures.convergence import GREATEST_GAP, LEAST_SHARE, curves, kinds_of
from bench_mtl.report.figures.style import LineStyle

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bench_mtl.results.loading import Results


def draw(results: Results, problem: str, ax: Axes | None) -> Axes:
    """Draw the proven relative gap of every run on a problem against its seconds.

    A run that ended short of the tightest target ends in a cross. Gaps below a thousandth of that target are drawn there.
    """
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    runs = results.runs[results.runs["problem_label"] == problem]
    points = curves(runs, results.samples)
    looks = style.line_styles(kinds_of(runs))
    target = results.targets[-1]
    for run in runs[runs["status"] != Status.SKIPPED].itertuples():
        label = str(run.solver_label)
        own = points[points["run_id"] == run.id]
        _draw_run(ax, own, looks[label], label if run.repetition == 0 else None, target, is_verified=bool(run.status == Status.VERIFIED))
    for gap in results.targets:
        ax.axhline(gap, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="solve time (s)", ylabel="proven relative gap", title=problem)
    ax.grid(True, color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _draw_run(ax: Axes, points: pd.DataFrame, look: LineStyle, label: str | None, target: float, *, is_verified: bool) -> None:
    """Draw one run, as far as it has a point after time zero."""
    shown = points[(points["seconds"] > 0) & (points["relative_gap"] <= GREATEST_GAP)]
    seconds = shown["seconds"].to_numpy(dtype=float)
    gaps = shown["relative_gap"].to_numpy(dtype=float).clip(min=LEAST_SHARE * target)
    note = label if label is None or is_verified else f"{label} (not to {target:g})"
    every = max(1, len(seconds) // 8)
    ax.plot(seconds, gaps, label=note, **style.line(look, markersize=4.5, markevery=every, linewidth=1.4))
    if len(seconds) and not is_verified:
        ax.plot(seconds[-1:], gaps[-1:], color=look.colour, **style.mark())
