"""What commands share: options, exit codes, and how a failure is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench_mtl.console import warn
from bench_mtl.errors import InputError

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


def key_values(texts: tuple[str, ...], where: str) -> dict[str, Any]:
    """KEY=VALUE texts as a table; values are read as TOML and otherwise as strings."""
    from bench_mtl.suite_file import read_toml, require_storable

    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{where} must be KEY=VALUE, not '{text}'")
        try:
            table[key] = read_toml(f"value = {value}")["value"]
        except InputError as error:
            raise InputError(f"{where} {key}: {error}") from None
        except ValueError:
            table[key] = value
        require_storable(f"{where} {key}", table[key])
    return table
