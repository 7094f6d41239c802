"""No bound of any problem is false in exact arithmetic, on instances made to provoke it."""

from __future__ import annotations

import numpy as np
import pytest

from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.validation.exact.instances import MAKERS, REPRODUCERS, Case
from bench_mtl.validation.exact.judge import faults, verdicts

#: Instances of each problem: some 50 in all, and 2,000.
QUICK, FULL = 5, 182


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


def found(registry: Registry, problem: str, count: int, seed: int) -> list[str]:
    return [fault.message for verdict in verdicts(registry, problem, count, seed) for fault in verdict]


def test_every_problem_has_a_reference(registry: Registry) -> None:
    assert set(MAKERS) == {name for name, cls in registry.problems.items() if cls.__module__.startswith("bench_mtl.problems.")}
    assert FULL * len(MAKERS) >= 2000


@pytest.mark.parametrize(("name", "make"), REPRODUCERS, ids=[name for name, _ in REPRODUCERS])
def test_what_once_had_false_bounds(registry: Registry, name: str, make: Case) -> None:
    assert not faults(make(registry.problems[name.partition(":")[0]]), np.random.default_rng(0))


@pytest.mark.parametrize("problem", sorted(MAKERS))
def test_no_bound_is_false(registry: Registry, problem: str) -> None:
    assert not found(registry, problem, QUICK, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("problem", sorted(MAKERS))
def test_no_bound_is_false_on_many_instances(registry: Registry, problem: str) -> None:
    assert not found(registry, problem, FULL, seed=1)
