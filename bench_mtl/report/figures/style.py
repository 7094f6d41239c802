"""What all figures share: looks of solvers, the sheet they are drawn on, logarithmic axes, and how a figure becomes files.

Figures are made of matplotlib's objects, without pyplot, which would keep them and look for a screen; seaborn, where it has the plot, draws
on the axes of a sheet (docs/adr/0048-seaborn-on-our-axes.md). A sheet is laid out by arithmetic on the sizes of its texts: matplotlib's own
layout engines draw everything twice to measure it, and took longer than all the rest.

Sizes are for print: at 8 cm a sheet of one panel has letters of 6 points, and one of several panels has them across a page.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import looks
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

DPI = 144

#: Where coordinates stand in an SVG file, but not scales, whose third decimal counts.
_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")

# Okabe and Ito's colours for all kinds of colour vision, without their yellow (too pale for a line), and two of Paul Tol's.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999933")
#: Of lines in turn the first nine are solid, the next nine dashed, and so on.
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.2)), (0, (5, 1.2, 1.2, 1.2)), (0, (1.2, 1.2)))
#: The line style tells the kind of a solver; of one that never got anywhere it is not known.
_KINDS: dict[str, Any] = {SPECIALISED: "-", GENERIC: (0, (4.5, 1.4)), PEER: (0, (1.2, 1.3)), UNKNOWN: (0, (5, 1.2, 1.2, 1.2))}

_FONT_SIZE, LEGEND_SIZE, _TITLE_SIZE = 9.0, 8.0, 10.0

STYLE = {
    "font.size": _FONT_SIZE,
    "axes.titlesize": _FONT_SIZE,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "text.parse_math": False,  # a label is no formula, whatever dollars are in it
    "svg.fonttype": "path",  # letters that look the same where the font is missing
    "svg.hashsalt": "bench-mtl",  # without it the ids in an SVG are random
    "pdf.fonttype": 42,  # letters that stay letters, in the font they were drawn with
}

#: What a file says of when and by what it was made would differ from one machine to the next.
_NO_DATES: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

#: Inches around and between the panels of a sheet: left, right, below with ticks and label, between panels that share their y axis
#: and between those that do not.
_LEFT, _RIGHT, _BELOW, _BETWEEN, _APART = 0.68, 0.24, 0.48, 0.24, 0.66
#: Inches of a row of the legend, of its line, of this and the space beside a label, between its columns, and of a line of the title.
_ROW, _LINE, _BESIDE, _BETWEEN_COLUMNS, _TITLE_LINE = 0.158, 0.28, 0.36, 0.16, 0.2


#: A star is this much larger than other markers, to be seen as well.
_STAR = 1.6


@dataclass(frozen=True)
class LineStyle:
    """How one solver is drawn in all figures."""

    colour: str
    marker: str
    dash: Any = "-"
    """A line style of matplotlib."""


def line_styles(kinds: Mapping[str, str]) -> dict[str, LineStyle]:
    """Return the style of each solver, the same in all reports: colour and marker are of its label, the dash is of its kind.

    Parameters
    ----------
    kinds : of solvers, one of `bench_mtl.results.frames`, by label
    """
    return {label: LineStyle(*looks.look(label, kind), _KINDS[kind]) for label, kind in kinds.items()}


def styles_in_turn(names: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each of several lines that are no solvers of a report: 9 colours and 10 markers make 90 different ones, and equal
    colours have other dashes."""
    found = {}
    for i, name in enumerate(dict.fromkeys(names)):
        dash = _DASHES[i // len(_COLOURS) % len(_DASHES)]
        found[name] = LineStyle(_COLOURS[i % len(_COLOURS)], looks.MARKERS[i % len(looks.MARKERS)], dash)
    return found


@contextmanager
def styled() -> Iterator[None]:
    """Within it, figures have the style of all figures, whatever the user's settings, and letters that the font lacks are no warning."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), _any_letters():
        yield


@contextmanager
def _any_letters() -> Iterator[None]:
    """Within it nobody is warned of letters that the font lacks, which are drawn as boxes: the labels are whole in all texts and tables."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def sheet(
    title: str,
    widths: Sequence[float],
    height: float,
    handles: Sequence[Line2D] = (),
    *,
    share_y: bool = False,
    left: float = _LEFT,
    below: float = _BELOW,
    headed: int = 0,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels side by side, with a title above and a legend below, laid out.

    Parameters
    ----------
    title : broken into lines where it is too wide
    widths, height : of the panels in inches
    handles : of the legend; what is wider than the sheet is broken into lines
    share_y : whether the panels have one y axis
    left, below : inches for the ticks and labels of the axes
    headed : lines of the panels' own titles
    """
    from matplotlib.figure import Figure

    between = _BETWEEN if share_y else _APART
    width = left + sum(widths) + between * (len(widths) - 1) + _RIGHT
    heading = broken(title, width - 0.3, _TITLE_SIZE)
    labels = [broken(str(handle.get_label()), width - 0.3 - _BESIDE, LEGEND_SIZE) for handle in handles]
    columns, rows = _columns(labels, width - 0.2) if handles else (1, 0)
    above = 0.1 + _TITLE_LINE * (heading.count("\n") + 1) + _TITLE_LINE * headed * 0.85
    foot = below + _ROW * rows + (0.1 if rows else 0.0)
    full = above + height + foot
    figure = Figure(figsize=(width, full))
    figure.text(0.5, 1.0 - 0.06 / full, heading, ha="center", va="top", fontsize=_TITLE_SIZE)
    axes: list[Axes] = []
    start = left
    for panel in widths:
        place = (start / width, foot / full, panel / width, height / full)
        axes.append(figure.add_axes(place, sharey=axes[0] if share_y and axes else None))
        start += panel + between
    if share_y:
        for axis in axes[1:]:
            axis.tick_params(labelleft=False)
    if handles:
        _legend(figure, handles, labels, columns, (foot - below - 0.04, width, full))
    return figure, axes


def left_of(ends: tuple[float, float] | None) -> float:
    """Return the inches that the ticks and the label of a y axis need; `ends` are those of an axis that is not logarithmic."""
    if ends is None:
        return _LEFT
    from matplotlib.ticker import AutoLocator

    ticks = [f"{tick:.6g}" for tick in AutoLocator().tick_values(*ends) if ends[0] <= tick <= ends[1]]
    return max(_LEFT, 0.36 + max(map(text_width, ticks), default=0.0))


def files(figure: Figure, formats: Iterable[str]) -> dict[str, bytes]:
    """Return the figure as ``svg``, ``png`` and ``pdf``: the same bytes for the same data."""
    made = {}
    with styled():
        for form in formats:
            sink = io.BytesIO()
            # Few colours on white are as small at the least effort.
            quick: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if form == "png" else {}
            figure.savefig(sink, format=form, metadata=_NO_DATES[form], dpi=DPI, **quick)
            made[form] = compact_svg(sink.getvalue().decode()).encode() if form == "svg" else sink.getvalue()
    return made


def compact_svg(drawing: str) -> str:
    """Return an SVG drawing with numbers of two decimals and without needless spaces: a fifth smaller, and no pixel moves that is seen."""
    rounded = _COORDINATES.sub(lambda place: _LONG_NUMBER.sub(_two_decimals, place[0]), drawing)
    compact = re.sub(r' d="([^"]*)"', lambda path: f' d="{_compact_path(path[1])}"', rounded)
    return re.sub(r"\n\s+", "\n", compact)


def _compact_path(commands: str) -> str:
    """Return the commands of a path without spaces around their letters; a letter that repeats may be left out, but for M."""
    parts, last = [], ""
    for letter, numbers in re.findall(r"([MLCQz])([^MLCQz]*)", commands):
        parts.append((" " if letter == last and letter in "LCQ" else letter) + " ".join(numbers.split()))
        last = letter
    return "".join(parts)


def _two_decimals(number: re.Match[str]) -> str:
    short = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def logarithmic(
    axes: Axes, which: Literal["x", "y"], low: float, high: float, form: Callable[[float], str] | None = None, *, most: int = 7
) -> None:
    """Make an axis logarithmic from `low` to `high`, with at most about `most` ticks in plain numbers.

    matplotlib's own powers of ten and minor ticks take longer to typeset than the rest of a figure.
    """
    if which == "x":
        axes.set(xscale="log", xlim=(low, high))
    else:
        axes.set(yscale="log", ylim=(low, high))
    ticks(axes, which, log_ticks(low, high, most), form or plain)


def ticks(axes: Axes, which: Literal["x", "y"], places: Sequence[float], form: Callable[[float], str]) -> None:
    """Ticks at these places and nowhere else."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(FixedFormatter([form(place) for place in places]))
    axis.set_minor_locator(NullLocator())


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to `high`: powers of ten, all or every n-th, or 1, 2 and 5 times such powers where there are few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // most))
    decades = [10.0**power for power in range(first, last + 1) if power % step == 0]
    if len(decades) >= 3:
        return decades
    for factors in ((1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)):
        finer = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in factors]
        kept = [place for place in finer if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)]
        if len(kept) >= 3:
            break
    return kept or decades or [low]


