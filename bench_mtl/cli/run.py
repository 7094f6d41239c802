"""`bench-mtl run`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_mtl.cli import completion
from bench_mtl.cli.console import answer, answer_json, say, warn
from bench_mtl.cli.failures import say_tracebacks, traceback_option
from bench_mtl.cli.options import (
    A_PATH,
    EXIT_INTERRUPTED,
    data_dir_option,
    fail,
    isolation_option,
    json_option,
    plugins_option,
    quiet_option,
)
from bench_mtl.cli.report import exit_code_of, exit_code_of_report, said_report
from bench_mtl.core.errors import InputError, plural

if TYPE_CHECKING:
    from bench_mtl.engine.suite import Case, Suite
    from bench_mtl.results import Outcome, Plan
    from bench_mtl.results.selection import Selection
    from bench_mtl.runner import Executor
    from bench_mtl.runner.interrupt import Interrupt

#: Rows that are read at a time.
_MANY = 10_000


@click.command()
@click.argument("suite", shell_complete=completion.suites)
@click.option("--out", type=A_PATH, help="Output folder; results/SUITE by default.")
@click.option(
    "--slots", type=int, default=1, show_default=True, help="Cases that run at once, each on processors of its own: at most what there are."
)
@isolation_option
@click.option("--cluster", metavar="local|ADDRESS", help="Run on Dask: workers of this machine, or those of the scheduler at ADDRESS.")
@click.option(
    "--only",
    multiple=True,
    metavar="KEY=PATTERN",
    help="Only cases whose problem, family, solver, seed, repetition or data is like PATTERN (with * and ?). Repeatable.",
)
@click.option("--force", is_flag=True, help="Run everything again.")
@click.option("--retry-failed", is_flag=True, help="Run again what ended as wrong, crashed or error.")
@click.option("--dry-run", is_flag=True, help="Only say which cases would be run.")
@traceback_option
@data_dir_option
@plugins_option
@quiet_option
@json_option
def run(
    suite: str, out: Path | None, slots: int, isolation: str, cluster: str | None, only: tuple[str, ...], force: bool, retry_failed: bool,
    dry_run: bool, traceback: bool, data_dir: Path | None, plugins: Path | None,
) -> int:  # fmt: skip
    """Run SUITE (a shipped name or a TOML file), store a row for every case and write the report.

    A case that has a row is not run again: the same command resumes an interrupted run, and after a change of the suite, of a plug-in
    or of the data only what it touches is run. Ctrl-C once finishes the running cases and stops, twice stops now.

    With --only the other cases stay listed as they are, without a row or with the one they have: the report says how many are missing, and
    the fastest solvers are run again (repeat_fastest) only once all cases have rows. --force and --retry-failed then mean the chosen ones.

    A suite whose threads are more than the processors here is refused: it is meant for a larger machine. --dry-run reads it all the same.

    Exit code 0: no run of the suite is wrong, crashed or error; 1: one is, proven bounds exclude each other, or no solver fits its problem;
    2: bad usage or input, or --only fits no case; 3: it could not go on to its end, and the same command resumes it; 4: a bug of bench-mtl;
    130: interrupted.

    \b
    Examples:
      bench-mtl run quick
      bench-mtl run my-suite.toml --out results/mine --plugins my-plugins
      bench-mtl run quick --only 'solver=pdhg' --only 'problem=*n=160*' --dry-run
      bench-mtl run synthetic --cluster tcp://10.0.0.1:8786
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.core.files import exists, is_dir
    from bench_mtl.data.catalogue import named_directory
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.engine.suite import expand, identified
    from bench_mtl.engine.suite_file import read_suite
    from bench_mtl.results.selection import Selection
    from bench_mtl.runner import Setting, executor_for
    from bench_mtl.runner.interrupt import Interrupt
    from bench_mtl.runner.planning import planned_cases

    whole_number("--slots", slots, minimum=1)
    wish = _Wish(Selection(only, "--only"), force, retry_failed, data_dir)
    chosen = read_suite(suite)
    folder = out or Path("results") / chosen.name
    if exists("--out", folder) and not is_dir("--out", folder):
        raise InputError(f"--out: {folder} is not a folder")
    cases = expand(chosen, load_registry(plugins)) if plugins is None or isolation == "inline" else planned_cases(chosen, plugins)
    cases = identified(cases, data_dir)
    if dry_run:
        return _say_what_waits(chosen, cases, folder, wish)
    # Workers may have been started elsewhere, or be moved there.
    setting = Setting(chosen.threads, plugins and plugins.absolute(), named_directory(data_dir))
    make_executor = executor_for(setting, slots=slots, isolation=isolation, cluster=cluster, notify=warn)
    try:
        interrupt = Interrupt(at_once=isolation == "inline", notify=warn)
        repeats = [] if force else _decisive_cases(chosen, cases, folder)
        made = _run(chosen, [*cases, *repeats], folder, make_executor, interrupt, wish)
        latest = _decisive_cases(chosen, cases, folder)
        if latest != repeats:
            again = replace(wish, force=False, retry_failed=False)
            if waiting := again.plan(folder, chosen, [*cases, *latest]).waiting:
                say(f"the fastest solvers again, {plural(len(waiting), 'run')}")
            made += _run(chosen, [*cases, *latest], folder, make_executor, interrupt, again)
        if traceback:
            say_tracebacks(folder)
        code, contradictions = _reported(folder, is_current=not made and _report_is_current(folder))
    except KeyboardInterrupt:
        return fail("interrupted; what has finished is stored, the same command goes on from there", EXIT_INTERRUPTED)
    answer_json(lambda: {"suite": chosen.name, "made": made, **_results_document(folder), "contradictions": contradictions})
    return code


