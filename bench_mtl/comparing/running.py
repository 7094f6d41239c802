"""`compare`: a suite without a file."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_mtl.comparing.arguments import labelled_problems, labelled_solvers, relative_gaps, require_importable, with_their_classes
from bench_mtl.comparing.comparison import Comparison
from bench_mtl.comparing.instances import InMemory, filed, held, pickled, plain_parameters
from bench_mtl.core.checks import one_of, whole_number
from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.threads import number_of_threads
from bench_mtl.core.types import Limits
from bench_mtl.data.catalogue import named_directory
from bench_mtl.data.fingerprint import Watch
from bench_mtl.engine.arguments import the_limits
from bench_mtl.engine.description import plan_solver
from bench_mtl.engine.places import place_text
from bench_mtl.engine.registry import Registry, load_registry, solver_options
from bench_mtl.engine.source_digest import source_digest
from bench_mtl.engine.suite import Case, Instance, Suite, require_distinct, runs_of
from bench_mtl.engine.suite_file import require_storable
from bench_mtl.model.protocols import Problem, Solver
from bench_mtl.results import Outcome, Store
from bench_mtl.runner import InlineExecutor, Setting, executor_for, run_cases
from bench_mtl.runner.interrupt import Interrupt

if TYPE_CHECKING:
    import cvxpy


def compare(
    problems: Problem | cvxpy.Problem | Sequence[Problem | cvxpy.Problem] | Mapping[str, Problem | cvxpy.Problem],
    solvers: str | Solver | Sequence[str | Solver] | Mapping[str, str | Solver],
    *,
    targets: float | Sequence[float] = 1e-4,
    limits: Limits | float | None = None,
    repetitions: int = 1,
    threads: int = 1,
    isolation: str = "process",
    plugins: Path | str | None = None,
    out: Path | str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Run every solver on every problem, and return what is proven of each run.

    It is what `bench-mtl run` does with a suite file: every run has a row, also one that fails; limits are hard; and what a solver shows is
    certified again in another process.

    Parameters
    ----------
    problems : a problem, several, or problems by label; a convex model of CVXPY is one too, see
        `bench_mtl.enclosures.convex_model.ConvexModel`
    solvers : solvers, or names of solvers with their default options, in the order of the tables; or these by label
    targets : relative gaps to prove; an iterative solver runs once to each, a generic one once to all
    limits : of each run; a number is seconds on the solver's clock, 60 s by default
    repetitions : how often each run is made; times are medians
    threads : that the numerical libraries use in a run
    isolation : "process" runs each solver in a process of its own, which limits can kill. "inline" runs in this process: quicker to start,
        but nothing is certified elsewhere, a solver that hangs hangs this process, and memory has no limit.
    plugins : the folder with problems/*.py and solvers/*.py, for classes that are not installed
    out : the folder to keep the results in; if it holds a comparison already, what has a row there is not run again. By default results
        exist until the `Comparison` is gone.
    progress : called with a line when a run ends, such as `print`

    Raises
    ------
    InputError : an argument of another type, an unknown name, two labels that are the same, a class that another process cannot import.
    KeyboardInterrupt : at Ctrl-C; with `out`, the same call goes on from there.
    """
    if out == "":
        raise InputError("out", out, "a folder")
    by_label, gaps, limits = labelled_problems(problems), relative_gaps(targets), the_limits(limits)
    repetitions, threads = whole_number("repetitions", repetitions, minimum=1), number_of_threads("threads", threads)
    one_of("isolation", isolation, ("process", "inline"))
    is_inline = isolation == "inline"
    # Before the plug-ins are loaded: that makes their classes anew, and objects of the old ones cannot be pickled any more.
    contents = {} if is_inline else {label: pickled(label, problem) for label, problem in by_label.items()}
    folder = None if plugins is None else Path(plugins)
    registry = load_registry(folder)
    chosen = labelled_solvers(solvers, registry)
    if is_inline:
        registry = with_their_classes(registry, by_label.values(), chosen.values())
    else:
        require_importable(registry, by_label.values(), chosen.values())
    plan = Plan(chosen, registry, gaps, limits, repetitions, threads, folder, None if out is None else Path(out), progress, is_inline)
    with tempfile.TemporaryDirectory(prefix="bench_mtl_") as files:
        instances: list[Instance] = []
        for place, (label, problem) in enumerate(by_label.items()):
            described = InMemory(problem.name, label, {}, plain_parameters(problem), None, source_digest(type(problem)))
            where = Path(files, f"{place}.pickle")
            instances.append(held(problem, described) if is_inline else filed(contents[label], where, described))
        about = [f"problem {label!r}: {type(problem).__name__}, {plain_parameters(problem)}" for label, problem in by_label.items()]
        subject = f"{plural(len(by_label), 'problem')} that a caller had in memory"
        return run_instances(instances, plan, "comparison", subject, ["bench_mtl.compare(PROBLEMS, SOLVERS)", *about])


