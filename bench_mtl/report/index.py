"""The list of published reports: the finding of each, written from its rows and from nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.core.errors import InputError
from bench_mtl.report.check import Fault, differing_line
from bench_mtl.report.render import escaped, format_ratio, format_target
from bench_mtl.report.tables.grid import grids
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import ABOUT_EQUAL, winners
from bench_mtl.results.database import FILE_NAME as RESULTS
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED
from bench_mtl.results.loading import Results, read_results

if TYPE_CHECKING:
    import pandas as pd

INDEX = "README.md"

#: What the rows of the suites' reports stand between. Only the last column between them is written.
START = "<!-- The findings below are written from the rows by: bench-mtl report --index reports/ -->"
END = "<!-- end of the findings -->"

_HEAD = "| report | command | finding |"
_ROW = re.compile(r"\| \[[^\]]+\]\((?P<path>[^)]+)/report\.md\) \|[^|]*\|(?P<finding>.*)\|")

#: Solvers that are named of those that win.
_MOST_NAMES = 4


class Contest(NamedTuple):
    """A row of the table of winners: who is fastest on a problem to a target, and over whom. None where there is no such thing."""

    problem: str
    target: float
    winner: str | None
    kind: str | None
    rival: str | None
    ratio: float | None
    is_bound: bool
    is_contested: bool
    """Whether solvers of both kinds were run everywhere, so that there is somebody to win against."""

    @property
    def is_level(self) -> bool:
        """Whether the winner is about as fast as its rival, which is no win."""
        return self.ratio is not None and self.ratio < ABOUT_EQUAL and not self.is_bound


def contests(results: Results) -> list[Contest]:
    """Return who is fastest on every problem to every target."""
    times = run_times(results.runs, results.samples, results.targets)
    table: pd.DataFrame = winners(results.runs, times)
    kinds = {
        (grid.group, grid.target): {column.kind for column in grid.columns if column.tried.all()}
        for grid in grids(times, {problem: (problem,) for problem in table["problem"].unique()})
    }
    rows: Iterable[dict[Any, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")
    return [
        Contest(
            row["problem"], row["target"], row["winner"], row["kind"], row["other"], row["ratio"], row["at_least"],
            _is_contested(kinds[row["problem"], row["target"]]) if row["winner"] is None else not row["walkover"],
        )
        for row in rows
    ]  # fmt: skip


def _is_contested(kinds: set[str]) -> bool:
    return SPECIALISED in kinds and bool(kinds & set(ONE_SHOT))


def finding(results: Results) -> str:
    """Return what results say, in at most three sentences: to the middle target, to the tightest, and the extremes."""
    found, targets = contests(results), results.targets
    said: dict[str, list[str]] = {}
    for target in dict.fromkeys((targets[(len(targets) - 1) // 2], targets[-1])):
        said.setdefault(_sentence([contest for contest in found if contest.target == target]), []).append(format_target(target))
    sentences = [f"To {' and '.join(alike)}, {words}." for words, alike in said.items()]
    return " ".join([*sentences, *_extremes(found)])


def _sentence(contests: Sequence[Contest]) -> str:
    """Return who is fastest to a target on how many problems, and by how much."""
    contested = [contest for contest in contests if contest.is_contested]
    rest = [contest for contest in contests if not contest.is_contested]
    of, parts = f" of {_problems(len(contested))} that solvers of both kinds were run on", list[str]()
    for kind in (SPECIALISED, GENERIC, PEER):
        won = [contest for contest in contested if contest.kind == kind]
        parts += [_wins(kind, won, "" if parts else of)] if won else []
    nobody = sum(contest.winner is None for contest in contested)
    parts += [f"no solver gets there on {nobody}{'' if parts else of}"] if nobody else []
    alone, missed = sum(contest.winner is not None for contest in rest), sum(contest.winner is None for contest in rest)
    more = " more" if parts else ""
    parts += [f"on {_problems(alone)}{more} solvers of one kind alone were run, which is no win"] if alone else []
    parts += [f"on {_problems(missed)}{more} solvers of one kind alone were run, none of which gets there"] if missed else []
    return "; ".join(parts)


def _wins(kind: str, won: Sequence[Contest], of: str) -> str:
    """Return how many wins of a kind of solver there are, of how many problems, by whom and by how much."""
    level = sum(contest.is_level for contest in won)
    measured = [contest.ratio for contest in won if contest.ratio is not None and not contest.is_bound and not contest.is_level]
    bounds = [contest.ratio for contest in won if contest.ratio is not None and contest.is_bound]
    without = len(won) - len(measured) - len(bounds) - level
    margins = [f"by {_range(measured)} times where a rival gets there"] if measured else []
    margins += [f"by at least {_range(bounds, '>=')} times where none does"] if bounds else []
    margins += [f"about as fast as a rival on {level}"] if level else []
    margins += [f"without a ratio on {without}"] if without else []
    margin = " and ".join(filter(None, [", ".join(margins[:-1]), margins[-1]]))
    return f"a {kind} solver is fastest on {len(won)}{of} ({_winners(won)}), {margin}"


def _winners(won: Sequence[Contest]) -> str:
    """Return the solvers that win, those that do most often first."""
    counts = Counter(contest.winner for contest in won if contest.winner is not None).most_common()
    named = [f"{escaped(label)} {count}" if len(counts) > 1 else escaped(label) for label, count in counts[:_MOST_NAMES]]
    rest = sum(count for _, count in counts[_MOST_NAMES:])
    return ", ".join([*named, *([f"others {rest}"] if rest else [])])


def _range(ratios: Sequence[float], bound: str = "") -> str:
    least, most = (format_ratio(ratio, bound).removesuffix("x") for ratio in (min(ratios), max(ratios)))
    return least if least == most else f"{least} to {most}"


def _extremes(contests: Sequence[Contest]) -> Iterator[str]:
    """Yield a sentence of the narrowest measured win of specialised solvers and of their largest loss, over all targets.

    A loss without a ratio, where none of them gets there, is larger than any other. A ratio of about one is neither a win nor a loss.
    """
    decided = [contest for contest in contests if contest.winner is not None and contest.is_contested and not contest.is_level]
    lost = [contest for contest in decided if contest.kind != SPECIALISED]
    won = [contest for contest in decided if contest.kind == SPECIALISED and contest.ratio is not None and not contest.is_bound]
    parts = []
    if won:
        parts.append(f"the narrowest measured win of a specialised solver is {_told(min(won, key=lambda contest: contest.ratio or 0.0))}")
    if lost:
        parts.append(f"the largest loss is to {_told(max(lost, key=lambda contest: (contest.ratio is None, contest.ratio or 0.0)))}")
    elif won:
        parts.append("there is no loss")
    if parts:
        text = "; ".join(parts)
        yield f"Over all targets {text}."


def _told(contest: Contest) -> str:
    """Return a win in words: ``pdhg over scs on lasso to 1e-2 (1.6 times)``."""
    assert contest.winner is not None
    over = f" over {escaped(contest.rival)}" if contest.rival is not None else ""
    sign = ">=" if contest.is_bound else ""
    factor = "no ratio" if contest.ratio is None else f"{sign} {format_ratio(contest.ratio, sign).removesuffix('x')} times".lstrip()
    return f"{escaped(contest.winner)}{over} on {escaped(contest.problem)} to {format_target(contest.target)} ({factor})"


def _problems(number: int) -> str:
    return f"{number} problem{'s' if number != 1 else ''}"


def written_index(folder: Path) -> str:
    """Return the list of the reports in `folder` with the findings that their rows give, the rest as it is.

    Where the findings have no marks around them yet, the table of the suites gets them.

    Raises
    ------
    InputError : there is no list, or no table of suites in it, or the results of a report in it cannot be read.
    """
    lines = _lines(folder)
    first, last = _place(folder, lines)
    head = lines[:first] if START in lines else [*lines[:first], START, ""]
    tail = lines[last:] if END in lines else ["", END, *lines[last:]]
    return "\n".join([*head, *(_row(folder, line) for line in lines[first:last]), *tail])


def write_index(folder: Path) -> Path:
    """Write the findings in the list of the reports in `folder`, and return its path; see `written_index`."""
    from bench_mtl.report.write import replace_files

    replace_files(folder, {INDEX: written_index(folder).encode()})
    return folder / INDEX


def index_faults(folder: Path) -> Iterator[Fault]:
    """Yield the findings in the list of the reports in `folder` that are not those of their rows.

    Raises
    ------
    InputError : as `written_index`
    """
    lines = _lines(folder)
    first, last = _place(folder, lines)
    if START not in lines or END not in lines:
        why = f"the findings are not written from the rows (bench-mtl report --index {folder} does)"
        yield Fault(folder / INDEX, first + 1, lines[first], why)
        return
    for number, line in enumerate(lines[first:last], start=first + 1):
        if line != (true := _row(folder, line)):
            yield differing_line(folder / INDEX, number, line, true)
    listed = [row["path"] for line in lines[first:last] if (row := _ROW.fullmatch(line)) is not None]
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
    if _HEAD not in lines:
        raise InputError(f"{folder / INDEX} has no table of reports, which begins '{_HEAD}'")
    first = lines.index(_HEAD)
    last = next((number for number in range(first, len(lines)) if not lines[number].startswith("|")), len(lines))
    return first, last


def _row(folder: Path, line: str) -> str:
    """Return a line of the table with the finding that the rows give."""
    row = _ROW.fullmatch(line)
    return line if row is None else f"{line[: row.start('finding')]} {finding(read_results(folder / row['path']))} |"
