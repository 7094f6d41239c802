"""Who is fastest: by family of problems, machine and target, instance by instance, over the results of several suites.

The unit is an instance, not a labelled problem of several seeds. On each one the fastest solver of every kind is chosen by its first run
and measured by the others, as in a report. A solver that was not run on an instance is not beaten there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_mtl.core.text import LONGEST_LABEL, one_line
from bench_mtl.core.types import Status
from bench_mtl.publish.sources import Source
from bench_mtl.report.tables.contests import contests
from bench_mtl.report.tables.winners import ABOUT_EQUAL
from bench_mtl.results.frames import GENERIC, ONE_SHOT, PEER, SPECIALISED, UNKNOWN, numbers
from bench_mtl.stats import shifted_geometric_mean, suitable_shift

if TYPE_CHECKING:
    import pandas as pd

KINDS = (SPECIALISED, GENERIC, PEER)

#: The shift of the geometric mean of ratios to the virtual best.
RATIO_SHIFT = 1.0

#: An option that says what is asked of a solver, not how it works.
_ASKED = "ladder"


@dataclass(frozen=True)
class Entry:
    """One solver on one instance."""

    solver: str
    kind: str
    first: float | None
    """Seconds of the first run, by which it is chosen; None where not all of its runs proved the gap."""
    seconds: float | None
    """The median of the later runs, where there are any; None where not all proved the gap."""


@dataclass(frozen=True)
class Contest:
    """One instance, one target: the solvers that were run on it."""

    suite: str
    """The `slug` of the results."""
    problem: str
    """Its label there."""
    instance: str
    """Its key."""
    seed: int | None
    entries: tuple[Entry, ...]

    @property
    def there(self) -> tuple[Entry, ...]:
        """Those that proved the gap in every run."""
        return tuple(entry for entry in self.entries if entry.seconds is not None)

    def best(self, kind: str) -> Entry | None:
        """Return the fastest of a kind; None where none of that kind got there."""
        return min((entry for entry in self.there if entry.kind == kind), key=lambda entry: entry.first or 0.0, default=None)

    @property
    def winner(self) -> Entry | None:
        """The fastest of the best of each kind."""
        finalists = [best for kind in KINDS if (best := self.best(kind)) is not None]
        return min(finalists, key=lambda entry: entry.seconds or 0.0, default=None)

    def level_with(self, best: Entry) -> tuple[Entry, ...]:
        """Return all others that are about as fast, or faster: who is the best is chosen by first runs alone."""
        return tuple(entry for entry in self.there if entry != best and (entry.seconds or 0.0) < ABOUT_EQUAL * (best.seconds or 0.0))

    def was_run(self, kind: str) -> bool:
        """Return whether any solver of a kind was run on it."""
        return any(entry.kind == kind for entry in self.entries)

    @property
    def is_contested(self) -> bool:
        """Whether solvers of both sides, specialised and one-shot, were run on it, so that there is somebody to win against."""
        kinds = {entry.kind for entry in self.entries}
        sides = (SPECIALISED in kinds) + bool(kinds & set(ONE_SHOT)) + (UNKNOWN in kinds)
        return sides > 1


@dataclass(frozen=True)
class KindCount:
    """How often solvers of one kind are fastest, of the contested instances."""

    kind: str
    fastest: int
    """With no solver of the other side about as fast."""
    level: int
    """With one."""


@dataclass(frozen=True)
class Standing:
    """One solver on a board."""

    solver: str
    kind: str
    run_on: int
    there: int
    fastest: int
    """Contested instances on which it is fastest, and no other solver about as fast."""
    level: int
    """Contested instances on which it is among several that are about as fast as the fastest."""
    fastest_of_kind: int
    """The same of its own kind alone, of the instances on which another of that kind was run."""
    level_of_kind: int


@dataclass(frozen=True)
class Ratio:
    """One solver over the instances of a block."""

    solver: str
    kind: str
    there: int
    failed: int
    """Instances on which it did not get there, and another solver did."""
    mean: float | None
    """Shifted geometric mean of its seconds over those of the virtual best; None where it failed anywhere."""


@dataclass(frozen=True)
class Block:
    """Instances and the solvers that were all run on all of them."""

    suite: str | None
    """The `slug` of the results that they are of; None of those of the whole board."""
    instances: int
    solved: int
    """Instances on which some solver got there: on these there is a virtual best."""
    seconds: float
    """The shifted geometric mean of the virtual best."""
    shift: float
    ratios: tuple[Ratio, ...]
    """Those that get there most often first, then the fastest."""
    others: tuple[str, ...]
    """Solvers that were run on some of the instances alone."""


@dataclass(frozen=True)
class Board:
    """All instances of one family to one target on one machine."""

    family: str
    machine: int
    """Its place among the machines of all results."""
    target: float
    contests: tuple[Contest, ...]
    repeated: int
    """Measurements that were left out, since another suite ran more solvers on the same instance."""
    contradicted: int
    """Instances that were left out, since what is proven of their optimum cannot all be true."""

    @property
    def kinds(self) -> tuple[KindCount, ...]:
        """How often each kind is fastest."""
        found = []
        won = [(contest, winner) for contest in self.contests if contest.is_contested and (winner := contest.winner) is not None]
        for kind in KINDS:
            of_kind = [
                any(_side(entry) != _side(winner) for entry in contest.level_with(winner)) for contest, winner in won if winner.kind == kind
            ]
            found.append(KindCount(kind, of_kind.count(False), of_kind.count(True)))
        return tuple(found)

    @property
    def nobody(self) -> int:
        """Contested instances on which no solver gets there."""
        return sum(contest.is_contested and contest.winner is None for contest in self.contests)

    @property
    def alone(self) -> int:
        """Instances on which solvers of one side alone were run, which is no win."""
        return sum(not contest.is_contested for contest in self.contests)

    @property
    def standings(self) -> tuple[Standing, ...]:
        """All solvers: those that fail on the smallest share of what they were run on first, then those that are fastest most often."""
        kinds = {entry.solver: entry.kind for contest in self.contests for entry in contest.entries}
        overall = _places((contest, contest.winner, contest.there) for contest in self.contests if contest.is_contested)
        of_kind = _places(
            (contest, contest.best(kind), tuple(entry for entry in contest.there if entry.kind == kind))
            for contest in self.contests
            for kind in KINDS
            if sum(entry.kind == kind for entry in contest.entries) > 1
        )
        found = []
        for solver, kind in kinds.items():
            run_on = sum(entry.solver == solver for contest in self.contests for entry in contest.entries)
            there = sum(entry.solver == solver for contest in self.contests for entry in contest.there)
            counts = (*(overall[solver, place] for place in _PLACES), *(of_kind[solver, place] for place in _PLACES))
            found.append(Standing(solver, kind, run_on, there, *counts))
        return tuple(sorted(found, key=lambda each: (-each.there / each.run_on, -each.fastest - each.level, -each.there, each.solver)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The whole board, then each of its suites where there are several; those in which two solvers were run on everything."""
        suites = dict.fromkeys(contest.suite for contest in self.contests)
        parts: dict[str | None, tuple[Contest, ...]] = {None: self.contests}
        if len(suites) > 1:
            parts |= {suite: tuple(contest for contest in self.contests if contest.suite == suite) for suite in suites}
        return tuple(block for suite, contests in parts.items() if (block := _block(suite, contests)) is not None)


