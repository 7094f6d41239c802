"""A solver that takes a form of a plug-in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_mtl.core.types import Array, Iterate
from bench_mtl.model.protocols import Form, IterativeSolver, Problem

from ..forms import RidgeLogisticForm


@dataclass(frozen=True)
class Newton(IterativeSolver):
    """Newton's method with steps halved until the objective falls enough."""

    name: ClassVar[str] = "newton"
    takes: ClassVar[tuple[type[Form], ...]] = (RidgeLogisticForm,)

    def steps(self, problem: Problem, start: Array | None = None) -> Iterator[Iterate]:
        form = problem.form(RidgeLogisticForm)
        point, step = np.array(problem.start_point() if start is None else start), 0
        while True:
            yield Iterate(point, form.dual(point), step, float(step))
            gradient, value, size = form.gradient(point), form.objective(point), 1.0
            columns = [np.linalg.solve(form.hessian(point, k), gradient[:, k]) for k in range(form.design.n_tasks)]
            direction = np.column_stack(columns)
            fall = float((gradient * direction).sum())
            while size > 1e-6 and form.objective(point - size * direction) > value - 0.1 * size * fall:
                size *= 0.5
            point, step = point - size * direction, step + 1
