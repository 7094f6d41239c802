"""All figures of a report: a list of entries, each drawn from a tidy frame when somebody asks for it.

>>> for entry in gallery(results, tables):
...     entry.name, entry.title, entry.caption, entry.subject  # and entry.draw(), a matplotlib figure; entry.data, what it shows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from bench_mtl.report.figures import curves, group_lines, maps, seconds, style
from bench_mtl.report.render import format_target, to_csv
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import by_instance, run_times
from bench_mtl.report.tables.measures import quantities
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Kind = Literal["seconds", "speed_ups", "spread", "gap", "measure", "trade_off", "profile", "front", "scaling"]

#: What a figure can be written as, beside its data.
FORMATS = ("svg", "png", "pdf")

#: Solvers of a figure, of which more cannot be told apart: the others have a second figure.
MOST_SOLVERS = 8

#: Problems that have figures of what is measured, and groups of problems and sweeps that have figures, of each kind.
MOST_MEASURED, MOST_GROUPS = 12, 12

#: Instances that a profile and a front need, and those of a group within a family that has a profile of its own.
FEWEST_PROFILED, FEWEST_IN_FRONT, MANY = 5, 3, 8


@dataclass(frozen=True)
class Entry:
    """A figure that can be drawn."""

    name: str
    """Of its files, without their endings; no two figures of a report share one."""
    title: str
    caption: str
    """What is drawn, and how, in two sentences."""
    subject: str
    """The problem label, the group of like problems or the sweep that it is of; empty for all."""
    kind: Kind
    quantity: str
    """What is drawn of a problem, such as ``"gap"`` and ``"objective"``, by which figures of one problem are told apart; empty for others."""
    data: pd.DataFrame
    """What it shows, with all digits."""
    plot: Callable[[pd.DataFrame], Figure]

    def draw(self) -> Figure:
        """Draw it anew."""
        return self.plot(self.data)


def gallery(results: Results, tables: Mapping[str, pd.DataFrame]) -> list[Entry]:
    """Return the figures of a report in the order in which they are read. Nothing is drawn yet.

    The first is the dot plot of seconds; then come the map of speed-ups and the spread, what is drawn of each problem (its gap first, then
    objective, measures and sparsity against accuracy), profiles and fronts of groups of like problems, and scaling. A figure of more than
    `MOST_SOLVERS` solvers is followed by one of the others, whose name ends in ``-others``.

    Parameters
    ----------
    results : of one suite
    tables : of the report, by the names of their files
    """
    times = run_times(results.runs, results.samples, tuple(dict.fromkeys([*results.targets, *group_lines.levels(results.targets)])))
    found = [
        *_seconds(times, results.targets),
        *_ratios(results, times, tables["winners"]),
        *_problems(results.in_full),
        *_groups(results, by_instance(times)),
        *_sweeps(results, tables["scaling"]),
    ]
    taken: set[str] = set()
    for place, entry in enumerate(found):
        name = distinct(entry.name, taken)
        taken.add(name)
        found[place] = replace(entry, name=name)
    return found


def files(entry: Entry, formats: Collection[str] = (*FORMATS, "csv")) -> dict[str, bytes]:
    """Return the figure in each of `formats`, and its data where "csv" is one, by path inside the report: the same bytes for the same data."""
    wanted = [form for form in FORMATS if form in formats]
    drawn = style.files(entry.draw(), wanted) if wanted else {}
    data = {f"figures/{entry.name}.csv": to_csv(entry.data)} if "csv" in formats else {}
    return {f"figures/{entry.name}.{form}": drawn[form] for form in wanted} | data


def distinct(text: str, taken: Collection[str]) -> str:
    """Return a file name for `text` that differs from all that are taken."""
    base = "-".join("".join(letter if letter in "abcdefghijklmnopqrstuvwxyz0123456789." else " " for letter in text.lower()).split())
    base = base.strip("-.")[:80] or "problem"
    numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def _seconds(times: pd.DataFrame, targets: Sequence[float]) -> Iterator[Entry]:
    """Yield a dot plot a target; first that of the tightest to which anybody gets on half of the problems."""
    points = seconds.seconds_points(times[times["target"].isin(targets)])
    reached = points.dropna(subset="seconds").groupby("target")["problem"].nunique() >= 0.5 * points["problem"].nunique()
    for target in sorted(reached.index, key=lambda target: (not reached[target], target)):
        data, gap = points[points["target"] == target], format_target(target)
        title = f"Seconds to a proven gap of {gap}"
        yield Entry(f"seconds {gap}", title, seconds.caption(data), "", "seconds", gap, data, seconds.seconds)


def _ratios(results: Results, times: pd.DataFrame, winners: pd.DataFrame) -> Iterator[Entry]:
    """Yield the map of speed-ups and the spread of the ratios."""
    baseline, kinds = results.view.baseline, dict(zip(results.runs["solver_label"], results.runs["kind"], strict=True))
    points = maps.speed_up_points(winners)
    if points.loc[points["ratio"].notna(), "problem"].nunique() < 2:
        return
    compared = maps.who(points, kinds, baseline)
    title = f"Speed-ups: {compared}"
    yield Entry(
        "speed ups", title, maps.speed_up_caption(points, compared), "", "speed_ups", "", points, partial(maps.speed_ups, compared=compared)
    )
    ratios = maps.spread_points(times, points, groups(results.runs))
    if len(ratios.drop_duplicates(["group", "target"])) >= maps.FEWEST_ROWS:
        title = f"Spread of ratios: {compared}"
        yield Entry(
            "spread", title, maps.spread_caption(ratios, compared), "", "spread", "", ratios, partial(maps.spread, compared=compared)
        )


def _problems(results: Results) -> Iterator[Entry]:
    """Yield the figures of every problem that has a point."""
    points, targets = curves.course_points(results.runs, results.samples, results.measures), results.targets
    names = dict(zip(results.runs["solver_label"], results.runs["solver"], strict=True))
    measured = 0
    for problem, rows in points.groupby("problem", sort=False):
        if rows[curves.GAP].isna().all():
            continue
        first = curves.shown_first(rows, targets, names, MOST_SOLVERS)
        of_all = [curves.GAP]
        if len(results.measures) and measured < MOST_MEASURED:
            of_all += quantities(rows, results.measures)
            measured += 1
        for quantity in of_all:
            is_gap = quantity == curves.GAP
            title = f"{'Proven gap' if is_gap else quantity[:1].upper() + quantity[1:]} on {problem}"
            data = rows if is_gap else rows[rows[quantity].notna()]
            entry = Entry(
                str(problem) if is_gap else f"{quantity} {problem}",
                title,
                curves.caption(data, quantity),
                str(problem),
                "gap" if is_gap else "measure",
                "gap" if is_gap else quantity,
                data,
                partial(curves.courses, quantity=quantity, targets=targets),
            )
            yield from _parts(entry, first)
        axes = group_lines.trade_off_of(of_all)
        if axes is not None and len(data := group_lines.trade_off_points(rows, axes)):
            title, name = f"Sparsity against accuracy on {problem}", f"sparsity against accuracy {problem}"
            plot = partial(group_lines.trade_off, axes=axes)
            about = group_lines.trade_off_caption(axes), str(problem)
            yield from _parts(Entry(name, title, *about, "trade_off", "sparsity against accuracy", data, plot), first)


def _parts(entry: Entry, first: Sequence[str]) -> Iterator[Entry]:
    """Yield a figure as it is, or where it has more than `MOST_SOLVERS` solvers one of the first and one of the others."""
    solvers = list(entry.data["solver"].unique())
    if len(solvers) <= MOST_SOLVERS:
        yield entry
        return
    leading = [solver for solver in dict.fromkeys([*first, *solvers]) if solver in solvers][:MOST_SOLVERS]
    led = entry.data["solver"].isin(leading)
    rule = f"Of {len(solvers)} solvers it has {len(leading)}; the others are in a second figure."
    yield replace(entry, data=entry.data[led], caption=f"{entry.caption} {rule}")
    yield replace(entry, name=f"{entry.name} others", title=f"{entry.title}: the other solvers", data=entry.data[~led])


def _groups(results: Results, instances: pd.DataFrame) -> Iterator[Entry]:
    """Yield profiles and fronts of groups of like problems.

    Profiles are of a family as a whole, and of a group within it if it has `MANY` instances. Fronts are of the groups, whose times are of
    one size, and of a family of which no group has enough.
    """
    target, levels = results.targets[-1], group_lines.levels(results.targets)
    members = groups(results.runs)
    counts = {group: instances.loc[instances["problem"].isin(of), "instance"].nunique() for group, of in members.items()}
    drawn = {"profile": 0, "front": 0}
    for group, of in members.items():
        parts = [other for other, some in members.items() if set(some) < set(of)]
        is_part = any(set(of) < set(others) for others in members.values())
        own = instances[instances["problem"].isin(of)]
        if counts[group] >= (MANY if is_part else FEWEST_PROFILED) and drawn["profile"] < MOST_GROUPS:
            entry = _profile(own[own["target"] == target], group)
            drawn["profile"] += bool(entry)
            yield from entry
        if counts[group] >= FEWEST_IN_FRONT and not any(counts[part] >= FEWEST_IN_FRONT for part in parts) and drawn["front"] < MOST_GROUPS:
            entry = _front(own[own["target"].isin(levels)], group)
            drawn["front"] += bool(entry)
            yield from entry


def _profile(instances: pd.DataFrame, group: str) -> list[Entry]:
    common = group_lines.run_everywhere(instances)
    if len(common) < 2 or instances.loc[instances["solver"].isin(common), "seconds"].isna().all():
        return []
    points = group_lines.profile_points(instances)
    solved = points[points["panel"] == group_lines.PERFORMANCE].groupby("solver", sort=False)["y"].agg(["max", "first"])
    ranked = list(solved.sort_values(["max", "first"], ascending=False, kind="stable").index)
    title, about = f"Profiles of {group}", group_lines.profile_caption(points)
    entry = Entry(f"profiles {group}", title, about, group, "profile", "", points, partial(group_lines.profiles, group=group))
    return list(_parts(entry, _best_of_kinds(points, ranked)))


def _front(instances: pd.DataFrame, group: str) -> list[Entry]:
    points = group_lines.front_points(instances)
    if points["solver"].nunique() < 2:
        return []
    ranked = list(points.sort_values(["y", "x"], kind="stable")["solver"].unique())
    title, about = f"Time against precision of {group}", group_lines.front_caption(points)
    entry = Entry(f"front {group}", title, about, group, "front", "", points, partial(group_lines.fronts, group=group))
    return list(_parts(entry, _best_of_kinds(points, ranked)))


def _best_of_kinds(points: pd.DataFrame, ranked: Sequence[str]) -> list[str]:
    """Return the solvers in their order, but `auto` and the first of each kind before all others."""
    kinds = dict(zip(points["solver"], points["kind"], strict=True))
    first = {kinds[solver]: solver for solver in reversed(ranked)}
    return sorted(ranked, key=lambda solver: solver not in (seconds.AUTO, *first.values()))


def _sweeps(results: Results, fits: pd.DataFrame) -> Iterator[Entry]:
    """Yield the figure of every sweep over a size of the data."""
    if fits.empty:
        return
    points = group_lines.sweep_points(results.runs, results.samples, fits, results.targets[-1])
    for _, (sweep, own) in zip(range(MOST_GROUPS), points.groupby("sweep", sort=False), strict=False):
        ends = own[own["y"].notna()].groupby("solver", sort=False)[["x", "y"]].last()
        ranked = [*ends.sort_values(["x", "y"], ascending=[False, True], kind="stable").index, *own["solver"].unique()]
        entry = Entry(
            f"scaling {sweep}", f"Scaling of {sweep}", group_lines.scaling_caption(own), str(sweep), "scaling", "", own, group_lines.scaling
        )
        yield from _parts(entry, _best_of_kinds(own, list(dict.fromkeys(ranked))))


def drawings(results: Results, tables: Mapping[str, pd.DataFrame]) -> object:
    """Return the figures as lists of `Drawing` and of `Undrawn`, until the documents are made of entries."""
    from bench_mtl.report.figures import old_gallery

    return old_gallery.drawings(results, tables)
