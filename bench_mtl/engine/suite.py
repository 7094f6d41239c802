"""Suites: which solvers run on which problems, to which targets, under which limits; expanded to cases."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench_mtl.core.errors import InputError
from bench_mtl.core.text import LONGEST_LABEL, one_line, require_label
from bench_mtl.core.types import Limits
from bench_mtl.data.catalogue import load, takes_seed
from bench_mtl.data.fingerprint import fingerprint
from bench_mtl.engine.description import SolverPlan, plan_problem, plan_solver
from bench_mtl.engine.registry import Registry, make_problem
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData

#: The name of data that only the caller of `bench_mtl.compare` has.
IN_MEMORY = "in memory"

#: Cases of a suite for each target. One takes a few hundred bytes and half a second at the least: more are a slip of the pen in a grid.
MOST_CASES = 100_000


@dataclass(frozen=True)
class ProblemSpec:
    """A [[problems]] table: a problem on data, for every combination of the lists in `data_grid` and in `grid`."""

    name: str
    label: str
    data: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    """Values of parameters to combine."""
    seeds: tuple[int, ...] | None = None
    data_grid: Mapping[str, list[Any]] = field(default_factory=dict)
    """Values of keys of `data`, except its name, to combine."""


@dataclass(frozen=True)
class SolverSpec:
    """A [[solvers]] table: a solver with options, for every combination of the lists in `grid`."""

    name: str
    label: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    problems: tuple[str, ...] | None = None
    """Labels of the problems it is run on; all by default."""
    repetitions: int | None = None
    """The number of repetitions of a solver that takes long; that of the suite by default."""


@dataclass(frozen=True)
class Suite:
    """A whole suite file."""

    name: str
    description: str
    targets: tuple[float, ...]
    """Relative gaps, loose to tight."""
    problems: tuple[ProblemSpec, ...]
    solvers: tuple[SolverSpec, ...]
    limits: Limits
    repetitions: int
    seeds: tuple[int, ...]
    threads: int
    text: str
    """The file as it was read."""
    curves: bool = False
    """Whether every iterative solver has one run more on every instance, for its curve."""
    repeat_fastest: int = 0
    """How many times more the fastest solvers of each kind are run, once all cases have their rows (`bench_mtl.results.decisive`)."""


@dataclass(frozen=True)
class Instance:
    """One concrete problem: everything needed to build it anywhere."""

    problem: str
    label: str
    data: Mapping[str, Any]
    parameters: Mapping[str, Any]
    seed: int | None
    code: str = ""
    """Hash of all files that the problem computes with."""
    fingerprint: str = ""
    """Hash of what its data are made from, once `identified` has looked."""

    @cached_property
    def key(self) -> str:
        """A hash of all of this but the label."""
        return digest([self.problem, self.code, self.data, self.fingerprint, self.parameters, self.seed])

    def fingerprint_here(self, data_dir: Path | None) -> str:
        """Return the hash of what its data are made from here. Raises InputError where a data file is missing or cannot be read."""
        return fingerprint(self.data, data_dir=data_dir, seed=self.seed)

    @property
    def has_workers(self) -> bool:
        """Whether processes of its own compute with its data, see `bench_mtl.data.readers.read_shards`."""
        return not self.data.keys().isdisjoint(("workers", "cluster"))

    def build(self, registry: Registry, data_dir: Path | None) -> Problem:
        """The problem itself. Raises InputError where its data or parameters are unusable."""
        family = registry.problem(self.problem)
        return self.build_on(load(self.data, data_dir=data_dir, seed=self.seed, prices=family.takes_prices), registry)

    def build_on(self, data: TaskData, registry: Registry) -> Problem:
        """Return the problem on its data. Raises InputError where its data or parameters are unusable."""
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
    version: str = ""
    """The version of the solver or of the library that it calls."""
    code: str = ""
    """The digest of the files that the solver computes with."""
    targets: tuple[float, ...] = ()
    """Gaps on the way to `target` whose first proofs matter to reports: of a one-shot solver, or for a curve."""
    traced: bool = False
    """Whether it is run for its curve, and not for its time."""
    tolerances: tuple[float, ...] = ()
    """What a one-shot solver is asked for; its own ladder by default."""
    repeats: int | None = None
    """Of a run that is made again for being the fastest (`bench_mtl.results.decisive`): the row of the first."""

    @cached_property
    def key(self) -> str:
        """A hash of all that may change the outcome: all of this but labels. One case, one row.

        Targets on the way decide where a one-shot solver is asked for tolerances close by; of a curve they decide nothing.
        """
        solver = [self.solver, self.version, self.code, self.options]
        rest: list[Any] = ["traced"] if self.traced else [self.targets] if self.targets else []
        rest += [] if self.repeats is None else [self.repeats, self.tolerances]
        return digest([self.instance.key, solver, self.target, vars(self.limits), self.threads, self.repetition, *rest])

    @property
    def labels(self) -> tuple[str, str]:
        """The labels of the problem and the solver."""
        return self.instance.label, self.solver_label

    @property
    def title(self) -> str:
        """How people read of it: problem, seed, solver."""
        seed = "" if self.instance.seed is None else f" seed {self.instance.seed}"
        return f"{self.instance.label}{seed} | {self.solver_label}"


def identified(cases: Iterable[Case], data_dir: Path | None) -> list[Case]:
    """The cases with the fingerprints of their data, which their keys depend on from here on.

    Raises InputError where a data file is missing or cannot be read.
    """
    fingerprints: dict[str, str] = {}  # by keys, which labels are not part of

    def of(instance: Instance) -> Instance:
        if instance.key not in fingerprints:
            fingerprints[instance.key] = instance.fingerprint_here(data_dir)
        return replace(instance, fingerprint=fingerprints[instance.key])

    return [replace(case, instance=of(case.instance)) for case in cases]


def one_of_each(cases: Iterable[Case]) -> list[Case]:
    """The first case of each problem, data and parameters, whatever the seed: what is a mistake in one is one in all of them."""
    found: dict[str, Case] = {}
    for case in cases:
        found.setdefault(digest([case.instance.problem, case.instance.data, case.instance.parameters]), case)
    return list(found.values())


def digest(content: Any) -> str:
    """A short hash of JSON-able content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def expand(suite: Suite, registry: Registry, tell: Callable[[str], None] = lambda what: None) -> list[Case]:
    """Return all cases of a suite, grouped by instance, solvers in its order. `tell` receives what is asked next, which may take long.

    Raises InputError for an unknown problem, solver, option or parameter, two problems or solvers that share a label, the same case twice,
    more workers than threads, or more than `MOST_CASES`, which are counted before any is made.
    """
    require_countable(suite)
    solvers = [(spec, solver) for spec in suite.solvers for solver in _solvers(spec, registry, tell)]
    cases: list[Case] = []
    labelled: dict[str, Instance] = {}
    for spec in suite.problems:
        chosen = [
            (of.repetitions or suite.repetitions, solver) for of, solver in solvers if of.problems is None or spec.label in of.problems
        ]
        for label, count in Counter(solver.label for _, solver in chosen).items():
            if count > 1:
                raise InputError(f"two solvers are labelled '{label}': give each its own label")
        for instance in _instances(spec, suite, registry, tell):
            any_seed = replace(instance, seed=None)
            if labelled.setdefault(instance.label, any_seed) != any_seed:
                raise InputError(f"two problems are labelled '{instance.label}': give each its own label")
            for repetition in range(max((count for count, _ in chosen), default=0)):
                for count, solver in chosen:
                    if repetition < count:
                        case = Case(
                            instance, solver.name, solver.label, solver.options, suite.targets[-1], suite.limits, suite.threads,
                            repetition, solver.version, solver.code,
                        )  # fmt: skip
                        cases += runs_of(case, suite.targets, is_iterative=solver.is_iterative, curves=suite.curves)
    if not cases:
        raise InputError("the suite has no case: no solver is meant for any of its problems")
    require_distinct(cases)
    return cases


