"""What commands that solve in this process are asked for: a problem, how it is to be solved, and how long that may take."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from threadpoolctl import threadpool_limits

from bench_mtl.cli.console import say
from bench_mtl.cli.options import data_sets, repeatable, script_options, source_options
from bench_mtl.core.checks import real_number, whole_number
from bench_mtl.core.errors import BenchError, InputError, plural
from bench_mtl.core.text import LONGEST_LINE, one_line
from bench_mtl.core.threads import number_of_threads
from bench_mtl.core.types import Array, Limits, Place, Status, Tolerance
from bench_mtl.data.catalogue import spec_of
from bench_mtl.engine.driver import describe
from bench_mtl.engine.environment import pinned_threads
from bench_mtl.engine.places import place_text, places_of, traceback_lines
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.suite import Instance
from bench_mtl.engine.suite_file import LARGEST_SEED, read_toml, require_storable
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.model.regularisers import Constraint, Penalty, Stacked
from bench_mtl.model.squared_norms import PenaltyAndRidge
from bench_mtl.results import Store
from bench_mtl.runner.planning import require_importable

#: A norm that is this close to its bound is at it.
_AT_THE_BOUND = 1.0 - 1e-6
#: What may be names with commas between, as in labels=a,b.
_LISTS = ("labels", "targets", "drop")

_Words = tuple[str, ...]
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Asked:
    """What the options of `problem_options` say, checked."""

    instance: Instance
    """The problem, as a suite has it."""
    options: dict[str, Any]
    """Of the solver."""
    tolerance: Tolerance
    limits: Limits
    threads: int
    data_dir: Path | None
    plugins: Path | None
    traceback: bool
    registry: Registry

    @contextlib.contextmanager
    def raising_here(self, what: str) -> Iterator[None]:
        """Run code of the problem or the solver in this process; what it raises becomes an InputError of one line: what failed, and where.

        With --traceback its lines of code are printed before. Errors with a name of ours stay what they are.
        """
        try:
            yield
        except BenchError:
            raise
        except (Exception, SystemExit) as error:
            places = places_of(error, self.registry.packages)
            if self.traceback:
                say_places(places)
            raise InputError(f"{what}: {describe(error)}{at(places)}") from error

    def build(self) -> Problem:
        """Return the problem itself; raises InputError where that does not work."""
        with self.raising_here("the problem cannot be built"):
            return self.instance.build(self.registry, self.data_dir)

    @contextlib.contextmanager
    def pinned(self, solver: Solver | None = None, problem: Problem | None = None) -> Iterator[None]:
        """Hold the libraries to the threads, and warm up a solver that takes the problem; InputError where that does not work."""
        with pinned_threads(self.threads), threadpool_limits(self.threads):
            with self.raising_here("warm-up failed"):
                if solver is not None and problem is not None and solver.incompatibility(problem) is None:
                    solver.warm_up()
            yield

    def chosen(self, word: str) -> tuple[Asked, Solver]:
        """Return the solver that a word represents, and what is asked with all options of it."""
        name, options = self.registry.meant(word, self.options)
        return replace(self, options=options), self.registry.solver(name, options)

    def document(self, problem: Problem, solver: Solver | None = None) -> dict[str, Any]:
        """Return what is solved, for `--json`: the problem, its sizes, notes on its data, the target, and the solver if it is one."""
        document: dict[str, Any] = {"problem": self.instance.problem, "dimensions": dict(problem.dimensions), "notes": list(problem.notes)}
        document["target"] = self.tolerance.relative_gap
        return document | ({"solver": solver.name, "label": solver.label, "options": self.options} if solver is not None else {})


def data_spec(data: str, data_option: _Words, preprocess: _Words, data_dir: Path | None) -> dict[str, Any]:
    """Return the table of a suite that these options represent."""
    spec = {**spec_of(os.path.expanduser(data), data_dir), **key_values(data_option, "--data-option")}
    return spec | ({"preprocess": list(preprocess)} if preprocess else {})


def _asked(
    problem: str, data: str, data_option: _Words, preprocess: _Words, param: _Words, option: _Words, seconds: float,
    iterations: int | None, seed: int, threads: int, data_dir: Path | None, plugins: Path | None, target: float = 1e-6,
    traceback: bool = False,
) -> Asked:  # fmt: skip
    tolerance = Tolerance(real_number("--target", target, strict=True))
    most = None if iterations is None else whole_number("--iterations", iterations, minimum=1)
    limits = Limits(seconds=real_number("--seconds", seconds, strict=True), iterations=most)
    number_of_threads("--threads", threads)
    require_importable(plugins)
    registry = load_registry(plugins)
    spec = data_spec(data, data_option, preprocess, data_dir)
    instance = Instance(problem, problem, spec, key_values(param, "--param"), whole_number("--seed", seed, maximum=LARGEST_SEED))
    return Asked(instance, key_values(option, "--option"), tolerance, limits, threads, data_dir, plugins, traceback, registry)


_OPTIONS: tuple[_Decorator, ...] = (
    repeatable("--data-option", "KEY=VALUE", "Option of the data, e.g. tasks=10."),
    click.option(
        "--preprocess", multiple=True,
        help="none, unit_rows, standardise, tfidf, svd:K, perceptron_kernel, stumps:J or trees:J:DEPTH. Repeatable, in order.",
    ),
    repeatable("--param", "KEY=VALUE", "Parameter of the problem, e.g. radius=5 or penalty=0.1."),
    repeatable("--option", "KEY=VALUE", "Option of the solver, e.g. restart=gradient."),
    click.option(
        "--seconds", type=float, default=60.0, show_default=True, help="Time limit of a run, in path of each; checked between steps."
    ),
    click.option("--iterations", type=int, help="Iteration limit of a run, in path of each."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the data generator."),
    click.option("--threads", type=int, default=1, show_default=True, help="At most the processors that this process may use."),
    source_options,
)  # fmt: skip

#: What `_asked` takes; a command has its other options to itself.
_NAMES = tuple(inspect.signature(_asked).parameters)


def problem_options(command: Callable[..., Any], *, is_optional: bool = False) -> Callable[..., Any]:
    """Return the command with the options that an `Asked` is made of, its first argument, with --quiet, and with --json.

    The command itself has the argument `problem`, and perhaps the options `--target` and `--traceback`. It is the last of a command's
    decorators. Where a problem `is_optional`, the command has the first argument None without --data, and `problem` and `option` as well.
    """

    @script_options
    @functools.wraps(command)
    def asking(**options: Any) -> Any:
        words = {name: options.pop(name) for name in [*options] if name in _NAMES}  # in the order in which they were written
        own = {name: words[name] for name in ("problem", "option")} if is_optional else {}
        if not is_optional or words["data"] is not None:
            return command(_asked(**words), **own, **options)
        context = click.get_current_context()
        for name in words:
            if name not in own and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise InputError(f"--{name.replace('_', '-')} is for a problem and its --data")
        return command(None, **own, **options)

    text = "A generator, an embedded or catalogued data set, or a data file."
    data: _Decorator = click.option("--data", required=not is_optional, shell_complete=data_sets, help=text)
    for option in reversed((data, *_OPTIONS)):
        asking = option(asking)
    return asking


def key_values(texts: tuple[str, ...], where: str) -> dict[str, Any]:
    """KEY=VALUE texts as a table; values are read as TOML and otherwise as strings, or lists with commas."""
    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise InputError(where, text, "KEY=VALUE")
        if key in table:
            raise InputError(f"{where} {key} is given twice")
        try:
            table[key] = _read(value)
        except InputError as error:
            raise error.within(f"{where} {key}") from None
        except ValueError:  # names without quotes
            table[key] = [part.strip() for part in value.split(",")] if key in _LISTS and "," in value else value
        require_storable(f"{where} {key}", table[key])
    return table


def _read(text: str) -> Any:
    """Return a value of TOML, or numbers with commas between as a list of it; raises ValueError for what is not one value."""
    try:
        (value,) = read_toml(f"value = {text}").values()  # a line may follow with a key of its own
        return value
    except tomllib.TOMLDecodeError:
        if "," not in text:
            raise
    try:
        (value,) = read_toml(f"value = [{text}]").values()
        return value
    except tomllib.TOMLDecodeError:  # numbers as Python has them, such as .5 and 01
        return [float(part) for part in text.split(",")]


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
            rest = "binds" if size >= part.radius * _AT_THE_BOUND else f"does not bind, nor does any above the solution's norm, {size:.6g}"
            say(f"radius {part.radius:.6g} {rest}")


def say_places(places: Sequence[Place]) -> None:
    """Print where an exception was raised on standard error: two lines a line of code; nothing where nobody knows."""
    for line in traceback_lines(places):
        say(line, error=True)


def say_tracebacks(folder: Path) -> None:
    """Print the reasons of the listed runs of status `error` in a folder on standard error, each with the lines of code it came from."""
    with Store.open(folder) as store, store.snapshot():
        runs, places = store.runs(), store.places()
    failed = runs[runs["status"] == Status.ERROR]
    for run, problem, solver, reason in zip(*(failed[name] for name in ("id", "problem_label", "solver_label", "reason")), strict=True):
        say(one_line(f"{problem} | {solver}: {reason}", LONGEST_LINE), error=True)
        say_places(places.get(run, ()))


def at(places: Sequence[Place]) -> str:
    """Return where an exception was raised as the end of a sentence, `` (solvers/mine.py:31)``; empty where nobody knows."""
    return f" ({place_text(places)})" if places else ""
