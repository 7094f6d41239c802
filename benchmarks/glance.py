"""The tables and figures of README, of docs/results-at-a-glance.md and of the paper: seconds of `auto` and of the best of each kind.

`python -m benchmarks.glance` prints the tables, made from the rows of the reports; with ``--write`` it puts them, and the figures, in their
places. Of several problems or draws together seconds and ratios are geometric means over them, and intervals are over them, too. On every
draw the first runs choose the fastest of a kind, and later ones measure it. A dash stands for a kind of which nobody was run.

A folder `ANOTHER_DAY` in that of a report has the rows of another day, of `auto` and of rivals that the report ran again.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from html import escape
from math import inf, isinf, isnan, log, nan
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_mtl.report.columns import enumerated, format_ratio, format_seconds, format_target, share
from bench_mtl.report.figures import seconds, style
from bench_mtl.report.tables.contests import contests, fastest, interval_ends, pairs
from bench_mtl.report.tables.instances import run_times
from bench_mtl.results.frames import AUTO, GENERIC, PEER
from bench_mtl.results.loading import read_results
from bench_mtl.stats import shifted_mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.results.loading import Results

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports"

README, GLANCE, PAPER = "README.md", "docs/results-at-a-glance.md", "paper/paper.md"

#: The figures: of the problems one by one, and of the lines of the tables.
FIGURE, SMALL_FIGURE = "docs/figures/seconds.svg", "docs/figures/seconds-small.svg"

HEAD = """\
| problem | proven gap | auto, s | best generic, s | ratio | best library, s | ratio |
| --- | --- | --- | --- | --- | --- | --- |"""

#: Of the table of wins and losses, which is of the looser and of the tighter of `TARGETS`.
CONTESTS_HEAD = """\
| problem | auto to 1e-4, s | best rival, s | ratio | auto to 1e-6, s | best rival, s | ratio |
| --- | --- | --- | --- | --- | --- | --- |"""

#: Of the tables of another day: its seconds over those of the report, and the verdicts that are others.
DAYS_HEAD = """\
| report | problems | auto | best generic | best library |
| --- | --- | --- | --- | --- |"""

CHANGES_HEAD = """\
| problem | proven gap | as above | another day |
| --- | --- | --- | --- |"""

TARGETS = (1e-4, 1e-6)

ANOTHER_DAY = "another-day"

#: The reports that the page is of, and the families of their problems by how the labels of these begin.
HEADLINES = ("headline-fresh", "headline-hinge", "headline-hinge-real", "headline-lowrank", "headline-peers", "support-vector-machines")
FAMILIES = ("hinge", "support vector machine", "sparse + low rank", "lasso", "logistic", "l1,inf")

#: What the ratio to the best rival says of `auto`, in the order in which the page counts.
VERDICTS = (
    "ahead on", "behind on", "level (the interval holds 1) on", "without an interval on",
    "alone (no rival reaches the gap in its limit) on", "not compared on",
)  # fmt: skip


class Line(NamedTuple):
    """A line of the tables for every target: problems by patterns of their labels in a report, and the targets that README shows."""

    text: str
    report: str
    problems: tuple[str, ...]
    targets: tuple[float, ...]
    in_readme: tuple[float, ...] = ()


LINES = [
    Line("hinge, 60 tasks, 40 examples each", "headline-fresh", ("hinge*, 40 *",), (1e-4, 1e-6), (1e-6,)),
    Line("the same, 160 examples each", "headline-fresh", ("hinge*, 160 *",), (1e-4, 1e-6), (1e-6,)),
    Line("the same, 640 examples each", "headline-hinge", ("*, 640 *",), (1e-4, 1e-6)),
    Line("hinge, real data, 8 problems", "headline-hinge-real", ("hinge*",), (1e-4, 1e-6), (1e-6,)),
    Line("sparse + low rank, 30 tasks", "headline-fresh", ("sparse + low rank*",), (1e-4, 1e-6), (1e-6,)),
    Line("sparse + low rank, Scene", "headline-lowrank", ("*, Scene",), (1e-4, 1e-6), (1e-4,)),
    Line("sparse + low rank, Yeast", "headline-lowrank", ("*, Yeast",), (1e-4, 1e-6)),
    Line("lasso, 500 x 5000", "headline-fresh", ("lasso, *",), (1e-4, 1e-6), (1e-6,)),
    Line("lasso, rcv1", "headline-peers", ("lasso, rcv1sub1*",), (1e-4, 1e-6)),
    Line("sparse logistic, 2000 x 500", "headline-fresh", ("logistic*",), (1e-4, 1e-6), (1e-4, 1e-6)),
    Line("sparse logistic, Bibtex", "headline-peers", ("logistic, Bibtex*",), (1e-4, 1e-6)),
    Line("support vector machine, 5 sets", "support-vector-machines", ("support*",), (1e-4, 1e-6), (1e-6,)),
    Line("l1,inf least squares, 3 sets", "headline-peers", ("l1,inf*",), (1e-4, 1e-6), (1e-6,)),
]


class Ratio(NamedTuple):
    """A ratio with its interval, from 0 to inf if runs say nothing of the scatter. It is inf if no rival is there, 0 if `auto` is not."""

    value: float  # NaN if nobody does, or nobody else was run
    low: float
    high: float
    number: str  # on how many of the instances, where not on all

    def __str__(self) -> str:
        if not self.is_finite:
            return "-"
        ends = "-".join(format_ratio(end).rstrip("x") for end in (self.low, self.high))
        return f"{format_ratio(self.value).rstrip('x')}{'' if isinf(self.high) else f' ({ends})'}{self.number}"

    @property
    def is_finite(self) -> bool:
        return 0.0 < self.value < inf

    @property
    def verdict(self) -> str:
        """Which of `VERDICTS` it is."""
        has_interval = self.high < inf
        holds = (
            has_interval and self.low > 1.0,
            self.high < 1.0,
            has_interval and self.low <= 1.0 <= self.high,
            self.is_finite and not has_interval,
            isinf(self.value),
            True,
        )
        return VERDICTS[holds.index(True)]


def lines(page: str) -> Iterator[str]:
    """Yield the lines of the table on a page, as Markdown."""
    if page == GLANCE:
        yield from (f"| {' | '.join(cells)} |" for cells, _ in _contests())
        return
    before = ""
    for line in LINES:
        field = _line_field(line)
        for target in line.in_readme if page == README else line.targets:
            text = "" if line.text == before else f"{line.text} "
            before = line.text
            of_target = field[field["target"] == target]
            own = _best(of_target, AUTO)
            cells = [cell for kind in (GENERIC, PEER) for cell in _against(_best(of_target, kind), own)]
            yield f"| {text}| {format_target(target)} | {' | '.join([_seconds(own), *cells])} |"


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the head of every table of a page, and what stands there: the table, and above it a sentence that counts."""
    if page != GLANCE:
        yield HEAD, "\n".join([HEAD, *lines(page)])
        return
    yield CONTESTS_HEAD, "\n".join([score(), "", CONTESTS_HEAD, *lines(page)])
    yield DAYS_HEAD, "\n".join([DAYS_HEAD, *days()])
    yield CHANGES_HEAD, "\n".join([agreement(), "", CHANGES_HEAD, *changes()])


