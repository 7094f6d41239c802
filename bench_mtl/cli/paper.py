"""`bench-mtl paper`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli import completion
from bench_mtl.cli.console import answer_json, say, warn
from bench_mtl.cli.options import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    NearChoice,
    data_dir_option,
    fail,
    isolation_option,
    json_option,
    quiet_option,
)

if TYPE_CHECKING:
    from bench_mtl.papers import Cell, CellStore
    from bench_mtl.runner import Executor
    from bench_mtl.runner.interrupt import Interrupt


@click.command()
@click.argument("name", shell_complete=completion.papers)
@click.option("--scale", type=NearChoice(["small", "full"]), default="small", show_default=True, help="small ends within minutes.")
@click.option("--out", type=click.Path(path_type=Path), help="Output folder; results/NAME by default.")
@click.option(
    "--from", "sources", type=click.Path(path_type=Path), multiple=True, metavar="FOLDER",
    help="Take over cells from another experiment's folder, where both have them; may be given again.",
)  # fmt: skip
@click.option("--slots", type=int, default=1, show_default=True, help="Cells that run at once, each on a processor of its own.")
@isolation_option
@click.option("--force", is_flag=True, help="Run everything again.")
@click.option("--retry-failed", is_flag=True, help="Run again what crashed or ended in an error.")
@data_dir_option
@quiet_option
@json_option
def paper(
    name: str,
    scale: str,
    out: Path | None,
    sources: tuple[Path, ...],
    slots: int,
    isolation: str,
    force: bool,
    retry_failed: bool,
    data_dir: Path | None,
) -> int:
    """Run the paper's experiment NAME (`bench-mtl list papers`) and write its report: the published numbers beside ours.

    A cell that has a row is not run again: the same command goes on from where it was stopped, and the full scale takes over the cells of
    the small one. Tables of one paper may share cells: --from takes over those that another one has computed with the same code. Ctrl-C
    once finishes the running cells and stops, twice stops now.

    Exit code 0: no cell crashed or ended in an error; 1: one did; 2: bad usage or input; 3: it could not go on to its end, and the same
    command resumes it; 4: a bug of bench-mtl; 130: interrupted.

    \b
    Examples:
      bench-mtl paper quattoni-fig1
      bench-mtl paper quattoni-fig1 --scale full --slots 2
      bench-mtl paper chen-table5 --scale full --from results/chen-table2
    """
    from bench_mtl.core.checks import whole_number
    from bench_mtl.core.errors import InputError
    from bench_mtl.core.types import Status
    from bench_mtl.data.catalogue import named_directory
    from bench_mtl.engine.registry import load_registry
    from bench_mtl.papers import CellStore, cells_of, experiment, write_paper_report
    from bench_mtl.runner import Setting, executor_for
    from bench_mtl.runner.interrupt import Interrupt

    whole_number("--slots", slots, minimum=1)
    if force and sources:
        raise InputError("--force runs all cells again, and --from takes some over: give one of them")
    chosen = experiment(name)
    cells = cells_of(chosen, scale, load_registry(), data_dir)
    folder = out or Path("results") / name
    setting = Setting(1, None, named_directory(data_dir), guarded=folder.absolute())
    make_executor = executor_for(setting, slots=slots, isolation=isolation)
    interrupt = Interrupt(at_once=isolation == "inline", notify=warn)
    for source in sources:
        CellStore.open(source, None).close()  # so that a wrong one leaves nothing behind
    with CellStore.create(folder, name) as store:
        for source in sources:
            say(f"{store.take_over(cells, source)} cells taken over from {source}")
        waiting = store.plan(cells, force=force, retry_failed=retry_failed)
        if len(waiting) < len(cells):
            say(f"{len(cells) - len(waiting)} of {len(cells)} cells are done already")
        if waiting:
            try:
                with make_executor() as executor:
                    _run(waiting, cells, store, executor, interrupt)
            except KeyboardInterrupt:
                return fail("interrupted; what has finished is stored, the same command goes on from there", EXIT_INTERRUPTED)
        report = write_paper_report(store, chosen, scale, cells)
        say(f"report: {report}")
        statuses = Counter(str(row["status"]) for row in store.rows(cells))
    say(", ".join(f"{count} {status}" for status, count in statuses.items()))
    answer_json(lambda: {"experiment": name, "scale": scale, "folder": folder, "report": [report], "statuses": statuses})
    return EXIT_FAILED if any(Status(status).is_failure for status in statuses) else 0


def _run(waiting: list[Cell], cells: list[Cell], store: CellStore, executor: Executor, interrupt: Interrupt) -> None:
    """Run what is waiting.

    Raises
    ------
    KeyboardInterrupt : the user has asked to stop, once (the running cells are finished then) or twice.
    """
    from bench_mtl.cli.progress import reporter
    from bench_mtl.runner import run_cases

    with reporter(waiting, store.durations(cells), executor.capacity) as show, interrupt:
        run_cases(waiting, store, executor=executor, on_start=show.start, on_outcome=show.end, should_stop=interrupt.asks)
    if show.done < len(waiting):
        raise KeyboardInterrupt
