"""Small data that tests of several solvers share, runs that have to prove their targets, and few cases with every pair of values."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bench_mtl import Limits, Problem, Record, Solver, Status, TaskData, Tolerance, run

_RNG = np.random.default_rng(0)
_X, _Y = _RNG.standard_normal((12, 6)), np.where(_RNG.random((12, 3)) < 0.5, 1.0, -1.0)
_XS = [_RNG.standard_normal((n, 6)) for n in (4, 9, 5)]
_YS = [np.where(_RNG.random(len(X)) < 0.5, 1.0, -1.0) for X in _XS]

#: Labels of three tasks in every layout.
LAYOUTS = {
    "shared": TaskData.shared(_X, _Y),
    "shared CSR": TaskData.shared(sp.csr_array(_X * (np.abs(_X) > 0.5)), _Y),
    "per task": TaskData.per_task(_XS, _YS),
    "per task CSR": TaskData.per_task([sp.csr_array(X * (np.abs(X) > 0.5)) for X in _XS], _YS),
}


def proven(problem: Problem, solver: Solver, target: float, start: Any = None, **limits: Any) -> Record:
    """Return a run that has proven its target, by default in 60 seconds and 20,000 iterations."""
    bounds = Limits(**{"seconds": 60.0, "iterations": 20_000, **limits})
    record = run(problem, solver, tolerance=Tolerance(target), limits=bounds, start=start)
    assert record.status is Status.VERIFIED, record.reason
    return record


def pairwise_cases(*axes: Sequence[Any]) -> list[Any]:
    """Return all combinations of the axes as parameters of a test; those that add no pair of values of two axes are slow.

    The choice is greedy: always the first combination that adds the most pairs.
    """
    pairs = {case: set(combinations(enumerate(case), 2)) for case in product(*(range(len(axis)) for axis in axes))}
    missing, chosen = set().union(*pairs.values()), set()
    while missing:
        best = max(pairs, key=lambda case: len(pairs[case] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return [
        pytest.param(*(axis[i] for axis, i in zip(axes, case, strict=True)), marks=[] if case in chosen else pytest.mark.slow)
        for case in pairs
    ]