_PLACES = ("fastest", "level")


def _side(entry: Entry) -> str:
    """Return the side that a solver is on: peers are on that of generic solvers."""
    return GENERIC if entry.kind in ONE_SHOT else entry.kind


def _places(contests: Iterable[tuple[Contest, Entry | None, tuple[Entry, ...]]]) -> Counter[tuple[str, str]]:
    """Count by solver how often it is fastest alone, and how often one of several that are about as fast."""
    counts: Counter[tuple[str, str]] = Counter()
    for contest, best, among in contests:
        if best is None:
            continue
        level = [entry for entry in contest.level_with(best) if entry in among]
        if level:
            counts.update((entry.solver, "level") for entry in (best, *level))
        else:
            counts[best.solver, "fastest"] += 1
    return counts


def _block(suite: str | None, contests: Sequence[Contest]) -> Block | None:
    """Return what can be said of the solvers that were run on all of these instances; None where there are not two, or nobody got there."""
    names = {entry.solver: entry.kind for contest in contests for entry in contest.entries}
    rows = [{entry.solver: entry for entry in contest.entries} for contest in contests]
    common = [name for name in names if all(name in row for row in rows)]
    best = [None if (winner := contest.winner) is None else winner.seconds for contest in contests]
    times = [seconds for seconds in best if seconds is not None]
    if len(common) < 2 or not times:
        return None
    ratios = [_ratio(name, names[name], [row[name].seconds for row in rows], best) for name in common]
    shift = suitable_shift(np.array(times)[:, None])
    return Block(
        suite=suite,
        instances=len(contests),
        solved=len(times),
        seconds=shifted_geometric_mean(times, shift),
        shift=shift,
        ratios=tuple(sorted(ratios, key=lambda each: (each.failed, each.mean or 0.0, each.solver))),
        others=tuple(name for name in names if name not in common),
    )


