"""`bench-mtl certify`."""

from __future__ import annotations

import functools
import os
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from bench_mtl.cli.asked import Asked, key_values, problem_options
from bench_mtl.cli.console import Answer, answer, say
from bench_mtl.cli.options import A_PATH, EXIT_FAILED, NearChoice, repeatable
from bench_mtl.core.errors import InputError, unknown
from bench_mtl.data.readers.common import naming, parsing, readable_file
from bench_mtl.enclosures import certify as enclose

if TYPE_CHECKING:
    import cvxpy


@click.command()
@click.argument("problem", metavar="FILE.py:NAME|PROBLEM")
@click.argument("coefficients", required=False, type=A_PATH)
@click.option("--solver", help="Of CVXPY, by CVXPY's name (CVXPY's choice by default); of a problem that of the lower bound (auto).")
@click.option(
    "--judge",
    type=NearChoice(["value", "answer"]),
    default="value",
    show_default=True,
    help="value: the tightest bounds, perhaps by a second solve; answer: bounds by points near the answer.",
)
@repeatable("--bound", "VARIABLE=NUMBER", "The largest modulus of its entries; taken on trust.")
@click.option("--gp", is_flag=True, help="The model is a geometric programme.")
@functools.partial(problem_options, is_optional=True)
def certify(
    asked: Asked | None, problem: str, coefficients: Path | None, solver: str | None, judge: str, bound: tuple[str, ...],
    option: tuple[str, ...], gp: bool,
) -> Answer:  # fmt: skip
    """Enclose the optimal value of the CVXPY problem NAME that FILE.py makes; the file is run.

    Or prove the gap of COEFFICIENTS from anywhere, features x tasks in a .npy or .npz file, to PROBLEM with its --data and --param.

    \b
    Examples:
      bench-mtl certify portfolio.py:problem
      bench-mtl certify portfolio.py:problem --solver SCS --option eps=1e-4 --judge answer
      bench-mtl certify l1_ball_glm lasso.npz --data mine.npz --param penalty=0.1
    """
    is_model = ".py" in problem
    if is_model and (asked is not None or coefficients is not None):
        raise InputError(f"COEFFICIENTS and --data are for a problem of bench-mtl, and '{problem}' is a model of CVXPY")
    if not is_model and (asked is None or coefficients is None):
        missing = [name for name, value in (("COEFFICIENTS", coefficients), ("--data", asked)) if value is None]
        words = "bench-mtl certify PROBLEM COEFFICIENTS --data DATA, or bench-mtl certify FILE.py:NAME of a model of CVXPY"
        raise InputError(f"{' and '.join(missing)} of '{problem}' must be given: {words}")
    if asked is not None and coefficients is not None:
        if judge != "value" or bound or gp:
            raise InputError("--judge, --bound and --gp are for models of CVXPY")
        asked, chosen = asked.chosen(solver or "auto")
        with asked.pinned():
            enclosure = enclose(asked.build(), _array(coefficients), solver=chosen, limits=asked.limits)
    else:
        model = _model(problem)
        names = {variable.name(): variable for variable in model.variables()}
        if len(names) < len(model.variables()):
            raise InputError(f"{problem}: two variables of the model have one name")
        largest = key_values(bound, "--bound")
        for name in largest.keys() - names:
            raise unknown("variable", name, list(names))
        bounds = {names[name]: value for name, value in largest.items()}
        options = key_values(option, "--option")
        if own := [name for name in ("solver", "judge", "bounds", "gp", "model", "values") if name in options]:
            raise InputError(f"--option {own[0]} is none of the solver: bench-mtl certify --help lists what has an option of its own")
        enclosure = enclose(model, solver=solver, judge=judge, bounds=bounds, gp=gp, **options)
    first, *rest = str(enclosure).splitlines()
    answer(first)
    for line in rest:
        say(line)
    document = {name: getattr(enclosure, name) for name in ("lower", "upper", "relative_gap", "value", "status", "why")}
    values = {variable.name(): value for variable, value in enclosure.repaired_values.items()}
    return 0 if enclosure.relative_gap < float("inf") else EXIT_FAILED, lambda: document | ({} if asked else {"values": values})


def _array(path: Path) -> Any:
    """Return the array of a file: of several the one that is called W, coef_ or solution (`solve --save`).

    Raises InputError: there is no such file, or it has no such array.
    """
    with naming(readable_file(path)), parsing("an array of NumPy"):
        arrays = np.load(path, allow_pickle=False)
        if isinstance(arrays, np.ndarray):
            return arrays
        arrays = dict(arrays)
    names = [name for name in arrays if name in ("W", "coef_", "solution")] or list(arrays)
    if len(names) != 1:
        raise InputError(f"{path} must have one array, or one that is called W, coef_ or solution, not {', '.join(arrays) or 'none'}")
    return arrays[names[0]]


def _model(text: str) -> cvxpy.Problem:
    """Run a file, and return its problem of the name after the colon.

    Raises InputError: there is no such file or name, the file raises, or the name is of something else.
    """
    import cvxpy

    file, colon, name = text.rpartition(":")
    path = Path(os.path.expanduser(file))
    if not colon or not name.isidentifier() or path.suffix != ".py":
        raise InputError("the model", text, "FILE.py:NAME")
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
