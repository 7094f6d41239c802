"""A run on data in shards has the same bits, whether this process computes with the shards or the workers of a Dask cluster."""

import pickle
from typing import Any

import numpy as np
import pytest
from shared_cluster import SharedCluster

from bench_mtl import Iterate, Limits, Problem, load_registry, run
from bench_mtl.core.blocks import Here
from bench_mtl.core.dask_blocks import OnDask, Workers
from bench_mtl.validation.tiny_instances import sharded_instances

SOLVERS = ("dual_newton", "accelerated_gradient", "smoothed_gradient", "projected_subgradient")
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
    workers = cluster.computing()
    here = outcome(problem)
    for method in ("map", "total"):
        monkeypatch.setattr(Here, method, elsewhere(method, workers))
    there = outcome(problem)
    assert workers.counts["rounds"] > 5
    workers.close()
    np.testing.assert_array_equal(here[0], there[0])
    assert here[1:] == there[1:]


def elsewhere(method: str, workers: Workers) -> Any:
    """Return a method of blocks of this process for which workers compute."""

    def call(here: Here, *arguments: Any) -> Any:
        return getattr(OnDask(workers, (1,) * here.count, tuple((block,) for block in here.blocks)), method)(*arguments)

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
