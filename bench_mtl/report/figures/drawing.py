"""A figure of a report on its way onto paper: what it is of, how it was made, its data, and its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench_mtl.report.columns import to_csv
from bench_mtl.report.figures import style
from bench_mtl.report.figures.chart import Chart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Kind = Literal["convergence", "profiles", "pareto", "scaling", "speed_ups", "spread", "patterns", "trajectories", "trade_offs"]

#: What a figure can be written as, beside its data.
FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn."""

    stem: str
    """Name of its files, without their endings: no two drawings of a report share one."""
    title: str
    kind: Kind
    about: str
    """The problem label, the group of like problems or the sweep that it is of."""
    caption: str
    """How it was made and what is not in it, in sentences."""
    data: pd.DataFrame
    """What it shows, with all digits."""
    draw: Callable[..., Figure]
    """Draws it anew."""
    chart: Chart | None = None
    """What it shows, where the page shows the same; curves of runs are made for the page at its own size."""


@dataclass(frozen=True)
class Undrawn:
    """A figure that cannot be drawn."""

    kind: Kind
    about: str
    """What it would show, as in a `Drawing`."""
    sentence: str
    """A sentence saying that there is none, and why."""


def first(drawings: Sequence[Drawing]) -> Drawing | None:
    """Return the figure that a report shows first: the map of speed-ups where there is one; None where there is no figure."""
    return next((drawing for drawing in drawings if drawing.kind == "speed_ups"), drawings[0] if drawings else None)


def files(drawing: Drawing, formats: Collection[str] = (*FORMATS, "csv")) -> dict[str, bytes]:
    """Return the figure in each of `formats`, and its data where "csv" is one, by path inside the report.

    The same data give the same bytes.

    Raises
    ------
    ValueError : a format is not one of `FORMATS`.
    """
    unknown = sorted(set(formats) - {*FORMATS, "csv"})
    if unknown:
        raise ValueError(f"formats: {', '.join(unknown)} cannot be written, only {', '.join(FORMATS)}")
    wanted = [form for form in FORMATS if form in formats]
    made = style.files(drawing.draw(), wanted) if wanted else {}
    data = {f"figures/{drawing.stem}.csv": to_csv(drawing.data)} if "csv" in formats else {}
    return {f"figures/{drawing.stem}.{form}": made[form] for form in wanted} | data


def distinct_stem(text: str, taken: Collection[str]) -> str:
    """Return a file name for `text` that differs from all that are taken."""
    stem = base = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:80] or "problem"
    number = 1
    while stem in taken:
        number += 1
        stem = f"{base}-{number}"
    return stem


def distinct_stems(texts: Iterable[str]) -> list[str]:
    """Return a file name for each, no two alike."""
    stems: list[str] = []
    for text in texts:
        stems.append(distinct_stem(text, stems))
    return stems
