"""`bench-mtl certify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_mtl.cli.console import answer, answer_json
from bench_mtl.cli.options import EXIT_FAILED, NearChoice, json_option, key_values, repeatable
from bench_mtl.core.errors import InputError, unknown

if TYPE_CHECKING:
    import cvxpy


@click.command()
@click.argument("model", metavar="FILE.py:NAME")
@click.option("--solver", help="A solver of CVXPY, by CVXPY's name; CVXPY's choice by default.")
@click.option("--judge", type=NearChoice(["value", "answer"]), default="value", show_default=True, help="answer: no second solve.")
@repeatable("--bound", "VARIABLE=NUMBER", "The largest modulus of its entries; taken on trust.")
@repeatable("--option", "KEY=VALUE", "Option of the solver, e.g. eps=1e-6.")
@click.option("--gp", is_flag=True, help="The model is a geometric programme.")
@json_option
def certify(model: str, solver: str | None, judge: str, bound: tuple[str, ...], option: tuple[str, ...], gp: bool) -> int:
    """Enclose the optimal value of the CVXPY problem NAME that FILE.py makes; the file is run.

    Exit code 0: both bounds are proven; 1: one is not.

    \b
    Examples:
      bench-mtl certify portfolio.py:problem
      bench-mtl certify portfolio.py:problem --solver SCS --option eps=1e-4 --judge answer
    """
    from bench_mtl.enclosures import certify as enclose

    problem = _problem(model)
    names = {variable.name(): variable for variable in problem.variables()}
    largest = key_values(bound, "--bound")
    for name in largest.keys() - names:
        raise unknown("variable", name, list(names))
    bounds = {names[name]: value for name, value in largest.items()}
    enclosure = enclose(problem, solver=solver, judge=judge, bounds=bounds, gp=gp, **key_values(option, "--option"))
    answer(str(enclosure))
    fields = ("lower", "upper", "relative_gap", "value", "status", "why")
    values = {variable.name(): value for variable, value in enclosure.repaired_values.items()}
    answer_json(lambda: {name: getattr(enclosure, name) for name in fields} | {"values": values})
    return 0 if enclosure.relative_gap < float("inf") else EXIT_FAILED


def _problem(text: str) -> cvxpy.Problem:
    """Run a file, and return its problem of the name after the colon.

    Raises
    ------
    InputError : there is no such file or name, the file raises, or the name is of something else.
    """
    import runpy

    import cvxpy

    file, colon, name = text.rpartition(":")
    path = Path(os.path.expanduser(file))
    if not colon or not name.isidentifier() or path.suffix != ".py":
        raise InputError(f"the model must be FILE.py:NAME, not '{text}'")
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        names = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        raise InputError(f"{path} does not run: {type(error).__name__}: {' '.join(str(error).split())}") from error
    problems = {key: value for key, value in names.items() if isinstance(value, cvxpy.Problem)}
    if name not in problems:
        raise unknown(f"problem of {path.name}", name, problems)
    return problems[name]