def score() -> str:
    """Return on how many problems `auto` is ahead of all rivals, and on how many it is behind."""
    sentences = []
    for place, target in enumerate(TARGETS):
        counts = Counter(ratios[place].verdict for _, ratios in _contests())
        parts = [f"{verdict} {counts[verdict]}" for verdict in VERDICTS if counts[verdict]]
        sentences.append(f"to {format_target(target)} `auto` is {enumerated(parts)}")
    return f"Of {len(_contests())} problems, {'; '.join(sentences)}."


def agreement() -> str:
    """Return of how many problems both days say the same."""
    counts = [
        f"{sum(len({ratio.verdict for ratio in ratios}) == 1 for _, ratios in _on_both_days(target))} to {format_target(target)}"
        for target in TARGETS
    ]
    return f"Of {len(_on_both_days(TARGETS[0]))} problems both days say the same of {enumerated(counts)}."


def changes() -> Iterator[str]:
    """Yield the lines of the table of problems of which the days say something else."""
    for target in TARGETS:
        for name, ratios in _on_both_days(target):
            if len({ratio.verdict for ratio in ratios}) > 1:
                texts = [str(ratio) if ratio.is_finite else ratio.verdict.removesuffix(" on").partition(" (")[0] for ratio in ratios]
                yield f"| {name} | {format_target(target)} | {' | '.join(texts)} |"


