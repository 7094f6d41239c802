"""What Griffe is told of docstrings: how sections of this project are written, and that formulas are no markup.

Estimators have parts of theirs from their families, when they are made: what the class has then is what is shown.

Docstrings here say what a parameter is on the line of its name (``radius : at least 0``), where numpydoc has its type: types stand in the
signatures. They are rewritten here and not in the files, whose hashes say whether stored results are still those of the code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from textwrap import dedent, indent
from typing import Any

import griffe

#: The sections that are lists of items.
_ITEMISED = ("Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")

_ITEM = re.compile(r"(?P<names>\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}\w+)*)(?: : (?P<text>.*))?")

#: What stands in the place of a type and is one: "float, optional", "float or str", "{"mean", "sum"}".
_TYPE = re.compile(r"(\{.*\}|(bool|int|float|str|dict|list|tuple|callable|[A-Z]\w+)( or \w+)*)(, optional|, default \w+)?")

_CODE = re.compile(r"(`+[^`]+`+)")

#: What Markdown, or its extensions, would take for markup: anywhere, and at the beginning of a line.
_MARKUP = re.compile(r"[*_<\[\]]|^[>#]", re.MULTILINE)

_TABLE = re.compile(r"^=+ +=+\n(.*?)\n=+ +=+$", re.MULTILINE | re.DOTALL)


class HouseDocstrings(griffe.Extension):
    """Rewrites the docstrings of a package for Griffe, and tells it which classes are dataclasses."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for thing in _things(pkg):
            for decorator in thing.decorators if isinstance(thing, griffe.Class) else ():
                if str(decorator.value) == "linear_model":
                    decorator.value = griffe.ExprName("dataclasses.dataclass")
                    made = getattr(importlib.import_module(thing.module.path), thing.name)
                    thing.docstring = griffe.Docstring(inspect.getdoc(made) or "", parent=thing)
            if thing.docstring is not None:
                thing.docstring.value = numpydoc(thing.docstring.value)


def _things(thing: griffe.Object) -> Iterator[griffe.Object]:
    yield thing
    for member in thing.members.values():
        if isinstance(member, griffe.Object):  # and no alias
            yield from _things(member)


def numpydoc(text: str) -> str:
    """Return a docstring in the form that Griffe reads."""
    head, *parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    written = [plain(_without_marks(head)).strip("\n")]
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        written.append(_section(title, body.strip("\n")))
    return "\n\n".join(part for part in written if part)


def _section(title: str, body: str) -> str:
    if title == "Examples":
        return _titled(title, body)
    if title not in _ITEMISED:
        return _titled(title, plain(_without_marks(body)))
    items, rest = _items(title, body)
    shown = "\n".join(line for head, words in items for line in _item(title, head, words))
    return _titled(title, shown) + (f"\n\n{_titled('Notes', plain(rest))}" if rest else "")


def _titled(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body}"


def _items(title: str, body: str) -> tuple[list[tuple[str, str]], str]:
    """Return the items of a section, each its first line and the lines below it, and the paragraphs after them that are no items."""
    found: list[tuple[str, list[str]]] = []
    lines = body.split("\n")
    for place, line in enumerate(lines):
        if line and not line.startswith(" "):
            if found and not lines[place - 1] and not _ITEM.fullmatch(line):
                return _joined(found), "\n".join(lines[place:])
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return _joined(found), ""


def _joined(found: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    return [(head, dedent("\n".join(lines)).rstrip()) for head, lines in found]


def _item(title: str, head: str, words: str) -> Iterator[str]:
    """Yield the lines of an item as Griffe reads them: the name, or the type, alone on the first line."""
    match = _ITEM.fullmatch(head)
    names, text = (match["names"], match["text"]) if match else ("", head)
    if match and (text is None or (_TYPE.fullmatch(text) and (words or text.startswith("{")))):
        heads = [head] if text is None or ", " not in names else [f"{name} : {text}" for name in names.split(", ")]
        text = ""
    elif title in ("Returns", "Yields"):
        if match is None and words:  # a type that is no name, such as "list of dict"
            heads, text = [head], ""
        else:
            heads = [names if names[:1].isupper() else f"{names} :".lstrip()]
    else:
        heads = [names] if title in ("Raises", "Warns") else names.split(", ")
    description = plain("\n".join(part for part in (text, words) if part))
    for line in heads:
        yield line
        if description:
            yield indent(description, "    ")


def _without_marks(text: str) -> str:
    """Return text without reStructuredText's marks of blocks: a table becomes a list, and ``::`` before a block goes."""
    text = _TABLE.sub(lambda match: "\n".join(_entries(match[1])), text)
    text = re.sub(r"^::\n", "", text, flags=re.MULTILINE)
    return re.sub(r"( ?)::$", lambda match: "" if match[1] else ":", text, flags=re.MULTILINE)


def _entries(rows: str) -> Iterator[str]:
    for line in rows.split("\n"):
        match = re.fullmatch(r"(\S+) +(\S.*)", line)
        yield f"- {match[1]}: {match[2]}" if match else f"  {line.strip()}"


def plain(text: str) -> str:
    """Return text in which nothing but code, code blocks and lists is markup."""
    return outside_blocks(text, _escaped)


def outside_blocks(text: str, change: Callable[[str], str]) -> str:
    """Return text with its paragraphs changed; blocks of code, whose lines are indented, are left as they are."""
    parts = re.split(r"(\n[ \t]*\n)", text)
    return "".join(part if all(line.startswith("    ") for line in part.split("\n") if line.strip()) else change(part) for part in parts)


def _escaped(block: str) -> str:
    parts = _CODE.split(block)
    return "".join(part if place % 2 else _MARKUP.sub(lambda mark: rf"\{mark[0]}", part) for place, part in enumerate(parts))
