"""A run on data in shards has the same bits, whether this process computes with the shards or the workers of a Dask cluster."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from shared_cluster import SharedCluster

from bench_mtl.core.cluster_shards import ClusterShards
from bench_mtl.core.shards import LocalShards
from bench_mtl.core.types import Iterate, Limits
from bench_mtl.engine.driver import run
from bench_mtl.engine.registry import load_registry
from bench_mtl.model.protocols import Problem
from bench_mtl.validation.tiny_instances import sharded_instances

SOLVERS = ("accelerated_gradient", "smoothed_gradient", "projected_subgradient")
REGISTRY = load_registry()
SHARDED = {name: instances for name in sorted(REGISTRY.problems) if (instances := sharded_instances(REGISTRY.problem(name), 0))}

#: One instance of every problem, by turns another one; the rest is slow.
INSTANCES = [
    pytest.param(instance, id=f"{name}, {number}", marks=[] if number == place % len(instances) else pytest.mark.slow)
    for place, (name, instances) in enumerate(SHARDED.items())
    for number, instance in enumerate(instances)
]


@pytest.mark.parametrize("problem", INSTANCES)
def test_bits_of_a_run_do_not_depend_on_who_computes(problem: Problem, cluster: SharedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = cluster.pool()
    here = outcome(problem)
    for method in ("map", "total"):
        monkeypatch.setattr(LocalShards, method, elsewhere(method, pool))
    there = outcome(problem)
    assert pool.traffic.rounds > 5
    pool.close()
    np.testing.assert_array_equal(here[0], there[0])
    assert here[1:] == there[1:]


def elsewhere(method: str, pool: Any) -> Any:
    """Return a method of shards in memory for which workers compute."""

    def call(shards: LocalShards, *arguments: Any, **named: Any) -> Any:
        return getattr(ClusterShards(shards.shards, shards.sizes, pool), method)(*arguments, **named)

    return call


def outcome(problem: Problem) -> tuple[Any, ...]:
    """Return the last point of a short run, and its certificates; nothing that the problem remembers is used."""
    fresh = pickle.loads(pickle.dumps(problem))
    fitting = [name for name in SOLVERS if REGISTRY.solver(name).incompatibility(fresh) is None]
    if not fitting:
        point = fresh.repair(np.random.default_rng(1).standard_normal(fresh.point_shape))
        dual = fresh.dual_at(point)
        return point, fresh.certify(Iterate(point, None if dual is None else 0.5 * dual))  # another one than that of the residuals
    fresh.warm_up()  # of which a run makes no rounds itself
    record = run(fresh, fitting[0], limits=Limits(seconds=600.0, iterations=1))
    return record.solution, record.status, record.best, [sample.certificate for sample in record.samples]