@cache
def _on_both_days(target: float) -> list[tuple[str, list[Ratio]]]:
    """Return the ratios of both days to a target, problem by problem."""
    return [(name, [_against_best(day, target)[1] for day in days]) for of in _two_days().values() for name, *days in of]


def days() -> Iterator[str]:
    """Yield the lines of the table of another day: its seconds over those of the report, a geometric mean over problems and its ends."""
    target = TARGETS[-1]
    for report, problems in _two_days().items():
        cells = []
        for role in (AUTO, GENERIC, PEER):
            seconds_of = [[_mean_seconds(day[day["target"] == target], role) for day in of_problem] for _, *of_problem in problems]
            ratios = [second / first for first, second in seconds_of if not isnan(second / first)]
            ends = [format_ratio(ratio).rstrip("x") for ratio in (geometric_mean(ratios), min(ratios), max(ratios))] if ratios else []
            cells.append(f"{ends[0]} ({ends[1]}-{ends[2]}){share(len(ratios), len(problems))}" if ends else "-")
        yield f"| {report} | {len(problems)} | {' | '.join(cells)} |"


def _mean_seconds(field: pd.DataFrame, who: str) -> float:
    """Return the seconds of `auto` or of the best of a kind to one target; NaN unless it is reached on every instance."""
    reached = _best(field, who)["median_seconds"]
    return geometric_mean(reached) if len(reached) and reached.notna().all() else nan


def _two_days() -> dict[str, list[tuple[str, pd.DataFrame, pd.DataFrame]]]:
    """Return for every report that has another day the names of its problems, and their contests on both days."""
    days = {}
    for report in HEADLINES:
        if (REPORTS / report / ANOTHER_DAY).is_dir():
            own, other = _problems(report), _problems(f"{report}/{ANOTHER_DAY}")
            days[report] = [(name, own[name], field) for name, field in other.items()]
    return days


@cache
def _contests() -> list[tuple[list[str], list[Ratio]]]:
    """Return for every problem its cells in the table of wins and losses, and the ratio to each target: the closest contest first."""
    rows = []
    for report in HEADLINES:
        names = _names(report)
        for problem, field in _problems(report).items():
            cells, ratios = zip(*[_against_best(field, target) for target in TARGETS], strict=True)
            rows.append(([names[problem], *(cell for of_target in cells for cell in of_target)], [*ratios]))
    return sorted(rows, key=lambda row: min((abs(log(ratio.value)) for ratio in row[1] if ratio.is_finite), default=inf))


def _against_best(field: pd.DataFrame, target: float) -> tuple[list[str], Ratio]:
    """Return the cells of `auto` and of its best rival to a target, and the ratio of their seconds."""
    of_target = field[field["target"] == target]
    own, rivals = _best(of_target, AUTO), _best(of_target, GENERIC, PEER)
    (who, text), ratio = _against(rivals, own), _ratio(rivals, own)
    return [_seconds(own), who, f"**{text}**" if ratio.high < 1.0 else text], ratio


