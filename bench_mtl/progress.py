"""What a user sees while cases run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench_mtl.store import Outcome
from bench_mtl.suite import Case


class Reporter:
    """Told of every case that starts and ends."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def start(self, case: Case) -> None:
        """A case is about to run."""

    def end(self, case: Case, outcome: Outcome) -> None:
        self.done += 1
        print(f"[{self.done}/{self.total}] {outcome_line(case, outcome)}", flush=True)


@contextmanager
def reporter(total: int) -> Iterator[Reporter]:
    """A reporter for `total` cases, fit for what standard output is."""
    if not sys.stdout.isatty():
        yield Reporter(total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns) as progress:
        task = progress.add_task("", total=total)

        class BarReporter(Reporter):
            def start(self, case: Case) -> None:
                progress.update(task, description=f"{case.instance.label}: {case.solver_label}")

            def end(self, case: Case, outcome: Outcome) -> None:
                progress.console.print(outcome_line(case, outcome), highlight=False, markup=False)
                progress.advance(task)

        yield BarReporter(total)


def outcome_line(case: Case, outcome: Outcome) -> str:
    """One case in one line."""
    record = outcome.record
    seed = "" if case.instance.seed is None else f" seed {case.instance.seed}"
    head = f"{case.instance.label}{seed} | {case.solver_label}: {record.status}"
    return f"{head} ({record.reason}), {record.times.solve:.3g} s" if record.samples else f"{head} ({record.reason})"
