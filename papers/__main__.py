"""`python -m papers`: runs an experiment and writes its report, or writes a report again from its rows."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench_mtl import BenchError, InputError, load_registry
from bench_mtl.core.checks import whole_number
from bench_mtl.report import replace_files
from bench_mtl.results import Outcome
from bench_mtl.runner import Interrupt, Setting, executor_for, run_cases
from papers.cells import Cell, cells_of
from papers.index import PLACES, experiment
from papers.overview import folders_of_cells, overview_files
from papers.report import differences_of, differing_lines, write_report
from papers.store import FILE_NAME, WITH_OUTCOME, CellStore

_USAGE = """\
python -m papers NAME [--scale small|full]   run the experiment NAME; cells that have a row are not run again
python -m papers report FOLDER [--check]     write its report again from its rows, or compare; of many, the table in README.md too
python -m papers --list                      list the experiments"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0, or 1 where a cell has no outcome or a report is not what its rows give, 2 for bad input, 130 where interrupted."""
    parser = argparse.ArgumentParser("python -m papers", usage=_USAGE, description="The experiments of the papers, run again.")
    parser.add_argument("name", nargs="?", help="of an experiment; or `report`")
    parser.add_argument("folder", nargs="?", type=Path, help="of `report`: one that holds cells, or folders that do")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true", help="of `report`: write nothing, show what differs")
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--data-dir", type=Path, help="with the files of data sets")
    parser.add_argument("--out", type=Path, help="output folder; results/NAME by default")
    parser.add_argument("--slots", type=int, default=1, help="cells that run at once, each on a processor of its own")
    parser.add_argument("--from", dest="sources", type=Path, action="append", default=[], help="folder to take cells over from")
    parser.add_argument("--force", action="store_true", help="run everything again")
    parser.add_argument("--retry-failed", action="store_true", help="run again what has no outcome")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.list:
            return _list()
        if chosen.name is None:
            parser.error("give the name of an experiment")
        if chosen.name == "report":
            if chosen.folder is None:
                parser.error("give the folder of the report")
            return _check(chosen.folder) if chosen.check else _write(chosen.folder)
        if chosen.folder is not None or chosen.check:
            parser.error("a folder and --check are for `report`: an experiment takes --out")
        whole_number("--slots", chosen.slots, minimum=1)
        return _run(chosen)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; what has finished is stored, the same command (without --force) goes on from there", file=sys.stderr)
        return 130


def _list() -> int:
    for name in PLACES:
        each = experiment(name)
        print(f"{name}: {each.title} ({each.source})")
        for scale, of in each.scales.items():
            print(textwrap.fill(f"{scale}, {len(of.grid)} cells: {of.sentence}", 140, initial_indent="  ", subsequent_indent="    "))
    return 0


def _folders(folder: Path) -> list[Path]:
    return [folder] if (folder / FILE_NAME).is_file() else folders_of_cells(folder)


def _write(folder: Path) -> int:
    folders = _folders(folder)
    for each in folders:
        print(f"report: {write_report(each)[0]}")
    if folders != [folder] and (overview := overview_files(folder)):
        replace_files(folder, overview)
        print(f"verdicts of all: {folder / 'README.md'}")
    return 0


def _check(folder: Path) -> int:
    folders = _folders(folder)
    lines = [line for each in folders for line in differences_of(each)]
    lines += differing_lines(folder, overview_files(folder) if folders != [folder] else {})
    print("\n".join(lines) or "every line is what the rows give")
    return 1 if lines else 0


def _run(chosen: argparse.Namespace) -> int:
    if chosen.force and chosen.sources:
        raise InputError("--force runs all cells again, and --from takes some over: give one of them")
    cells = cells_of(experiment(chosen.name), chosen.scale, load_registry(), chosen.data_dir)
    folder = chosen.out or Path("results") / chosen.name
    make_executor = executor_for(Setting(1, None, chosen.data_dir), slots=chosen.slots)
    for source in chosen.sources:
        with CellStore(source):  # which has to be there before a new one is made
            pass
    with CellStore(folder, chosen.name, writes=True) as store:
        for source in chosen.sources:
            print(f"{store.take_over(cells, source)} cells taken over from {source}")
        waiting = store.plan(cells, force=chosen.force, retry_failed=chosen.retry_failed)
        print(f"{len(cells) - len(waiting)} of {len(cells)} cells are done already")
        if waiting:
            done: list[Cell] = []
            interrupt = Interrupt(at_once=False, notify=partial(print, file=sys.stderr, flush=True))
            with make_executor() as executor, interrupt:
                run_cases(waiting, store, executor=executor, on_outcome=partial(_say, len(waiting), done), should_stop=interrupt.asks)
            if len(done) < len(waiting):
                raise KeyboardInterrupt
    report, statuses = write_report(folder, scale=chosen.scale)
    print(f"report: {report}; " + ", ".join(f"{count} {status}" for status, count in statuses.items()))
    return 0 if set(statuses) <= set(WITH_OUTCOME) else 1


def _say(count: int, done: list[Cell], cell: Cell, outcome: Outcome) -> None:
    done.append(cell)
    print(f"{len(done)}/{count} {cell.title}: {outcome.record.status}, {outcome.record.times.solve:.1f} s", flush=True)


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
