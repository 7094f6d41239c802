"""The registry of the tables of a report: how each is called, made, shown and explained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bench_mtl.engine.proofs import format_gap
from bench_mtl.report.columns import PROBLEM, SOLVER, Column, count_of, display, for_files, format_lower, format_upper, yes_of
from bench_mtl.report.tables import groups, instances, measures, scaling, summary, winners
from bench_mtl.report.tables.contests import contests
from bench_mtl.results.enclosures import enclosures, objectives
from bench_mtl.results.frames import counting
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd

    from bench_mtl.core.types import Place

#: Of a table in print; its CSV and Parquet files have them all.
MOST_ROWS = 500


@dataclass(frozen=True)
class Source:
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
        return instances.run_times(self.runs, self.samples, self.targets)

    @cached_property
    def by_problem(self) -> pd.DataFrame:
        """The contests of every problem."""
        return contests(self.times)

    @cached_property
    def by_group(self) -> pd.DataFrame:
        """The contests of all groups of like problems."""
        return contests(self.times, groups.groups(self.runs))

    @cached_property
    def objectives(self) -> pd.DataFrame:
        return objectives(self.runs, self.samples)


@dataclass(frozen=True)
class TableKind:
    """A table that reports have."""

    title: str
    explanation: str  # what it says and how it is computed, in Markdown
    build: Callable[[Source], pd.DataFrame]
    columns: Sequence[Column]
    is_occasional: bool = False  # whether it is only there where it has rows
    is_of_all_machines: bool = False  # whether it is of the runs of all machines together: bounds hold wherever they were proven


_MACHINE = Column("machine")
_BOUNDS = [Column("primal", "Objective", format_upper), Column("dual", "Lower bound", format_lower)]
_SEED = count_of("seed", is_dull_alike=True)
_AGREES = yes_of("agrees")

_OBJECTIVES = [
    PROBLEM, *for_files("instance"), _SEED, count_of("repetition", is_dull_alike=True), SOLVER, *_BOUNDS,
    Column("relative_gap", form=format_gap), Column("best_dual", "Best lower bound", format_lower),
    Column("best_primal", "Best objective", format_upper), _AGREES,
]  # fmt: skip

_ENCLOSURES = [
    PROBLEM, *for_files("instance"), _SEED, _BOUNDS[1], Column("dual_solver", "Lower bound by"), _BOUNDS[0],
    Column("primal_solver", "Objective by"), Column("relative_gap", form=format_gap), _AGREES, Column("disagreeing"),
]  # fmt: skip

#: By the names of their files, in the order in which they are shown. A new table needs an entry here for its files and its place on the
#: page, and a place in `suite_report` if it is to be in report.md.
TABLES = {
    "winners": TableKind(
        "Winners",
        """\
The fastest solver of those that reached the target on all seeds of the problem. Its time is the median over the repetitions that did,
`(3 of 4)` where not all, and the geometric mean over seeds. The first of these chooses the fastest of each kind, and the others measure
it. Where no rival reached it the table says how they ended, and there is no ratio. In brackets: the 95 % interval of the ratio, over seeds
and repetitions.""",
        lambda source: winners.winners(source.by_problem, source.baseline),
        winners.COLUMNS,
    ),
    "speed_ups": TableKind(
        "Speed-ups",
        """\
How many times faster the fastest specialised solver is than the fastest generic one over like problems, as a geometric mean. Both are
chosen anew on each problem and seed. The ratio is over those on which both reached it, beside it on how many the specialised (the solver)
or the generic one (the reference) alone did. Losses count those on which the generic one is faster, or alone. In brackets: the 95 %
interval over problems and repetitions. p (Holm) is that of the paired test, corrected for all rows.""",
        lambda source: groups.speed_ups(source.by_group, source.baseline),
        groups.SPEED_UPS,
    ),
    "comparisons": TableKind(
        "Comparisons",
        """\
The reference's time over the solver's, as a geometric mean over instances with its 95 % interval: above 1 the solver is faster. The fastest
of a kind is chosen anew on every instance, which nobody can do beforehand. The ratio is over the instances on which both reached it; who
reached it alone has won. The test is Wilcoxon's signed-rank test of the logarithms, or the sign test where there are failures; p (Holm) is
corrected for all rows of the same group and target.""",
        lambda source: groups.comparisons(source.by_group, source.baseline),
        groups.COMPARISONS,
    ),
    "means": TableKind(
        "Means",
        """\
Shifted geometric means of the time to each target over the instances of a group that all solvers solved, but for solvers that solved
nothing or were not run on the whole group, which have no mean. The shift is the largest power of ten that is not above the median of the
fastest times. In brackets: the 95 % interval.""",
        lambda source: groups.means(source.by_group),
        groups.MEANS,
    ),
    "summary": TableKind(
        "Summary",
        "Verified accuracy and time to each target.",
        lambda source: summary.summary(source.runs, source.samples, source.targets),
        summary.SUMMARY,
    ),
    "measures": TableKind(
        "Measures",
        """\
What the problem measures of a point besides its objective, after its repair: *at the best point*, that of the lowest objective, with the
seconds and passes until it, and *at the last point*. Medians over seeds and repetitions, with the least and the greatest.""",
        lambda source: measures.measures_table(source.runs, source.samples, source.measures),
        measures.COLUMNS,
        is_occasional=True,
    ),
    "scaling": TableKind(
        "Scaling",
        """\
