"""Who is fastest on every problem to every target, over whom, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from bench_mtl.report.check.clocks import RESOLUTION, Counting, counting
from bench_mtl.report.check.enclosures import Enclosure, enclosures
from bench_mtl.report.check.entrants import Entrant, entrants, fastest
from bench_mtl.report.check.pairs import Interval, pair
from bench_mtl.report.check.rows import GENERIC, ONE_SHOT, PEER, SKIPPED, SPECIALISED, STATUSES, UNKNOWN, Rows, Run

#: Whom a winner of each kind is measured against.
RIVALS = {SPECIALISED: ONE_SHOT, GENERIC: (SPECIALISED,), PEER: (SPECIALISED,)}


@dataclass(frozen=True)
class Contest:
    """One problem and one target."""

    problem: str
    target: float
    instances: int
    entrants: tuple[Entrant, ...]
    statuses: Mapping[str, str]
    """How the runs of each solver ended that count for this target, as reports say it."""
    winner: Entrant | None
    others: tuple[Entrant, ...]
    """The solvers of the other kind."""
    rival: Entrant | None
    """The fastest of these, where one got there everywhere."""
    ratio: float | None
    is_bound: bool
    interval: Interval | None

    @property
    def is_walkover(self) -> bool:
        """Whether no solver of the other kind was run everywhere, so that there was nobody to win against."""
        return self.winner is not None and not any(other.is_tried_everywhere for other in self.others)

    @property
    def seconds(self) -> float | None:
        return None if self.winner is None else self.winner.seconds

    @property
    def rival_seconds(self) -> float | None:
        return None if self.rival is None else self.rival.seconds

    @property
    def rival_kinds(self) -> str:
        """What the solvers of the other kind are called."""
        if self.winner is None:
            return ""
        kinds, present = RIVALS.get(self.winner.kind, ()), {other.kind for other in self.others}
        return " or ".join([kind for kind in kinds if kind in present] or kinds[:1])


@dataclass(frozen=True)
class Derived:
    """Everything that reports say of rows, derived once."""

    rows: Rows

    @cached_property
    def counts(self) -> Mapping[int, Counting]:
        return counting(self.rows.runs)

    @cached_property
    def contests(self) -> Mapping[tuple[str, float], Contest]:
        return {
            (problem, target): _contest(problem, target, runs, self.counts)
            for problem, runs in self.rows.by_problem.items()
            for target in self.rows.targets
        }

    @cached_property
    def enclosures(self) -> tuple[Enclosure, ...]:
        return enclosures(self.rows)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Of the solvers."""
        return tuple(dict.fromkeys(run.label for run in self.rows.runs))

    def to(self, target: float) -> list[Contest]:
        """Return the contests to one target."""
        return [contest for contest in self.contests.values() if contest.target == target]

    def limit(self, problem: str) -> float | None:
        """Return the seconds that all runs of a problem were limited to; None where there is no such number."""
        limits = {run.limit for run in self.rows.by_problem[problem] if run.status != SKIPPED}
        return limits.pop() if len(limits) == 1 else None


def _contest(problem: str, target: float, runs: Iterable[Run], counts: Mapping[int, Counting]) -> Contest:
    runs = tuple(runs)
    places, found = entrants(runs, counts, target)
    ended: dict[str, list[str]] = {}
    for run in runs:
        if counts[run.id].holds(target):
            ended.setdefault(run.label, []).append(run.status)
    whole = sorted((entrant for entrant in found if entrant.is_whole), key=lambda entrant: entrant.first)
    first_of_kind = {entrant.kind: entrant for entrant in reversed(whole)}
    winner = min(sorted(first_of_kind.values(), key=whole.index), key=lambda entrant: entrant.seconds, default=None)
    others = () if winner is None else tuple(each for each in found if each.kind in (*RIVALS.get(winner.kind, ()), UNKNOWN))
    rival = next((entrant for entrant in whole if entrant in others), None)
    ratio, is_bound, interval = _ratio(winner, rival, others)
    statuses = {label: status_words(statuses) for label, statuses in ended.items()}
    return Contest(problem, target, len(places), tuple(found), statuses, winner, others, rival, ratio, is_bound, interval)


def _ratio(winner: Entrant | None, rival: Entrant | None, others: tuple[Entrant, ...]) -> tuple[float | None, bool, Interval | None]:
    """Return the ratio, whether it is a bound, and its interval.

    A bound needs rivals that never got there, each run of which its own time limit stopped, on every instance, and that it is known what
    time each of them had: the least of these stands for the time of the best of them.
    """
    if winner is None or winner.seconds <= RESOLUTION:
        return None, False, None
    if rival is not None:
        found = pair(rival, winner)
        return found.ratio, False, found.interval
    known = [other for other in others if other.kind != UNKNOWN]
    if not known or not all(other.is_stopped and not other.reached for other in known):
        return None, False, None
    found = pair(fastest(known, ""), winner)
    is_bound = found.at_least and found.instances == len(winner.attempts) and found.ratio is not None
    return (found.ratio, True, None) if is_bound else (None, False, None)


def status_words(statuses: Iterable[str]) -> str:
    """Return how runs ended, as reports say it: ``verified``, or ``verified 2/3, timeout 1/3``."""
    given = list(statuses)
    if len(given) == 1:
        return given[0]
    return ", ".join(f"{status} {given.count(status)}/{len(given)}" for status in STATUSES if status in given)
