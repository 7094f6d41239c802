"""No bound of any problem is false in exact arithmetic, on instances made to provoke it."""

import numpy as np
import pytest

from bench_mtl.engine.registry import load_registry
from bench_mtl.validation.exact.instances import MAKERS, REPRODUCERS, Case
from bench_mtl.validation.exact.judge import faults, verdicts

#: Instances of each problem: some 50 in all, and 2,000.
QUICK, FULL = 5, 182


REGISTRY = load_registry()


def found(problem: str, count: int, seed: int) -> list[str]:
    return [fault.message for verdict in verdicts(REGISTRY, problem, count, seed) for fault in verdict]


def test_every_problem_has_a_reference() -> None:
    assert set(MAKERS) == {name for name, cls in REGISTRY.problems.items() if cls.__module__.startswith("bench_mtl.problems.")}
    assert FULL * len(MAKERS) >= 2000


@pytest.mark.parametrize(("name", "make"), REPRODUCERS, ids=[name for name, _ in REPRODUCERS])
def test_what_once_had_false_bounds(name: str, make: Case) -> None:
    assert not faults(make(REGISTRY.problems[name.partition(":")[0]]), np.random.default_rng(0))


@pytest.mark.parametrize("problem", sorted(MAKERS))
def test_no_bound_is_false(problem: str) -> None:
    assert not found(problem, QUICK, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("problem", sorted(MAKERS))
def test_no_bound_is_false_on_many_instances(problem: str) -> None:
    assert not found(problem, FULL, seed=1)