@dataclass(frozen=True)
class Plan:
    """How instances are compared: by labelled solvers, to relative gaps from loose to tight; without `out` in a temporary folder."""

    solvers: Mapping[str, Solver]
    registry: Registry
    targets: tuple[float, ...]
    limits: Limits
    repetitions: int = 1
    threads: int = 1
    plugins: Path | None = None
    out: Path | None = None
    progress: Callable[[str], None] | None = None
    is_inline: bool = False
    data_dir: Path | None = None
    curves: bool = True
    """Whether iterative solvers have one run more, for their curves."""


def run_instances(instances: Sequence[Instance], plan: Plan, name: str, subject: str, notes: Sequence[str]) -> Comparison:
    """Run every solver of a plan on every instance, as a report titled `name` has it, on the `subject` in words.

    The `notes` replace a suite's file: first the call or the command that made the comparison.
    """
    options = {label: _options(solver) for label, solver in plan.solvers.items()}
    about = [f"solver {label!r}: {solver.name}, {options[label]}" for label, solver in plan.solvers.items()]
    text = "".join(f"# {line}\n" for line in (*notes, *about)) + f"targets = {list(plan.targets)}\n"
    plans = {label: plan_solver(plan.registry, solver.name, options[label]) for label, solver in plan.solvers.items()}
    cases = [
        case
        for instance in instances
        for repetition in range(plan.repetitions)
        for label, of in plans.items()
        for case in runs_of(
            Case(
                instance, plan.solvers[label].name, label, options[label], plan.targets[-1], plan.limits, plan.threads, repetition,
                of.version, of.code,
            ),
            plan.targets, is_iterative=of.is_iterative, curves=plan.curves,
        )
    ]  # fmt: skip
    require_distinct(cases)
    description = f"{plural(len(plan.solvers), 'solver')} on {subject}."
    suite = Suite(name, description, plan.targets, (), (), plan.limits, plan.repetitions, (), plan.threads, text)
    comparison = Comparison(plan.out or Path(tempfile.mkdtemp(prefix="bench_mtl_")), is_temporary=plan.out is None)
    _run(suite, cases, comparison.folder, plan)
    return comparison


def _options(solver: Solver) -> dict[str, Any]:
    """Return what has to be said to make this solver again: its options that are not the default; InputError where words cannot say it."""
    defaults = solver_options(type(solver))
    if not defaults and vars(solver):
        raise InputError(f"solver {type(solver).__name__} must be a dataclass for its options to be known, as docs/add-a-solver.md has it")
    options = {key: value for key, default in defaults.items() if not _is_same(value := getattr(solver, key), default)}
    for key, value in options.items():
        require_storable(f"option {key} of solver '{solver.name}'", value)
    return options


def _is_same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # an array, which is refused for what it is
        return False


def _run(suite: Suite, cases: list[Case], where: Path, plan: Plan) -> None:
    """Run the cases that `where` has no row of."""
    tell = plan.progress or (lambda line: None)
    setting = Setting(plan.threads, plan.plugins and plan.plugins.absolute(), named_directory(plan.data_dir))
    with Store.create(where, suite) as store:
        waiting = store.plan(cases)
        if len(waiting) < len(cases):
            tell(f"{len(cases) - len(waiting)} of {plural(len(cases), 'case')} done already, with rows in {where}")
        ended, watch = itertools.count(1), Watch((case.instance.data for case in waiting), plan.data_dir)

        def end(case: Case, outcome: Outcome) -> None:
            store.void_where_changed(case, watch)
            record = outcome.record
            raised = f", {place_text(record.places)}" if record.places else ""
            tell(f"[{next(ended)}/{len(waiting)}] {case.title}: {record.status} ({record.reason}{raised})")

        if waiting:
            interrupt = Interrupt(at_once=plan.is_inline)
            # Signals can be handled in the main thread alone.
            watched = interrupt if threading.current_thread() is threading.main_thread() else contextlib.nullcontext()
            inline_or_apart = InlineExecutor(setting, plan.registry) if plan.is_inline else executor_for(setting)()
            with inline_or_apart as executor, watched:
                run_cases(waiting, store, executor=executor, on_outcome=end, should_stop=interrupt.asks)
