"""What a user sees while cases run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from bench_mtl.cli.console import is_quiet, say
from bench_mtl.core.text import one_line, shortened, visible
from bench_mtl.core.types import Status
from bench_mtl.engine.places import place_text
from bench_mtl.results import Outcome
from bench_mtl.runner.job import Work

#: Characters of a reason in a line; the report has all of them.
_LONGEST_REASON = 200
#: Characters of the bar, of the time that has passed, which comes after it, and the fewest of a title.
_BAR, _CLOCK, _SHORTEST_TITLE = 10, 8, 12


class TimeLeft:
    """An estimate from what has finished: of the same solver on the same problem if there is any, else of the same solver, else of all."""

    def __init__(self, cases: Iterable[Work], known: Iterable[tuple[str, str, float]] = ()) -> None:
        self._waiting = Counter(case.labels for case in cases)
        self._means: dict[tuple[str | None, str | None], _Mean] = defaultdict(_Mean)
        for problem, solver, seconds in known:
            self._learn(problem, solver, seconds)

    def add(self, case: Work, seconds: float) -> None:
        """A case ended, after so many seconds of a slot's time."""
        problem, solver = case.labels
        self._waiting[problem, solver] -= 1
        self._learn(problem, solver, seconds)

    def seconds(self, slots: int = 1) -> float | None:
        """Seconds until all is done; None while some case is like none that is known."""
        waiting = {pair: count for pair, count in self._waiting.items() if count > 0}
        expected = {pair: seconds for pair in waiting if (seconds := self._expected(*pair)) is not None}
        if not self._means or len(expected) < len(waiting):
            return None
        total = sum(count * expected[pair] for pair, count in waiting.items())
        return total / max(1, min(slots, sum(waiting.values())))

    def _expected(self, problem: str, solver: str) -> float | None:
        keys = ((problem, solver), (None, solver), (None, None))
        return next((self._means[key].value for key in keys if key in self._means), None)

    def _learn(self, problem: str, solver: str, seconds: float) -> None:
        # What takes no time, for it is skipped, says nothing about other pairs.
        for key in ((problem, solver), (None, solver), (None, None)) if seconds > 0.0 else ((problem, solver),):
            self._means[key].add(seconds)


class _Mean:
    def __init__(self) -> None:
        self.value = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        self._count += 1
        self.value += (value - self.value) / self._count


class Reporter:
    """Told of every case that starts and ends."""

    def __init__(self, cases: Sequence[Work], known: Iterable[tuple[str, str, float]], slots: int) -> None:
        self.total = len(cases)
        self.done = self.failed = 0
        self.running: dict[str, tuple[Work, float]] = {}
        """Cases by key, and when they began."""
        self._left = TimeLeft(cases, known)
        self._slots = slots

    def start(self, case: Work) -> None:
        """A case begins."""
        self.running[case.key] = case, time.monotonic()

    def end(self, case: Work, outcome: Outcome) -> None:
        """The row of a case is stored."""
        _, began = self.running.pop(case.key)
        self.done += 1
        self.failed += outcome.record.status.is_failure
        # Starting a process, building a problem and compiling are not paid for again by each case.
        seconds = time.monotonic() - began if outcome.wall_seconds is None else outcome.wall_seconds
        self._left.add(case, 0.0 if outcome.record.status is Status.SKIPPED else seconds)
        self.show(case, outcome)

    def show(self, case: Work, outcome: Outcome) -> None:
        """Say how a case ended, how many failed and run, and the time left."""
        failed = f"; {self.failed} failed" if self.failed else ""
        running = f"; {len(self.running)} running" if self.running else ""
        left = f"; left {self.left}" if self.done < self.total else ""
        say(f"{self.count} {outcome_line(case, outcome)}{failed}{running}{left}")

    @property
    def count(self) -> str:
        """How many have ended of how many."""
        return f"[{self.done}/{self.total}]"

    @property
    def left(self) -> str:
        """The time left in hours, minutes and seconds."""
        return clock(self._left.seconds(self._slots))


def clock(seconds: float | None) -> str:
    """Seconds as h:mm:ss."""
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


@contextmanager
def reporter(cases: Sequence[Work], known: Iterable[tuple[str, str, float]] = (), slots: int = 1) -> Iterator[Reporter]:
    """Yield a reporter for `cases`, fit for what standard output is: on a terminal a bar, whose line fits into the width there.

    Parameters
    ----------
    known : (problem label, solver label, seconds) of runs made before, to learn from
    slots : how many cases run at once
    """
    if is_quiet() or not sys.stdout.isatty():
        yield Reporter(cases, known, slots)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[head]}", markup=False),
        BarColumn(_BAR),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console()) as progress:

        class BarReporter(Reporter):
            def start(self, case: Work) -> None:
                super().start(case)
                self._describe()

            def show(self, case: Work, outcome: Outcome) -> None:
                line = outcome_line(case, outcome, progress.console.width - len(self.count) - 1)
                progress.console.print(visible(f"{self.count} {line}"), highlight=False, markup=False, emoji=False)
                self._describe()

            def _describe(self) -> None:
                running = [case.title for case, _ in self.running.values()]
                head = bar_head(self)
                title = running_title(running, progress.console.width - len(head) - _BAR - _CLOCK - 3)
                progress.update(task, completed=self.done, head=head, description=title, refresh=True)

        shown = BarReporter(cases, known, slots)
        task = progress.add_task("", total=len(cases), head=bar_head(shown))
        yield shown


def bar_head(reporter: Reporter) -> str:
    """Return what stands before the bar, whatever the width: how many have ended of how many, the time left, how many failed."""
    failed = f", {reporter.failed} failed" if reporter.failed else ""
    return f"{reporter.count} left {reporter.left}{failed}"


def running_title(titles: Sequence[str], width: int) -> str:
    """Return the first title and how many more there are, in at most so many characters: a long title is shortened in the middle."""
    if not titles or width < _SHORTEST_TITLE:
        return ""
    others = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
    return shortened(one_line(titles[0]), width - len(others)) + others


def outcome_line(case: Work, outcome: Outcome, width: int | None = None) -> str:
    """Return one case in one line; where that would be longer than `width`, the title is shortened in the middle, as far as that helps."""
    record = outcome.record
    where = f", {place_text(record.places)}" if record.places else ""
    rest = f": {record.status} ({one_line(record.reason, _LONGEST_REASON)}{where})"
    rest += f", {record.times.solve:.3g} s" if record.samples else ""
    title = one_line(case.title)
    return (title if width is None else shortened(title, max(_SHORTEST_TITLE, width - len(rest)))) + rest
