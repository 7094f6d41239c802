"""Writes the report of a results folder beside its results."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.core.errors import InputError, not_written
from bench_mtl.core.types import Status
from bench_mtl.report.formats import chosen
from bench_mtl.results.files import made_folder
from bench_mtl.results.view import View

if TYPE_CHECKING:
    import pandas as pd


#: What the name of a file ends in until all files of its kind are on disk.
PART = ".part"


def write_report(folder: Path | str, *, out: Path | str | None = None, view: View | None = None, formats: Collection[str] = ()) -> Path:
    """Write the report of the results in `folder`, and return the path of report.md, else of report.html, else of the folder.

    Everything is made in memory first: a report that fails leaves the folder as it was.

    Parameters
    ----------
    out : the folder to write to; `folder` itself by default
    view : what of the results to report; all of them by default
    formats : of `bench_mtl.report.formats.ALL`; none means all

    Raises
    ------
    InputError : the folder has no readable results or no finished run, or none that fits the view, or a format is not known, or the files
        cannot be written, or `out` holds files, but none of results or a report, or other results.
    """
    return write_and_sum_up(folder, out=out, view=view, formats=formats).paths[-1]


@dataclass(frozen=True)
class Written:
    """A report that has been written, in short."""

    paths: tuple[Path, ...]  # of report.html and report.md, as far as they were asked for; of the folder where neither was
    summary: str  # the summary table for a terminal, with the skipped pairs only counted
    contradictions: tuple[str, ...]  # a sentence for every instance on which proven bounds exclude each other
    statuses: tuple[Status, ...]  # of the reported runs, and of those for curves


def write_and_sum_up(
    folder: Path | str, *, out: Path | str | None = None, view: View | None = None, formats: Collection[str] = (), processes: int = 1
) -> Written:
    """Write the report as `write_report` does, and return it in short.

    Many figures are drawn by several processes, which import the main module again.
    """
    from bench_mtl.report.columns import to_text
    from bench_mtl.report.registry import printed, report_tables
    from bench_mtl.report.render.files import report_files
    from bench_mtl.report.words import contradictions
    from bench_mtl.results.database import FILE_NAME, require_no_others
    from bench_mtl.results.frames import all_skipped
    from bench_mtl.results.loading import read_results

    wanted, folder = chosen(formats), Path(folder)
    target = folder if out is None else Path(out)
    try:
        with made_folder(target):  # before the work: where it cannot be, one hears of it at once
            if out is not None:
                require_no_others(target)
                if (target / FILE_NAME).exists() and target.resolve() != folder.resolve():
                    raise InputError(f"{target} holds results of its own, whose report this would overwrite: choose another folder")
            results = read_results(folder, view)
            tables = report_tables(results)
            files = report_files(results, tables, wanted, processes)
            replace_files(target, files)
    except OSError as error:
        raise not_written(f"the report cannot be written to {target}", error) from None
    texts = [target / name for name in ("report.html", "report.md") if name in files]
    summary = printed("summary", tables["summary"])
    skipped = all_skipped(summary["Status"])
    note = f"\n\nPairs of problem and solver that do not fit, skipped: {skipped.sum()} (the report says why)." if skipped.any() else ""
    return Written(
        paths=tuple(texts) or (target,),
        summary=to_text(summary[~skipped]) + note,
        contradictions=tuple(contradictions(tables["enclosures"])),
        statuses=tuple(Status(status) for runs in (results.runs, results.traced) for status in runs["status"]),
    )


def summary_frame(folder: Path) -> pd.DataFrame:
    """Return the summary table of the results in `folder`, as text: one row per problem and solver."""
    from bench_mtl.report.registry import printed, report_tables
    from bench_mtl.results.loading import read_results

    return printed("summary", report_tables(read_results(folder), ["summary"])["summary"])


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put `files` in the place of earlier ones, in folders that are made: all are written before the first takes its name.

    Files of other names stay: they may be the user's.
    """
    parts = {folder / name: folder / f"{name}{PART}" for name in files}
    try:
        for path, part in parts.items():
            part.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)  # left behind by a process that was killed; through a link another file would be overwritten
            with part.open("xb") as file:
                file.write(files[path.relative_to(folder).as_posix()])
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
