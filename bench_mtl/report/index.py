"""The list of published reports: who is fastest on how many problems of each suite, and by how much, in numbers from its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench_mtl.core.errors import InputError, plural
from bench_mtl.report.check import Fault, differing_lines
from bench_mtl.report.columns import BLANK, format_ratio, format_target
from bench_mtl.report.registry import report_tables
from bench_mtl.report.tables.winners import about_equal
from bench_mtl.results.database import FILE_NAME as RESULTS
from bench_mtl.results.frames import SPECIALISED
from bench_mtl.results.loading import Results, read_results

INDEX = "README.md"

#: The lines that the table of the suites' reports stands between. Of its rows the first two columns are kept as they are.
START = "<!-- The numbers below are written from the rows by: bench-mtl report --index reports/ -->"
END = "<!-- end of the numbers -->"

#: What is written of every report: the tightest gap of the suite; its problems; on how many of them a specialised solver is fastest, by how
#: much where a rival reaches the gap, and on how many none does; how many times are about equal; on how many a generic solver or a peer is
#: fastest, by how much at most, and on how many no specialised one reaches the gap; on how many nobody does; on how many solvers of one
#: kind alone were run.
COLUMNS = (
    "gap", "problems", "specialised fastest", "times", "no rival there", "about equal", "rival fastest", "times at most",
    "no specialised there", "nobody there", "no rival run",
)  # fmt: skip

_HEAD = [f"| report | command | {' | '.join(COLUMNS)} |", "| --- | --- |" + " ---: |" * len(COLUMNS)]
_ROW = re.compile(r"\| \[[^\]]+\]\((?P<path>[^)]+)/report\.md\) \|[^|]*\|")


def counts(results: Results) -> dict[str, str]:
    """Return the numbers of `COLUMNS`, as they are shown."""
    table = report_tables(replace(results, targets=results.targets[-1:]), ["winners"])["winners"]
    reached = table[table["winner"].notna() & ~table["walkover"].astype(bool)]
    is_equal = about_equal(reached)
    ours = (reached["kind"] == SPECIALISED) & ~is_equal
    theirs = ~ours & ~is_equal
    ratios = reached.loc[ours & reached["other"].notna(), "ratio"].dropna()
    ends = dict.fromkeys(format_ratio(end).removesuffix("x") for end in (ratios.min(), ratios.max())) if len(ratios) else [BLANK]
    losses = reached.loc[theirs & reached["other"].notna(), "ratio"].dropna()
    most = format_ratio(losses.max()).removesuffix("x") if len(losses) else BLANK
    nobody = table["winner"].isna().sum()
    values = (
        format_target(results.targets[-1]), len(table), ours.sum(), " to ".join(ends), (ours & reached["other"].isna()).sum(),
        is_equal.sum(), theirs.sum(), most, (theirs & reached["other"].isna()).sum(), nobody, len(table) - len(reached) - nobody,
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def finding(results: Results) -> str:
    """Return the numbers of results in two short sentences."""
    of = counts(results)
    margin = f", by {of['times']} times where a rival reaches it" if of["times"] != BLANK else ""
    rest = {
        "a generic solver or a peer": of["rival fastest"],
        "times are about equal": of["about equal"],
        "no solver reached it": of["nobody there"],
        "no rival was run": of["no rival run"],
    }
    total = plural(int(of["problems"]), "problem")
    first = f"To {of['gap']} a specialised solver is fastest on {of['specialised fastest']} of {total}{margin}"
    return "; ".join([first, *(f"{words} on {count}" for words, count in rest.items() if count != "0")]) + "."


def written_index(folder: Path) -> str:
    """Return the list of the reports in `folder` with the numbers that their rows give, the rest as it is.

    Raises InputError where there is no list, or no table of suites in it, or the results of a report in it cannot be read.
    """
    lines, rows = _lines(folder)
    table = [f"{row[0]} {' | '.join(counts(read_results(folder / row['path'])).values())} |" for row in rows]
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
    except OSError as error:
        raise InputError(f"{folder} is no folder of reports: {INDEX} cannot be read ({error.strerror})") from None
    if not {START, END} <= set(lines):
        raise InputError(f"{folder / INDEX} has no table of reports, which begins and ends with the lines '{START}' and '{END}'")
    return lines, [row for line in lines[lines.index(START) : lines.index(END)] if (row := _ROW.match(line)) is not None]