Exponents of the time to the last target in one size of the data, by least squares on logarithms over the sizes that all runs reached, with
95 % intervals; of three sizes they say little. The exponent of a solver that fails on large sizes is too small. *Size* is the largest that
was reached.""",
        lambda source: scaling.scaling_fits(scaling.scaling_points(source.runs, source.samples, source.targets[-1])),
        scaling.EXPONENTS,
    ),
    "workers": TableKind(
        "Workers",
        """\
Time to the last target of problems that differ in the number of workers alone, by the median where all runs on that many reached it. The
speed-up is the time of the fewest over that of the most, with its 95 % interval where both were measured more than once; the efficiency is
the speed-up by that of the workers. *Same numbers*: all these runs ended with the same objective and lower bound, to the last bit. The
model is shared / workers + fixed, by least squares over the numbers of workers; two of them determine it, and then it is no measurement.
It leaves out messages, which grow with workers, and says nothing where one of its terms is below zero.""",
        lambda source: scaling.workers(source.runs, source.samples, source.targets[-1]),
        scaling.SPEED_UPS_BY_WORKERS,
        is_occasional=True,
    ),
    "communication": TableKind(
        "Communication",
        """\
What was sent between processes by runs on data in shards, as medians over runs. A round asks all shards once: it is one pass over the data,
or half of one. Each worker is sent one request and sends one answer. Bytes are those that this program packs, certificates included,
without what Dask adds. *Made again*: requests, in all runs, that were made once more. *A pass*: all that passes over the data sent and
received.""",
        lambda source: scaling.communication(source.runs),
        scaling.SENT,
        is_occasional=True,
    ),
    "times": TableKind(
        "Times",
        """\
Median seconds, and the largest peak memory. Set-up and solve count for time to a gap; building, compiling and certifying do not. A generic
solver's set-up and solve are those of the last tolerance. Of a killed run it is what it had spent. Runs that were stopped at a looser
target than the tightest are left out.""",
        lambda source: summary.times(source.runs[counting(source.runs, min(source.targets))]),
        summary.TIMES,
    ),
    "tolerances": TableKind(
        "Tolerances asked",
        """\
What was proven of the answers of the generic solvers, whatever they claim: the worst gap, the worst infeasibility of the point as
returned, the medians of the rest.""",
        lambda source: summary.tolerances(source.runs, source.samples),
        summary.TOLERANCES,
    ),
    "objectives": TableKind(
        "Objectives",
        """\
Every run's enclosure of the optimum [lower bound, objective] beside the best one of all runs on the same instance. Enclosures that do
not meet cannot both be right.""",
        lambda source: source.objectives,
        _OBJECTIVES,
        is_of_all_machines=True,
    ),
    "enclosures": TableKind(
        "Enclosures",
        "Best proven enclosure of the optimum of every instance.",
        lambda source: enclosures(source.objectives),
        _ENCLOSURES,
        is_of_all_machines=True,
    ),
    "time_to_gap": TableKind(
        "Time to each target",
        "Median time to each target of the runs that reached the target, with the fastest and the slowest, and passes.",
        lambda source: instances.time_to_gap(source.times),
        instances.TIME_TO_GAP,
    ),
    "instances": TableKind(
        "Instances",
        "Time and passes to each target on every instance.",
        lambda source: instances.instance_times(source.times),
        instances.BY_INSTANCE,
    ),
    "statuses": TableKind(
        "Statuses", "How often each solver's runs ended how.", lambda source: summary.statuses(source.runs), summary.STATUSES
    ),
    "not_verified": TableKind(
        "Not verified",
        "Runs that are not verified, and why.",
        lambda source: summary.not_verified(source.runs, source.places),
        summary.NOT_VERIFIED,
    ),
}


def report_tables(results: Results, names: Collection[str] = ()) -> dict[str, pd.DataFrame]:
    """Return all tables of a report, or these, by the names of their files; some only where they have rows, such as those of measures.

    Times are compared on one machine alone: where there are several, the rows of each are together, and a column names it.
    """
    whole = Source(results.runs, results.samples, results.measures, results.targets, results.view.baseline, results.places)
    of_machines = {machine: replace(whole, runs=part.runs) for machine, part in results.by_machine.items()}
    tables = {}
    for name in names or TABLES:
        kind = TABLES[name]
        parts = {machine: kind.build(source) for machine, source in ({"": whole} if kind.is_of_all_machines else of_machines).items()}
        table = _with_machines(parts)
        if len(table) or not kind.is_occasional:
            tables[name] = table
    return tables


def _with_machines(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of several machines, by their names, as one; that of a machine alone, which needs no name, as it is."""
    import pandas as pd

    for machine, table in tables.items():
        if machine:
            table.insert(1, "machine", machine)
    return pd.concat(tables.values(), ignore_index=True) if len(tables) > 1 else next(iter(tables.values()))


def printed(name: str, table: pd.DataFrame, *left_out: str) -> pd.DataFrame:
    """Return a table as text for people, without the columns `left_out` of its frame."""
    return display(table, [column for column in with_machine(TABLES[name].columns) if column.name not in left_out])


def with_machine(columns: Sequence[Column]) -> list[Column]:
    """Return columns with the machine, which tables have where there are several, after the first."""
    return [columns[0], _MACHINE, *columns[1:]]
