"""What commands share: options, exit codes, and how a failure is said."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.console import warn

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INCOMPLETE, EXIT_INTERRUPTED = 1, 2, 3, 130

data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Folder of .npz data sets; the environment variable BENCH_MTL_DATA by default."
)
plugins_option = click.option(
    "--plugins", type=click.Path(path_type=Path), help="Folder with problems/*.py and solvers/*.py to use besides the installed ones."
)


def fail(message: str, code: int) -> int:
    """Say on standard error what went wrong, in one line; returns `code`."""
    warn(" ".join(message.split()))
    return code
