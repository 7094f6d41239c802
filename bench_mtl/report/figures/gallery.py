"""All figures of a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench_mtl.report.columns import format_target
from bench_mtl.report.figures import convergence, pareto, profiles, scaling, speed_ups, spread, style, trade_offs, trajectories
from bench_mtl.report.figures import pattern_images as patterns
from bench_mtl.report.figures.chart import MOST_CURVES, Chart, first_of_each_kind
from bench_mtl.report.figures.draw import draw
from bench_mtl.report.figures.drawing import Drawing, Undrawn, distinct_stems
from bench_mtl.report.tables.groups import groups
from bench_mtl.report.tables.instances import instance_times, run_times
from bench_mtl.report.tables.measures import quantities
from bench_mtl.report.tables.measures import trajectories as trajectory_points
from bench_mtl.report.tables.scaling import scaling_points
from bench_mtl.results.loading import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from bench_mtl.results import Pattern

#: A group of like problems within a family has profiles of its own if it has this many instances.
MANY = 8
#: Figures of problems, of each kind, of which nobody reads more.
MOST_PROBLEMS = 12
#: And of groups of problems, and of sweeps.
MOST_GROUPS = 12

_PROVING = "those that prove most, soonest, after the best of each kind"


def drawings(results: Results, tables: Mapping[str, pd.DataFrame]) -> tuple[list[Drawing], list[Undrawn]]:
    """Return the figures of a report in the order of their subjects, and what could not be drawn.

    Parameters
    ----------
    results : of one suite
    tables : of the report, by the names of their files

    Returns
    -------
    drawings : list of Drawing
        Nothing is drawn yet.
    undrawn : list of Undrawn
        A sentence for each figure that a reader may look for and that there is not.
    """
    styles, in_full = style.line_styles(dict(zip(results.runs["solver_label"], results.runs["kind"], strict=True))), results.in_full
    made = [
        *_convergence(in_full, styles),
        *_of_groups(results, styles),
        *_speed_ups(tables["winners"], results.view.baseline),
        *_spread(results, tables["winners"]),
        *_scaling(results, tables["scaling"], styles),
        *_patterns(in_full, tables["winners"]),
        *_measures(in_full, styles),
    ]
    found = [one for one in made if isinstance(one, Drawing)]
    stems = distinct_stems(drawing.stem for drawing in found)
    return [replace(drawing, stem=stem) for drawing, stem in zip(found, stems, strict=True)], [
        one for one in made if isinstance(one, Undrawn)
    ]


def _convergence(results: Results, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """Yield the figure of every problem that has a certified point."""
    by_problem = _curves_by_problem(results)
    drawn = 0
    for label, runs in results.runs.groupby("problem_label", sort=False):
        problem = str(label)
        if problem not in by_problem:
            sentence = "No run has a proven point on this problem, so there is no figure: the reasons are listed below."
            yield Undrawn("convergence", problem, sentence)
            continue
        drawn += 1
        if drawn > MOST_PROBLEMS:
            sentence = f"The first {MOST_PROBLEMS} problems alone have figures on paper; the page report.html draws this one too."
            yield Undrawn("convergence", problem, sentence)
            continue
        of_problem = by_problem[problem]
        whole = Drawing(
            problem,
            f"Convergence on {problem}",
            "convergence",
            problem,
            convergence.caption(of_problem, runs, results.targets),
            of_problem,
            partial(convergence.convergence, of_problem, runs, results.targets, styles),
        )
        leading = convergence.leading(of_problem, runs, results.targets)
        yield from _parts(whole, leading, [*of_problem["solver"].unique()], list(runs["solver_label"]), _PROVING)


def _curves_by_problem(results: Results) -> dict[str, pd.DataFrame]:
    """Return the points of the curves of convergence of every problem that has any."""
    points = convergence.curves(results.runs, results.samples)
    return {str(problem): rows for problem, rows in points.groupby("problem", sort=False, observed=True)}


def _parts(whole: Drawing, leading: Sequence[str], drawn: Sequence[str], named: Sequence[str], rule: str) -> Iterator[Drawing]:
    """Yield a figure as it is, or where it has more than `MOST_CURVES` solvers one of those that lead and one of the others.

    Parameters
    ----------
    whole : the figure of all; the function that draws it takes solvers and a title besides
    leading : solvers in their order, of which the first ones are taken
    drawn : those that have a curve
    named : those that the figure names
    rule : how those that lead are chosen, in words
    """
    if len(drawn) <= MOST_CURVES:
        yield whole
        return
    first = list(leading[:MOST_CURVES])
    rest = list(dict.fromkeys(solver for solver in (*drawn, *named) if solver not in first))
    of_first = whole.data["solver"].isin(first)
    sentence = f"Of {len(drawn)} solvers the printed figure has {len(first)}: {rule}; the others are in a second figure."
    yield replace(whole, caption=f"{whole.caption} {sentence}", data=whole.data[of_first], draw=partial(whole.draw, first))
    yield replace(
        whole,
        stem=f"{whole.stem} others",
        title=f"{whole.title}: the other solvers",
        caption="The other solvers, drawn as in the figure before and on the same axes.",
        data=whole.data[~of_first],
        draw=partial(whole.draw, rest, f"{whole.about}: the other solvers"),
        chart=None,
    )


def _draw_chart(
    chart: Chart, styles: Mapping[str, style.LineStyle], solvers: Collection[str] | None = None, title: str | None = None
) -> Figure:
    """Draw a chart, or some solvers of it alone."""
    return draw(chart if solvers is None else chart.only(solvers, title), styles)


def _of_groups(results: Results, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """Profiles and fronts of groups of like problems.

    Profiles are of the families as a whole, and of a group within a family if it has many instances by itself. Fronts are of the groups,
    whose times are of one size, and of a family of which no group has several instances. Of either kind there are `MOST_GROUPS`.
    """
    runs, target = results.runs, results.targets[-1]
    levels = pareto.levels(results.targets)
    times = instance_times(runs, results.samples, tuple(dict.fromkeys([*levels, target])))
    members = groups(runs)
    counts = {group: times.loc[times["problem"].isin(labels), "instance"].nunique() for group, labels in members.items()}
    whole = {group for group, labels in members.items() if not any(set(labels) < set(others) for others in members.values())}
    profiled, fronted, few, alone = [], [], [], []
    for group, labels in members.items():
        within = [other for other, others in members.items() if set(others) < set(labels)] if group in whole else []
        if counts[group] >= (profiles.FEWEST if group in whole else MANY):
            profiled.append(group)
        elif group in whole:
            few.append(group)
        if counts[group] >= pareto.FEWEST and not any(counts[other] >= pareto.FEWEST for other in within):
            fronted.append(group)
        elif group in whole and not within:
            alone.append(group)

    def of(group: str, *asked: float) -> pd.DataFrame:
        return times[times["problem"].isin(members[group]) & times["target"].isin(asked)]

    kinds = convergence.kinds_of(runs)
    shares, more_shares = _first(profiled, whole, lambda group: _profiles(of(group, target), group, target, styles, kinds))
    fronts, more_fronts = _first(fronted, whole, lambda group: _pareto(of(group, *levels), group, styles, kinds))
    yield from (one for group in members for made in (shares, fronts) for one in made.get(group, ()))
    which = f"is drawn of {MOST_GROUPS} groups of problems, families as a whole before others,"
    if more_shares:
        yield Undrawn("profiles", "", f"A profile {which} and not of {more_shares} more; the tables have all.")
    if more_fronts:
        yield Undrawn("pareto", "", f"Time against precision {which} and not of {more_fronts} more; the tables have all.")
    if few:
        names = "; ".join(few)
        yield Undrawn("profiles", names, f"Profiles are drawn of {profiles.FEWEST} instances or more, so not of {names}.")
    if alone:
        names = "; ".join(alone)
        yield Undrawn("pareto", names, f"Time against precision is drawn of {pareto.FEWEST} instances or more, so not of {names}.")


def _first(
    groups: Sequence[str], whole: Collection[str], make: Callable[[str], Iterator[Drawing | Undrawn]]
) -> tuple[dict[str, list[Drawing | Undrawn]], int]:
    """Figures of the first groups that can be drawn, those that are a whole family before the others, and how many groups are left."""
    made: dict[str, list[Drawing | Undrawn]] = {}
    for group in sorted(groups, key=lambda group: group not in whole):
        if sum(isinstance(first, Drawing) for first, *_ in made.values()) == MOST_GROUPS:
            break
        made[group] = list(make(group))
    return made, len(groups) - len(made)


def _profiles(
    instances: pd.DataFrame, group: str, target: float, styles: Mapping[str, style.LineStyle], kinds: Mapping[str, str]
) -> Iterator[Drawing | Undrawn]:
    common = instances[instances["solver"].isin(profiles.common_solvers(instances)[0])]
    if common.empty:
        yield Undrawn("profiles", group, f"No solver was run on every instance of {group}, so there are no profiles.")
        return
    if common["seconds"].isna().all():
        yield Undrawn("profiles", group, f"No solver proves a gap of {format_target(target)} on {group}, so there are no profiles.")
        return
    points = profiles.profile_points(instances, target)
    chart, title = profiles.chart(points, group), f"Profiles of {group}"
    figure = partial(_draw_chart, chart, styles)
    whole = Drawing(f"profiles {group}", title, "profiles", group, profiles.caption(points), points, figure, chart)
    leading = first_of_each_kind(profiles.ranked(points), kinds)
    yield from _parts(whole, leading, chart.solvers, (), "the best of each kind, and those that solve most")


def _pareto(
    instances: pd.DataFrame, group: str, styles: Mapping[str, style.LineStyle], kinds: Mapping[str, str]
) -> Iterator[Drawing | Undrawn]:
    common, _ = profiles.common_solvers(instances)
    points = pareto.pareto_points(instances[instances["solver"].isin(common)])
    if points["seconds"].isna().all():
        gap = format_target(instances["target"].max())
        yield Undrawn("pareto", group, f"No solver proves a gap of {gap} on half of {group}, so there is no front of time and precision.")
        return
    chart, title = pareto.chart(points, group), f"Time against precision of {group}"
    figure = partial(_draw_chart, chart, styles)
    whole = Drawing(f"pareto {group}", title, "pareto", group, pareto.caption(points), points, figure, chart)
    yield from _parts(whole, first_of_each_kind(pareto.ranked(points), kinds), chart.solvers, (), _PROVING)


def _speed_ups(winners: pd.DataFrame, baseline: str | None) -> Iterator[Drawing | Undrawn]:
    """Yield the heat map of all problems."""
    points = speed_ups.speed_up_points(winners)
    if points["speed_up"].isna().all():
        yield Undrawn("speed_ups", "", "No problem has a time of a specialised and of a generic solver, so there is no map of speed-ups.")
        return
    caption, heat_map = speed_ups.caption(points, baseline), partial(speed_ups.speed_ups, points, baseline)
    yield Drawing("speed ups", "Speed-ups of specialised solvers over generic ones", "speed_ups", "", caption, points, heat_map)


def _spread(results: Results, winners: pd.DataFrame) -> Iterator[Drawing | Undrawn]:
    """Yield the figure of all ratios of single runs."""
    times = run_times(results.runs, results.samples, results.targets)
    points, baseline = spread.spread_points(times, winners, groups(results.runs)), results.view.baseline
    if not points["drawn"].any():
        sentence = f"No group of like problems has {spread.FEWEST} ratios of single runs to one target, so their spread is not drawn."
        yield Undrawn("spread", "", sentence)
        return
    caption, figure = spread.caption(points, baseline), partial(spread.spread, points, baseline)
    yield Drawing("spread", "Spread of the ratios of single runs", "spread", "", caption, points, figure)


def _scaling(results: Results, fits: pd.DataFrame, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """Yield the figure of every sweep, of at most `MOST_GROUPS`."""
    if fits.empty:
        return
    points = scaling_points(results.runs, results.samples, results.targets[-1])
    kinds = convergence.kinds_of(results.runs)
    sweeps = list(fits.groupby("sweep", sort=False))
    for sweep, of_fits in sweeps[:MOST_GROUPS]:
        of_sweep = points[points["sweep"] == sweep]
        chart, caption, title = scaling.chart(of_sweep, of_fits), scaling.caption(of_sweep, of_fits), f"Scaling of {sweep}"
        figure, leading = partial(_draw_chart, chart, styles), first_of_each_kind(scaling.ranked(chart), kinds)
        whole = Drawing(f"scaling {sweep}", title, "scaling", str(sweep), caption, of_sweep, figure, chart)
        yield from _parts(whole, leading, chart.solvers, (), "the best of each kind, and those that reach most sizes, soonest")
    if len(sweeps) > MOST_GROUPS:
        more = len(sweeps) - MOST_GROUPS
        yield Undrawn("scaling", "", f"Scaling is drawn of the first {MOST_GROUPS} sweeps and not of {more} more; the table has all.")


def _measures(results: Results, styles: Mapping[str, style.LineStyle]) -> Iterator[Drawing | Undrawn]:
    """Yield, where anything is measured, the objective and every measure along the runs of each problem, and sparsity against accuracy."""
    if results.measures.empty:
        return
    points, curves = trajectory_points(results.runs, results.samples, results.measures), _curves_by_problem(results)
    by_problem = {str(problem): rows for problem, rows in points.groupby("problem", sort=False)}
    for place, (problem, rows) in enumerate(by_problem.items()):
        if place == MOST_PROBLEMS:
            sentence = f"Objectives and measures are on paper of the first {MOST_PROBLEMS} problems alone; report.html has those of all."
            yield Undrawn("trajectories", "", sentence)
            return
        runs = results.runs[results.runs["problem_label"] == problem]
        known = quantities(rows, results.measures)
        leading = convergence.leading(curves[problem], runs, results.targets) if problem in curves else []
        for quantity in known:
            caption, draw_figure = trajectories.caption(rows, runs, quantity), partial(trajectories.trajectory, rows, quantity, styles)
            title, data = f"{quantity[:1].upper()}{quantity[1:]} on {problem}", _data_of(rows, quantity)
            whole = Drawing(f"{quantity} {problem}", title, "trajectories", problem, caption, data, draw_figure)
            there = [str(solver) for solver in data["solver"].unique()]
            yield from _parts(whole, _there(leading, there), there, (), _PROVING)
        axes = trade_offs.axes_of(known)
        if axes is not None:
            chart, caption = trade_offs.chart(rows, axes), trade_offs.caption(rows, axes)
            title, stem, data = f"Sparsity against accuracy on {problem}", f"sparsity against accuracy {problem}", _data_of(rows, *axes)
            whole = Drawing(stem, title, "trade_offs", problem, caption, data, partial(_draw_chart, chart, styles), chart)
            yield from _parts(whole, _there(leading, chart.solvers), chart.solvers, (), _PROVING)


def _there(leading: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Return the solvers of a figure, those that lead first."""
    return [*(solver for solver in leading if solver in drawn), *(solver for solver in drawn if solver not in leading)]


