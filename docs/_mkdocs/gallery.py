"""The gallery: every program of docs/gallery is run, and its page shows its words, its code, what it prints and what it draws.

A program that ran before, with the same text, package and versions of other packages, is not run again.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

#: What the programs show: the package, problems and solvers included, and how it is shown.
SOURCES = (ROOT / "bench_mtl", ROOT / "problems", ROOT / "solvers", Path(__file__))


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
    figures: dict[str, str]
    """SVG drawings, by the names of their files."""


def run_examples(programs: Sequence[Path], cache: Path, sources: Sequence[Path] = SOURCES) -> list[Example]:
    """Run programs in two processes, where a warning is an error, and keep what they show as files of a folder.

    Raises
    ------
    RuntimeError : as `run_example`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    code = digest_of(sources)
    files = {program: cache / f"{program.stem}-{hashlib.sha256(code + program.read_bytes()).hexdigest()}.json" for program in programs}
    waiting = [program for program, file in files.items() if not file.exists()]
    sys.path.append(str(Path(__file__).parent))  # where the processes look for this module; MkDocs has taken it away
    with ProcessPoolExecutor(2, get_context("spawn"), warnings.simplefilter, ("error",)) as pool:
        for program, example in zip(waiting, pool.map(run_example, waiting), strict=True):
            files[program].write_text(json.dumps(asdict(example)), encoding="utf-8")
    for old in set(cache.glob("*.json")) - set(files.values()):
        old.unlink()
    return [Example(**json.loads(file.read_text(encoding="utf-8"))) for file in files.values()]


def digest_of(sources: Sequence[Path]) -> bytes:
    """Return a digest of files, those of folders included, and of the versions of all that is installed."""
    parts = sorted(f"{package.name} {package.version}".encode() for package in distributions())
    for source in sources:
        for file in sorted(source.rglob("*") if source.is_dir() else [source]):
            if file.is_file() and "__pycache__" not in file.parts:
                parts += [str(file.relative_to(source.parent)).encode(), file.read_bytes()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def run_example(program: Path) -> Example:
    """Run a program, cell by cell in one namespace, and return it with all that it printed and drew.

    Raises
    ------
    RuntimeError : a cell raises, with what it raised as the cause, a figure shows nothing, or there is none.
    """
    import matplotlib

    matplotlib.use("agg")
    introduction, parts = cells(program.read_text(encoding="utf-8"))
    title = introduction.split("\n", 1)[0].removeprefix("# ")
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(program)}
    figures: dict[str, str] = {}
    shown = [introduction, f"[{program.name}]({program.name}) is the program as it stands."]
    with matplotlib.rc_context():
        for cell in parts:
            printed = io.StringIO()
            try:
                with redirect_stdout(printed):
                    exec(compile(cell.code, str(program), "exec"), names)
                drawn = {f"{program.stem}-{len(figures) + place}.svg": drawing for place, drawing in enumerate(_drawn(), start=1)}
            except Exception as error:
                raise RuntimeError(f"{program} does not run: {type(error).__name__}: {error}") from error
            figures |= drawn
            shown += [*_shown(cell, printed.getvalue()), *(f"![{title}]({name})" for name in drawn)]
    if not figures:
        raise RuntimeError(f"{program} draws nothing")
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


def _drawn() -> Iterator[str]:
    """Yield the figures that are open, and close them."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        drawing, figure = io.StringIO(), pyplot.figure(number)
        figure.savefig(drawing, format="svg", bbox_inches="tight")
        pyplot.close(number)
        if not any(axes.has_data() for axes in figure.axes):
            raise ValueError("a figure shows nothing")
        yield drawing.getvalue()


def overview(introduction: str, examples: list[Example]) -> str:
    """Return the page of all examples, a card for each."""
    cards = [f"-   [![{one.title}]({next(iter(one.figures))})<br>{one.title}]({one.name}.md)" for one in examples]
    return "\n".join([introduction, '<div class="grid cards" markdown>', "", *cards, "", "</div>", ""])
