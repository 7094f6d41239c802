"""report.md taken apart: its sections, and in them paragraphs, lists, tables and code, each with its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bench_mtl.report.check.faults import Finding

#: What `bench_mtl.report.render.escaped` puts a backslash before.
_ESCAPED = re.compile(r"\\([\\|<*`\[\]~&_#>+=.)-])")

_FENCE = re.compile(r"`{3,}")

#: The line below the titles of a table.
_RULE = re.compile(r"\|(?:[\s:-]*-[\s:-]*\|)+")


@dataclass(frozen=True)
class Block:
    """Lines that belong together."""

    kind: Literal["heading", "paragraph", "list", "table", "code"]
    line: int
    """Number of the first line, from 1."""
    lines: tuple[str, ...]
    section: str
    """The heading of level two that it stands below; empty before the first."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def fault(self, why: str, text: str | None = None, line: int | None = None) -> Finding:
        """Return a fault of this block."""
        return Finding(self.line if line is None else line, self.lines[0] if text is None else text, why)

    def items(self) -> Iterator[tuple[int, str]]:
        """Yield the entries of a list with their lines; what continues an entry belongs to it."""
        found: list[tuple[int, str]] = []
        for number, line in enumerate(self.lines, start=self.line):
            if line.startswith("- "):
                found.append((number, line[2:]))
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
        yield from found


@dataclass(frozen=True)
class Table:
    """A table with its cells as they are read."""

    block: Block
    titles: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]
    """Each with its line; those of as many cells as there are titles."""
    broken: tuple[int, ...]
    """Lines of the others, and of the titles where one is there twice or no rule is below them."""

    def broken_faults(self) -> Iterator[Finding]:
        """Yield a fault for every line that is not of this table's columns."""
        for line in self.broken:
            yield self.block.fault("the cells of this line are not those of the titles", self.block.lines[line - self.block.line], line)


def blocks(text: str) -> list[Block]:
    """Return the blocks of a report, in order."""
    found: list[Block] = []
    section, held, start, fence = "", list[str](), 0, ""

    def close() -> None:
        if held:
            found.append(Block(_kind(held[0]), start, tuple(held), section))
            held.clear()

    for number, line in enumerate(text.split("\n"), start=1):
        opened = _FENCE.match(line)
        if fence:
            held.append(line)
            if line == fence:
                fence = ""
                close()
        elif opened:
            close()
            held, start, fence = [line], number, opened[0]
        elif line.startswith("#"):
            close()
            section = readable(line[3:]) if line.startswith("## ") else section
            found.append(Block("heading", number, (line,), section))
        elif not line:
            close()
        else:
            start = start if held else number
            held.append(line)
    close()
    return found


def _kind(line: str) -> Literal["paragraph", "list", "table", "code"]:
    return "code" if line.startswith("```") else "table" if line.startswith("|") else "list" if line.startswith("- ") else "paragraph"


def readable(text: str) -> str:
    """Return Markdown as it is read: without the backslashes before marks."""
    return _ESCAPED.sub(r"\1", text)


def table(block: Block) -> Table:
    """Return the table in a block."""
    titles = tuple(_cells(block.lines[0]))
    lines = [(number, _cells(line)) for number, line in enumerate(block.lines[2:], start=block.line + 2)]
    rows = tuple((number, dict(zip(titles, cells, strict=True))) for number, cells in lines if len(cells) == len(titles))
    is_head = len(set(titles)) == len(titles) and len(block.lines) > 1 and _RULE.fullmatch(block.lines[1]) is not None
    head = [] if is_head and len(_cells(block.lines[1])) == len(titles) else [block.line]
    return Table(block, titles, rows, (*head, *(number for number, cells in lines if len(cells) != len(titles))))


def _cells(line: str) -> list[str]:
    """Return the cells of a line, and what stands outside its bars; a bar after a backslash is part of its cell."""
    cells, cell, skip = list[str](), "", False
    for character in line:
        if character == "|" and not skip:
            cells.append(readable(cell.strip()))
            cell = ""
        else:
            cell += character
        skip = character == "\\" and not skip
    return [*([] if cells and not cells[0] else cells[:1]), *cells[1:], *([readable(cell.strip())] if cell.strip() else [])]
