"""`bench-mtl run` and `bench-mtl report`."""

from __future__ import annotations

from pathlib import Path

import click

from bench_mtl.cli.options import EXIT_FAILED, EXIT_INTERRUPTED, data_dir_option, fail, plugins_option
from bench_mtl.console import say


@click.command()
@click.argument("suite")
@click.option("--out", type=click.Path(path_type=Path), help="Output folder; results/SUITE by default.")
@data_dir_option
@plugins_option
def run(suite: str, out: Path | None, data_dir: Path | None, plugins: Path | None) -> int:
    """Run SUITE (a shipped name or a TOML file), store a row for every case and write the report.

    Cases that have a row already are not run again: the same command resumes an interrupted run.

    \b
    Examples:
      bench-mtl run quick
      bench-mtl run my-suite.toml --out results/mine --plugins my-plugins
    """
    from bench_mtl.progress import reporter
    from bench_mtl.registry import load_registry
    from bench_mtl.report import write_report
    from bench_mtl.runner import run_cases
    from bench_mtl.store import Store
    from bench_mtl.suite import expand
    from bench_mtl.suite_file import read_suite

    chosen = read_suite(suite)
    registry = load_registry(plugins)
    cases = expand(chosen, registry)
    for instance in {case.instance.key: case.instance for case in cases}.values():
        problem = instance.build(registry, data_dir)  # bad data end here, before anything is written
        for note in problem.notes:
            say(f"{instance.label}: {note}")
    folder = out or Path("results") / chosen.name
    try:
        with Store.create(folder, chosen) as store:
            finished = store.finished()
            waiting = [case for case in cases if case.key not in finished]
            if len(waiting) < len(cases):
                say(f"{len(cases) - len(waiting)} of {len(cases)} cases are done already")
            with reporter(len(waiting)) as show:
                run_cases(waiting, store, plugins=plugins, data_dir=data_dir, on_start=show.start, on_outcome=show.end)
        _print_report(folder, write_report(folder))
    except KeyboardInterrupt:
        return fail("interrupted; what has finished is stored, the same command goes on from there", EXIT_INTERRUPTED)
    return _exit_code(folder)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def report(folder: Path) -> int:
    """Write the report of the results in FOLDER again: report.md, tables/, figures/.

    \b
    Example:
      bench-mtl report results/quick
    """
    from bench_mtl.report import write_report

    _print_report(folder, write_report(folder))
    return _exit_code(folder)


def _print_report(folder: Path, path: Path) -> None:
    from bench_mtl.report import summary_text

    say()
    say(summary_text(folder))
    say(f"\nreport: {path}")


def _exit_code(folder: Path) -> int:
    from bench_mtl.store import Store
    from bench_mtl.types import Status

    with Store.open(folder) as store:
        statuses = [Status(status) for status in store.runs()["status"]]
    failed = sum(status.is_failure for status in statuses)
    if failed:
        click.echo(f"{failed} of {len(statuses)} runs failed (wrong, crashed or error); the report says why", err=True)
    return EXIT_FAILED if failed else 0
