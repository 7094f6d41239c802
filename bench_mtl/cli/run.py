"""`bench-mtl run`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench_mtl.cli.asked import say_tracebacks
from bench_mtl.cli.console import Answer, answer, fail, say, warn
from bench_mtl.cli.options import A_PATH, EXIT_INTERRUPTED, NearChoice, repeatable, script_options, source_options, suites, traceback_option
from bench_mtl.cli.progress import reporter
from bench_mtl.cli.results import exit_code_of, said_report
from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.files import exists, is_dir
from bench_mtl.data.catalogue import named_directory
from bench_mtl.data.fingerprint import Watch
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case, Suite, expand, identified, one_of_each
from bench_mtl.engine.suite_file import read_suite
from bench_mtl.results import FILE_NAME, Outcome, Plan, Store, plan_suite
from bench_mtl.results.decisive import decisive_cases
from bench_mtl.results.enclosures import CONTRADICTION
from bench_mtl.results.selection import Selection, chosen_cases
from bench_mtl.results.view import VIEW
from bench_mtl.runner import Executor, Setting, executor_for, run_cases
from bench_mtl.runner.interrupt import Interrupt
from bench_mtl.runner.planning import planned_cases

#: Rows that are read at a time.
_MANY = 10_000


@click.command()
@click.argument("suite", shell_complete=suites)
@click.option("--out", type=A_PATH, help="Output folder; results/SUITE by default.")
@click.option(
    "--slots", type=int, default=1, show_default=True, help="Cases that run at once, each on processors of its own: at most what there are."
)
@click.option(
    "--isolation", type=NearChoice(["process", "inline"]), default="process", show_default=True,
    help="inline runs in this process, without hard limits: to debug and to profile.",
)  # fmt: skip
@click.option("--cluster", metavar="local|ADDRESS", help="Run on Dask: workers of this machine, or those of the scheduler at ADDRESS.")
@repeatable("--only", "KEY=PATTERN", "Only cases whose problem, family, solver, seed, repetition or data is like PATTERN (with * and ?).")
@click.option("--force", is_flag=True, help="Run everything again.")
@click.option("--retry-failed", is_flag=True, help="Run again what ended as wrong, crashed or error.")
@click.option("--dry-run", is_flag=True, help="Only say which cases would be run.")
@traceback_option
@source_options
@script_options
def run(
    suite: str, out: Path | None, slots: int, isolation: str, cluster: str | None, only: tuple[str, ...], force: bool, retry_failed: bool,
    dry_run: bool, traceback: bool, data_dir: Path | None, plugins: Path | None,
) -> Answer | int:  # fmt: skip
    """Run SUITE (a shipped name or a TOML file), store a row for every case and write the report.

    A case that has a row is not run again: the same command resumes an interrupted run, and after a change of the suite, of a plug-in
    or of the data only what it touches is run. Ctrl-C once finishes the running cases and stops, twice stops now.

    \b
    Examples:
      bench-mtl run quick
      bench-mtl run my-suite.toml --out results/mine --plugins my-plugins
      bench-mtl run quick --only solver=pdhg --only 'problem=hinge*' --dry-run
      bench-mtl run synthetic --cluster tls://10.0.0.1:8786
    """
    whole_number("--slots", slots, minimum=1)
    selection = Selection(only, "--only")
    chosen = read_suite(suite)
    folder = out or Path("results") / chosen.name
    if exists("--out", folder) and not is_dir("--out", folder):
        raise InputError(f"--out: {folder} is not a folder")
    cases = expand(chosen, load_registry(plugins)) if plugins is None or isolation == "inline" else planned_cases(chosen, plugins)
    work = _Work(chosen, identified(cases, data_dir), folder, selection, force, retry_failed, data_dir)
    if dry_run:
        return _say_what_waits(work)
    # Workers may have been started elsewhere, or be moved there.
    setting = Setting(chosen.threads, plugins and plugins.absolute(), named_directory(data_dir))
    make_executor = executor_for(setting, slots=slots, isolation=isolation, cluster=cluster, notify=warn)
    begun: list[str] = []  # options that have put rows aside: the command goes on without them
    try:
        interrupt = Interrupt(at_once=isolation == "inline", notify=warn)
        repeats = [] if force else work.repeats()
        made = _run(work, repeats, make_executor, interrupt, begun)
        latest = work.repeats()
        if latest != repeats:
            again = replace(work, force=False, retry_failed=False)
            if waiting := again.plan(latest)[0].waiting:
                say(f"the fastest solvers again, {plural(len(waiting), 'run')}")
            made += _run(again, latest, make_executor, interrupt, begun)
        if traceback:
            say_tracebacks(folder)
        code, contradictions = _reported(folder, made)
    except KeyboardInterrupt:
        without = f" without {' and '.join(begun)}" if begun else ""
        return fail(f"interrupted; what has finished is stored, the same command{without} goes on from there", EXIT_INTERRUPTED)
    return code, lambda: {"suite": chosen.name, "made": made, **_results_document(folder), "contradictions": contradictions}


@dataclass(frozen=True)
class _Work:
    """A suite, the folder of its results, and which of its cases a user wants to be run."""

    suite: Suite
    cases: list[Case]
    folder: Path
    only: Selection
    force: bool
    retry_failed: bool
    data_dir: Path | None

    def repeats(self) -> list[Case]:
        """Return the runs of the fastest solvers that are made again; none before every case has its row."""
        if not self.suite.repeat_fastest or not (self.folder / FILE_NAME).is_file():
            return []
        with Store.open(self.folder) as store, store.snapshot():
            runs = store.runs()
            if not {case.key for case in self.cases} <= set(runs["case_key"]):
                return []
            return decisive_cases(self.cases, runs, store.samples(), self.suite.targets, self.suite.repeat_fastest)

    def plan(self, repeats: Sequence[Case]) -> tuple[Plan, int]:
        """Return what is to be done of the cases and these, and how many are chosen.

        Raises InputError: no case is chosen, or the results there cannot be read.
        """
        cases = [*self.cases, *repeats]
        only = chosen_cases(cases, self.only) if self.only.texts else None
        plan = plan_suite(self.folder, self.suite, cases, force=self.force, retry_failed=self.retry_failed, only=only)
        return plan, len(cases if only is None else only)


def _say_what_waits(work: _Work) -> Answer:
    """Print the cases that have no row, in the order in which they would be run, and their number."""
    repeats = [] if work.force else work.repeats()
    plan, number = work.plan(repeats)
    for case in plan.waiting:
        answer(case.title)
    again = ", then the fastest solvers again" if work.suite.repeat_fastest and not repeats and plan.only is None else ""
    answer(f"{len(plan.waiting)} of {plural(number, 'case')} would be run{again}")
    waiting = [
        {
            "problem": case.instance.label, "family": case.instance.problem, "solver": case.solver_label, "seed": case.instance.seed,
            "repetition": case.repetition, "target": case.target,
        }
        for case in plan.waiting
    ]  # fmt: skip
    return 0, lambda: {"suite": work.suite.name, "folder": work.folder, "cases": number, "waiting": waiting}


def _run(work: _Work, repeats: Sequence[Case], make_executor: Callable[[], Executor], interrupt: Interrupt, begun: list[str]) -> int:
    """Run the cases that are wished for and that have no row; return their number, and add to `begun` the options that put rows aside.

    Raises KeyboardInterrupt: the user has asked to stop, once (the running cases are finished then) or twice.
    """
    plan, number = work.plan(repeats)
    if len(plan.waiting) < number:
        say(f"{number - len(plan.waiting)} of {number} cases are done already")
    if not plan.has_changes and not plan.waiting:
        return 0
    with contextlib.ExitStack() as stack:
        watch = Watch((case.instance.data for case in plan.waiting), work.data_dir)
        executor = stack.enter_context(make_executor()) if plan.waiting else None
        if executor is not None and (mistake := executor.find_mistake(one_of_each(plan.waiting))) is not None:
            raise InputError(mistake)  # mistakes end here, before anything is written
        store = stack.enter_context(Store.create(work.folder, work.suite))
        waiting = store.apply(plan)
        begun += [name for name, is_given in (("--force", work.force), ("--retry-failed", work.retry_failed)) if is_given]
        if executor is not None:
            with reporter(waiting, store.durations(), executor.capacity) as show, interrupt:

                def end(case: Case, outcome: Outcome) -> None:
                    show.end(case, outcome)
                    store.void_where_changed(case, watch)

                run_cases(waiting, store, executor=executor, on_start=show.start, on_outcome=end, should_stop=interrupt.asks)
            if show.done < len(waiting):
                raise KeyboardInterrupt
    return len(waiting)


def _reported(folder: Path, made: int) -> tuple[int, tuple[str, ...] | None]:
    """Write the report unless it is current; return the exit code, and the contradictions if they were looked for again."""
    report, results = folder / "report.md", folder / FILE_NAME
    may_change = results.with_name(f"{FILE_NAME}-wal").exists()  # while somebody else reads, changes may wait there
    text = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else None
    if made or may_change or text is None or f"\n> {VIEW}" in text or report.stat().st_mtime_ns < results.stat().st_mtime_ns:
        written = said_report(folder)
        return exit_code_of(written.statuses, written.contradictions), written.contradictions
    say(f"nothing to run; report: {report}")
    alarms = [line for line in text.splitlines() if line.startswith(f"> **{CONTRADICTION} ")]
    with Store.open(folder) as store:
        return exit_code_of(store.statuses(), alarms), None


def _results_document(folder: Path) -> dict[str, Any]:
    """Return what a folder holds now: how many cases it lists, how their runs ended, and each run."""
    with Store.open(folder) as store, store.snapshot():
        cases, names = store.meta().get("cases"), tuple(store.columns("runs"))
        runs = [dict(zip(names, row, strict=True)) for rows in store.chunks("runs", _MANY) for row in rows]
        places = store.places()
    columns = {
        "problem": "problem_label", "family": "problem", "solver": "solver_label",
        **{name: name for name in ("seed", "repetition", "target", "clock", "status", "reason", "relative_gap", "iterations")},
        "objective": "primal", "dual_bound": "dual",
    }  # fmt: skip
    return {
        "folder": folder,
        "report": [folder / name for name in ("report.html", "report.md") if (folder / name).is_file()],
        "cases": None if cases is None else int(cases),
        "statuses": Counter(row["status"] for row in runs),
        "runs": [
            {name: row[column] for name, column in columns.items()}
            | {"seconds": row["setup_seconds"] + row["solve_seconds"]}
            | {"places": [place._asdict() for place in places.get(row["id"], ())]}
            for row in runs
        ],
    }
