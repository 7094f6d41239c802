"""The tiny instances of a problem class that all checks run on: those it offers, and the same with their examples in shards."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import design_of
from bench_mtl.core.shards import Shards
from bench_mtl.model.protocols import Problem
from bench_mtl.model.task_data import TaskData

#: The instances in memory of those in shards.
_IN_MEMORY: WeakKeyDictionary[Problem, Problem] = WeakKeyDictionary()


@lru_cache(maxsize=64)
def tiny_instances(problem: type[Problem], seed: int) -> tuple[Problem, ...]:
    """Return the tiny instances that a problem class offers for one seed, built once in this process."""
    return tuple(problem.examples(np.random.default_rng(seed)))


@lru_cache(maxsize=64)
def sharded_instances(problem: type[Problem], seed: int) -> tuple[Problem, ...]:
    """Return those of `tiny_instances` whose examples can be in shards, with these in shards, built once in this process.

    The class is given the arguments of `Problem.examples`, with other data. An instance is left out where the class refuses these by an
    `InputError`, has no `TaskData`, or makes a matrix of its own of them.
    """
    return tuple(_sharded(problem, seed))


def all_instances(problem: type[Problem], seed: int) -> tuple[Problem, ...]:
    """Return `tiny_instances`, then `sharded_instances`."""
    return (*tiny_instances(problem, seed), *sharded_instances(problem, seed))


def in_memory(problem: Problem) -> Problem:
    """Return the one of `tiny_instances` that one of `sharded_instances` was made of; any other problem as it is."""
    return _IN_MEMORY.get(problem, problem)


def in_shards(data: TaskData) -> TaskData:
    """Return the same data with the examples in three shards, or in three for each task with a design of its own.

    Their sizes differ, and one of them has a single example. Of fewer than three examples there are fewer shards.
    """
    design = data.design
    if design.is_shared:
        X = design.block(0)
        shards = Shards.held([(X[rows], data.targets[rows]) for rows in _parts(X.shape[0])])
    else:
        tasks = [data.task(k) for k in range(design.n_tasks)]
        parts = [(k, X[rows], y[rows, None]) for k, (X, y) in enumerate(tasks) for rows in _parts(len(y))]
        shards = Shards.held([(X, Y) for _, X, Y in parts], [k for k, _, _ in parts])
    return replace(data, design=design_of(shards))


def _parts(count: int) -> list[slice]:
    ends = sorted({0, count // 2, count // 2 + 1, count})
    return [slice(start, end) for start, end in pairwise(ends)]


def _sharded(problem: type[Problem], seed: int) -> Iterator[Problem]:
    given: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def noting(self: Any, *values: Any, **named: Any) -> None:
        given[id(self)] = values, named
        problem.__init__(self, *values, **named)

    noted: Any = types.new_class(problem.__name__, (problem,), exec_body=lambda body: body.update(__init__=noting))
    for plain, same in zip(tiny_instances(problem, seed), noted.examples(np.random.default_rng(seed)), strict=True):
        values, named = given.get(id(same), ((), {}))
        if not any(isinstance(value, TaskData) for value in (*values, *named.values())):
            continue
        try:
            sharded = problem(*map(_moved, values), **{name: _moved(value) for name, value in named.items()})
        except InputError:
            continue
        if sharded.is_in_shards:
            _IN_MEMORY[sharded] = plain
            yield sharded


def _moved(value: Any) -> Any:
    return in_shards(value) if isinstance(value, TaskData) else value
