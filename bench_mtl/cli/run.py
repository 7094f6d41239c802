"""`bench-mtl run`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.console import say, warn
from bench_mtl.cli.options import EXIT_INTERRUPTED, data_dir_option, fail, isolation_option, plugins_option
from bench_mtl.cli.report import exit_code_of, written_report
from bench_mtl.core.errors import InputError, plural

if TYPE_CHECKING:
    from bench_mtl.engine.suite import Case, Suite
    from bench_mtl.runner import Executor
    from bench_mtl.runner.interrupt import Interrupt


@click.command()
@click.argument("suite")
@click.option("--out", type=click.Path(path_type=Path), help="Output folder; results/SUITE by default.")
@click.option("--slots", type=int, default=1, show_default=True, help="Cases that run at once, each on processors of its own.")
@isolation_option
@click.option("--cluster", metavar="local|ADDRESS", help="Run on Dask: workers of this machine, or those of the scheduler at ADDRESS.")
@click.option("--force", is_flag=True, help="Run everything again.")
@click.option("--retry-failed", is_flag=True, help="Run again what ended as wrong, crashed or error.")
@click.option("--dry-run", is_flag=True, help="Only say which cases would be run.")
@data_dir_option
@plugins_option
def run(
    suite: str, out: Path | None, slots: int, isolation: str, cluster: str | None, force: bool, retry_failed: bool, dry_run: bool,
    data_dir: Path | None, plugins: Path | None,
) -> int:  # fmt: skip
    """Run SUITE (a shipped name or a TOML file), store a row for every case and write the report.

    A case that has a row is not run again: the same command resumes an interrupted run, and after a change of the suite, of a plug-in
    or of the data only what it touches is run. Ctrl-C once finishes the running cases and stops, twice stops now.

    \b
    Examples:
      bench-mtl run quick
      bench-mtl run my-suite.toml --out results/mine --plugins my-plugins
      bench-mtl run synthetic --cluster tcp://10.0.0.1:8786
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.data.catalogue import named_directory
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.engine.suite import expand, identified
    from bench_mtl.engine.suite_file import read_suite
    from bench_mtl.results import Store
    from bench_mtl.runner import Setting, executor_for
    from bench_mtl.runner.interrupt import Interrupt
    from bench_mtl.runner.planning import PluginPlanner

    whole_number("--slots", slots, minimum=1)
    chosen = read_suite(suite)
    folder = out or Path("results") / chosen.name
    if plugins is None or isolation == "inline":  # which runs all in this process
        cases = expand(chosen, load_registry(plugins))
    else:
        with PluginPlanner(plugins, guarded=folder) as planner:
            cases = expand(chosen, planner)
    cases = identified(cases, data_dir)
    if dry_run:
        return _say_what_waits(chosen, cases, folder, force=force, retry_failed=retry_failed)
    # Workers may have been started elsewhere, or be moved there.
    setting = Setting(chosen.threads, plugins and plugins.absolute(), named_directory(data_dir), guarded=folder.absolute())
    make_executor = executor_for(setting, slots=slots, isolation=isolation, cluster=cluster, notify=warn)
    try:
        interrupt = Interrupt(at_once=isolation == "inline", notify=warn)
        repeats = [] if force else _decisive_cases(chosen, cases, folder)
        made = _run(chosen, [*cases, *repeats], folder, make_executor, interrupt, force=force, retry_failed=retry_failed)
        latest = _decisive_cases(chosen, cases, folder)
        if latest != repeats:
            say(f"the fastest solvers again, {plural(len(latest), 'run')}")
            made += _run(chosen, [*cases, *latest], folder, make_executor, interrupt, force=False, retry_failed=False)
        if made or not _report_is_current(folder):
            return written_report(folder)
        say(f"nothing to run; report: {folder / 'report.md'}")
    except KeyboardInterrupt:
        return fail("interrupted; what has finished is stored, the same command goes on from there", EXIT_INTERRUPTED)
    with Store.open(folder) as store:
        return exit_code_of(store.statuses())


def _say_what_waits(suite: Suite, cases: list[Case], folder: Path, *, force: bool, retry_failed: bool) -> int:
    """Print the cases that have no row in `folder`, in the order in which they would be run, and their number."""
    from bench_mtl.results import plan_suite

    repeats = [] if force else _decisive_cases(suite, cases, folder)
    waiting = plan_suite(folder, suite, [*cases, *repeats], force=force, retry_failed=retry_failed).waiting
    for case in waiting:
        say(case.title)
    again = ", then the fastest solvers again" if suite.repeat_fastest and not repeats else ""
    say(f"{len(waiting)} of {plural(len(cases) + len(repeats), 'case')} would be run{again}")
    return 0


def _run(
    suite: Suite, cases: list[Case], folder: Path, make_executor: Callable[[], Executor], interrupt: Interrupt,
    *, force: bool, retry_failed: bool,
) -> int:  # fmt: skip
    """Run the cases that `folder` has no row of; return their number.

    Raises
    ------
    KeyboardInterrupt : the user has asked to stop, once (the running cases are finished then) or twice.
    """
    from bench_mtl.cli.progress import reporter
    from bench_mtl.engine.suite import one_of_each
    from bench_mtl.results import Store, plan_suite
    from bench_mtl.runner import run_cases

    plan = plan_suite(folder, suite, cases, force=force, retry_failed=retry_failed)
    if len(plan.waiting) < len(cases):
        say(f"{len(cases) - len(plan.waiting)} of {len(cases)} cases are done already")
    if not plan.has_changes and not plan.waiting:
        return 0
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(make_executor()) if plan.waiting else None
        if executor is not None:
            mistake = executor.find_mistake(one_of_each(plan.waiting))
            if mistake is not None:
                raise InputError(mistake)  # mistakes end here, before anything is written
        store = stack.enter_context(Store.create(folder, suite))
        waiting = store.apply(plan)
        if executor is not None:
            with reporter(waiting, store.durations(), executor.capacity) as show, interrupt:
                run_cases(waiting, store, executor=executor, on_start=show.start, on_outcome=show.end, should_stop=interrupt.asks)
            if show.done < len(waiting):
                raise KeyboardInterrupt
    return len(waiting)


def _decisive_cases(suite: Suite, cases: list[Case], folder: Path) -> list[Case]:
    """Return the runs of the fastest solvers that are made again; none before every case has its row."""
    from bench_mtl.results import FILE_NAME, Store
    from bench_mtl.results.decisive import decisive_cases

    if not suite.repeat_fastest or not (folder / FILE_NAME).is_file():
        return []
    with Store.open(folder) as store, store.snapshot():
        runs = store.runs()
        if not {case.key for case in cases} <= set(runs["case_key"]):
            return []
        return decisive_cases(cases, runs, store.samples(), suite.targets, suite.repeat_fastest)


def _report_is_current(folder: Path) -> bool:
    """Return whether the report there was written after the last change of the results."""
    from bench_mtl.results import FILE_NAME

    report, results = folder / "report.md", folder / FILE_NAME
    unfinished = results.with_name(f"{FILE_NAME}-wal")  # while somebody else reads, changes may wait there
    if unfinished.exists() or not report.is_file():
        return False
    return report.stat().st_mtime_ns >= results.stat().st_mtime_ns