def _ratio(solver: str, kind: str, seconds: Sequence[float | None], best: Sequence[float | None]) -> Ratio:
    pairs = [(own, least) for own, least in zip(seconds, best, strict=True) if least is not None]
    ratios = [own / least for own, least in pairs if own is not None]
    failed = len(pairs) - len(ratios)
    return Ratio(solver, kind, len(ratios), failed, None if failed else shifted_geometric_mean(ratios, RATIO_SHIFT))


def boards(sources: Sequence[Source]) -> list[Board]:
    """Return the boards of all families, by family, machine and target from loose to tight.

    Of suites that were run several times the latest results (`Source.is_latest`) count alone. An instance that several suites hold counts
    once to a target: as the suite measured it that ran most solvers on it, of several such the one that was run last.
    """
    import pandas as pd

    frames = [_times(source) for source in sources if source.is_latest]
    if not frames:
        return []
    times = _with_names(pd.concat(frames, ignore_index=True))
    times = times[times["status"] != Status.SKIPPED]
    last_first = [source.slug for source in sorted(sources, key=lambda each: (each.date, each.slug), reverse=True)]
    doubted = {instance for source in sources for instance in source.contradicted}
    found = []
    for (family, machine, target), rows in times.groupby(["family", "machine", "target"], sort=False):
        trusted = rows[~rows["instance"].isin(doubted)]
        contradicted = rows["instance"].nunique() - trusted["instance"].nunique()
        kept, repeated = _once(trusted, last_first)
        contests = tuple(_contests(kept)) if len(kept) else ()
        found.append(Board(str(family), int(str(machine)), float(str(target)), contests, repeated, contradicted))
    families = list(dict.fromkeys(times["family"]))
    return sorted(found, key=lambda board: (families.index(board.family), board.machine, -board.target))


def _times(source: Source) -> pd.DataFrame:
    """Return the times of one source, with what tells runs of several sources apart."""
    runs = source.results.runs.set_index("id")
    labels = [
        label.removesuffix(f" [{machine}]") if machine else label
        for label, machine in zip(source.times["problem"], source.times["run_id"].map(runs["machine"]), strict=True)
    ]
    times = source.times.assign(suite=source.slug, label=labels, name=source.times["solver"])
    columns = {"family": "problem", "class": "solver", "options": "options"}
    for column, origin in columns.items():
        times[column] = times["run_id"].map(runs[origin]).astype(str)
    times["machine"] = times["run_id"].map(runs["environment_id"]).map(dict(source.machine_of))
    return times.assign(problem=times["suite"] + "\n" + times["label"])


