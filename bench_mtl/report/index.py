"""The list of published reports: who is fastest on how many problems of each suite, and by how much, in numbers from its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench_mtl.core.errors import InputError
from bench_mtl.report.check import Fault, differing_lines
from bench_mtl.report.columns import format_ratio, format_target
from bench_mtl.report.registry import report_tables
from bench_mtl.report.tables.winners import about_equal
from bench_mtl.results.database import FILE_NAME as RESULTS
from bench_mtl.results.frames import SPECIALISED
from bench_mtl.results.loading import Results, read_results

INDEX = "README.md"

#: The lines that the table of the suites' reports stands between. Of its rows the first two columns are kept as they are.
START = "<!-- The numbers below are written from the rows by: bench-mtl report --index reports/ -->"
END = "<!-- end of the numbers -->"

#: What is written of every report: its tightest gap and its problems; on how many of them a specialised solver is fastest, by which factors
#: where a rival reaches the gap, and on how many none does; how many times are about equal; on how many a generic solver or a peer is
#: fastest; on how many nobody reaches the gap, or no rival was run. What there is none of is an empty cell.
COLUMNS = ("gap", "problems", "specialised fastest", "about equal", "rival fastest", "no contest")

_HEAD = [f"| report | command | {' | '.join(COLUMNS)} |", "| --- | --- |" + " ---: |" * 2 + " --- |" * 4]
_ROW = re.compile(r"\| \[[^\]]+\]\((?P<path>[^)]+)/report\.md\) \|[^|]*\|")


class Counts(NamedTuple):
    """On how many problems of a suite who is fastest to its tightest gap, and by which factors at least and at most."""

    target: float
    problems: int
    ours: int
    ratios: tuple[float, ...]  # of these, over rivals that reach the gap
    alone: int  # of these, those on which no rival does
    equal: int
    theirs: int
    losses: tuple[float, ...]
    theirs_alone: int
    nobody: int
    without_rival: int

    def cells(self) -> dict[str, str]:
        """Return the cells of `COLUMNS`."""
        nobody = [f"{self.nobody} (nobody there)"] if self.nobody else []
        nobody += [f"{self.without_rival} (no rival run)"] if self.without_rival else []
        ours, theirs = _won(self.ours, self.ratios, self.alone), _won(self.theirs, self.losses, self.theirs_alone)
        cells = format_target(self.target), str(self.problems), ours, str(self.equal or ""), theirs, ", ".join(nobody)
        return dict(zip(COLUMNS, cells, strict=True))


def _won(count: int, ratios: tuple[float, ...], alone: int) -> str:
    """Return how many contests a side wins, by which factors, and how many of them against nobody who reaches the gap: empty for none."""
    parts = [*([f"by {_factors(ratios)}"] if ratios else []), *([f"{alone} alone"] if alone else [])]
    return f"{count} ({'; '.join(parts)})" if parts else str(count or "")


def _factors(ratios: tuple[float, ...]) -> str:
    return " to ".join(dict.fromkeys(format_ratio(end).removesuffix("x") for end in (min(ratios), max(ratios))))


def counts(results: Results) -> Counts:
    """Return what the rows of a suite say."""
    table = report_tables(replace(results, targets=results.targets[-1:]), ["winners"])["winners"]
    reached = table[table["winner"].notna() & ~table["walkover"].astype(bool)]
    is_equal, is_ours = about_equal(reached), reached["kind"] == SPECIALISED
    ours, theirs = reached[is_ours & ~is_equal], reached[~is_ours & ~is_equal]
    ratios, losses = (tuple(side.loc[side["other"].notna(), "ratio"].dropna()) for side in (ours, theirs))
    nobody = int(table["winner"].isna().sum())
    return Counts(
        results.targets[-1], len(table), len(ours), ratios, int(ours["other"].isna().sum()), int(is_equal.sum()),
        len(theirs), losses, int(theirs["other"].isna().sum()), nobody, len(table) - len(reached) - nobody,
    )  # fmt: skip


def written_index(folder: Path) -> str:
    """Return the list of the reports in `folder` with the numbers that their rows give, the rest as it is.

    Raises InputError where there is no list, or no table of suites in it, or the results of a report in it cannot be read.
    """
    lines, rows = _lines(folder)
    table = [f"{row[0]} {' | '.join(counts(read_results(folder / row['path'])).cells().values())} |" for row in rows]
    return "\n".join([*lines[: lines.index(START) + 1], "", *_HEAD, *table, "", *lines[lines.index(END) :]])


def write_index(folder: Path) -> Path:
    """Write the numbers into the list of the reports in `folder`, and return its path; see `written_index`."""
    from bench_mtl.report.write import replace_files

    replace_files(folder, {INDEX: written_index(folder).encode()})
    return folder / INDEX


def index_faults(folder: Path) -> Iterator[Fault]:
    """Yield the lines of the list of the reports in `folder` that are not those of their rows."""
    lines, rows = _lines(folder)
    yield from differing_lines(folder / INDEX, "\n".join(lines), written_index(folder))
    listed = Counter(row["path"] for row in rows)
    for name in sorted(path.parent.name for path in folder.glob(f"*/{RESULTS}")):
        if listed[name] != 1:
            yield Fault(folder / INDEX, lines.index(START) + 1, START, f"{name} is listed {listed[name]} times")


def _lines(folder: Path) -> tuple[list[str], list[re.Match[str]]]:
    """Return the lines of the list, and those of its suites."""
    try:
        lines = (folder / INDEX).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{folder} is no folder of reports: {INDEX} cannot be read ({why})") from None
    if not {START, END} <= set(lines):
        raise InputError(f"{folder / INDEX} has no table of reports, which begins and ends with the lines '{START}' and '{END}'")
    return lines, [row for line in lines[lines.index(START) : lines.index(END)] if (row := _ROW.match(line)) is not None]
