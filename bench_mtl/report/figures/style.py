"""What all figures share: ink and paper, looks of solvers, panels, logarithmic axes, one legend, and how a figure becomes files.

Light and dark are decided here and nowhere else. Words, axes and grids are drawn in `INK`, which an SVG file calls ``currentColor``; behind
all is the group ``paper``. A file by itself is black on white paper. A page that leaves the paper out gives its own ground and colour of
text. Colours of solvers are read on white and on dark (`looks`), and maps have their own colours behind their numbers.

A solver's artists have the gid ``solver-SLUG`` and its entry in the legend ``legend-SLUG`` (`slug`). An SVG file has them as classes of
groups, so that a page can hide them; ids would have to differ.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import looks
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 144

#: The colour of all that is no data: no solver has it.
INK = "#1b1b1d"

#: A line to compare with.
GUIDE: dict[str, Any] = {"color": INK, "alpha": 0.5, "linewidth": 0.8, "linestyle": (0, (4, 3)), "zorder": 1}

STYLE = {
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.6,
    "figure.facecolor": "white",
    "figure.titlesize": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "text.parse_math": False,  # a label is no formula, whatever dollars are in it
    "svg.fonttype": "path",  # letters that look the same where the font is missing
    "svg.hashsalt": "bench-mtl",  # without it the ids in an SVG are random
    "pdf.fonttype": 42,  # letters that stay letters, in the font they were drawn with
}

#: The line tells the kind of a solver; of one that never got anywhere it is not known.
_KINDS: dict[str, Any] = {SPECIALISED: "-", GENERIC: (0, (4.5, 1.4)), PEER: (0, (1.2, 1.3)), UNKNOWN: (0, (5, 1.2, 1.2, 1.2))}

# Okabe and Ito's colours for all kinds of colour vision, without their yellow (too pale for a line) and black, and three of Paul Tol's.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#7F7F7F")
#: Of lines in turn the first nine are solid, the next nine dashed, and so on.
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.2)), (0, (5, 1.2, 1.2, 1.2)), (0, (1.2, 1.2)))

#: What a file says of when and by what it was made would differ from one machine to the next.
_NO_DATES: dict[str, dict[str, Any]] = {
    "svg": {"Date": None}, "png": {"Software": None}, "pdf": dict.fromkeys(["CreationDate", "Creator", "Producer"]),
}  # fmt: skip

#: Where coordinates stand in an SVG file, but not scales, whose third decimal counts.
_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def solver_looks(kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return how each solver is drawn, as options of a plot: the same in all figures of all reports.

    Parameters
    ----------
    kinds : of solvers, one of `bench_mtl.results.frames`, by label
    """
    found = {}
    for label, kind in kinds.items():
        colour, marker = looks.look(label, kind)
        found[label] = {"color": colour, "marker": marker, "linestyle": _KINDS[kind], "gid": f"solver-{slug(label)}"}
    return found


