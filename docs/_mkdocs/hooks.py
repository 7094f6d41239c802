"""What MkDocs is told beyond mkdocs.yml: pages from outside docs/, links that hold in both places, formulas that are no markup."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path, beside which the next one lies

from docstrings import outside_blocks
from gallery import overview, run_examples
from paper_figures import drawn_reports

ROOT = Path(__file__).resolve().parents[2]

#: The page of the gallery, and the programs that it shows.
GALLERY, PROGRAMS = "gallery/README.md", sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))

#: Where pages from outside docs/ stand on the site. Reports keep their places.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "reports/README.md": "published-reports.md",
    "papers/README.md": "papers.md",
}

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")

#: What the list of reports says of the pages that `bench-mtl publish` makes beside these.
BOARDS = (
    'The suites can also be <a href="boards/index.html">searched and compared</a>: '
    "solvers to switch on and off, tables to sort, leader boards."
)

#: And the report of a suite of its own page there: the report itself shows one figure alone.
BOARD = 'Curves to choose from and tables to sort are on <a href="../../boards/suites/{name}.html">a page of their own</a>.'

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


def as_mathml(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """Return a block of LaTeX as MathML, which browsers show by themselves: no script, no network."""
    from latex2mathml.converter import convert

    return f'<div class="{css_class}">{convert(source, display="block")}</div>'


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": as_mathml}]
    config.markdown_extensions.append(Escapes())  # type: ignore[arg-type] # names are meant, extensions are taken
    config.nav = with_examples(config.nav)
    return config


def with_examples(nav: Any) -> Any:
    """Return the list of pages with the examples of the gallery below it."""
    if nav == GALLERY:
        return [GALLERY, *(f"gallery/{program.stem}.md" for program in PROGRAMS)]
    if isinstance(nav, list):
        return [with_examples(entry) if isinstance(entry, dict) else entry for entry in nav]
    return {title: with_examples(entry) for title, entry in nav.items()} if isinstance(nav, dict) else nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    sources = {place: ROOT / source for source, place in outside()} | drawn_reports()
    for place, source in sources.items():
        level = InclusionLevel.INCLUDED if place in PLACES.values() else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place, abs_src_path=str(source), inclusion=level))
    if (introduction := files.get_file_from_path(GALLERY)) is not None:
        examples = run_examples(PROGRAMS, ROOT / "results" / "gallery")
        files.remove(introduction)
        files.append(File.generated(config, GALLERY, content=overview(introduction.content_string, examples)))
        for example in examples:
            files.append(File.generated(config, f"gallery/{example.name}.md", content=example.page))
            for name, drawing in example.figures.items():
                files.append(File.generated(config, f"gallery/{name}", content=drawing))
    return files


def outside() -> Iterator[tuple[str, str]]:
    """Yield the files of the site that stand outside docs/: their places in the repository and on the site."""
    yield from PLACES.items()
    for pattern in ("*/*.md", "*/*.svg"):
        for file in sorted((ROOT / "reports").glob(pattern)):
            place = file.relative_to(ROOT).as_posix()
            yield place, place


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = page.file.src_uri
    if place.startswith("reports/"):
        page.meta["search"] = {"exclude": True}  # numbers; the list of reports is found
        if place.endswith("/report.md") and (ROOT / place).with_name("results.sqlite").exists():
            markdown = below_title(markdown, BOARD.format(name=Path(place).parent.name))
    elif place.startswith("adr/0"):
        page.meta["search"] = {"boost": 0.2}  # why something is as it is comes after what it is
    elif place == PLACES["reports/README.md"]:
        markdown = below_title(markdown, BOARDS)
    return without_false_markup(with_links(markdown, source_of(place), place, files))


def below_title(markdown: str, words: str) -> str:
    """Return a page with words below its title."""
    title, rest = markdown.split("\n\n", 1)
    return f"{title}\n\n{words}\n\n{rest}"


def source_of(place: str) -> str:
    """Return where a page of the site stands in the repository."""
    named = {there: source for source, there in PLACES.items()}
    return named.get(place, place if place.startswith("reports/") else f"docs/{place}")


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
    return outside_blocks(text, lambda part: _INDEX.sub(lambda match: r"\_\*" if match[1] else r"\_", _NO_TAG.sub(r"\\<", part)))


def outside_code(markdown: str, change: Callable[[str], str], *, spans: bool = True) -> str:
    """Return a page with its text changed, and its code blocks as they are; with `spans` code in a line as well."""
    written, end = [], 0
    for match in _CODE.finditer(markdown):
        if spans or match["fence"] is not None:
            written += [change(markdown[end : match.start()]), match[0]]
            end = match.end()
    return "".join([*written, change(markdown[end:])])
