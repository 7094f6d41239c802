"""Writes the report of a results folder beside its results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def write_report(folder: Path) -> Path:
    """Write report.md, tables/, figures/, runs.csv and samples.csv from the results in `folder`.

    Everything is made in memory first: a report that fails leaves the folder as it was.

    Returns
    -------
    Path
        of report.md.

    Raises
    ------
    InputError : the folder has no readable results or no finished run, or cannot be written.
    """
    return write_and_sum_up(folder).path


@dataclass(frozen=True)
class Written:
    """A report that has been written, in short."""

    path: Path
    """Of report.md."""
    summary: str
    """The summary table for a terminal, with the skipped pairs only counted."""
    contradictions: tuple[str, ...]
    """A sentence for every instance on which proven bounds exclude each other."""


def write_and_sum_up(folder: Path) -> Written:
    """`write_report`, with what it says in short. Raises what `write_report` does."""
    from bench_mtl.report.document import report_files, report_tables
    from bench_mtl.report.results import read_results
    from bench_mtl.report.tables.enclosures import contradictions

    results = read_results(folder)
    tables = report_tables(results)
    files = report_files(results, tables)
    try:
        _replace(folder, files)
    except OSError as error:
        raise InputError(f"the report cannot be written to {folder}: {error.strerror or error}") from None
    return Written(folder / "report.md", _summary_text(tables["summary"]), tuple(contradictions(tables["enclosures"])))


def summary_frame(folder: Path) -> pd.DataFrame:
    """The summary table of the results in `folder`, as text: one row per problem and solver.

    Raises
    ------
    InputError : the folder has no readable results or no finished run.
    """
    from bench_mtl.report.document import printed
    from bench_mtl.report.results import read_results
    from bench_mtl.report.tables.summary import summary

    results = read_results(folder)
    return printed(summary(results.runs, results.samples, results.targets))


def _summary_text(summary: pd.DataFrame) -> str:
    from bench_mtl.report.document import printed
    from bench_mtl.report.render import to_text
    from bench_mtl.report.tables.frames import all_skipped

    frame = printed(summary)
    skipped = all_skipped(frame["Status"])
    note = f"\n\nPairs of problem and solver that do not fit, skipped: {skipped.sum()} (the report says why)." if skipped.any() else ""
    return to_text(frame[~skipped]) + note


def _replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put `files` in the place of an earlier report: all are on disk before the first takes its name.

    Files of other names stay: they may be the user's.
    """
    parts = {folder / name: folder / f"{name}.part" for name in files}
    try:
        for path, part in parts.items():
            part.parent.mkdir(exist_ok=True)
            part.write_bytes(files[path.relative_to(folder).as_posix()])
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
