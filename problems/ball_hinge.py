"""Hinge classification with a norm ball for every task: the rivals of joint feature selection that learn each task by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import one_of, real_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import HingeProblem
from bench_mtl.model.linear_loss import REDUCTIONS
from bench_mtl.model.task_balls import TASK_BALLS, TaskBalls
from bench_mtl.model.task_data import TaskData, true_part
from bench_mtl.model.tiny_data import FEATURES, TASKS, tiny_data, weighted


class BallHinge(HingeProblem):
    """m classification tasks, each with a ball of its own::

        min_W  sum_k s_k sum_i max(0, 1 - y_ki x_ki.w_k)   subject to  ||w_k|| <= C_k for every task k

    where ||.|| is the l1 or the l2 norm, and s_k = 1/n_k (``reduction="mean"``) or 1 (``reduction="sum"``).

    A point is W, d x m. A dual point is a, shaped like the labels, with a_ki in [0, s_k]; anything else is clipped.
    With g_k = sum_i a_ki y_ki x_ki and the dual norm ||.||' (the largest entry for l1, the length for l2) the bound is

        D(a) = sum_k max(0, sum_i a_ki - C_k ||g_k||')

    Parameters
    ----------
    data : TaskData with labels -1/+1; labels 0/1 are converted, with a warning
    radius : C_k >= 0: one number for all tasks, a list with one a task, or "truth", the norms of the columns of the generator's own W
    norm : "l1" or "l2"
    reduction : "mean" or "sum" over the examples of a task
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : other labels, a negative radius, not as many radii as tasks, an unknown norm or reduction.

    References
    ----------
    Quattoni, Carreras, Collins, Darrell, ICML 2009, section 5 (independent l1 and l2 projections, C_k the norm of the true w_k).
    """

    name = "ball_hinge"
    aliases: ClassVar[Mapping[str, str]] = {"loss": "reduction"}
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"lp": frozenset({"linear"})}

    def __init__(
        self,
        data: TaskData,
        *,
        radius: float | Sequence[float] | str,
        norm: str = "l1",
        reduction: str = "mean",
        intercept: bool = False,
    ) -> None:
        balls, self.reduction = TASK_BALLS[one_of("norm", norm, tuple(TASK_BALLS))], one_of("reduction", reduction, REDUCTIONS)
        super().__init__(data, reduction=reduction, intercept=intercept)
        self.norm, self.balls = norm, balls(frozen(_radii(radius, data, balls)))
        self.regularise(self.balls)
        self.conic_forms = self.balls.models  # type: ignore[misc] # those of the class are of the l1 norm

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        W = rng.standard_normal((FEATURES, TASKS))
        data = tiny_data(rng, W, 0.5).labelled()
        yield cls(weighted(data.per_task), radius=0.8)
        yield cls(replace(data.per_task, truth={"W": 0.3 * W}), radius="truth", norm="l2")
        yield cls(data.shared, radius=[0.5, 0.9, 0.0], reduction="sum")
        yield cls(data.shared, radius=0.4, norm="l2")
        yield cls(data.shared_csr, radius=[0.5, 0.3, 0.7], norm="l2", reduction="sum")
        yield cls(data.per_task_csr, radius=0.9)
        yield cls(weighted(data.shared), radius=0.5, norm="l2", intercept=True)


def _radii(radius: Any, data: TaskData, balls: type[TaskBalls]) -> Array:
    m = data.design.n_tasks
    if isinstance(radius, str):
        if radius != "truth":
            raise InputError("radius", radius, "a number, a list with one a task, or 'truth'")
        return balls(np.zeros(m)).norms(true_part("radius", data, "W"))
    if not isinstance(radius, (list, tuple, np.ndarray)) or (isinstance(radius, np.ndarray) and radius.ndim == 0):
        return np.full(m, real_number("radius", radius))
    if len(radius) != m:
        raise InputError("radius", len(radius), f"have one number a task, {m}")
    return np.array([real_number(f"radius of task {k}", each) for k, each in enumerate(radius)])