def looks_in_turn(names: Iterable[str], **more: Any) -> dict[str, dict[str, Any]]:
    """Return how each of several lines that are no solvers of a report is drawn, as options of a plot, with `more` options for all.

    Of 90 names no two look alike, and those of one colour have other dashes.
    """
    found = {}
    for place, name in enumerate(dict.fromkeys(names)):
        dash = _DASHES[place // len(_COLOURS) % len(_DASHES)]
        marker = looks.MARKERS[place % len(looks.MARKERS)]
        found[name] = {"color": _COLOURS[place % len(_COLOURS)], "marker": marker, "linestyle": dash, **more}
    return found


def slug(label: str) -> str:
    """Return letters that stand for a label in names of groups and files; different labels have different ones."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", label)
    return plain if plain == label else f"{plain[:60]}-{crc32(label.encode()):08x}"


@contextmanager
def styled() -> Iterator[None]:
    """Within it, figures have the style of all figures, whatever the user's settings, and letters that the font lacks are no warning."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def panels(title: str, widths: Sequence[float], height: float, *, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels side by side, of these inches, that matplotlib lays out when it is drawn."""
    from matplotlib.figure import Figure

    heading = wrapped(title, round(12 * sum(widths)))
    figure = Figure(figsize=(sum(widths), height + 0.2 * (1 + heading.count("\n"))), layout="constrained")
    figure.suptitle(heading, x=0.01, ha="left")
    axes = figure.subplots(1, len(widths), sharey=share_y, squeeze=False, width_ratios=list(widths))
    return figure, axes[0].tolist()


def legend(figure: Figure) -> None:
    """Give a figure one legend of all that has a label in any of its panels, below them: the figure grows by as much."""
    import numpy as np

    entries: dict[str, Any] = {}
    for axes in figure.axes:
        entries = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)) | entries
    if not entries:
        return
    labels = [wrapped(label, 60) for label in entries]
    needed = np.array([0.64 + 0.07 * max(map(len, label.split("\n"))) for label in labels])
    counts = range(1, len(labels) + 1)
    columns = max((count for count in counts if sum(map(max, np.array_split(needed, count))) <= figure.get_figwidth()), default=1)
    lines = [1 + label.count("\n") for label in labels]
    figure.set_figheight(figure.get_figheight() + 0.17 * max(map(sum, np.array_split(lines, columns))) + 0.1)
    drawn = figure.legend(list(entries.values()), labels, loc="outside lower center", ncols=columns)
    for handle, text, artist in zip(drawn.legend_handles, drawn.get_texts(), entries.values(), strict=True):
        for part in (handle, text) if artist.get_gid() else ():
            part.set_gid(artist.get_gid().replace("solver-", "legend-", 1))


def logarithmic(axes: Axes, which: Literal["x", "y"], low: float, high: float, form: Callable[[float], str] | None = None) -> None:
    """Make an axis logarithmic from `low` to `high`, with few ticks in plain numbers."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    decades, axis = math.log10(high / low), axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(AutoLocator() if decades < 0.8 else LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: (form or plain)(value)))
    axis.set_minor_locator(NullLocator())


def plain(value: float) -> str:
    """Return a number for a tick: ``0.001``, ``20``, ``1e5``."""
    return f"{value:g}" if value == 0 or 1e-3 <= abs(value) < 99999 else format_target(value)


def gap(value: float) -> str:
    """Return a relative gap for a tick: ``1e-4``, and ``1``."""
    return format_target(value) if value < 0.99 else plain(value)


def shortened(text: str, most: int) -> str:
    """Return a text of at most this many letters."""
    return text if len(text) <= most else f"{text[: most - 2]}..."


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of about this many letters, none of which is much shorter than the others."""
    lines = -(-len(text) // max(width, 10))
    return text if lines <= 1 else textwrap.fill(text, max(10, min(width, round(len(text) / lines * 1.15))), break_long_words=True)


def files(figure: Figure, formats: Iterable[str]) -> dict[str, bytes]:
    """Return the figure as ``svg``, ``png`` and ``pdf``: the same bytes for the same data."""
    made = {}
    with styled():
        figure.patch.set_gid("paper")
        if (engine := figure.get_layout_engine()) is not None:  # once, whatever the formats: it takes as long as a drawing
            engine.execute(figure)
            figure.set_layout_engine(None)
        for form in formats:
            sink = io.BytesIO()
            figure.savefig(sink, format=form, metadata=_NO_DATES[form], dpi=DPI)
            made[form] = _svg(sink.getvalue().decode()).encode() if form == "svg" else sink.getvalue()
    return made


def _svg(drawing: str) -> str:
    """Return an SVG drawing with the page's ink, groups of solvers as classes, and numbers of two decimals."""
    rounded = _COORDINATES.sub(lambda place: _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", place[0]), drawing)
    classed = re.sub(r'id="((?:solver|legend)-[^"]*)"', r'class="\1"', rounded)
    return re.sub(r"\n\s+", "\n", classed.replace(INK, "currentColor"))
