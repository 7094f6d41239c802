"""Where the solutions of several solvers on one problem are not zero, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.core.types import Status
from bench_mtl.model.patterns import NEGLIGIBLE_ENTRY
from bench_mtl.report.columns import format_gap, format_target
from bench_mtl.report.figures import style

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bench_mtl.model.patterns import Mask
    from bench_mtl.results import Pattern

#: Solvers side by side.
MOST_SOLVERS = 6

#: Points that a picture has at most, down and across: there are no more on paper.
_POINTS = (360, 180)

_PANEL_WIDTH, _SMALL = 1.3, 7.5


@dataclass(frozen=True)
class Solution:
    """The solution of one solver."""

    solver: str
    run_id: int
    relative_gap: float
    parts: tuple[Pattern, ...]


def solutions(runs: pd.DataFrame, patterns: Mapping[int, Sequence[Pattern]], leading: Sequence[str]) -> list[Solution]:
    """Return the solutions to show of one problem: all of one instance, of each solver that of its verified run with the least gap.

    Parameters
    ----------
    runs : all runs of the problem
    patterns : by run
    leading : solvers that come first

    Returns
    -------
    list of Solution
        Of the instance that most solvers solved, the first of several; empty where no verified run has a pattern.
    """
    kept = runs[(runs["status"] == Status.VERIFIED) & runs["id"].isin(list(patterns))]
    if kept.empty:
        return []
    solvers = kept.groupby("instance_key", sort=False)["solver_label"].nunique()
    kept = kept[kept["instance_key"] == solvers.idxmax()]
    best = kept.sort_values("relative_gap", kind="stable").drop_duplicates("solver_label")
    order = {solver: place for place, solver in enumerate(dict.fromkeys([*leading, *kept["solver_label"]]))}
    best = best.sort_values("solver_label", key=lambda labels: labels.map(order))
    return [
        Solution(str(solver), int(run), float(gap), tuple(patterns[int(run)]))
        for solver, run, gap in zip(best["solver_label"], best["id"], best["relative_gap"], strict=True)
    ]


def pattern_points(shown: Sequence[Solution]) -> pd.DataFrame:
    """Return the data of the figure: a row for neighbouring rows of a matrix that are alike and not zero, and one for a matrix of zeros.

    Returns
    -------
    DataFrame
        solver, run_id, relative_gap, part, rows, columns (of the matrix), nonzeros (entries that are not exactly zero), rank, first_row and
        last_row (from 0), where (the columns that are not negligible, such as ``0-3 7``).
    """
    import numpy as np
    import pandas as pd

    found = []
    for solution in shown:
        for pattern in solution.parts:
            mask = pattern.mask
            about = (solution.solver, solution.run_id, solution.relative_gap, pattern.part, *mask.shape, pattern.nonzeros, pattern.rank)
            starts = np.flatnonzero(np.r_[True, (mask[1:] != mask[:-1]).any(axis=1)])
            ends = [*starts[1:].tolist(), len(mask)]
            blocks = [(first, end - 1) for first, end in zip(starts.tolist(), ends, strict=True) if mask[first].any()]
            found += [(*about, *block, _ranges(mask[block[0]])) for block in blocks] or [(*about, None, None, "")]
    columns = ["solver", "run_id", "relative_gap", "part", "rows", "columns", "nonzeros", "rank", "first_row", "last_row", "where"]
    table = pd.DataFrame(found, columns=columns)
    return table.astype(dict.fromkeys(["rank", "first_row", "last_row"], "Int64"))


def patterns(shown: Sequence[Solution], problem: str) -> Figure:
    """Return the figure of one problem: a picture of at most `MOST_SOLVERS` solutions each, its parts below one another."""
    shown = shown[:MOST_SOLVERS]
    most = max(len(solution.parts) for solution in shown)
    words = ["\n".join(_words(pattern, alone=len(solution.parts) == 1) for pattern in solution.parts) for solution in shown]
    names = [style.broken(solution.solver, _PANEL_WIDTH + 0.1, style.LEGEND_SIZE) for solution in shown]
    with style.styled():
        lines = max(text.count("\n") + 1 for text in words)
        headed = max(name.count("\n") + 1 for name in names)
        below, height = 0.16 + 0.14 * lines, 2.4 if most == 1 else 1.7 * most
        figure, axes = style.sheet(problem, [_PANEL_WIDTH] * len(shown), height, left=0.45, below=below, headed=headed, share_y=True)
        for axis, solution, text, name in zip(axes, shown, words, names, strict=True):
            _picture(axis, [pattern.mask for pattern in solution.parts])
            axis.set_title(name, fontsize=style.LEGEND_SIZE, pad=4.0)
            axis.set_xlabel(text, fontsize=_SMALL)
        parts = max((solution.parts for solution in shown), key=len)
        style.ticks(axes[0], "y", [place + 0.5 for place in range(most)], lambda place: parts[int(place)].part)
        for axis in axes:
            axis.tick_params(length=0)
    return figure


def caption(shown: Sequence[Solution]) -> str:
    """Return how the figure of one problem was made, and what is not in it, in sentences."""
    gaps = [solution.relative_gap for solution in shown[:MOST_SOLVERS]]
    parts = [
        "Where the solutions are not zero, rows down and columns across: entries larger than "
        f"{format_target(NEGLIGIBLE_ENTRY)} of the matrix's largest. Of each solver its verified run with the least gap on one instance, "
        f"the fastest specialised and generic ones first; gaps up to {format_gap(max(gaps))}.",
        "Non-zeros are counted exactly, however small.",
    ]
    if any(_is_coarse(pattern.shape) for solution in shown[:MOST_SOLVERS] for pattern in solution.parts):
        parts.append("A large matrix is drawn in blocks, filled where any entry is not zero.")
    if len(shown) > MOST_SOLVERS:
        parts.append(f"Not drawn, but in the data: {', '.join(solution.solver for solution in shown[MOST_SOLVERS:])}.")
    return " ".join(parts)


def pooled(mask: Mask) -> Mask:
    """Return the mask in blocks, true where any entry of a block is: no more of them than paper has points."""
    import numpy as np

    for side, most in enumerate(_POINTS):
        size = mask.shape[side]
        if size > most:
            starts = np.unique(np.arange(most) * size // most)
            mask = np.logical_or.reduceat(mask, starts, axis=side)
    return mask


def _is_coarse(shape: tuple[int, int]) -> bool:
    return any(size > most for size, most in zip(shape, _POINTS, strict=True))


def _picture(axis: Axes, masks: Sequence[Mask]) -> None:
    """The matrices below one another, each as high as the others, with a line between."""
    for place, mask in enumerate(masks):
        if mask.size:
            box = (0.0, 1.0, place + 1.0, float(place))
            axis.imshow(_colours(pooled(mask)), aspect="auto", interpolation="nearest", extent=box, zorder=1)
        if place:
            axis.axhline(float(place), color="0.2", linewidth=0.8)
    axis.set(xlim=(0.0, 1.0), ylim=(float(len(masks)), 0.0), xticks=[])
    axis.grid(visible=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(True)


def _colours(mask: Mask) -> NDArray[np.uint8]:
    import numpy as np

    return np.where(mask[..., None], np.array([0, 114, 178], np.uint8), np.array([255, 255, 255], np.uint8))


def _words(pattern: Pattern, *, alone: bool) -> str:
    """Return the numbers below a picture."""
    mask = pattern.mask
    name = "" if alone else f"{pattern.part}: "
    rank = "" if pattern.rank is None else f", rank {pattern.rank}"
    return f"{name}{int(mask.any(axis=1).sum())} of {mask.shape[0]} rows\n{pattern.nonzeros} non-zeros{rank}"


def _ranges(row: NDArray[np.bool_]) -> str:
    """Return the places that are true: ``0-3 7``."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.r_[False, row, False].astype(np.int8)))
    pairs = zip(edges[::2], edges[1::2] - 1, strict=True)
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in pairs)
