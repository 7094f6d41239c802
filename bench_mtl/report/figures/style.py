"""What all figures share: ink and paper, styles of solvers, panels, logarithmic axes, one legend, and how a figure becomes files.

Light and dark are decided here and nowhere else. Words, axes and grids are drawn in `INK`, which an SVG file calls ``currentColor``: it has
no ground of its own, so a page that holds the drawing gives ground and colour. As a file it has the colours of `_GROUNDS`. PNG and PDF are
black on white. Colours of solvers are read on white and on dark (`looks`), and maps have their own colours behind their numbers.

A solver's artists have the gid ``solver-SLUG`` and its entry in the legend ``legend-SLUG`` (`slug`). An SVG file has them as classes of
groups, so that a page can hide them; ids would have to differ.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

from bench_mtl.core.checks import one_of
from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import looks
from bench_mtl.results.frames import GENERIC, PEER, SPECIALISED, UNKNOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The colour of all that is no data: no solver has it.
INK = "#1b1b1d"

#: The ink of an SVG file on light and on dark ground, and on a ground that its reader does not name: a grey that is read on both.
_GROUNDS = (
    "svg{color-scheme:light dark;color:#737373}@media(prefers-color-scheme:light){svg{color:#1b1b1d}}"
    "@media(prefers-color-scheme:dark){svg{color:#dde3ea}}"
)

#: A line to compare with, and where something was not reached.
GUIDE: dict[str, Any] = {"color": INK, "alpha": 0.5, "linewidth": 0.8, "linestyle": (0, (4, 3)), "zorder": 1}
CROSS: dict[str, Any] = {"marker": "x", "linestyle": "none", "markersize": 6.5, "markeredgewidth": 1.6, "zorder": 4}

STYLE: dict[str, Any] = {
    **dict.fromkeys(["text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"], INK),
    "font.size": 9.0, "axes.titlesize": 9.0, "figure.titlesize": 10.5, "legend.fontsize": 8.0,
    "axes.facecolor": "none", "figure.facecolor": "white", "legend.frameon": False, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.which": "major", "axes.axisbelow": True, "grid.alpha": 0.12, "grid.linewidth": 0.6,
    "text.parse_math": False,  # a label is no formula, whatever dollars are in it
    "svg.fonttype": "none",  # letters that stay letters: small files, whose words are found and copied
    "svg.hashsalt": "bench-mtl",  # without it the ids in an SVG are random
    "pdf.fonttype": 42,  # letters that stay letters, in the font they were drawn with
}  # fmt: skip

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

#: The font that figures are laid out in, and the one of the same widths where it is missing.
_FONTS = 'font-family="DejaVu Sans, Verdana, sans-serif"'
_FONT, _UPRIGHT = re.compile(r" font-family: [^;\"]*;?"), re.compile(r' transform="rotate\(-0 [^)]*\)"')

#: A tag of an SVG file: labels, which come from others, are between them.
TAG = re.compile(r"<[^>]*>")
#: Where coordinates stand in an SVG file, but not scales, whose third decimal counts.
_COORDINATES = re.compile(r' (?:d|x|y)="[^"]*"|(?:translate|rotate)\([^)]*\)')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")

#: Marks of one style, which their group can have for all of them.
_MARKS = re.compile(r'<g( clip-path="[^"]*")>\n((?:<use [^>]*?( style="[^"]*")/>\n)(?:<use [^>]*?\3/>\n)+)</g>')


def solver_looks(kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return how each solver is drawn, from their kinds by label, as options of a plot: the same in all figures of all reports."""
    return {
        label: dict(zip(("color", "marker"), looks.look(label, kind), strict=True))
        | {"linestyle": _KINDS[kind], "gid": f"solver-{slug(label)}"}
        for label, kind in kinds.items()
    }