def _data_of(points: pd.DataFrame, *of: str) -> pd.DataFrame:
    """Return the rows of `trajectories` that have these quantities, with what they are drawn against."""
    about = ["problem", "solver", "run_id", "seed", "repetition", "status", "limit_seconds", "asked_tolerance", "number", "iteration"]
    about += ["seconds", "passes", "examples"]
    return points.loc[points[list(of)].notna().all(axis=1), [*about, *of]]


def _patterns(results: Results, winners: pd.DataFrame) -> Iterator[Drawing | Undrawn]:
    """Yield the pictures of every problem of which solutions were kept."""
    by_run: dict[int, list[Pattern]] = {}
    for pattern in results.patterns:
        by_run.setdefault(pattern.run_id, []).append(pattern)
    if not by_run:
        yield Undrawn("patterns", "", "These results hold no patterns of solutions, so there are no pictures of them.")
        return
    drawn = 0
    for label, runs in results.runs.groupby("problem_label", sort=False):
        problem = str(label)
        won = winners[winners["problem"] == problem].tail(1)
        leading = [str(name) for column in ("winner", "other") for name in won[column].dropna()]
        shown = patterns.solutions(runs, by_run, leading)
        drawn += bool(shown)
        if not shown:
            yield Undrawn("patterns", problem, "No verified run on this problem has a pattern of its solution.")
        elif drawn > MOST_PROBLEMS:
            yield Undrawn("patterns", problem, f"The solutions of the first {MOST_PROBLEMS} problems alone are pictured.")
        else:
            pictures = partial(patterns.patterns, shown, problem)
            title, points = f"Solutions of {problem}", patterns.pattern_points(shown)
            yield Drawing(f"patterns {problem}", title, "patterns", problem, patterns.caption(shown), points, pictures)
