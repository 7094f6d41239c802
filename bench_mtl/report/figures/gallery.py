"""All figures of a report: a list of entries, each drawn from a tidy frame when somebody asks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from bench_mtl.core.types import Status
from bench_mtl.report.columns import format_target, to_csv
from bench_mtl.report.figures import curves, group_lines, maps, seconds, style
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import instance_times, run_times
from bench_mtl.report.tables.measures import quantities
from bench_mtl.results.frames import AUTO
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Kind = Literal["seconds", "speed_ups", "spread", "gap", "measure", "trade_off", "profile", "front", "scaling"]

#: What a figure can be written as, beside its data.
FORMATS = ("svg", "png", "pdf")

#: Solvers of a figure, of which more cannot be told apart: the others have a second one. Problems that have figures of what is measured.
MOST_SOLVERS, MOST_MEASURED = 8, 12

#: Instances that a profile and a front need, and those of a group within a family that has a profile of its own; rows of a spread.
FEWEST_PROFILED, FEWEST_IN_FRONT, MANY, FEWEST_ROWS = 5, 3, 8, 3


@dataclass(frozen=True)
class Entry:
    """A figure that can be drawn."""

    kind: Kind
    name: str  # of its files, without their endings; no two figures of a report share one
    title: str
    caption: str  # what is drawn, and how, in two sentences
    subject: str  # the problem label, the group of like problems or the sweep that it is of; empty for all
    data: pd.DataFrame  # what it shows, with all digits
    plot: Callable[[pd.DataFrame], Figure]

    def draw(self) -> Figure:
        """Draw it anew."""
        return self.plot(self.data)


def gallery(results: Results, tables: Mapping[str, pd.DataFrame]) -> list[Entry]:
    """Return the figures of a suite's report in the order in which they are read, from its results and tables. Nothing is drawn yet.

    The first are dot plots of seconds; then come the map of speed-ups and the spread, what is drawn of each problem (its gap first, then
    objective, measures and sparsity against accuracy), profiles and fronts of groups of like problems, and scaling. A figure of more than
    `MOST_SOLVERS` solvers is followed by one of the others, whose name ends in ``-others``. Where there are several machines, each has
    figures of its own.
    """
    names: dict[str, None] = {}
    entries = []
    for machine, part in results.by_machine.items():
        winners = tables["winners"][tables["winners"]["machine"] == machine] if machine else tables["winners"]
        for entry in _of_machine(part, winners):
            name, caption = (f"{entry.name} {machine}", f"{entry.caption} On {machine}.") if machine else (entry.name, entry.caption)
            entries.append(replace(entry, name=distinct(name, names), caption=caption))
            names[entries[-1].name] = None
    return entries


def _of_machine(results: Results, winners: pd.DataFrame) -> Iterator[Entry]:
    """Yield the figures of the runs of one machine; no two names may be alike in the end."""
    times = run_times(results.runs, results.samples, tuple(dict.fromkeys([*results.targets, *group_lines.levels(results.targets)])))
    field = contests(times[times["target"].isin(results.targets)])
    yield from _seconds(field)
    yield from _ratios(results, field, winners)
    yield from _problems(results.in_full)
    yield from _groups(results, instance_times(times))
    yield from _sweeps(results)


def files(entry: Entry, formats: Collection[str] = (*FORMATS, "csv")) -> dict[str, bytes]:
    """Return the figure in each of `formats`, and its data where "csv" is one, by path inside the report; equal data give equal bytes."""
    wanted = [form for form in FORMATS if form in formats]
    contents = style.files(entry.draw(), wanted) if wanted else {}
    contents |= {"csv": to_csv(entry.data)} if "csv" in formats else {}
    return {f"figures/{entry.name}.{form}": content for form, content in contents.items()}


def distinct(text: str, taken: Collection[str]) -> str:
    """Return a file name for `text` that differs from all that are taken."""
    base = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:80] or "problem"
    numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def _seconds(field: pd.DataFrame) -> Iterator[Entry]:
    """Yield a dot plot a target; first that of the tightest to which anybody gets on half of the problems."""
    points = seconds.seconds_points(field)
    reached = points.dropna(subset="seconds").groupby("target")["problem"].nunique() >= 0.5 * points["problem"].nunique()
    for target in sorted(reached.index, key=lambda target: (not reached[target], target)):
        data, gap = points[points["target"] == target], format_target(target)
        cut = f"; the first {maps.MOST_ROWS} problems alone" if data["problem"].nunique() > maps.MOST_ROWS else ""
        caption = f"Seconds to a proven gap of {gap}: {seconds.described(data)}{cut}."
        yield Entry("seconds", f"seconds {gap}", f"Seconds to a proven gap of {gap}", caption, "", data, seconds.seconds)


def _ratios(results: Results, field: pd.DataFrame, winners: pd.DataFrame) -> Iterator[Entry]:
    """Yield the map of speed-ups and the spread of the ratios."""
    points = maps.speed_up_points(winners)
    shown, total = points.loc[maps.has_contest(points), "problem"].nunique(), points["problem"].nunique()
    if points.loc[points["ratio"].notna(), "problem"].nunique() < 2:
        return
    who = maps.compared(points, dict(zip(results.runs["solver_label"], results.runs["kind"], strict=True)), results.view.baseline)
    left_out = f"; {total - shown} of {total} problems are left out: no proof, or no rival run" if shown < total else ""
    cut = f"; the first {maps.MOST_ROWS} alone" if shown > maps.MOST_ROWS else ""
    caption = f"Ratios of the times of the {who}, with their names and seconds{left_out}{cut}."
    yield Entry("speed_ups", "speed ups", f"Speed-ups: {who}", caption, "", points, partial(maps.speed_ups, who=who))
    ratios = maps.spread_points(field, points, groups(results.runs))
    if len(ratios.drop_duplicates(["group", "target"])) >= FEWEST_ROWS:
        caption = (
            f"Ratios of single runs of the {who}, like problems together: a dot is two runs on one instance, a box the middle half. "
            f"A row has {maps.FEWEST} ratios or more."
        )
        yield Entry("spread", "spread", f"Spread of ratios: {who}", caption, "", ratios, partial(maps.spread, who=who))


def _problems(results: Results) -> Iterator[Entry]:
    """Yield the figures of every problem that has a point."""
    points, targets = curves.course_points(results.runs, results.samples, results.measures), results.targets
    names = dict(zip(results.runs["solver_label"], results.runs["solver"], strict=True))
    measured = 0
    for label, rows in points.groupby("problem", sort=False):
        problem = str(label)
        if rows[curves.GAP].isna().all():
            continue
        first = curves.shown_first(rows, targets, names, MOST_SOLVERS)
        has_measures = len(results.measures) > 0 and measured < MOST_MEASURED
        measured += has_measures
        drawn = [curves.GAP, *(quantities(rows, results.measures) if has_measures else [])]
        for quantity in drawn:
            plot = partial(curves.courses, quantity=quantity, targets=targets)
            if quantity == curves.GAP:
                entry = Entry("gap", problem, f"Proven gap on {problem}", _course_words(rows, "Proven gap"), problem, rows, plot)
            else:
                data, title = rows[rows[quantity].notna()], quantity[:1].upper() + quantity[1:]
                entry = Entry("measure", f"{quantity} {problem}", f"{title} on {problem}", _course_words(data, title), problem, data, plot)
            yield from _parts(entry, first)
        axes = group_lines.trade_off_of(drawn)
        if axes is not None and len(data := group_lines.trade_off_points(rows, axes)):
            name, plot = f"sparsity against accuracy {problem}", partial(group_lines.trade_off, axes=axes)
            caption = f"{axes[0].capitalize()} and {axes[1]} of the points of a solver's first run. The marker is where it ends."
            yield from _parts(Entry("trade_off", name, f"Sparsity against accuracy on {problem}", caption, problem, data, plot), first)


def _course_words(points: pd.DataFrame, what: str) -> str:
    """Return the caption of a figure of courses."""
    one_shot = points["asked_tolerance"].notna()
    how = {
        "lines in steps are iterative solvers": not one_shot.all(),
        "markers are the tolerances asked of one-shot solvers, each from zero seconds on": one_shot.any(),
        "of several runs the one in the middle is strong": points.groupby("solver")["run_id"].nunique().max() > 1,
        "a cross ends what did not reach the tightest target": (points["status"] != Status.VERIFIED).any(),
    }
    return f"{what} against time and what iterative solvers count. In it, {'; '.join(words for words, holds in how.items() if holds)}."


def _parts(entry: Entry, first: Sequence[str]) -> Iterator[Entry]:
    """Yield a figure as it is, or where it has more than `MOST_SOLVERS` solvers one of the first and one of the others."""
    solvers = set(entry.data["solver"])
    if len(solvers) <= MOST_SOLVERS:
        yield entry
        return
    leading = [solver for solver in dict.fromkeys([*first, *entry.data["solver"]]) if solver in solvers][:MOST_SOLVERS]
    led = entry.data["solver"].isin(leading)
    rest = f" {len(solvers) - MOST_SOLVERS} more solvers are in a second figure."
    yield replace(entry, data=entry.data[led], caption=entry.caption + rest)
    if entry.kind != "gap" or entry.data.loc[~led, curves.GAP].notna().any():
        yield replace(entry, name=f"{entry.name} others", title=f"{entry.title}: the other solvers", data=entry.data[~led])


def _groups(results: Results, instances: pd.DataFrame) -> Iterator[Entry]:
    """Yield profiles and fronts of groups of like problems.

    Profiles are of a family as a whole, and of a group within it if it has `MANY` instances. Fronts are of the groups, whose times are of
    one size, and of a family of which no group has enough.
    """
    target, members = results.targets[-1], groups(results.runs)
    counts = {group: instances.loc[instances["problem"].isin(of), "instance"].nunique() for group, of in members.items()}
    for group, of in members.items():
        parts = [other for other, some in members.items() if set(some) < set(of)]
        is_part = any(set(of) < set(others) for others in members.values())
        own = instances[instances["problem"].isin(of)]
        own = own[own["solver"].isin(group_lines.run_everywhere(own))]
        at_last = own[own["target"] == target]
        is_enough = counts[group] >= (MANY if is_part else FEWEST_PROFILED) and at_last["solver"].nunique() > 1
        if is_enough and at_last["seconds"].notna().any():
            points = group_lines.profile_points(at_last)
            caption = (
                f"Share of the instances on which a solver proves a gap of {format_target(target)} within a factor of the fastest time and "
                f"of that of {points['best'].iloc[0]}. Of solvers run on every instance, by medians of the repetitions that prove it."
            )
            plot = partial(group_lines.profiles, group=group)
            entry = Entry("profile", f"profiles {group}", f"Profiles of {group}", caption, group, points, plot)
            yield from _parts(entry, _best_of_kinds(points, y=False, x=True))
        points = group_lines.front_points(own[own["target"].isin(group_lines.levels(results.targets))])
        is_enough = counts[group] >= FEWEST_IN_FRONT and not any(counts[part] >= FEWEST_IN_FRONT for part in parts)
        if is_enough and points["solver"].nunique() > 1:
            half = f"Seconds within which a solver proves a gap on half of {counts[group]} instances."
            caption = f"{half} A gap that it proves in the time of a smaller one has no marker."
            plot = partial(group_lines.fronts, group=group)
            entry = Entry("front", f"front {group}", f"Time against precision of {group}", caption, group, points, plot)
            yield from _parts(entry, _best_of_kinds(points, y=True, x=True))


def _best_of_kinds(points: pd.DataFrame, **ascending: bool) -> list[str]:
    """Return the solvers of a tidy frame in the order of their last points, but `auto` and the best of each kind first."""
    ends = points[points["y"].notna()].groupby("solver", sort=False).tail(1)
    ranked = ends.sort_values([*ascending], ascending=[*ascending.values()], kind="stable")
    best = [AUTO, *ranked.drop_duplicates("kind")["solver"]]
    return sorted(dict.fromkeys([*ranked["solver"], *points["solver"]]), key=lambda solver: solver not in best)


def _sweeps(results: Results) -> Iterator[Entry]:
    """Yield the figure of every sweep over a size of the data."""
    points = group_lines.sweep_points(results.runs, results.samples, results.targets[-1])
    caption = (
        "Median seconds by the size of the data, where all runs of a size reach it. A cross: not all did, and the longest had so long."
    )
    for sweep, own in points.groupby("sweep", sort=False):
        entry = Entry("scaling", f"scaling {sweep}", f"Scaling of {sweep}", caption, str(sweep), own, group_lines.scaling)
        yield from _parts(entry, _best_of_kinds(own, x=False, y=True))
