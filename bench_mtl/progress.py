"""What a user sees while cases run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench_mtl.console import say
from bench_mtl.store import Outcome
from bench_mtl.suite import Case
from bench_mtl.types import Status


class Reporter:
    """Told of every case that starts and ends."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def start(self, case: Case) -> None:
        """A case is about to run."""

    def end(self, case: Case, outcome: Outcome) -> None:
        self.done += 1
        say(f"[{self.done}/{self.total}] {outcome_line(case, outcome)}")


class TimeLeft:
    """An estimate from what has finished: rich's own forgets all that is older than 30 s, less than a case may take."""

    def __init__(self, total: int) -> None:
        self._remaining = total
        self._seconds = 0.0
        self._counted = 0

    def add(self, seconds: float, status: Status) -> None:
        """A case ended; a skipped one takes no time and says nothing about the others."""
        self._remaining -= 1
        if status is not Status.SKIPPED:
            self._seconds += seconds
            self._counted += 1

    def __str__(self) -> str:
        if not self._counted:
            return "-:--:--"
        minutes, seconds = divmod(round(self._seconds / self._counted * self._remaining), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


@contextmanager
def reporter(total: int) -> Iterator[Reporter]:
    """A reporter for `total` cases, fit for what standard output is."""
    if not sys.stdout.isatty():
        yield Reporter(total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left {task.fields[left]}", markup=False),
    )  # fmt: skip
    with Progress(*columns) as progress:
        left = TimeLeft(total)
        task = progress.add_task("", total=total, left=str(left))

        class BarReporter(Reporter):
            def start(self, case: Case) -> None:
                self.began = time.monotonic()
                progress.update(task, description=f"{case.instance.label}: {case.solver_label}")

            def end(self, case: Case, outcome: Outcome) -> None:
                left.add(time.monotonic() - self.began, outcome.record.status)
                progress.console.print(outcome_line(case, outcome), highlight=False, markup=False, emoji=False)
                progress.update(task, advance=1, left=str(left))

        yield BarReporter(total)


def outcome_line(case: Case, outcome: Outcome) -> str:
    """One case in one line."""
    record = outcome.record
    seed = "" if case.instance.seed is None else f" seed {case.instance.seed}"
    head = f"{case.instance.label}{seed} | {case.solver_label}: {record.status}"
    return f"{head} ({record.reason}), {record.times.solve:.3g} s" if record.samples else f"{head} ({record.reason})"