def _with_names(times: pd.DataFrame) -> pd.DataFrame:
    """Return the times with one name in `solver` for each solver of a family: its label, and its options where a label has several.

    The most frequent options of a label go without saying. What tolerances a solver is asked for is not among them.
    """
    asked = {options: _without_asked(options) for options in times["options"].unique()}
    kinds_of: dict[str, set[str]] = {}
    for cls, kind in zip(times["class"], times["kind"], strict=True):
        kinds_of.setdefault(cls, set()).update({kind} - {UNKNOWN})
    # A solver may have got nowhere in a suite, and is then what it is elsewhere; plug-ins of one name may be of several kinds.
    kinds = [
        next(iter(kinds_of[cls])) if kind == UNKNOWN and len(kinds_of[cls]) == 1 else kind
        for cls, kind in zip(times["class"], times["kind"], strict=True)
    ]
    solvers = [
        (family, name, cls if len(kinds_of[cls]) < 2 else f"{cls}, {kind}", asked[options])
        for family, name, cls, options, kind in zip(*(times[key] for key in ("family", "name", "class", "options")), kinds, strict=True)
    ]
    of_label: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for family, name, cls, options in solvers:
        of_label.setdefault((family, name), Counter())[cls, options] += 1
    usual = {label: found.most_common(1)[0][0] for label, found in of_label.items()}
    names = {(*label, *identity): label[1] for label, identity in usual.items()}
    for (family, name), found in of_label.items():
        for other in [identity for identity in found if identity != usual[family, name]]:
            words = one_line(f"{name} {_unlike(usual[family, name], other)}", LONGEST_LABEL)
            names[family, name, *other] = _unused(words, family, names)
    return times.assign(kind=kinds, solver=[names[solver] for solver in solvers])


def _unused(name: str, family: str, names: Mapping[tuple[str, str, str, str], str]) -> str:
    """Return a name that no other solver of the family has: with a number behind it where one has."""
    taken = {other for (of_family, *_), other in names.items() if of_family == family}
    return next(each for each in (name, *(f"{name} ({number})" for number in range(2, len(taken) + 3))) if each not in taken)


def _without_asked(options: str) -> str:
    table = json.loads(options)
    return json.dumps({key: table[key] for key in sorted(table) if key != _ASKED})


def _unlike(usual: tuple[str, str], other: tuple[str, str]) -> str:
    """Return what tells a solver from the one that its label usually means."""
    if usual[0] != other[0]:
        return f"(solver {other[0]})"
    before, after = json.loads(usual[1]), json.loads(other[1])
    parts = [f"{key}={json.dumps(value)}" for key, value in after.items() if key not in before or before[key] != value]
    return f"({', '.join([*parts, *(f'without {key}' for key in before if key not in after)])})"


def _once(rows: pd.DataFrame, suites: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """Return the rows of one target with every instance from one suite alone, and how many measurements of an instance are left out.

    Of suites that ran equally many solvers on an instance the first of `suites` is taken.
    """
    run: dict[tuple[str, str], set[str]] = {}
    for instance, suite, solver in zip(rows["instance"], rows["suite"], rows["solver"], strict=True):
        run.setdefault((instance, suite), set()).add(solver)
    chosen: dict[str, str] = {}
    for instance, suite in sorted(run, key=lambda each: suites.index(each[1])):
        if instance not in chosen or len(run[instance, suite]) > len(run[instance, chosen[instance]]):
            chosen[instance] = suite
    kept = [chosen[instance] == suite for instance, suite in zip(rows["instance"], rows["suite"], strict=True)]
    return rows[kept], len(run) - len(chosen)


def _contests(times: pd.DataFrame) -> Iterator[Contest]:
    """Yield the contests of the rows of one target."""
    given = dict(zip(times["instance"], numbers(times, "seed"), strict=True))
    seeds = {instance: None if seed != seed else int(seed) for instance, seed in given.items()}
    field = contests(times)
    for (problem, instance), rows in field[field["tried"]].groupby(["problem", "instance"], sort=False):
        suite, label = str(problem).split("\n", 1)
        yield Contest(suite, label, str(instance), seeds[instance], tuple(_entries(rows)))


def _entries(rows: pd.DataFrame) -> Iterator[Entry]:
    """Yield the solvers that were run on an instance."""
    for solver, kind, first, seconds in zip(*(rows[name] for name in ("solver", "kind", "first_seconds", "later_seconds")), strict=True):
        yield Entry(solver, kind, *((None, None) if first != first else (first, seconds)))
