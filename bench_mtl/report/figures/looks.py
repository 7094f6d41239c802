"""Which colour and marker a solver has: the same in all figures of all reports, whatever else is in them.

The labels of the package's solvers and of well-known rivals are in ``looks.toml``. A longer label that begins with one of them, such as
that of a variant or of a point of a grid, has its colour in another shade and another marker. All others, such as those of plug-ins, have
a look that no listed label has, chosen by a hash of the label.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple
from zlib import crc32

from bench_mtl.results.frames import SPECIALISED

MARKERS = ("o", "s", "^", "D", "v", "P", "<", "*", ">", "h")

#: Variants whose ending is not listed: ten markers and three shades make so many.
_VARIANTS = 30


class Looks(NamedTuple):
    """What ``looks.toml`` says."""

    palettes: Mapping[str, tuple[str, ...]]  # the colours of each kind of solver
    solvers: Mapping[str, tuple[str, str]]  # the colour and the marker of every listed label
    endings: Mapping[str, int]  # the places of what may follow a label, from 1 on
    shades: Mapping[str, tuple[str, ...]]  # of every listed colour, for variants


@cache
def known_looks() -> Looks:
    """Return what ``looks.toml`` says."""
    listed = tomllib.loads(resources.files("bench_mtl.report.figures").joinpath("looks.toml").read_text(encoding="utf-8"))
    colours = {name: colour for palette in listed["colours"].values() for name, colour in palette.items()}
    return Looks(
        {kind: tuple(colour for colour, *_ in palette.values()) for kind, palette in listed["colours"].items()},
        {label: (colours[colour][0], marker) for label, (colour, marker) in listed["solvers"].items()},
        {ending: place for place, ending in enumerate(listed["variants"]["endings"], start=1)},
        {colour: tuple(shades) for colour, *shades in colours.values()},
    )


def look(label: str, kind: str) -> tuple[str, str]:
    """Return the colour, as ``#rrggbb``, and the marker of a solver. The kind chooses the family of colours of an unknown one alone."""
    looks, listed = known_looks(), _beginning(label)
    if listed == label:
        return looks.solvers[label]
    if listed is not None:
        (colour, marker), ending = looks.solvers[listed], label[len(listed) :]
        place = looks.endings.get(ending) or 1 + crc32(ending.encode()) % _VARIANTS
        return looks.shades[colour][place % 3], MARKERS[(MARKERS.index(marker) + place) % len(MARKERS)]
    taken = set(looks.solvers.values())
    palette = looks.palettes.get(kind, looks.palettes[SPECIALISED])
    free = [(colour, marker) for colour in palette for marker in MARKERS if (colour, marker) not in taken]
    return free[crc32(label.encode()) % len(free)]


def kind_of(label: str) -> str:
    """Return the kind of the listed solver that a label is or begins with; of any other label specialised, as most plug-ins are."""
    looks, listed = known_looks(), _beginning(label)
    return next((kind for kind, palette in looks.palettes.items() if listed and looks.solvers[listed][0] in palette), SPECIALISED)


def _beginning(label: str) -> str | None:
    """Return the longest listed label that a label is or goes on from, whole words both; None where there is none."""
    names = (name for name in known_looks().solvers if label == name or (label.startswith(name) and not label[len(name)].isalnum()))
    return max(names, key=len, default=None)
