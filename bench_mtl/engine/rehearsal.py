"""Rehearses a run on tiny instances like its problem, so that all it compiles is compiled, or loaded, before its clock runs.

Which functions Numba compiles depends on the types of what they are called with: dense or CSR, read-only or not, a penalty or None. The
tiny instances that every problem has for its conformance tests are taken for their types: of those that the solver can take, as few as
have all the traits of the problem that any of them has. So a new problem or solver is covered without a word about it.

A fork of a process shares its memory until either writes, and touches code and memory anew: its first run would wait some milliseconds for
pages. So a fork rehearses again, what its solver itself does, as a library has run to other tolerances before the one that counts.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bench_mtl.core.types import Iterate
from bench_mtl.engine.clock import Clock
from bench_mtl.model.protocols import IterativeSolver, OneShotSolver, Problem, Solver

#: A rehearsal ends at this relative gap, or after this many steps, or seconds without compiling.
_GAP, _STEPS, _SECONDS = 1e-9, 30, 0.05
#: Steps from a point that another run has reached, and in a fork.
_STEPS_RESUMED, _STEPS_IN_FORK = 3, 8
#: How many blocks of numbers `touch_memory` takes; and the numbers of one that it does not touch, after which the C library takes blocks of
#: up to its size from the heap, and not from the system.
_BLOCKS, _NUMBERS, _LARGE = 4, 2**18, 2**21
#: How deep attributes are looked into, and how many elements of a list.
_DEPTH, _ELEMENTS = 4, 10

#: What has been rehearsed, and on which examples.
_rehearsed: dict[tuple[object, ...], list[Problem]] = {}


class _Last(NamedTuple):
    """The last problem that a solver was rehearsed for."""

    problem: weakref.ref[Problem]
    traits: frozenset[object]
    process: int


#: By the solver and the gap: a fork that finds it there need not look at all attributes of the problem.
_last: dict[tuple[object, ...], _Last] = {}


def rehearse(problem: Problem, solver: Solver, gap: float, clock: Clock) -> bool:
    """Certify points of tiny instances like `problem`, and take some steps of `solver` on them, aimed at a relative gap; once in this
    process for problems alike. Returns whether this is a fork of a process that has rehearsed for this very problem.

    The problem itself is not touched: what it computes of its data is part of the run. The solver's own code runs here: the time it takes,
    without compiling, is counted and limited by `clock`. What it raises is not passed on, since the run itself will show it.
    """
    aim: tuple[object, ...] = ()
    with suppress(Exception):  # a plug-in may be unable to say what it is
        aim = type(solver), repr(solver), gap
    last = _last.get(aim)
    if last is not None and last.problem() is problem:
        is_fork = last.process != os.getpid()
        if is_fork:
            _last[aim] = last._replace(process=os.getpid())
            _in_fork(problem, last.traits, solver, gap, clock)
        return is_fork
    wanted = traits(problem)
    if aim:
        _last[aim] = _Last(weakref.ref(problem), wanted, os.getpid())
    _once(problem, wanted, None, gap, clock)
    for part in solver.rehearsed() if isinstance(solver, IterativeSolver) else ():
        if may_compile(type(part)):
            _once(problem, wanted, part, gap, clock)
    return False


def touch_memory() -> None:
    """Take memory and give it back, so that what is taken next has its pages, as in a process that has worked before."""
    np.empty(_LARGE)
    blocks = [np.ones(_NUMBERS) for _ in range(_BLOCKS)]
    del blocks


def may_compile(solver: type[Solver]) -> bool:
    """Whether the class has anything that Numba compiles.

    Any solver of this package may, and what inherits from one; a plug-in if its module, or one that this imports, shows it.
    """
    if solver.__module__.startswith("bench_mtl.") or any(kind.__module__.startswith("bench_mtl.solvers.") for kind in solver.__mro__):
        return True
    dispatcher = getattr(sys.modules.get("numba.core.dispatcher"), "Dispatcher", None)
    module = sys.modules.get(solver.__module__)
    if dispatcher is None or module is None:
        return False
    seen = [vars(module)]
    for value in vars(module).values():
        home = value if isinstance(value, type(sys)) else sys.modules.get(str(getattr(value, "__module__", "")))
        seen.append(vars(home) if home is not None else {})
    return any(isinstance(value, dispatcher) for names in seen for value in tuple(names.values()))


def _key(problem: Problem, wanted: frozenset[object], solver: Solver | None, gap: float) -> tuple[object, ...]:
    return (type(problem), wanted, *(() if solver is None else (type(solver), repr(solver), gap)))


def _in_fork(problem: Problem, wanted: frozenset[object], solver: Solver, gap: float, clock: Clock) -> None:
    """Run what the process has shared so far: certificates, and the solver on the example most like the problem; of a one-shot solver, what
    it does to warm up."""
    with suppress(Exception, SystemExit):
        if isinstance(solver, OneShotSolver):
            solver.warm_up()
        example, *_ = _rehearsed[_key(problem, wanted, None, gap)]
        example.certify(Iterate(example.start_point()))
        example, *_ = _rehearsed[_key(problem, wanted, solver, gap)]
        _follow(example, partial(solver.aimed_at(gap).steps, example), _STEPS_IN_FORK, clock)  # type: ignore[attr-defined] # iterative ones


def _once(problem: Problem, wanted: frozenset[object], solver: IterativeSolver | None, gap: float, clock: Clock) -> None:
    key = _key(problem, wanted, solver, gap)
    if key in _rehearsed:
        return
    played = _rehearsed[key] = []
    with suppress(Exception, SystemExit):
        examples = _examples(type(problem))
        fitting = [example for example in examples if solver is None or solver.incompatibility(example) is None]
        for example in most_alike(wanted, fitting):
            with suppress(Exception, SystemExit):  # the run itself will show it
                example.warm_up()
                played.append(example)
                if solver is None:
                    continue
                aimed = solver.aimed_at(gap)
                last = _follow(example, partial(aimed.steps, example), _STEPS, clock)
                if last is not None:
                    _follow(example, partial(aimed.resume, example, Iterate(last.primal, last.dual)), _STEPS_RESUMED, clock)


def _follow(problem: Problem, begin: Callable[[], Iterator[Iterate]], most: int, clock: Clock) -> Iterate | None:
    """Run as the driver does, and return the last iterate."""
    until, last = clock.elapsed + _SECONDS, None
    with clock.running():
        steps = begin()
    for count in range(most):
        with clock.running():
            iterate = next(steps, None)
        if iterate is None:
            break
        last = iterate
        if count & (count - 1) == 0 and problem.certify(iterate).relative_gap <= _GAP:  # at powers of 2
            break
        if clock.elapsed > until:
            break
    return last


@lru_cache(maxsize=32)
def _examples(problem: type[Problem]) -> tuple[Problem, ...]:
    return tuple(problem.examples(np.random.default_rng(0)))


def most_alike(wanted: frozenset[object], examples: list[Problem]) -> list[Problem]:
    """Return few of the examples that have together what any of them has of the wanted traits: each time the one with most of what is
    missing, and of those the one with the fewest traits that nobody wants."""
    known = [(traits(example), example) for example in examples]
    missing = wanted & frozenset().union(*(found for found, _ in known))
    chosen = []
    while missing:
        found, best = max(known, key=lambda pair: (len(pair[0] & missing), -len(pair[0] - wanted)))
        missing -= found
        chosen.append(best)
    return chosen


def traits(thing: object) -> frozenset[object]:
    """Return what types Numba sees may depend on: of every attribute its class, and of arrays all but their numbers and sizes."""
    return frozenset(_traits(thing, "", _DEPTH))


def _traits(thing: object, path: str, depth: int) -> Iterator[object]:
    if isinstance(thing, np.ndarray):
        flags = thing.flags
        yield path, thing.dtype.str, thing.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, tuple(np.minimum(thing.shape, 2))
    elif sp.issparse(thing):
        yield path, getattr(thing, "format", "")
        for name in ("data", "indices", "indptr"):
            yield from _traits(getattr(thing, name, None), f"{path}.{name}", depth)
    elif thing is None or isinstance(thing, (bool, str)):
        yield path, thing
    elif isinstance(thing, (list, tuple)):
        yield path, type(thing), min(len(thing), 2)
        for element in thing[:_ELEMENTS] if depth else ():
            yield from _traits(element, f"{path}[]", depth - 1)
    else:
        yield path, type(thing)
        for name, value in _attributes(thing).items() if depth else ():
            yield from _traits(value, f"{path}.{name}", depth - 1)


def _attributes(thing: Any) -> dict[str, object]:
    """Attributes by name, without those that are computed at their first use: they come from the others."""
    if isinstance(thing, dict):
        return {str(key): value for key, value in thing.items()}
    if isinstance(thing, type) or callable(thing):
        return {}
    kind = type(thing)
    found = getattr(thing, "__dict__", {})
    return {name: value for name, value in tuple(found.items()) if not isinstance(getattr(kind, name, None), cached_property)}
