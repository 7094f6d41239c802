"""Lines on standard output, for as long as somebody reads them."""

from __future__ import annotations

import os
import sys

import click


def say(text: str = "") -> None:
    """Print a line. Once the reader has gone (``| head``), print nowhere: the work goes on to its end."""
    try:
        try:
            click.echo(text)
        except UnicodeEncodeError:  # characters that this terminal does not have
            encoding = sys.stdout.encoding or "ascii"
            click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())  # what is left in Python's buffer goes there too
        os.close(nowhere)


def warn(text: str) -> None:
    """Print a line on standard error, under the name of the command."""
    click.echo(f"bench-mtl: {text}", err=True)
