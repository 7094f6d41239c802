"""Suites: which solvers run on which problems, to which targets, under which limits; expanded to cases."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_mtl.data.catalogue import load, takes_seed
from bench_mtl.errors import InputError
from bench_mtl.protocols import Problem
from bench_mtl.registry import Registry, make_problem
from bench_mtl.types import Limits


@dataclass(frozen=True)
class ProblemSpec:
    """A [[problems]] table: a problem on data, for every combination of the lists in `grid`."""

    name: str
    label: str
    data: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None


@dataclass(frozen=True)
class SolverSpec:
    """A [[solvers]] table: a solver with options, for every combination of the lists in `grid`."""

    name: str
    label: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    problems: tuple[str, ...] | None = None
    """Labels of the problems it is run on; all by default."""


@dataclass(frozen=True)
class Suite:
    """A whole suite file."""

    name: str
    description: str
    targets: tuple[float, ...]
    """Relative gaps, loose to tight; a run goes on to the last one."""
    problems: tuple[ProblemSpec, ...]
    solvers: tuple[SolverSpec, ...]
    limits: Limits
    repetitions: int
    seeds: tuple[int, ...]
    threads: int
    text: str
    """The file as it was read."""


@dataclass(frozen=True)
class Instance:
    """One concrete problem: everything needed to build it anywhere."""

    problem: str
    label: str
    data: Mapping[str, Any]
    parameters: Mapping[str, Any]
    seed: int | None

    @property
    def key(self) -> str:
        return digest([self.problem, self.data, self.parameters, self.seed])

    def build(self, registry: Registry, data_dir: Path | None) -> Problem:
        """The problem itself.

        Raises
        ------
        InputError : its data or parameters are unusable.
        """
        data = load(self.data, data_dir=data_dir, seed=self.seed)
        return make_problem(registry.problem(self.problem), data, self.parameters)


@dataclass(frozen=True)
class Case:
    """One run to be made: a solver with options on an instance, with its target and limits."""

    instance: Instance
    solver: str
    solver_label: str
    options: Mapping[str, Any]
    target: float
    limits: Limits
    threads: int
    repetition: int

    @property
    def key(self) -> str:
        """A hash of all that the suite says of the case, its labels apart. What files hold, and versions, are not in it."""
        limits = vars(self.limits)
        return digest([self.instance.key, self.solver, self.options, self.target, limits, self.threads, self.repetition])


def digest(content: Any) -> str:
    """A short hash of JSON-able content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def expand(suite: Suite, registry: Registry) -> list[Case]:
    """All cases of a suite, grouped by instance, solvers in the suite's order.

    Raises
    ------
    InputError : an unknown problem, solver, option or parameter, two solvers that share a label, or the same case twice.
    """
    solvers = [(spec, *solver) for spec in suite.solvers for solver in _solvers(spec, registry)]
    cases = []
    for spec in suite.problems:
        chosen = [(label, name, options) for of, label, name, options in solvers if of.problems is None or spec.label in of.problems]
        labels = [label for label, _, _ in chosen]
        for label in labels:
            if labels.count(label) > 1:
                raise InputError(f"two solvers are labelled '{label}': give each its own label")
        for instance in _instances(spec, suite, registry):
            for repetition in range(suite.repetitions):
                for label, name, options in chosen:
                    case = Case(instance, name, label, options, suite.targets[-1], suite.limits, suite.threads, repetition)
                    cases.append(case)
    if not cases:
        raise InputError("the suite has no case: no solver is meant for any of its problems")
    _refuse_twins(cases)
    return cases


def _refuse_twins(cases: list[Case]) -> None:
    """A case is stored once, under its key; two with the same key would be the same run."""
    seen: dict[str, Case] = {}
    for case in cases:
        twin = seen.setdefault(case.key, case)
        if twin is not case:
            raise InputError(f"two cases are the same run: {_title(twin)} and {_title(case)}; keep one of them")


def _title(case: Case) -> str:
    seed = "" if case.instance.seed is None else f" seed {case.instance.seed}"
    return f"'{case.instance.label}{seed} | {case.solver_label}'"


def _instances(spec: ProblemSpec, suite: Suite, registry: Registry) -> Iterator[Instance]:
    registry.problem(spec.name)
    seeds: tuple[int | None, ...] = (spec.seeds or suite.seeds) if takes_seed(spec.data) else (None,)
    for combination in _combinations(spec.grid):
        suffix = "".join(f" {key}={value}" for key, value in combination.items())
        for seed in seeds:
            yield Instance(spec.name, spec.label + suffix, spec.data, {**spec.parameters, **combination}, seed)


def _solvers(spec: SolverSpec, registry: Registry) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(label, name, options) of every combination; those that a label does not tell apart get their grid values added."""
    combinations = list(_combinations(spec.grid))
    options = [{**spec.options, **combination} for combination in combinations]
    labels = [spec.label or registry.solver(spec.name, chosen).label for chosen in options]
    for label, chosen, combination in zip(labels, options, combinations, strict=True):
        suffix = "".join(f" {key}={value}" for key, value in combination.items())
        yield label + (suffix if labels.count(label) > 1 else ""), spec.name, chosen


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