def plain(value: float) -> str:
    """``0.001``, ``20``, ``1e5``."""
    return f"{value:g}" if 1e-3 <= value < 99999 else format_target(value)


def gap(value: float) -> str:
    """Return a relative gap as in the tables, but for 1 and more."""
    return format_target(value) if value < 0.99 else f"{value:g}"


def line(look: LineStyle, **more: Any) -> dict[str, Any]:
    """Return the options of matplotlib for a line in this style."""
    sizes = {"markersize": _STAR * more["markersize"]} if look.marker == "*" and "markersize" in more else {}
    return {"color": look.colour, "marker": look.marker, "linestyle": look.dash, **more, **sizes}


def mark(**more: Any) -> dict[str, Any]:
    """Return the cross of a run that met a limit."""
    return {"marker": "x", "markersize": 7.0, "markeredgewidth": 1.6, "linestyle": "none", "zorder": 4, **more}


def _legend(figure: Figure, handles: Sequence[Line2D], labels: Sequence[str], columns: int, place: tuple[float, float, float]) -> None:
    """Lines and labels in columns, centred, below a height in inches on a sheet of a width and a height.

    matplotlib's own legend takes as long to write as all the rest of a figure.
    """
    top, width, full = place
    parts = _parts(len(labels), columns)
    wide = [max(_label_width(label) for label in labels[part]) for part in parts]
    start = 0.5 * (width - sum(wide) - _BETWEEN_COLUMNS * (columns - 1))
    for part, needed in zip(parts, wide, strict=True):
        height = top
        for handle, label in zip(handles[part], labels[part], strict=True):
            taken = _ROW * (label.count("\n") + 1)
            middle = (height - 0.5 * taken) / full
            ends = [(start + _LINE * share) / width for share in (0.0, 0.5, 1.0)]
            handle.set(data=(ends, [middle] * 3), markevery=[1], transform=figure.transFigure)
            figure.add_artist(handle)
            figure.text((start + _BESIDE) / width, middle, label, va="center", fontsize=LEGEND_SIZE)
            height -= taken
        start += needed + _BETWEEN_COLUMNS


