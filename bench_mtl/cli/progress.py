"""What a user sees while cases run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from bench_mtl.cli.console import say
from bench_mtl.core.text import one_line, visible
from bench_mtl.core.types import Status
from bench_mtl.engine.places import place_text
from bench_mtl.results import Outcome
from bench_mtl.runner.job import Work

#: Characters of a reason in a line; the report has all of them.
_LONGEST_REASON = 200


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
        """Seconds until all is done; None before anything is known."""
        if not self._means:
            return None
        total = sum(count * self._expected(*pair) for pair, count in self._waiting.items() if count > 0)
        return total / max(1, min(slots, sum(self._waiting.values())))

    def _expected(self, problem: str, solver: str) -> float:
        keys = ((problem, solver), (None, solver), (None, None))
        return next((self._means[key].value for key in keys if key in self._means), 0.0)

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
        self._left.add(case, 0.0 if outcome.record.status is Status.SKIPPED else time.monotonic() - began)
        self.show(outcome_line(case, outcome))

    def show(self, line: str) -> None:
        failed = f"; {self.failed} failed" if self.failed else ""
        running = f"; {len(self.running)} running" if self.running else ""
        left = f"; left {self.left}" if self.done < self.total else ""
        say(f"[{self.done}/{self.total}] {line}{failed}{running}{left}")

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
    """Yield a reporter for `cases`, fit for what standard output is.

    Parameters
    ----------
    known : (problem label, solver label, seconds) of runs made before, to learn from
    slots : how many cases run at once
    """
    if not sys.stdout.isatty():
        yield Reporter(cases, known, slots)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[failed]} failed", markup=False), TimeElapsedColumn(),
        TextColumn("left {task.fields[left]}", markup=False), TextColumn("{task.description}", markup=False),
    )  # fmt: skip
    with Progress(*columns) as progress:

        class BarReporter(Reporter):
            def start(self, case: Work) -> None:
                super().start(case)
                self._describe()

            def show(self, line: str) -> None:
                progress.console.print(visible(line), highlight=False, markup=False, emoji=False)
                progress.update(task, completed=self.done, failed=self.failed, left=self.left)
                self._describe()

            def _describe(self) -> None:
                titles = [case.title for case, _ in self.running.values()]
                others = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
                progress.update(task, description=one_line(titles[0]) + others if titles else "")

        shown = BarReporter(cases, known, slots)
        task = progress.add_task("", total=len(cases), failed=0, left=shown.left)
        yield shown


def outcome_line(case: Work, outcome: Outcome) -> str:
    """Return one case in one line."""
    record = outcome.record
    where = f", {place_text(record.places)}" if record.places else ""
    head = f"{one_line(case.title)}: {record.status} ({one_line(record.reason, _LONGEST_REASON)}{where})"
    return f"{head}, {record.times.solve:.3g} s" if record.samples else head
