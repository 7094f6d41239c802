"""The tables of a report: how each is called, made and explained, and how tables are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bench_mtl.report.render import BLANK, display, escaped
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import comparisons, groups, means, speed_ups
from bench_mtl.report.tables.instances import by_instance, run_times, time_to_gap
from bench_mtl.report.tables.measures import measures_table
from bench_mtl.report.tables.scaling import communication, scaling_fits, scaling_points, workers
from bench_mtl.report.tables.statuses import statuses
from bench_mtl.report.tables.summary import not_verified, summary, times, tolerances
from bench_mtl.report.tables.winners import winners
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.frames import all_skipped
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Place

#: What a table repeats in every row is left out of its printed form.
_CONSTANT = ("Seed", "Repetition", "Runs")

#: Columns for machines: CSV and Parquet only.
_DATA_ONLY = ("Instance", "Finding")

#: Of a table in print; its CSV and Parquet files have them all.
MOST_ROWS = 500


@dataclass(frozen=True)
class Made:
    """Results and what several tables are made from, each computed once."""

    runs: pd.DataFrame
    samples: pd.DataFrame
    measures: pd.DataFrame
    targets: tuple[float, ...]
    baseline: str | None
    places: Mapping[int, tuple[Place, ...]]

    @cached_property
    def times(self) -> pd.DataFrame:
        """Seconds, passes and iterations of every run to every target."""
        return run_times(self.runs, self.samples, self.targets)

    @cached_property
    def by_problem(self) -> pd.DataFrame:
        """The contests of every problem."""
        return contests(self.times)

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """The contests of all groups of like problems."""
        return contests(self.times, groups(self.runs))

    @cached_property
    def objectives(self) -> pd.DataFrame:
        return objectives(self.runs, self.samples)


@dataclass(frozen=True)
class TableKind:
    """A table that reports have."""

    title: str
    sentence: str
    """What it shows, in LaTeX files and where there is no explanation."""
    build: Callable[[Made], pd.DataFrame]
    explanation: str = ""
    """What it says and how it was made, in Markdown."""


#: By the names of their files, in the order in which they are shown. A new table needs an entry here for its files and its place on the
#: page, and a line in `markdown` if it is to be in report.md.
TABLES = {
    "winners": TableKind(
        "Winners",
        "The fastest solver to each target, and the fastest of the other kind.",
        lambda made: winners(made.by_problem, made.baseline),
        """\
The fastest solver of those that reached the target in every run, on all seeds of the problem; its time is the median over repetitions, and
the geometric mean over seeds. The fastest of each kind is chosen by the first repetition and measured by the others, where there are any.
`>=`: no rival ever got there, each was stopped by its time limit, and the shortest time that one of them had stands for theirs, rounded
down. In brackets the 95 % interval of the ratio, over seeds and repetitions, where both solvers were measured more than once.""",
    ),
    "speed_ups": TableKind(
        "Speed-ups",
        "Geometric means of the ratios of like problems.",
        lambda made: speed_ups(made.by_group, made.baseline),
        """\
Like problems together: how many times faster the fastest specialised solver is than the fastest generic one, as a geometric mean, below 1
where the generic one is faster (losses count those problems and seeds). Both are chosen anew on each of them. A failure, whatever its
reason, counts at the time that it had: `>=` where the generic solvers failed somewhere, `<=` where the specialised did, and no ratio where
both did, on different ones. In brackets the 95 % interval over problems and repetitions; p (Holm) is that of the paired test, corrected for
all rows.""",
    ),
    "comparisons": TableKind(
        "Comparisons",
        "Solver against solver over like problems, with intervals and paired tests.",
        lambda made: comparisons(made.by_group, made.baseline),
        """\
The reference's time over the solver's, as a geometric mean over instances: above 1 where the solver is faster, with its 95 % interval over
instances and repetitions. The fastest of a kind is chosen anew on every instance, which nobody can do beforehand. A failure counts at the
time that it had: `>=` where the reference failed, `<=` where the solver did, and no ratio where both did, on different instances. The test
is Wilcoxon's signed-rank test of the logarithms, or the sign test where there are failures; p (Holm) is corrected for all rows of the same
group and target.""",
    ),
    "means": TableKind(
        "Means",
        "Shifted geometric means of the time to each target over like problems, with failures entered in three ways.",
        lambda made: means(made.by_group),
        """\
Shifted geometric means of the time to each target over the instances of a group, each counted once with the median of its repetitions. The
shift is the largest power of ten that is not above the median of the fastest times. A failure, whatever its reason, counts at the time that
it had (`>=`: the true mean is no smaller), then at ten times its limit, then not at all: over the instances that all solvers of the group
solved, but for those that solved nothing. In brackets the 95 % interval of the first, over instances and repetitions: what other instances
of the kind might give. A solver that was not run on the whole group has no mean.""",
    ),
    "summary": TableKind(
        "Summary",
        "Verified accuracy and time to each target.",
        lambda made: summary(made.runs, made.samples, made.targets),
    ),
    "measures": TableKind(
        "Measures",
        "What problems measure of points: at each run's best point and at its last one.",
        lambda made: measures_table(made.runs, made.samples, made.measures),
        """\
