"""What a site of several pages puts round a report: links to its other pages, and to files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A link to another file of the site."""

    words: str
    address: str
    """Relative to the page that it stands on."""


@dataclass(frozen=True)
class Links:
    """A part of a page that is a list of links."""

    name: str
    """By which its place on the page is known."""
    title: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Around:
    """What stands above a report, and in parts of their own below it."""

    above: tuple[Link, ...]
    parts: tuple[Links, ...]
