"""Who is fastest: by family of problems, machine and target, instance by instance, over the results of several suites.

A contest is an instance, not a labelled problem of several seeds. In each one the fastest solver of every kind is chosen by its first run
and measured by the others, as in a report. A solver that was not run on an instance is not beaten there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.publish.paths import numbered, slug
from bench_mtl.publish.sources import Source, latest
from bench_mtl.report.tables.contests import later
from bench_mtl.report.tables.instances import run_times
from bench_mtl.report.tables.winners import ABOUT_EQUAL
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED, UNKNOWN
from bench_mtl.results.loading import machine_name
from bench_mtl.stats import shifted_geometric_mean
from bench_mtl.stats.profiles import RESOLUTION

if TYPE_CHECKING:
    import pandas as pd

KINDS = (SPECIALISED, GENERIC, PEER)

_FASTEST = ["fastest_alone_on", "among_the_fastest_on", "fastest_of_its_kind_on", "among_the_fastest_of_its_kind_on"]

_BOARD = ["family", "machine", "target"]
_CONTEST = [*_BOARD, "suite", "problem", "instance"]


class Board(NamedTuple):
    """All contests of one family to one target on one machine.

    Its entries are a row per contest and solver that took part: suite (`slug`), problem (label), instance (key), seed, solver, kind, runs,
    reached (how many of them proved the gap), first and seconds (of these the first, and the median of the later ones where there are any;
    missing where there is none), contest (a number), is_contested (both sides, specialised and one-shot, took part), is_best (the fastest
    of its kind), is_winner (the fastest of these), best (seconds of the winner), is_level and is_level_in_kind (another that is about as
    fast as the winner, as the best of its kind), is_rival (is_level, and of the other side).
    """

    family: str
    machine: str  # its name; empty where all results are of one
    target: float
    path: str  # of the page of the family
    entries: pd.DataFrame
    repeated: int  # measurements that were left out, since another suite ran more solvers on the same instance
    contradicted: int  # instances that were left out, since what is proven of their optimum cannot all be true


def counts(board: Board) -> dict[str, int]:
    """Return on how many instances who is fastest, by headings; the first is their number."""
    contests = board.entries.groupby("contest")[["is_contested", "is_winner", "is_rival"]].any()
    winners = board.entries[board.entries["is_winner"]].set_index("contest")["kind"].reindex(contests.index)
    is_won = contests["is_contested"] & contests["is_winner"]
    return {
        "Instances": len(contests),
        **{f"A {kind} solver fastest on": int((is_won & ~contests["is_rival"] & (winners == kind)).sum()) for kind in KINDS},
        "About equal on": int((is_won & contests["is_rival"]).sum()),
        "Nobody reaches the target on": int((contests["is_contested"] & ~contests["is_winner"]).sum()),
        "One side alone on": int((~contests["is_contested"]).sum()),
    }


def standings(board: Board) -> pd.DataFrame:
    """Return a row per solver, those first that fail on the smallest share of contests, then those that are fastest most often.

    Its columns: solver, kind, run_on, gets_there_on, fails_on (contests), fastest_alone_on (contested ones in which no other is about as
    fast), among_the_fastest_on (in which it is one of several), fastest_of_its_kind_on (alone, among several of its kind), and
    among_the_fastest_of_its_kind_on, mean_ratio (geometric, with a shift of 1, of its seconds over the winners', where it took part in all
    contests and reached the target wherever another solver did).
    """
    entries = board.entries.assign(gets_there_on=board.entries["seconds"].notna(), ratio=board.entries["seconds"] / board.entries["best"])
    several_of_kind = entries.groupby(["contest", "kind"])["solver"].transform("size") > 1
    for (alone, among), by, counted, best, level in (
        (_FASTEST[:2], ["contest"], entries["is_contested"], "is_winner", "is_level"),
        (_FASTEST[2:], ["contest", "kind"], several_of_kind, "is_best", "is_level_in_kind"),
    ):
        is_placed, is_shared = counted & (entries[best] | entries[level]), entries.groupby(by)[level].transform("any")
        entries[alone], entries[among] = is_placed & ~is_shared, is_placed & is_shared
    of_solver = entries.groupby("solver", sort=False)
    table = of_solver["kind"].first().to_frame().assign(run_on=of_solver.size(), gets_there_on=of_solver["gets_there_on"].sum())
    table["fails_on"] = table["run_on"] - table["gets_there_on"]
    table = table.join(of_solver[_FASTEST].sum())
    to_best = entries[entries["best"].notna()].groupby("solver")["ratio"]
    ratios = to_best.agg(lambda each: np.nan if each.isna().any() else shifted_geometric_mean(each, 1.0)).reindex(table.index)
    table["mean_ratio"] = ratios.where(table["run_on"] == entries["contest"].nunique())
    keys = {"share": table["fails_on"] / table["run_on"], "wins": -table[_FASTEST[:2]].sum(axis=1), "missed": -table["gets_there_on"]}
    return table.assign(**keys).reset_index().sort_values([*keys, "solver"], ignore_index=True).drop(columns=list(keys))


def boards(sources: Sequence[Source]) -> list[Board]:
    """Return the boards of all families, by family, machine and target from loose to tight.

    Of suites that were run several times the `latest` results count alone. An instance that several suites hold counts once to a target:
    as the suite measured it that ran most solvers on it, of several such the one that was run last.
    """
    import pandas as pd

    entries = _entries(_named(pd.concat(map(_times, latest(sources)), ignore_index=True)))
    last_first = [source.slug for source in sorted(sources, key=lambda each: (each.begun, each.slug), reverse=True)]
    doubted = {instance for source in sources for instance in source.contradicted}
    table, slugs = [], dict[str, str]()
    in_order = entries.sort_values(_BOARD, ascending=[True, True, False], kind="stable")
    for _, rows in in_order.groupby(_BOARD, sort=False):
        family, machine, target = rows[_BOARD].to_numpy().tolist()[0]
        slugs[family] = slugs.get(family) or slug(family, slugs.values())
        trusted = rows[~rows["instance"].isin(doubted)]
        solvers = trusted.groupby(["instance", "suite"])["solver"].nunique().reset_index()
        solvers["age"] = solvers["suite"].map(last_first.index)
        once = solvers.sort_values(["solver", "age"], ascending=[False, True]).drop_duplicates("instance")
        counted = _judged(trusted.merge(once[["instance", "suite"]], on=["instance", "suite"]))
        contradicted = rows["instance"].nunique() - trusted["instance"].nunique()
        name, path = machine_name(machine) if len(sources[0].machines) > 1 else "", f"leaders/{slugs[family]}.html"
        table.append(Board(family, name, target, path, counted, len(solvers) - len(once), contradicted))
    return table


def _times(source: Source) -> pd.DataFrame:
    """Return the times of one source, with what tells runs of several sources apart. A ladder is not how a solver works."""
    results = source.results
    about = results.runs[["id", "problem", "solver"]].set_axis(["run_id", "family", "class"], axis=1)
    options = [{name: value for name, value in json.loads(text).items() if name != "ladder"} for text in results.runs["options"]]
    about["options"] = [json.dumps(each, sort_keys=True) for each in options]
    about = about.assign(machine=results.runs["environment_id"].map(dict(source.machine_of)), suite=source.slug)
    return run_times(results.runs, results.samples, results.targets).merge(about, on="run_id", sort=False)


def _named(times: pd.DataFrame) -> pd.DataFrame:
    """Return the times with one name in `solver` for each solver of a family: its label, and its options where a label has several.

    The most frequent options of a label go without saying. A solver that got nowhere in a suite is of the kind that it is elsewhere;
    plug-ins of one name may be of several kinds.
    """
    of_class = times[times["kind"] != UNKNOWN].groupby("class")["kind"].unique().to_dict()
    single = {cls: kinds[0] for cls, kinds in of_class.items() if len(kinds) == 1}
    kinds = times["kind"].mask(times["kind"] == UNKNOWN, times["class"].map(single).fillna(UNKNOWN))
    classes = times["class"].where(~times["class"].isin(set(of_class) - set(single)), times["class"] + ", " + kinds)
    solvers = list(zip(times["family"], times["solver"], classes, times["options"], strict=True))
    usual: dict[tuple[str, str], tuple[str, str]] = {}
    names: dict[tuple[str, ...], str] = {}
    taken = {family: set(labels) for family, labels in times.groupby("family")["solver"]}
    for family, label, *of in dict(Counter(solvers).most_common()):
        first = usual.setdefault((family, label), (of[0], of[1]))
        name = label if list(first) == of else numbered(one_line(f"{label} ({_unlike(first, *of)})", LONGEST_LABEL), taken[family])
        names[family, label, *of] = name
        taken[family].add(name)
    return times.assign(kind=kinds, solver=[names[solver] for solver in solvers])


def _unlike(usual: tuple[str, str], solver: str, options: str) -> str:
    """Return what tells a solver from the one that its label usually means: its class, or its options."""
    before, after = ({name: json.dumps(value) for name, value in json.loads(text).items()} for text in (usual[1], options))
    values = [(name, before.get(name, "default"), after.get(name, "default")) for name in sorted({*before, *after})]
    changed = [f"{name}={now}" for name, then, now in values if then != now]
    return ", ".join([*([f"solver {solver}"] if usual[0] != solver else []), *changed])


def _entries(times: pd.DataFrame) -> pd.DataFrame:
    """Return a row per contest, target and solver: of the runs that proved the gap the first time and the median of the later ones."""
    ran = times[times["status"] != Status.SKIPPED].sort_values("repetition", kind="stable")
    ran["seconds"] = ran["seconds"].clip(lower=RESOLUTION)
    of_solver = ran.groupby([*_CONTEST, "solver"], sort=False)
    entries = of_solver.agg(
        seed=("seed", "first"), kind=("kind", "first"), runs=("seconds", "size"), reached=("seconds", "count"), seconds=("seconds", list)
    ).reset_index()
    seconds = [tuple(one for one in each if one == one) or (np.nan,) for each in entries["seconds"]]
    return entries.assign(first=[each[0] for each in seconds], seconds=[median(later(each)) for each in seconds])


def _judged(entries: pd.DataFrame) -> pd.DataFrame:
    """Return the entries of a board with who is the fastest, and who is about as fast."""
    contest = entries.groupby(_CONTEST, sort=False).ngroup()
    seconds, of_kind = entries["seconds"], [contest, entries["kind"]]
    is_best = _least(entries["first"], of_kind)
    in_order = entries["kind"].map({kind: place for place, kind in enumerate(KINDS)}).sort_values(kind="stable").index
    is_winner = _least(seconds.where(is_best)[in_order], contest)
    best, best_of_kind = (seconds.where(those).groupby(by).transform("max") for those, by in ((is_winner, contest), (is_best, of_kind)))
    is_level = (seconds < ABOUT_EQUAL * best) & ~is_winner
    side = entries["kind"].replace(dict.fromkeys(ONE_SHOT, GENERIC))
    known = side.mask(side == UNKNOWN)  # of one that never got anywhere nobody knows the side
    return entries.assign(
        contest=contest, is_best=is_best, is_winner=is_winner, best=best, is_level=is_level,
        is_contested=known.groupby(contest).transform("nunique") > 1,
        is_level_in_kind=(seconds < ABOUT_EQUAL * best_of_kind) & ~is_best,
        is_rival=is_level & (side != side.where(is_winner).groupby(contest).transform("first")),
    )  # fmt: skip


def _least(seconds: pd.Series[float], by: Any) -> pd.Series[bool]:
    """Return whether a time is the least of its group, the first of several; a missing one is not."""
    return seconds.notna() & seconds.index.isin(seconds.fillna(np.inf).groupby(by).idxmin())
