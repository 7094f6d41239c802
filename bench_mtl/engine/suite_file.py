"""Reads suite files: TOML, checked key by key."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.errors import InputError, did_you_mean, nearest, unknown
from bench_mtl.core.files import is_dir, is_file
from bench_mtl.core.text import LONGEST_WORD, require_label
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Limits
from bench_mtl.core.version import __version__
from bench_mtl.engine.environment import current_commit
from bench_mtl.engine.suite import ProblemSpec, SolverSpec, Suite

T = TypeVar("T")

_MOST_REPETITIONS = 10_000
_MOST_THREADS = 10_000
#: Tables hold whole numbers as floats.
LARGEST_SEED = 2**53
_DEEPEST = 50
#: Of a suite file, in bytes. The longest that ships has four thousand.
LARGEST_FILE = 2**20
#: Entries of a list or a table, and targets of a suite.
_MOST_ENTRIES, _MOST_TARGETS = 10_000, 50
#: Results go to results/NAME by default, so a name may not lead out of there.
_NAME = re.compile(r"[\w +-][\w .+-]{0,99}")


def shipped_suites() -> dict[str, Path]:
    """Name and path of the suites inside the package."""
    folder = Path(str(resources.files("bench_mtl.engine") / "suites"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, or any suite file by path.

    Raises InputError for no such suite, not TOML, an unknown key (the nearest is suggested) or a value of the wrong kind.
    """
    shipped = shipped_suites()
    path = shipped.get(name_or_path, Path(name_or_path))
    if not is_file("suite file", path):
        if is_dir("suite file", path):
            raise InputError(f"suite file {path} is a folder")
        if path.suffix or "/" in name_or_path:
            beside = [other.name for other in path.parent.glob("*.toml")]
            raise InputError(f"suite file {path} does not exist{did_you_mean(path.name, beside)}")
        raise unknown("suite", name_or_path, shipped, more="bench-mtl list suites")
    try:
        if (size := path.stat().st_size) > LARGEST_FILE:
            raise InputError(f"it has {size} bytes, and {LARGEST_FILE} are allowed")
        text = path.read_text(encoding="utf-8")
        table = read_toml(text)
    except (ValueError, OSError) as error:
        raise InputError(f"suite file {path} cannot be read: {error}") from None
    return parse_suite(table, text, default_name=path.stem)


def read_toml(text: str) -> dict[str, Any]:
    """The table that `text` is; raises ValueError where it is none, of which InputError is one kind."""
    if len(text) > LARGEST_FILE:
        raise InputError(f"it has {len(text)} characters, and {LARGEST_FILE} are allowed")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"nested more than {_DEEPEST} deep") from None


