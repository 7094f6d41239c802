"""Points that experiments have proven."""

from __future__ import annotations

import numpy as np

from bench_mtl.core.types import Status
from bench_mtl.data import TaskData
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from papers.solve_to_gap import solve_to_gap


def problem() -> SparseLowRank:
    rng = np.random.default_rng(0)
    return SparseLowRank(TaskData.shared(rng.standard_normal((30, 12)), rng.standard_normal((30, 3))), penalty=1.0, radius=1.0)


def test_a_gap_is_proven() -> None:
    found = solve_to_gap(problem(), "accelerated_gradient", 1e-6, 20.0)
    assert found.status is Status.VERIFIED
    assert found.objective == problem().objective(found.point)
    assert 0.0 <= found.objective - found.bound <= 1e-6 * found.objective
    assert found.relative_gap <= 1e-6


def test_too_little_time_leaves_what_is_there() -> None:
    found = solve_to_gap(problem(), "projected_gradient", 1e-15, 1e-6)
    assert found.status is Status.INACCURATE
    assert found.relative_gap > 1e-15
    assert found.bound <= found.objective
    assert found.reason
