"""`GraphADMM`: hinges under norms of rows on features of any size, its states, and what it does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Limits, Status, Tolerance
from bench_mtl.data import TaskData
from bench_mtl.engine.driver import run
from bench_mtl.problems.l1inf_hinge import L1InfHinge
from bench_mtl.problems.l12_hinge import L12Hinge
from bench_mtl.solvers.graph_admm import GraphADMM

pytestmark = pytest.mark.numerics


def raw_data(examples: int, features: int) -> tuple[Any, Any]:
    """Return examples whose columns have sizes from a hundredth to a hundred, and labels of three tasks."""
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((examples, features))
    Y = Z @ (rng.standard_normal((features, 3)) * (rng.random((features, 1)) < 0.6)) + rng.standard_normal((examples, 3))
    return Z * 10.0 ** np.linspace(-2.0, 2.0, features), np.where(Y > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("bound", [{"penalty": "1e-2 max"}, {"radius": 3.0}])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_features_of_any_size_are_no_matter(bound: dict[str, Any], intercept: bool, is_shared: bool) -> None:
    X, Y = raw_data(60, 7)
    data = TaskData.shared(X, Y) if is_shared else TaskData.per_task([X[k::2] for k in range(2)], [Y[k::2, k] for k in range(2)])
    record = run(L12Hinge(data, intercept=intercept, **bound), GraphADMM(), tolerance=Tolerance(1e-6), limits=Limits(iterations=100_000))
    assert record.status is Status.VERIFIED, record.reason


def test_it_says_what_it_does_not_take() -> None:
    X, Y = raw_data(10, 4)
    assert "takes NormHingeForm" in str(GraphADMM().incompatibility(L1InfHinge(TaskData.shared(X, Y), radius=1.0)))
    wide = TaskData.shared(np.ones((2, 5000)), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert "which are too many in l12_hinge: 5000" in str(GraphADMM().incompatibility(L12Hinge(wide, radius=1.0)))
    with pytest.raises(InputError, match="relaxation must be from 1 to below 2, not 2"):
        GraphADMM(relaxation=2.0)
