"""The map of speed-ups as a table: a row per problem, a column per target, cells coloured by the logarithm of the ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_mtl.report.columns import BLANK, format_ratio, format_target
from bench_mtl.report.figures import speed_ups

if TYPE_CHECKING:
    import pandas as pd

#: Colours on either side of equal.
LEVELS = 6

#: The colours reach at least from a tenth to ten times, and at most from a thousandth to a thousand times.
_LEAST_DECADES, _MOST_DECADES = 1.0, 3.0


@dataclass(frozen=True)
class MapCell:
    """The ratio of one problem to one target."""

    words: str
    tone: str = ""
    """Class of its colour: p1 to p6 where the specialised solver is faster, n1 to n6 where the generic one is, m where they are alike."""
    bound: bool = False
    about: str = ""
    """Who is fastest."""


@dataclass(frozen=True)
class MapRow:
    """The ratios of one problem."""

    problem: str
    anchor: str
    """Of the part of the page about it."""
    cells: Sequence[MapCell]


@dataclass(frozen=True)
class SpeedUpMap:
    """The table as the template draws it."""

    targets: Sequence[str]
    rows: Sequence[MapRow]
    tones: Sequence[str]
    """From the generic solver's end of the scale to the other."""
    ends: tuple[str, str, str]
    """Ratios at the ends of the scale and in its middle."""
    sides: tuple[str, str]
    """Who is faster on either side."""
    bounds: bool
    """Whether there are any."""
    caption: str


def speed_up_map(winners: pd.DataFrame, anchors: Mapping[str, str], baseline: str | None = None) -> SpeedUpMap | None:
    """Return the map of the table `winners`; None where no problem has a ratio.

    Parameters
    ----------
    winners : of `bench_mtl.report.tables.winners`
    anchors : of the parts of the page, by problem
    baseline : label of the solver that the others are compared with; None for the fastest generic one
    """
    points = speed_ups.speed_up_points(winners)
    known = points["speed_up"].notna()
    if not known.any():
        return None
    problems = [str(problem) for problem in points.loc[known, "problem"].unique()][: speed_ups.MOST_ROWS]
    targets = [float(target) for target in points["target"].unique()]
    largest = max((abs(math.log10(ratio)) for ratio in points.loc[known & (points["speed_up"] > 0), "speed_up"]), default=0.0)
    reach = min(max(_LEAST_DECADES, largest), _MOST_DECADES)
    cells: dict[tuple[str, float], MapCell] = {}
    columns = (points[name].tolist() for name in ("problem", "target", "speed_up", "bound", "winner", "kind"))
    for problem, target, ratio, bound, winner, kind in zip(*columns, strict=True):
        about = f"fastest: {winner} ({kind})" if isinstance(winner, str) else "no solver gets there"
        cells[str(problem), float(target)] = _cell(ratio, bound, reach, about)
    blank = MapCell(BLANK)
    rows = [MapRow(label, anchors[label], [cells.get((label, target), blank) for target in targets]) for label in problems]
    return SpeedUpMap(
        targets=[format_target(target) for target in targets],
        rows=rows,
        tones=[_tone(level) for level in range(-LEVELS, LEVELS + 1)],
        ends=(format_ratio(10.0**-reach), "1x", format_ratio(10.0**reach)),
        sides=("generic faster", "specialised faster") if baseline is None else (f"{baseline} faster", "the others faster"),
        bounds=any(cell.bound for row in rows for cell in row.cells),
        caption=speed_ups.caption(points, baseline),
    )


def _cell(ratio: float, bound: str, reach: float, about: str) -> MapCell:
    if not ratio > 0.0:
        return MapCell(BLANK, about=about)
    level = round(LEVELS * min(1.0, max(-1.0, math.log10(ratio) / reach)))
    return MapCell(f"{bound} {format_ratio(ratio, bound)}".strip(), _tone(level), bool(bound), about)


def _tone(level: int) -> str:
    return "m" if level == 0 else f"{'p' if level > 0 else 'n'}{abs(level)}"
