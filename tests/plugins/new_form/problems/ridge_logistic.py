"""A problem with a form of its own."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.types import Array
from bench_mtl.data import TaskData
from bench_mtl.model.protocols import Capability, Form, Problem
from bench_mtl.model.task_data import binary_labels

from ..forms import RidgeLogisticForm


class RidgeLogistic(Problem):
    """The problem of `RidgeLogisticForm`.

    A dual point is any a with entries in [0, 1], shaped like the labels, where H is the entropy of one number:
    D(a) = sum H(a) - 1 / (2 ridge) ||X_k^T (labels_k a_k)||_F^2.
    """

    name: ClassVar[str] = "ridge_logistic"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.PROX})
    forms: ClassVar[tuple[type[Form], ...]] = (RidgeLogisticForm,)

    def __init__(self, data: TaskData, *, ridge: float = 1.0) -> None:
        labels, self.notes = binary_labels(data)
        self._form = RidgeLogisticForm(data.design, labels, real_number("ridge", ridge, strict=True))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        X, Xs = rng.standard_normal((9, 4)), [rng.standard_normal((size, 4)) for size in (5, 8)]
        yield cls(TaskData.shared(X, np.sign(rng.standard_normal((9, 2)))))
        yield cls(TaskData.per_task(Xs, [np.sign(rng.standard_normal(len(Xk))) for Xk in Xs]), ridge=0.1)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self._form.design.n_features, self._form.design.n_tasks)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self._form.labels.shape

    @property
    def dimensions(self) -> Mapping[str, int]:
        design = self._form.design
        return {"n": design.n_examples, "d": design.n_features, "m": design.n_tasks}

    def make_forms(self) -> tuple[Form, ...]:
        return (self._form,)

    def objective(self, point: Array) -> float:
        return self.smooth_value(point)

    def repair(self, point: Array) -> Array:
        return point

    def infeasibility(self, point: Array) -> float:
        return 0.0

    def dual_bound(self, point: Array, dual: Array | None) -> float:
        a = np.clip(self._form.dual(point) if dual is None else dual, 1e-300, 1.0)
        rest = np.maximum(1.0 - a, 1e-300)
        entropy = -float((a * np.log(a) + rest * np.log(rest)).sum())
        return entropy - float((self._form.design.adjoint(a * self._form.labels) ** 2).sum()) / (2.0 * self._form.ridge)

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        return self.smooth_value(point), self._form.gradient(point)

    def smooth_value(self, point: Array) -> float:
        margins = self._form.labels * self._form.design.forward(point)
        losses = np.log1p(np.exp(-np.abs(margins))) - np.minimum(margins, 0.0)
        return float(losses.sum()) + 0.5 * self._form.ridge * float(np.vdot(point, point))

    def lipschitz(self) -> float:
        return 0.25 * self._form.design.norm() ** 2 + self._form.ridge

    def prox(self, point: Array, step_size: float) -> Array:
        return point

    def prox_value(self, point: Array) -> float:
        return 0.0
