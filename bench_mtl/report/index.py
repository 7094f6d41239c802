"""The list of published reports: who is fastest on how many problems of each suite, and by how much, in numbers from its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.core.errors import InputError, plural
from bench_mtl.report.check import Fault, differing_line
from bench_mtl.report.render import BLANK, format_ratio, format_target
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import ABOUT_EQUAL, winners
from bench_mtl.results.database import FILE_NAME as RESULTS
from bench_mtl.results.frames import SPECIALISED
from bench_mtl.results.loading import Results, read_results

if TYPE_CHECKING:
    import pandas as pd

INDEX = "README.md"

#: What the rows of the suites' reports stand between. Their first two columns are kept as they are.
START = "<!-- The numbers below are written from the rows by: bench-mtl report --index reports/ -->"
END = "<!-- end of the numbers -->"

#: The columns that are written: the tightest gap of the suite; its problems; on how many of them a specialised solver is fastest, by how
#: much where a rival reaches the gap, and on how many none does; how many times are about equal; on how many a generic solver or a peer is
#: fastest, and by how much at most; on how many nobody reaches the gap; on how many solvers of one kind alone were run.
COLUMNS = (
    "gap", "problems", "specialised fastest", "times", "no rival there", "about equal", "rival fastest", "times at most", "nobody there",
    "no rival run",
)  # fmt: skip

_HEAD = "| report | command |"
_ROW = re.compile(r"\| \[[^\]]+\]\((?P<path>[^)]+)/report\.md\) \|[^|]*\|")


def counts(results: Results) -> dict[str, str]:
    """Return the numbers of `COLUMNS`, as they are shown."""
    times = run_times(results.runs, results.samples, results.targets[-1:])
    table = winners(contests(times))
    reached = table[table["winner"].notna() & ~table["walkover"].astype(bool)]
    is_equal = (reached["ratio"] < ABOUT_EQUAL) & ~reached["at_least"].astype(bool)
    ours = (reached["kind"] == SPECIALISED) & ~is_equal
    theirs = ~ours & ~is_equal
    losses = reached[theirs].sort_values("ratio").tail(1).to_dict("records")  # one without a ratio is the largest
    signs = [">= " if row["at_least"] else "" for row in losses]
    ratios = [
        sign + format_ratio(row["ratio"], sign.strip()).rstrip("x") for row, sign in zip(losses, signs, strict=True) if row["ratio"] > 0
    ]
    nobody = int(table["winner"].isna().sum())
    values = (
        format_target(results.targets[-1]), len(table), ours.sum(), _range(reached.loc[ours & reached["other"].notna(), "ratio"]),
        (ours & reached["other"].isna()).sum(), is_equal.sum(), theirs.sum(), *(ratios or ["no ratio" if losses else BLANK]), nobody,
        len(table) - len(reached) - nobody,
    )  # fmt: skip
    return dict(zip(COLUMNS, map(str, values), strict=True))


def _range(ratios: pd.Series[float]) -> str:
    if ratios.notna().sum() == 0:
        return BLANK
    least, most = (format_ratio(end).removesuffix("x") for end in (ratios.min(), ratios.max()))
    return least if least == most else f"{least} to {most}"


def finding(results: Results) -> str:
    """Return the numbers of results in two short sentences."""
    of = counts(results)
    margin = f", by {of['times']} times where a rival reaches it" if of["times"] != BLANK else ""
    rest = {
        "a generic solver or a peer is": of["rival fastest"],
        "times are about equal": of["about equal"],
        "no solver reaches it": of["nobody there"],
        "no rival was run": of["no rival run"],
    }
    others = [f"{words} on {count}" for words, count in rest.items() if count != "0"]
    total = plural(int(of["problems"]), "problem")
    first = f"To {of['gap']} a specialised solver is fastest on {of['specialised fastest']} of {total}{margin}."
    sentence = "; ".join(others)
    return f"{first} {sentence[:1].upper()}{sentence[1:]}." if others else first


def written_index(folder: Path) -> str:
    """Return the list of the reports in `folder` with the numbers that their rows give, the rest as it is.

    Where the table has no marks around it yet, it gets them.

    Raises
    ------
    InputError : there is no list, or no table of suites in it, or the results of a report in it cannot be read.
    """
    lines = _lines(folder)
    first, last = _place(folder, lines)
    head = lines[:first] if START in lines else [*lines[:first], START, ""]
    tail = lines[last:] if END in lines else ["", END, *lines[last:]]
    return "\n".join([*head, *_table(folder, lines[first:last]), *tail])


def write_index(folder: Path) -> Path:
    """Write the numbers into the list of the reports in `folder`, and return its path; see `written_index`."""
    from bench_mtl.report.write import replace_files

    replace_files(folder, {INDEX: written_index(folder).encode()})
    return folder / INDEX


def index_faults(folder: Path) -> Iterator[Fault]:
    """Yield the lines of the list of the reports in `folder` that are not those of their rows.

    Raises
    ------
    InputError : as `written_index`
    """
    lines = _lines(folder)
    first, last = _place(folder, lines)
    if START not in lines or END not in lines:
        why = f"the numbers are not written from the rows (bench-mtl report --index {folder} does)"
        yield Fault(folder / INDEX, first + 1, lines[first], why)
        return
    for number, (line, true) in enumerate(zip(lines[first:last], _table(folder, lines[first:last]), strict=True), start=first + 1):
        if line != true:
            yield differing_line(folder / INDEX, number, line, true)
    listed = [row["path"] for line in lines[first:last] if (row := _ROW.match(line)) is not None]
    for path in sorted(folder.glob(f"*/{RESULTS}")):
        if listed.count(path.parent.name) != 1:
            yield Fault(folder / INDEX, first + 1, lines[first], f"{path.parent.name} is listed {listed.count(path.parent.name)} times")


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / INDEX).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InputError(f"{folder} is no folder of reports: {INDEX} cannot be read ({error.strerror})") from None


def _place(folder: Path, lines: Sequence[str]) -> tuple[int, int]:
    """Return the place of the table of suites: its first line, and the one after its last."""
    first = next((number for number, line in enumerate(lines) if line.startswith(_HEAD)), None)
    if first is None:
        raise InputError(f"{folder / INDEX} has no table of reports, which begins '{_HEAD}'")
    return first, next((number for number in range(first, len(lines)) if not lines[number].startswith("|")), len(lines))


def _table(folder: Path, lines: Sequence[str]) -> list[str]:
    """Return the lines of the table of suites, of each the report and the command as they are."""
    rows = [_ROW.match(line) for line in lines[2:]]
    head = f"{_HEAD} {' | '.join(COLUMNS)} |"
    numbers = [line if row is None else f"{row[0]} {_cells(folder / row['path'])} |" for row, line in zip(rows, lines[2:], strict=True)]
    return [head, "| --- | --- |" + " ---: |" * len(COLUMNS), *numbers]


def _cells(folder: Path) -> str:
    return " | ".join(counts(read_results(folder)).values())
