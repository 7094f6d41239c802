"""The gallery: every program of docs/gallery is run, and its page shows its words, its code, what it prints and what it draws."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A part of a program: what a comment says, and the code below it."""

    words: str
    code: str


@dataclass(frozen=True)
class Example:
    """A program that has been run."""

    name: str
    title: str
    page: str
    """In Markdown."""
    figures: dict[str, bytes]
    """SVG drawings, by the names of their files."""


def run_example(program: Path) -> Example:
    """Run a program, cell by cell in one namespace, and return it with all that it printed and drew.

    Raises
    ------
    RuntimeError : a cell raises, with what it raised as the cause.
    """
    import matplotlib

    matplotlib.use("agg")
    introduction, parts = cells(program.read_text(encoding="utf-8"))
    title = introduction.split("\n", 1)[0].removeprefix("# ")
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(program)}
    figures: dict[str, bytes] = {}
    shown = [introduction, f"[{program.name}]({program.name}) is the program as it stands."]
    with matplotlib.rc_context():
        for cell in parts:
            printed = io.StringIO()
            try:
                with redirect_stdout(printed):
                    exec(compile(cell.code, str(program), "exec"), names)
            except Exception as error:
                raise RuntimeError(f"{program} does not run: {type(error).__name__}: {error}") from error
            drawn = {f"{program.stem}-{len(figures) + place}.svg": drawing for place, drawing in enumerate(_drawn(), start=1)}
            figures |= drawn
            shown += [*_shown(cell, printed.getvalue()), *(f"![{title}]({name})" for name in drawn)]
    return Example(program.stem, title, "\n\n".join(shown) + "\n", figures)


def cells(text: str) -> tuple[str, list[Cell]]:
    """Return the docstring of a program, and its cells: each begins with a line ``# %%`` and a comment."""
    introduction = ast.get_docstring(ast.parse(text))
    if introduction is None:
        raise ValueError("an example begins with a docstring")
    _, *rest = re.split(r"^# %%.*\n", text, flags=re.MULTILINE)
    return introduction, [_cell(part) for part in rest]


def _cell(text: str) -> Cell:
    words, code = re.fullmatch(r"((?:#[^\n]*\n)*)(.*)", text, flags=re.DOTALL).groups()  # type: ignore[union-attr] # any text matches
    return Cell(re.sub(r"^# ?", "", words, flags=re.MULTILINE).strip(), code.strip("\n"))


def _shown(cell: Cell, printed: str) -> Iterator[str]:
    if cell.words:
        yield cell.words
    if cell.code:
        yield f"```python\n{cell.code}\n```"
    if printed.strip():
        yield f"```text\n{printed.rstrip()}\n```"


def _drawn() -> Iterator[bytes]:
    """Yield the figures that are open, and close them."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        drawing = io.BytesIO()
        pyplot.figure(number).savefig(drawing, format="svg", bbox_inches="tight")
        pyplot.close(number)
        yield drawing.getvalue()


def overview(introduction: str, examples: list[Example]) -> str:
    """Return the page of all examples, a card for each."""
    cards = [f"-   [![{one.title}]({next(iter(one.figures))})<br>{one.title}]({one.name}.md)" for one in examples]
    return "\n".join([introduction, '<div class="grid cards" markdown>', "", *cards, "", "</div>", ""])
