"""The published numbers: CSV files of docs/papers, which an installed package carries with it."""

from __future__ import annotations

import csv
from pathlib import Path

from bench_mtl.core.errors import InputError

_FOLDERS = (Path(__file__).parent / "published", Path(__file__).resolve().parents[2] / "docs" / "papers")


def published(name: str) -> list[dict[str, str]]:
    """Return the rows of docs/papers/NAME.csv, column by column as text.

    Raises
    ------
    InputError : it is in neither place.
    """
    path = next((folder / f"{name}.csv" for folder in _FOLDERS if (folder / f"{name}.csv").is_file()), None)
    if path is None:
        raise InputError(f"the published numbers {name}.csv are missing from this installation")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
