"""`bench-mtl path`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from bench_mtl.cli import completion
from bench_mtl.cli.console import answer, answer_json, say
from bench_mtl.cli.failures import at, raising_here
from bench_mtl.cli.options import (
    A_PATH,
    EXIT_FAILED,
    allowed_threads,
    data_spec,
    json_option,
    key_values,
    limits_of,
    problem_options,
    quiet_option,
)
from bench_mtl.cli.output import replacing, writing_to
from bench_mtl.cli.words import say_problem
from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LINE, csv_cell, one_line, outward

if TYPE_CHECKING:
    from bench_mtl.engine.regularisation_path import PathPoint
    from bench_mtl.model.protocols import Problem


@click.command()
@click.argument("problem", shell_complete=completion.problems)
@click.argument("solver", shell_complete=completion.solvers)
@click.option(
    "--over",
    required=True,
    metavar="KEY=V1,V2,...",
    help="Parameter of the problem and its values, e.g. radius=0.1,1,10.",
)
@click.option("--target", type=float, default=1e-3, show_default=True, help="Relative gap to prove for every value.")
@click.option("--cold", is_flag=True, help="Start every value from zero instead of from its neighbour's solution.")
@click.option("--csv", "csv_file", type=A_PATH, help="Write the table to this file.")
@problem_options
@quiet_option
@json_option
def path(
    problem: str, solver: str, data: str, over: str, data_option: tuple[str, ...], param: tuple[str, ...], option: tuple[str, ...],
    preprocess: tuple[str, ...], target: float, seconds: float, iterations: int | None, cold: bool, seed: int, threads: int,
    csv_file: Path | None, data_dir: Path | None, plugins: Path | None,
) -> int:  # fmt: skip
    """Solve PROBLEM with SOLVER for several values of a parameter, each from its neighbour's solution, each certified.

    --quiet leaves the table, whose lines come as the values are solved.

    Exit code 0: no value's run is wrong, crashed or error, and the solver fits the problem; 1: one is, or the solver does not fit; 2: bad
    usage or input; 4: a bug of bench-mtl; 130: interrupted. A value whose target is not proven has a line that says why.

    \b
    Examples:
      bench-mtl path l1inf_hinge projected_subgradient --data scene --over radius=0.1,1,10 --target 1e-2
      bench-mtl path sparse_low_rank accelerated_gradient --data digits --over radius=1,2,5,10 --param penalty=1
    """
    from threadpoolctl import threadpool_limits

    from bench_mtl.cli.documents import problem_document, run_document
    from bench_mtl.core.checks import real_number, whole_number
    from bench_mtl.core.types import Status, Tolerance
    from bench_mtl.data.catalogue import load
    from bench_mtl.engine.environment import pinned_threads
    from bench_mtl.engine.registry import load_registry, make_problem
    from bench_mtl.engine.regularisation_path import regularisation_path
    from bench_mtl.runner.planning import require_importable

    tolerance = Tolerance(real_number("--target", target, strict=True))
    limits = limits_of(seconds, iterations)
    allowed_threads(threads)
    key, values = _values(over)
    parameters = key_values(param, "--param")
    if key in parameters:
        raise InputError(f"--param {key} is the parameter that --over varies: give it once")
    require_importable(plugins)
    registry = load_registry(plugins)
    spec = data_spec(data, data_option, preprocess, data_dir)
    name, options = registry.meant(solver, key_values(option, "--option"))
    chosen = registry.solver(name, options)
    family = registry.problem(problem)
    tasks = load(spec, data_dir=data_dir, seed=whole_number("--seed", seed), prices=family.takes_prices)

    def instance(value: float) -> Problem:
        with raising_here("the problem cannot be built", registry):
            return make_problem(family, tasks, {**parameters, key: value})

    first = instance(values[0])
    with replacing("--csv", "table", csv_file) if csv_file is not None else contextlib.nullcontext() as file:
        say_problem(problem, first)
        with pinned_threads(threads), threadpool_limits(threads):
            with raising_here("warm-up failed", registry):
                if chosen.incompatibility(first) is None:
                    chosen.warm_up()
            points = regularisation_path(
                instance, values, chosen, tolerance=tolerance, limits=limits, warm_start=not cold, on_point=_live(key)
            )
        say(f"total: {sum(point.record.times.solve for point in points):.3g} s")
        if file is not None and csv_file is not None:
            _write(file, csv_file, key, points)
    if csv_file is not None:
        say(f"table written to {csv_file}")
    answer_json(
        lambda: {
            **problem_document(problem, first),
            "solver": name,
            "label": chosen.label,
            "options": options,
            "parameters": parameters,
            "over": key,
            "target": target,
            "points": [{"value": point.value, **run_document(point.record), "structure": _structure(point)} for point in points],
            "csv": csv_file,
        }
    )
    statuses = [point.record.status for point in points]
    is_unfit = all(status is Status.SKIPPED for status in statuses)
    return EXIT_FAILED if is_unfit or any(status.is_failure for status in statuses) else 0


def _values(over: str) -> tuple[str, list[float]]:
    key, equals, texts = over.partition("=")
    if not equals or not key:
        raise InputError(f"--over must be KEY=V1,V2,..., not '{over}'")
    values = []
    for text in texts.split(","):
        try:
            values.append(float(text))
        except ValueError:
            raise InputError(f"--over {key} must be numbers with commas between them, not '{texts}'") from None
    return key, values


_COLUMNS = {"status": 10, "objective": 15, "dual bound": 15, "rel. gap": 9, "seconds": 9, "iterations": 10}


def _live(key: str) -> Callable[[PathPoint], None]:
    """Prints each point as a line of a table, and why a run was no success below it; the head comes with the first."""
    headed = False

    def show(point: PathPoint) -> None:
        nonlocal headed
        cells = _cells(point)
        if not headed:
            answer(" ".join([f"{key:>10}", *_aligned(_COLUMNS), *(f"{name:>9}" for name in list(cells)[len(_COLUMNS) :])]))
            headed = True
        texts = [_text(name, value) for name, value in cells.items()]
        answer(" ".join([f"{point.value:>10.6g}", *_aligned(texts), *(f"{text:>9}" for text in texts[len(_COLUMNS) :])]))
        if point.record.status != "verified":
            answer(f"{'':>10} {one_line(point.record.reason, LONGEST_LINE)}{at(point.record.places)}")

    return show


def _aligned(texts: Iterable[str]) -> list[str]:
    return [f"{text:>{width}}" for text, width in zip(texts, _COLUMNS.values(), strict=False)]


def _cells(point: PathPoint) -> dict[str, Any]:
    """Return the table's columns but the first; what was not reached is None."""
    record, best = point.record, point.record.best
    cells = {
        "status": str(record.status),
        "objective": None if best is None else best.primal,
        "dual bound": None if best is None else best.dual,
        "rel. gap": None if best is None else best.relative_gap,
        "seconds": record.times.solve,
        "iterations": record.samples[-1].step if record.samples else None,
    }
    return cells | _structure(point)


def _structure(point: PathPoint) -> dict[str, int]:
    """Return what regularisation makes small; nothing where there is no solution."""
    from bench_mtl.engine.regularisation_path import structure

    return {} if point.record.solution is None else structure(point.record.solution, point.parts)


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in ("objective", "dual bound"):
        return f"{outward(value, 9, is_upper=name == 'objective'):.9g}"
    return format(value, {"rel. gap": ".1e", "seconds": ".4f"}.get(name, ""))


def _write(file: IO[bytes], csv_file: Path, key: str, points: list[PathPoint]) -> None:
    """The points as CSV, every number with all its digits."""
    import csv
    import io

    rows = [{key: point.value, **_cells(point)} for point in points]
    names = {name: csv_cell(name.replace("rel. ", "relative_").replace(" ", "_")) for row in rows for name in row}
    with writing_to("--csv", "table", csv_file):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.DictWriter(text, list(names.values()))
        writer.writeheader()
        for row in rows:
            writer.writerow({names[name]: value for name, value in row.items()})
        text.flush()
        text.detach()
