"""Panels of costs on two logarithmic axes, beside a law that is drawn for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Guide(NamedTuple):
    """A law whose shape is drawn, through the middle of a panel's points at their right end."""

    name: str
    law: Callable[[float], float]


def panels(
    title: str,
    frame: pd.DataFrame,
    names: Sequence[str],
    lines: Sequence[str],
    xlabel: str | Mapping[str, str],
    ylabel: str,
    guide: Guide,
    width: float = 2.8,
) -> Figure:
    """Draw the medians over the draws of `y` against `x`, and the draws as pale marks: panels, and a curve for each of `line` in them.

    Parameters
    ----------
    frame : columns panel, line, x, y; what is not above 0 is left out
    names, lines : of the panels and of the curves, in their order; those without a row are left out
    xlabel : one for all panels, or by panel
    guide : of all panels
    width : of a panel, in inches
    """
    from matplotlib.lines import Line2D

    from bench_mtl.report.figures import style

    frame = frame[["panel", "line", "x", "y"]].astype({"x": "float64", "y": "float64"})
    frame = frame[frame["y"] > 0.0]
    shown = [name for name in names if (frame["panel"] == name).any()]
    looks = style.styles_in_turn(lines)
    curves = {each: style.line(looks[each], markersize=4.0, linewidth=1.2) for each in lines if (frame["line"] == each).any()}
    dotted: dict[str, Any] = {"color": "0.45", "linestyle": (0, (1.2, 1.6)), "linewidth": 1.1}
    with style.styled():
        handles = [Line2D([], [], label=each, **look) for each, look in curves.items()]
        handles.append(Line2D([], [], label=guide.name, **dotted))
        headed = 1 if any(shown) else 0
        figure, axes = style.sheet(title, [width] * len(shown), _HEIGHT, handles, headed=headed)
        for axis, name in zip(axes, shown, strict=True):
            own = frame[frame["panel"] == name]
            for each, look in curves.items():
                points = own[own["line"] == each]
                axis.plot(points["x"], points["y"], **{**look, "linestyle": "none", "markersize": 2.5, "alpha": 0.3})
                axis.plot(points.groupby("x")["y"].median(), **look)
            places = _places(own["x"].min(), own["x"].max())
            end = float(own.loc[own["x"] == places[-1], "y"].median())
            law = [end * guide.law(x) / guide.law(places[-1]) for x in places]
            axis.plot(places, law, zorder=1, **dotted)
            axis.set(title=name, xlabel=xlabel if isinstance(xlabel, str) else xlabel[name], ylabel="")
            style.logarithmic(axis, "x", places[0] / 1.3, places[-1] * 1.3, most=6)
            style.logarithmic(axis, "y", own["y"].min() / 1.5, own["y"].max() * 1.5)
        axes[0].set_ylabel(ylabel)
    return figure


_HEIGHT = 2.5


def _places(low: float, high: float, count: int = 33) -> list[float]:
    """Return places from low to high, as far from one another on a logarithmic axis; the ends are exact."""
    ratio = (high / low) ** (1.0 / (count - 1))
    return [low, *(low * ratio**k for k in range(1, count - 1)), high]
