"""What a user sees while cases run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench_mtl.cli.console import is_quiet, say
from bench_mtl.core.text import one_line, shortened, visible
from bench_mtl.core.types import Status
from bench_mtl.engine.places import place_text
from bench_mtl.results import Outcome
from bench_mtl.runner.job import Work

if TYPE_CHECKING:
    from rich.progress import Progress

#: Characters of a reason in a line; the report has all of them.
_LONGEST_REASON = 200
#: Characters of the bar, of the time that has passed, which comes after it, and the fewest of a title.
_BAR, _CLOCK, _SHORTEST_TITLE = 10, 8, 12

_Pair = tuple[str | None, str | None]


class TimeLeft:
    """An estimate from what has finished: of the same solver on the same problem if there is any, else of the same solver, else of all.

    What is known are (problem label, solver label, seconds) of runs made before.
    """

    def __init__(self, cases: Iterable[Work], known: Iterable[tuple[str, str, float]] = ()) -> None:
        self._waiting = Counter(case.labels for case in cases)
        self._seconds: dict[_Pair, float] = {}
        self._runs: Counter[_Pair] = Counter()
        for problem, solver, seconds in known:
            self._learn(problem, solver, seconds)

    def add(self, case: Work, seconds: float) -> None:
        """A case ended, after so many seconds of a slot's time."""
        self._waiting[case.labels] -= 1
        self._learn(*case.labels, seconds)

    def seconds(self, slots: int = 1) -> float | None:
        """Seconds until all is done; None while some case is like none that is known."""
        total, waiting = 0.0, +self._waiting
        for (problem, solver), count in waiting.items():
            like = next((pair for pair in _alike(problem, solver) if pair in self._runs), None)
            if like is None:
                return None
            total += count * self._seconds[like] / self._runs[like]
        return total / max(1, min(slots, waiting.total())) if self._runs else None

    def _learn(self, problem: str, solver: str, seconds: float) -> None:
        # What takes no time, for it is skipped, says nothing about other pairs.
        for pair in _alike(problem, solver)[: None if seconds > 0.0 else 1]:
            self._runs[pair] += 1
            self._seconds[pair] = self._seconds.get(pair, 0.0) + seconds


def _alike(problem: str, solver: str) -> tuple[_Pair, ...]:
    """Return what runs of a pair are counted under, the likest first."""
    return (problem, solver), (None, solver), (None, None)


class Reporter:
    """Prints every case that starts and ends, in lines, or above a bar, whose line fits into the width of the terminal."""

    def __init__(self, cases: Sequence[Work], known: Iterable[tuple[str, str, float]], slots: int, bar: Progress | None = None) -> None:
        self.total = len(cases)
        self.done = self.failed = 0
        self.running: dict[str, tuple[Work, float]] = {}
        """Cases by key, and when they began."""
        self._left = TimeLeft(cases, known)
        self._slots = slots
        self._bar = bar
        if bar is not None:
            self._task = bar.add_task("", total=self.total, head="")
            self._describe(bar)

    def start(self, case: Work) -> None:
        """A case begins."""
        self.running[case.key] = case, time.monotonic()
        if self._bar is not None:
            self._describe(self._bar)

    def end(self, case: Work, outcome: Outcome) -> None:
        """The row of a case is stored."""
        _, began = self.running.pop(case.key)
        self.done += 1
        self.failed += outcome.record.status.is_failure
        # Starting a process, building a problem and compiling are not paid for again by each case.
        seconds = time.monotonic() - began if outcome.wall_seconds is None else outcome.wall_seconds
        self._left.add(case, 0.0 if outcome.record.status is Status.SKIPPED else seconds)
        line = f"[{self.done}/{self.total}] {outcome_line(case, outcome)}"
        if self._bar is not None:
            self._bar.console.print(visible(line), highlight=False, markup=False, emoji=False)
            self._describe(self._bar)
            return
        failed = f"; {self.failed} failed" if self.failed else ""
        running = f"; {len(self.running)} running" if self.running else ""
        say(line + failed + running + (f"; {self._time_left}" if self.done < self.total else ""))

    @property
    def _time_left(self) -> str:
        """The time left in hours, minutes and seconds."""
        seconds = self._left.seconds(self._slots)
        if seconds is None:
            return "left -:--:--"
        minutes, rest = divmod(round(seconds), 60)
        return f"left {minutes // 60}:{minutes % 60:02}:{rest:02}"

    def _describe(self, bar: Progress) -> None:
        """Show how many have ended, the time left and how many failed, whatever the width, then what runs, as far as it fits."""
        head = f"[{self.done}/{self.total}] {self._time_left}" + (f", {self.failed} failed" if self.failed else "")
        titles = [one_line(case.title) for case, _ in self.running.values()]
        width = bar.console.width - len(head) - _BAR - _CLOCK - 3
        others = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
        title = shortened(titles[0], width - len(others)) + others if titles and width >= _SHORTEST_TITLE else ""
        bar.update(self._task, completed=self.done, head=head, description=title, refresh=True)


@contextmanager
def reporter(cases: Sequence[Work], known: Iterable[tuple[str, str, float]] = (), slots: int = 1) -> Iterator[Reporter]:
    """Yield a reporter for `cases`, of which as many run at once as there are slots: on a terminal with a bar."""
    if is_quiet() or not sys.stdout.isatty():
        yield Reporter(cases, known, slots)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    head, title = (TextColumn(f"{{task.{name}}}", markup=False) for name in ("fields[head]", "description"))
    with Progress(head, BarColumn(_BAR), TimeElapsedColumn(), title, console=Console()) as bar:
        yield Reporter(cases, known, slots, bar)


def outcome_line(case: Work, outcome: Outcome) -> str:
    """Return one case in one line."""
    record = outcome.record
    where = f", {place_text(record.places)}" if record.places else ""
    seconds = f", {record.times.setup + record.times.solve:.3g} s" if record.samples else ""
    return f"{one_line(case.title)}: {record.status} ({one_line(record.reason, _LONGEST_REASON)}{where}){seconds}"
