"""Suites: TOML files that name problems, solvers, targets and limits; checked key by key, expanded to cases."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from bench_mtl.checks import real_number, whole_number
from bench_mtl.data.catalogue import load, takes_seed
from bench_mtl.errors import InputError, unknown
from bench_mtl.protocols import Problem
from bench_mtl.registry import Registry, make_problem
from bench_mtl.types import Limits

T = TypeVar("T")


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
        """Content key: equal for two cases exactly when everything that may change the outcome is."""
        limits = vars(self.limits)
        return digest([self.instance.key, self.solver, self.options, self.target, limits, self.threads, self.repetition])


def digest(content: Any) -> str:
    """A short hash of JSON-able content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def shipped_suites() -> dict[str, Path]:
    """Name and path of the suites inside the package."""
    folder = Path(str(resources.files("bench_mtl") / "suites"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or any suite file by path.

    Raises
    ------
    InputError : no such suite, not TOML, an unknown key (the nearest is suggested) or a value of the wrong kind.
    """
    shipped = shipped_suites()
    path = shipped.get(name_or_path, Path(name_or_path))
    if not path.is_file():
        if path.suffix == ".toml" or "/" in name_or_path:
            raise InputError(f"suite file {path} does not exist")
        raise unknown("suite", name_or_path, shipped)
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(f"suite file {path} cannot be read: {error}") from None
    return parse_suite(table, text, default_name=path.stem)


def parse_suite(table: Mapping[str, Any], text: str = "", *, default_name: str = "unnamed") -> Suite:
    """A suite from its parsed TOML; raises InputError as `read_suite` does."""
    top = _Table(table, "the suite")
    limits = _Table(top.take("limits", dict, {}), "[limits]")
    suite = Suite(
        name=top.take("name", str, default_name),
        description=top.take("description", str, ""),
        targets=_targets(top.take("targets", list, [1e-2, 1e-4, 1e-6])),
        problems=tuple(_problem_spec(entry) for entry in _entries(top, "problems")),
        solvers=tuple(_solver_spec(entry) for entry in _entries(top, "solvers")),
        limits=_limits(limits),
        repetitions=whole_number("repetitions", top.take("repetitions", int, 1), minimum=1),
        seeds=tuple(whole_number("seeds", seed) for seed in top.take("seeds", list, [0])),
        threads=whole_number("threads", top.take("threads", int, 1), minimum=1),
        text=text,
    )
    top.finish()
    if not suite.seeds:
        raise InputError("seeds must name at least one seed")
    labels = [spec.label for spec in suite.problems]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two problems are labelled '{label}': give each its own label")
    for spec in suite.solvers:
        for label in spec.problems or ():
            if label not in labels:
                raise unknown(f"problem label in solver '{spec.name}'", label, labels)
    return suite


def expand(suite: Suite, registry: Registry) -> list[Case]:
    """All cases of a suite, grouped by instance, solvers in the suite's order.

    Raises
    ------
    InputError : an unknown problem, solver, option or parameter, or two solvers that share a label.
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
    return cases


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


class _Table:
    """A TOML table that is taken apart key by key; what is left over at the end is unknown."""

    def __init__(self, table: Any, where: str) -> None:
        if not isinstance(table, Mapping):
            raise InputError(f"{where} must be a table")
        self._left = dict(table)
        self._known: list[str] = []
        self.where = where

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        self._known.append(key)
        value = self._left.pop(key, default)
        if value is None:
            raise InputError(f"{self.where} needs the key '{key}'")
        if (isinstance(value, bool) and kind is not bool) or not isinstance(value, kind):
            raise InputError(f"'{key}' in {self.where} must be a {_KINDS[kind]}, not {value!r}")
        return value

    def take_optional(self, key: str, kind: type[T]) -> T | None:
        if key in self._left:
            return self.take(key, kind)
        self._known.append(key)
        return None

    def finish(self) -> None:
        for key in self._left:
            raise unknown(f"key in {self.where}", key, self._known)


_KINDS: dict[type, str] = {str: "string", int: "whole number", list: "list", dict: "table", object: "value"}


def _entries(top: _Table, key: str) -> list[_Table]:
    entries = top.take(key, list)
    if not entries:
        raise InputError(f"[[{key}]] must have at least one entry")
    return [_Table(entry, f"[[{key}]] entry {i + 1}") for i, entry in enumerate(entries)]


def _grid(table: _Table) -> dict[str, list[Any]]:
    grid = table.take("grid", dict, {})
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"grid key '{key}' in {table.where} must be a non-empty list, not {values!r}")
    return grid


def _problem_spec(table: _Table) -> ProblemSpec:
    name = table.take("name", str)
    data = table.take("data", dict)
    seeds = table.take_optional("seeds", list)
    spec = ProblemSpec(
        name=name,
        label=table.take("label", str, f"{name} {data.get('name', data.get('file', ''))}".strip()),
        data=data,
        parameters=table.take("parameters", dict, {}),
        grid=_grid(table),
        seeds=None if seeds is None else tuple(whole_number("seeds", seed) for seed in seeds),
    )
    table.finish()
    return spec


def _solver_spec(table: _Table) -> SolverSpec:
    problems = table.take_optional("problems", list)
    spec = SolverSpec(
        name=table.take("name", str),
        label=table.take_optional("label", str),
        options=table.take("options", dict, {}),
        grid=_grid(table),
        problems=None if problems is None else tuple(problems),
    )
    table.finish()
    return spec


def _limits(table: _Table) -> Limits:
    iterations = table.take_optional("iterations", int)
    work = table.take_optional("work", object)
    memory = table.take_optional("memory_gib", object)
    limits = Limits(
        seconds=real_number("seconds in [limits]", table.take("seconds", object, 60.0), strict=True),
        iterations=None if iterations is None else whole_number("iterations in [limits]", iterations, minimum=1),
        work=None if work is None else real_number("work in [limits]", work, strict=True),
        memory_gib=None if memory is None else real_number("memory_gib in [limits]", memory, strict=True),
    )
    table.finish()
    return limits


def _targets(values: list[Any]) -> tuple[float, ...]:
    if not values:
        raise InputError("targets must name at least one relative gap")
    return tuple(sorted((real_number("targets", value, strict=True) for value in values), reverse=True))
