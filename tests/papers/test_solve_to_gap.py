"""What a solver that has too little time leaves; that gaps are proven where it has enough is a test of all cells."""

import numpy as np

from bench_mtl import Status, TaskData
from bench_mtl.problems.sparse_low_rank import SparseLowRank
from papers.solve_to_gap import solve_to_gap


def test_too_little_time_leaves_what_is_there() -> None:
    rng = np.random.default_rng(0)
    problem = SparseLowRank(TaskData.shared(rng.standard_normal((30, 12)), rng.standard_normal((30, 3))), penalty=1.0, radius=1.0)
    found = solve_to_gap(problem, "projected_gradient", 1e-15, 1e-6)
    assert found.status is Status.INACCURATE
    assert found.relative_gap > 1e-15
    assert found.bound <= found.objective == problem.objective(found.point)
    assert found.reason