@cache
def _problems(report: str) -> dict[str, pd.DataFrame]:
    """Return the contests of a report by problem."""
    return {str(problem): field for problem, field in _field(report).groupby("group", sort=False)}


@cache
def _field(report: str) -> pd.DataFrame:
    return contests(_times(report))


@cache
def _results(report: str) -> Results:
    return read_results(REPORTS / report)


@cache
def _times(report: str) -> pd.DataFrame:
    results = _results(report)
    return run_times(results.runs, results.samples, results.targets)


@cache
def _names(report: str) -> dict[str, str]:
    """Return the names of the problems of a report beside those of others: with their draws, and with the clock if it is an older one."""
    runs = _results(report).runs
    clock = ", older clock" if "older" in set(runs["clock"]) else ""
    draws = runs.groupby("problem_label", sort=False)["instance_key"].nunique()
    return {str(label): f"{label}{f', {count} draws' if count > 1 else ''}{clock}" for label, count in draws.items()}


@cache
def _line_field(line: Line) -> pd.DataFrame:
    """Return the contests of a line, whose problems are instances of one."""
    times = _times(line.report)
    labels = [label for label in times["problem"].unique() if any(fnmatchcase(label, pattern) for pattern in line.problems)]
    return contests(times, {line.text: labels})


def _best(field: pd.DataFrame, *who: str) -> pd.DataFrame:
    """Return `auto`, or the fastest of some kinds on every draw of a contest to one target: its name is in the column `label`, and in `had`
    the longest time within which one of them did not get there, NaN for none."""
    chosen = field[field["tried"] & (field["solver"] == AUTO if who == (AUTO,) else field["kind"].isin(who))]
    if chosen.empty:
        return chosen
    had = max((seconds for timeouts in chosen["timeouts"] for seconds in timeouts), default=nan)
    return fastest(chosen.assign(label=chosen["solver"].astype(str).str.split(" ").str[0], had=had), who[0])


def _against(best: pd.DataFrame, own: pd.DataFrame) -> tuple[str, str]:
    """Return the cells of rivals: name and seconds of the best, and the ratio to them."""
    if best.empty:
        return "-", "-"
    reached = best["median_seconds"].notna()
    if not reached.any():
        had = best["had"].iloc[0]
        return "none reaches it" if isnan(had) else f"not in {had:.3g} s", "-"
    return f"{' or '.join(dict.fromkeys(best['label'][reached]))} {_seconds(best)}", str(_ratio(best, own))


def _ratio(best: pd.DataFrame, own: pd.DataFrame) -> Ratio:
    """Return the ratio of the seconds of the best of some kinds to those of `auto`."""
    rival_there, own_there = (len(rows) > 0 and bool(rows["median_seconds"].notna().any()) for rows in (best, own))
    if best.empty or not (rival_there and own_there):
        value = nan if best.empty or rival_there == own_there else inf if own_there else 0.0
        return Ratio(value, value, value, "")
    (pair,) = pairs(best, own).to_dict("records")
    low, high = (pair["ratio_low"], pair["ratio_high"]) if pair["ratio_low"] > 0.0 else (0.0, inf)
    return Ratio(pair["ratio"], low, high, share(pair["ratios"], pair["instances"]))


def _seconds(rows: pd.DataFrame) -> str:
    reached = rows["median_seconds"].dropna()
    return f"{format_seconds(geometric_mean(reached))}{share(len(reached), len(rows))}" if len(reached) else "not reached"


def points() -> pd.DataFrame:
    """Return the dots of the figure of all problems, as of `seconds.seconds_points`, with their families."""
    import pandas as pd

    frames = [_points(_field(report)).replace({"problem": _names(report)}) for report in HEADLINES]
    table = pd.concat([frame.dropna(axis=1, how="all") for frame in frames], ignore_index=True)
    family = table["problem"].map(lambda label: next(name for name in FAMILIES if label.startswith(name)))
    return table.assign(family=family).sort_values("family", key=lambda names: names.map(FAMILIES.index), kind="stable")


