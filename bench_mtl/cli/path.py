"""`bench-mtl path`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bench_mtl.cli.asked import Asked, at, problem_options, say_problem
from bench_mtl.cli.console import Answer, answer, run_document, say
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, problems, replacing, require_replaceable, solvers
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LINE, csv_cell, one_line, outward
from bench_mtl.core.types import Status
from bench_mtl.data.catalogue import load
from bench_mtl.engine.proofs import format_gap
from bench_mtl.engine.regularisation_path import PathPoint, regularisation_path, structure
from bench_mtl.model.protocols import Problem


@click.command()
@click.argument("problem", shell_complete=problems)
@click.argument("solver", shell_complete=solvers)
@click.option("--over", required=True, metavar="KEY=V1,V2,...", help="Parameter of the problem and its values, e.g. radius=0.1,1,10.")
@click.option("--target", type=float, default=1e-3, show_default=True, help="Relative gap to prove for every value.")
@click.option("--cold", is_flag=True, help="Start every value from zero instead of from its neighbour's solution.")
@click.option("--csv", "csv_file", type=A_PATH, help="Write the table to this file.")
@problem_options
def path(asked: Asked, solver: str, over: str, cold: bool, csv_file: Path | None) -> Answer:
    """Solve PROBLEM with SOLVER for several values of a parameter, each from its neighbour's solution, each certified.

    A value whose target is not proven has a line that says why. --quiet leaves the table.

    \b
    Examples:
      bench-mtl path l1inf_hinge projected_subgradient --data scene --over radius=0.1,1,10 --target 1e-2
      bench-mtl path sparse_low_rank accelerated_gradient --data digits --over radius=1,2,5,10 --param penalty=1
    """
    key, values = _values(over)
    of, parameters = asked.instance, asked.instance.parameters
    if key in parameters:
        raise InputError(f"--param {key} is the parameter that --over varies: give it once")
    asked, chosen = asked.chosen(solver)
    with asked.raising_here("the data cannot be read"):
        tasks = load(of.data, data_dir=asked.data_dir, seed=of.seed, prices=asked.registry.problem(of.problem).takes_prices)

    def instance(value: float) -> Problem:
        with asked.raising_here("the problem cannot be built"):
            return replace(of, parameters={**parameters, key: value}).build_on(tasks, asked.registry)

    first = instance(values[0])
    require_replaceable("--csv", "table", csv_file)
    say_problem(of.problem, first)
    with asked.pinned(chosen, first):
        points = regularisation_path(
            instance, values, chosen, tolerance=asked.tolerance, limits=asked.limits, warm_start=not cold, on_point=_live(key)
        )
    say(f"total: {sum(point.record.times.setup + point.record.times.solve for point in points):.3g} s")
    if csv_file is not None:
        _write(csv_file, key, points)
        say(f"table written to {csv_file}")
    rows = [{"value": point.value, **run_document(point.record), "structure": _structure(point)} for point in points]
    statuses = [point.record.status for point in points]
    is_unfit = all(status is Status.SKIPPED for status in statuses)
    document = {**asked.document(first, chosen), "parameters": parameters, "over": key, "points": rows, "csv": csv_file}
    return EXIT_FAILED if is_unfit or any(status.is_failure for status in statuses) else 0, lambda: document


def _values(over: str) -> tuple[str, list[float]]:
    key, equals, texts = (part.strip() for part in over.partition("="))
    if not equals or not key:
        raise InputError("--over", over, "KEY=V1,V2,...")
    try:
        return key, [float(text) for text in texts.split(",")]
    except ValueError:
        raise InputError(f"--over {key}", texts, "numbers with commas between them") from None


#: How the columns of the table are written, and how wide they are; all others are whole numbers.
_FORMS = {"status": ">10", "objective": ">15.9g", "dual bound": ">15.9g", "rel. gap": ">9", "seconds": ">9.4f", "iterations": ">10"}


def _live(key: str) -> Callable[[PathPoint], None]:
    """Prints each point as a line of a table, and why a run was no success below it; the head comes with the first."""
    headed = False

    def show(point: PathPoint) -> None:
        nonlocal headed
        cells = _cells(point)
        forms = [_FORMS.get(name, ">9") for name in cells]
        widths = [form.partition(".")[0] for form in forms]
        if not headed:
            answer(" ".join([f"{key:>10}", *map(format, cells, widths)]))
            headed = True
        for name in ("objective", "dual bound"):
            if cells[name] is not None:
                cells[name] = outward(cells[name], 9, is_upper=name == "objective")
        if cells["rel. gap"] is not None:
            cells["rel. gap"] = format_gap(cells["rel. gap"])
        texts = [
            format("-", width) if value is None else format(value, form)
            for value, form, width in zip(cells.values(), forms, widths, strict=True)
        ]
        answer(" ".join([f"{point.value:>10.6g}", *texts]))
        if point.record.status != "verified":
            answer(f"{'':>10} {one_line(point.record.reason, LONGEST_LINE)}{at(point.record.places)}")

    return show


def _cells(point: PathPoint) -> dict[str, Any]:
    """Return the table's columns but the first; what was not reached is None."""
    record, best = point.record, point.record.best
    bounds = (None, None, None) if best is None else (best.primal, best.dual, best.relative_gap)
    iterations = record.samples[-1].step if record.samples else None
    seconds = record.times.setup + record.times.solve
    return dict(zip(_FORMS, (str(record.status), *bounds, seconds, iterations), strict=True)) | _structure(point)


def _structure(point: PathPoint) -> dict[str, int]:
    """Return what regularisation makes small; nothing where there is no solution."""
    return {} if point.record.solution is None else structure(point.record.solution, point.parts)


def _write(path: Path, key: str, points: list[PathPoint]) -> None:
    """Write the points as CSV, every number with all its digits."""
    import pandas as pd

    table = pd.DataFrame([{key: point.value, **_cells(point)} for point in points], dtype=object)
    table.columns = pd.Index([csv_cell(str(name).replace("rel. ", "relative_").replace(" ", "_")) for name in table])
    with replacing("--csv", "table", path) as file:
        table.to_csv(file, index=False, mode="wb")
