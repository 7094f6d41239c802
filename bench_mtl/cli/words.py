"""What commands say of a problem before it is solved, of its solution, and of what code of either has raised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench_mtl.cli.console import say
from bench_mtl.core.errors import plural
from bench_mtl.core.text import LONGEST_LINE, one_line

if TYPE_CHECKING:
    from bench_mtl.core.types import Array, Place
    from bench_mtl.model.protocols import Problem

#: A norm that is this close to its bound is at it.
_AT_THE_BOUND = 1.0 - 1e-6


def say_problem(name: str, problem: Problem) -> None:
    """Say how large a problem is, and what was done to its data."""
    design, m = getattr(problem, "design", None), int(problem.dimensions["m"])
    sizes = ", ".join(f"{key} = {value}" for key, value in problem.dimensions.items())
    if design is not None:
        rows = plural(design.sizes[0] if design.is_shared else design.n_examples, "row")
        tasks = f"that {m} tasks share" if design.is_shared and m > 1 else f"of {plural(m, 'task')}"
        sizes = f"{rows} {tasks}, {plural(design.n_features, 'feature')}"
    say(f"{name}: {sizes}")
    for note in problem.notes:
        say(f"note: {one_line(note, LONGEST_LINE)}")


def say_solution(problem: Problem, point: Array | None) -> None:
    """Say how well a solution fits its examples, and whether its bounds bind: what the next radius or penalty is chosen by."""
    from bench_mtl.model.fit_problem import FitProblem
    from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
    from bench_mtl.model.squared_norms import PenaltyAndRidge

    if not isinstance(problem, FitProblem) or point is None or problem.is_in_shards:
        return
    what = "of the squares of the targets not explained" if not problem.loss.is_of_labels else "of the predictions wrong"
    say(f"training error: {problem.training_error(point):.4g} {what}")
    stack = problem.regulariser
    for part, matrix in zip(stack.parts, point, strict=True) if isinstance(stack, Stacked) else [(stack, point)]:
        if isinstance(part, PenaltyAndRidge):
            part = part.penalty
        if isinstance(part, Penalty):
            say(f"penalty {part.weight:.6g}: from {problem.largest_penalty(part.norm):.6g} on the solution is 0")
        elif isinstance(part, Constraint):
            size = part.norm.value(matrix)
            rest = "binds" if size >= part.radius * _AT_THE_BOUND else f"does not bind: from the solution's norm, {size:.6g}, on none does"
            say(f"radius {part.radius:.6g} {rest}")


def say_places(places: Sequence[Place]) -> None:
    """Print where an exception was raised on standard error: two lines a line of code; nothing where nobody knows."""
    from bench_mtl.engine.places import traceback_lines

    for line in traceback_lines(places):
        say(line, error=True)


def say_tracebacks(folder: Path) -> None:
    """Print the reasons of the listed runs of status `error` in a folder on standard error, each with the lines of code it came from."""
    from bench_mtl.core.types import Status
    from bench_mtl.results import Store

    with Store.open(folder) as store, store.snapshot():
        runs, places = store.runs(), store.places()
    failed = runs[runs["status"] == Status.ERROR]
    for run, problem, solver, reason in zip(*(failed[name] for name in ("id", "problem_label", "solver_label", "reason")), strict=True):
        say(one_line(f"{problem} | {solver}: {reason}", LONGEST_LINE), error=True)
        say_places(places.get(run, ()))


def at(places: Sequence[Place]) -> str:
    """Return where an exception was raised as the end of a sentence, `` (solvers/mine.py:31)``; empty where nobody knows."""
    from bench_mtl.engine.places import place_text

    return f" ({place_text(places)})" if places else ""