def require_storable(where: str, value: Any, depth: int = 0) -> None:
    """Refuse by name what a row of results cannot hold: dates, integers beyond 64 bits, bottomless nesting, endless lists.

    Raises InputError that names the place in `value`, what is `where`.
    """
    if depth > _DEEPEST:
        raise InputError(f"{where} is nested more than {_DEEPEST} deep")
    if isinstance(value, (Mapping, list, tuple)) and len(value) > _MOST_ENTRIES:
        raise InputError(f"{where or 'the suite'} has {len(value)} entries, and {_MOST_ENTRIES} are allowed")
    if isinstance(value, str) and len(value) > LONGEST_WORD:
        raise InputError(where, len(value), f"have at most {LONGEST_WORD} characters")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            require_label(f"a key in {where or 'the suite'}", str(key))
            require_storable(f"{where}.{key}" if where else key, inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            require_storable(f"{where}[{i}]", inner, depth + 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(where, value, "below 2**63 in size")
    elif not isinstance(value, (str, int, float)):
        raise InputError(f"{where} must be a string, a number, true or false, a list or a table, not the {type(value).__name__} {value}")


def parse_suite(table: Mapping[str, Any], text: str = "", *, default_name: str = "unnamed") -> Suite:
    """A suite from its parsed TOML; raises InputError as `read_suite` does."""
    require_storable("", table)
    top = _Table(table, "the suite")
    limits, threads = _Table(top.take("limits", dict, {}), "[limits]"), top.take("threads", object, 1)
    suite = Suite(
        name=top.take("name", str, default_name),
        description=top.take("description", str, ""),
        targets=_targets(top.take("targets", list, [1e-2, 1e-4, 1e-6])),
        problems=tuple(_problem_spec(entry) for entry in _entries(top, "problems")),
        solvers=tuple(_solver_spec(entry) for entry in _entries(top, "solvers")),
        limits=_limits(limits),
        repetitions=whole_number("repetitions", top.take("repetitions", int, 1), minimum=1, maximum=_MOST_REPETITIONS),
        seeds=_seeds(top),
        threads=available_processors() if threads == "all" else whole_number("threads", threads, minimum=1, maximum=_MOST_THREADS),
        text=text,
        curves=top.take("curves", bool, False),
        repeat_fastest=whole_number("repeat_fastest", top.take("repeat_fastest", int, 0), maximum=_MOST_REPETITIONS),
    )
    top.finish()
    if not _NAME.fullmatch(suite.name):
        allowed = "1 to 100 letters, digits, spaces and _ . + -, the first not a dot"
        raise InputError("name of the suite", suite.name[:120], allowed)
    labels = [spec.label for spec in suite.problems]
    for label, count in Counter(labels).items():
        if count > 1:
            raise InputError(f"two problems are labelled '{label}': give each its own label")
    for spec in suite.solvers:
        for label in spec.problems or ():
            if label not in labels:
                raise unknown(f"problem label in solver '{spec.name}'", label, labels)
    return suite


def _seeds(top: _Table) -> tuple[int, ...]:
    """Return the seeds that a suite names, or as many as it asks for that nobody can have chosen."""
    fresh, named = top.take_optional("fresh_seeds", int), top.take_optional("seeds", list)
    if fresh is None:
        if named == []:
            raise InputError("seeds must name at least one seed")
        return tuple(whole_number("seeds", seed, maximum=LARGEST_SEED) for seed in named or [0])
    if named is not None:
        raise InputError("seeds and fresh_seeds exclude each other")
    return fresh_seeds(whole_number("fresh_seeds", fresh, minimum=1, maximum=_MOST_REPETITIONS), current_commit() or __version__)


def fresh_seeds(count: int, commit: str) -> tuple[int, ...]:
    """Return seeds that whoever wrote the code of a commit cannot have fitted it to: hashes of the commit's name."""
    return tuple(int.from_bytes(hashlib.sha256(f"{commit} {place}".encode()).digest()[:4]) for place in range(count))


class _Table:
    """A TOML table that is taken apart key by key; what is left over at the end is unknown."""

    def __init__(self, table: Any, where: str) -> None:
        if not isinstance(table, Mapping):
            raise InputError(where, table, "a table")
        self._left = dict(table)
        self._known: list[str] = []
        self.where = where

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        self._known.append(key)
        value = self._left.pop(key, default)
        if value is None:  # a key that is like it, and not yet taken, is a slip of the pen
            near = nearest(key, self._left)
            raise InputError(f"{self.where} needs the key '{key}'" + ("" if near is None else f", and has '{near}': did you mean '{key}'?"))
        if (isinstance(value, bool) and kind is not bool) or not isinstance(value, kind):
            raise InputError(f"'{key}' in {self.where}", value, f"a {_KINDS[kind]}")
        return value

    def take_optional(self, key: str, kind: type[T]) -> T | None:
        if key in self._left:
            return self.take(key, kind)
        self._known.append(key)
        return None

    def finish(self) -> None:
        for key in self._left:
            raise unknown(f"key in {self.where}", key, self._known)


_KINDS: dict[type, str] = {
    bool: "truth value, true or false",
    str: "string",
    int: "whole number",
    list: "list",
    dict: "table",
    object: "value",
}


def _entries(top: _Table, key: str) -> list[_Table]:
    entries = top.take(key, list)
    if not entries:
        raise InputError(f"[[{key}]]", 0, "have at least one entry")
    return [_Table(entry, f"[[{key}]] entry {i + 1}") for i, entry in enumerate(entries)]


def _grid(table: _Table, name: str, beside: str, fixed: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what is swept: nothing that is in `beside`, with these fixed values, as well."""
    grid = table.take(name, dict, {})
    for key, values in grid.items():
        if key in fixed:
            raise InputError(f"{name} key '{key}' in {table.where} is in '{beside}' as well")
        if not isinstance(values, list) or not values:
            raise InputError(f"{name} key '{key}' in {table.where}", values, "a non-empty list")
    return grid


def _problem_spec(table: _Table) -> ProblemSpec:
    name = table.take("name", str)
    data = table.take("data", dict)
    seeds = table.take_optional("seeds", list)
    data_grid, parameters = _grid(table, "data_grid", "data", data), table.take("parameters", dict, {})
    for key in data_grid:
        if key in ("name", "file"):
            raise InputError(f"data_grid key '{key}' in {table.where} cannot be swept: give each data set its own entry")
    if seeds == []:
        raise InputError(f"'seeds' in {table.where}", seeds, "a non-empty list")
    label = table.take("label", str, f"{name} {data.get('name', data.get('file', ''))}".strip())
    spec = ProblemSpec(
        name=name,
        label=require_label(f"'label' in {table.where}", label),
        data=data,
        parameters=parameters,
        grid=_grid(table, "grid", "parameters", parameters),
        seeds=None if seeds is None else tuple(whole_number("seeds", seed, maximum=LARGEST_SEED) for seed in seeds),
        data_grid=data_grid,
    )
    table.finish()
    return spec


def _solver_spec(table: _Table) -> SolverSpec:
    problems, repetitions = table.take_optional("problems", list), table.take_optional("repetitions", int)
    label, options = table.take_optional("label", str), table.take("options", dict, {})
    if problems == []:
        raise InputError(f"'problems' in {table.where}", problems, "a non-empty list")
    for problem in problems or ():
        if not isinstance(problem, str):
            raise InputError(f"'problems' in {table.where} must be a list of problem labels, not with {problem!r}")
    spec = SolverSpec(
        name=table.take("name", str),
        label=None if label is None else require_label(f"'label' in {table.where}", label),
        options=options,
        grid=_grid(table, "grid", "options", options),
        problems=None if problems is None else tuple(problems),
        repetitions=None if repetitions is None else whole_number("repetitions", repetitions, minimum=1, maximum=_MOST_REPETITIONS),
    )
    table.finish()
    return spec


def _limits(table: _Table) -> Limits:
    limits: dict[str, Any] = {"seconds": real_number("seconds in [limits]", table.take("seconds", object, 60.0), strict=True)}
    if (iterations := table.take_optional("iterations", int)) is not None:
        limits["iterations"] = whole_number("iterations in [limits]", iterations, minimum=1)
    for name in ("work", "memory_gib", "off_clock_seconds"):
        if (value := table.take_optional(name, object)) is not None:
            limits[name] = real_number(f"{name} in [limits]", value, strict=True)
    table.finish()
    return Limits(**limits)


def _targets(values: list[Any]) -> tuple[float, ...]:
    if not values:
        raise InputError("targets must name at least one relative gap")
    if len(values) > _MOST_TARGETS:
        raise InputError("targets", len(values), f"at most {_MOST_TARGETS}")
    return tuple(sorted((real_number("targets", value, strict=True, maximum=1.0) for value in values), reverse=True))
