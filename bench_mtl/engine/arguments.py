"""What `run` and `compare` are given, in the short forms that people write: names and numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench_mtl.core.checks import real_number
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Tolerance
from bench_mtl.model.protocols import Problem, Solver

if TYPE_CHECKING:
    from bench_mtl.engine.registry import Registry


def a_problem(problem: object, name: str = "problem") -> Problem:
    """Return `problem` if it is one. Raises InputError where it is not; `name` is what the argument is called."""
    if not isinstance(problem, Problem):
        raise InputError(name, problem, "a Problem, such as L1InfHinge(data, radius=2.0)")
    return problem


def a_solver(solver: object, registry: Registry | None = None, name: str = "solver") -> Solver:
    """Return a solver, or the one of this name or alias with its default options, looked up in a registry, by default what is installed.

    Raises InputError where no solver has this name, or it is neither a solver nor a name.
    """
    if isinstance(solver, str):
        from bench_mtl.engine.registry import load_registry

        return (registry or load_registry()).solver(solver)
    if not isinstance(solver, Solver):
        raise InputError(name, solver, "a Solver, such as Auto(), or the name of one")
    return solver


def a_tolerance(tolerance: object) -> Tolerance:
    """Return a tolerance, from the relative gap where that is given, or the default for None.

    Raises InputError where it is not a number above zero.
    """
    if tolerance is None:
        return Tolerance()
    whole = tolerance if isinstance(tolerance, Tolerance) else Tolerance(tolerance)  # type: ignore[arg-type]
    return replace(whole, relative_gap=real_number("tolerance", whole.relative_gap, strict=True))


def the_limits(limits: object) -> Limits:
    """Return limits, of the seconds where these are given, or the default. Raises InputError where it is not a number above zero."""
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        return Limits(seconds=real_number("limits", limits, strict=True))
    for name, value in vars(limits).items():
        if value is not None:
            real_number(f"{name} of limits", value)
    return limits