def runs_of(case: Case, targets: tuple[float, ...], *, is_iterative: bool, curves: bool) -> list[Case]:
    """Return the runs of a solver on an instance, of which `case` is any: of an iterative one to every target by itself, and one for
    its curve; of another one all targets together, since each of its tolerances is a run by itself."""
    on_the_way = replace(case, target=targets[-1], targets=targets[:-1])
    if not is_iterative:
        return [on_the_way]
    timed = [replace(case, target=target, targets=()) for target in targets]
    return [*timed, replace(on_the_way, traced=True)] if curves and case.repetition == 0 else timed


def require_countable(suite: Suite) -> None:
    """Refuse a suite of more than `MOST_CASES` cases, counted from the lengths of its lists.

    Raises InputError that names the grid that has the most combinations, and their number.
    """
    sizes = {f"the grids of [[problems]] entry '{spec.label}'": _combinations_of(spec.data_grid, spec.grid) for spec in suite.problems}
    sizes |= {f"the grid of [[solvers]] entry '{spec.label or spec.name}'": _combinations_of(spec.grid) for spec in suite.solvers}
    cases = 0
    for spec in suite.problems:
        runs = sum(
            _combinations_of(of.grid) * (of.repetitions or suite.repetitions)
            for of in suite.solvers
            if of.problems is None or spec.label in of.problems
        )
        cases += _combinations_of(spec.data_grid, spec.grid) * len(spec.seeds or suite.seeds) * runs
    where, largest = max(sizes.items(), key=lambda item: item[1], default=("", 0))
    most = max(cases, largest)
    if most > MOST_CASES:
        grid = f"; {where} {'have' if 'grids' in where else 'has'} {largest} combinations" if largest > 1 else ""
        raise InputError(f"the suite has up to {most} cases for each target, and {MOST_CASES} are allowed{grid}")


