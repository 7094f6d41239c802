"""report.md: the parts of a report as Markdown, with links to the files of its figures."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from bench_mtl.report.columns import escaped, to_markdown
from bench_mtl.report.figures.gallery import FORMATS, Entry
from bench_mtl.report.formats import COVER, COVER_FILE

if TYPE_CHECKING:
    from bench_mtl.report.document import Document

#: Below the one figure of a report.md that shows its cover alone.
NAMED_FIGURES = "Figures that are named below and not shown are drawn by `bench-mtl report FOLDER --format svg`."


def markdown(document: Document, formats: Collection[str] = ()) -> str:
    """Return the whole text.

    Parameters
    ----------
    formats : the other forms that the report is written in, which are linked to
    """
    drawn = [part.figure for part in document.parts if isinstance(part.figure, Entry)]
    blocks = [document.introduction]
    for part in document.parts:
        blocks += [f"{'#' * part.level} {escaped(part.title)}" if part.title else "", part.words]
        if isinstance(part.figure, Entry):
            blocks += _figure(part.figure, drawn, formats)
        blocks += ["" if part.table is None else to_markdown(part.table), part.after]
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip("\n")) + "\n"


def _figure(entry: Entry, drawn: Collection[Entry], formats: Collection[str]) -> list[str]:
    """Return a figure with its caption and the files it is in, if any; where a cover is among the formats, the first alone is shown."""
    path, caption = f"figures/{entry.name}", f"*{escaped(entry.caption)}*"
    if COVER in formats:
        if entry is not next(iter(drawn)):
            return [f"`{path}.svg`: {escaped(entry.title)}"]
        return [f"![{escaped(entry.title)}]({COVER_FILE})", caption, *([NAMED_FIGURES] if len(drawn) > 1 else [])]
    written = [form for form in FORMATS if form in formats]
    links = [f"[{form.upper()}]({path}.{form})" for form in written] + ([f"[data]({path}.csv)"] if "csv" in formats else [])
    pictures = [f"![{escaped(entry.title)}]({path}.{form})" for form in written if form != "pdf"]
    others = f" ({', '.join(links)})" if len(links) > 1 else ""
    return [*pictures[:1], f"{caption}{others}"] if links else []