@dataclass(frozen=True)
class _Wish:
    """Which of a suite's cases a user wants to be run."""

    only: Selection
    force: bool = False
    retry_failed: bool = False
    data_dir: Path | None = None

    def plan(self, folder: Path, suite: Suite, cases: Sequence[Case]) -> Plan:
        """Return what is to be done in `folder`.

        Raises
        ------
        InputError : no case is chosen, or the results there cannot be read.
        """
        from bench_mtl.results import plan_suite
        from bench_mtl.results.selection import chosen_cases

        only = chosen_cases(cases, self.only) if self.only.texts else None
        return plan_suite(folder, suite, cases, force=self.force, retry_failed=self.retry_failed, only=only)


def _reported(folder: Path, *, is_current: bool) -> tuple[int, tuple[str, ...] | None]:
    """Write the report unless it is current, and return the exit code and the contradictions; None where they were not looked for again."""
    from bench_mtl.results import Store

    if not is_current:
        written = said_report(folder)
        return exit_code_of_report(written), written.contradictions
    say(f"nothing to run; report: {folder / 'report.md'}")
    with Store.open(folder) as store:
        return exit_code_of(store.statuses()), None


def _results_document(folder: Path) -> dict[str, Any]:
    """Return what a folder holds now: how many cases it lists, how their runs ended, and each run."""
    from bench_mtl.results import Store

    with Store.open(folder) as store, store.snapshot():
        cases, names = store.meta().get("cases"), tuple(store.columns("runs"))
        runs = [dict(zip(names, row, strict=True)) for rows in store.chunks("runs", _MANY) for row in rows]
        places = store.places()
    return {
        "folder": folder,
        "report": [folder / name for name in ("report.html", "report.md") if (folder / name).is_file()],
        "cases": None if cases is None else int(cases),
        "statuses": Counter(row["status"] for row in runs),
        "runs": [
            {
                "problem": row["problem_label"],
                "family": row["problem"],
                "solver": row["solver_label"],
                **{name: row[name] for name in ("seed", "repetition", "target", "status", "reason")},
                "places": [place._asdict() for place in places.get(row["id"], ())],
                "objective": row["primal"],
                "dual_bound": row["dual"],
                "relative_gap": row["relative_gap"],
                "seconds": row["setup_seconds"] + row["solve_seconds"],
                "iterations": row["iterations"],
            }
            for row in runs
        ],
    }


def _say_what_waits(suite: Suite, cases: list[Case], folder: Path, wish: _Wish) -> int:
    """Print the cases that have no row in `folder`, in the order in which they would be run, and their number."""
    from bench_mtl.cli.documents import case_document

    repeats = [] if wish.force else _decisive_cases(suite, cases, folder)
    plan = wish.plan(folder, suite, [*cases, *repeats])
    number = len(plan.cases) if plan.only is None else len(plan.only)
    for case in plan.waiting:
        answer(case.title)
    again = ", then the fastest solvers again" if suite.repeat_fastest and not repeats and plan.only is None else ""
    answer(f"{len(plan.waiting)} of {plural(number, 'case')} would be run{again}")
    answer_json(lambda: {"suite": suite.name, "folder": folder, "cases": number, "waiting": [case_document(case) for case in plan.waiting]})
    return 0


def _run(suite: Suite, cases: list[Case], folder: Path, make_executor: Callable[[], Executor], interrupt: Interrupt, wish: _Wish) -> int:
    """Run the cases that are wished for and that `folder` has no row of; return their number.

    Raises
    ------
    KeyboardInterrupt : the user has asked to stop, once (the running cases are finished then) or twice.
    """
    from bench_mtl.cli.progress import reporter
    from bench_mtl.data.fingerprint import Watch
    from bench_mtl.engine.suite import one_of_each
    from bench_mtl.results import Store
    from bench_mtl.runner import run_cases

    plan = wish.plan(folder, suite, cases)
    number = len(cases) if plan.only is None else len(plan.only)
    if len(plan.waiting) < number:
        say(f"{number - len(plan.waiting)} of {number} cases are done already")
    if not plan.has_changes and not plan.waiting:
        return 0
    with contextlib.ExitStack() as stack:
        watch = Watch((case.instance.data for case in plan.waiting), wish.data_dir)
        executor = stack.enter_context(make_executor()) if plan.waiting else None
        if executor is not None:
            mistake = executor.find_mistake(one_of_each(plan.waiting))
            if mistake is not None:
                raise InputError(mistake)  # mistakes end here, before anything is written
        store = stack.enter_context(Store.create(folder, suite))
        waiting = store.apply(plan)
        if executor is not None:
            with reporter(waiting, store.durations(), executor.capacity) as show, interrupt:

                def end(case: Case, outcome: Outcome) -> None:
                    show.end(case, outcome)
                    store.void_where_changed(case, watch)

                run_cases(waiting, store, executor=executor, on_start=show.start, on_outcome=end, should_stop=interrupt.asks)
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