What the problem measures of a point besides its objective, after its repair. *At the best point*: at the run's point of the lowest
objective, which is its solution, with the seconds and passes until it; *at the last point*: at its last sample. Medians over seeds and
repetitions, with the least and the greatest.""",
    ),
    "scaling": TableKind(
        "Scaling",
        "Exponents of the time to the last target in the size of the data.",
        lambda made: scaling_fits(scaling_points(made.runs, made.samples, made.targets[-1])),
        """\
Time to the last target as one size of the data grows and the others stay, by the median where all runs reached it. Exponents are least
squares on logarithms over the sizes that were reached, with their 95 % intervals; a cross on the dashed limit is a size that was not, and
does not enter, so that the exponent of a solver that fails on large sizes is too small. The size in the table is the largest that
was reached. Of three sizes an interval says little, wide or narrow.""",
    ),
    "workers": TableKind(
        "Workers",
        "Speed-ups by the number of workers, and a model of the time to the last target.",
        lambda made: workers(made.runs, made.samples, made.targets[-1]),
        """\
Time to the last target of problems that differ in the number of workers alone, by the median where all runs on that many reached it. The
speed-up is the time of the fewest over that of the most, in brackets its 95 % interval where both were measured more than once; the
efficiency is the speed-up by that of the workers. *Same numbers*: all these runs ended with the same objective and the same lower bound,
to the last bit. The model is shared / workers + fixed, by least squares over the numbers of workers. Two of them determine it: then it is
no measurement, and its errors are unknown. *Fixed* holds what does not shrink with workers: what one process computes. The model leaves
out what grows with them, the messages of one process to and from each, so that times on very many are longer than it says. It says
nothing where one of its terms is below zero.""",
    ),
    "communication": TableKind(
        "Communication",
        "What was sent between processes by runs on data in shards.",
        lambda made: communication(made.runs),
        """\
A round asks all shards once: it is one pass over the data, or half of one. Each worker is sent one request and sends one answer. Bytes are
those that this program packs, certificates included, without the messages that Dask adds and without encryption. Where a pass is fused,
the loss with its gradient or a bound, nothing that is as long as the examples travels. Medians over runs; *made again* is the number of
requests, in all runs, that were made once more because a worker was stuck or short of memory, or its answer was lost. *A pass*: all that
was sent and received by the solver's passes over the data.""",
    ),
    "times": TableKind(
        "Times",
        "Seconds by what they were spent on.",
        lambda made: times(made.runs),
        """\
Medians, in seconds, and the largest peak memory. Set-up and solve count for time to a gap; building, compiling and certifying do not. A
generic solver's model is built and compiled once; its set-up and solve are those of the last tolerance asked of it. Of a killed run it is
what it had spent.""",
    ),
    "tolerances": TableKind(
        "Tolerances asked",
        "What each tolerance asked of a generic solver gave.",
        lambda made: tolerances(made.runs, made.samples),
        """\
What was proven of the answers of the generic solvers, whatever they claim: the worst gap, the worst infeasibility of the point as
returned, the medians of the rest.""",
    ),
    "objectives": TableKind(
        "Objectives",
        "Proven enclosure of the optimum by every run.",
        lambda made: made.objectives,
        """\
Every run's enclosure of the optimum [lower bound, objective] beside the best one of all runs on the same instance. Enclosures that do
not meet cannot both be right.""",
    ),
    "enclosures": TableKind(
        "Enclosures",
        "Best proven enclosure of the optimum of every instance.",
        lambda made: enclosures(made.objectives),
    ),
    "time_to_gap": TableKind(
        "Time to each target",
        "Median time to each target, with the fastest and the slowest run, and passes.",
        lambda made: time_to_gap(made.times),
    ),
    "instances": TableKind(
        "Instances",
        "Time and passes to each target on every instance.",
        lambda made: by_instance(made.times),
    ),
    "statuses": TableKind(
        "Statuses",
        "How often each solver's runs ended how.",
        lambda made: statuses(made.runs, made.samples),
    ),
    "not_verified": TableKind(
        "Not verified",
        "Runs that are not verified, and why.",
        lambda made: not_verified(made.runs, made.places),
    ),
}


#: Tables that are only there where they have rows.
_OCCASIONAL = ("measures", "workers", "communication")


def report_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Return the tables of a report, by the names of their files; some only where they have rows, such as those of measures."""
    made = Made(results.runs, results.samples, results.measures, results.targets, results.view.baseline, results.places)
    tables = {name: kind.build(made) for name, kind in TABLES.items()}
    return {name: table for name, table in tables.items() if len(table) or name not in _OCCASIONAL}


def printed(table: pd.DataFrame, *drop: str) -> pd.DataFrame:
    """Return a table as text for people, without what its rows all share and without the columns titled `drop`."""
    shown = display(table)
    shared = [title for title in _CONSTANT if title in shown and len(set(shown[title]) - {BLANK}) <= 1]
    return shown.drop(columns=[title for title in (*shared, *_DATA_ONLY, *drop) if title in shown])


def without_skipped(summary: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows of solvers that were run, and a sentence, in Markdown, that names the others."""
    skipped = all_skipped(summary["status"])
    names = escaped(", ".join(dict.fromkeys(summary.loc[skipped, "solver"].map(str))))
    return summary[~skipped], f"Skipped, for they do not fit: {names}." if names else ""
