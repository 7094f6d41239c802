"""Check a built site: that no page needs the network, that links between its files lead somewhere, and that none is shown as Markdown.

``python docs/_mkdocs/check.py site`` prints a line for every fault and ends with 1 where there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself, by tag; ``a`` it follows only when somebody asks for it.
_FETCHED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "link": "href",
    "object": "data",
    "video": "src",
    "audio": "src",
}

#: Links to nothing that a browser would fetch.
_NOT_FETCHED = {"canonical", "prev", "next", "alternate"}

#: Where text is shown as it is written.
_VERBATIM = {"code", "pre", "script", "style"}

_IN_CSS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")


class _Page(HTMLParser):
    """Collects what a page fetches, where it links to, its anchors, and links that are shown as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.verbatim = 0
        self.unread: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.verbatim += tag in _VERBATIM
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        address = given.get(_FETCHED.get(tag, ""), "")
        if address and not (tag == "link" and set(given.get("rel", "").split()) & _NOT_FETCHED):
            self.fetched.append(address)
        self.fetched += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.fetched += _IN_CSS.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self.verbatim -= tag in _VERBATIM

    def handle_data(self, data: str) -> None:
        if not self.verbatim:
            self.unread += re.findall(r"\]\([^)]*\)", data)


def faults(site: Path) -> Iterator[str]:
    """Yield what is wrong with a site, a line each."""
    pages = {file.resolve(): _read(file) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site} has no page"
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        yield from (f"{name}: shows {link} as it is written" for link in page.unread)
        for address in page.fetched:
            yield from _fault(file, address, pages, f"{name}: fetches", is_fetched=True)
        for address in page.links:
            yield from _fault(file, address, pages, f"{name}: links to", is_fetched=False)
    for file in sorted(site.resolve().rglob("*.css")):
        for address in _IN_CSS.findall(file.read_text(encoding="utf-8")):
            yield from _fault(file, address, pages, f"{file.relative_to(site.resolve())}: fetches", is_fetched=True)


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _fault(file: Path, address: str, pages: dict[Path, _Page], what: str, *, is_fetched: bool) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme == "data" or (not is_fetched and parts.scheme):
        return
    if parts.scheme or parts.netloc:
        yield f"{what} {address}, which is on the network"
        return
    if file.name == "404.html":  # a server shows it, whose addresses begin at its root
        parts = parts._replace(path=parts.path.lstrip("/"))
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not there.is_file():
        yield f"{what} {address}, which is no file of the site"
    elif there in pages and not is_fetched and not _is_on(pages[there], unquote(parts.fragment)):
        yield f"{what} {address}, and there is no such place on that page"


def _is_on(page: _Page, fragment: str) -> bool:
    """Return whether an address leads to a place on a page, or to one that a script makes."""
    return not fragment or fragment in page.anchors or fragment.startswith("__")


def main() -> None:
    """Check the site that the command names."""
    found = list(faults(Path(sys.argv[1])))
    print("\n".join(found[:100]) or f"{sys.argv[1]}: no page needs the network, and every link leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