def small_points() -> pd.DataFrame:
    """Return the dots of the figure of the lines of the tables."""
    import pandas as pd

    frames = [_points(_line_field(line)) for line in LINES]
    return pd.concat([frame.dropna(axis=1, how="all") for frame in frames], ignore_index=True)


def _points(field: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    target = TARGETS[-1]
    rows = [
        {"problem": problem, "target": target, "role": role, **_dot(best)}
        for problem, of_problem in field[field["target"] == target].groupby("group", sort=False)
        for role in seconds.ROLES
        if len(best := _best(of_problem, role))
    ]
    return pd.DataFrame(rows, columns=["problem", "target", "role", "solver", "seconds", "low", "high", "limit_seconds"])


def _dot(best: pd.DataFrame) -> dict[str, object]:
    if best["median_seconds"].isna().any():
        return {"limit_seconds": best["had"].iloc[0]}
    # Two problems say next to nothing of their scatter.
    low, high = (nan, nan) if len(best) == 2 else interval_ends(shifted_mean_interval([*best["repetitions"]], 0.0))
    return {
        "solver": " or ".join(dict.fromkeys(best["label"])),
        "seconds": geometric_mean(best["median_seconds"]),
        "low": low,
        "high": high,
    }


def drawn(dots: pd.DataFrame, *, is_small: bool = False) -> str:
    """Return the figure as an SVG drawing that says its dots in words, too."""
    drawing = style.files(seconds.seconds(dots, is_small=is_small), ["svg"])["svg"].decode()
    return re.sub(r"(<svg\b[^>]*>)", lambda start: f"{start[1]}\n<desc>{escape(words(dots))}</desc>", drawing, count=1)


def words(dots: pd.DataFrame) -> str:
    """Return the dots of a figure in words: who takes how many seconds, with an interval, or how long nobody got there."""

    def one(row: dict[Hashable, Any]) -> str:
        name = seconds.ROLES[row["role"]]
        if row["seconds"] != row["seconds"]:
            return f"{name} not in {row['limit_seconds']:.3g} s" if row["limit_seconds"] == row["limit_seconds"] else f"{name} not there"
        who = "" if row["solver"] == AUTO else f" ({row['solver']})"
        ends = f" ({format_seconds(row['low'])} to {format_seconds(row['high'])})" if row["low"] == row["low"] else ""
        return f"{name}{who} {format_seconds(row['seconds'])} s{ends}"

    texts = [f"{problem}: {'; '.join(map(one, of.to_dict('records')))}" for problem, of in dots.groupby("problem", sort=False)]
    return "\n".join([f"Seconds to a proven relative gap of {format_target(dots['target'].iloc[0])}", *texts])


def on_page(page: str, text: str) -> str:
    """Return a page with its tables as they are now, and the sentences above them where there are some."""
    for head, block in blocks(page):
        place = re.compile(rf"^(?:Of [^\n]*\n\n)?{re.escape(head)}\n(?:\|[^\n]*(?:\n|\Z))*", re.MULTILINE)
        if len(place.findall(text)) != 1:
            raise ValueError(f"{page} has no table that begins with {head!r}, or several")
        text = place.sub(lambda _, block=block: f"{block}\n", text)  # type: ignore[misc]
    return text


def main(arguments: list[str]) -> None:
    """Print the tables, or write them and the figures into their places."""
    if arguments not in ([], ["--write"]):
        raise SystemExit("python -m benchmarks.glance [--write]")
    for page in (README, GLANCE, PAPER):
        if arguments:
            (ROOT / page).write_text(on_page(page, (ROOT / page).read_text(encoding="utf-8")), encoding="utf-8")
        else:
            print("\n\n".join([page, *(block for _, block in blocks(page))]), end="\n\n")
    for path, dots in {FIGURE: points(), SMALL_FIGURE: small_points()}.items() if arguments else ():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(drawn(dots, is_small=path == SMALL_FIGURE), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
