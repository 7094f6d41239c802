"""`bench-mtl skill`: instructions for assistants."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from bench_mtl.cli.console import Answer, answer, say
from bench_mtl.cli.options import A_PATH, json_option, replacing
from bench_mtl.core.errors import not_written

NAME = "SKILL.md"


@click.command()
@click.option("--install", type=A_PATH, metavar="DIR", help="Write them to DIR/bench-mtl/SKILL.md, for an assistant to find.")
@json_option
def skill(install: Path | None) -> Answer:
    """Print instructions for assistants: how to compare solvers, certify a solution, add a solver and read a report.

    \b
    Examples:
      bench-mtl skill
      bench-mtl skill --install ~/.config/assistant/skills
    """
    text = (files("bench_mtl") / NAME).read_text(encoding="utf-8")
    file = install / "bench-mtl" / NAME if install else None
    if file is not None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(f"--install: the instructions cannot be written to {file}", error) from None
        with replacing("--install", "instructions", file) as opened:
            opened.write(text.encode())
        say(f"{file}: written")
    else:
        answer(text.rstrip())
    return 0, lambda: {"text": text, "file": file}
