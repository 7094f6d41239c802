"""Least squares for tasks whose relationships are learned with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.designs import frozen
from bench_mtl.core.errors import InputError
from bench_mtl.core.rounding import Interval, enclose_dot
from bench_mtl.core.spectral_bounds import singular_value_bounds
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import FitProblem
from bench_mtl.model.intercepts import exactly_balanced
from bench_mtl.model.linear_loss import OF_WEIGHTS, example_weights
from bench_mtl.model.losses import Squared
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, one_task, tiny_data, weighted


class TaskRelationships(FitProblem):
    """Multi-task relationship learning (MTRL)::

        min_{W, Omega}  sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 tr(W Omega^-1 W^T)
                        subject to  Omega positive semidefinite, m x m, tr Omega = 1

    The best Omega for a W is (W^T W)^(1/2) / ||W||_*, and leaves a convex problem in W alone, which is the one solved::

        min_W  F(W) = sum_k 1/n_k sum_i (y_ki - x_ki.w_k)^2 + ridge/2 ||W||_F^2 + coupling/2 ||W||_*^2

    A point is W, d x m. A dual point is any r, shaped like the targets: at the optimum minus the derivative of the loss in the
    predictions, 2/n_k (y - t). With the singular values s of G = (X_k^T r_k)_k the bound is

        D(r) = <r, y> - sum_k n_k/4 ||r_k||^2 - g*(s),       g*(s) = max_{b >= 0} s.b - ridge/2 ||b||^2 - coupling/2 (sum b)^2

    at the best multiple of r, which is <r, y>^2 / (4 (sum_k n_k/4 ||r_k||^2 + g*(s))) where <r, y> > 0. docs/adr 0027 derives it.

    Parameters
    ----------
    data : TaskData with real targets
    ridge : lambda_1, at least 0
    coupling : lambda_2, at least 0; one of the two is above 0
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : a negative weight, both of them 0.

    References
    ----------
    Zhang, Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010, without offsets.
    """

    name = "task_relationships"
    takes_weights = True
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"nuclear_norm": frozenset({"linear", "quadratic", "psd"})}
    regulariser: SquaredNorms

    def __init__(self, data: TaskData, *, ridge: float, coupling: float, intercept: bool = False) -> None:
        self.ridge, self.coupling = real_number("ridge", ridge), real_number("coupling", coupling)
        if self.ridge == 0.0 and self.coupling == 0.0:
            raise InputError("ridge and coupling are both 0: one of them must be above 0")
        super().__init__(data, Squared(), frozen(2.0 * example_weights(data.design, "mean", data.weights)), intercept=intercept)
        self.regulariser = SquaredNorms(self.ridge, self.coupling)
        if self.coupling == 0.0:
            self.conic_forms = {"qp": frozenset({"linear", "squares"})}  # type: ignore[misc] # those of the class are of the trace norm

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        W = np.outer(rng.standard_normal(FEATURES), rng.standard_normal(TASKS)) + 0.2 * rng.standard_normal((FEATURES, TASKS))
        data = tiny_data(rng, W)
        yield cls(one_task(data.shared), ridge=0.1, coupling=0.2)
        yield cls(data.shared, ridge=0.2, coupling=0.1)
        yield cls(TaskData.shared(data.shared.design.block(0)[:4], data.shared.targets[:4], name="tiny wide"), ridge=0.05, coupling=0.5)
        yield cls(weighted(data.per_task), ridge=0.1, coupling=0.1)
        yield cls(data.shared_csr, ridge=0.0, coupling=0.3)
        yield cls(data.per_task_csr, ridge=0.3, coupling=0.0)
        yield cls(data.shared_csr, ridge=0.2, coupling=0.1, intercept=True)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        r = self.dual_at(point) if dual is None else dual
        size = float(np.abs(r).max())
        if size == 0.0:
            return Interval(0.0, 0.0)
        r = r / size  # only its direction matters, and squares of tiny or huge entries would leave the range of doubles
        if self.fit.intercept:
            r = exactly_balanced(r, self.design)
        slope = enclose_dot(r, self.fit.targets).positive_part()
        if not slope.upper > 0.0:
            return Interval(0.0, 0.0)
        values = singular_value_bounds(self.design.enclose_adjoint(r))
        conjugate = self.regulariser.conjugate(values)
        curvature = (Interval.exact(r).square() / self.fit.weights).sum() * 0.5 + conjugate
        return (slope * slope / curvature * (0.25 * OF_WEIGHTS)).positive_part()