def _combinations_of(*grids: Mapping[str, list[Any]]) -> int:
    """Return the number of combinations of all lists."""
    return math.prod(len(values) for grid in grids for values in grid.values())


def require_distinct(cases: list[Case]) -> None:
    """A case is stored once, under its key; two with the same key would be the same run."""
    seen: dict[str, Case] = {}
    for case in cases:
        twin = seen.setdefault(case.key, case)
        if twin is not case:
            raise InputError(f"two cases are the same run: '{twin.title}' and '{case.title}'; keep one of them")


def _instances(spec: ProblemSpec, suite: Suite, registry: Registry, tell: Callable[[str], None]) -> Iterator[Instance]:
    for sweep in _combinations(spec.data_grid):
        data = {**spec.data, **sweep}
        seeds: tuple[int | None, ...] = (spec.seeds or suite.seeds) if takes_seed(data) else (None,)
        for combination in _combinations(spec.grid):
            label = _labelled(spec.label, _suffix(sweep) + _suffix(combination))
            # By the names of the parameters, whichever spelling is given: one problem has one key.
            tell(f"problem '{spec.name}'")
            plan = plan_problem(registry, spec.name, {**spec.parameters, **combination})
            workers = data.get("workers")
            if isinstance(workers, int) and workers > suite.threads:
                most = f"at most the threads of the suite, {suite.threads}, for they share its processors"
                raise InputError(f"workers of '{label}'", workers, most)
            for seed in seeds:
                yield Instance(spec.name, label, data, plan.parameters, seed, plan.code)


def _labelled(label: str, suffix: str) -> str:
    return require_label(f"the label '{one_line(label, 50)}' with the values of its grid", label + suffix, 2 * LONGEST_LABEL)


def _suffix(combination: Mapping[str, Any]) -> str:
    """What a combination adds to a label: `` n=40 preprocess=tfidf+unit_rows``."""
    texts = {key: "+".join(map(str, value)) if isinstance(value, list) else value for key, value in combination.items()}
    return "".join(f" {key}={text}" for key, text in texts.items())


def _solvers(spec: SolverSpec, registry: Registry, tell: Callable[[str], None]) -> Iterator[SolverPlan]:
    """Every combination of the grid; those that a label does not tell apart get their grid values added."""
    plans = []
    for combination in _combinations(spec.grid):
        tell(f"solver '{spec.name}'")
        # By the solver's own name, whichever of its aliases is given: one run has one key.
        plan = plan_solver(registry, spec.name, {**spec.options, **combination})
        plans.append((replace(plan, label=spec.label or plan.label), combination))
    counts = Counter(plan.label for plan, _ in plans)
    for plan, combination in plans:
        yield replace(plan, label=_labelled(plan.label, _suffix(combination) if counts[plan.label] > 1 else ""))


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
