"""Small and awkward instances of `SparseLowRank` for the tests of its solvers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bench_mtl.data import TaskData
from bench_mtl.problems.sparse_low_rank import SparseLowRank


def awkward_instances() -> dict[str, SparseLowRank]:
    rng = np.random.default_rng(7)
    X, Y = rng.standard_normal((20, 5)), rng.standard_normal((20, 4))
    wide, few = rng.standard_normal((4, 9)), rng.standard_normal((4, 3))
    Xs, ys = [rng.standard_normal((n, 6)) for n in (3, 8, 4)], [rng.standard_normal(n) for n in (3, 8, 4)]
    thin = [rng.standard_normal((n, 6)) for n in (3, 2, 4)]
    shared = TaskData.shared
    return {
        "shared": SparseLowRank(shared(X, Y), penalty=1.0, radius=0.5),
        "one feature": SparseLowRank(shared(X[:, :1], Y), penalty=1.0, radius=0.2),
        "fewer examples than features": SparseLowRank(shared(wide, few), penalty=0.3, radius=0.5),
        "more tasks than features": SparseLowRank(shared(X[:, :2], Y), penalty=0.5, radius=0.3),
        "radius 0": SparseLowRank(shared(X, Y), penalty=1.0, radius=0.0),
        "radius that does not bind": SparseLowRank(shared(X, Y), penalty=1.0, radius=100.0),
        "per task": SparseLowRank(TaskData.per_task(Xs, ys), penalty=0.5, radius=0.4),
        "per task, few examples": SparseLowRank(
            TaskData.per_task(thin, [rng.standard_normal(len(x)) for x in thin]), penalty=0.2, radius=0.4
        ),
        "shared CSR": SparseLowRank(shared(sp.csr_array(X * (X > 0)), Y), penalty=1.0, radius=0.5),
        "per task CSR": SparseLowRank(TaskData.per_task([sp.csr_array(x * (x > 0)) for x in Xs], ys), penalty=0.5, radius=0.4),
        "no design at all": SparseLowRank(shared(0.0 * X, Y), penalty=1.0, radius=0.5),
    }


AWKWARD = awkward_instances()
