"""The instances that all checks run on: those of the problem class, and the same in shards."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from bench_mtl import InputError, TaskData
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.problems import L1InfGLM, RidgeHinge
from bench_mtl.validation.tiny_instances import all_instances, in_memory, sharded_instances, tiny_instances
from bench_mtl.validation.validate import validate

REGISTRY = load_registry()


@pytest.mark.parametrize("name", REGISTRY.problems)
def test_what_is_shipped_has_instances_in_shards(name: str) -> None:
    """But for portfolios, whose prices are read from one matrix, and for examples with weights, which are for data in memory."""
    problem = REGISTRY.problems[name]
    plain, sharded = tiny_instances(problem, 0), sharded_instances(problem, 0)
    missing = [tiny for tiny in plain if tiny not in {in_memory(twin) for twin in sharded}]
    assert len(missing) <= (len(plain) if name == "portfolio" else len(plain) // 2)
    assert all_instances(problem, 0) == (*plain, *sharded)
    for twin in sharded:
        tiny = in_memory(twin)
        assert type(twin) is type(tiny) is problem
        assert twin.is_in_shards
        assert not tiny.is_in_shards
        assert in_memory(tiny) is tiny
        assert twin.dimensions == tiny.dimensions
        point = twin.repair(np.random.default_rng(0).standard_normal(twin.point_shape))
        assert twin.objective(point) == pytest.approx(tiny.objective(point), rel=1e-12)


def test_an_instance_that_cannot_be_in_shards_is_left_out() -> None:
    class Refusing(RidgeHinge):
        def __init__(self, data: TaskData, **parameters: Any) -> None:
            if data.design.is_in_shards and not data.design.is_shared:
                raise InputError("tasks with examples of their own are not taken")
            super().__init__(data, **parameters)

    class WithoutData(RidgeHinge):
        def __init__(self) -> None:
            super().__init__(TaskData.shared(np.eye(2), np.array([1.0, -1.0])), ridge=1.0)

        @classmethod
        def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
            yield cls()

    assert {twin.design.is_shared for twin in sharded_instances(Refusing, 0)} == {True}  # type: ignore[attr-defined]
    assert sharded_instances(WithoutData, 0) == ()


#: It needs what shards do not give, and says that it takes them.
HASTY = """
from dataclasses import dataclass
from bench_mtl.solvers.accelerated_gradient import AcceleratedGradient

@dataclass(frozen=True)
class Hasty(AcceleratedGradient):
    name = "hasty"
    takes_shards = {takes_shards}

    def resume(self, problem, start):
        problem.design.block(0)
        return super().resume(problem, start)
"""


@pytest.mark.parametrize("takes_shards", [True, False])
def test_a_solver_that_says_that_it_takes_shards_is_held_to_it(takes_shards: bool, tmp_path: Path) -> None:
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "hasty.py").write_text(HASTY.format(takes_shards=takes_shards))
    solver = load_registry(tmp_path).solvers["hasty"]
    checks = list(validate(Registry({"l1inf_glm": L1InfGLM}, {"hasty": solver}), cases=1, only=["hasty"]))
    plain, sharded = (sum(each.fit.loss.is_smooth for each in made(L1InfGLM, 0)) for made in (tiny_instances, sharded_instances))
    assert checks
    for check in checks:
        assert check.cases == plain + takes_shards * sharded
        assert check.failures == takes_shards * sharded
        assert "in shards" in check.message or not takes_shards
