"""What all figures share: colours, markers, axes, and how a figure becomes a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 144

# Okabe and Ito's colours for all kinds of colour vision, without their yellow (too pale for a line), and two of Paul Tol's.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999933")
_MARKERS = ("o", "s", "^", "D", "v", "P", "<", "*", ">", "h")

STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # letters that stay letters, in the font they were drawn with
    "svg.hashsalt": "bench-mtl",  # without it the ids in an SVG are random
}

#: What a file says of when and by what it was made would differ from one machine to the next.
_NO_DATES: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class LineStyle:
    """How one solver is drawn in all figures of a report."""

    colour: str
    marker: str


def line_styles(solvers: Iterable[str]) -> dict[str, LineStyle]:
    """A style per solver in the order given: 9 colours and 10 markers make 90 different ones."""
    unique = dict.fromkeys(solvers)
    return {name: LineStyle(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]) for i, name in enumerate(unique)}


def files(figure: Figure, formats: Iterable[str]) -> dict[str, bytes]:
    """The figure as ``svg``, ``png`` and ``pdf``: the same bytes for the same data."""
    import matplotlib.style

    made = {}
    with matplotlib.style.context(["default", STYLE]):
        cut: dict[str, Any] = {"dpi": DPI, "bbox_inches": figure.get_tightbbox().padded(0.08)}
        for form in formats:
            sink = io.BytesIO()
            figure.savefig(sink, format=form, metadata=_NO_DATES[form], **cut)
            made[form] = sink.getvalue()
    return made


def plain_seconds(axis: Axes, places: Sequence[float]) -> None:
    """A logarithmic axis of sizes with ticks at `places` alone, against one of seconds, both in plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.xaxis.set_major_locator(FixedLocator(list(places)))
    axis.xaxis.set_minor_locator(NullLocator())
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
