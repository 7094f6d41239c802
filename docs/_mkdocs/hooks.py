"""What MkDocs is told beyond mkdocs.yml: pages from outside docs/, links that hold in both places, formulas that are no markup."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

#: Where pages from outside docs/ stand on the site. Reports keep their places.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "reports/README.md": "published-reports.md",
}

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")

#: Code, which is left alone: blocks with a fence, and spans.
_CODE = re.compile(
    r"(^(?P<fence> *(?:```+|~~~+)).*?^(?P=fence)|(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))", re.MULTILINE | re.DOTALL
)

#: What looks like a tag and is none: "<r, y>".
_NO_TAG = re.compile(r"<(?=[A-Za-z/])(?!/?[A-Za-z][A-Za-z0-9]*(?:\s+[\w-]+=|\s*/?>)|[a-z]+:)")

#: A norm with its index, "||W||_F": the underscore begins no emphasis, nor does the star of "||W||_*".
_INDEX = re.compile(r"(?<=\|)_(\*?)")

#: Characters that may stand after a backslash on GitHub and in report.md, but not in Python's Markdown.
_ESCAPABLE = "<&~|\"'"


class Escapes(Extension):
    """Lets a backslash take the meaning from all characters from which it does so on GitHub."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that Markdown calls
        md.ESCAPED_CHARS.extend(character for character in _ESCAPABLE if character not in md.ESCAPED_CHARS)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(Escapes())  # type: ignore[arg-type] # names are meant, extensions are taken
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, place in outside():
        level = InclusionLevel.INCLUDED if source in PLACES else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source), inclusion=level))
    return files


def outside() -> Iterator[tuple[str, str]]:
    """Yield the files of the site that stand outside docs/: their places in the repository and on the site."""
    yield from PLACES.items()
    for pattern in ("*/*.md", "*/*.svg", "*/figures/*.svg"):
        for file in sorted((ROOT / "reports").glob(pattern)):
            place = file.relative_to(ROOT).as_posix()
            yield place, place


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source, place = source_of(page.file), page.file.src_uri
    if place.startswith("reports/"):
        page.meta["search"] = {"exclude": True}  # numbers; the list of reports is found
    if source is None:  # made under way, with links and markup of its own
        return markdown
    return without_false_markup(with_links(markdown, source, place, files))


def source_of(file: File) -> str | None:
    """Return where a file of the site stands in the repository; None for one that is made under way."""
    path = Path(str(file.abs_src_path)).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) and "generated" not in path.parts else None


def with_links(markdown: str, source: str, place: str, files: Files) -> str:
    """Return a page with links from its place on the site in place of those from its place in the repository.

    A link to a file of the repository that is not on the site is its words alone. One that leads nowhere is left for MkDocs to name.
    """

    def link(match: re.Match[str]) -> str:
        image, words, target, anchor = match.groups(default="")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = PLACES.get(meant, meant.removeprefix("docs/"))
        if files.get_file_from_path(there) is not None:
            return f"{image}[{words}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor})"
        return words if (ROOT / meant).exists() and not image else match[0]

    return outside_code(markdown, lambda text: _LINK.sub(link, text), spans=False)


def without_false_markup(markdown: str) -> str:
    """Return a page whose formulas are no tags and no emphasis."""
    return outside_code(markdown, _escaped)


def _escaped(text: str) -> str:
    parts = re.split(r"(\n[ \t]*\n)", text)
    return "".join(part if _is_indented(part) else _INDEX.sub(_index, _NO_TAG.sub(r"\\<", part)) for part in parts)


def _index(match: re.Match[str]) -> str:
    return r"\_\*" if match[1] else r"\_"


def _is_indented(block: str) -> bool:
    """Return whether a block is code by its indentation."""
    return all(line.startswith("    ") for line in block.split("\n") if line.strip())


def outside_code(markdown: str, change: Any, *, spans: bool = True) -> str:
    """Return a page with its text changed, and its code blocks as they are; with `spans` code in a line as well."""
    written, end = [], 0
    for match in _CODE.finditer(markdown):
        if spans or match["fence"] is not None:
            written += [change(markdown[end : match.start()]), match[0]]
            end = match.end()
    return "".join([*written, change(markdown[end:])])
