"""The Frank-Wolfe method for the low-rank part, coordinate descent for the sparse one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem
from bench_mtl.solvers.block_coordinate import SWEEPS, gram_incompatibility, square_state


@dataclass(frozen=True)
class FrankWolfeTrace(IterativeSolver):
    """Alternates between the sparse part P and the low-rank part Q:

    ::

        P: two sweeps of coordinate descent
        Q <- the best point of the triangle of Q, 0 and the vertex -tau u v^T, (u, v) the leading singular vectors of the gradient

    Without a projection, one pair of singular vectors a step; its rate is 1 / t. `Iterate.note` holds the Frank-Wolfe gap
    <grad f, Q - vertex>, which bounds what Q alone can still gain.

    References
    ----------
    Jaggi, International Conference on Machine Learning 2013, algorithm 1 and section 4.1 for trace-norm balls.
    """

    name: ClassVar[str] = "frank_wolfe_trace"
    takes: ClassVar[tuple[type[Form], ...]] = (SplitForm,)
    takes_shards: ClassVar[bool] = True

    def incompatibility(self, problem: Problem) -> str | None:
        return super().incompatibility(problem) or gram_incompatibility(self, problem)

    def warm_up(self) -> None:
        from bench_mtl.solvers.kernels.split_blocks import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        from bench_mtl.solvers.kernels.split_blocks import frank_wolfe_steps

        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first, None, 0, 0.0)
        form = problem.form(SplitForm)
        blocks, target, state = square_state(form, first)
        direction = np.ones(min(target.shape))
        step = 0
        while True:
            count = 1 + step // SHOWN_SHARE
            gap = frank_wolfe_steps(blocks.rows, blocks.offsets, target, form.penalty, form.radius, SWEEPS, state, direction, count)
            step += count
            point = np.ascontiguousarray(state[:2].transpose(0, 2, 1))
            yield Iterate(point, None, step, float(step * (SWEEPS + 3)), note=f"Frank-Wolfe gap of Q {gap:.1e}")
