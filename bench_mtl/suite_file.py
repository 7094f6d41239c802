"""Reads suite files: TOML, checked key by key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from bench_mtl.checks import real_number, whole_number
from bench_mtl.errors import InputError, unknown
from bench_mtl.suite import ProblemSpec, SolverSpec, Suite
from bench_mtl.types import Limits

T = TypeVar("T")


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
