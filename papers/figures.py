"""Declared figures of a report, in the style of all reports: lines with bands, dots with bars, matrices as pictures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench_mtl.report.figures import looks_in_turn, styled
from papers.experiment import Experiment, Read, Section
from papers.tables import means, order_of, rows_of
from papers.values import MEASURE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches of a panel.
WIDTH, HEIGHT = 3.1, 2.7

#: Panels side by side; markers of a line that has many points.
ACROSS, _MARKERS = 3, 12


def sheet(
    panels: int, *, width: float = WIDTH, height: float = HEIGHT, across: int = ACROSS, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels, at most so many side by side, laid out by matplotlib."""
    from matplotlib.figure import Figure

    columns = min(panels, across)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).ravel().tolist()
    for spare in axes[panels:]:
        spare.remove()
    return figure, axes[:panels]


@dataclass(frozen=True)
class Lines:
    """Means over the repetitions along a column of numbers, in bands of their intervals: a line for each value of `hue`.

    Panels are the values of `panel`, or the measures where it is empty. Other settings are chosen as those of a `Table` are.
    """

    title: str
    measures: Sequence[str]
    x: str
    hue: str
    panel: str = ""
    dash: str = ""  # a column whose first value has solid lines, and the second dashed ones
    words: str = ""
    name: str = ""
    at: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    log: str = "x"  # which axes are logarithmic: `x`, `y`, `xy` or none
    ticks: bool = True  # whether x has a tick at every value and nowhere else
    within: tuple[float, float] = (-math.inf, math.inf)  # where values can be: bands end there
    share_y: bool = True  # whether panels of one measure have one y axis

    def __call__(self, read: Read) -> Section | None:
        """Return the figure of what was read; None where nothing of it was run."""
        keys = list(dict.fromkeys([MEASURE, *filter(None, (self.x, self.hue, self.panel, self.dash))]))
        digits = means(rows_of(read, self.measures, self.at, keys), keys)
        draw = partial(self._drawn, digits, read.experiment)
        return Section(self.title, self.words, self.name, digits=digits, draw=draw) if len(digits) else None

    def _drawn(self, frame: pd.DataFrame, experiment: Experiment) -> Figure:
        split = self.panel or MEASURE
        panels = order_of(experiment, split, frame) if self.panel else [name for name in self.measures if name in set(frame[MEASURE])]
        hues = order_of(experiment, self.hue, frame)
        dashes = order_of(experiment, self.dash, frame) if self.dash else [""]
        looks = looks_in_turn(hues, markersize=4.5, linewidth=1.3)
        with styled():
            figure, axes = sheet(len(panels), share_y=bool(self.panel) and self.share_y)
            for axis, panel in zip(axes, panels, strict=True):
                own = frame[frame[split] == panel].astype({self.x: "float64"}).sort_values(self.x)
                for hue, (place, dash) in itertools.product(hues, enumerate(dashes)):
                    part = own[(own[self.hue] == hue) & (own[self.dash] == dash if self.dash else True)]
                    look: dict[str, Any] = looks[hue] | ({"linestyle": ("-", (0, (4, 2)), ":")[place]} if self.dash else {})
                    if len(part):
                        named = ", ".join(filter(None, [experiment.text(hue), experiment.text(dash)]))
                        look |= {"markevery": max(1, len(part) // _MARKERS), "markeredgewidth": 1.0, "markeredgecolor": look["color"]}
                        axis.plot(part[self.x], part["mean"], label=named, **look)
                        if (part["half_width"] > 0.0).any():  # values without repetitions have no band
                            low, high = ((part["mean"] + sign * part["half_width"]).clip(*self.within) for sign in (-1.0, 1.0))
                            axis.fill_between(part[self.x], low, high, color=look["color"], alpha=0.18, linewidth=0.0)
                axis.set(xlabel=experiment.titles.get(self.x, self.x), title=experiment.text(panel) if self.panel else "")
                is_named = not self.panel or axes.index(axis) % ACROSS == 0
                axis.set_ylabel(experiment.text(self.measures[0] if self.panel else panel) if is_named else "")
                scale(axis, self.log, sorted(own[self.x].unique()) if self.ticks else [])
            legend(figure, axes)
        return figure


@dataclass(frozen=True)
class Dots:
    """Means of a measure with bars, a line for each value of `y`; of several values of `hue` each has a marker of its own."""

    title: str
    measure: str
    y: str
    hue: str = ""
    panel: str = ""
    words: str = ""
    name: str = ""
    at: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    spread: str = "half_width"  # what bars are: `half_width` of the interval, or the `deviation` of a repetition
    published: bool = False  # whether published numbers of the measure are crosses beside ours

    def __call__(self, read: Read) -> Section | None:
        """Return the figure of what was read; None where nothing of it was run."""
        experiment, keys = read.experiment, [*filter(None, (self.panel, self.hue, self.y))]
        points = means(rows_of(read, (self.measure,), self.at, keys), keys)
        if not len(points):
            return None
        if self.published:
            points["published"] = [self._published(place, experiment) for place in points[keys].to_dict("records")]
        return Section(self.title, self.words, self.name, digits=points, draw=partial(self._drawn, points, experiment))

    def _published(self, place: Mapping[Any, Any], experiment: Experiment) -> float:
        for claim in experiment.claims:
            where = {column: values[0] for column, values in claim.places.items()} | {experiment.subject: claim.subject}
            if claim.measure == self.measure and claim.is_number and claim.number is not None and place.items() <= where.items():
                return float(claim.number)
        return math.nan

    def _drawn(self, points: pd.DataFrame, experiment: Experiment) -> Figure:
        panels = order_of(experiment, self.panel, points) if self.panel else [""]
        names = order_of(experiment, self.y, points)
        hues = order_of(experiment, self.hue, points) if self.hue else ["ours"]
        looks = looks_in_turn([*hues, "published"], markersize=4.5)
        with styled():
            figure, axes = sheet(len(panels), width=2.6, height=0.2 * len(names) + 0.7, across=4, share_y=True)
            for axis, panel in zip(axes, panels, strict=True):
                own = points[points[self.panel] == panel] if self.panel else points
                for hue in hues:
                    part = own[own[self.hue] == hue] if self.hue else own
                    heights = [names.index(name) for name in part[self.y]]
                    look = looks[hue] | {"linestyle": "none", "label": experiment.text(hue)}
                    axis.errorbar(part["mean"], heights, xerr=part[self.spread].fillna(0.0), elinewidth=0.8, **look)
                if self.published:
                    heights = [names.index(name) for name in own[self.y]]
                    axis.plot(own["published"], heights, **looks["published"] | {"linestyle": "none", "marker": "x", "label": "published"})
                axis.set_yticks(range(len(names)), [experiment.text(name) for name in names])
                axis.set(title=experiment.text(panel), xlabel=experiment.text(self.measure), ylim=(len(names) - 0.4, -0.6))
            if self.hue or self.published:
                legend(figure, axes)
        return figure


@dataclass(frozen=True)
class Matrices:
    """Matrices as pictures, each on a scale of its own: sizes of entries, white is 0; or with their signs, red above and blue below."""

    title: str
    pictures: Callable[[Read], Sequence[tuple[str, Any]]]  # labels and matrices; none where there are no such cells
    words: str = ""
    name: str = ""
    axes: tuple[str, str] = ("", "")  # what rows and columns are
    size: tuple[float, float] = (2.2, 3.6)  # inches of a picture
    signed: bool = False
    lines: tuple[float | None, float | None] = (None, None)  # where a line is drawn across, and one down
    entries: str = "size of an entry"  # what the colour bars show

    def __call__(self, read: Read) -> Section | None:
        """Return the pictures of what was read; None where there are none."""
        pictures = self.pictures(read)
        return Section(self.title, self.words, self.name, draw=partial(self._drawn, pictures)) if pictures else None

    def _drawn(self, pictures: Sequence[tuple[str, Any]]) -> Figure:
        with styled():
            figure, axes = sheet(len(pictures), width=self.size[0], height=self.size[1], across=7)
            for axis, (label, matrix) in zip(axes, pictures, strict=True):
                shades = np.asarray(matrix) if self.signed else np.sqrt(np.abs(matrix))
                sizes = np.abs(shades)[shades != 0.0]
                most = float(np.quantile(sizes, 0.99)) if len(sizes) else 1.0
                shown: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most} if self.signed else {"cmap": "Greys", "vmin": 0.0}
                image = axis.imshow(shades, aspect="auto", interpolation="nearest", vmax=most, **shown)
                bar = figure.colorbar(image, ax=axis, location="bottom", extend="both" if self.signed else "max")
                bar.set_label(self.entries if axis is axes[0] else "")
                ends = [-most, 0.0, most] if self.signed else [0.0, most]
                bar.set_ticks(ends, labels=[f"{end if self.signed else end**2:.2g}" for end in ends])
                across, down = self.lines
                if across is not None:
                    axis.axhline(across - 0.5, color="#D55E00", linewidth=0.8)
                if down is not None:
                    axis.axvline(down - 0.5, color="#D55E00", linewidth=0.8)
                axis.set(title=label, xlabel=self.axes[1], ylabel=self.axes[0] if axis is axes[0] else "")
                if not any(self.axes):  # of no meaning, such as those of pixels
                    axis.set(xticks=[], yticks=[])
                axis.grid(visible=False)
                axis.spines[["top", "right"]].set_visible(True)
        return figure


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Give a figure one legend below its panels, of all that they have."""
    entries: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    columns = max(1, int(figure.get_figwidth() / 2.3))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, fontsize=8.0, handlelength=3.0)


def scale(axis: Axes, log: str, places: Sequence[float] = ()) -> None:
    """Make axes logarithmic, with plain numbers, and give x ticks at these places alone, if there are any."""
    for name in log:
        axis.set(**{f"{name}scale": "log"})
        (axis.xaxis if name == "x" else axis.yaxis).set_major_formatter("{x:g}")
        axis.minorticks_off()
    if places:
        axis.set_xticks(places, [f"{place:g}" for place in places])
