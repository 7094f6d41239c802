"""Text of a report in lines that end before the 120th character: paragraphs, lists, tables, and notes for what a table has no room for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench_mtl.report.columns import escaped, to_markdown

if TYPE_CHECKING:
    import pandas as pd

#: Characters of a line of report.md.
WIDTH = 118

#: A cell that must be cut keeps at least this much.
_LEAST = 12

#: What would begin a list, a heading or a quotation where a wrapped line begins with it.
_BEGINNING = re.compile(r"^(\d*)([#>+=.)*-])(?=\s|$)")


def wrapped(words: str, *, first: str = "", rest: str = "") -> str:
    """Return a paragraph in lines of at most `WIDTH`; a word that is longer has a line of its own.

    Parameters
    ----------
    first, rest : what the first line, and each of the others, begins with
    """
    lines = textwrap.wrap(" ".join(words.split()), WIDTH - len(rest or first), break_long_words=False, break_on_hyphens=False)
    safe = [*lines[:1], *(_BEGINNING.sub(r"\1\\\2", line) for line in lines[1:])]
    return "\n".join(f"{rest if place else first}{line}" for place, line in enumerate(safe))


def paragraphs(words: str) -> str:
    """Return paragraphs and lists in lines of at most `WIDTH`; what is in them stays as it is."""
    blocks = []
    for block in re.split(r"\n\s*\n", words.strip("\n")):
        if block.startswith(("|", "```", "#", "![", "    ")):
            blocks.append(block)
        elif block.startswith("- "):
            blocks.append("\n".join(wrapped(item, first="- ", rest="  ") for item in re.split(r"\n?^- ", block, flags=re.MULTILINE)[1:]))
        elif max(map(len, block.split("\n"))) > WIDTH:
            blocks.append(wrapped(block))
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


@dataclass
class Notes:
    """Numbered notes below a table: what is said twice has one number."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        """Return the number of a note, which is added where it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def words(self) -> str:
        """Return the notes as a list in Markdown."""
        return "\n".join(
            wrapped(escaped(text), first=f"{place}. ", rest=" " * (len(str(place)) + 2)) for place, text in enumerate(self.texts, 1)
        )


def cut(text: str, room: int) -> str:
    """Return the beginning of a text, up to a word's end, in so many characters; the whole where it has room."""
    if len(text) <= room:
        return text
    kept = text[: max(room, _LEAST) - 2]
    return f"{kept.rpartition(' ')[0] or kept} ..."


def with_room(rows: Sequence[Mapping[str, str]], limits: Mapping[str, int], notes: Notes, widest: str, note: str = "Note") -> pd.DataFrame:
    """Return a table whose lines have room: what is cut is whole in a note.

    Parameters
    ----------
    rows : cells by title, at least one row; those of the title `note` are numbers of notes
    limits : characters that cells of these titles may have
    widest : the title of the column that takes what the others leave
    """
    kept = list(notes.texts)
    for spare in range(6, 40, 4):
        notes.texts[:] = kept
        frame = _cut_to_room(rows, limits, notes, widest, note, spare)
        if _fitting(frame) is not None:
            break
    return frame


def _cut_to_room(
    rows: Sequence[Mapping[str, str]], limits: Mapping[str, int], notes: Notes, widest: str, note: str, spare: int
) -> pd.DataFrame:
    """Return the table with so many characters kept free for the numbers of notes."""
    import pandas as pd

    titles = list(rows[0])
    others = 3 * len(titles) + 1 + len(note) + spare
    for title in titles:
        if title not in (widest, note):
            others += max(len(title), *(min(len(escaped(row[title])), limits.get(title, WIDTH)) for row in rows))
    limit = {**{title: limits.get(title, WIDTH) for title in titles}, widest: max(_LEAST, WIDTH - others)}
    made = []
    for row in rows:
        cells, numbers = {}, [row[note]] if row[note] else []
        for title in titles:
            if title == note:
                continue
            cells[title] = cut(row[title], limit[title] - (len(escaped(row[title])) - len(row[title])))
            if cells[title] != row[title]:
                numbers.append(str(notes.number(f"{title}: {row[title]}")))
        made.append({**cells, note: ", ".join(numbers)})
    return pd.DataFrame(made, columns=titles, dtype="str")


def table_lines(frame: pd.DataFrame) -> str:
    """Return a table in Markdown in lines that have room.

    Where they have not, its columns stand in several tables below each other, each of which begins with those that name a row; a cell that
    is too long for that is whole in a note.
    """
    text = _fitting(frame)
    if text is not None:
        return text
    frame, notes = _with_notes(frame)
    key, rest, parts = _naming_columns(frame), list(frame.columns), list[str]()
    names, rest = rest[:key], rest[key:]
    while rest:
        count = next((count for count in range(len(rest), 1, -1) if _fitting(frame[[*names, *rest[:count]]]) is not None), 1)
        parts.append(_fitting(frame[[*names, *rest[:count]]]) or _compact(frame[[*names, *rest[:count]]]))
        rest = rest[count:]
    return "\n\n".join([*parts, *([notes.words()] if notes.texts else [])])


def _fitting(frame: pd.DataFrame) -> str | None:
    """Return the table in aligned columns, or in narrow ones where these have no room; None where neither has."""
    for text in (to_markdown(frame), _compact(frame)):
        if max(map(len, text.split("\n"))) <= WIDTH:
            return text
    return None


def _compact(frame: pd.DataFrame) -> str:
    lines = [list(map(str, frame.columns)), ["---"] * len(frame.columns)]
    lines += [[escaped(str(cell)) for cell in row] for row in frame.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _naming_columns(frame: pd.DataFrame) -> int:
    """Return how many of the first columns tell the rows apart, at most half of them."""
    most = max(1, len(frame.columns) // 2)
    return next((count for count in range(1, most + 1) if not frame.duplicated(list(frame.columns[:count])).any()), most)


def _with_notes(frame: pd.DataFrame) -> tuple[pd.DataFrame, Notes]:
    """Return a table whose cells have room beside the columns that name a row, and the notes that hold what was cut."""
    notes, room = Notes(), WIDTH // 2 - 8
    names = _naming_columns(frame)

    def shown(cell: str, place: int) -> str:
        most = room if place >= names else max(_LEAST, room // names)
        return cell if len(escaped(cell)) <= most else f"{cut(cell, most - 8)} [{notes.number(cell)}]"

    made = {title: [shown(str(cell), place) for cell in frame[title]] for place, title in enumerate(frame.columns)}
    return type(frame)(made, dtype="str"), notes
