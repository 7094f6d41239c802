"""Alternating minimisation over the sparse and the low-rank part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.forms import SplitForm
from bench_mtl.model.losses import Squared
from bench_mtl.model.normal_equations import TaskBlocks, factorisable, normal_blocks
from bench_mtl.model.protocols import SHOWN_SHARE, Form, IterativeSolver, Problem, Solver

#: Sweeps of coordinate descent over the sparse part, and projected gradient steps of the low-rank part, in one round.
SWEEPS, _PROJECTIONS = 2, 4


@dataclass(frozen=True)
class BlockCoordinate(IterativeSolver):
    """Alternates between the sparse part P and the low-rank part Q, with f(P + Q) the loss and H_k = X_k^T X_k:

    ::

        P: p_jk <- soft threshold of p_jk - (grad f)_jk / (H_k)_jj at gamma / (H_k)_jj, entry by entry, twice
        Q: accelerated projected gradient steps onto the trace-norm ball with step 1 / sigma_max(X)^2, four of them

    A step is one such round. It costs nothing in the number of examples.

    References
    ----------
    Friedman, Hastie, Tibshirani, Journal of Statistical Software 33(1), 2010, section 2.2, for the sweeps by covariances.
    """

    name: ClassVar[str] = "block_coordinate"
    takes: ClassVar[tuple[type[Form], ...]] = (SplitForm,)
    takes_shards: ClassVar[bool] = True

    def incompatibility(self, problem: Problem) -> str | None:
        return super().incompatibility(problem) or gram_incompatibility(self, problem)

    def warm_up(self) -> None:
        from bench_mtl.solvers.kernels.split_blocks import warm_up

        warm_up()

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        from bench_mtl.solvers.kernels.split_blocks import block_steps

        first = problem.repair(problem.start_point() if start is None else start)
        yield Iterate(first, None, 0, 0.0)
        form = problem.form(SplitForm)
        blocks, target, state = square_state(form, first)
        curvature = form.design.norm() ** 2
        step = 0
        while True:
            count = 1 + step // SHOWN_SHARE
            kind = (form.penalty, form.radius, SWEEPS, _PROJECTIONS, curvature)
            block_steps(blocks.rows, blocks.offsets, target, *kind, state, count)
            step += count
            yield Iterate(np.ascontiguousarray(state[:2].transpose(0, 2, 1)), None, step, float(step * (SWEEPS + _PROJECTIONS + 1)))


def gram_incompatibility(solver: Solver, problem: Problem) -> str | None:
    """Return why a solver that works on X_k^T X_k cannot take a problem with a split form, or None."""
    form = problem.form(SplitForm)
    if not isinstance(form.loss, Squared):
        return f"{solver.label} minimises a quadratic in each entry, which the {form.loss.name} loss of {problem.name} is not"
    if not factorisable(form.design, square=True):
        return f"{solver.label} works on dense products X^T X, which are too large for this design"
    return None


def square_state(form: SplitForm, point: Array) -> tuple[TaskBlocks, Array, Array]:
    """Return the blocks of X_k^T X_k, X_k^T y_k, and the state (P, Q, .) of a compiled loop, task by task."""
    target = np.ascontiguousarray(form.design.adjoint(form.targets).T)
    state = np.zeros((3, *target.shape))
    state[:2] = point.transpose(0, 2, 1)
    return normal_blocks(form.design, square=True), target, state
