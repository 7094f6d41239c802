"""A report as one HTML file: its parts in their order, with the figures that are files, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.report.document import Document, Part
from bench_mtl.report.figures import style
from bench_mtl.report.figures.looks import MARKERS
from bench_mtl.report.render.inline_figures import inline_figure
from bench_mtl.report.render.shell import Markdown, rendered
from bench_mtl.report.render.tables import Table, text_table

if TYPE_CHECKING:
    from markupsafe import Markup

#: Markers of matplotlib as letters.
_MARKS = dict(zip(MARKERS, "●■▲◆▼✚◀★▶⬢", strict=True))


class _Block(NamedTuple):
    """A part as the template draws it."""

    part: Part
    name: str
    words: Markup
    figure: Markup | None
    caption: str
    quantity: str  # what the figure is of, without the problem
    is_one_of_several: bool  # whether it is one of several that show the same to other targets
    table: Table | None
    after: Markup


class _Group(NamedTuple):
    """Parts that follow each other and are of one subject."""

    subject: str
    blocks: list[_Block]


def page(document: Document, drawn: Mapping[str, bytes] | None = None, *, above: Sequence[Any] = ()) -> bytes:
    """Return a document as one HTML file that asks the network for nothing: the same document gives the same bytes.

    Parameters
    ----------
    drawn : the files of the figures that are not drawn, by path
    above : links above everything, each with words and an address
    """
    md = Markdown()
    figures = [part.figure for part in document.parts]
    svgs = [one if isinstance(one, bytes) else (drawn or {}).get(f"figures/{one.name}.svg") if one else None for one in figures]
    anchors = {part.subject: part.name for part in document.parts if part.subject and part.name}
    names: list[str] = []  # addresses, no two alike
    for place, part in enumerate(document.parts, start=1):
        names.append(f"part-{place}" if part.name in ("", *names) else part.name)
    blocks = [_block(part, name, svg, anchors, md) for part, name, svg in zip(document.parts, names, svgs, strict=True)]
    sections = _sections(blocks)
    content = {
        "above": above,
        "name": one_line(document.title, LONGEST_LABEL),
        "introduction": md(document.introduction),
        "sections": sections,
        "chosen": next((section for section in sections if any(group.subject for group in section)), None),
        "subjects": list(anchors),
        "quantities": list(dict.fromkeys(block.quantity for block in blocks if block.part.subject and block.figure)),
        "solvers": _solvers(document.solvers, b"".join(filter(None, svgs))),
    }
    return rendered(content, pictures=any(svg and b"<image " in svg for svg in svgs))


def _block(part: Part, name: str, svg: bytes | None, anchors: Mapping[str, str], md: Markdown) -> _Block:
    title, caption, of_several = part.title, "", False
    if part.figure is not None and not isinstance(part.figure, bytes):
        title, caption, of_several = part.figure.title, part.figure.caption, part.figure.kind == "seconds"
    quantity = title.replace(f" on {part.subject}", "")
    figure = None if svg is None else inline_figure(svg, title, name)
    table = None
    if part.table is not None:
        addresses = part.addresses or [f"#{anchors[text]}" if text in anchors else "" for text in part.table.iloc[:, 0]]
        table = text_table(name, part.title or part.subject or name, part.table, addresses)
    return _Block(part, name, md(part.words), figure, one_line(caption), quantity, of_several, table, md(part.after))


def _sections(blocks: Sequence[_Block]) -> list[list[_Group]]:
    """Return the blocks by headings of the second level, and within these by subject."""
    sections: list[list[_Block]] = []
    for block in blocks:
        if not sections or (block.part.title and block.part.level == 2):
            sections.append([])
        sections[-1].append(block)
    by_subject = (groupby(section, key=lambda block: block.part.subject) for section in sections)
    return [[_Group(subject, list(of_subject)) for subject, of_subject in section] for section in by_subject]


def _solvers(kinds: Mapping[str, str], figures: bytes) -> list[dict[str, str]]:
    """Return the solvers that some figure shows: the name of their groups, and how they look; dashes are in pixels."""
    shown = {label: kind for label, kind in kinds.items() if f'class="solver-{style.slug(label)}"'.encode() in figures}
    solvers = []
    for label, look in style.solver_looks(shown).items():
        line, names = look["linestyle"], {"label": label, "slug": style.slug(label), "kind": kinds[label]}
        dash = "none" if isinstance(line, str) else " ".join(f"{1.6 * part:g}" for part in line[1])
        solvers.append({**names, "color": look["color"], "mark": _MARKS[look["marker"]], "dash": dash})
    return solvers
