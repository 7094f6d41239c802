"""What people and plans need to know of problems and solvers, as plain data, without the classes themselves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.engine.registry import Registry, problem_parameters, solver_names, solver_options
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.model.protocols import IterativeSolver, Problem, name_of


@dataclass(frozen=True)
class ProblemPlan:
    """A problem with parameters."""

    code: str
    """The digest of the files that it computes with."""
    parameters: Mapping[str, Any]
    """By their names, whichever of the aliases were given."""


@dataclass(frozen=True)
class SolverPlan:
    """A solver with options."""

    label: str
    version: str
    code: str
    """The digest of the files that it computes with."""
    name: str
    """The name of the solver, whichever of its aliases was given."""
    options: Mapping[str, Any]
    """Those that were given, and those of an alias."""
    is_iterative: bool
    """Whether it yields iterates, and is stopped at a target; another one is asked for tolerances."""


def plan_problem(registry: Registry, name: str, parameters: Mapping[str, Any]) -> ProblemPlan:
    """Raises InputError where there is no such problem."""
    problem = registry.problem(name)
    return ProblemPlan(source_digest(problem), problem.without_aliases(dict(parameters)))


def plan_solver(registry: Registry, name: str, options: Mapping[str, Any]) -> SolverPlan:
    """Raises InputError where there is no such solver, or it refuses its options."""
    name, options = registry.meant(name, options)
    solver = registry.solver(name, options)
    return SolverPlan(*solver_names(solver), source_digest(type(solver)), name, options, isinstance(solver, IterativeSolver))


@dataclass(frozen=True)
class Entry:
    """A problem or a solver in a list for people."""

    name: str
    sentence: str
    """The first of its documentation."""
    offers: str
    """Its capabilities."""
    forms: str
    options: str
    """Names of its parameters or options, with their defaults."""
    aliases: str = ""
    """Other names of a solver."""


def entries(registry: Registry, what: str) -> list[Entry]:
    """Return the "problems" or "solvers" of a registry, in the order of their names; one that cannot be loaded says why."""
    classes: Mapping[str, Any] = registry.problems if what == "problems" else registry.solvers
    return [_entry(classes, name) for name in sorted(classes)]


def _entry(classes: Mapping[str, Any], name: str) -> Entry:
    try:
        cls = classes[name]
    except InputError as error:  # an entry point of another package: the others are listed all the same
        return Entry(name, f"cannot be used: {error}", "", "", "unknown")
    sentence = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    if is_problem := issubclass(cls, Problem):
        capabilities, forms, options = cls.offers, ", ".join(map(name_of, cls.forms)), problem_parameters(cls)
    else:
        capabilities, forms, options = cls.requires, " or ".join(map(name_of, cls.takes)), solver_options(cls)
    aliases = "" if is_problem else ", ".join(cls.aliases)
    shown = (key if default is inspect.Parameter.empty else f"{key}={default!r}" for key, default in options.items())
    return Entry(cls.name, sentence, ", ".join(sorted(capabilities)), forms, ", ".join(shown) or "none", aliases)
