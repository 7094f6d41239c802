"""Support vector machines without an intercept, for one or many tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bench_mtl.core.checks import real_number
from bench_mtl.core.rounding import Interval, euclidean_norms, gamma, up
from bench_mtl.core.types import Array
from bench_mtl.model.fit_problem import HingeProblem
from bench_mtl.model.linear_loss import OF_WEIGHTS
from bench_mtl.model.protocols import Capability
from bench_mtl.model.squared_norms import SquaredNorms
from bench_mtl.model.task_data import TaskData
from bench_mtl.model.tiny_data import FEATURES, TASKS, one_task, tiny_data, weighted


class RidgeHinge(HingeProblem):
    """A support vector machine for every task::

        min_W  sigma ||W||_F^2 + sum_k 1/n_k sum_i max(0, 1 - y_ki x_ki.w_k)

    A point is W, d x m. A dual point is r, shaped like the labels: a = y r is clipped to [0, 1/n_k]. (Minus a subgradient of the hinges in
    the predictions is such an r.) With G_k = X_k^T r_k the bound is

        D = sum_k max_{0 <= c <= c_k}  c sum_i a_ki - c^2 / (4 sigma) ||G_k||^2,      c_k the largest c with c a_k <= 1/n_k

    Parameters
    ----------
    data : TaskData with labels -1/+1; labels 0/1 are converted, with a warning
    ridge : sigma, above 0; half the lambda of Pegasos
    intercept : whether a free b_k is added to the predictions of every task, see `bench_mtl.model.intercepts`

    Raises
    ------
    InputError : other labels, a ridge that is not above 0.

    References
    ----------
    Singer's slides "Efficient projection algorithms onto the l1 ball", MMDS 2008 (two forms of empirical risk minimisation);
    Shalev-Shwartz, Singer, Srebro, ICML 2007, equation 1.
    """

    name = "ridge_hinge"
    offers: ClassVar[frozenset[Capability]] = frozenset({Capability.SUBGRADIENT, Capability.PROX, Capability.CONIC})
    #: A subgradient has 0 or 1/n_k where the optimum is between both, so that it proves little.
    enough: ClassVar[float] = 0.5
    conic_forms: ClassVar[Mapping[str, frozenset[str]]] = {"qp": frozenset({"linear", "squares"})}

    def __init__(self, data: TaskData, *, ridge: float, intercept: bool = False) -> None:
        self.ridge = real_number("ridge", ridge, strict=True)
        super().__init__(data, reduction="mean", intercept=intercept)
        self.regularise(SquaredNorms(self.ridge, half=1.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Iterator[Self]:
        data = tiny_data(rng, rng.standard_normal((FEATURES, TASKS)), 0.5).labelled()
        yield cls(one_task(data.shared), ridge=0.1)
        yield cls(data.shared, ridge=0.5)
        yield cls(weighted(data.per_task), ridge=0.2)
        yield cls(data.shared_csr, ridge=0.05)
        yield cls(data.per_task_csr, ridge=0.1)
        yield cls(weighted(data.shared), ridge=0.3, intercept=True)

    def _own_dual(self, dual: Any) -> Array:
        return np.asarray(dual)

    def enclose_dual(self, point: Array, dual: Array | None) -> Interval:
        """With the best c of every task to rounding: any c is allowed."""
        r, design, labels = self.dual_at(point) if dual is None else dual, self.design, self.fit.targets
        a = self.hinges.admissible(r * labels)
        largest = np.array([design.task_outputs(a / self.fit.weights, k).max() for k in range(design.n_tasks)])
        longest = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0.0)  # each a_k touches its box now
        longest[~np.isfinite(longest)] = 0.0
        if self.fit.intercept:  # powers of two keep sums that are exactly 0
            longest = np.where(longest > 0.0, np.ldexp(0.5, np.frexp(longest)[1]), 0.0)
        a = np.minimum(a * design.per_example(longest), self.fit.weights)
        totals, (G, error) = design.enclose_task_sums(a), design.adjoint_with_error(a * labels)
        high, spread = (euclidean_norms(each, axis=0)[0] for each in (G, error))
        sizes = Interval(np.maximum(high * (1.0 - 2.0 * gamma(len(G) + 8)) - spread, 0.0), up(high + spread))
        total, size = totals.middle, sizes.middle
        c = np.fmin(np.divide(total, size, out=np.ones_like(total), where=size > 0.0) * (2.0 * self.ridge / size), 1.0)
        rises = totals * c - (sizes * c / (Interval.exact(np.float64(self.ridge)).root() * 2.0)).square()
        proven = Interval(np.fmax(rises.lower, 0.0), np.where(np.isnan(rises.upper), np.inf, rises.upper))  # c = 0 proves 0
        return (proven.sum() * OF_WEIGHTS).positive_part()