def looks_in_turn(names: Iterable[str], **more: Any) -> dict[str, dict[str, Any]]:
    """Return how each of several lines that are no solvers of a report is drawn, as options of a plot, with `more` options for all.

    Of 90 names no two look alike, and those of one colour have other dashes.
    """
    count = len(_COLOURS)
    return {
        name: {"color": _COLOURS[place % count], "marker": looks.MARKERS[place % 10], "linestyle": _DASHES[place // count % 4], **more}
        for place, name in enumerate(dict.fromkeys(names))
    }


def use_style() -> None:
    """Give all plots that are made after it the fonts, axes and grid of the figures of reports.

    It changes what the style sets in ``matplotlib.rcParams``, and nothing else; ``matplotlib.rcdefaults()`` undoes it. Formulas between
    dollars stay formulas, unlike in reports, whose labels come from others.
    """
    import matplotlib.style

    matplotlib.style.use({name: value for name, value in STYLE.items() if name != "text.parse_math"})


def solver_look(label: str, kind: str | None = None) -> dict[str, Any]:
    """Return how a solver is drawn in all figures, as options of a plot: ``axes.plot(seconds, gap, **solver_look("admm"))``.

    Colour and marker are those of the label, and never change. The line tells the kind: solid for specialised solvers, dashed for generic
    ones, dotted for peers. They are color, marker, linestyle, gid (the name of its group in an SVG file) and label.

    Parameters
    ----------
    label : of the solver, as in reports: ``"pdhg"``, ``"scs"``, ``"my_solver"``
    kind : "specialised", "generic" or "peer"; by default that of the label, "specialised" where it is not known

    Raises
    ------
    InputError : another kind.
    """
    chosen = looks.kind_of(label) if kind is None else one_of("kind", kind, (SPECIALISED, GENERIC, PEER))
    return solver_looks({label: chosen})[label] | {"label": label}


def slug(label: str) -> str:
    """Return letters that represent a label in names of groups and files; different labels have different ones."""
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


def row_panel(title: str, labels: Sequence[str], width: float) -> tuple[Figure, Axes]:
    """Return a figure of one panel of this width with a row for each label, from the top down."""
    figure, (axes,) = panels(title, [width], 0.8 + 0.17 * len(labels) + 0.13 * sum(1 + label.count("\n") for label in labels))
    axes.set(ylim=(len(labels) - 0.5, -0.5))
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def log_panel(title: str, x: Iterable[float], y: Iterable[float]) -> tuple[Figure, Axes]:
    """Return a figure of one panel with logarithmic axes that hold these places, and a margin."""
    figure, (axes,) = panels(title, [6.0], 3.4)
    for which, places in (("x", [*x]), ("y", [*y])):
        logarithmic(axes, which, min(places) / 1.5, max(places) * 1.5)
    return figure, axes


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
    fitting = [count for count in range(1, len(labels) + 1) if sum(map(max, np.array_split(needed, count))) <= figure.get_figwidth()]
    columns = max(fitting, default=1)
    lines = [1 + label.count("\n") for label in labels]
    figure.set_figheight(figure.get_figheight() + 0.17 * max(map(sum, np.array_split(lines, columns))) + 0.1)
    drawn = figure.legend(list(entries.values()), labels, loc="outside lower center", ncols=columns)
    for handle, text, artist in zip(drawn.legend_handles, drawn.get_texts(), entries.values(), strict=True):
        for part in (handle, text):
            if part is not None and artist.get_gid():
                part.set_gid(artist.get_gid().replace("solver-", "legend-", 1))


def logarithmic(axes: Axes, which: str, low: float, high: float) -> None:
    """Make an axis logarithmic from `low` to `high`, with few ticks in plain numbers."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    decades, axis = math.log10(high / low), axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(AutoLocator() if decades < 0.8 else LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_locator(NullLocator())


def plain(value: float) -> str:
    """Return a number for a tick: ``1e-4``, ``0.02``, ``20``, ``1e5``."""
    return f"{value:g}" if value == 0 or 2e-3 <= abs(value) < 99999 else format_target(value)


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of about this many letters, none of which is much shorter than the others."""
    lines = -(-len(text) // max(width, 10))
    return text if lines <= 1 else textwrap.fill(text, max(10, min(width, round(len(text) / lines * 1.15))), break_long_words=True)


def files(figure: Figure, formats: Iterable[str]) -> dict[str, bytes]:
    """Return the figure as ``svg``, ``png`` and ``pdf``: the same bytes for the same data."""
    sinks = {form: io.BytesIO() for form in formats}
    with styled():
        if (engine := figure.get_layout_engine()) is not None:  # once, whatever the formats: it takes as long as a drawing
            engine.execute(figure)
            figure.set_layout_engine(None)
        for form, sink in sinks.items():
            figure.patch.set_visible(form != "svg")
            figure.savefig(sink, format=form, metadata=_NO_DATES[form], dpi=144)
    drawn = {form: sink.getvalue() for form, sink in sinks.items()}
    return drawn | ({"svg": _svg(drawn["svg"].decode()).encode()} if "svg" in drawn else {})


def _svg(drawing: str) -> str:
    """Return an SVG drawing with inks for both grounds, groups of solvers as classes, numbers of two decimals, and no style said twice."""
    short = TAG.sub(lambda tag: _short(tag[0]), re.sub(r"\n\s+", "\n", drawing))
    lines = short.replace("<svg ", f"<svg {_FONTS} ", 1).replace("</style>", f"{_GROUNDS}</style>", 1)
    return _MARKS.sub(lambda group: f"<g{group[1]}{group[3]}>\n{group[2].replace(group[3], '')}</g>", lines)


def _short(tag: str) -> str:
    rounded = _COORDINATES.sub(lambda place: _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", place[0]), tag)
    classed = re.sub(r'id="((?:solver|legend)-[^"]*)"', r'class="\1"', rounded)
    return _UPRIGHT.sub("", _FONT.sub("", classed)).replace(INK, "currentColor")
