"""Where the files of a site lie, and what every page has on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_mtl.publish.names import key_name
from bench_mtl.report.render.shell import SCRIPT, SHEET, rendered

if TYPE_CHECKING:
    from markupsafe import Markup

INDEX, LEADERS = "index.html", "leaders.html"

_SHEETS = (SHEET, "site.css")


@dataclass(frozen=True)
class Link:
    """A link to another file of the site."""

    words: str
    address: str
    """Relative to the page that it stands on."""


def suite_path(suite: str) -> str:
    """Return the path of the page of results, by their `slug`."""
    return f"suites/{suite}.html"


def instance_path(suite: str, key: str, ending: str = "html") -> str:
    """Return the path of the page, or of another file, of an instance."""
    return f"suites/{suite}/{key_name(key)}.{ending}"


def family_path(name: str) -> str:
    """Return the path of the leader boards of a family, by its `slug`."""
    return f"leaders/{name}.html"


def history_path(suite: str) -> str:
    """Return the path of the history of a suite, by the `slug` of its first results."""
    return f"history/{suite}.html"


def address(path: str, page: str) -> str:
    """Return a path of the site as it is written on a page of the site."""
    return "../" * page.count("/") + path


def links(page: str, *others: tuple[str, str]) -> tuple[Link, ...]:
    """Return the links on top of a page: to the list of suites, to the leader boards, and to others, each as words and path."""
    return tuple(Link(words, address(path, page)) for words, path in (("All suites", INDEX), ("Leader boards", LEADERS), *others))


def site_page(
    template: str,
    name: str,
    above: Sequence[Link],
    head: Markup,
    provenance: Markup,
    parts: Mapping[str, Any],
    *,
    alarms: Sequence[str] = (),
    scripts: Sequence[str] = SCRIPT,
) -> bytes:
    """Return a page of the site that is no report: the same parts give the same bytes.

    Parameters
    ----------
    template : the name of a file of this package
    name : title of the page
    above : links on top
    head : what it says first
    provenance : machines and versions
    parts : what the template shows besides
    alarms : what a reader must know before all else
    scripts : names of files of this package, or of `bench_mtl.report.render`
    """
    shown = {"name": name, "above": above, "head": head, "provenance": provenance, "alarms": alarms, **parts}
    return rendered(template, shown, scripts, sheets=_SHEETS, home="bench_mtl.publish")