def _columns(labels: Sequence[str], width: float) -> tuple[int, int]:
    """Return the numbers of columns and rows of a legend: as many columns as fit into `width` inches."""
    wide = [_label_width(label) for label in labels]
    for columns in range(min(6, len(labels)), 0, -1):
        parts = _parts(len(labels), columns)
        if sum(max(wide[part]) for part in parts) + _BETWEEN_COLUMNS * (columns - 1) <= width:
            break
    lines = [label.count("\n") + 1 for label in labels]
    return columns, max(sum(lines[part]) for part in parts)


def _label_width(label: str) -> float:
    return text_width(label, LEGEND_SIZE) + _BESIDE


def _parts(total: int, columns: int) -> list[slice]:
    """Return the columns of a legend, from left to right: the first ones have one entry more."""
    least, more = divmod(total, columns)
    ends = [0]
    for column in range(columns):
        ends.append(ends[-1] + least + (column < more))
    return [slice(start, end) for start, end in pairwise(ends)]


def broken(text: str, width: float, size: float = _FONT_SIZE) -> str:
    """Return the text in lines of `width` inches; a single word may be longer."""
    whole = text_width(text, size)
    if whole <= width:
        return text
    return "\n".join(textwrap.wrap(text, max(10, int(len(text) * width / whole * 0.96)), break_long_words=True))


def text_width(text: str, size: float = _FONT_SIZE) -> float:
    """Return the width of a text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    with _any_letters():
        return max(text_to_path.get_text_width_height_descent(part, font, ismath=False)[0] for part in text.split("\n")) / 72.0
