"""Panels of curves over the rounds of streams, a line for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def unrolled(found: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a row for each round that a pass was looked at: its columns, `T` and `value` of the list `measure`."""
    known = found[found[measure].map(lambda value: isinstance(value, list))]
    return known.rename(columns={"rounds": "T"}).assign(value=known[measure]).explode(["T", "value"], ignore_index=True)


def panels(
    title: str,
    frame: pd.DataFrame,
    column: str,
    names: Mapping[Any, str],
    methods: Mapping[str, str],
    label: str,
    *,
    logarithmic: bool = True,
    width: float = 2.0,
) -> Figure:
    """Draw the means over the repetitions against the rounds on a logarithmic axis, a panel for each value of a column.

    Parameters
    ----------
    frame : of `unrolled`
    names, methods : of the panels and of the lines, as they are written
    logarithmic : whether the y axis is so too; values that are not above 0 are then left out
    width : of a panel, in inches
    """
    from matplotlib.lines import Line2D

    from bench_mtl.papers.bands import draw_means
    from bench_mtl.report.columns import format_count
    from bench_mtl.report.figures import style

    frame = frame.astype({"T": "float64", "value": "float64"})
    frame = frame[frame["value"] > 0.0] if logarithmic else frame
    shown = [name for name in names if (frame[column] == name).any()]
    looks = style.styles_in_turn(methods)
    lines = {method: style.line(looks[method], markersize=4.0, linewidth=1.2) for method in methods if (frame["method"] == method).any()}
    with style.styled():
        handles = [Line2D([], [], label=methods[method], **look) for method, look in lines.items()]
        figure, axes = style.sheet(title, [width] * len(shown), _HEIGHT, handles, headed=1)
        for axis, name in zip(axes, shown, strict=True):
            own = frame[frame[column] == name]
            for method, look in lines.items():
                draw_means(axis, own[own["method"] == method], "T", "value", look)
            axis.set(title=names[name], xlabel="rounds", ylabel="")
            places = sorted(own["T"].unique())
            style.logarithmic(axis, "x", places[0] / 1.3, places[-1] * 1.3)
            style.ticks(axis, "x", _every_other(places), format_count)
            if logarithmic:
                style.logarithmic(axis, "y", own["value"].min() / 1.3, own["value"].max() * 1.3)
        axes[0].set_ylabel(label)
    return figure


_HEIGHT = 2.3


def _every_other(places: Sequence[float]) -> list[float]:
    """Every other place, the last one among them: all of them would be written over one another."""
    return list(places[::-1][::2][::-1])
