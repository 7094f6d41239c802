"""Lines on standard output, for as long as somebody reads them."""

from __future__ import annotations

import os
import sys

import click

from bench_mtl.core.text import LONGEST_LINE, one_line, visible


def say(text: str = "", *, error: bool = False) -> None:
    """Print lines on standard output, or on standard error, with nothing in them that a terminal would obey.

    Once the reader has gone (``| head``), print nowhere: the work goes on to its end.
    """
    text, stream = visible(text), sys.stderr if error else sys.stdout
    try:
        try:
            click.echo(text, err=error)
        except UnicodeEncodeError:  # characters that this terminal does not have
            encoding = stream.encoding or "ascii"
            click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=error)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # what is left in Python's buffer goes there too
        os.close(nowhere)


def warn(text: str) -> None:
    """Print a line on standard error, under the name of the command."""
    say(f"bench-mtl: {one_line(text, LONGEST_LINE)}", error=True)
